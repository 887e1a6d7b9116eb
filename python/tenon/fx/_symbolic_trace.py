# SPDX-License-Identifier: MIT
"""The tracer: it calls a module's forward with proxies, and what happens to them becomes the graph."""

import builtins
import functools
import inspect
import math
import sys
from types import FunctionType
import warnings

import tenon
from tenon import nn
from tenon._C import ScriptObject  # tracers from elsewhere look here for it

from ._compatibility import compatibility
from .graph import Graph
from .graph_module import GraphModule
from .proxy import ParameterProxy, Proxy, TracerBase

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]

_orig_module_getattr, _orig_module_call = nn.Module.__getattr__, nn.Module.__call__
_wrapped = {}  # (id of a module's globals, name) -> those globals: calls of that name there are nodes
_tracing = False


class _Placeholder:
    def __repr__(self):
        return "PH"


PH = _Placeholder()


def is_fx_tracing():
    """Whether a tracer is at work."""
    return _tracing


class ProxyableClassMeta(type):
    """The metaclass of a class whose making is recorded where an argument is a proxy."""

    def __call__(cls, *args, **kwargs):
        proxy = _first_proxy(args, kwargs)
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def _first_proxy(args, kwargs):
    found = []

    def look(a):
        if isinstance(a, Proxy):
            found.append(a)
        elif isinstance(a, (tuple, list)):
            for x in a:
                look(x)
        elif isinstance(a, dict):
            look(list(a.values()))
        elif isinstance(a, slice):
            look((a.start, a.stop, a.step))

    look((args, kwargs))
    return found[0] if found else None


def _recorded(function, name=None):
    """`function`, which becomes a node where an argument is a proxy."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        proxy = _first_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return call


def wrap(fn_or_name):
    """Called at the top of a module: a function of it, or a name there, is recorded and not traced through."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


class Tracer(TracerBase):
    """Records a module's forward. What subclasses change: is_leaf_module, create_arg, call_module, iter, to_bool."""

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        self._autowrap_search = list(autowrap_modules)
        self._autowrap_function_ids = {id(value) for module in autowrap_modules for name, value in module.__dict__.items()
                                       if not name.startswith("_") and callable(value)}
        self._autowrap_function_ids.update(id(f) for f in autowrap_functions)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths = None
        self.root = None
        self.tensor_attrs = {}
        self.module_stack = {}

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a call of m is one node: torch's own modules are, except for Sequential."""
        return m.__module__.startswith(("tenon.nn", "torch.nn")) and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod):
        if self.submodule_paths is not None:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def get_fresh_qualname(self, prefix):
        """prefix0, or the first after it that the root does not have."""
        number = 0
        while hasattr(self.root, "%s%d" % (prefix, number)):
            number += 1
        return "%s%d" % (prefix, number)

    def create_arg(self, a):
        if isinstance(a, nn.Parameter):
            for name, parameter in self.root.named_parameters(remove_duplicate=False):
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, tenon.Tensor):
            name = self.tensor_attrs.get(a)
            if name is None:
                name = self.get_fresh_qualname("_tensor_constant")
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def call_module(self, m, forward, args, kwargs):
        """A module is called: one node where it is a leaf, and what it does where it is none."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """A parameter, or a buffer where proxy_buffer_attributes says so, is taken from a module."""
        if isinstance(attr_val, nn.Parameter):
            named = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, tenon.Tensor):
            named = self.root.named_buffers()
        else:
            return attr_val
        for name, value in named:
            if value is attr_val:
                if name not in parameter_proxy_cache:
                    make = None
                    if self.param_shapes_constant and isinstance(attr_val, nn.Parameter):
                        make = lambda node: ParameterProxy(self, node, name, attr_val)  # noqa: E731
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=make)
                return parameter_proxy_cache[name]
        return attr_val

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """The function to call, and what with: an input for each argument that has no concrete value."""
        signature = inspect.signature(root_fn)
        args, keywords = [], {}
        parameters = list(signature.parameters.values())
        if is_module:
            args.append(self.root)
            if not isinstance(root_fn, type(lambda: 0)) or not parameters:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            parameters = parameters[1:]
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                args.append(self.create_proxy("placeholder", "*" + p.name, (), {}))
                continue
            if p.kind is p.VAR_KEYWORD:
                keywords["**"] = self.create_proxy("placeholder", "**" + p.name, (), {})
                continue
            default = () if p.default is p.empty else (p.default,)
            if concrete_args is not None and p.name in concrete_args and concrete_args[p.name] is not PH:
                value = concrete_args[p.name]
                self._hold(p.name, self.create_proxy("placeholder", p.name + "_1", default, {}), value)
            else:
                value = self.create_proxy("placeholder", p.name, default, {},
                                          type_expr=getattr(root_fn, "__annotations__", {}).get(p.name))
            if p.kind is p.KEYWORD_ONLY:
                keywords[p.name] = value
            else:
                args.append(value)
        if "**" in keywords or any(isinstance(a, Proxy) and a.node.target.startswith("*") for a in args):
            return _with_packed(root_fn, keywords), args
        return (functools.partial(root_fn, **keywords) if keywords else root_fn), args

    def _hold(self, name, given, value):
        """The graph fails where an argument is given another value than the one it was made for."""
        wrong = "%s has been specialized to have value %s but got another value" % (name, value)
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (given, wrong), {})
        elif isinstance(value, (bool, int, float, str, complex, tenon.dtype, tenon.device)):
            tenon._assert(given == value, wrong)
        else:
            warnings.warn("Was not able to add assertion to guarantee correct input %s to specialized function. It is up to the "
                          "user to make sure that your inputs match the inputs you specialized the function with." % name)

    def trace(self, root, concrete_args=None):
        """The graph of a module or function."""
        global _tracing
        is_module = isinstance(root, nn.Module)
        if is_module:
            function = getattr(type(root), self.traced_func_name)
            self.root, self.root_module_name = root, root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            function, self.root, self.root_module_name = root, nn.Module(), ""
        self.graph = Graph(tracer_cls=type(self) if "<locals>" not in type(self).__qualname__ else None)
        self.tensor_attrs = {}
        for prefix, module in self.root.named_modules():
            for name, value in list(module.__dict__.items()) + list(module._buffers.items()):
                if isinstance(value, tenon.Tensor):
                    self.tensor_attrs.setdefault(value, "%s.%s" % (prefix, name) if prefix else name)
        was, _tracing = _tracing, True
        try:
            traced = function
            function, args = self.create_args_for_root(traced, is_module, concrete_args)
            function_globals = getattr(traced, "__globals__", {})
            proxies = {}

            def take(module, name):
                return self.getattr(name, _orig_module_getattr(module, name), proxies)

            def call(module, *args, **kwargs):
                _autowrap_check(patcher, getattr(getattr(module, "forward", module), "__globals__", {}),
                                self._autowrap_function_ids)
                return self.call_module(module, lambda *a, **k: _orig_module_call(module, *a, **k), args, kwargs)

            with _Patcher() as patcher:
                patcher.patch_method(nn.Module, "__getattr__", take, deduplicate=False)
                patcher.patch_method(nn.Module, "__call__", call, deduplicate=False)
                _patch_wrapped_functions(patcher)
                for names in (function_globals, *(module.__dict__ for module in self._autowrap_search)):
                    _autowrap_check(patcher, names, self._autowrap_function_ids)
                result = function(*args)
            self.create_node("output", "output", (self.create_arg(result),), {})
        finally:
            _tracing = was
            self.submodule_paths = None
        return self.graph

    def __deepcopy__(self, memo):
        import copy
        new = Tracer.__new__(type(self))
        for name, value in self.__dict__.items():
            new.__dict__[name] = value if name == "_autowrap_search" else copy.deepcopy(value, memo)
        return new


def _assert_is_none(value, message):
    if value is not None:
        raise AssertionError(message)


def _with_packed(function, keywords):
    """A function with *args or **kwargs is called with one proxy for all of them: it sees that proxy as the tuple."""
    import types
    code = function.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    more = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount + more]
    changed = code.replace(co_flags=flags, co_argcount=len(names), co_kwonlyargcount=0, co_posonlyargcount=0)
    plain = types.FunctionType(changed, function.__globals__, function.__name__, None, function.__closure__)
    only = code.co_varnames[code.co_argcount:code.co_argcount + code.co_kwonlyargcount]

    def call(*args):
        values = list(args[:code.co_argcount]) + [keywords[name] for name in only] + list(args[code.co_argcount:])
        if "**" in keywords:
            values.append(keywords["**"])
        return plain(*values)

    return call


class _Patcher:
    """Puts functions in the place of others for as long as a tracer runs. What stands for another that way is not replaced
    again, unless `deduplicate` is False: a trace inside another one wants calls for itself."""

    def __init__(self):
        self.patches_made, self.visited = [], set()  # what takes each back; ids of the namespaces that were looked at

    def patch(self, frame_dict, name, new_fn, deduplicate=True):
        new_fn.__fx_already_patched = deduplicate
        if name not in frame_dict and hasattr(builtins, name):
            self.patches_made.append(functools.partial(frame_dict.pop, name))
        elif getattr(frame_dict[name], "__fx_already_patched", False):
            return
        else:
            self.patches_made.append(functools.partial(frame_dict.__setitem__, name, frame_dict[name]))
        frame_dict[name] = new_fn

    def patch_method(self, cls, name, new_fn, deduplicate=True):
        new_fn.__fx_already_patched = deduplicate
        was = getattr(cls, name)
        if getattr(was, "__fx_already_patched", False):
            return
        self.patches_made.append(functools.partial(setattr, cls, name, was))
        setattr(cls, name, new_fn)

    def visit_once(self, thing):
        """Whether `thing` comes for the first time."""
        new = id(thing) not in self.visited
        self.visited.add(id(thing))
        return new

    def __enter__(self):
        return self

    def __exit__(self, kind, exception, traceback):
        while self.patches_made:
            self.patches_made.pop()()
        self.visited.clear()


def _patch_wrapped_functions(patcher):
    """Calls of the names that `wrap` was told become nodes."""
    for (_, name), names in list(_wrapped.items()):
        original = names.get(name, getattr(builtins, name, None))
        if original is not None:
            patcher.patch(names, name, _recorded(original))


def _autowrap_check(patcher, frame_dict, function_ids):
    """Calls of what `function_ids` has become nodes where a namespace has a name for it."""
    if patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(frame_dict, name, _recorded(value))


def symbolic_trace(root, concrete_args=None):
    """A GraphModule that does what a module or function does."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
