#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Results of operators' own samples and error samples (ops/*.op), for the operators that no other script has cases of.

Writes data/samples.txt. Run last."""

import os
import re

import torch

from literal import DATA, Writer
from make_grad_samples import declarations, exists

# Values that are random.
RANDOM = re.compile(r"^(empty|rand|bernoulli|_standard_gamma$|_standard_gamma\.|_sample_dirichlet|poisson$|binomial$|normal|cauchy|geometric|uniform|exponential|"
                    r"log_normal|rrelu|\w*dropout|_resize)")
# What needs the values of its arguments has no answer on Meta.
BY_VALUE = re.compile(r"^(argwhere|_unique$|unique_dim_consecutive|nonzero_numpy|masked_scatter_backward|is_nonzero|nonzero_static|histogram|linalg_matrix_rank|combinations|_?ctc_loss(_backward)?\.Tensor|isreal|tensor_split\.tensor)")
# Eigenvectors and the like are known up to a factor; what the reference answers differently is in docs/differences.md.
FREE = re.compile(r"^(linalg_(eigh?|svd|_svd)|svd|_linalg_(eigh|svd)|linalg_qr|qr|geqrf)$")
OTHERWISE = re.compile(r"^linalg_lu_factor_ex .*pivot=False")
LONGEST = 700
NEAR = {"f64": "rtol=1e-7 atol=1e-9", "f32": "rtol=2e-5 atol=2e-6", "f16": "rtol=2e-3 atol=2e-3", "bf16": "rtol=2e-2 atol=2e-2"}


def known():
    """Operators with cases in other files."""
    names = set()
    for name in os.listdir(DATA):
        if name in ("samples.txt", "seldom.txt") or name.startswith("grad_"):
            continue
        with open(os.path.join(DATA, name), encoding="utf-8") as file:
            names.update(re.findall(r"^([\w.]+) \| ", file.read(), re.M))
    return names


def main(w):
    others = known()
    for op, twin, samples in declarations():
        if not exists(op) or op in others:
            continue
        for text in samples:
            if OTHERWISE.match(op + " " + text) or "meta" in text:
                continue
            dtypes = re.findall(r"\b(bf16|f16|f32|f64|c64)\[", text) or ["f32"]
            dtypes = ["f32" if d == "c64" else d for d in dtypes]
            options = next(NEAR[d] for d in ("bf16", "f16", "f32", "f64") if d in dtypes)
            if op in ("_standard_gamma_grad", "_dirichlet_grad"):
                options = "rtol=1e-3"  # the reference approximates
            if RANDOM.match(op) or FREE.match(op):
                options = "values=no"
            options += (" cpu" if BY_VALUE.match(op) else "")
            for name in [op] + ([twin] if twin and text == samples[0] and exists(twin) else []):
                w.case(name, text, options)
                if len(w.lines[-1]) > LONGEST and text != samples[0]:
                    w.lines.pop()
                elif re.search(r"\| \w+Error: ", w.lines[-1]) and name == op:
                    print("the reference refuses:", w.lines[-1][:200])
                elif re.search(r"\| \w+Error: ", w.lines[-1]):
                    w.lines.pop()


if __name__ == "__main__":
    with Writer("samples") as writer:
        main(writer)
