# SPDX-License-Identifier: MIT
"""Writes limited.json, for test_limited.py: what PyTorch says about tensors of the dtypes that few operators take.

usage: python make_limited.py    (PyTorch 2.11)
"""
import json
import os
import sys

import numpy
import torch

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
from limited_cases import results  # noqa: E402

with open(os.path.join(FOLDER, "limited.json"), "w") as file:
    rows = ",\n".join(json.dumps(row) for row in results(torch, numpy))
    file.write("[\n%s\n]\n" % rows)
state = {"a": torch.tensor([1, 2], dtype=torch.uint16), "b": torch.tensor([1.5, -3]).to(torch.float8_e4m3fn),
         "c": torch.tensor([2 ** 63 + 1], dtype=torch.uint64)}
torch.save(state, os.path.join(FOLDER, "limited.pt"))
