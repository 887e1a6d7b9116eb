#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write code, tables and documentation from operator declarations (docs/dev/op-files.md).

  opgen.py --ops ops --out build/gen    check and write; a file whose text is the same keeps its time
  opgen.py --ops ops --check            check only
  opgen.py --ops ops --list-outputs     the files it would write, relative to --out

Mistakes are printed as `ops/x.op:12: error: …`, all of them; then the exit status is 1 and nothing is
written.
"""

import argparse
import os
import sys

import constants
import emit_calls
import emit_docs
import emit_forward
import emit_autograd
import emit_kernels
import emit_public
import emit_python
import emit_tables
import model as models
import parse
from problems import Problems

# Every output that does not depend on which families there are, and who writes it.
OUTPUTS = {
    "include/tenon/ops.h": emit_public.ops_h,
    "include/tenon/kernels.h": emit_public.kernels_h,
    "op_ids.h": emit_tables.op_ids_h,
    "op_table.c": emit_tables.op_table_c,
    "boxing.c": emit_calls.boxing_c,
    "calls.c": emit_calls.calls_c,
    "scope_calls.c": emit_calls.scope_calls_c,
    "redispatch.h": emit_calls.redispatch_h,
    "shapes.h": emit_kernels.shapes_h,
    "cpu.h": emit_kernels.cpu_h,
    "composites.h": emit_kernels.composites_h,
    "kernels.h": emit_kernels.kernels_h,
    "meta_kernels.c": emit_kernels.meta_kernels_c,
    "cpu_kernels.c": emit_kernels.cpu_kernels_c,
    "view_kernels.c": emit_kernels.view_kernels_c,
    "composite_kernels.c": emit_kernels.composite_kernels_c,
    "autograd_kernels.c": emit_autograd.autograd_kernels_c,
    "gradients.h": emit_autograd.gradients_h,
    "gradients.c": emit_autograd.gradients_c,
    "forward_rules.c": emit_forward.forward_c,
    "register.c": lambda model: emit_tables.register_c(model, constants.keys()),
    "samples.h": emit_tables.samples_h,
    "samples.c": emit_tables.samples_c,
    "args.json": emit_docs.args_json,
    "python.pyi": emit_docs.python_pyi,
    "python_table.c": emit_python.python_table_c,
}


def output_names(_folder):
    """Known without reading the declarations: the build asks before it generates. The pages of the reference are written
    beside their index."""
    return list(OUTPUTS) + ["reference/README.md"]


def generate(folder):
    """({name: text}, problem lines); texts are None when something is wrong."""
    problems = Problems()
    model = models.build(parse.parse_folder(folder, problems), problems)
    if problems.found:
        return None, problems.lines()
    texts = {name: emit(model) for name, emit in OUTPUTS.items()}
    for name, text in emit_docs.reference(model).items():
        texts["reference/" + name] = text
    return texts, []


def write(path, text):
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except OSError:
        pass
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--ops", default="ops", help="folder of *.op files")
    parser.add_argument("--out", help="folder to write to")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--list-outputs", action="store_true")
    args = parser.parse_args()
    if args.list_outputs:
        print("\n".join(output_names(args.ops)))
        return 0
    if not args.out and not args.check:
        parser.error("want --out, --check or --list-outputs")
    if not os.path.isdir(args.ops):
        parser.error("%s is no folder" % args.ops)
    texts, errors = generate(args.ops)
    if errors:
        print("\n".join(errors), file=sys.stderr)
        return 1
    if not args.check:
        for name, text in texts.items():
            write(os.path.join(args.out, name), text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
