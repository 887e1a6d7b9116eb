# SPDX-License-Identifier: MIT
"""What Python and people read: argument tables, stubs, reference pages."""

import json

# Dtypes are called int, float and bool in the same module: the types of Python are written out.
PYTHON = {"Tensor": "Tensor", "int": "builtins.int", "SymInt": "builtins.int", "float": "builtins.float",
          "bool": "builtins.bool", "SymBool": "builtins.bool", "Scalar": "Number", "str": "builtins.str", "ScalarType": "dtype", "Layout": "layout",
          "MemoryFormat": "memory_format", "Device": "DeviceLike", "Generator": "Generator",
          "Storage": "UntypedStorage", "Stream": "Stream"}
KEYWORDS = ("from", "in", "is", "lambda", "def", "class", "global", "import", "not", "or", "and", "pass",
            "with", "as", "if", "else", "for", "while", "return", "del", "try", "None", "True", "False")


def argument(arg):
    row = {"name": arg.name, "type": arg.type.text(with_alias=False)}
    if arg.default is not None:
        row["default"] = arg.default
    if arg.kw_only:
        row["kw_only"] = True
    if arg.type.write:
        row["written"] = True
    return row


def operator(op):
    schema = op.schema
    return {
        "op": schema.full,
        "name": schema.name,
        "overload": schema.overload,
        "schema": str(schema),
        "c": "tn_" + op.c_name,
        "variant": op.role,
        "function": op is not op.family.base or "function" in op.family.variants,
        "method": "method" in op.family.variants and schema.args[0].name == "self" and op.role != "out",
        "args": [argument(arg) for arg in schema.args],
        "returns": [ret.type.text() + (" " + ret.name if ret.name else "") for ret in schema.rets],
        "tags": op.family.tags,
        "doc": op.family.doc,
        "file": op.where[0],
        "line": op.where[1],
    }


def args_json(model):
    rows = ",\n".join(json.dumps(operator(op), ensure_ascii=False) for op in model.operators)
    return "[\n%s\n]\n" % rows


# ---- stubs ----

def python_type(kind, result=False):
    text = "Union[builtins.int, builtins.float]" if result and kind.base == "Scalar" else PYTHON[kind.base]
    if kind.is_list:
        if kind.element_optional:
            text = "Optional[%s]" % text
        if result:
            text = "tuple[%s, ...]" % text
        else:
            text = "Sequence[%s]" % text
            if kind.size is not None:
                text = "Union[%s, %s]" % (PYTHON[kind.base], text)
    return "Optional[%s]" % text if kind.optional else text


def python_name(name):
    return name + "_" if name in KEYWORDS else name


def python_params(args):
    parts, star = [], False
    for arg in args:
        if arg.kw_only and not star:
            parts.append("*")
            star = True
        default = " = ..." if arg.default is not None else ""
        name = "input" if arg.name == "self" and arg.type.is_tensor else arg.name
        parts.append("%s: %s%s" % (python_name(name), python_type(arg.type), default))
        if arg.name == "pin_memory":  # what makes a tensor: Python can say that it takes part in gradients
            parts.append("requires_grad: builtins.bool = ...")
    return parts


def python_result(rets):
    if not rets:
        return "None"
    types = [python_type(ret.type, True) for ret in rets]
    if len(types) > 1 and all(ret.name for ret in rets):
        return named_result(rets)
    return types[0] if len(types) == 1 else "tuple[%s]" % ", ".join(types)


def named_result(rets):
    """The class of results that have names: one for each list of names."""
    return "_" + "_".join(ret.name for ret in rets)


def named_results(model):
    found = {}
    for op in model.operators:
        rets = op.schema.rets
        if len(rets) > 1 and all(ret.name for ret in rets):
            found.setdefault(named_result(rets), rets)
    text = ""
    for name, rets in sorted(found.items()):
        types = [python_type(ret.type, True) for ret in rets]
        text += "class %s(tuple[%s]):\n" % (name, ", ".join(types))
        for ret, kind in zip(rets, types):
            text += "    @property\n    def %s(self) -> %s: ...\n" % (python_name(ret.name), kind)
        text += "\n\n"
    return text


def spread(args):
    """The parameters of `zeros(2, 3)`: where sizes are the only argument by position, they may come one by one."""
    head, rest = args[:1], args[1:]
    kind = head[0].type if head else None
    if not (kind and kind.is_list and kind.base in ("int", "SymInt") and kind.size is None and not kind.optional
            and not head[0].kw_only and all(arg.kw_only for arg in rest)):
        return None
    return ["*%s: builtins.int" % python_name(head[0].name)] + python_params(rest)[1 if rest else 0:]


def covers(wide, narrow):
    """Whether a call that fits `narrow` fits `wide` too: what `wide` has more of need not be given."""
    left = list(narrow)
    for part in wide:
        if left and left[0] == part:
            left.pop(0)
        elif not part.endswith(" = ..."):
            return False
    return not left


def out_argument(op):
    """Python writes out= as an optional keyword of the functional operator."""
    base = op.family.base
    if not op.family.variant("out") or op is not base or op.is_out or op.family.functional:
        return []
    kinds = [python_type(ret.type, True) for ret in base.schema.rets]
    kind = "Sequence[Tensor]" if base.schema.rets[0].type.is_list else "Tensor" if len(kinds) == 1 else "Sequence[Tensor]" if set(kinds) == {"Tensor"} else "tuple[%s]" % ", ".join(kinds)
    star = [] if any(arg.kw_only for arg in base.schema.args) else ["*"]
    return star + ["out: Optional[%s] = ..." % kind]


def stub(name, params, result, doc, overloaded, indent):
    pad = " " * indent
    text = pad + "@overload\n" if overloaded else ""
    text += "%sdef %s(%s) -> %s:" % (pad, python_name(name), ", ".join(params), result)
    if not doc:
        return text + " ...\n"
    lines = doc.replace("\\", "\\\\").replace('"""', "'''").split("\n")
    quoted = ['"""' + lines[0]] + lines[1:]
    quoted[-1:] = [quoted[-1] + '"""'] if len(lines) == 1 else [quoted[-1], '"""']
    return text + "\n" + "".join(((pad + "    " + line).rstrip() + "\n") for line in quoted)


def stubs(name, ops, method):
    """The forms of one function or method, those that another covers left out."""
    forms = []
    for op in ops:
        args = op.schema.args[1:] if method else op.schema.args
        first, last = (["self"], []) if method else ([], out_argument(op))
        result = python_result(op.schema.rets)
        forms.append((first + python_params(args) + last, result, op.family.doc))
        loose = spread(args)
        if loose is not None:
            star = last[1:] if last[:1] == ["*"] else last
            forms.append((first + loose + star, result, op.family.doc))
    kept = [f for i, f in enumerate(forms)
            if not any(covers(g[0], f[0]) and (len(g[0]) > len(f[0]) or k < i) for k, g in enumerate(forms) if k != i)]
    gap = "" if method else "\n"
    if method and name != name.lower() and [form[0] for form in kept] == [["self"]]:
        gap = "    @property\n"  # x.mT: what has capitals and takes nothing is an attribute
    return "".join(gap + stub(name, params, result, doc, len(kept) > 1, 4 if method else 0)
                   for params, result, doc in kept)


# Functions and methods that take more forms than the operator: python/tenon/_functional.py has them, and
# python/tenon/_types.pyi their types, which those of the operator would hide.
TYPED_BY_HAND = frozenset((
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "meshgrid", "nonzero", "norm", "tensordot", "unique_consecutive"))
METHODS_TYPED_BY_HAND = frozenset(("nonzero", "norm", "unique_consecutive"))


def python_pyi(model):
    functions, methods = {}, {}
    for op in model.operators:
        if op.role == "out" and op is not op.family.base:
            continue
        name = op.schema.name
        if name not in TYPED_BY_HAND and (op is not op.family.base or "function" in op.family.variants):
            functions.setdefault(name, []).append(op)
        if name not in METHODS_TYPED_BY_HAND and operator(op)["method"]:
            methods.setdefault(name, []).append(op)
    text = ("# SPDX-License-Identifier: MIT\n# Generated by tools/opgen; do not edit. Types of the operators in "
            "Python.\n"
            "import builtins\n"
            "from typing import Any, Optional, Sequence, Union, overload\n\n"
            "from ._types import *\n"
            "from ._types import TensorCommon\n\n\n"
            + named_results(model) +
            "class Tensor(TensorCommon):\n")
    for name, ops in methods.items():
        text += stubs(name, ops, True)
    if not methods:
        text += "    ...\n"
    text += "\n"
    for name, ops in functions.items():
        text += stubs(name, ops, False)
    # What the package's own modules use; a name that no stub has is none of the operators.
    return text + "\ndef __getattr__(name: builtins.str) -> Any: ...\n"


# ---- reference ----

def kernels_text(op):
    return ", ".join("`%s`" % kernel.key for kernel in op.kernels)


def page_name(op):
    """One page for an operator with its overloads and variants."""
    return op.schema.name.rstrip("_") or op.schema.name


def pages(model):
    """{page: families}, in the order of declaration."""
    found = {}
    for family in model.families:
        found.setdefault(page_name(family.base), []).append(family)
    return found


def gradient_text(family):
    if family.base.composite:
        return "Differentiable through the operators that it calls."
    if family.formulas == []:
        return "Its results take no part in gradients."
    if family.not_implemented:
        return "Its derivative is not implemented: calls that would need it are refused."
    if not family.formulas:
        return ""
    lines = [line.rest for line in family.declaration.all("grad")]
    return "Gradients:\n\n" + "".join("    %s\n" % line for line in lines)


def section(family):
    base = family.base
    text = "## %s\n\n" % base.schema.full.split("::")[1]
    if family.doc:
        text += family.doc + "\n\n"
    text += "| operator | C | kernels |\n|---|---|---|\n"
    for op in family.operators:
        schema = str(op.schema).replace("|", "\\|")
        text += "| `%s` | `tn_%s` | %s |\n" % (schema, op.c_name, kernels_text(op))
    facts = ["Also a method of tensors."] if "method" in family.variants else []
    if family.tags:
        facts.append("Tags: %s." % ", ".join(family.tags))
    facts.append("Declared at `%s:%d`." % family.where)
    text += "\n" + " ".join(facts) + "\n"
    gradients = gradient_text(family)
    if gradients:
        text += "\n" + gradients.rstrip("\n") + "\n"
    good = [arguments for _, status, _, arguments in family.samples if status == "OK"]
    if good:
        text += "\nFor example:\n\n" + "".join("    %s(%s)\n" % (base.schema.full, a) for a in good)
    bad = [row for row in family.samples if row[1] != "OK"]
    if bad:
        text += "\n| arguments | status | message contains |\n|---|---|---|\n"
        for _, status, message, arguments in bad:
            text += "| `%s` | `TN_%s` | %s |\n" % (arguments, status, message.replace("|", "\\|"))
    return text


def reference(model):
    """{file: text}: a page an operator, and an index."""
    found = {}
    for page, families in pages(model).items():
        sources = sorted({family.file for family in families})
        found[page + ".md"] = "# %s\n\nGenerated from `%s`; do not edit.\n\n" % (page, "`, `".join(sources)) + "\n".join(
            section(family) for family in families)
    index = ["# Operators\n\nA page each, generated from the declarations in `ops/`.\n"]
    for file in model.files:
        names = []
        for family in model.families_of(file):
            name = page_name(family.base)
            if name not in names:
                names.append(name)
        title = file.family + (": " + file.title if file.title else "")
        index.append("\n## %s\n\n%s\n" % (title, ", ".join("[`%s`](%s.md)" % (n, n) for n in names)))
    found["README.md"] = "".join(index)
    return found
