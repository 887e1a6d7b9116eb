# SPDX-License-Identifier: MIT
"""Makes small files with PyTorch 2.11, for the tests of tenon.load: zip.pt, legacy.pt, module.pt, plain.pkl and
files.json, which says what is in them. Run in this folder."""

import collections
import json
import pickle

import torch


def state():
    base = torch.arange(10, dtype=torch.float32)
    return collections.OrderedDict(
        weight=torch.arange(6.).reshape(2, 3) / 4,
        view=base[2:6],
        base=base,
        turned=torch.arange(6.).reshape(2, 3).t(),
        half=torch.tensor([0.5, 1.5], dtype=torch.float16),
        brain=torch.tensor([0.1, -2.0], dtype=torch.bfloat16),
        double=torch.tensor(0.1, dtype=torch.float64),
        long=torch.tensor([1, -2]),
        int=torch.tensor([3], dtype=torch.int32),
        short=torch.tensor([3], dtype=torch.int16),
        char=torch.tensor([-3], dtype=torch.int8),
        byte=torch.tensor([200], dtype=torch.uint8),
        flag=torch.tensor([True, False]),
        complex=torch.tensor([1 + 2j]),
        empty=torch.zeros(0, 3),
        grad=torch.ones(2, requires_grad=True),
        parameter=torch.nn.Parameter(torch.tensor([1.0, 2.0])),
        plain={"lr": 0.1, "steps": 3, "name": "sgd", "betas": (0.9, 0.999), "nothing": None,
               "list": [1, [2.5, True]], "dtype": torch.float16, "size": torch.Size([2, 3]),
               "device": torch.device("cpu"), "set": {1, 2}, "bytes": b"abc"},
    )


if __name__ == "__main__":
    s = state()
    torch.save(s, "zip.pt")
    torch.save(s, "legacy.pt", _use_new_zipfile_serialization=False)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(torch.arange(p.numel()).reshape(p.shape) + i)
    torch.save(model.state_dict(), "module.pt")
    with open("plain.pkl", "wb") as f:  # without torch.save
        pickle.dump({"t": torch.arange(3), "p": torch.nn.Parameter(torch.tensor([1.5])), "v": torch.arange(6.).view(2, 3).t(),
                     "m": model}, f, 4)
    rows = {name: [str(t.dtype).split(".")[1], list(t.shape), list(t.stride()), t.requires_grad,
                   [repr(a) for a in t.detach().flatten().tolist()]]
            for name, t in s.items() if isinstance(t, torch.Tensor)}
    with open("files.json", "w") as f:
        json.dump(rows, f, indent=0)
        f.write("\n")
