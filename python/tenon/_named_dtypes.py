# SPDX-License-Identifier: MIT
"""The names of dtypes that no tensor of Tenon has. They are there because packages list them in tables when they are
imported; they have limits (finfo, iinfo), and whoever makes a tensor of one gets a TypeError."""

from tenon import _C


class unsupported_dtype:
    """A dtype that no tensor has."""

    is_complex = False

    def __init__(self, name, itemsize, is_floating_point, is_signed):
        self.name, self.itemsize = name, itemsize
        self.is_floating_point, self.is_signed = is_floating_point, is_signed

    def __repr__(self):
        return "%s.%s" % (_C._module_name(), self.name)

    def __reduce__(self):
        return self.name


def _float8(name, is_signed=True):
    return unsupported_dtype(name, 1, True, is_signed)


def _unsigned(bits):
    return unsupported_dtype("uint%d" % bits, bits // 8, False, False)


float8_e4m3fn = _float8("float8_e4m3fn")
float8_e4m3fnuz = _float8("float8_e4m3fnuz")
float8_e5m2 = _float8("float8_e5m2")
float8_e5m2fnuz = _float8("float8_e5m2fnuz")
float8_e8m0fnu = _float8("float8_e8m0fnu", is_signed=False)
uint16, uint32, uint64 = _unsigned(16), _unsigned(32), _unsigned(64)
