#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients of every operator's own samples (ops/*.op), and the list of operators that PyTorch differentiates.

Writes data/grad_samples.txt, and tests/ops/derivatives.txt: a line `grad NAME` for each operator of tests/ops/tier_a.txt that
PyTorch has a derivative of, as it shows with at least one of the samples, of leaves or of results; `none NAME` for the others."""

import os
import re

import torch

from literal import TENSOR, Writer, parse, split

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NEAR = {"f64": "rtol=1e-9 atol=1e-11", "f32": "rtol=2e-5 atol=5e-6", "f16": "rtol=1e-2 atol=1e-2", "bf16": "rtol=6e-2 atol=6e-2"}
LONGEST = 330  # characters of a case, unless the operator has no shorter one
# Calls that end the reference's process.
DEADLY = re.compile(r"^_scaled_dot_product_flash_attention_for_cpu(?!.*f32\[2,3,5,4\].*f32\[2,3,6,4\])")
# What Tenon does otherwise, see docs/differences.md: logical operators in place keep no history,
# random numbers have none, an empty batch is differentiated twice, a gradient is refused and not lost;
# eigenvectors have another phase, and what is not read of a triangular factor has no gradient; frequencies of embeddings
# are not forgotten.
OTHERWISE = re.compile(r"^normal\.|^as_strided_scatter |^special_(\w*bessel|\w*chebyshev|hermite|laguerre|legendre|zeta)|^(nextafter|heaviside)|^(_?linalg_(eigh?|svd)|svd|cholesky_(solve|inverse)) |^linalg_det f32\[0,0|^(rrelu_with_noise|hardshrink|softshrink)_backward|^logical_\w+_ |^convolution_backward f32\[0,|^embedding_dense_backward .*True")
# What needs the values of its arguments has no answer on Meta.
BY_VALUE = re.compile(r"^(tensor_split\.tensor\w*|masked_select|item|is_nonzero|_local_scalar_dense|nonzero|_unique2|narrow.Tensor|equal|allclose|where|\w+\.data|"
                      r"_pa\w+_sequence\w*|_?ctc_loss\.Tensor) |\[.*bool\[")
# Values that are random, or that depend on which of equal elements comes first.
RANDOM = re.compile(r"dropout|rrelu|bernoulli|rand|empty|^_standard_gamma$|^_sample_dirichlet")


def declarations():
    """(operator, in-place twin or None, samples) of every declaration."""
    for name in sorted(os.listdir(os.path.join(ROOT, "ops"))):
        with open(os.path.join(ROOT, "ops", name), encoding="utf-8") as file:
            text = file.read().replace("\\\n", " ")
        for head, body in re.findall(r"^op ([\w.]+)\(.*?\{\n(.*?)^\}", text, re.M | re.S):
            samples = re.findall(r"^  sample\s+(.*)$", body, re.M)
            twin = None
            if re.search(r"^  variants.*\binplace\b", body, re.M):
                base, _, overload = head.partition(".")
                line = re.search(r"^  inplace\s+(\S+)", body, re.M)
                overload = line.group(1) if line else overload
                twin = base + "_" + ("." + overload if overload else "")
            yield head, twin, samples


def exists(op):
    name, _, overload = op.partition(".")
    return hasattr(torch.ops.aten, name) and hasattr(getattr(torch.ops.aten, name), overload or "default")


def with_grad(piece):
    """A literal, its floating tensors requiring grad."""
    if piece.startswith("[") and "[" in piece[1:]:
        return "[" + ", ".join(with_grad(part) for part in split(piece[1:-1])) + "]"
    key, equals, rest = piece.partition("=")
    if equals and re.match(r"[a-z_]\w*$", key) and not TENSOR.match(piece):
        return key + "=" + with_grad(rest)
    match = TENSOR.match(piece)
    if not match or match.group(2) not in ("f16", "bf16", "f32", "f64") or match.group(1) == "meta" or ".grad" in piece:
        return piece
    literal, equals, fill = piece.partition("=")
    return literal + ".grad" + equals + fill


def without_grad(pieces, schema, name):
    """The same, but for one argument."""
    names = [arg.name for arg in schema.arguments]
    return [re.sub(r"\.grad", "", piece)
            if piece.startswith(name + "=") or (i < len(names) and names[i] == name and "=" not in piece.split("[")[0])
            else piece for i, piece in enumerate(pieces)]


def result_of(value, leaves):
    """A literal's value, its floating and complex tensors results of calls, which may be written, on new leaves."""
    if isinstance(value, list):
        return [result_of(part, leaves) for part in value]
    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return value
    leaves.append(value.detach().clone().requires_grad_())
    return leaves[-1] * 1


def reaches_leaves(function, text):
    """Does a gradient of the sample's results, or of what it wrote, come back to its arguments?"""
    args, options, leaves = [], {}, []
    for piece in split(text):
        key, equals, rest = piece.partition("=")
        if equals and re.match(r"[a-z_]\w*$", key) and not TENSOR.match(piece):
            options[key] = result_of(parse(rest), leaves)
        else:
            args.append(result_of(parse(piece), leaves))
    try:
        before = [getattr(t, "grad_fn", None) for t in args[0]] if isinstance(args[0], list) else None
        found = function(*args, **options)
        if found is None:  # what was written has another history
            found = [t for t, node in zip(args[0], before) if t.grad_fn is not node]
        found = [t for t in (found if isinstance(found, (list, tuple)) else [found])
                 if isinstance(t, torch.Tensor) and t.requires_grad]
        grads = torch.autograd.grad([t.abs().sum() for t in found], leaves, allow_unused=True)
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False
    return any(grad is not None for grad in grads)


class Samples(Writer):
    """Writes cases, and notes which operators have a derivative."""

    def __init__(self):
        super().__init__("grad_samples")
        self.differentiable, self.seen = set(), set()

    def sample(self, op, text, short):
        line = self.line(op, text)
        if not line or (short and len(line) > LONGEST):
            return None
        if not re.search(r"\| - \||\| -$", line):
            self.differentiable.add(op)
        return line

    def line(self, op, text):
        """A line for one sample, or None when it says nothing."""
        pieces = [with_grad(piece) for piece in split(text)]
        if not any(".grad" in piece for piece in pieces):
            return None
        dtypes = re.findall(r"\b(bf16|f16|f32|f64)\[", text) or ["f32"]
        options = next(NEAR[d] for d in ("bf16", "f16", "f32", "f64") if d in dtypes) + " strides=no"
        if op.startswith(("hardsigmoid", "binary_cross_entropy")):
            options = NEAR["f32"] + " strides=no"  # constants of the reference are float32
        if RANDOM.search(op):
            options = "values=no strides=no"
        if BY_VALUE.search(op + " " + text):
            options += " cpu"
        for _ in range(8):
            self.grad(op, ", ".join(pieces), options)
            line = self.lines.pop()
            refused = re.search(r"not differentiable with respect to argument '(\w+)'|derivative for '\w+ (\w+)'", line)
            if not refused:
                break
            pieces = without_grad(pieces, self.function(op)._schema, refused.group(1) or refused.group(2))
        return None if "Error: " in line else line

    def operator(self, op, samples):
        if not exists(op) or op in self.seen or re.search(r"\.out$|_out$|\bout_", op):
            return
        self.seen.add(op)
        samples = [text.replace("meta f", "f") for text in samples]
        if any(reaches_leaves(self.function(op), text) for text in samples
               if "meta" not in text and not DEADLY.match(op + " " + text) and not OTHERWISE.match(op + " " + text)):
            self.differentiable.add(op)
        samples = [text for text in samples if not re.search(r"\bc(64|128)\b|complex|meta|\dj\b", text)
                   and not DEADLY.match(op + " " + text) and not OTHERWISE.match(op + " " + text)]
        lines = [line for line in (self.sample(op, text, True) for text in samples) if line]
        if not lines:
            lines = sorted((line for line in (self.sample(op, text, False) for text in samples) if line), key=len)[:1]
        self.lines += lines


def main():
    with Samples() as w:
        for op, twin, samples in declarations():
            w.operator(op, samples)
            if twin:
                w.operator(twin, samples[:1])
        with open(os.path.join(ROOT, "tests/ops/tier_a.txt"), encoding="utf-8") as file:
            names = re.findall(r"aten::([\w.]+)\(", file.read())
        lines = ["# Made by tests/golden/make_grad_samples.py with PyTorch %s: operators of tier_a.txt that it differentiates."
                 % torch.__version__.split("+")[0]]
        for name in dict.fromkeys(names):
            lines.append(("grad " if name in w.differentiable else "none ") + name)
        with open(os.path.join(ROOT, "tests/ops/derivatives.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
