# SPDX-License-Identifier: MIT
"""Writes named.json, for test_dimension_names.py: what PyTorch says about named tensors.

usage: python make_named.py    (PyTorch 2.11)
"""
import json
import os
import sys
import warnings

import torch

warnings.simplefilter("ignore")
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
from named_cases import results  # noqa: E402

with open(os.path.join(FOLDER, "named.json"), "w") as file:
    file.write("[\n%s\n]\n" % ",\n".join(json.dumps(row) for row in results(torch)))
