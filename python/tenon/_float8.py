# SPDX-License-Identifier: MIT
"""The names of dtypes of eight bits. Tenon has no tensors of them. The names are there because packages list them in
tables when they are imported; they have limits (finfo), and whoever makes a tensor of one gets a TypeError."""

from tenon import _C


class unsupported_dtype:
    """A dtype that no tensor has."""

    itemsize, is_floating_point, is_complex = 1, True, False

    def __init__(self, name, is_signed=True):
        self.name, self.is_signed = name, is_signed

    def __repr__(self):
        return "%s.%s" % (_C._module_name(), self.name)

    def __reduce__(self):
        return self.name


float8_e4m3fn = unsupported_dtype("float8_e4m3fn")
float8_e4m3fnuz = unsupported_dtype("float8_e4m3fnuz")
float8_e5m2 = unsupported_dtype("float8_e5m2")
float8_e5m2fnuz = unsupported_dtype("float8_e5m2fnuz")
float8_e8m0fnu = unsupported_dtype("float8_e8m0fnu", is_signed=False)
