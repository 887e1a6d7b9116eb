# SPDX-License-Identifier: MIT
"""The names of dtypes that no tensor of Tenon has. They are there because packages list them in tables when they are
imported; they have limits (finfo, iinfo), and whoever makes a tensor of one gets a TypeError."""

from tenon import _C


class unsupported_dtype:
    """A dtype that no tensor has."""

    def __init__(self, name, itemsize, is_floating_point, is_signed, is_complex=False):
        self.name, self.itemsize, self.is_complex = name, itemsize, is_complex
        self.is_floating_point, self.is_signed = is_floating_point, is_signed

    def __repr__(self):
        return "%s.%s" % (_C._module_name(), self.name)

    def __reduce__(self):
        return self.name


class qscheme:
    """How a quantized tensor would map its numbers; observers ask for it."""

    __module__ = "tenon"

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return "%s.%s" % (_C._module_name(), self.name)

    def __reduce__(self):
        return self.name


for _name in ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
              "per_channel_affine_float_qparams"):
    globals()[_name] = qscheme(_name)


def _float8(name, is_signed=True):
    return unsupported_dtype(name, 1, True, is_signed)


float8_e8m0fnu = _float8("float8_e8m0fnu", is_signed=False)
float4_e2m1fn_x2 = _float8("float4_e2m1fn_x2")
complex32 = chalf = unsupported_dtype("complex32", 4, False, True, True)
qint8, qint32 = unsupported_dtype("qint8", 1, False, True), unsupported_dtype("qint32", 4, False, True)
for _name in ("quint8", "quint4x2", "quint2x4", "bits8", "bits1x8", "bits2x4", "bits4x2"):
    globals()[_name] = unsupported_dtype(_name, 1, False, False)
bits16 = unsupported_dtype("bits16", 2, False, False)
for _bits in range(1, 8):
    globals()["uint%d" % _bits] = unsupported_dtype("uint%d" % _bits, 1, False, False)
    globals()["int%d" % _bits] = unsupported_dtype("int%d" % _bits, 1, False, True)
bit = globals()["uint1"]
