# SPDX-License-Identifier: MIT
"""Writes corners.json beside this file: what PyTorch does in each corner of corner_scenarios.py. Run it with a Python that has
torch 2.11."""

import json
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(here))

import corner_scenarios  # noqa: E402
import torch  # noqa: E402

if __name__ == "__main__":
    rows = {name: corner_scenarios.run(torch, name) for name in corner_scenarios.CORNERS}
    with open(os.path.join(here, "corners.json"), "w") as f:
        json.dump({"torch": torch.__version__, "corners": rows}, f, indent=0)
        f.write("\n")
    print(f"{len(rows)} corners, {sum(map(len, rows.values()))} lines")
