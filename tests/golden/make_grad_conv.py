#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients of convolutions, resizing, attention and recurrent layers, and of their backward operators."""

import torch

from literal import Writer

LOOSE = "rtol=2e-5 atol=2e-5 strides=no"
CONVOLUTIONS = (
    ("f32[2,4,5,5]", "f32[6,4,3,3]", "6", "[1,1], [1,1], [1,1], False, [0,0], 1"),
    ("f32[1,4,6,5]", "f32[4,2,3,3]", "4", "[2,1], [0,1], [1,2], False, [0,0], 2"),
    ("f32[1,4,5,5]", "f32[4,1,3,3]", "4", "[2], [1], [1], False, [0], 4"),
    ("f32[2,4,5]", "f32[3,4,2]", "3", "[2], [0], [1], False, [0], 1"),
    ("f32[1,2,3,4,3]", "f32[2,2,2,2,2]", "2", "[1], [0], [1], False, [0], 1"),
    ("f32[2,4,3,3]", "f32[4,3,2,2]", "3", "[2,2], [1,0], [1,1], True, [1,0], 1"),
)


def conv(w):
    w.comment("convolution")
    for x, weight, bias, rest in CONVOLUTIONS:
        w.grad("convolution", "%s.grad, %s.grad, f32[%s].grad, %s" % (x, weight, bias, rest), LOOSE)
    x, weight, bias, rest = CONVOLUTIONS[3]
    w.grad("convolution", "%s.grad, %s.grad, None, %s" % (x, weight, rest), LOOSE)
    w.grad("convolution", "%s, %s.grad, f32[%s], %s" % (x, weight, bias, rest), LOOSE)
    w.grad("convolution", "%s.grad, %s, f32[%s].grad, %s" % (x, weight, bias, rest), LOOSE)
    w.grad("convolution", "f32[0,4,5].grad, %s.grad, f32[%s].grad, %s" % (weight, bias, rest), LOOSE)
    w.grad("conv2d", "f32[4,5,5].grad, f32[6,2,3,2].grad, f32[6].grad, groups=2, padding=[1]", LOOSE)
    w.grad("conv1d.padding", "f32[2,4,5].grad, f32[6,4,2].grad, None, [1], 'same'", LOOSE)
    w.grad("conv_transpose1d", "f32[2,4,5].grad, f32[4,3,3].grad", LOOSE)

    w.comment("the gradient of the gradient of convolution")
    for x, weight, bias, rest in (CONVOLUTIONS[1], CONVOLUTIONS[3], CONVOLUTIONS[5]):
        y = torch.ops.aten.convolution(torch.zeros(*eval(x[3:])), torch.zeros(*eval(weight[3:])), None,
                                       *eval("[%s]" % rest)).shape
        grad = "f32[%s]" % ",".join(map(str, y))
        for mask, seeds in (("[True,True,True]", ""), ("[True,True,True]", " seeds=0"), ("[True,True,True]", " seeds=1"),
                            ("[True,True,True]", " seeds=2"), ("[False,True,True]", " seeds=1,2")):
            w.grad("convolution_backward",
                   "%s.grad, %s.grad, %s.grad, [%s], %s, %s" % (grad, x, weight, bias, rest, mask), LOOSE + seeds)


def upsample(w):
    w.comment("resizing")
    for op, x, out in (("upsample_nearest1d", "[1,2,3]", "[5]"), ("upsample_nearest2d", "[1,2,3,4]", "[5,2]"),
                       ("upsample_nearest3d", "[1,1,2,2,3]", "[3,4,2]"), ("_upsample_nearest_exact2d", "[1,2,3,4]", "[5,2]")):
        w.grad(op, "f32%s.grad, %s" % (x, out), LOOSE)
        big = x.rsplit(",", out.count(",") + 1)[0] + "," + out[1:]
        w.grad(op + "_backward", "f32%s.grad, %s, %s" % (big, out, x), LOOSE)
    for op, x, out in (("upsample_linear1d", "[1,2,3]", "[5]"), ("upsample_bilinear2d", "[1,2,3,4]", "[5,2]"),
                       ("upsample_trilinear3d", "[1,1,2,2,3]", "[3,4,2]"), ("upsample_bicubic2d", "[1,2,3,4]", "[5,2]")):
        for corners in ("False", "True"):
            w.grad(op, "f32%s.grad, %s, %s" % (x, out, corners), LOOSE)
        big = x.rsplit(",", out.count(",") + 1)[0] + "," + out[1:]
        w.grad(op + "_backward", "f32%s.grad, %s, %s, False" % (big, out, x), LOOSE)


def attention(w):
    w.comment("attention")
    flash = "_scaled_dot_product_flash_attention_for_cpu"
    qkv = "f32[1,2,3,4].grad, f32[1,2,5,4].grad, f32[1,2,5,4].grad"
    for rest in ("", ", 0.0, True", ", attn_mask=f32[3,5]", ", scale=0.25"):
        w.grad(flash, qkv + rest, LOOSE + " seeds=0")
    w.grad(flash, "f32[1,2,3,4].grad, f32[1,2,5,4], f32[1,2,5,4]", LOOSE + " seeds=0")
    for rest in ("", ", None, 0.0, True", ", bool[3,5]", ", f32[3,5].grad", ", f32[3,5]"):
        w.grad("scaled_dot_product_attention", qkv + rest, LOOSE)
    w.grad("scaled_dot_product_attention", "f32[3,4].grad, f32[5,4].grad, f32[5,4].grad", LOOSE)
    w.grad("scaled_dot_product_attention", qkv + ", $none", LOOSE)
    w.grad(flash, "f32[1,2,3,4].grad, f32[1,2,5,4], f32[1,2,5,4], attn_mask=f32[3,5].grad", "cpu")


def recurrent(w):
    w.comment("recurrent layers")
    w.grad("_pack_padded_sequence", "f32[4,3,2].grad, $lengths, False", LOOSE + " cpu")
    w.grad("_pack_padded_sequence", "f32[3,4,2].grad, $lengths, True", LOOSE + " cpu")
    w.grad("_pad_packed_sequence", "f32[7,2].grad, $steps, False, 0.5, -1", LOOSE + " cpu")
    lstm = "[f32[8,3].grad, f32[8,2].grad, f32[8].grad, f32[8].grad]"
    w.grad("lstm.input", "f32[4,2,3].grad, [f32[1,2,2].grad, f32[1,2,2].grad], %s, True, 1, 0.0, False, False, False" % lstm, LOOSE)
    gru = "[f32[6,3].grad, f32[6,2].grad, f32[6].grad, f32[6].grad]"
    w.grad("gru.input", "f32[2,4,3].grad, f32[1,2,2].grad, %s, True, 1, 0.0, False, False, True" % gru, LOOSE)
    rnn = "[f32[2,3].grad, f32[2,2].grad, f32[2].grad, f32[2].grad]"
    for op in ("rnn_tanh.input", "rnn_relu.input"):
        w.grad(op, "f32[4,2,3].grad, f32[1,2,2].grad, %s, True, 1, 0.0, False, False, False" % rnn, LOOSE)
    w.grad("lstm.data", "f32[7,3].grad, $steps, [f32[1,3,2].grad, f32[1,3,2].grad], %s, True, 1, 0.0, False, False" % lstm,
           LOOSE + " cpu")
    w.grad("lstm_cell", "f32[2,3].grad, [f32[2,2].grad, f32[2,2].grad], f32[8,3].grad, f32[8,2].grad, f32[8].grad, f32[8].grad",
           LOOSE)
    w.grad("gru_cell", "f32[2,3].grad, f32[2,2].grad, f32[6,3].grad, f32[6,2].grad, f32[6].grad, f32[6].grad", LOOSE)


def main():
    with Writer("grad_conv") as w:
        w.tensor("lengths", torch.tensor([4, 2, 1]))
        w.tensor("steps", torch.tensor([3, 2, 1, 1]))
        none = torch.ones(3, 5, dtype=torch.bool)
        none[1] = False
        w.tensor("none", none)
        conv(w)
        upsample(w)
        attention(w)
        recurrent(w)


main()
