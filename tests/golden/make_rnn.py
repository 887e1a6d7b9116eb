#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recurrent networks: layers, directions, packed sequences, cells, and packing; with refusals."""

import torch

from literal import Writer

torch.backends.mkldnn.enabled = False
CLOSE = {"f32": "rtol=1e-5 atol=1e-6", "f64": "rtol=1e-13 atol=1e-13", "bf16": "rtol=5e-2 atol=5e-2"}
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def parameters(gates, size, width, layers, directions, biases, d):
    texts = []
    for layer in range(layers):
        inner = size if layer == 0 else width * directions
        for _ in range(directions):
            texts += ["%s[%d,%d]" % (d, gates * width, inner), "%s[%d,%d]" % (d, gates * width, width)]
            texts += ["%s[%d]" % (d, gates * width)] * 2 if biases else []
    return "[" + ", ".join(texts) + "]"


def state(name, text):
    return "[%s, %s]" % (text, text) if name == "lstm" else text


def layers(w):
    for name, gates in GATES.items():
        w.comment(name)
        for d in ("f32", "f64"):
            for layers, directions, biases, first in ((1, 1, True, False), (1, 1, False, True), (2, 1, True, False),
                                                      (1, 2, True, True), (2, 2, False, False)):
                given = state(name, "%s[%d,2,2]" % (d, layers * directions))
                params = parameters(gates, 3, 2, layers, directions, biases, d)
                w.case(name + ".input", "%s%s, %s, %s, %s, %d, 0.0, False, %s, %s" % (
                    d, "[2,3,3]" if first else "[3,2,3]", given, params, biases, layers, directions == 2, first), CLOSE[d])
        for directions, layers in ((1, 1), (2, 1), (2, 2)):
            given = state(name, "f32[%d,3,2]" % (layers * directions))
            params = parameters(gates, 3, 2, layers, directions, True, "f32")
            w.case(name + ".data", "f32[7,3], $sizes, %s, %s, True, %d, 0.0, False, %s" % (
                given, params, layers, directions == 2), CLOSE["f32"] + " cpu")
        one = parameters(gates, 3, 2, 1, 1, True, "f32")
        w.case(name + ".input", "f32[3,0,3], %s, %s, True, 1, 0.0, False, False, False" % (state(name, "f32[1,0,2]"), one))
        for x, h, params, layers in (("f32[0,2,3]", "f32[1,2,2]", one, 1), ("f32[3,2,3]", "f32[2,2,2]", one, 1),
                                     ("f32[3,2,3]", "f32[2,2,2]", one, 2), ("f32[3,2,3]", "f32[1,2,2]", one[:one.rindex(",")] + "]", 1),
                                     ("f32[3,2,5]", "f32[1,2,2]", one, 1)):
            w.case(name + ".input", "%s, %s, %s, True, %d, 0.0, False, False, False" % (x, state(name, h), params, layers))
    w.comment("projections, dropout that drops nothing, one state for an LSTM")
    w.case("lstm.input", "f32[3,2,3], [f32[1,2,1], f32[1,2,2]], [f32[8,3], f32[8,1], f32[8], f32[8], f32[1,2]], "
           "True, 1, 0.0, False, False, False", CLOSE["f32"])
    w.case("gru.input", "f32[3,2,3], f32[2,2,2], %s, True, 2, 0.5, False, False, False" % parameters(3, 3, 2, 2, 1, True, "f32"),
           CLOSE["f32"])
    w.case("gru.input", "f32[3,2,3], f32[2,2,2], %s, True, 2, 0.5, True, False, False" % parameters(3, 3, 2, 2, 1, True, "f32"),
           "values=no")
    w.case("lstm.input", "f32[3,2,3], [f32[1,2,2]], %s, True, 1, 0.0, False, False, False" % parameters(4, 3, 2, 1, 1, True, "f32"))


def cells(w):
    for name, gates in GATES.items():
        w.comment(name + "_cell")
        op, n = name + "_cell", gates * 4
        for d in ("f32", "f64", "bf16"):
            for biases in ("", ", %s[%d], %s[%d]" % (d, n, d, n), ", %s[%d], None" % (d, n)):
                w.case(op, "%s[2,3], %s, %s[%d,3], %s[%d,4]%s" % (d, state(name, d + "[2,4]"), d, n, d, n, biases), CLOSE[d])
        for x, h, wide in (("f32[2,5]", "f32[2,4]", n), ("f32[2,3]", "f32[3,4]", n), ("f32[2,3]", "f32[2,5]", n),
                           ("f32[2,3]", "f32[2,4]", n + 1), ("f32[3]", "f32[4]", n)):
            w.case(op, "%s, %s, f32[%d,3], f32[%d,4]" % (x, state(name, h), wide, wide))


def packing(w):
    w.comment("packing")
    for d in ("f32", "f64", "i64", "bool"):
        for args in ("[4,3,2], $lengths, False", "[3,4,2], $lengths, True", "[4,3], $lengths, False",
                     "[3,5,2].t, $lengths, True", "[4,3,2], i64[3]=2, False", "[4,3,1,2], $lengths, False"):
            w.case("_pack_padded_sequence", d + args, "cpu")
    w.case("_pack_padded_sequence", "meta f32[4,3,2], i64[3]=2, False", "cpu values=no")
    for args in ("f32[4,3,2], $upwards, False", "f32[4,3,2], $zero, False", "f32[4,3,2], i64[2]=2, False",
                 "f32[4,3,2], i32[3]=2, False", "f32[4,3,2], f32[3]=2, False", "f32[4,3,2], i64[1,3]=2, False",
                 "f32[0,3,2], $lengths, False", "f32[4], $lengths, False"):
        w.case("_pack_padded_sequence", args, "cpu")
    for d in ("f32", "f64"):
        for args in ("[7,2], [4,3,2], $sizes, False", "[7,2], [3,4,2], $sizes, True", "[7], [5,3], $sizes, False",
                     "[6,2], [4,3,2], i64[2]=3, False"):
            w.case("_pack_padded_sequence_backward", d + args, "cpu")
    for d in ("f32", "f64", "i64"):
        for args in ("[7,2], $sizes, False, 0.0, -1", "[7,2], $sizes, True, 2.0, 6", "[7], $sizes, True, -1, 0",
                     "[7,2,2], $sizes, False, 1, -1"):
            w.case("_pad_packed_sequence", d + args, "cpu")
    for args in ("f32[7,2], $sizes, False, 0.0, 3", "f32[7,2], i64[0], False, 0.0, -1", "f32[6,2], i32[2]=3, False, 0.0, -1"):
        w.case("_pad_packed_sequence", args, "cpu")


with Writer("rnn") as w:
    w.tensor("sizes", torch.tensor([3, 2, 1, 1]))
    w.tensor("lengths", torch.tensor([4, 2, 1]))
    w.tensor("upwards", torch.tensor([1, 2, 4]))
    w.tensor("zero", torch.tensor([4, 2, 0]))
    layers(w)
    cells(w)
    packing(w)
