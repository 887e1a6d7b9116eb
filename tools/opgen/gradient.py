# SPDX-License-Identifier: MIT
"""Gradients of operators: what `grad` lines mean, and what a node must keep for them."""

import re

from formula import KEEP, Compiler, Formula, Parser
from problems import Problem

NOT_IMPLEMENTED = "not_implemented"  # instead of a formula: nobody has one, as the reference says itself
LINE = re.compile(r"([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*:\s*(.*)$")


def parse(lines, schema, inplace=False):
    """None without lines, [] for `grad none`, else formulas: those of the function, or those that the in-place variant
    has for itself."""
    lines = [line for line in lines if line.rest.startswith("inplace ") == inplace]
    if not lines:
        return None
    if any(line.rest == "none" for line in lines):
        if len(lines) > 1:
            raise Problem(lines[1].where, "'grad none' stands alone")
        return []
    if any(line.rest == NOT_IMPLEMENTED for line in lines):
        if len(lines) > 1:
            raise Problem(lines[1].where, "'grad not_implemented' stands alone")
        return None
    formulas, seen = [], set()
    types = {arg.name: arg.type for arg in schema.args}
    for line in lines:
        match = LINE.match(line.rest[len("inplace "):] if inplace else line.rest)
        if not match:
            raise Problem(line.where, "want `grad none`, `grad not_implemented` or `grad ARGUMENT: FORMULA`")
        names = [name.strip() for name in match.group(1).split(",")]
        for name in names:
            if name not in types or not types[name].is_tensor:
                raise Problem(line.where, "'%s' is no argument of type Tensor" % name)
            if name in seen:
                raise Problem(line.where, "'%s' has a gradient already" % name)
            if types[name].is_list and len(names) > 1:
                raise Problem(line.where, "the list '%s' wants a line of its own" % name)
            seen.add(name)
        whole = None if match.group(2) == NOT_IMPLEMENTED else Parser(match.group(2), line.where).whole()
        formulas.append(Formula(names, whole, line.where))
    if all(formula.tree is None for formula in formulas):
        raise Problem(lines[0].where, "no argument has a gradient: say `grad not_implemented`")
    return formulas


def camel(name):
    """max_pool2d: MaxPool2D, as the reference writes it."""
    return "".join(re.sub(r"(^|[0-9])([a-z])", lambda m: m.group(1) + m.group(2).upper(), part)
                   for part in name.split("_") if part)


class Gradient:
    """The gradient of a declaration, compiled. Its node serves the in-place variant too."""

    def __init__(self, op, formulas, number, by_c_name, hands, node=None):
        self.op, self.id = op, op.id
        self.node_name = node or "%sBackward%d" % (camel(op.schema.name), number)
        self.refused = {name for formula in formulas if formula.tree is None for name in formula.names}
        formulas = [formula for formula in formulas if formula.tree is not None]
        named = {name for formula in formulas for name in formula.names}
        tensors = [arg for arg in op.args if arg.is_tensor]
        self.singles = [arg for arg in tensors if arg.args[0].name in named and not arg.type.is_list]
        lists = [arg for arg in tensors if arg.args[0].name in named and arg.type.is_list]
        if len(lists) > 1:
            raise Problem(formulas[0].where, "gradients of two lists of tensors: write the kernel by hand")
        self.list = lists[0] if lists else None
        self.without = [arg for arg in tensors if arg.args[0].name not in named]
        edge_of = {arg.args[0].name: i for i, arg in enumerate(self.singles)}
        compiler = Compiler(op, by_c_name, hands)
        compiler.edge_of = edge_of
        self.body = []
        for formula in formulas:
            if self.list and formula.names == [self.list.args[0].name]:
                self.body += compiler.assign_list(formula, len(self.singles))
            else:
                self.body += compiler.assign(formula, [edge_of[name] for name in formula.names])
        self.uses = compiler
        self.layout()

    def layout(self):
        """What the node keeps: tensors first, then lists of integers, then lists of tensors, then the rest."""
        singles = [arg.args[0].name for arg in self.singles]
        extra = [arg for arg in self.op.args if arg.is_tensor and not arg.type.is_list
                 and arg.args[0].name in self.uses.tensors and arg.args[0].name not in singles]
        self.inputs = self.singles + extra  # what is handed to tni_record_begin
        self.saved = []  # (C name in the formula, index of the input or None for a result, mask of edges)
        # By name, as the reference has it: who is told that a saved value was written learns of the same one.
        for i, arg in sorted(enumerate(self.inputs), key=lambda pair: pair[1].args[0].name):
            edges = self.uses.tensors.get(arg.args[0].name)
            if edges is not None:
                self.saved.append((arg.name, i, sum(1 << e for e in edges)))
        self.saved_results = []  # (slot, result)
        for index in sorted(self.uses.results):
            self.saved_results.append((len(self.saved), index))
            self.saved.append(("result%d" % index, None, sum(1 << e for e in self.uses.results[index])))

    @property
    def differentiable(self):
        """Indices of the results that take part."""
        if self.uses.whole_grads:
            return list(range(len(self.op.outs)))
        return sorted(self.uses.grads) or [0]

    @property
    def has_fields(self):
        return bool(self.uses.fields or self.uses.lists or self.uses.tensor_lists)

    def struct(self):
        lines = ["tni_saved saved[%d];" % len(self.saved)] if self.saved else []
        lines += ["tni_ints %s;" % name for name in self.uses.lists]
        lines += ["tni_saved_list %s;" % name for name in self.uses.tensor_lists]
        for name, (kind, _) in self.uses.fields.items():
            lines.append("%s %s;" % (KEEP[kind][0], name))
        return lines

    def keeps(self):
        """Statements that fill the fields of `kept` from the call's parameters."""
        lines = ["TN_TRY(%s);" % call for call in self.uses.lists.values()]
        lines += ["TN_TRY(tni_keep_tensors(&kept->%s, %s, %s_n));" % (name, name, name)
                  for name in self.uses.tensor_lists]
        for name, (kind, source) in self.uses.fields.items():
            lines.append(KEEP[kind][1].format(n=name, x=source))
        return lines
