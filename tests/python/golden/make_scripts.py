# SPDX-License-Identifier: MIT
"""Writes scripts.json, for test_scripts.py: what PyTorch gives for Sobol' sequences and reductions under masks.

usage: python make_scripts.py    (PyTorch 2.11)
"""
import json
import os

import torch
import torch.masked

REDUCTIONS = "sum mean prod amax amin var std logsumexp".split()
ALONG = "softmax log_softmax softmin cumsum cumprod".split()


def main():
    sobol = {str(n): torch.quasirandom.SobolEngine(n).fast_forward(5).draw(6, dtype=torch.float64)[:, -3:].tolist()
             for n in (1, 2, 7, 40, 512)}
    x = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
    mask = torch.tensor([[True, False, True], [False, True, True]])
    masked = {}
    for name in REDUCTIONS:
        for dim in (None, 0, 1):
            masked["%s %s" % (name, dim)] = getattr(torch.masked, name)(x, dim, mask=mask).tolist()
    for name in ALONG:
        masked[name] = getattr(torch.masked, name)(x, 1, mask=mask).tolist()
    masked["norm"] = torch.masked.norm(x, 2.0, 1, mask=mask).tolist()
    masked["normalize"] = torch.masked.normalize(x, 2.0, 1, mask=mask).tolist()
    masked["median"] = torch.masked.median(x, 1, mask=mask).tolist()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts.json"), "w") as file:
        json.dump({"sobol": sobol, "masked": masked}, file, indent=1)
        file.write("\n")


main()
