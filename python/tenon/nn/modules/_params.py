# SPDX-License-Identifier: MIT
"""Lists and dictionaries of parameters, which may hold other values too."""

import operator
from collections import OrderedDict
from collections import abc as container_abcs

import tenon
from tenon.nn.modules.module import Module, _typename
from tenon.nn.parameter import Parameter


def _kept(value):
    """A tensor is made a parameter, anything else stays as it is."""
    if isinstance(value, tenon.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _line(key, value, kind_of):
    if not isinstance(value, tenon.Tensor):
        return f"({key}): Object of type: {type(value).__name__}"
    where = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"({key}): {kind} containing: [{kind_of(value)} of size {'x'.join(map(str, value.size()))}{where}]"


class ParameterList(Module):
    """A list of parameters; tensors become parameters when they are put in."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _get_abs_string_index(self, idx):
        idx = operator.index(idx)
        if not -len(self) <= idx < len(self):
            raise IndexError(f"index {idx} is out of range")
        return str(idx + len(self) if idx < 0 else idx)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            out = type(self)()
            for i in range(*idx.indices(len(self))):
                out.append(self[i])
            return out
        return getattr(self, self._get_abs_string_index(idx))

    def __setitem__(self, idx, param):
        return setattr(self, self._get_abs_string_index(idx), _kept(param))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters):
        return self.extend(parameters)

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value):
        """Add at the end; returns the list."""
        at = len(self)
        self._size += 1
        self[at] = value
        return self

    def extend(self, values):
        """Add every value of an iterable; returns the list."""
        if not isinstance(values, container_abcs.Iterable) or isinstance(values, tenon.Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got " + type(values).__name__
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join("  " + _line(k, p, lambda t: t.dtype) for k, p in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters, in the order of insertion; tensors become parameters when they are put in."""

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key):
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is '{type(key).__name__}'). "
                "Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _kept(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """Another dictionary of the same values."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key, default=None):
        """The value at `key`, which is set to `default` first where there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Take everything out."""
        for k in self._keys.copy():
            del self[k]

    def pop(self, key):
        """Take one value out."""
        v = self[key]
        del self[key]
        return v

    def popitem(self):
        """Take the last pair out."""
        k, _ = self._keys.popitem()
        self._keys[k] = None
        val = self[k]
        del self[k]
        return k, val

    def get(self, key, default=None):
        """The value at `key`, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A dictionary of the keys, all with one value."""
        return ParameterDict((k, default) for k in keys)

    def keys(self):
        """The names."""
        return self._keys.keys()

    def items(self):
        """The pairs of name and value."""
        return ((k, self[k]) for k in self._keys)

    def values(self):
        """The values."""
        return (self[k] for k in self._keys)

    def update(self, parameters):
        """Add or replace from a mapping or from pairs."""
        if not isinstance(parameters, container_abcs.Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                + type(parameters).__name__
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            for key, value in parameters.items():
                self[key] = value
        elif isinstance(parameters, container_abcs.Mapping):
            for key, value in sorted(parameters.items()):
                self[key] = value
        else:
            for j, p in enumerate(parameters):
                if not isinstance(p, container_abcs.Iterable):
                    raise TypeError(f"ParameterDict update sequence element #{j} should be Iterable; is{type(p).__name__}")
                if not len(p) == 2:
                    raise ValueError(f"ParameterDict update sequence element #{j} has length {len(p)}; 2 is required")
                self[p[0]] = p[1]

    def extra_repr(self):
        return "\n".join("  " + _line(k, p, _typename) for k, p in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other):
        copy = other.copy()
        copy.update(self)
        return copy

    def __ior__(self, other):
        self.update(other)
        return self


# Checkpoints name classes by their modules in PyTorch.
ParameterList.__module__ = ParameterDict.__module__ = "tenon.nn.modules.container"
