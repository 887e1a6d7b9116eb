# SPDX-License-Identifier: MIT
"""`Module`, the base of every layer and model: what it holds, how names are looked up, and how it is called."""

import warnings
from collections import OrderedDict
from types import FunctionType

import tenon
from tenon.nn.modules import _hooks
from tenon.nn.modules._hooks import (
    HookMethods,
    _global_backward_hooks,  # noqa: F401
    _global_buffer_registration_hooks,  # noqa: F401
    _global_forward_hooks,  # noqa: F401
    _global_forward_pre_hooks,  # noqa: F401
    _global_module_registration_hooks,  # noqa: F401
    _global_parameter_registration_hooks,  # noqa: F401
    _warn_non_full,
    _WrappedHook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from tenon.nn.modules._state import _EXTRA_STATE_KEY_SUFFIX, StateMethods, _IncompatibleKeys
from tenon.nn.modules._walk import WalkMethods
from tenon.nn.parameter import Buffer, Parameter

__all__ = [
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "Module",
]


def _typename(obj):
    """How error texts name a value: a tensor's old type name, else the class with its module."""
    if isinstance(obj, tenon.Tensor):
        return obj.type()
    module = getattr(obj, "__module__", None) or type(obj).__module__
    qualname = getattr(obj, "__qualname__", None) or type(obj).__qualname__
    return qualname if module in ("", "builtins", "__builtin__") else f"{module}.{qualname}"


def _addindent(text, spaces):
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _run_registration_hooks(table, module, name, value):
    for hook in table.values():
        out = hook(module, name, value)
        if out is not None:
            value = out
    return value


_TABLES = (  # the hook tables of a module; all are plain ordered dictionaries from a handle's id
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class _CallSignature:
    """`__signature__` of a module: `inspect` finds none on a call that is written in C. A class is asked for its own."""

    def __get__(self, module, cls):
        if module is None or cls.__call__ is not Module.__call__:
            raise AttributeError("__signature__")
        from inspect import Parameter, Signature

        return Signature([Parameter("args", Parameter.VAR_POSITIONAL), Parameter("kwargs", Parameter.VAR_KEYWORD)])


class Module(HookMethods, StateMethods, WalkMethods, tenon._C._ModuleBase):
    """The base of all layers: a tree of modules that hold parameters and buffers, and a `forward` that computes."""

    dump_patches: bool = False
    _version: int = 1
    call_super_init: bool = False
    training: bool
    _compiled_call_impl = None

    def __init__(self, *args, **kwargs):
        if self.call_super_init is False and kwargs:
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        if self.call_super_init is False and args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_is_full_backward_hook"] = None
        for table in _TABLES:
            own[table] = OrderedDict()
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input):
        """What the module computes; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # ---- what it holds

    def _check_name(self, kind, name, where):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
        if kind != "module" and "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if kind != "module" and name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in where:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name, tensor, persistent=True):
        """Hold `tensor` (or None) under `name`: it moves with the module, learns nothing, and is in `state_dict` if `persistent`."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not (isinstance(tensor, tenon.Tensor) or hasattr(tensor, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _run_registration_hooks(_hooks._global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Hold `param` (a Parameter or None) under `name`."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                    f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            param = _run_registration_hooks(_hooks._global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def add_module(self, name, module):
        """Hold `module` (or None) under `name`."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = _run_registration_hooks(_hooks._global_module_registration_hooks, self, name, module)

    def register_module(self, name, module):
        """The same as `add_module`."""
        self.add_module(name, module)

    def get_submodule(self, target):
        """The module with the dotted name `target`; this one for the empty name."""
        mod = self
        if target == "":
            return mod
        for item in target.split("."):
            if not hasattr(mod, item):
                raise AttributeError(f"{mod._get_name()} has no attribute `{item}`")
            mod = getattr(mod, item)
            if not isinstance(mod, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return mod

    def set_submodule(self, target, module, strict=False):
        """Put `module` at the dotted name `target`; with `strict` something must be there already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _find(self, target):
        path, _, name = target.rpartition(".")
        mod = self.get_submodule(path)
        if not hasattr(mod, name):
            raise AttributeError(f"{mod._get_name()} has no attribute `{name}`")
        return mod, name, getattr(mod, name)

    def get_parameter(self, target):
        """The parameter with the dotted name `target`."""
        _, name, found = self._find(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target):
        """The buffer with the dotted name `target`."""
        mod, name, found = self._find(target)
        if name not in mod._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    # ---- attributes: parameters, buffers and modules live in their own tables

    __getattr__ = tenon._C._ModuleBase.__getattr__

    def _forget(self, name, *tables):
        for table in tables:
            if name in table:
                if isinstance(table, dict):
                    del table[name]
                else:
                    table.discard(name)

    def __setattr__(self, name, value):
        own = self.__dict__
        params = own.get("_parameters")
        is_tensor = isinstance(value, tenon.Tensor)  # asked first: a look for marks is slower, and only tensors have them
        if is_tensor and isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, own, self._buffers, self._modules, self._non_persistent_buffers_set)
            self.register_parameter(name, value)
            return
        if params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, own, self._parameters, self._buffers, self._non_persistent_buffers_set)
            modules[name] = _run_registration_hooks(_hooks._global_module_registration_hooks, self, name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = _run_registration_hooks(_hooks._global_module_registration_hooks, self, name, value)
            return
        buffers = own.get("_buffers")
        if (is_tensor and isinstance(value, Buffer)) or (buffers is not None and name in buffers):
            self._set_buffer(name, value, buffers)
            return
        object.__setattr__(self, name, value)

    def _set_buffer(self, name, value, buffers):
        if value is not None and not (isinstance(value, tenon.Tensor) or hasattr(value, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{_typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if buffers is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        persistent = name in buffers and name not in self._non_persistent_buffers_set
        if isinstance(value, Buffer):
            persistent = value.persistent
        if type(self).register_buffer is Module.register_buffer:
            self.register_buffer(name, value, persistent)
        elif name not in buffers:
            self._register_by_own_method(name, value, persistent)
        else:  # a subclass that renames or transforms buffers when they are registered must not see a plain assignment
            buffers[name] = _run_registration_hooks(_hooks._global_buffer_registration_hooks, self, name, value)

    def _register_by_own_method(self, name, value, persistent):
        """Through a `register_buffer` of a subclass, which may be older than the argument `persistent`."""
        import inspect

        if "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the "
                "persistent argument is not allowed."
            )

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self):
        keys = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(k for k in keys if not k[0].isdigit())

    def __setstate__(self, state):
        self.__dict__.update(state)
        for table in _TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica

    # ---- calling

    # A module without hooks goes straight to its forward; what was compiled goes there; all else is _call_impl.
    __call__ = _wrapped_call_impl = tenon._C._ModuleBase.__call__
    __signature__ = _CallSignature()

    def _call_impl(self, *args, **kwargs):
        if not (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _hooks._global_backward_pre_hooks
            or _hooks._global_backward_hooks
            or _hooks._global_forward_hooks
            or _hooks._global_forward_pre_hooks
        ):
            return self.forward(*args, **kwargs)
        if not (self._forward_hooks_always_called or _hooks._global_forward_hooks_always_called):
            return self._call_inner(args, kwargs, None)
        ran = set()
        try:
            return self._call_inner(args, kwargs, ran)
        except Exception:
            # What must always be called still is, with no output; its own failure must not hide the first one.
            for hooks, with_kwargs, always, what in (
                (
                    _hooks._global_forward_hooks,
                    _hooks._global_forward_hooks_with_kwargs,
                    _hooks._global_forward_hooks_always_called,
                    "global module",
                ),
                (self._forward_hooks, self._forward_hooks_with_kwargs, self._forward_hooks_always_called, "module"),
            ):
                for hook_id, hook in hooks.items():
                    if hook_id not in always or hook_id in ran:
                        continue
                    try:
                        call = (hook, self, args, kwargs, None) if hook_id in with_kwargs else (hook, self, args, None)
                        tenon._C._call_user(*call)
                    except Exception as e:
                        warnings.warn(
                            f"{what} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                            f"error was raised in forward: {e}",
                            stacklevel=2,
                        )
            raise

    def _call_inner(self, args, kwargs, ran):
        full, partial = self._get_backward_hooks()
        pre = self._get_backward_pre_hooks()
        for hook_id, hook in (*_hooks._global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if hook_id in self._forward_pre_hooks_with_kwargs:
                out = tenon._C._call_user(hook, self, args, kwargs)
                if out is not None:
                    if not (isinstance(out, tuple) and len(out) == 2):
                        raise RuntimeError(
                            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {out}."
                        )
                    args, kwargs = out
            else:
                out = tenon._C._call_user(hook, self, args)
                if out is not None:
                    args = out if isinstance(out, tuple) else (out,)
        bracket = None
        if full or pre:
            from tenon.utils.hooks import BackwardHook

            bracket = BackwardHook(self, full, pre)
            args = bracket.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        for hook_id, hook in (*_hooks._global_forward_hooks.items(), *self._forward_hooks.items()):
            if ran is not None:
                ran.add(hook_id)
            if hook_id in self._forward_hooks_with_kwargs or hook_id in _hooks._global_forward_hooks_with_kwargs:
                out = tenon._C._call_user(hook, self, args, kwargs, result)
            else:
                out = tenon._C._call_user(hook, self, args, result)
            if out is not None:
                result = out
        if bracket is not None:
            if not isinstance(result, (tenon.Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                    f"{type(result)}",
                    stacklevel=2,
                )
            else:
                result = bracket.setup_output_hook(result)
        if partial:
            var = result
            while not isinstance(var, tenon.Tensor):
                var = next(v for v in var.values() if isinstance(v, tenon.Tensor)) if isinstance(var, dict) else var[0]
            if var.grad_fn is not None:
                for hook in partial:
                    var.grad_fn.register_hook(_WrappedHook(hook, self))
                _warn_non_full(args, result, var.grad_fn)
        return result

    def compile(self, *args, **kwargs):
        """Compile this module's call with `tenon.compile` and keep the result on the module."""
        self._compiled_call_impl = tenon.compile(self._call_impl, *args, **kwargs)

    # ---- text

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What stands between the parentheses of the module's text."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({key}): {_addindent(repr(module), 2)}" for key, module in self._modules.items()]
        name = self._get_name() + "("
        if len(lines) == 1 and not children:
            return name + lines[0] + ")"
        if lines or children:
            return name + "\n  " + "\n  ".join(lines + children) + "\n)"
        return name + ")"


for _part in (HookMethods, StateMethods, WalkMethods):
    for _method in vars(_part).values():
        if isinstance(_method, FunctionType):  # errors of calls, and pickles, name the class that users know
            _method.__module__, _method.__qualname__ = Module.__module__, "Module." + _method.__name__

tenon._C._set_module_call(
    Module._call_impl,
    _hooks._global_backward_hooks,
    _hooks._global_backward_pre_hooks,
    _hooks._global_forward_hooks,
    _hooks._global_forward_pre_hooks,
)
