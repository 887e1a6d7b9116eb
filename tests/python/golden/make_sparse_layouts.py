# SPDX-License-Identifier: MIT
"""Writes sparse_layouts.json, for test_sparse_layouts.py: what PyTorch says about sparse matrices by compressed rows and
columns; and sparse_layouts.pt, one of each layout.

usage: python make_sparse_layouts.py    (PyTorch 2.11)
"""
import json
import os
import sys
import warnings

import torch

warnings.simplefilter("ignore")
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
from sparse_layouts_cases import results  # noqa: E402

with open(os.path.join(FOLDER, "sparse_layouts.json"), "w") as file:
    file.write("[\n%s\n]\n" % ",\n".join(json.dumps(row) for row in results(torch)))
a = torch.tensor([[0.0, 2, 0, 0], [3, 0, 0, 4], [0, 0, 0, 0], [0, 0, 5, 0]])
torch.save([a.to_sparse_csr(), a.to_sparse_csc(), a.to_sparse_bsr((2, 2)), a.to_sparse_bsc((2, 2))],
           os.path.join(FOLDER, "sparse_layouts.pt"))
