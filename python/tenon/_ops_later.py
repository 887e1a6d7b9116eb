# SPDX-License-Identifier: MIT
"""Operators of ``aten`` that packages name, and that the core has no use for: they are defined when they are first asked
for. Loaded by _ops."""

import tenon


def _pin_memory(self, device=None):
    """Memory is pinned for a GPU; where there is none, a copy has the same use."""
    return self.clone()


def _sparse_addmm(self, mat1, mat2, *, beta=1, alpha=1):
    return tenon.sparse.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


_SCHEMAS = {
    "_pin_memory": ("(Tensor self, Device? device=None) -> Tensor", _pin_memory),
    "_sparse_addmm": ("(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
                      _sparse_addmm),
    "_sparse_mm_reduce_impl": ("(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)", None),
}
_library = None


def define(name):
    """Whether `aten` has the operator from now on."""
    global _library
    if name not in _SCHEMAS:
        return False
    if _library is None:
        _library = tenon.library.Library("aten", "FRAGMENT")
    schema, function = _SCHEMAS.pop(name)
    _library.define(name + schema)
    if function is not None:
        _library.impl(name, function, "CompositeImplicitAutograd")
    return True
