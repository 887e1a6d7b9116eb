# SPDX-License-Identifier: MIT
"""Write tests/op/schemas.txt: schemas of PyTorch, as PyTorch prints them.

Run with any Python that has PyTorch 2.11:  python3 tests/golden/make_schemas.py
With --all: every schema, to standard output.

The sample is chosen so that every form of type, annotation, default value and result that occurs
anywhere occurs in it, shortest schema first, and filled up to WANTED with every n-th of the rest.
"""
import os
import re
import sys

import torch

WANTED = 220
# What PyTorch accepts and Tenon refuses on purpose: see "Differences" in src/op/README.md.
REFUSED = re.compile(r"int64_t|static_runtime::clamp_nan_to_num|profiler::_call_end_callbacks_on_jit_fut")


def features(schema):
    """Everything about a schema that a parser or printer could get wrong, as a set of strings."""
    head, results = schema.rsplit(") -> ", 1)
    name, arguments = head.split("(", 1)
    found = {"namespace " + name.split("::")[0], "overload" if "." in name else "no overload"}
    found.add("results " + re.sub(r"[A-Za-z_.]\w*", "x", results))
    for default in re.findall(r"=((?:\[[^\]]*\])|(?:\"(?:[^\"\\]|\\.)*\")|[^,]*)", arguments):
        found.add("default " + re.sub(r"\d+", "1", default))
    arguments = re.sub(r"=((?:\[[^\]]*\])|(?:\"(?:[^\"\\]|\\.)*\")|[^,]*)", "", arguments)
    for part in re.split(r", (?![^()]*\))", arguments):
        words = part.rsplit(" ", 1)
        found.add("type " + re.sub(r"\([a-z0-9]+", "(a", words[0]))
    found.update("type " + word for word in re.findall(r"[A-Z]\w*", results))
    return found


def choose(schemas):
    chosen, seen = [], set()
    for schema in sorted(schemas, key=lambda s: (len(s), s)):
        new = features(schema) - seen
        if new:
            chosen.append(schema)
            seen |= new
    rest = sorted(set(schemas) - set(chosen))
    missing = max(WANTED - len(chosen), 0)
    if missing:
        step = max(len(rest) // missing, 1)
        chosen += rest[::step][:missing]
    return sorted(chosen)


def main():
    schemas = sorted({str(s) for s in torch._C._jit_get_all_schemas()})
    if "--all" in sys.argv[1:]:
        print("\n".join(schemas))
        return
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "op", "schemas.txt")
    with open(path, "w", encoding="ascii") as out:
        out.write("# Schemas of PyTorch %s as it prints them, by tests/golden/make_schemas.py.\n"
                  % torch.__version__.split("+")[0])
        for schema in choose([s for s in schemas if not REFUSED.search(s)]):
            out.write(schema + "\n")


if __name__ == "__main__":
    main()
