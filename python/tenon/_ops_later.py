# SPDX-License-Identifier: MIT
"""Operators that packages name, and that the core has no use for: they are defined when they are first asked for. Loaded by _ops, and by the
modules of whole namespaces."""

import tenon
import tenon._python_stack


def _pin_memory(self, device=None):
    """Memory is pinned for a GPU; where there is none, a copy has the same use."""
    return self.clone()


def _sparse_addmm(self, mat1, mat2, *, beta=1, alpha=1):
    return tenon.sparse.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _record_function_enter(name, args=None):
    """Begin a range in the recording of a profiler; the result is for the operator that ends it."""
    tenon._python_stack.range_begin(name)
    return tenon.zeros(1)


def _record_function_exit(handle):
    tenon._python_stack.range_end()


_SCHEMAS = {
    "profiler::_record_function_enter": ("(str name, str? args=None) -> Tensor", _record_function_enter),
    "profiler::_record_function_exit": ("(Tensor _0) -> ()", _record_function_exit),
    "aten::_pin_memory": ("(Tensor self, Device? device=None) -> Tensor", _pin_memory),
    "aten::_sparse_addmm": ("(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
                            _sparse_addmm),
    "aten::_sparse_mm_reduce_impl": ("(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)", None),
}
_libraries = {}


def define(namespace, name):
    """Whether the namespace has the operator from now on."""
    key = "%s::%s" % (namespace, name)
    if key not in _SCHEMAS:
        return False
    if namespace not in _libraries:
        _libraries[namespace] = tenon.library.Library(namespace, "FRAGMENT")
    schema, function = _SCHEMAS.pop(key)
    _libraries[namespace].define(name + schema)
    if function is not None:
        _libraries[namespace].impl(name, function, "CompositeImplicitAutograd")
    return True


def define_all(namespace, kernels):
    """Make the operators of a namespace, each a schema and a kernel or None, once."""
    if namespace in _libraries:
        return
    library = _libraries[namespace] = tenon.library.Library(namespace, "FRAGMENT")
    for schema, function in kernels:
        name = library.define(schema)
        if function is not None:
            library.impl(name, function, "CompositeImplicitAutograd")
