# SPDX-License-Identifier: MIT
"""finfo and iinfo: the limits of a dtype; its name in messages."""

import tenon

__all__ = ["finfo", "iinfo"]

# bits, eps, max, min, tiny, resolution
_FLOATS = {
    "float64": (64, 2.0 ** -52, 1.7976931348623157e308, 2.0 ** -1022, 1e-15),
    "float32": (32, 2.0 ** -23, 3.4028234663852886e38, 2.0 ** -126, 1e-6),
    "float16": (16, 2.0 ** -10, 65504.0, 2.0 ** -14, 1e-3),
    "bfloat16": (16, 2.0 ** -7, 3.3895313892515355e38, 2.0 ** -126, 1e-2),
    "float8_e4m3fn": (8, 0.125, 448.0, 2.0 ** -6, 1.0),
    "float8_e4m3fnuz": (8, 0.125, 240.0, 2.0 ** -7, 1.0),
    "float8_e5m2": (8, 0.25, 57344.0, 2.0 ** -14, 1.0),
    "float8_e5m2fnuz": (8, 0.125, 57344.0, 2.0 ** -15, 1.0),
}
_COMPLEX = {"complex128": "float64", "complex64": "float32", "complex32": "float16"}
_MISSING = object()
_WHOLE = {"uint8": (8, False), "int8": (8, True), "int16": (16, True), "int32": (32, True), "int64": (64, True),
          "uint16": (16, False), "uint32": (32, False), "uint64": (64, False)}


_TEXTS = {"bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half",
          "bfloat16": "BFloat16", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble"}


def _name(dtype):
    return str(dtype).rsplit(".", 1)[-1]


def text_of(dtype):
    """Its name in messages of operators: Long."""
    name = _name(dtype)
    return _TEXTS.get(name, name)


def _is_named(dtype):
    """Whether it is a dtype of which only the name is there."""
    return dtype.__class__.__name__ == "unsupported_dtype"


class _Info:
    def __setattr__(self, name, value):
        raise AttributeError("attribute '%s' of '%s' objects is not writable" % (name, type(self).__name__))

    def __eq__(self, other):
        return type(self) is type(other) and self.dtype == other.dtype

    def __hash__(self):
        return hash((type(self), self.dtype))


class finfo(_Info):
    """Of a floating or complex dtype: bits, eps, max, min, tiny, smallest_normal, resolution, dtype (its name)."""

    def __init__(self, type=_MISSING):
        type = tenon.get_default_dtype() if type is _MISSING else type
        if not isinstance(type, tenon.dtype) and not _is_named(type):
            raise TypeError("finfo(): argument 'type' (position 1) must be torch.dtype, not %s" % _class(type))
        name = _COMPLEX.get(_name(type), _name(type))
        if name not in _FLOATS:
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle '%s'"
                            % "torch.finfo")
        bits, eps, most, tiny, resolution = _FLOATS[name]
        self.__dict__.update(bits=bits, eps=eps, max=most, min=-most, tiny=tiny, smallest_normal=tiny,
                             resolution=resolution, dtype=name)

    def __repr__(self):
        return "finfo(resolution=%g, min=%g, max=%g, eps=%g, smallest_normal=%g, tiny=%g, dtype=%s)" % (
            self.resolution, self.min, self.max, self.eps, self.smallest_normal, self.tiny, self.dtype)


class iinfo(_Info):
    """Of a dtype of whole numbers: bits, max, min, dtype (its name)."""

    def __init__(self, type):
        if not isinstance(type, tenon.dtype) and not _is_named(type):
            raise TypeError("iinfo(): argument 'type' (position 1) must be torch.dtype, not %s" % _class(type))
        name = _name(type)
        if name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if name not in _WHOLE:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle '%s'"
                            % "torch.iinfo")
        bits, signed = _WHOLE[name]
        self.__dict__.update(bits=bits, max=2 ** (bits - signed) - 1, min=-2 ** (bits - 1) if signed else 0, dtype=name)

    def __repr__(self):
        return "iinfo(min=%g, max=%g, dtype=%s)" % (self.min, self.max, self.dtype)


def _class(value):
    return type(value).__name__


finfo.__module__ = iinfo.__module__ = "tenon"
