#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""In-place and out= variants of the operators that tests/ops/tier_a.txt lists: arguments of the function's own cases in
the other files of data/, run again through the variant. Made after those files, and after make_tier_a.py."""

import glob
import os
import re

import torch

from literal import DATA, SHORT, Writer, split
from make_tier_a import NO_VALUES, overloads, wanted

MOST = 3  # cases a variant
# Where the reference gives wrong numbers when it has to resize, reduce or copy.
SIMPLEST = ("binary_cross_entropy", "native_batch_norm", "_native_batch_norm")
# Where the reference changes the strides of an out= that fits: see docs/differences.md.
RESTRIDED = ("nonzero", "reflection_pad", "replication_pad")
RESULTS = re.compile(r"(cpu )?\w*Error: |None|-")
# For functions whose own cases all have named tensors: the first that the variant takes.
SIMPLE = ("f32[2,3]", "f32[2,3], f32[3]", "f32[2,3], 2", "f32[2,3], i64[2,3]=1, 1, f32[2,3]", "i64[2,3], i64[3]", "i64[2,3], 3",
          "i64[2,3]", "f32[2,3], decimals=1", "2, f32[2,3]", "f32[2,3], f32[2,3], rounding_mode='floor'",
          "f32[2,3], 1, i64[2,3]=0, 5", "f32[2,3], 1, i64[2,2]=0, f32[2,3]")
OPTIONS = {"dtype", "layout", "device", "pin_memory"}


def signature(op):
    """Names and types of the arguments that a variant shares with its function."""
    return [(a.name, str(a.type)) for a in op._schema.arguments if not a.is_out and a.name not in OPTIONS]


def functions(table):
    """The function of each variant, by full name."""
    plain = {}
    for full, op in table.items():
        if not op._schema.is_mutable:
            plain.setdefault(full.split(".")[0], []).append((full, signature(op)))
    found = {}
    for full, op in table.items():
        name = full.split(".")[0]
        base = name[:-1] if name.endswith("_") else name
        if op._schema.is_mutable:
            # a factory takes its dtype from `out`, a reduction may be told it beside one
            same = [other for other, args in plain.get(base, []) if args == signature(op)]
            if same:
                found[full] = same[0]
    return found


def cases():
    """(arguments, results, options) of the cases whose arguments are literals, by operator."""
    found = {}
    for path in sorted(glob.glob(os.path.join(DATA, "*.txt"))):
        if os.path.basename(path) == "variants.txt":
            continue
        for line in open(path, encoding="utf-8"):
            fields = line.rstrip("\n").split(" | ")
            if line[0] in "#$\n" or len(fields) < 3 or "$" in fields[1] or RESULTS.match(fields[2]) or "meta " in line:
                continue
            options = fields[4] if len(fields) > 4 else ""
            found.setdefault(fields[0], []).append((fields[1], fields[2], options))
    return found


def spread(rows, succeeds):
    """A few cases from all over the list, simple floats first."""
    rows = sorted(rows, key=lambda row: not row[0].startswith("f32"))
    step = max(len(rows) // 8, 1)
    return [row for row in rows[::step] + rows if succeeds(row)][:MOST]


def simple(name, call):
    for args in SIMPLE:
        try:
            result = call(name, args)
        except Exception:
            continue
        return [(args, "%s[%s]" % (SHORT[result.dtype], ",".join(map(str, result.shape))), "ulp=2")]
    return []


def kept(options):
    return " ".join(word for word in options.split() if word.split("=")[0] in ("ulp", "rtol", "atol", "values", "cpu"))


def arguments(op, row, empty):
    """The function's arguments, and an out= argument a result: of its sizes, or without elements."""
    shapes = [re.sub(r"\(.*", "", text.strip()) for text in row[1].split(" ; ")]
    given = split(row[0])
    if any(a.name == "dtype" for a in op._schema.arguments):
        pass
    elif op._schema.name.split("::")[1].endswith("_"):
        return row[0]
    else:
        given = [piece for piece in given if piece.split("=")[0] not in OPTIONS]
    outs = [a.name for a in op._schema.arguments if a.is_out]
    if empty:
        shapes = [re.sub(r"\[.*", "[0]", shape) for shape in shapes]
    return ", ".join(given + ["%s=%s" % pair for pair in zip(outs, shapes)])


def main():
    table = overloads()
    found, function_of = cases(), functions(table)
    with Writer("variants") as w:
        def succeeds(name, args):
            try:
                w.call(name, args)
                return True
            except Exception:  # what the variant refuses has its cases elsewhere
                return False

        for full in sorted(wanted(table)):
            op = table[full]
            rows = found.get(function_of.get(full), [])
            chosen = spread(rows, lambda row: succeeds(full, arguments(op, row, False)))
            if not chosen and full in function_of:
                rows = simple(function_of[full], w.call)
                chosen = [row for row in rows if succeeds(full, arguments(op, row, False))]
            if full.startswith(SIMPLEST):
                chosen = chosen[:1]
            for k, row in enumerate(chosen):
                options = kept(row[2])
                if full.startswith(NO_VALUES):
                    options = "values=no"
                if full.startswith(RESTRIDED):
                    options += " strides=no"
                if full.split(".")[0].endswith("_"):
                    w.case(full, row[0], (options + " same").strip())
                else:
                    w.case(full, arguments(op, row, k == 1), options.strip())


if __name__ == "__main__":
    main()
