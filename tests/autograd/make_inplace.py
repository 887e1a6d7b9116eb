#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients of graphs with views and writes in place, by the reference: writes inplace_reference.inc.

The same graphs are built in test_inplace.c, under the same names. Run it with a Python that has PyTorch 2.11:

  python3 make_inplace.py > inplace_reference.inc
"""

import torch


def leaf(*sizes, first=0.25, step=0.25):
    n = 1
    for size in sizes:
        n *= size
    return (first + step * torch.arange(n, dtype=torch.float64)).reshape(sizes).requires_grad_()


def weigh(t):
    """A scalar in which every element counts differently."""
    return (t * (1 + torch.arange(t.numel(), dtype=torch.float64)).reshape(t.shape)).sum()


def write_a_view(x, w):
    a = x * 2
    a[1:3].mul_(w)
    return weigh(a)


def write_a_view_twice(x, w):
    a = x * 2
    v = a[1:3]
    v.mul_(w)
    v.exp_()
    return weigh(a) + weigh(v)


def write_a_view_that_goes(x, w):
    a = x * 0.5
    a[1:3].exp_()
    b = w * a[0]
    b[0].tanh_()
    return weigh(a) + weigh(b)


def write_the_base(x, w):
    a = x * 2
    v = a.t()
    a[1:3].mul_(w)
    a.sigmoid_()
    return weigh(v)


def write_through_two_views(x, w):
    a = x * 2
    v = a.t()
    u = a.view(12)[2:8]
    v[1].mul_(x.detach()[:, 2]).add_(x[:, 3])
    u.mul_(3)
    v[0:2].relu_()
    return weigh(a) + weigh(u) + weigh(v)


def write_a_view_of_a_plain_base(x, w):
    b = torch.zeros(3, 4, dtype=torch.float64)
    v = b[0]
    b[1].copy_(w[0])
    b[2].copy_(x[1] * x[2])
    return weigh(b) + weigh(v)


def fill_a_view(x, w):
    a = x * w.sum()
    a[1].zero_()
    a[2].fill_(2)
    return weigh(a * a)


def view_in_place(x, w):
    a = x * 2
    v = a[1:3]
    v.t_()
    v.mul_(2)
    return weigh(v) + weigh(a)


def overlapping(x, w):
    a = x * 1
    return weigh(a.as_strided((3, 4, 2), (2, 1, 1), 1) ** 2)


def expanded_input(x, w):
    a = (x[:1] * 1).expand(3, 4)
    return weigh(a.as_strided((2, 3), (1, 1), 0) ** 2)


def repeated_rows(x, w):
    a = x * 1
    return weigh(a.as_strided((3, 2), (0, 2), 1) ** 2)


CASES = [write_a_view, write_a_view_twice, write_a_view_that_goes, write_the_base, write_through_two_views,
         write_a_view_of_a_plain_base, fill_a_view, view_in_place, overlapping, expanded_input, repeated_rows]


def numbers(t, like):
    t = torch.zeros_like(like) if t is None else t
    return "{%s}" % ", ".join("%.12g" % v for v in t.reshape(-1).tolist())


def main():
    print("/* SPDX-License-Identifier: MIT */")
    print("/* Written by make_inplace.py: loss, its gradients, and those of their weighted sum. */")
    print("/* clang-format off */")
    for case in CASES:
        x, w = leaf(3, 4), leaf(2, 4, first=0.5, step=0.125)
        loss = case(x, w)
        dx, dw = torch.autograd.grad(loss, (x, w), create_graph=True, allow_unused=True)
        total = sum(weigh(g) for g in (dx, dw) if g is not None)
        ddx, ddw = (None, None)
        if total.requires_grad:
            ddx, ddw = torch.autograd.grad(total, (x, w), allow_unused=True)
        print('{"%s",\n %s, %.12g,\n %s,\n %s,\n %s,\n %s},' % (
            case.__name__, case.__name__, loss.item(), numbers(dx, x), numbers(dw, w), numbers(ddx, x),
            numbers(ddw, w)))


main()
