# SPDX-License-Identifier: MIT
"""Writes ragged.json, for test_ragged.py: what PyTorch says about nested and masked tensors; and ragged.pt, nested tensors
of both layouts.

usage: python make_ragged.py    (PyTorch 2.11)
"""
import json
import os
import sys
import warnings

import torch
import torch.masked

warnings.simplefilter("ignore")
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
from ragged_cases import results  # noqa: E402

with open(os.path.join(FOLDER, "ragged.json"), "w") as file:
    file.write("[\n%s\n]\n" % ",\n".join(json.dumps(row) for row in results(torch, torch.masked)))
parts = [torch.arange(6.0).reshape(2, 3), torch.arange(9.0).reshape(3, 3) + 10]
torch.save([torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True), torch.nested.nested_tensor(parts)],
           os.path.join(FOLDER, "ragged.pt"))
