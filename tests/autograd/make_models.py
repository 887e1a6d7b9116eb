#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Losses and gradients of small models in PyTorch 2.11, for test_models.c: writes models.inc beside it.

Weights and inputs are numbers from a formula that both sides know, so that only results are kept."""

import os

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))


def fill(seed, *sizes):
    n = 1
    for size in sizes:
        n *= size
    return torch.tensor([((7919 * k + 104729 * seed + 13) % 41 - 20) / 32 for k in range(n)]).reshape(sizes)


class Model:
    """Parameters in the order in which they are asked for."""

    def __init__(self):
        self.params = []

    def __call__(self, *sizes):
        self.params.append(fill(len(self.params) + 1, *sizes).requires_grad_())
        return self.params[-1]


def mlp(p):
    x = fill(0, 4, 3)
    h = torch.tanh(F.linear(x, p(5, 3), p(5)))
    h = F.relu(F.linear(h, p(6, 5), p(6)))
    return F.cross_entropy(F.linear(h, p(3, 6), p(3)), torch.tensor([0, 2, 1, 2]))


def cnn(p):
    x = fill(0, 2, 1, 8, 8)
    h = F.max_pool2d(F.relu(F.conv2d(x, p(2, 1, 3, 3), p(2), padding=1)), 2)
    h = F.batch_norm(F.conv2d(h, p(3, 2, 3, 3), p(3)), None, None, p(3), p(3), True)
    return F.cross_entropy(F.linear(F.relu(h).flatten(1), p(2, 12), p(2)), torch.tensor([1, 0]))


def gpt(p):
    tokens = torch.tensor([[1, 4, 2, 6, 4], [0, 3, 3, 5, 1]])
    targets = torch.tensor([4, 2, 6, 4, 1, 3, 3, 5, 1, 2])
    words, places = p(7, 8), p(5, 8)
    x = F.embedding(tokens, words) + places
    h = F.layer_norm(x, (8,), p(8), p(8))
    q, k, v = (t.view(2, 5, 2, 4).transpose(1, 2) for t in F.linear(h, p(24, 8), p(24)).split(8, 2))
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 5, 8)
    x = x + F.linear(a, p(8, 8), p(8))
    h = F.layer_norm(x, (8,), p(8), p(8))
    x = x + F.linear(F.gelu(F.linear(h, p(16, 8), p(16)), approximate="tanh"), p(8, 16), p(8))
    x = F.layer_norm(x, (8,), p(8), p(8))
    return F.cross_entropy(F.linear(x, words).view(10, 7), targets)


def lstm(p):
    x, state = F.embedding(torch.tensor([[1, 4, 2], [0, 3, 3]]), p(5, 3)), torch.zeros(1, 2, 4)
    weights = [p(16, 3), p(16, 4), p(16), p(16)]
    out, _, _ = torch.lstm(x, (state, state), weights, True, 1, 0.0, True, False, True)
    return F.cross_entropy(F.linear(out, p(5, 4), p(5)).view(6, 5), torch.tensor([4, 2, 0, 3, 3, 1]))


def numbers(name, values):
    text = "static const float %s[] = {" % name
    lines = []
    for value in values:
        word = "%.9g" % value
        word += ("f," if "." in word or "e" in word else ".0f,")
        if len(text) + len(word) + 1 > 100:
            lines.append(text)
            text = "   "
        text += ("" if text.endswith("{") else " ") + word
    return "\n".join(lines + [text[:-1] + "};\n"])


def main():
    pieces = []
    for build in (mlp, cnn, gpt, lstm):
        model = Model()
        loss = build(model)
        loss.backward()
        grads = torch.cat([t.grad.reshape(-1) for t in model.params])
        pieces.append(numbers(build.__name__ + "_loss", [loss.item()]) + numbers(build.__name__ + "_grads", grads.tolist()))
    head = ("/* SPDX-License-Identifier: MIT */\n/* Written by make_models.py: losses, and gradients of all parameters in turn. */\n"
            "/* clang-format off */\n\n")
    with open(os.path.join(HERE, "models.inc"), "w") as file:
        file.write(head + "\n".join(pieces))


main()
