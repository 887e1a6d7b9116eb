# SPDX-License-Identifier: MIT
"""Transforms of functions: gradients, products with Jacobians, and mapping over a dimension.

They are made of ordinary recording, of dual tensors and of tensors that stand for all slices: a transform runs the function
on inputs of its own, so transforms nest, and gradients go through them from outside.
"""
from ._gradients import grad, grad_and_value, vjp
from ._jacobians import hessian, jacfwd, jacrev, jvp
from ._modules import functional_call, stack_module_state
from ._rewrites import debug_unwrap, functionalize, linearize, replace_all_batch_norm_modules_
from ._vmap import vmap

__all__ = ["grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "functional_call",
           "stack_module_state", "vmap", "functionalize", "linearize", "replace_all_batch_norm_modules_", "debug_unwrap"]
