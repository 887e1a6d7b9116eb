# SPDX-License-Identifier: MIT
"""Bindings for Python: for each name the signatures that a call is matched against, as C data, and the functions that
CPython calls. What they mean: python/src/bind.h."""

import schema as schemas
from csource import banner, includes, literal, wrapped

KINDS = {"Tensor": "TENSOR", "int": "INT", "SymInt": "INT", "float": "FLOAT", "bool": "BOOL", "SymBool": "BOOL",
         "Scalar": "SCALAR", "str": "STR", "ScalarType": "DTYPE", "Layout": "LAYOUT", "MemoryFormat": "FORMAT",
         "Device": "DEVICE", "Generator": "GENERATOR", "Storage": "STORAGE", "Stream": "STREAM"}
DTYPES = {"float": "F32", "double": "F64", "half": "F16", "long": "I64", "int": "I32", "short": "I16", "bool": "BOOL",
          "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
          "float32": "F32", "float64": "F64", "bfloat16": "BF16", "complex64": "C64", "complex128": "C128"}
FORMATS = {"contiguous_format": "CONTIGUOUS", "preserve_format": "PRESERVE", "channels_last": "CHANNELS_LAST"}
# What makes one signature be tried after another where the types of an argument differ: a tensor also serves as a number,
# and one number as a list.
AFTER = {("Scalar", "Tensor"), ("Scalar?", "Tensor?"), ("Scalar?", "Tensor"), ("Scalar", "Tensor?"), ("int[]", "int"),
         ("int", "Tensor"), ("float", "Tensor"), ("int[]", "int?"), ("Tensor[]", "int[]"), ("Tensor[]", "Tensor"), ("Tensor[]", "Scalar[]")}


def python_type(arg):
    return arg.type.text(False, False).replace("SymInt", "int").replace("SymBool", "bool")


def must_follow(one, other):
    """Is the signature ONE tried after OTHER?"""
    pairs = list(zip(one.schema.args, other.schema.args))
    found = False
    for a, b in pairs:
        kinds = (python_type(a), python_type(b))
        if kinds[0] == kinds[1]:
            continue
        if kinds not in AFTER:
            return False
        found = True
    return found


def ordered(ops):
    """As declared, but each behind those that it must follow."""
    left, done = list(ops), []
    while left:
        ready = next((op for op in left if not any(must_follow(op, other) for other in left if other is not op)), left[0])
        left.remove(ready)
        done.append(ready)
    return done


def is_input(arg):
    """A tensor that is called self has the name input in a function; a list keeps its name."""
    return arg.name == "self" and arg.type.is_tensor and not arg.type.is_list


def python_name(op, arg, own_name=False):
    """What a function calls it: as the schema, but where the declaration says otherwise."""
    return "input" if is_input(arg) else arg.name if own_name else op.family.renamed.get(arg.name, arg.name)


def kind_of(kind):
    name = KINDS[kind.base]
    if kind.is_list:
        name = "OPT_TENSORS" if kind.element_optional else name + "S"
    return "TNPY_" + name


class Tables:
    """Texts of the static arrays that signatures point to, each written once."""

    def __init__(self):
        self.texts, self.known = [], {}
        self.names, self.calls = {}, {}

    def name(self, text):
        return self.names.setdefault(text, len(self.names))

    def array(self, ctype, stem, items):
        body = ",\n    ".join(items)
        key = (ctype, body)
        if key not in self.known:
            label = "%s_%d" % (stem, len(self.known))
            self.known[key] = label
            self.texts.append("static const %s %s[] = {\n    %s};\n" % (ctype, label, body))
        return self.known[key]

    def default(self, arg):
        """(initialiser of a tn_value, text)."""
        kind, text = arg.type, arg.default
        if text is None:
            return "{0}", None
        if text == "None":
            return "{0}", "None"
        if kind.is_list:
            items = [item for item in text[1:-1].split(", ") if item] if text.startswith("[") else [text] * (kind.size or 1)
            tag, ctype, member = {"int": ("INT_LIST", "int64_t", "ints"), "SymInt": ("INT_LIST", "int64_t", "ints"),
                                  "bool": ("BOOL_LIST", "bool", "bools")}[kind.base]
            label = self.array(ctype, "list", items or ["0"])
            shown = "None" if text == "[]" else text
            return "{.tag = TN_TAG_%s, .count = %d, .u.%s = %s}" % (tag, len(items), member, label), shown
        if kind.base == "str":
            value = text[1:-1]
            return "{.tag = TN_TAG_STRING, .count = %d, .u.text = %s}" % (len(value), literal(value)), '"%s"' % value
        if kind.base == "ScalarType":
            return "{.tag = TN_TAG_INT, .u.i = TN_DTYPE_%s}" % DTYPES[text], "torch." + text
        if kind.base == "MemoryFormat":
            return "{.tag = TN_TAG_INT, .u.i = TN_FORMAT_%s}" % FORMATS[text], text
        if kind.base == "bool" or text in ("True", "False"):
            return "{.tag = TN_TAG_BOOL, .u.i = %d}" % (text == "True"), text
        if kind.base == "float" or (kind.base == "Scalar" and not schemas.INTEGER.match(text)):
            return "{.tag = TN_TAG_FLOAT, .u.f = %r}" % float(text), text
        return "{.tag = TN_TAG_INT, .u.i = %s}" % text, text

    def direct(self, op):
        """The name of the function that calls it, written once."""
        if op.id not in self.calls:
            text = direct(op)
            if text:
                self.texts.append(text)
            self.calls[op.id] = "d_" + op.id if text else "NULL"
        return self.calls[op.id]

    def params(self, op, method, own_names):
        rows = []
        for i, arg in enumerate(op.schema.args):
            value, text = self.default(arg)
            if arg.name == "reduction" and text == "1" and not op.schema.name.endswith("_backward"):
                # What the reference's parser makes of its own default: a loss that is called without one is not reduced.
                value, text = "{.tag = TN_TAG_INT, .u.i = 0}", "at::Reduction::Mean"
            flags = [flag for flag, on in (("OPTIONAL", arg.type.optional), ("DEFAULT", arg.default is not None),
                                           ("KEYWORD", arg.kw_only), ("OUT", arg.kw_only and arg.type.write),
                                           ("SIZE", arg.type.base == "SymInt" and not arg.type.is_list)) if on]
            name = arg.name if method and i == 0 else python_name(op, arg, own_names)
            rows.append("{%d, %s, %s, %d, %s, %s}" % (
                self.name(name), kind_of(arg.type), " | ".join("TNPY_" + f for f in flags) or "0", arg.type.size or 0,
                literal(text) if text is not None else "NULL", value))
        return self.array("tnpy_param", "params", rows or ["{0}"])


# How a value that fits becomes parameters of the typed function: by base, list, optional. {v} is the value.
DIRECT = {
    ("Tensor", False, False): ["{v}.u.tensor"], ("Tensor", False, True): ["{v}.u.tensor"],
    ("int", False, False): ["{v}.u.i"], ("int", False, True): ["tnpy_opt_int(&{v})"],
    ("float", False, False): ["{v}.u.f"], ("float", False, True): ["tnpy_opt_float(&{v})"],
    ("bool", False, False): ["{v}.u.i != 0"], ("bool", False, True): ["tnpy_opt_bool(&{v})"],
    ("Scalar", False, False): ["tnpy_value_scalar(&{v})"], ("Scalar", False, True): ["tnpy_opt_scalar(&{v}, &s{i})"],
    ("str", False, False): ["{v}.u.text"], ("str", False, True): ["{v}.u.text"],
    ("ScalarType", False, False): ["(tn_dtype)tnpy_opt_number(&{v})"],
    ("Layout", False, False): ["(tn_layout)tnpy_opt_number(&{v})"],
    ("MemoryFormat", False, False): ["(tn_memory_format)tnpy_opt_number(&{v})"],
    ("Device", False, False): ["tnpy_opt_device(&{v})"], ("Generator", False, True): ["{v}.u.generator"],
    ("Storage", False, False): ["{v}.u.pointer"], ("Stream", False, False): ["{v}.u.pointer"],
    ("Tensor", True, False): ["{v}.u.tensors", "{v}.count"], ("int", True, False): ["{v}.u.ints", "{v}.count"],
    ("float", True, False): ["{v}.u.floats", "{v}.count"], ("bool", True, False): ["{v}.u.bools", "{v}.count"],
}
RESULTS = {  # of a type: declaration of a variable, the parameter, the value made of it
    "Tensor": ("tn_tensor *r{i}", "&r{i}", "{{.tag = TN_TAG_TENSOR, .flags = TN_VALUE_OWNED, .u.tensor = r{i}}}"),
    "int": ("int64_t r{i}", "&r{i}", "{{.tag = TN_TAG_INT, .u.i = r{i}}}"),
    "bool": ("bool r{i}", "&r{i}", "{{.tag = TN_TAG_BOOL, .u.i = r{i}}}"),
    "float": ("double r{i}", "&r{i}", "{{.tag = TN_TAG_FLOAT, .u.f = r{i}}}"),
}


def direct_arguments(op):
    """(variables, arguments) of the typed call, or None where an argument has no simple form."""
    variables, arguments = [], []
    for arg in op.args:
        if arg.is_options:
            variables.append("tn_tensor_opts o%d = tnpy_value_opts(&v[%d]);" % (arg.index, arg.index))
            arguments.append("&o%d" % arg.index)
            continue
        kind = arg.type
        base = {"SymInt": "int", "SymBool": "bool"}.get(kind.base, kind.base)
        optional = kind.optional and base not in ("ScalarType", "Layout", "MemoryFormat", "Device") and not kind.is_list
        forms = DIRECT.get((base, kind.is_list, optional))
        if forms is None:
            return None
        if base == "Scalar" and optional:
            variables.append("tn_scalar s%d;" % arg.index)
        arguments += [form.format(v="v[%d]" % arg.index, i=arg.index) for form in forms]
    return variables, arguments


def direct(op):
    """The function that calls the typed one with values that fit; "" where only a boxed call does."""
    found = direct_arguments(op)
    if found is None:
        return ""
    variables, arguments = found
    made, lines = [], []
    for i, out in enumerate(op.outs):
        if out.arg:
            lines.append("rets[%d] = tn_value_take_tensor(tn_tensor_ref(v[%d].u.tensor));" % (i, out.arg.index))
            continue
        text = out.ret.type.text(False).replace("SymInt", "int").replace("SymBool", "bool")
        if out.is_list:
            variables += ["tn_tensor **r%d;" % i, "int64_t n%d;" % i]
            made += ["&r%d" % i, "&n%d" % i]
            lines.append("rets[%d] = tn_value_take_tensors(r%d, n%d);" % (i, i, i))
        elif text in RESULTS:
            variable, parameter, value = (part.format(i=i) for part in RESULTS[text])
            variables.append(variable + ";")
            made.append(parameter)
            lines.append("rets[%d] = (tn_value)%s;" % (i, value))
        else:
            return ""
    if not lines:
        lines = ["(void)rets;"]
    if not arguments:
        variables.append("(void)v;")
    name = "d_" + op.id
    body = ["    %s\n" % line for line in variables]
    body.append(wrapped("tn_status st = tn_%s(" % op.c_name, arguments + made, ");", 4))
    if op.outs:
        body += ["    if (st != TN_OK)\n        return st;\n"]
    body += ["    %s\n" % line for line in lines]
    body.append("    return %s;\n" % ("TN_OK" if op.outs else "st"))
    return "static tn_status %s(const tn_value *v, tn_value *rets)\n{\n%s}\n" % (name, "".join(body))


def is_hidden(op):
    """A number in place of a tensor means this overload, and messages show the one with the tensor."""
    return op.family.numbers and any(arg.type.base == "Scalar" and arg.name == "other" for arg in op.schema.args)


def takes_rest(op, method):
    """Its one positional argument, but for self, is a list of ints that may be given as several."""
    positional = [arg for arg in op.schema.args if not arg.kw_only][int(method):]
    return len(positional) == 1 and python_type(positional[0]).startswith("int[]") and positional[0].type.size is None


def gives_first(op):
    """Writes a list of tensors in place: its result in Python is the list that it was given."""
    args = op.schema.args
    return op.schema.name.startswith("_foreach_") and op.schema.name.endswith("_") and not op.schema.rets and args[0].type.write


def flags_of(op, method, own_names):
    args = op.schema.args
    has_options = any(schemas.options_at(args, i) for i in range(len(args)))
    found = []
    if has_options:
        found.append("OPTIONS")
        if not any(arg.type.is_tensor for arg in args):
            found.append("FACTORY")
    if op.is_out:
        found.append("OUT")
    if op.role == "inplace":
        found.append("INPLACE")
    if is_hidden(op) or own_names:
        found.append("HIDDEN")
    if [ret.type.text(False) for ret in op.schema.rets] == ["ScalarType"]:
        found.append("DTYPE")
    if takes_rest(op, method):
        found.append("LIST")
    if gives_first(op):
        found.append("FIRST")
    return " | ".join("TNPY_SIG_" + flag for flag in found) or "0"


def signature(tables, op, method, own_names=False):
    args = op.schema.args
    positional = sum(not arg.kw_only for arg in args)
    names = [ret.name for ret in op.schema.rets]
    results = "NULL"
    if len(names) > 1 and all(names):
        results = tables.array("char *const", "results", [literal(name) for name in names])
    return "{%s, %s, %s, %d, %d, %d, %s, %s}" % (
        literal(op.schema.full), tables.params(op, method, own_names), results, len(args), positional, len(op.schema.rets),
        flags_of(op, method, own_names), tables.direct(op))


def groups(model):
    """[(name, operators that are functions)], [(name, operators that are methods)]"""
    functions, methods = {}, {}
    for op in model.operators:
        if op.family.ops_alone or (op.is_out and op.family.functional):
            continue
        if op is not op.family.base or "function" in op.family.variants:
            functions.setdefault(op.schema.name, []).append(op)
        if ("method" in op.family.variants and op.schema.args and op.schema.args[0].name == "self" and op.role != "out"):
            methods.setdefault(op.schema.name, []).append(op)
    return functions.items(), methods.items()


def call_text(op, method):
    """add(input, other, *, alpha=1, out=None) -> Tensor"""
    parts, star = [], False
    for i, arg in enumerate(op.schema.args):
        if method and i == 0:
            continue
        if arg.kw_only and not star:
            parts.append("*")
            star = True
        name = python_name(op, arg)
        default = "None" if arg.default == "[]" else arg.default
        parts.append(name if default is None else "%s=%s" % (name, default))
    if not method and op.family.variant("out") and op is op.family.base and not op.family.functional:
        parts += ([] if star else ["*"]) + ["out=None"]
    results = ["Tensor" if ret.type.base == "Tensor" and not ret.type.is_list else ret.type.text(False).replace("SymInt", "int")
               for ret in op.schema.rets]
    shown = results[0] if len(results) == 1 else "(%s)" % ", ".join(results) if results else "None"
    return "%s(%s) -> %s" % (op.schema.name, ", ".join(parts), shown)


def doc_of(ops, method):
    """Its signatures, then what the first declaration says."""
    shown = [op for op in ops if not op.is_out and not is_hidden(op)] or ops[:1]
    doc = next((op.family.doc for op in ops if op.family.doc), "")
    return "\n".join(call_text(op, method) for op in shown) + ("\n\n" + doc if doc else "")


def section(tables, title, prefix, found, method):
    """Entries, functions and the table of definitions for functions, or for methods."""
    entries, functions, rows = [], [], []
    for name, ops in found:
        ops = ordered(ops)
        rows_of = [signature(tables, op, method) for op in ops]
        rows_of += [signature(tables, op, method, own_names=True) for op in ops if op.family.renamed]
        sigs = tables.array("tnpy_sig", "sigs", rows_of)
        i = len(entries)
        numbers = any(op.family.numbers for op in ops)
        in_nn = any(op.family.in_nn for op in ops) or name.startswith(("fft_", "linalg_", "special_"))
        entries.append("    {%s, %s, %d, %d, %d, %d, NULL, NULL, NULL},\n" % (literal(name), sigs, len(rows_of), method, numbers, in_nn))
        functions.append("TNPY_%s(%s_%s, %d)\n" % (title.upper(), prefix, name, i))
        rows.append("    {%s, (PyCFunction)(void (*)(void))%s_%s, METH_FASTCALL | METH_KEYWORDS,\n     %s},\n" % (
            literal(name), prefix, name, literal(doc_of(ops, method))))
    return ("tnpy_entry tnpy_%s_entries[] = {\n%s    {NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL},\n};\n" % (title, "".join(entries)),
            "".join(functions),
            "PyMethodDef tnpy_%ss[] = {\n%s    {NULL, NULL, 0, NULL},\n};\n" % (title, "".join(rows)))


def python_table_c(model):
    tables = Tables()
    functions, methods = groups(model)
    parts = [section(tables, "function", "f", functions, False), section(tables, "method", "m", methods, True)]
    names = "".join("    %s,\n" % literal(name) for name in tables.names)
    text = banner(model, "What Python calls: signatures, and functions for each name.", "")
    text += includes("bind.h")
    text += "const char *const tnpy_name_texts[] = {\n%s    NULL,\n};\n" % names
    text += "PyObject *tnpy_names[%d];\nconst int tnpy_num_names = %d;\n\n" % (len(tables.names) + 1, len(tables.names))
    text += "\n".join(tables.texts) + "\n"
    for entries, bodies, rows in parts:
        text += entries + "\n" + bodies + "\n" + rows + "\n"
    return text
