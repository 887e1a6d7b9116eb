#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's own lists of modules and optimizers (ModuleInfo, OptimizerInfo), over the inputs that its own tests make, beside Tenon.

    PYTHONPATH=build/python python3 tests/python/compare_modinfo.py [--seed N] [--dtypes float32,float64] [NAME…]

Runs where PyTorch and NumPy are installed. Of a module: its text, the names, sizes and dtypes in its state, and, with the same state,
results and gradients of inputs and parameters, in training and not. Of an optimizer: parameters and state after a few steps. Of both:
what is refused. Prints each call that differs."""

import argparse
import os
import re

os.environ.setdefault("OMP_NUM_THREADS", "1")

import operator_calls  # noqa: E402
from compare_operators import answers  # noqa: E402
from compare_opinfo import copied, in_tenon, text_of, without_counterpart  # noqa: E402
from operator_calls import as_tenon, is_zero, leaves, same, same_error, same_tensor, scalar_of, torch  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402
from torch.testing._internal.common_optimizers import optim_db  # noqa: E402

import tenon  # noqa: E402

STEPS = 5
RANDOM = re.compile(r"Dropout|RReLU|FractionalMaxPool")


def tried(library, function, *given, **words):
    operator_calls.CALLING[:] = library.__name__.encode()
    try:
        return function(*given, **words), None
    except Exception as error:  # noqa: BLE001
        return None, error


def failed(mine, theirs):
    """(what differs, texts) of two exceptions, of which one may be None."""
    texts = [str(error).split("\n")[0].strip().replace("tenon.", "torch.") for error in (mine, theirs)]
    return same_error(mine, theirs) or (None if texts[0] == texts[1] else "text: %s | %s" % tuple(texts))


TWINS = {}  # of parameters: what is one tensor in two places is one in Tenon, too


def twin_of(value):
    """An argument for Tenon: tensors and functions too."""
    if isinstance(value, torch.nn.Parameter):
        TWINS.setdefault(id(value), (value, tenon.nn.Parameter(as_tenon(value.detach()))))
        return TWINS[id(value)][1]
    if isinstance(value, (torch.nn.Module, type)) or callable(value):
        return in_tenon(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(twin_of(item) for item in value)
    if isinstance(value, dict):
        return {key: twin_of(item) for key, item in value.items()}
    return as_tenon(value)


# ---- modules ----

def state_of(module):
    return [(name, tuple(t.size()), str(t.dtype).split(".")[1]) for name, t in module.state_dict().items()
            if isinstance(t, (torch.Tensor, tenon.Tensor)) and "Uninitialized" not in type(t).__name__]


def compare_module(info, made, training, dtype=torch.float32):
    kind = getattr(tenon.nn, info.module_cls.__name__, None)
    if kind is None:
        return "not there"
    args, words = made.constructor_input.args, made.constructor_input.kwargs
    if any(isinstance(value, torch.nn.Module) for value in (*args, *words.values())):
        return None  # made of a module: its parts are compared alone
    theirs, their_error = tried(torch, info.module_cls, *args, **words)
    mine, my_error = tried(tenon, kind, *twin_of(args), **twin_of(words))
    if my_error or their_error:
        return failed(my_error, their_error)
    if "Lazy" in info.name:  # sizes are those of the first input
        tried(torch, theirs, *copied(made.forward_input.args), **copied(made.forward_input.kwargs))
        tried(tenon, mine, *as_tenon(copied(made.forward_input.args)), **as_tenon(copied(made.forward_input.kwargs)))
    if repr(mine) != repr(theirs):
        return "repr %r, not %r" % (repr(mine), repr(theirs))
    if state_of(mine) != state_of(theirs):
        return "state %s, not %s" % (state_of(mine), state_of(theirs))
    mine.load_state_dict({name: as_tenon(t.detach().clone()) for name, t in theirs.state_dict().items() if isinstance(t, torch.Tensor)}, strict=False)
    for module in (mine, theirs):
        module.train(training)
    if dtype.is_floating_point and "Lazy" not in info.name:
        mine, theirs = mine.to(as_tenon(dtype)), theirs.to(dtype)
    given, named = copied(made.forward_input.args, True), copied(made.forward_input.kwargs, True)
    if any(without_counterpart(value) for value in (*given, *named.values())):
        return None
    mine_given, mine_named = as_tenon(given), as_tenon(named)
    wanted, their_error = tried(torch, theirs, *given, **named)
    got, my_error = tried(tenon, mine, *mine_given, **mine_named)
    if my_error or their_error:
        return failed(my_error, their_error)
    values = not (training and RANDOM.search(info.module_cls.__name__)) and not RANDOM.match("Fractional" if "Fractional" in info.module_cls.__name__ else "")
    found = same(got, wanted, values=values)
    if found or not values:
        return found
    for (name, x), (_, y) in zip(mine.state_dict().items(), theirs.state_dict().items()):
        found = found or (isinstance(y, torch.Tensor) and same_tensor(x, y) and "state %s: %s" % (name, same_tensor(x, y)))
    return found or compare_gradients(got, wanted, [*leaves(mine_given), *leaves(mine_named), *mine.parameters()],
                                      [*leaves(given), *leaves(named), *theirs.parameters()])


def compare_gradients(got, wanted, mine, theirs):
    total = scalar_of(wanted)
    if total is None:
        return None
    total.backward()
    own, error = tried(tenon, scalar_of, got)
    if error is None and own is not None:
        _, error = tried(tenon, own.backward)
    if error is not None or own is None:
        return "gradient: %s" % (error or "none")
    for x, y in zip(mine, theirs):
        if (x.grad is None) != (y.grad is None) and not (is_zero(x.grad) and is_zero(y.grad)):
            return "one gradient is None"
        found = x.grad is not None and y.grad is not None and same_tensor(x.grad, y.grad)
        if found:
            return "gradient: " + found
    return None


def modules(options):
    """(name, what to show, what compares)."""
    for info in module_db:
        for word in options.dtypes.split(","):
            dtype = getattr(torch, word)
            for training in (True, False):
                torch.manual_seed(options.seed)
                try:
                    inputs = list(info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=dtype.is_floating_point, training=training))
                except Exception:  # noqa: BLE001: not for this dtype
                    continue
                for made in inputs:
                    if made.forward_input is None:
                        continue
                    text = "%s(%s)(%s) %s" % (info.name, text_of(made.constructor_input.args, made.constructor_input.kwargs),
                                              text_of(made.forward_input.args, made.forward_input.kwargs), "training" if training else "")
                    yield info.name, text, lambda info=info, made=made, training=training, dtype=dtype: compare_module(info, made, training, dtype)
        if info.module_error_inputs_func:
            for one in info.module_error_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True):
                made = one.module_error_input
                text = "%s(%s) refused" % (info.name, text_of(made.constructor_input.args, made.constructor_input.kwargs))
                yield info.name, text, lambda info=info, made=made: compare_module(info, made, True)


# ---- optimizers ----

def parameters(library, seed):
    generator = torch.Generator().manual_seed(seed)
    values = [torch.randn(sizes, generator=generator) for sizes in ((3, 4), (4,), ())]
    return [t.clone().requires_grad_() if library is torch else as_tenon(t).requires_grad_() for t in values]


def stepped(library, kind, words, seed):
    own = parameters(library, seed)
    optimizer = kind(own, **words)
    shift = library.linspace(-1, 1, 12).reshape(3, 4)

    def closure():
        optimizer.zero_grad()
        loss = ((own[0] - shift) ** 2).sum() + (own[1] ** 4).sum() * 0.1 + own[2].cosh() + (own[0] @ own[1]).sum() ** 2 * 0.1
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)
    return own, optimizer


def plain_state(state):
    """Sorted, comparable."""
    if isinstance(state, dict):
        return [(str(key), plain_state(state[key])) for key in sorted(state, key=str)]
    if isinstance(state, (list, tuple)):
        return [plain_state(item) for item in state]
    return state


def compare_optimizer(info, words, seed):
    kind = getattr(tenon.optim, info.optim_cls.__name__, None)
    if kind is None:
        return "not there"
    theirs, their_error = tried(torch, stepped, torch, info.optim_cls, words, seed)
    mine, my_error = tried(tenon, stepped, tenon, kind, twin_of(words), seed)
    if my_error or their_error:
        return failed(my_error, their_error)
    for x, y in zip(mine[0], theirs[0]):
        found = same_tensor(x, y)
        if found:
            return found
    found = same(plain_state(mine[1].state_dict()), plain_state(theirs[1].state_dict()))
    return "state: %s" % found if found else None if repr(mine[1]) == repr(theirs[1]) else "repr %r, not %r" % (repr(mine[1]), repr(theirs[1]))


def compare_refused(info, made):
    kind = getattr(tenon.optim, info.optim_cls.__name__, None)
    params = made.params
    if any(t.layout is not torch.strided for t in leaves([params])):
        return None
    _, their_error = tried(torch, info.optim_cls, params, **made.kwargs)
    _, my_error = tried(tenon, kind, twin_of(params), **twin_of(made.kwargs))
    return failed(my_error, their_error) if my_error or their_error else None


def optimizers(options):
    for info in optim_db:
        name = info.optim_cls.__name__
        for made in info.optim_inputs_func(device="cpu"):
            for flag in ("", *info.supported_impls):
                if flag in ("fused",) and "cpu" not in info.supports_fused_on:
                    continue
                words = dict(made.kwargs, **({flag: True} if flag else {}))
                if "capturable" in words:
                    continue
                yield name, "%s(%s)" % (name, text_of((), words)), lambda info=info, words=words: compare_optimizer(info, words, options.seed)
        for one in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
            made = one.optimizer_error_input
            if one.error_on.name == "CONSTRUCTION_ERROR" if hasattr(one.error_on, "name") else True:
                yield name, "%s(%s) refused" % (name, text_of((), made.kwargs)), lambda info=info, made=made: compare_refused(info, made)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("names", nargs="*", help="regular expressions: these alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for title, source in (("modules", modules), ("optimizers", optimizers)):
        calls = [entry for entry in source(options) if not options.names or any(re.fullmatch(word, entry[0]) for word in options.names)]
        differing = 0
        seen = set()
        for (_, at), found, lost in answers([("", i) for i in range(len(calls))], lambda _, i: (calls[i][2](),)):  # noqa: B023
            found = found[0] if found else "the process %s (%s)" % (lost, operator_calls.CALLING[:].decode())
            if found is None:
                continue
            differing += 1
            kind = (calls[at][0], re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", found))
            if kind not in seen:
                print("%s\n        %s" % (calls[at][1][:300], found[:500]), flush=True)
            seen.add(kind)
        print("\n%d of %d calls of %d %s differ\n" % (differing, len(calls), len({name for name, _, _ in calls}), title), flush=True)


if __name__ == "__main__":
    main()
