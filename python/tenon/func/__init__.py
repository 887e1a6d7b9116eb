# SPDX-License-Identifier: MIT
"""Transforms of functions: gradients, products with Jacobians, and mapping over a dimension.

They are made of ordinary recording: a transform runs the function on inputs of its own and asks for gradients, so
they nest, and gradients go through them from outside. ``vmap`` calls the function once for each slice.
"""
from ._gradients import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp
from ._modules import functional_call, stack_module_state
from ._rewrites import debug_unwrap, functionalize, linearize, replace_all_batch_norm_modules_
from ._vmap import vmap

__all__ = ["grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "functional_call",
           "stack_module_state", "vmap", "functionalize", "linearize", "replace_all_batch_norm_modules_", "debug_unwrap"]
