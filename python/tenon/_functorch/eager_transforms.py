# SPDX-License-Identifier: MIT
"""The transforms of tenon.func, where packages look for them."""

from tenon.func import (functionalize, hessian, jacfwd, jacrev, jvp, linearize, vjp)  # noqa: F401
from tenon.func import grad, grad_and_value  # noqa: F401
