#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's own list of operators (its OpInfo), over the inputs that its own tests make, beside Tenon.

    PYTHONPATH=build/python python3 tests/python/compare_opinfo.py [--seed N] [--dtypes float32,complex64] [--limit N] [NAME…]

Runs where PyTorch and NumPy are installed. For each entry the function, its method, its in-place form and its operator of Python are
called with the samples of every dtype, with gradients where the entry has them, into results that are given, and with the inputs that
PyTorch expects to be refused. Prints each kind of difference with one call that shows it, and a table by operator."""

import argparse
import collections
import inspect
import itertools
import operator
import os
import re
import types

os.environ.setdefault("OMP_NUM_THREADS", "1")

import operator_calls  # noqa: E402
from compare_operators import answers, who_ended  # noqa: E402
from operator_calls import as_tenon, coarse, compare_results, gradients, is_zero, leaves, same, same_error, same_tensor, torch  # noqa: E402
from operator_differences import reason_for, reason_for_text  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import tenon  # noqa: E402

DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "bool")
SHORT = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128",
         "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8"}


# ---- the same function in Tenon ----

def named(library, name):
    found = library
    for part in name.removeprefix("torch.").split("."):
        found = getattr(found, part, None)
    return found


def in_tenon(value, seen=None):
    """What stands for a function, module or constant of PyTorch's tests in Tenon: functions are made again with other globals."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)]
    if value is torch:
        return tenon
    if isinstance(value, types.ModuleType) and value.__name__.startswith("torch."):
        return named(tenon, value.__name__[6:]) or value
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return getattr(tenon, str(value).split(".")[1])
    if value is torch.Tensor:
        return tenon.Tensor
    if isinstance(value, (torch._ops.OpOverloadPacket, torch._ops.OpOverload)):
        return named(tenon, "ops." + str(value).replace("aten::", "aten."))
    if isinstance(value, types.FunctionType):
        if value.__name__ == "freeze_rng_state":
            return value
        for home in (torch, torch.nn.functional, torch.linalg, torch.special, torch.fft, torch.Tensor):
            if getattr(home, value.__name__, None) is value:
                return getattr(in_tenon(home), value.__name__, None)
        words = dict(value.__globals__)
        made = types.FunctionType(value.__code__, words, value.__name__, value.__defaults__, None if value.__closure__ is None else
                                  tuple(types.CellType() for _ in value.__closure__))
        seen[id(value)] = made
        for cell, mine in zip(value.__closure__ or (), made.__closure__ or ()):
            mine.cell_contents = in_tenon(cell.cell_contents, seen)
        for word in value.__code__.co_names:
            if word in words:
                words[word] = in_tenon(words[word], seen)
        words["torch"] = tenon
        made.__kwdefaults__ = value.__kwdefaults__
        return made
    if isinstance(value, torch.nn.Module):
        names = inspect.signature(type(value).__init__).parameters
        return named(tenon.nn, type(value).__name__)(**{name: getattr(value, name) for name in names if hasattr(value, name)})
    if callable(value) and getattr(value, "__name__", None):
        for home in (torch, torch.nn.functional, torch.linalg, torch.special, torch.fft, torch._C._nn, torch.Tensor, torch._C._linalg):
            if getattr(home, value.__name__, None) is value:
                return getattr(in_tenon(home), value.__name__, None)
    return value


def forms(entry):
    """(what it is called, PyTorch's function, Tenon's)."""
    theirs = entry.op
    mine = named(tenon, entry.name) if named(torch, entry.name) is theirs else in_tenon(theirs)
    yield "function", theirs, mine
    for kind in ("method_variant", "inplace_variant", "operator_variant", "inplace_operator_variant"):
        theirs = getattr(entry, kind, None)
        if theirs is None:
            continue
        if getattr(operator, getattr(theirs, "__name__", ""), None) is theirs:
            yield kind, theirs, theirs
        elif getattr(theirs, "__name__", "") and getattr(torch.Tensor, theirs.__name__, None) is theirs:
            yield kind, theirs, getattr(tenon.Tensor, theirs.__name__, None)


# ---- inputs ----

def copied(value, grad=False):
    """The argument again, with its own storage, strides and offset."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.device.type != "cpu":
            return value.detach()
        value = value.resolve_conj().resolve_neg() if value.is_conj() or value.is_neg() else value
        made = torch.empty(0, dtype=value.dtype)
        made.set_(value.detach().untyped_storage().clone(), value.storage_offset(), value.size(), value.stride())
        return made.requires_grad_() if grad and value.requires_grad and (made.is_floating_point() or made.is_complex()) else made
    if isinstance(value, (list, tuple)):
        items = [copied(item, grad) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: copied(item, grad) for key, item in value.items()}
    return value


def for_tenon(value):
    """The same arguments for Tenon, functions and modules among them."""
    if isinstance(value, dict):
        return {key: for_tenon(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and any(callable(item) for item in value):
        return type(value)(for_tenon(item) for item in value)
    return in_tenon(value) if callable(value) and not isinstance(value, torch.Tensor) else as_tenon(value)


def shown(value):
    if isinstance(value, torch.Tensor):
        word = str(value.dtype).split(".")[1]
        if value.layout is not torch.strided:
            return "%s %s%s" % (value.layout, word, list(value.size()))
        usual = torch.empty(value.size(), device="meta").stride()
        return "%s[%s]%s%s" % (SHORT.get(word, word), ",".join(str(n) for n in value.size()), "" if value.stride() == usual or not value.numel() else
                             ".strides(%s)" % ",".join(str(n) for n in value.stride()), "=%s" % value.item() if value.dim() == 0 else "")
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(shown(item) for item in value)
    return repr(value)


def text_of(given, words):
    return ", ".join([shown(value) for value in given] + ["%s=%s" % (key, shown(value)) for key, value in words.items()])


Call = collections.namedtuple("Call", "form theirs mine given words grad what")


def calls_of(entry, dtype, options):
    """[Call] of one entry and dtype."""
    calls = []
    which = list(forms(entry))
    grad = entry.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    make = [entry.sample_inputs] if options.samples_only else [entry.sample_inputs, entry.reference_inputs]
    for source in make:
        torch.manual_seed(options.seed)
        try:
            samples = list(itertools.islice(source("cpu", dtype, requires_grad=grad), options.limit))
        except Exception:  # noqa: BLE001: not for this dtype
            continue
        for i, sample in enumerate(samples):
            given = (sample.input, *sample.args)
            for form, theirs, mine in which:
                if form == "function" or source == entry.sample_inputs:
                    calls.append(Call(form, theirs, mine, given, sample.kwargs, grad, ""))
            if entry.supports_out and source == entry.sample_inputs and i < 2:
                calls += [Call("out", which[0][1], which[0][2], given, sample.kwargs, False, kind) for kind in OUTS]
    return calls


def errors_of(entry):
    if entry.error_inputs_func is None:
        return []
    try:
        found = list(entry.error_inputs("cpu"))
    except Exception:  # noqa: BLE001
        return []
    form, theirs, mine = next(iter(forms(entry)))
    return [Call("refused", theirs, mine, (one.sample_input.input, *one.sample_input.args), one.sample_input.kwargs, False, "") for one in found]


# ---- results that are given ----

def same_out(result):
    return torch.zeros_like(result)


def empty_out(result):
    return torch.empty(0, dtype=result.dtype)


def strided_out(result):
    return torch.zeros([2 * n for n in result.size()], dtype=result.dtype)[tuple(slice(None, None, 2) for _ in result.size())]


def turned_out(result):
    return torch.zeros(tuple(reversed(result.size())), dtype=result.dtype).permute(tuple(reversed(range(result.dim()))))


def larger_out(result):
    return torch.zeros((*result.size(), 2), dtype=result.dtype)


def of_dtype(dtype):
    return lambda result: torch.zeros(result.size(), dtype=dtype)


OUTS = {"same": same_out, "empty": empty_out, "strided": strided_out, "turned": turned_out, "larger": larger_out, "float64": of_dtype(torch.float64),
        "int64": of_dtype(torch.int64), "complex64": of_dtype(torch.complex64), "float16": of_dtype(torch.float16), "bool": of_dtype(torch.bool)}


# As operator_differences.py has them.
AS_RULES = {"same": "fits", "empty": "f32[0]", "strided": "f32[2].strided", "turned": "f32[2,2].t", "larger": "larger", "float64": "f64[]", "int64": "i64[]",
            "complex64": "c64[]", "float16": "f16[]", "bool": "bool[]"}


def with_out(call, result):
    """The words of the call with results that are given, or None."""
    if not call.what:
        return call.words
    if isinstance(result, torch.Tensor):
        return dict(call.words, out=copied(OUTS[call.what](result)))
    if isinstance(result, tuple) and all(isinstance(t, torch.Tensor) for t in result):
        return dict(call.words, out=tuple(copied(OUTS[call.what](t)) for t in result))
    return None


# ---- comparing ----

RANDOM = re.compile(r"fractional_max_pool|multi_head_attention_forward|lowrank")


def is_random(op, given, words):
    return bool(RANDOM.search(op)) or operator_calls.is_random(op, given, words)


def tried(library, function, given, words):
    operator_calls.CALLING[:] = library.__name__.encode()
    if function is None:
        return None, AttributeError("not there")
    try:
        return function(*given, **words), None
    except Exception as error:  # noqa: BLE001
        return None, error


def without_counterpart(value):
    """Whether a dtype or layout is there that Tenon has only the name of: it says so wherever a tensor is made."""
    return any(t.dtype == torch.complex32 or t.layout is not torch.strided for t in leaves([value])) or value is torch.complex32


def call_alone(call):
    """Tenon's call without PyTorch's, with the results that PyTorch's would be given."""
    words = with_out(call, tried(torch, call.theirs, copied(call.given), copied(call.words))[0])
    tried(tenon, call.mine, for_tenon(copied(call.given)), for_tenon(copied(words)))


def compare_call(op, call):
    given, words = copied(call.given), copied(call.words)
    if call.what:
        result, error = tried(torch, call.theirs, copied(call.given), copied(call.words))
        words = None if error else with_out(call._replace(words=words), result)
        if words is None or without_counterpart(words["out"]):
            return None, None
    try:
        mine_given, mine_words = for_tenon(given), for_tenon(words)
    except RuntimeError as error:  # a tensor that there is not: of 65 dimensions
        return same_error(error, tried(torch, call.theirs, given, words)[1]), None
    theirs, their_error = tried(torch, call.theirs, given, words)
    mine, my_error = tried(tenon, call.mine, mine_given, mine_words)
    if my_error is not None or their_error is not None:
        texts = [str(error).split("\n")[0].strip() for error in (my_error, their_error)]
        return same_error(my_error, their_error), texts if my_error is not None and their_error is not None else None
    found = compare_results(op, (given, words), (mine_given, mine_words), mine, theirs) if not RANDOM.search(op) else same(mine, theirs, values=False)
    if found is not None or not call.grad or is_random(op, given, words):
        return found or None, None
    given, words = copied(call.given, True), copied(call.words, True)
    mine_given, mine_words = for_tenon(given), for_tenon(words)
    if "inplace" in call.form:
        given, mine_given = (given[0] * 1, *given[1:]), (mine_given[0] * 1, *mine_given[1:])
    theirs, their_error = tried(torch, call.theirs, given, words)
    if their_error is not None:
        return None, None
    try:
        wanted = gradients(torch, theirs, given, words)
    except Exception:  # noqa: BLE001
        return None, None
    if wanted is None:
        return None, None
    mine, error = tried(tenon, call.mine, mine_given, mine_words)
    if error is not None:
        return "with gradients: %s" % str(error).split("\n")[0][:100], None
    try:
        got = gradients(tenon, mine, mine_given, mine_words)
    except Exception as error:  # noqa: BLE001
        return "gradient: %s" % str(error).split("\n")[0][:100], None
    if got is None:
        return None if all(is_zero(y) for y in wanted) else "no gradient", None
    among = coarse(given, words, True) + [t.dtype for t in leaves([theirs]) if t.is_floating_point() or t.is_complex()]
    for x, y in zip(got, wanted):
        if (x is None) != (y is None) and not (is_zero(x) and is_zero(y)):
            return "one gradient is None", None
        found = x is not None and y is not None and same_tensor(x, y, among=among)
        if found:
            return "gradient: " + found, None
    return None, None


TYPES = re.compile(r"\b(c10::)?(complex<\w+>|Complex\w+|complex\d+|Float|float\d*|Double|double|Half|BFloat16|bfloat16|Long|long int|Int|int\d*|Short|short|"
                   r"Char|signed char|Byte|unsigned char|uint8|Bool|bool)\b")


def kind_of(found):
    """The difference without its numbers and dtypes."""
    return TYPES.sub("T", re.sub(r"-?\b\d+(\.\d+)?(e[-+]?\d+)?", "#", found))


def names_of(op, call):
    """What the rules call the operator."""
    return (op + "_", op) if "inplace" in call.form else (op, op + ".out") if call.what else (op,)


def show(name, row, kinds):
    print("%-40s %6d calls %4d on purpose %4d differ" % (name, *row))
    for _, seen in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print("    %4d %s\n         %s" % (len(seen), seen[0][0][:300], seen[0][1][:400]), flush=True)


def run(options):
    totals, kinds = {}, {}
    texts, missing = [0, 0, 0], []
    entries = op_db
    if options.after:
        entries = entries[1 + [entry.name for entry in op_db].index(options.after):]
    for entry in entries:
        name = entry.name + ("." + entry.variant_test_name if entry.variant_test_name else "")
        if options.names and not any(re.fullmatch(word, name) for word in options.names):
            continue
        op = entry.name.replace("nn.functional.", "").replace(".", "_")
        calls = errors_of(entry)
        for word in options.dtypes.split(","):
            dtype = getattr(torch, word)
            if dtype in entry.supported_dtypes("cpu"):
                calls += calls_of(entry, dtype, options)
        if calls and calls[0].mine is None:
            missing.append(name)
            continue
        calls = [call for call in calls if not any(without_counterpart(value) for value in (*call.given, *call.words.values()))]
        row = totals.setdefault(name, [0, 0, 0])
        for (_, at), found, lost in answers([(op, i) for i in range(len(calls))], lambda op, i: compare_call(op, calls[i])):  # noqa: B023
            call = calls[at]
            text = "%s %s(%s)%s" % (call.form, name, text_of(call.given, call.words), " into out=" + AS_RULES[call.what] if call.what else "")
            found, words = found or ("the process %s (%s)" % (lost, who_ended((op, at), lambda op, i: call_alone(calls[i]))), None)  # noqa: B023
            if found and re.match(r"the process (ended|hangs) \(torch\)", found):
                continue
            row[0] += 1
            if found is None and words:
                texts[0] += 1
                words[0] = words[0].replace("tenon.", "torch.")
                if words[0] != words[1]:
                    reason = any(reason_for_text(one, *words) for one in names_of(op, call))
                    texts[1 if reason else 2] += 1
                    if not reason:
                        kinds.setdefault((name, "text: %s" % kind_of(words[0])), []).append((text, "%s | %s" % tuple(words)))
            if found is None:
                continue
            if any(reason_for(one, text, found) for one in names_of(op, call)):
                row[1] += 1
            else:
                row[2] += 1
                kinds.setdefault((name, call.form + " " + kind_of(found)), []).append((text, found))
        show(name, row, {kind: seen for (whose, kind), seen in kinds.items() if whose == name})
    return totals, missing, texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--limit", type=int, default=40, help="so many samples of an operator and dtype")
    parser.add_argument("--samples-only", action="store_true", help="without the reference inputs")
    parser.add_argument("--after", metavar="NAME", help="only what comes after this entry in PyTorch's list")
    parser.add_argument("names", nargs="*", help="regular expressions: these entries alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    totals, missing, texts = run(options)
    count = [sum(row[i] for row in totals.values()) for i in range(3)]
    print("\n%d of %d calls of %d entries differ, %d on purpose; %d of %d errors have another text, %d for a reason"
          % (count[2], count[0], len(totals), count[1], texts[2], texts[0], texts[1]))
    print("Without a counterpart in Tenon: %s" % (", ".join(missing) or "none"))


if __name__ == "__main__":
    main()
