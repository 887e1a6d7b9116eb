# SPDX-License-Identifier: MIT
"""Writes generated.json beside this file: what PyTorch logs in each scenario of generated_scenarios.py. Run it with a Python that
has torch 2.11."""

import json
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(here))

import generated_scenarios  # noqa: E402
import torch  # noqa: E402
import torch.nn.utils.prune  # noqa: E402,F401
import torch.utils.checkpoint  # noqa: E402,F401

if __name__ == "__main__":
    rows = {name: generated_scenarios.run(torch, name) for name in generated_scenarios.SCENARIOS}
    with open(os.path.join(here, "generated.json"), "w") as f:
        json.dump({"torch": torch.__version__, "scenarios": rows}, f, indent=0)
        f.write("\n")
    print(f"{len(rows)} scenarios, {sum(map(len, rows.values()))} lines")
