# SPDX-License-Identifier: MIT
"""Operators from Python: definitions, kernels, gradients and fake kernels."""

import collections
import contextlib
import functools
import logging
import re
import weakref

import tenon
from tenon import _C, _place

__all__ = ["Library", "define", "impl", "custom_op", "register_kernel", "register_autograd", "register_fake",
           "impl_abstract", "infer_schema", "get_ctx", "fallthrough_kernel", "CustomOpDef", "register_autocast",
           "register_vmap", "triton_op", "wrap_triton", "opcheck"]

_log = logging.getLogger(__name__)
_KINDS = {"DEF": 0, "FRAGMENT": 1, "IMPL": 2}
_DEVICE_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "mps": "MPS", "xpu": "XPU"}


def fallthrough_kernel():
    """For `impl`: the key is skipped."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _with_keys(fn):
    """Give a kernel the keys that it was dispatched with, before its arguments."""
    @functools.wraps(fn)
    def kernel(*args, **kwargs):
        return fn(_C.DispatchKeySet.from_raw_repr(_C._kernel_keys()), *args, **kwargs)
    return kernel


def _kernel(fn, shown=None):
    """What _C._Library takes for a kernel: the function, None for one that falls through, and what it is shown as."""
    if fn is fallthrough_kernel:
        return (None, "fallthrough") + _place.where()
    return (fn,) + (shown or _place.of(fn))


# (namespace, operator, key) -> how many libraries have a kernel for it.
_impls: collections.Counter = collections.Counter()
_BATCHED = "FuncTorchBatched"  # the key of rules for vmap, which the table below has
_vmap_rules: dict = {}  # operator -> its rule


def _undo(slots):
    """The kernels of a library are gone."""
    _impls.subtract(slots)
    for slot in slots:
        if not _impls[slot]:
            del _impls[slot]
            if slot[2] == _BATCHED:
                _vmap_rules.pop("%s::%s" % slot[:2], None)
    slots.clear()


def _short_name(op_name):
    """The name of an operator without its namespace."""
    if isinstance(op_name, tenon._ops.OpOverload):
        op_name = op_name.name()
    elif not isinstance(op_name, str):
        raise RuntimeError("impl should be passed either a name or an OpOverload object as the first argument")
    return op_name.split("::")[-1]


class Library:
    """Registrations that go together: when the library goes, all of them are undone."""

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in _KINDS:
            raise ValueError("Unsupported kind: " + str(kind))
        if ns == "prim" and kind != "IMPL":
            raise ValueError(ns, " is a reserved namespace. Please try creating a library with another name.")
        if ns in ("aten", "prims") and kind == "DEF":  # the library's own are its
            raise RuntimeError("Only a single TORCH_LIBRARY can be used to register the namespace %s; please put all of your "
                               "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, "
                               "consider using TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to "
                               "define operators for a single namespace in a distributed way, you can use "
                               "TORCH_LIBRARY_FRAGMENT to explicitly indicate this." % ns)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._op_defs = set()
        self._op_impls = set()
        weakref.finalize(self, _undo, self._op_impls).atexit = False
        self._library = _C._Library(_KINDS[kind], ns, dispatch_key if kind == "IMPL" else None, *_place.where())

    def __repr__(self):
        return "Library(kind=%s, ns=%s, dispatch_key=%s)>" % (self.kind, self.ns, self.dispatch_key)

    def define(self, schema, alias_analysis="", *, tags=()):
        """Define an operator by its schema; gives its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError("Invalid alias_analysis type %s" % alias_analysis)
        tags = (tags,) if isinstance(tags, tenon._ops.Tag) else tuple(tags)
        self._library.define(schema, tuple(tag.name for tag in tags))
        name = schema.split("(", 1)[0].strip()
        self._op_defs.add("%s::%s" % (self.ns, name))
        tenon._ops._forget("%s::%s" % (self.ns, name))
        return name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """Register a kernel. A second one for the same operator and key is an error unless it may override."""
        name, key = _short_name(op_name), getattr(dispatch_key, "name", dispatch_key) or self.dispatch_key
        if not allow_override:
            self._check_free(name, key)
        self._impl(name, fn, key, with_keyset)
        self._take(name, key)

    def _check_free(self, name, key):
        if (self.ns, name, key) in _impls:
            raise RuntimeError("This is not allowed since there's already a kernel registered from python overriding %s's "
                               "behavior for %s dispatch key and %s namespace." % (name, key, self.ns))

    def _take(self, name, key):
        """From now on there is a kernel."""
        slot = (self.ns, name, key)
        if slot not in self._op_impls:
            self._op_impls.add(slot)
            _impls[slot] += 1

    def _map(self, name, rule):
        """Register a rule for vmap."""
        self._take(name, _BATCHED)
        _vmap_rules["%s::%s" % (self.ns, name)] = rule

    def _impl(self, op_name, fn, dispatch_key, with_keyset=False, shown=None):
        """The same, whatever is registered; `shown` is (name, file, line) where those of `fn` would say nothing."""
        if not callable(fn):
            raise TypeError("Input function is required to be a callable but found type %s" % type(fn))
        if with_keyset and fn is not fallthrough_kernel:
            fn = _with_keys(fn)
        key = getattr(dispatch_key, "name", dispatch_key) or self.dispatch_key or "CompositeImplicitAutograd"
        self._library.impl(_short_name(op_name), key, *_kernel(fn, shown))

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """Register a kernel for every operator that has none for a key."""
        if with_keyset:
            raise NotImplementedError("Library.fallback: with_keyset=True is not supported")
        if self.ns != "_":
            raise RuntimeError("Fallback can only be registered using library fragment on the global namespace \"_\" "
                               "but it is %s" % self.ns)
        self._library.fallback(dispatch_key or self.dispatch_key, *_kernel(fn))

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=False):
        self._impl(op_name, fn, "Meta")

    def _destroy(self):
        """Undo all that was registered through it."""
        self._library.close()
        _undo(self._op_impls)
        for name in self._op_defs:
            tenon._ops._forget(name)
        self._op_defs.clear()


_kept = {}


def _fragment(ns):
    """The library of what is registered without one: it stays."""
    if ns not in _kept:
        _kept[ns] = Library(ns, "FRAGMENT")
    return _kept[ns]


def opcheck(op, args, kwargs=None, **options):
    """Whether an operator does what its schema, its gradient and its fake kernel say: see tenon._opcheck."""
    from tenon import _opcheck
    return _opcheck.opcheck(op, args, kwargs, **options)


def _split(qualname):
    ns, sep, name = qualname.partition("::")
    if not sep:
        raise ValueError("Expected qualname to be of the form \"ns::name\", but got %r" % qualname)
    return ns, name


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """A library for the length of a block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


_NAMELESS_SCHEMA = re.compile(r"\(.*\) -> .*")


def define(qualname, schema, *, lib=None, tags=()):
    """define("ns::name", "(Tensor x) -> Tensor")"""
    if not isinstance(qualname, str):
        raise ValueError("define(qualname, schema): expected qualname to be instance of str, got %s" % type(qualname))
    ns, name = _split(qualname)
    if not _NAMELESS_SCHEMA.fullmatch(schema):
        raise ValueError('define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got '
                         '"%s"' % schema)
    (lib or _fragment(ns)).define(name + schema, tags=tags)


def impl(qualname, types, func=None, *, lib=None):
    """Register a kernel for device types ("cpu"), dispatch keys, or "default"."""
    if func is None:
        return functools.partial(impl, qualname, types, lib=lib)
    ns, name = _split(qualname)
    for kind in (types,) if isinstance(types, str) else types:
        key = "CompositeExplicitAutograd" if kind == "default" else _DEVICE_KEYS.get(kind, kind)
        (lib or _fragment(ns)).impl(name, func, key)
    return func


def _name_of(op):
    if isinstance(op, CustomOpDef):
        return op._qualname
    return op.name() if isinstance(op, tenon._ops.OpOverload) else op


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Register a kernel of an operator for device types; None: for all."""
    if func is None:
        return lambda f: register_kernel(op, device_types, f, lib=lib)
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types)(func)
    return impl(_name_of(op), "default" if device_types is None else device_types, func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """Register what says the metadata of an operator's results: it is called with fake and with meta tensors."""
    if func is None:
        return lambda f: register_fake(op, f, lib=lib)
    known = _custom.get(_name_of(op))
    if known is not None:
        return known.register_fake(func)
    ns, name = _split(_name_of(op))
    (lib or _fragment(ns))._impl(name, func, "Meta")
    return func


impl_abstract = register_fake


class _Context:
    """For fake kernels: what get_ctx() gives."""

    def new_dynamic_size(self, *, min=0, max=None):
        from tenon._subclasses.fake_tensor import DynamicOutputShapeException
        raise DynamicOutputShapeException("a custom operator")

    create_unbacked_symint = new_dynamic_size


def get_ctx():
    return _Context()


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Register the gradient of an operator: `setup_context(ctx, inputs, output)` and `backward(ctx, *grads)`."""
    known = _custom.get(_name_of(op))
    if known is not None:
        known.register_autograd(backward, setup_context=setup_context)
        return
    qualname = _name_of(op)
    ns, name = _split(qualname)
    overload = tenon._ops._overload(qualname)
    from tenon import _op_autograd
    kernel = _op_autograd.kernel(overload, lambda: (backward, setup_context))
    (lib or _fragment(ns))._impl(name, kernel, "Autograd", shown=_shown("autograd", backward))


def register_vmap(op, func=None, /, *, lib=None):
    """Register what vmap does with an operator: `func(info, in_dims, *args, **kwargs)` gets whole tensors, for each the
    dimension that is mapped or None, and gives results and their mapped dimensions."""
    if not isinstance(op, (str, tenon._ops.OpOverload, CustomOpDef)):
        raise ValueError("register_vmap(%s): got unexpected type for op: %s" % (op, type(op)))
    qualname = _name_of(op)
    known = _custom.get(qualname)
    if known is not None:
        return known.register_vmap(func)
    ns, name = _split(qualname)
    schema = tenon._ops._overload(qualname)._schema
    if any(a.kwarg_only and "Tensor" in str(a.type) for a in schema.arguments):
        raise NotImplementedError("register_vmap with kwarg-only Tensor args. In the original definition of the op, please "
                                  "make your tensors not kwarg-only. Got: %s" % schema)

    def register(func):
        library = lib or _fragment(ns)
        library._check_free(name, _BATCHED)
        library._map(name, func)

    return register if func is None else register(func)


def _shown(part, fn):
    """A kernel of ours that calls a user's function is shown as `autograd of fn`, where that is written."""
    name, file, line = _place.of(fn)
    return "%s of %s" % (part, name), file, line


# ---- custom_op ----

_custom = {}


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Inside autocast the operator's floating arguments are cast to a dtype, and it runs without autocast."""
    if not isinstance(op, (str, tenon._ops.OpOverload, CustomOpDef)):
        raise ValueError("register_autocast(%s): got unexpected type for op: %s" % (op, type(op)))
    if device_type not in ("cpu", "cuda"):
        raise ValueError("Unknown device type: %s" % device_type)
    name = _name_of(op)
    key = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}[device_type]
    overload = tenon._ops._overload(name)

    def cast(x):
        eligible = isinstance(x, tenon.Tensor) and x.is_floating_point() and x.device.type == device_type
        return x.to(cast_inputs) if eligible and x.dtype != tenon.float64 else x

    def kernel(*args, **kwargs):
        from tenon.utils._pytree import tree_map
        args, kwargs = tree_map(cast, (args, kwargs))
        with _C._ExcludeDispatchKeyGuard(key):
            return overload(*args, **kwargs)
    known = _custom.get(name)
    ns, short = _split(name)
    shown = ("autocast of " + name,) + _place.where()
    (lib or (known._lib if known else _fragment(ns)))._impl(short, kernel, key, shown=shown)


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """custom_op for a function that starts Triton kernels; such kernels need a GPU, the rest of it does not."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel, /):
    """A Triton kernel for triton_op. Triton is not here, so nothing is one."""
    raise RuntimeError("wrap_triton only works on functions annotated with triton.jit or triton.autotune")


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make a Python function an operator: its schema comes from its annotations."""
    def make(fn):
        text = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
        return CustomOpDef(name, text, fn, device_types, tags)

    return make if fn is None else make(fn)


def _tensors_in(tree):
    """The tensors among arguments or results, those in lists too."""
    if isinstance(tree, tenon.Tensor):
        return [tree]
    return [t for x in tree for t in _tensors_in(x)] if isinstance(tree, (tuple, list)) else []


def _storage_of(tensor):
    """What names its memory, or None when it has none of its own."""
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return None


class CustomOpDef:
    """An operator that was made of a Python function. Calling it calls the operator."""

    def __init__(self, qualname, schema, fn, device_types=None, tags=None):
        self._qualname = qualname
        self._namespace, self._name = _split(qualname)
        self._schema = schema
        self._init_fn = fn
        self._fake = None
        self._backward = self._setup_context = self._vmap_fn = None
        self._registered, self._disabled_kernel = set(), set()  # device types, None for all
        self.__name__ = self._name
        old = _custom.pop(qualname, None)
        if old is not None:
            old._lib._destroy()
        self._lib = Library(self._namespace, "FRAGMENT")
        self._lib.define(self._name + schema, tags=tags or ())
        self._opoverload = tenon._ops._overload(qualname)
        _custom[qualname] = self
        self.register_kernel(device_types)(fn)
        self._lib._impl(self._name, self._no_fake, "Meta", shown=_shown("fake", fn))
        from tenon import _op_autograd
        kernel = _op_autograd.kernel(self._opoverload, lambda: (self._backward, self._setup_context))
        self._lib._impl(self._name, kernel, "Autograd", shown=_shown("autograd", fn))

    def __repr__(self):
        return "<CustomOpDef(%s)>" % self._qualname

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def _no_fake(self, *args, **kwargs):
        if not self._opoverload._schema.returns:
            return None
        raise RuntimeError("There was no fake impl registered for %r. This is necessary for torch.compile/export/fx "
                           "tracing to work. Please use `%s.register_fake` to add an fake impl." % (
                               self, self._init_fn.__name__))

    def register_kernel(self, device_types, fn=None, /):
        def inner(fn):
            kinds = (device_types,) if device_types is None or isinstance(device_types, str) else device_types
            for kind in kinds:
                kind = None if kind == "default" else kind
                key = "CompositeExplicitAutograd" if kind is None else _DEVICE_KEYS.get(kind, kind)
                self._lib._impl(self._name, self._checked(fn, kind), key, shown=_place.of(fn))
                self._registered.add(kind)
            return fn

        return inner if fn is None else inner(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """For the length of a block the kernel of a device type is not used, or used again; the function that the operator
        was made of runs instead."""
        was_disabled = device_type in self._disabled_kernel
        if device_type not in self._registered:
            _log.warning("Attempted to %s kernel for %s but no kernel was registered for this device type.",
                         "enable" if enabled else "disable", device_type)
        if was_disabled != enabled:
            _log.warning("Attempted to enable kernel for  %s but it was already enabled." if enabled else
                         "Attempted to disable kernel for %s but it was already disabled.", device_type)
        (self._disabled_kernel.discard if enabled else self._disabled_kernel.add)(device_type)
        try:
            yield
        finally:
            (self._disabled_kernel.add if was_disabled else self._disabled_kernel.discard)(device_type)

    def register_vmap(self, func=None):
        """See tenon.library.register_vmap; a later rule takes the place of an earlier one."""
        def register(func):
            self._vmap_fn = func
            self._lib._map(self._name, func)

        return register if func is None else register(func)

    def _checked(self, fn, kind=None):
        """The kernel, which must not give what it was given: a caller that writes to the one would write the other."""
        @functools.wraps(fn)
        def kernel(*args, **kwargs):
            result = (self._init_fn if kind in self._disabled_kernel else fn)(*args, **kwargs)
            seen = {_storage_of(t) for t in _tensors_in((args, tuple(kwargs.values())))}
            for t in _tensors_in(result):
                storage = _storage_of(t)
                if storage is not None and storage in seen:
                    import sys
                    raise RuntimeError(
                        "%s (with implementation in %s): The output of this custom operator (1) must not also be an "
                        "input to this custom operator and (2) may not alias any inputs to this custom operator or "
                        "other returns. The most common way to trigger this error is if we have y = custom_op(x) and "
                        "y and x are the same Tensor. Please instead return a clone of the offending output tensor(s) "
                        "(e.g. return x.clone()) or refactor the custom operator to not return y." % (
                            self._name, sys.modules.get(fn.__module__)))
                seen.add(storage)
            return result
        return kernel

    def register_fake(self, fn, /):
        self._fake = fn
        self._lib._impl(self._name, fn, "Meta")
        return fn

    def register_autocast(self, device_type, cast_inputs):
        register_autocast(self, device_type, cast_inputs)

    def register_autograd(self, backward, /, *, setup_context=None):
        if self._opoverload._schema.is_mutable:
            raise RuntimeError("Cannot register autograd formula for non-functional operator %r with schema %s. Please "
                               "create a functional operator and register an autograd formula for that." % (
                                   self, self._opoverload._schema))
        self._backward, self._setup_context = backward, setup_context


# ---- schemas of functions ----

def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema of a function: "(Tensor x, float y=1.) -> Tensor"."""
    import inspect
    import typing
    hints = typing.get_type_hints(prototype_function)
    signature = inspect.signature(prototype_function)
    parts, seen_keyword = [], False
    if mutates_args != "unknown":
        for name in mutates_args:
            if name not in signature.parameters:
                raise ValueError("infer_schema(func): mutates_args should contain the names of arguments, got %r" % name)
    for at, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ValueError("infer_schema(func): We do not support positional-only args, varargs, or varkwargs. "
                             "Got signature %s" % signature)
        if parameter.kind is parameter.KEYWORD_ONLY and not seen_keyword:
            seen_keyword = True
            parts.append("*")
        if name not in hints:
            raise ValueError("infer_schema(func): Parameter %s must have a type annotation. Got func with signature %s)"
                             % (name, signature))
        text = _type_text(hints[name])
        if text is None:
            raise ValueError("infer_schema(func): Parameter %s has unsupported type %s. Got func with signature %s)" % (
                name, hints[name], signature))
        if mutates_args == "unknown" and text.startswith("Tensor") or name in mutates_args:
            text = text.replace("Tensor", "Tensor(a%d!)" % at, 1)
        text += " " + name
        if parameter.default is not parameter.empty:
            text += "=" + _default_text(parameter.default)
        parts.append(text)
    result = hints.get("return", type(None) if signature.return_annotation is None else signature.empty)
    if result is signature.empty:
        raise ValueError("infer_schema(func): Expected the return to be annotated. Got func with signature %s" %
                         signature)
    return "%s(%s) -> %s" % (op_name or "", ", ".join(parts), _return_text(result))


def _default_text(value):
    if isinstance(value, str):
        return '"%s"' % value
    if isinstance(value, tenon.dtype):
        return str(value).split(".")[-1]
    return str(value)


def _type_text(hint):
    import collections.abc
    import types
    import typing
    plain = {tenon.Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", complex: "complex",
             tenon.device: "Device", tenon.dtype: "ScalarType", type(None): None}
    if isinstance(hint, type) and hint in plain:
        return plain[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if set(args) == {int, float, bool}:
            return "Scalar"
        rest = [a for a in args if a is not type(None)]
        if len(rest) < len(args):
            text = _type_text(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])
            return text and text + "?"
    if origin in (list, collections.abc.Sequence):
        text = _type_text(args[0])
        return text and text + "[]"
    return None


def _return_text(hint):
    import typing
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        return "(%s)" % ", ".join(_type_text(a) for a in typing.get_args(hint))
    text = _type_text(hint)
    if text is None:
        raise ValueError("infer_schema(func): Return has unsupported type %s." % hint)
    return text
