#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists of tensors at once, and steps of optimisers; with refusals."""

from literal import Writer

CLOSE = {"f32": "rtol=2e-6 atol=1e-6", "f64": "rtol=1e-13 atol=1e-14", "bf16": "ulp=2", "f16": "ulp=2"}


def foreach(w):
    for op in ("add", "sub", "mul", "div"):
        w.comment("_foreach_" + op)
        for mark in ("", "_"):
            name = "_foreach_" + op + mark
            for d in ("f32", "f64", "bf16", "i64"):
                if d == "i64" and mark and op == "div":
                    continue
                close = "ulp=1" if d != "i64" else "rtol=1e-6"
                three = "[{0}[2,3], {0}[], {0}[3].strided]".format(d)
                number = "2" if d == "i64" else "0.5"
                w.case(name + ".Scalar", three + ", " + number, close)
                w.case(name + ".List", three + ", [{0}[3]=2, {0}[]=3, {0}[3]=4]".format(d)
                       + (", alpha=2" if op in ("add", "sub") else ""), close)
                w.case(name + ".ScalarList", three + ", [%s, 3, 4]" % number, close)
                if op != "sub":
                    w.case(name + ".Tensor", three + ", %s[]=2" % d, close)
            w.case(name + ".Scalar", "[], 2")
            w.case(name + ".List", "[f32[3]], [f32[3], f32[2]]")
            w.case(name + ".List", "[f32[3]], [f32[4]]")
            w.case(name + ".ScalarList", "[f32[3], f32[2]], [1.0]")
            w.case(name + ".Scalar", "[i64[3]], 1.5", "rtol=1e-6")
            if op != "sub":
                w.case(name + ".Tensor", "[f32[3]], f32[1]")
    for op in ("addcmul", "addcdiv"):
        w.comment("_foreach_" + op)
        for mark in ("", "_"):
            name = "_foreach_" + op + mark
            for d in ("f32", "f64", "bf16"):
                lists = "[{0}[2,3], {0}[2]], [{0}[2,3], {0}[]], [{0}[3]=3, {0}[2]]".format(d)
                close = {"bf16": "rtol=2e-2 atol=2e-2"}.get(d, CLOSE[d])
                w.case(name + ".Scalar", lists + ", 0.5", close)
                w.case(name + ".ScalarList", lists + ", [2, 0.5]", close)
                w.case(name + ".Tensor", lists + ", %s[2]=0.25" % d, close)
            w.case(name + ".Scalar", "[f32[3]], [f32[3], f32[3]], [f32[3]]")
            w.case(name + ".ScalarList", "[f32[3]], [f32[3]], [f32[3]], [1.0, 2.0]")
            w.case(name + ".Tensor", "[f32[3]], [f32[3]], [f32[3]], f32[2]")
            w.case(name + ".Tensor", "[f32[3]], [f32[3]], [f32[3]], f32[1,1]")
    w.comment("_foreach_lerp and those of the tensors alone")
    for mark in ("", "_"):
        for d in ("f32", "f64"):
            lists = "[{0}[2,3], {0}[2]], [{0}[2,3]=1, {0}[2]=3]".format(d)
            w.case("_foreach_lerp%s.Scalar" % mark, lists + ", 0.25", CLOSE[d])
            w.case("_foreach_lerp%s.ScalarList" % mark, lists + ", [0.25, 0.75]", CLOSE[d])
            w.case("_foreach_lerp%s.List" % mark, lists + ", [{0}[2,3]=0.25, {0}[2]]".format(d), CLOSE[d])
            w.case("_foreach_sqrt" + mark, "[{0}[2,3]=2, {0}[]=3]".format(d), "ulp=1")
            w.case("_foreach_neg" + mark, "[{0}[2,3], {0}[0]]".format(d))
            w.case("_foreach_copy" + mark, "[{0}[2,3], {0}[3]], [f32[3], i64[]]".format(d))
        w.case("_foreach_lerp%s.List" % mark, "[f32[3]], [f32[3], f32[3]], [f32[3]]")
        w.case("_foreach_lerp%s.ScalarList" % mark, "[f32[3], f32[3]], [f32[3], f32[3]], [0.5]")
        w.case("_foreach_sqrt" + mark, "[i64[3]=4]", "ulp=1")
        w.case("_foreach_neg" + mark, "[i64[3]]")
        w.refuse("_foreach_copy" + mark, "[f32[3]], [f32[3], f32[2]]",
                 "RuntimeError: Tensor lists must have the same number of tensors, got 1 and 2")
    w.case("_foreach_zero_", "[f32[2,3], i64[2], bool[3]]")
    w.case("_foreach_zero_", "[]")
    for d in ("f32", "f64", "f16"):
        for order in ("2", "1", "inf", "3, float64"):
            if d == "f16" and "," in order:
                continue
            w.case("_foreach_norm.Scalar", "[{0}[2,3], {0}[4]], {1}".format(d, order), CLOSE[d])
    w.case("_foreach_norm.Scalar", "[f32[0]], 2")
    w.case("_foreach_norm.Scalar", "[f32[0]], inf")
    w.case("_foreach_norm.Scalar", "[i64[3]], 2")


def sgd(w):
    w.comment("_fused_sgd_")
    form = "weight_decay={}, momentum={}, lr={}, dampening={}, nesterov={}, maximize={}, is_first_step={}"
    for d in ("f32", "f64", "bf16", "f16"):
        lists = "[{0}[2,3], {0}[40], {0}[]], [{0}[2,3]=0.5, {0}[40].offset, {0}[]=1], [{0}[2,3], {0}[40], {0}[]]".format(d)
        none = "[{0}[2,3]], [{0}[2,3]=0.5], []".format(d)
        w.case("_fused_sgd_", none + ", " + form.format(0.1, 0, 0.1, 0, False, False, False), CLOSE[d])
        if d in ("bf16", "f16"):
            continue  # the reference forgets to write parameters
        for args in ((0, 0.9, 0.1, 0, False, False, False), (0.1, 0.9, 0.1, 0.5, False, False, False),
                     (0.1, 0.9, 0.1, 0, True, False, False), (0.1, 0.9, 0.1, 0.5, False, True, True)):
            w.case("_fused_sgd_", lists + ", " + form.format(*args), CLOSE[d])
        w.case("_fused_sgd_.tensor_lr", lists + ", " + form.format(0.1, 0.9, "f64[]=0.1", 0, False, False, False), CLOSE[d])
        for more in ("grad_scale=f32[]=2", "found_inf=f32[]=1", "grad_scale=f32[]=2, found_inf=f32[]=0"):
            w.case("_fused_sgd_", lists + ", " + form.format(0.1, 0.9, 0.1, 0, False, False, False) + ", " + more, CLOSE[d])
    plain = ", " + form.format(0.1, 0.9, 0.1, 0, False, False, False)
    w.case("_fused_sgd_", "[f32[3,2].t], [f32[3,2].t], [f32[3,2].t]" + plain, CLOSE["f32"])
    w.case("_fused_sgd_", "[i64[3]], [i64[3]], [i64[3]]" + plain)
    w.case("_fused_sgd_", "[f32[3]], [f64[3]], [f32[3]]" + plain)
    w.refuse("_fused_sgd_", "[f32[3]], [f32[4]], [f32[3]]" + plain,
             "RuntimeError: Expected a tensor of size [3] in grads, as in self, but got [4]")
    w.refuse("_fused_sgd_", "[f32[3]], [f32[3]], []" + plain,
             "RuntimeError: Expected momentum_buffer_list.size() == n_tensors to be true, but got false.")


def adam(w):
    form = "lr={}, beta1={}, beta2={}, weight_decay={}, eps={}, amsgrad={}, maximize={}"
    for op in ("_fused_adam_", "_fused_adamw_"):
        w.comment(op)
        for d in ("f32", "f64", "bf16", "f16"):
            lists = ("[{0}[2,3], {0}[40]], [{0}[2,3]=0.5, {0}[40]], [{0}[2,3], {0}[40]], [{0}[2,3]=2, {0}[40]=0.5], "
                     "{1}, [f32[]=1, f32[]=7]")
            most = "[{0}[2,3]=1, {0}[40]=1]".format(d)
            close = {"f16": "rtol=5e-3 atol=2e-3", "bf16": "rtol=3e-2 atol=1e-2"}.get(d, CLOSE[d])
            for args in ((0.1, 0.9, 0.99, 0, 1e-8, False, False), (0.1, 0.9, 0.99, 0.1, 1e-3, False, True),
                         (0.1, 0.25, 0.5, 0.1, 1e-8, True, False)):
                states = lists.format(d, most if args[5] else "[]")
                w.case(op, states + ", " + form.format(*args), close)
            w.case(op + ".tensor_lr", lists.format(d, "[]") + ", " + form.format("f32[]=0.125", 0.9, 0.99, 0.1, 1e-8, False, False),
                   close)
            for more in ("grad_scale=f32[]=2", "found_inf=f32[]=1"):
                w.case(op, lists.format(d, "[]") + ", " + form.format(0.1, 0.9, 0.99, 0.1, 1e-8, False, False) + ", " + more, close)
        plain = ", " + form.format(0.1, 0.9, 0.99, 0.1, 1e-8, False, False)
        w.case(op, "[f32[3]], [f64[3]], [f32[3]], [f32[3]=1], [], [f32[]=1]" + plain)
        w.refuse(op, "[f32[3]], [f32[3]], [f32[3]], [f32[3]=1], [], []" + plain,
                 "RuntimeError: Expected state_steps.size() == n_tensors to be true, but got false.")


with Writer("optim") as w:
    foreach(w)
    sgd(w)
    adam(w)
