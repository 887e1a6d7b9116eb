# SPDX-License-Identifier: MIT
"""Writes optim.json and lr.json beside this file: what PyTorch's optimizers and schedules do, step by step.

  python3 tests/python/golden/make_optim.py      needs PyTorch 2.11
"""

import copy
import json
import os
import warnings

import torch
from torch.optim import lr_scheduler as L
from torch.optim import swa_utils as S

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 6

OPTIMIZERS = [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "dampening": 0.5, "maximize": True}), ("SGD", {"foreach": True, "weight_decay": 0.1}),
    ("Adam", {}), ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("Adam", {"fused": True}),
    ("Adam", {"foreach": True, "lr": 0.1, "betas": [0.5, 0.75]}), ("AdamW", {}),
    ("AdamW", {"amsgrad": True, "maximize": True, "lr": 0.05}), ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.01}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}), ("Adadelta", {}),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True}), ("Adamax", {}), ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {}), ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}), ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "lr": 0.1}), ("ASGD", {"t0": 3}), ("Rprop", {}), ("Adafactor", {}),
    ("Adafactor", {"weight_decay": 0.1}), ("Muon", {}), ("Muon", {"adjust_lr_fn": "match_rms_adamw"}),
]

# Each is an expression in L (the module), S (swa_utils) and o (an optimizer with two groups).
SCHEDULES = [
    "L.StepLR(o, 3)", "L.MultiStepLR(o, [2, 4, 4, 7])", "L.ConstantLR(o, 0.5, 4)", "L.LinearLR(o, 0.2, 0.9, 6)",
    "L.ExponentialLR(o, 0.9)", "L.CosineAnnealingLR(o, 5, 0.01)", "L.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)",
    "L.CyclicLR(o, 0.1, 1.0, 4, 3)", "L.CyclicLR(o, 0.1, 1.0, 4, mode='triangular2')",
    "L.CyclicLR(o, 0.1, [1.0, 2.0], 4, mode='exp_range', gamma=0.95)", "L.OneCycleLR(o, 0.5, 24)",
    "L.OneCycleLR(o, [0.5, 0.6], epochs=4, steps_per_epoch=6, three_phase=True, anneal_strategy='linear')",
    "L.LambdaLR(o, lambda e: 0.9 ** e)", "L.MultiplicativeLR(o, [lambda e: 0.9, lambda e: 0.8])",
    "L.PolynomialLR(o, 7, 2.0)",
    "L.SequentialLR(o, [L.LinearLR(o, 0.1, total_iters=4), L.CosineAnnealingLR(o, 10)], [4])",
    "L.SequentialLR(o, [L.ConstantLR(o, 0.1, total_iters=4), L.CosineAnnealingWarmRestarts(o, 4), "
    "L.ExponentialLR(o, 0.9)], [4, 9])",
    "L.ChainedScheduler([L.ConstantLR(o, 0.1, total_iters=4), L.ExponentialLR(o, 0.9)])",
    "S.SWALR(o, 0.05, 5)", "S.SWALR(o, [0.05, 0.1], 5, 'linear')",
]

# Mistakes: an expression, and the text of the ValueError.
MISTAKES = [
    "L.CosineAnnealingWarmRestarts(o, 0)", "L.CosineAnnealingWarmRestarts(o, 1, 0)", "L.CyclicLR(o, [0.1], 1.0)",
    "L.CyclicLR(o, 0.1, 1.0, mode='x')", "L.OneCycleLR(o, 0.1)", "L.OneCycleLR(o, 0.1, 0)",
    "L.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=3)", "L.OneCycleLR(o, 0.1, epochs=1, steps_per_epoch=0)",
    "L.OneCycleLR(o, 0.1, 10, pct_start=2)", "L.OneCycleLR(o, 0.1, 10, anneal_strategy='x')",
    "L.ReduceLROnPlateau(o, factor=1.0)", "L.ReduceLROnPlateau(o, mode='x')",
    "L.ReduceLROnPlateau(o, threshold_mode='x')", "L.ReduceLROnPlateau(o, min_lr=[1])", "L.LambdaLR(o, [abs])",
    "L.SequentialLR(o, [L.ConstantLR(o)], [3])", "L.SequentialLR(o, [], [])", "L.ChainedScheduler([])",
    "L.ConstantLR(o, 2.0)", "L.LinearLR(o, 0.0)", "L.LinearLR(o, 0.1, 2.0)",
    "L.ChainedScheduler([L.ReduceLROnPlateau(o)])",
]


def parameters(name):
    g = torch.Generator().manual_seed(1)
    made = [torch.nn.Parameter(torch.randn(*shape, generator=g)) for shape in ((3, 4), (5,), (6, 2))]
    return [p for p in made if name != "Muon" or p.dim() == 2]


def optimizer_case(name, options):
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    params = parameters(name)
    start = [p.tolist() for p in params]
    optimizer = getattr(torch.optim, name)(params, **options)
    g, grads = torch.Generator().manual_seed(2), []
    for _ in range(STEPS):
        for p in params:
            p.grad = torch.randn(p.shape, generator=g)
        grads.append([p.grad.tolist() for p in params])
        optimizer.step()
    state = optimizer.state_dict()
    return {
        "name": name, "options": options, "start": start, "grads": grads, "end": [p.tolist() for p in params],
        "state": [{key: value.tolist() for key, value in state["state"].get(i, {}).items()}
                  for i in range(len(params))],
        "group": {key: value for key, value in state["param_groups"][0].items() if key != "params"},
        "repr": repr(optimizer),
    }


def two_groups():
    params = [torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))]
    return torch.optim.SGD([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.3}], lr=0.1, momentum=0.9)


def schedule_case(text, epochs):
    optimizer = two_groups()
    schedule = eval(text, {"L": L, "S": S, "o": optimizer})
    rows = []
    for i in range(20):
        rows.append([[group["lr"], group["momentum"]] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step(i) if epochs and i % 3 == 2 else schedule.step()
    return {"text": text, "epochs": epochs, "rows": rows, "last": list(schedule.get_last_lr()),
            "keys": sorted(schedule.state_dict())}


def plateau_case(options):
    g = torch.Generator().manual_seed(3)
    metrics = torch.rand(50, generator=g).tolist()
    optimizer = two_groups()
    schedule = L.ReduceLROnPlateau(optimizer, **options)
    rates = []
    for metric in metrics:
        schedule.step(metric)
        rates.append([group["lr"] for group in optimizer.param_groups])
    return {"options": options, "metrics": metrics, "rates": rates}


def mistake(text):
    try:
        eval(text, {"L": L, "S": S, "o": two_groups()})
    except ValueError as error:
        return {"text": text, "message": str(error)}
    raise SystemExit("no ValueError: " + text)


def lbfgs_case(search):
    g = torch.Generator().manual_seed(0)
    a, y = torch.randn(30, 10, generator=g, dtype=torch.float64), torch.randn(30, generator=g, dtype=torch.float64)
    w = torch.nn.Parameter(torch.zeros(10, dtype=torch.float64))
    optimizer = torch.optim.LBFGS([w], lr=0.5, history_size=5, line_search_fn=search, max_iter=8)

    def closure():
        optimizer.zero_grad()
        loss = ((torch.sin(a @ w) - y) ** 2).mean() + (w ** 4).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(4)]
    state = optimizer.state_dict()["state"][0]
    return {"search": search, "a": a.tolist(), "y": y.tolist(), "losses": losses, "w": w.tolist(),
            "func_evals": state["func_evals"], "n_iter": state["n_iter"]}


def exchange():
    """A state_dict as a file, for loading on the other side."""
    params = parameters("AdamW")
    optimizer = torch.optim.AdamW(params, lr=0.01)
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer.step()
    torch.save(copy.deepcopy(optimizer.state_dict()), os.path.join(HERE, "adamw.pt"))


def write(name, value):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=None, separators=(",", ":"))
        file.write("\n")


def main():
    warnings.simplefilter("ignore")
    write("optim.json", {"cases": [optimizer_case(*case) for case in OPTIMIZERS],
                         "lbfgs": [lbfgs_case(None), lbfgs_case("strong_wolfe")]})
    closed = [text for text in SCHEDULES if not text.startswith(("L.SequentialLR", "L.ChainedScheduler"))]
    write("lr.json", {"schedules": [schedule_case(text, False) for text in SCHEDULES]
                      + [schedule_case(text, True) for text in closed],
                      "plateau": [plateau_case(options) for options in (
                          {}, {"mode": "max", "patience": 2},
                          {"threshold_mode": "abs", "threshold": 0.1, "patience": 1, "cooldown": 2, "min_lr": 0.001})],
                      "mistakes": [mistake(text) for text in MISTAKES]})
    exchange()


if __name__ == "__main__":
    main()
