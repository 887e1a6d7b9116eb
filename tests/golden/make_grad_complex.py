#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients of complex numbers: of the conjugate, as the reference has them; a real argument gets the real part."""

from literal import Writer

CLOSE = "rtol=2e-5 atol=2e-5 strides=no"


def main():
    with Writer("grad_complex") as w:
        for op in ("conj_physical", "view_as_real", "real", "imag", "neg", "exp", "sum", "mean", "clone", "t", "cumsum", "sqrt",
                   "tanh", "sigmoid", "reciprocal", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
                   "atanh"):
            w.grad(op, "c64[2,3].grad" + (", 1" if op == "cumsum" else ""), CLOSE)
            w.grad(op, "c128[2,2].t.grad" + (", 0" if op == "cumsum" else ""), CLOSE)
        w.grad("view_as_complex", "f32[3,2].grad", CLOSE)
        for op in ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor"):
            w.grad(op, "c64[2,3].grad, c64[3].grad", CLOSE)
            w.grad(op, "c64[2,3].grad, f32[3].grad", CLOSE)
            w.grad(op, "f32[2,3].grad, c64[3].grad", CLOSE)
        for op in ("add.Scalar", "mul.Scalar", "div.Scalar"):
            w.grad(op, "c64[2,3].grad, 2j", CLOSE)
            w.grad(op, "f32[3].grad, 2j", CLOSE)
        w.grad("add.Tensor", "c64[3].grad, c64[3].grad, alpha=2j", CLOSE)
        for op, args in (("mm", "c64[2,3].grad, c64[3,2].grad"), ("mm", "c64[2,3].t.grad, c64[3,2].t.grad"),
                         ("bmm", "c64[2,2,3].grad, c64[2,3,2].grad"), ("mv", "c64[2,3].grad, c64[3].grad"),
                         ("dot", "c64[3].grad, c64[3].grad"), ("matmul", "c64[2,2,3].grad, c64[3,2].grad"),
                         ("addmm", "c64[2].grad, c64[2,3].grad, c64[3,2].grad, beta=1j, alpha=2j"),
                         ("outer", "c64[2].grad, c64[3].grad")):
            w.grad(op, args, CLOSE)
        for op, args in (("prod", "c64[3].grad"), ("prod.dim_int", "c64[2,3].grad, 1"), ("cumprod", "c64[2,3].grad, 1"),
                         ("var.correction", "c64[2,3].grad, [1]"), ("index.Tensor", "c64[3].grad, [i64[2]=1]"),
                         ("cat", "[c64[2].grad, c64[1].grad]"), ("where.self", "bool[3], c64[3].grad, c64[3].grad"),
                         ("linalg_vector_norm", "c64[2,3].grad, 2, [1]"), ("linalg_vector_norm", "c64[2,3].grad, 1")):
            w.grad(op, args, CLOSE)
        for op, args in (("conv1d", "c128[1,4,4].grad, c128[4,2,2].grad, c128[4].grad, [2], [1], [1], 2"),
                         ("conv2d", "c128[1,2,3,3].grad, c128[2,2,2,2].grad, c128[2].grad"),
                         ("conv2d.padding", "c64[1,1,3,3].grad, c64[2,1,2,2].grad, None, [1], 'same'"),
                         ("conv3d", "c64[1,1,2,2,3].grad, c64[1,1,2,1,2].grad, c64[1].grad"),
                         ("conv_transpose1d", "c128[1,2,3].grad, c128[2,2,2].grad, c128[2].grad, [2], [1], [1]"),
                         ("conv_transpose2d.input", "c128[1,2,2,2].grad, c128[2,1,2,1].grad, c128[2].grad, [1], [0], [0], 2, [2]"),
                         ("conv_transpose3d.input", "c64[1,1,2,1,2].grad, c64[1,1,2,1,2].grad")):
            w.grad(op, args, CLOSE)
        for op, args in (("linalg_qr", "c128[3,2].grad"), ("linalg_qr", "c128[2,2].grad, 'complete'"), ("linalg_qr", "c128[2,3].grad"),
                         ("linalg_lu_factor_ex", "c128[3,2].grad"), ("linalg_lu_factor_ex", "c128[2,3].grad"),
                         ("linalg_lu", "c128[2,3].grad"), ("linalg_lu", "c128[4,2].grad")):
            w.grad(op, args, CLOSE)
        w.grad("conv1d", "c128[1,1,3].grad, c128[1,1,2].grad", CLOSE + " twice")
        for op, args in (("sinc", "c128[2,3].grad"), ("logaddexp", "c128[2,3].grad, c128[3].grad"), ("logcumsumexp", "c128[2,3].grad, 1"), ("linalg_cholesky", "c128[1,1].grad=4"), ("linalg_det", "c128[3,3].grad"),
                         ("linalg_slogdet", "c128[2,2].grad"), ("linalg_inv", "c128[2,2].grad"), ("linalg_pinv", "c128[3,2].grad, 1e-10"),
                         ("linalg_solve_triangular", "c128[3,3].grad, c128[3,2].grad, upper=True"), ("linalg_eigvalsh", "c128[3,3].grad"),
                         ("linalg_svdvals", "c128[3,2].grad"), ("adaptive_avg_pool2d", "c64[3,2,2].grad, [1,1]")):
            w.grad(op, args, CLOSE)
        w.grad("linalg_eigvalsh", "f64[3,3].grad", CLOSE + " twice")
        w.grad("linalg_eigvalsh", "c128[2,2].grad", CLOSE + " twice")
        for op in ("mul.Tensor", "div.Tensor"):
            w.grad(op, "c128[3].grad, c128[3].grad", CLOSE + " twice")
        for op in ("view_as_real", "imag", "exp", "conj_physical"):
            w.grad(op, "c128[3].grad", CLOSE + " twice")


main()
