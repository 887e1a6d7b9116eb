# SPDX-License-Identifier: MIT
"""Operators by name: `tenon.ops.aten.mm.default(a, b)`. A namespace has packets, a packet has overloads."""

import enum
import sys
import types

from . import _C
from ._schema import _MISSING, FunctionSchema

_overloads = {}


# What is known of an operator beside its schema, numbered as in torch.
Tag = enum.IntEnum("Tag", {
    name: number for number, name in enumerate((
        "core", "cudagraph_unsafe", "data_dependent_output", "dynamic_output_shape", "flexible_layout", "generated",
        "inplace_view", "maybe_aliasing_or_mutating", "needs_contiguous_strides", "needs_exact_strides",
        "needs_fixed_stride_order", "nondeterministic_bitwise", "nondeterministic_seeded", "out_variant", "pointwise",
        "pt2_compliant_tag", "reduction", "view_copy"))})


class OpOverload:
    """One operator. Calling it goes through the dispatcher, as every call does."""

    def __init__(self, packet, name, schema):
        self._overloadpacket = packet
        self._name = name
        self._schema = schema
        self._overloadname = schema.overload_name or "default"
        self._opname = packet.__name__
        self._names = tuple(sys.intern(argument.name) for argument in schema.arguments)
        self.__name__ = "%s.%s" % (packet.__name__, self._overloadname)
        self.__qualname__ = name
        self.__module__ = packet.__module__
        arguments = schema.arguments
        kinds = tuple(a.type.code() for a in arguments) + tuple(_result(r) for r in schema.returns)
        positional = sum(not a.kwarg_only for a in arguments)
        defaults = tuple(_C._no_default if a._default is _MISSING else a._default for a in arguments)
        self._op = _C._Operator(name, kinds, len(arguments), positional, defaults, _takes_numbers(packet.__name__))
        self._op.remember(self)
        self._positional = positional

    def __call__(self, /, *args, **kwargs):
        placed, text = args, None
        if kwargs or len(args) > self._positional:
            placed, text = self._try_to_place(args, kwargs)
        if text is None:
            try:
                return self._op(*placed)
            except _C._Asked:
                pass
            except _C._Misfit as error:
                text = self._explain(placed, error.args[0])
            except RuntimeError:
                missing = [a for a in self._schema.arguments[len(placed):] if not a.has_default_value()]
                if not missing:
                    raise
                text = self._missing(missing[0])
        if text is None or _C._asks((*args, *kwargs.values())):
            return _C._ask(self, args, kwargs)
        raise RuntimeError(text)

    def redispatch(self, keyset, /, *args, **kwargs):
        """Call with exactly these keys: the kernel of the highest runs. Inside a kernel of the operator, keys that are
        not lower than its own are refused."""
        if kwargs or len(args) > self._positional:
            args = self._place(args, kwargs)
        try:
            return self._op.redispatch(keyset.raw_repr(), tuple(args))
        except _C._Misfit as error:
            text = self._explain(args, error.args[0])
        raise RuntimeError(text)

    def has_kernel_for_dispatch_key(self, key):
        """Whether a kernel was registered to the key, which may be an alias."""
        return _C._dispatch_has_kernel_for_dispatch_key(self._name, key)

    def has_kernel_for_any_dispatch_key(self, keyset):
        return _C._dispatch_has_kernel_for_any_dispatch_key(self._name, keyset)

    def _can_decompose(self):
        return self.has_kernel_for_dispatch_key("CompositeImplicitAutograd")

    def decompose(self, *args, **kwargs):
        """Run its composite kernel, where it has one; else NotImplemented."""
        if not self._can_decompose():
            return NotImplemented
        return self.redispatch(_C.DispatchKeySet("CPU"), *args, **kwargs)

    def _place(self, args, kwargs):
        """All arguments by position; what stands between them takes its default."""
        arguments = self._schema.arguments
        if len(args) + len(kwargs) > len(arguments):
            raise RuntimeError("%s() expected at most %d argument(s) but received %d argument(s). Declaration: %s" % (
                self._schema.name, len(arguments), len(args) + len(kwargs), self._schema))
        if len(args) > self._positional:
            raise RuntimeError("%s() takes %d positional argument(s) but %d was/were given.  Declaration: %s" % (
                self._schema.name, self._positional, len(args), self._schema))
        placed, used = list(args), 0
        for at in range(len(args), len(arguments)):
            argument = arguments[at]
            if argument.name in kwargs:
                placed.append(kwargs[argument.name])
                used += 1
            elif argument.has_default_value():
                if used == len(kwargs):
                    break
                placed.append(argument.default_value)
            else:
                raise RuntimeError(self._missing(argument))
        if used < len(kwargs):
            names = [a.name for a in arguments[:len(args)]]
            for name in kwargs:
                if name in names:
                    raise RuntimeError("%s() got multiple values for argument '%s'. Declaration: %s" % (
                        self._schema.name, name, self._schema))
                if name not in self._names:
                    raise RuntimeError("Unknown keyword argument '%s' for operator '%s'. Schema: %s" % (
                        name, self._schema.name, self._schema))
        return placed

    def _missing(self, argument):
        return "%s() is missing value for argument '%s'. Declaration: %s" % (
            self._schema.name, argument.name, self._schema)

    def _explain(self, args, at):
        if at is None or at >= len(args):
            return "%s() could not be called. Declaration: %s" % (self._schema.name, self._schema)
        argument, value = self._schema.arguments[at], args[at]
        wanted = str(argument.type)
        details = "Cannot cast %s to number" % (value,) if wanted == "number" else "Unable to cast %s to %s" % (
            value, wanted)
        return ("%s() Expected a value of type '%s' for argument '%s' but instead found type '%s'.\nPosition: %d\n"
                "Value: %r\nDeclaration: %s\nCast error details: %s" % (
                    self._schema.name, wanted, argument.name, type(value).__name__, at, value, self._schema, details))

    def _try_to_place(self, args, kwargs):
        """The arguments by position, or the text that says why they cannot be."""
        try:
            return self._place(args, kwargs), None
        except RuntimeError as error:
            return None, str(error)

    def _fits(self, args, kwargs):
        """The arguments by position, or the text that says why they do not fit."""
        placed, text = self._try_to_place(args, kwargs)
        if text is not None:
            return None, text
        for argument in self._schema.arguments[len(placed):]:
            if not argument.has_default_value():
                return None, self._missing(argument)
        return placed, None

    def __repr__(self):
        return "<OpOverload(op='%s.%s', overload='%s')>" % (self.namespace, self._overloadpacket.__name__,
                                                            self._overloadname)

    def __str__(self):
        return "%s.%s.%s" % (self.namespace, self._overloadpacket.__name__, self._overloadname)

    def __hash__(self):
        return hash(self._name)

    def __deepcopy__(self, memo=None):
        return self

    def __copy__(self):
        return self

    def __reduce__(self):
        return _overload, (self._name,)

    @property
    def namespace(self):
        return self._schema.name.split("::")[0]

    @property
    def overloadpacket(self):
        return self._overloadpacket

    @property
    def op(self):
        return self._overloadpacket

    @property
    def tags(self):
        return [Tag[name] for name in self._op.tags().split() if name in Tag.__members__]

    @property
    def is_view(self):
        return any(a.alias_info is not None and not a.is_write for a in self._schema.arguments)

    def name(self):
        return self._name


def _result(argument):
    """The kind of a result; one that is an argument, written, is marked (TNPY_OUT)."""
    kind, flags, size = argument.type.code()
    return kind, flags | (8 if argument.is_write else 0), size


def _takes_numbers(name):
    return _C._takes_numbers(name)


class OpOverloadPacket:
    """The operators of one name."""

    def __init__(self, namespace, name, names):
        self.__name__ = name
        self.__module__ = "%s._ops.%s" % (_C._module_name(), namespace)
        self._qualified_op_name = "%s::%s" % (namespace, name)
        self._namespace = namespace
        self._overload_names = sorted((_overload_name(n) for n in names), key=_order)

    def overloads(self):
        return [name or "default" for name in self._overload_names]

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        key = "" if name == "default" else name
        if key not in self._overload_names:
            self._look_again()
        if key not in self._overload_names:
            raise AttributeError("The underlying op of '%s.%s' has no overload name '%s'" % (
                self._namespace, self.__name__, name))
        overload = _overload(self._qualified_op_name + ("." + key if key else ""))
        self.__dict__[name] = overload
        return overload

    def _look_again(self):
        names = _names_of(self._namespace, self.__name__)
        self._overload_names = sorted((_overload_name(n) for n in names), key=_order)

    def __call__(self, /, *args, **kwargs):
        overloads = [getattr(self, name) for name in self.overloads()]
        texts = []
        for overload in overloads:
            placed, text = overload._fits(args, kwargs)
            if text is None:
                try:
                    return overload._op(*placed)
                except _C._Asked:
                    break
                except _C._Misfit as error:
                    text = overload._explain(placed, error.args[0])
            texts.append(text)
        if _C._asks((*args, *kwargs.values())):
            return _C._ask(self, args, kwargs)
        if len(texts) == 1:
            raise RuntimeError(texts[0])
        raise RuntimeError("Overloaded torch operator invoked from Python failed to match any schema:\n%s\n\n" %
                           "\n\n".join(texts))

    @property
    def op(self):
        return self

    def __iter__(self):
        return iter(self.overloads())

    def __dir__(self):
        return sorted(list(self.__dict__) + self.overloads() + ["overloads"])

    def __repr__(self):
        return "<OpOverloadPacket(op='%s.%s')>" % (self._namespace, self.__name__)

    def __str__(self):
        return "%s.%s" % (self._namespace, self.__name__)

    def __hash__(self):
        return hash(self._qualified_op_name)

    def __deepcopy__(self, memo=None):
        return self


def _overload_name(name):
    return name.partition("::")[2].partition(".")[2]


def _order(name):
    """Tensor overloads before Scalar ones, since a tensor of one element also serves as a number; out= last."""
    return (name.endswith("out"), "Scalar" in name, name)


def _names_of(namespace, packet):
    prefix = "%s::%s" % (namespace, packet)
    return [name for name in _C._operator_names(prefix) if name == prefix or name.startswith(prefix + ".")]


class _OpNamespace(types.ModuleType):
    """The operators of a namespace."""

    def __init__(self, name):
        super().__init__("%s.ops.%s" % (_C._module_name(), name))
        self.name = name
        self.__file__ = "%s.ops" % _C._module_name()

    def __getattr__(self, name):
        # What Python itself asks modules for is no operator, but `__and__` and its kin are.
        if name[:2] == "__" and not _names_of(self.name, name):
            raise AttributeError("'_OpNamespace' '%s' object has no attribute '%s'" % (self.name, name))
        names = _names_of(self.name, name)
        if not names and self.name in ("aten", "profiler"):
            from tenon import _ops_later
            if _ops_later.define(self.name, name):
                names = _names_of(self.name, name)
        if not names:
            raise AttributeError("'_OpNamespace' '%s' object has no attribute '%s'" % (self.name, name))
        packet = OpOverloadPacket(self.name, name, names)
        setattr(self, name, packet)
        return packet

    def __iter__(self):
        return iter(self.__dir__())

    def __dir__(self):
        names = {name.partition("::")[2].partition(".")[0] for name in _C._operator_names(self.name + "::")}
        return sorted(names)


class _Ops(types.ModuleType):
    """tenon.ops"""

    def __init__(self):
        super().__init__(_C._module_name() + ".ops")
        self.__file__ = "_ops.py"
        self.loaded_libraries = set()

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        return namespace

    def load_library(self, path):
        """Load a shared library whose constructors register operators. Those of torchvision are code for PyTorch's own
        runtime: their operators are made here instead."""
        import os
        folder, name = os.path.split(os.path.abspath(path))
        if os.path.basename(folder) == "torchvision" and name.split(".")[0] in ("_C", "image"):
            from importlib import import_module
            import_module("tenon._vision_ops" if name.startswith("_C") else "tenon._image_ops").define()
        else:
            import ctypes
            ctypes.CDLL(path)
        self.loaded_libraries.add(path)


def _overload(name):
    """The one object of the operator of this name."""
    found = _overloads.get(name)
    if found is None:
        text = _C._schema_text(name)
        if text is None:
            raise AttributeError("there is no operator %s" % name)
        namespace, _, rest = name.partition("::")
        packet = getattr(getattr(ops, namespace), rest.partition(".")[0])
        found = _overloads[name] = OpOverload(packet, name, FunctionSchema(text))
    return found


def _forget(name):
    """The definition of an operator went."""
    found = _overloads.pop(name, None)
    if found is not None:
        found._op.forget()
    namespace, _, rest = name.partition("::")
    space = ops.__dict__.get(namespace)
    if space is not None:
        space.__dict__.pop(rest.partition(".")[0], None)


ops = _Ops()
