# SPDX-License-Identifier: MIT
"""Writes forward_reference.inc: products with Hessians as PyTorch 2.11 computes them, for test_forward.c.

    python3 tests/autograd/make_forward.py > tests/autograd/forward_reference.inc
"""

import torch
import torch.autograd.forward_ad as fwad

C = torch.tensor([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]], dtype=torch.double)
X = torch.tensor([[0.3, -0.7, 1.1], [0.9, 0.2, -0.4]], dtype=torch.double)
V = torch.tensor([[1.0, 0.5, -2.0], [-0.25, 1.5, 0.75]], dtype=torch.double)


def written_view(x):
    y = x * 2
    y[:, 1:].exp_()
    return (y * y).sum()


FUNCTIONS = {
    "product": lambda x: (x.sin() * x * x * x).sum(),
    "matrices": lambda x: x.mm(C).exp().logsumexp([1]).sum(),
    "log_softmax": lambda x: (torch.log_softmax(x, 1) * x).sum(),
    "written": lambda x: (x * 2).mul_(x).exp_().sum(),
    "written_view": written_view,
    "activations": lambda x: (x.sigmoid() * x.tanh()).mean(),
}


def product(function):
    x = X.clone().requires_grad_()
    with fwad.dual_level():
        dual = fwad.make_dual(x, V)
        (grad,) = torch.autograd.grad(function(dual), dual, create_graph=True)
        return fwad.unpack_dual(grad).tangent.detach()


print("/* SPDX-License-Identifier: MIT */")
print("/* Written by make_forward.py, PyTorch %s. */" % torch.__version__.split("+")[0])
for name, function in FUNCTIONS.items():
    print("{%s, \"%s\", {%s}}," % (name, name, ", ".join("%.17g" % value for value in product(function).flatten())))
