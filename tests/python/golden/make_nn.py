# SPDX-License-Identifier: MIT
"""Writes nn.npz and nn.json beside this file: what PyTorch gives for the cases and scenarios of nn_cases.py and
nn_scenarios.py. Run it with a Python that has torch 2.11 and NumPy."""

import json
import os
import sys

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(here))

import nn_cases  # noqa: E402
import nn_scenarios  # noqa: E402
import torch  # noqa: E402
import torch.nn.attention.flex_attention  # noqa: E402, F401
import torch.nn.utils.prune  # noqa: E402, F401


def main():
    arrays, texts = {}, []
    for i, case in enumerate(nn_cases.CASES):
        got = nn_cases.run(torch, torch.nn, *case)
        text = {"case": case[0]}
        for key, value in got.items():
            if isinstance(value, np.ndarray):
                arrays[f"{i}/{key}"] = value.astype(np.float32) if value.dtype.kind == "f" else value.astype(np.int16)
            else:
                text[key] = value
        texts.append(text)
    scenarios = {name: nn_scenarios.run(torch, torch.nn, name) for name in nn_scenarios.NAMES}
    # One archive member for all numbers: hundreds of members would be mostly headers.
    flat = [arrays[k].ravel().astype(np.float64) for k in arrays]
    index = {k: list(arrays[k].shape) for k in arrays}
    np.savez_compressed(os.path.join(here, "nn.npz"), values=np.concatenate(flat).astype(np.float32))
    with open(os.path.join(here, "nn.json"), "w") as f:
        json.dump({"torch": torch.__version__, "cases": texts, "arrays": index, "scenarios": scenarios}, f, indent=0)
        f.write("\n")
    print(f"{len(texts)} cases, {len(index)} arrays, {len(scenarios)} scenarios")


main()
