#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every operator that both libraries have, over the samples of its declaration, beside PyTorch.

    PYTHONPATH=build/python python3 tests/python/compare_operators.py [--write docs/user/torch-operators.md] [NAME…]

Runs where PyTorch and NumPy are installed. Compares values, dtypes, sizes, strides, errors and gradients, over the samples of
the declarations and over many more calls that operator_variants.py makes of them, prints a table by family of operators and each
call that differs. The tests do not need it: it is how the page in docs/user was made."""

import argparse
import json
import os
import re
import select
import signal
import time

from operator_calls import CALLING, ROOT, arguments, as_tenon, call, compare, functions_of, literal, tenon, torch
import operator_differences_layers  # noqa: F401: adds its rules
from operator_differences import ROUNDING, reason_for, reason_for_text, rules_used
from operator_rounding import is_rounding
from operator_variants import variants

LIMIT = 20  # seconds without an answer


def declarations():
    """(file, operator, samples, error samples)."""
    for name in sorted(os.listdir(os.path.join(ROOT, "ops"))):
        with open(os.path.join(ROOT, "ops", name), encoding="utf-8") as file:
            text = file.read().replace("\\\n", " ")
        for head, body in re.findall(r"^op ([\w.]+)\(.*?\{\n(.*?)^\}", text, re.M | re.S):
            yield (name[:-3], head, re.findall(r"^  sample\s+(.*)$", body, re.M),
                   re.findall(r"^  error\s+\w+ \"(?:[^\"\\]|\\.)*\" :\s*(.*)$", body, re.M))


def answers(calls, answer, limit=LIMIT):
    """What `answer` says of each (operator, arguments), from a child: some calls end PyTorch's process, or never come back. Of
    those (None, how it ended: "hangs", "ended" or "could not compare")."""
    at = 0
    while at < len(calls):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "w") as out:
                for op, text in calls[at:]:
                    out.write(json.dumps(answer(op, text)) + "\n")
                    out.flush()
            os._exit(0)
        os.close(writing)
        late, first = False, at
        with os.fdopen(reading) as lines:
            while True:
                if not select.select([lines], [], [], limit)[0]:
                    os.kill(child, signal.SIGKILL)
                    late = True
                    break
                line = lines.readline()
                if not line:
                    break
                yield calls[at], json.loads(line), None
                at += 1
        status = os.waitpid(child, 0)[1]
        if status != 0 and at > first:
            continue  # perhaps an earlier call wrote where it should not: once more, alone
        if status != 0:
            yield calls[at], None, "hangs" if late else "ended" if os.WIFSIGNALED(status) else "could not compare"
            at += 1


def who_ended(entry, alone):
    """Whose call ended the process: PyTorch's may have written where it should not, and Tenon's met it. alone(*entry): the call of
    Tenon's without PyTorch's."""
    if CALLING[:] == b"tenon" and not next(answers([entry], alone))[2]:
        return "torch"
    return CALLING[:].decode()


def each(calls, forward=False):
    """What compare says of each (operator, arguments)."""
    def answer(op, text):
        def made(grad):
            return arguments(text, grad)

        found, texts = compare(op, made, forward=forward)
        return (found + ROUNDING if found and is_rounding(op, made, found) else found), texts

    def alone(op, text):
        call(tenon, op, *(as_tenon(part) for part in arguments(text, False)))

    for entry, found, lost in answers(calls, answer):
        yield entry, ("the process %s (%s)" % (lost, who_ended(entry, alone)), None) if lost else found


class Tally:
    """What was seen: of the samples, or of the variants."""

    def __init__(self):
        self.rows, self.differing, self.meant, self.ended, self.texts, self.meant_texts = {}, [], [], [], [], []
        self.errors = self.same_texts = 0

    def add(self, family, op, text, found, texts):
        row = self.rows.setdefault(family, [0, 0, 0, 0])
        if found and re.match(r"the process (ended|hangs) \(torch\)", found):
            self.ended.append("%s(%s)" % (op, text))
            return
        reason = found and reason_for(op, text, found)
        row[1] += 1
        row[2] += found is None
        row[3] += bool(reason)
        if found:
            (self.meant if reason else self.differing).append((op, text, found, reason))
        elif texts:
            self.errors += 1
            self.same_texts += texts[0] == texts[1]
            if texts[0] != texts[1]:
                reason = reason_for_text(op, texts[0], texts[1])
                (self.meant_texts if reason else self.texts).append((op, text, texts[0], texts[1], reason))

    def total(self, i):
        return sum(row[i] for row in self.rows.values())


def run(options):
    tallies, missing = (Tally(), Tally()), []
    for family, op, samples, errors in declarations():
        if options.names and op.split(".")[0] not in options.names and op not in options.names:
            continue
        if not functions_of(torch, op):
            missing.append(op)
            continue
        for tally in tallies:
            tally.rows.setdefault(family, [0, 0, 0, 0])[0] += 1
        calls = [(op, sample) for sample in samples + errors] if not options.variants_only else []
        more = variants(op, samples, options.seed) if not options.samples_only else []
        started = time.time()
        for i, ((name, text), (found, texts)) in enumerate(each(calls + more, options.forward)):
            tallies[i >= len(calls)].add(family, name, text, found, texts)
        if options.slow and time.time() - started > options.slow:
            print("%6.1f s %s" % (time.time() - started, op))
    return tallies[0], tallies[1], missing


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def table(heads, rows):
    return ["| %s |" % " | ".join(heads), "|%s" % ("---|" * len(heads))] + ["| %s |" % " | ".join(row) for row in rows]


def grouped(meant):
    """Rows by reason: the reason, how many calls, of which operators, an example."""
    reasons = {}
    for entry in meant:
        reasons.setdefault(entry[-1], []).append(entry)
    for reason, entries in sorted(reasons.items()):
        ops = sorted({entry[0] for entry in entries})
        shown = ", ".join("`%s`" % op for op in ops[:6]) + (", …" if len(ops) > 6 else "")
        yield cell(reason), str(len(entries)), shown, "`%s(%s)`" % (entries[0][0], cell(entries[0][1]))


def sentence(tally, what):
    equal, meant, count = tally.total(2), tally.total(3), tally.total(1)
    return "**%d of %d %s of %d operators are equal or differ on purpose (%d equal, %d on purpose), %d are unexplained.**" % (
        equal + meant, count, what, tally.total(0), equal, meant, count - equal - meant)


def part(tally, what):
    lines = [sentence(tally, what), "Of %d errors that both raise, %d have the same first line, %d another one for a reason, %d another one."
             % (tally.errors, tally.same_texts, len(tally.meant_texts), len(tally.texts)), ""]
    lines += table(("family", "operators", what, "equal", "on purpose"),
                   (tuple([family] + [str(n) for n in row]) for family, row in sorted(tally.rows.items()) if row[1]))
    lines += ["", "### What differs", ""]
    lines += table(("operator", "arguments", "Tenon gives"), (("`%s`" % op, "`%s`" % cell(text), cell(found))
                                                              for op, text, found, _ in tally.differing)) if tally.differing else ["Nothing."]
    if tally.texts:
        lines += ["", "### Errors in other words", ""]
        lines += table(("operator", "arguments", "Tenon says", "PyTorch says"),
                       (("`%s`" % op, "`%s`" % cell(text), cell(mine), cell(theirs)) for op, text, mine, theirs, _ in tally.texts))
    lines += ["", "### Where Tenon differs on purpose", ""]
    lines += table(("why", "calls", "operators", "one of them"), grouped(tally.meant)) if tally.meant else ["Nowhere."]
    if tally.meant_texts:
        lines += ["", "### Errors in other words on purpose", ""]
        lines += table(("why", "calls", "operators", "one of them"), grouped(tally.meant_texts))
    return lines + [""]


def report(samples, more, missing):
    lines = ["# Operators beside PyTorch", "",
             "Made by `tests/python/compare_operators.py` with PyTorch %s. Every operator that both have, called from Python: values,"
             % torch.__version__.split("+")[0],
             "dtypes, sizes, strides, what is written in place, errors, and gradients. What is on purpose, and why, is a list in",
             "`tests/python/operator_differences.py`; more of it in [differences](../differences.md).", "",
             "## The samples of the declarations", ""]
    lines += part(samples, "samples")
    if more.total(1):
        lines += ["## Calls made from the declarations", "",
                  "For every operator its samples again in other dtypes, layouts and sizes, with other numbers, numbers for tensors and tensors",
                  "for numbers, `None`, no elements, arguments by name and at other values than the default, as methods, in place, and into",
                  "tensors that are given (`operator_variants.py`).", ""]
        lines += part(more, "calls")
    ended = samples.ended + more.ended
    lines += ["## Without comparison", "", "Calls that end PyTorch's process, or never come back: %s."
              % (", ".join("`%s`" % cell(text) for text in ended) or "none"), "",
              "Without a counterpart in PyTorch's Python: %s." % (", ".join("`%s`" % op for op in missing) or "none"), ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", metavar="FILE", help="also write the page")
    parser.add_argument("--samples-only", action="store_true", help="without the calls made from the declarations")
    parser.add_argument("--variants-only", action="store_true", help="those calls alone")
    parser.add_argument("--forward", action="store_true", help="tangents, too: the reference makes each once a process, so it takes long")
    parser.add_argument("--slow", type=float, metavar="SECONDS", help="name the operators that take longer")
    parser.add_argument("--rules", action="store_true", help="how many calls each rule of operator_differences.py explained")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="other values in the tensors, and more calls of the same kinds")
    parser.add_argument("--scattered", action="store_true", help="the values in an order without a period, so that large matrices have full rank")
    parser.add_argument("names", nargs="*", help="these operators alone")
    options = parser.parse_args()
    literal.SHIFT, literal.SCATTERED = 17 * options.seed, options.scattered
    if options.forward:
        import torch._dynamo  # noqa: F401, PLC0415: once, and not in every child
        import tenon.autograd.forward_ad  # noqa: F401, PLC0415
        with torch.autograd.forward_ad.dual_level():  # the first of them brings in most of what all need
            one = torch.ones(1)
            torch.nn.functional.hardsigmoid(torch.autograd.forward_ad.make_dual(one, one))
    page = report(*run(options))
    print(page)
    if options.rules:
        for count, (ops, *patterns, reason) in rules_used():
            print("%6d  %s | %s | %s" % (count, ops, " | ".join(patterns), reason))
    if options.write:
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(page)


if __name__ == "__main__":
    main()
