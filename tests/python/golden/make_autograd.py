# SPDX-License-Identifier: MIT
"""Writes autograd.json beside this file: what PyTorch does in each scenario of autograd_scenarios.py. Run it with a Python that has
torch 2.11."""

import json
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(here))

import autograd_scenarios  # noqa: E402
import torch  # noqa: E402

if __name__ == "__main__":
    rows = {name: autograd_scenarios.run(torch, name) for name in autograd_scenarios.SCENARIOS}
    with open(os.path.join(here, "autograd.json"), "w") as f:
        json.dump({"torch": torch.__version__, "scenarios": rows}, f, indent=0)
        f.write("\n")
    print(f"{len(rows)} scenarios, {sum(map(len, rows.values()))} lines")
