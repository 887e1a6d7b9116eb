#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients of gradients of every operator that both libraries have, over the samples of its declaration, beside PyTorch.

    PYTHONPATH=build/python python3 tests/python/compare_orders.py [NAME…]

Runs where PyTorch and NumPy are installed, in float64. Compares which results require grad; and of each order up to the third: which
inputs get a gradient and which get None, whether it can be differentiated again, and its values. Calls of which PyTorch has no
gradient of an order are compared up to that order. What differs on purpose is listed with its reason. The tests do not need it."""

import argparse
import math
import re

import compare_operators
from operator_calls import arguments, as_tenon, call_both, functions_of, is_random, leaves, same_tensor, tenon, torch

ORDERS = 3

WRONG = "The reference's gradient is not the slope of its result, as difference quotients show; Tenon's is"
GAUGE = "Vectors are known up to a factor of size 1, and what is differentiated depends on it"
FINER = "A gradient that does not depend on an input is one that can be differentiated again, to zeros, in one library and not in the other"
EMPTY = "Without elements there is nothing to differentiate: each library leaves out other parts of it"

# (operators, arguments, what differs; the reason)
REASONS = [
    (r"as_strided_scatter|cholesky_(solve|inverse)", r"", r"order 1: values", WRONG),
    (r"(native_)?layer_norm|(_?native_batch_norm|instance_norm).*", r"", r"order 3: values", WRONG),
    (r"_weight_norm(_interface)?", r"", r"order 2: values", WRONG),
    (r"_scaled_dot_product_flash_attention_for_cpu", r"strided|\b0\b", r"values|process ended", WRONG),
    (r"hardsigmoid", r"", r"values differ by up to \S+e-09", "The reference's slope is a sixth in float32"),
    (r"logcumsumexp", r"", r"values differ by up to \S+e-1[67]", "Rounding, beside numbers that cancel"),
    (r"binary_cross_entropy(_backward)?", r"=1, f64\[3\]=0", r"values", "Where the loss is infinite each library has another bound for it"),
    (r"(_?linalg_)?(eigh|svd)", r"", r"values", GAUGE),
    (r"sort|topk", r"\[300\]", r"values", "Of equal elements each library chooses others"),
    (r"hardswish(_backward)?|conv.*|(native_)?group_norm|(hard|soft)shrink_backward|linalg_householder_product", r"", r"(requires grad|constant|None), not", FINER),
    (r"linalg_det|prod\.dim_int|linalg_lstsq|_foreach_zero", r"", r"requires? grad", EMPTY),
    (r"_(log_)?softmax_backward_data", r"", r"expected scalar type", "The reference does not look at the dtype that it is told"),
]


def reason_for(op, text, found):
    return next((reason for ops, inside, what, reason in REASONS
                 if re.fullmatch(ops, op.split(".")[0]) or re.fullmatch(ops, op) if re.search(inside, text) and re.search(what, found)), None)


def in_double(text):
    return re.sub(r"\b(f32|f16|bf16)\[", "f64[", re.sub(r"\bc64\[", "c128[", text))


def inner(library, tensors, seed):
    """A number that is linear in the tensors."""
    total = None
    for i, t in enumerate(tensors):
        flat = (library.view_as_real(t.resolve_conj()) if t.is_complex() else t).reshape(-1).double()
        weight = library.tensor([math.sin(1.3 * k + seed + 2 * i + 0.5) for k in range(flat.numel())], dtype=library.float64)
        part = (flat * weight).sum()
        total = part if total is None else total + part
    return total


def orders(library, results, inputs):
    """[(which results require grad), then of each order the gradients, None among them, or what was raised]."""
    results = [t for t in leaves([results]) if t.is_floating_point() or t.is_complex()]
    rows = [[t.requires_grad for t in results]]
    now = [t for t in results if t.requires_grad]
    for order in range(ORDERS):
        if not now:
            break
        try:
            made = library.autograd.grad(inner(library, now, order), inputs, create_graph=True, allow_unused=True)
        except (RuntimeError, IndexError) as error:
            rows.append(str(error).split("\n")[0])
            break
        rows.append(made)
        now = [g for g in made if g is not None and g.requires_grad]
    return rows


def state(gradients):
    return ["None" if g is None else "requires grad" if g.requires_grad else "constant" for g in gradients]


def difference(mine, theirs, among):
    if len(theirs) > 1 and isinstance(theirs[1], str):  # its results say that they have a gradient, and then there is none
        return None
    if mine[0] != theirs[0]:
        return "results require grad: %s, not %s" % (mine[0], theirs[0])
    for order in range(1, max(len(mine), len(theirs))):
        if order >= len(mine) or order >= len(theirs):
            return "order %d: %s" % (order, "none" if order >= len(mine) else "PyTorch has none")
        a, b = mine[order], theirs[order]
        if isinstance(b, str):  # what the reference cannot do
            return None
        if isinstance(a, str):
            return "order %d: %s" % (order, a[:100])
        for x, y in zip(a, b):
            if x is not None and y is not None:
                found = same_tensor(x.detach(), y.detach(), strides=False, among=among)
                if found:
                    return "order %d: %s" % (order, found)
        if state(a) != state(b):
            return "order %d: %s, not %s" % (order, ", ".join(state(a)), ", ".join(state(b)))
    return None


def compare(op, made, forward=False):  # noqa: ARG001: as compare_operators calls it
    given, named = made(True)
    if is_random(op, given, named):
        return None, None
    mine_given, mine_named = as_tenon(given), as_tenon(named)
    inputs = [t for t in leaves(given + list(named.values())) if t.requires_grad]
    mine_inputs = [t for t in leaves(mine_given + list(mine_named.values())) if t.requires_grad]
    (mine, error), (theirs, their_error) = call_both(op, given, named, mine_given, mine_named)
    if their_error is not None or not inputs or not all(hasattr(t, "requires_grad") for t in leaves([theirs])):
        return None, None
    wanted = orders(torch, theirs, inputs)
    if error is not None:  # raised at the call; the reference's result says that it has a gradient, and then there is none
        return None if len(wanted) < 2 or isinstance(wanted[1], str) else str(error).split("\n")[0][:100], None
    among = [t.dtype for t in leaves([theirs]) if t.is_floating_point() or t.is_complex()]
    return difference(orders(tenon, mine, mine_inputs), wanted, among), None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true", help="also what differs for a reason")
    parser.add_argument("names", nargs="*", help="these operators alone")
    options = parser.parse_args()
    compare_operators.compare = compare
    count, meant, differing = 0, 0, 0
    for _, op, samples, _ in compare_operators.declarations():
        if (options.names and op not in options.names and op.split(".")[0] not in options.names) or not functions_of(torch, op):
            continue
        calls = [(op, text) for text in dict.fromkeys(in_double(sample) for sample in samples) if "out=" not in text]
        for (name, text), (what, _) in compare_operators.each(calls):
            count += 1
            reason = what and reason_for(name, text, what)
            meant += bool(reason)
            differing += bool(what) and not reason
            if what and (options.all or not reason):
                print("%s(%s): %s%s" % (name, text, what, reason and "; " + reason or ""), flush=True)
    print("%d calls, %d differ for a reason, %d without one" % (count, meant, differing))


if __name__ == "__main__":
    main()
