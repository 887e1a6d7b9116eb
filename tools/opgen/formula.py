# SPDX-License-Identifier: MIT
"""Gradient formulas: expressions over an operator's arguments, results and incoming gradients, compiled to C.

A formula calls operators by their C names (`sum_dim(grad, dims, true)`), which makes it differentiable again; a call
of anything else is a function written by hand, `tni_grad_NAME`. `+ - * /` work on tensors and numbers. What a formula
mentions is what its node saves.
"""

import re

import cargs
from csource import literal
from problems import Problem

TOKEN = re.compile(r"""\s*(?:(\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+|\d+[eE][+-]?\d+)|(\d+)|([A-Za-z_]\w*)"""
                   r"""|("(?:[^"\\]|\\.)*")|(==|!=|<=|>=|&&|\|\||[-+*/(),.\[\]?:<>!]))""")
NUMBERS = ("int", "float", "scalar")
ATTRIBUTES = {"sizes": "ints", "strides": "ints", "ndim": "int", "numel": "int", "dtype": "dtype", "opts": "opts",
              "offset": "int", "column_major": "bool"}


class Value:
    """A compiled piece: its type and its C expressions (a list has two, pointer and count)."""

    def __init__(self, kind, *c):
        self.kind, self.c = kind, list(c)

    @property
    def text(self):
        return self.c[0]


# ---- parsing ----

class Parser:
    """An expression as nested tuples."""

    def __init__(self, text, where):
        self.where, self.tokens, at = where, [], 0
        while text[at:].strip():
            match = TOKEN.match(text, at)
            if not match:
                raise Problem(where, "cannot read '%s' in the formula" % text[at:].strip()[:20])
            self.tokens.append((match.lastindex, match.group(match.lastindex)))
            at = match.end()
        self.i = 0

    def peek(self):
        return self.tokens[self.i][1] if self.i < len(self.tokens) else ""

    def accept(self, *wanted):
        if self.peek() in wanted and self.peek():
            self.i += 1
            return self.tokens[self.i - 1][1]
        return None

    def expect(self, wanted):
        if not self.accept(wanted):
            raise Problem(self.where, "want '%s' in the formula, found '%s'" % (wanted, self.peek() or "the end"))

    def whole(self):
        tree = self.choice()
        if self.peek():
            raise Problem(self.where, "'%s' in the formula is not expected" % self.peek())
        return tree

    def choice(self):
        tree = self.binary(0)
        if self.accept("?"):
            yes = self.choice()
            self.expect(":")
            return ("choice", tree, yes, self.choice())
        return tree

    LEVELS = (("||",), ("&&",), ("==", "!=", "<", ">", "<=", ">="), ("+", "-"), ("*", "/"))

    def binary(self, level):
        if level == len(self.LEVELS):
            return self.unary()
        tree = self.binary(level + 1)
        while True:
            sign = self.accept(*self.LEVELS[level])
            if not sign:
                return tree
            tree = ("binary", sign, tree, self.binary(level + 1))

    def unary(self):
        sign = self.accept("-", "!")
        return ("unary", sign, self.unary()) if sign else self.postfix()

    def items(self, end):
        found = []
        while not self.accept(end):
            if found:
                self.expect(",")
            found.append(self.choice())
        return found

    def postfix(self):
        kind, token = self.tokens[self.i] if self.i < len(self.tokens) else (0, "")
        self.i += 1
        if kind == 1:
            return ("float", token)
        if kind == 2:
            return ("int", token)
        if kind == 4:
            return ("str", token)
        if token == "(":
            tree = self.choice()
            self.expect(")")
            return tree
        if token == "[":
            return ("list", self.items("]"))
        if kind != 3:
            raise Problem(self.where, "want a value in the formula, found '%s'" % (token or "the end"))
        if self.accept("("):
            return ("call", token, self.items(")"))
        if self.accept("["):
            index = self.peek()
            self.i += 1
            self.expect("]")
            return ("element", token, index)
        if self.accept("."):
            name = self.peek()
            self.i += 1
            return ("attribute", token, name)
        return ("name", token)


# ---- types ----

def type_of(kind):
    """The type of an argument in formulas, or None when formulas cannot use it."""
    base = cargs.base_of(kind)
    if base == "Tensor":
        return "tensors" if kind.is_list else "tensor"
    if kind.is_list:
        return {"int": "ints", "bool": "bools", "float": "floats"}.get(base)
    name = {"int": "int", "float": "float", "bool": "bool", "Scalar": "scalar", "str": "str",
            "ScalarType": "dtype"}.get(base)
    if name and kind.optional and name not in ("str", "dtype"):
        return "opt_" + name
    return name


# How a value is kept in a node: C type of the field, statement that keeps it (n: field, x: parameter), and how the
# formula reads it back.
KEEP = {
    "int": ("int64_t", "kept->{n} = {x};", ("kept->{n}",)),
    "float": ("double", "kept->{n} = {x};", ("kept->{n}",)),
    "bool": ("bool", "kept->{n} = {x};", ("kept->{n}",)),
    "scalar": ("tn_scalar", "kept->{n} = {x};", ("kept->{n}",)),
    "dtype": ("tn_dtype", "kept->{n} = {x};", ("kept->{n}",)),
    "opts": ("tn_tensor_opts", "kept->{n} = tni_opts_of({x});", ("&kept->{n}",)),
    "opt_int": ("tn_opt_int", "kept->{n} = {x};", ("kept->{n}",)),
    "opt_float": ("tn_opt_float", "kept->{n} = {x};", ("kept->{n}",)),
    "opt_bool": ("tn_opt_bool", "kept->{n} = {x};", ("kept->{n}",)),
    "opt_scalar": ("tni_kept_scalar", "kept->{n} = tni_keep_scalar({x});", ("(kept->{n}.has ? &kept->{n}.value : NULL)",)),
    "str": ("tni_kept_string", "kept->{n} = tni_keep_string({x});", ("(kept->{n}.has ? kept->{n}.text : NULL)",)),
    "bools": ("tni_kept_bools", "kept->{n} = tni_keep_bools({x}, {x}_n);", ("kept->{n}.v", "kept->{n}.n")),
    "floats": ("tni_kept_floats", "kept->{n} = tni_keep_floats({x}, {x}_n);",
               ("(kept->{n}.has ? kept->{n}.v : NULL)", "kept->{n}.n")),
}


def default_of(arg):
    """C expressions of an argument's default value."""
    kind, text = arg.type, arg.default
    base = cargs.base_of(kind)
    if text is None:
        return None
    if text == "None":
        none = {"int": "tn_no_int()", "float": "tn_no_float()", "bool": "TN_BOOL_NONE", "ScalarType": "TN_DTYPE_NONE",
                "MemoryFormat": "TN_FORMAT_NONE", "Layout": "TN_LAYOUT_NONE", "Device": "TN_NO_DEVICE"}
        if kind.is_list:
            return ["NULL", "0"]
        return [none.get(base, "NULL")]
    if kind.is_list:
        if base == "int" and kind.size and not text.startswith("["):
            return ["(const int64_t[]){%s}" % ", ".join([text] * kind.size), str(kind.size)]
        items = [item.strip() for item in text.strip("[]").split(",") if item.strip()]
        ctype = {"int": "int64_t", "bool": "bool", "float": "double"}[base]
        return ["(const %s[]){%s}" % (ctype, ", ".join(i.lower() for i in items) or "0"), str(len(items))]
    if base == "bool":
        return [text.lower()]
    if base == "Scalar":
        return ["%s(%s)" % ("tn_float" if re.search(r"[.e]", text) else "tn_int", text)]
    if base == "str":
        return [literal(text.strip("\"'"))]
    if kind.optional and base in ("int", "float"):
        return ["tn_some_%s(%s)" % (base, text)]
    return [text]


# ---- compiling ----

class Formula:
    """One `grad` line: gradients of some arguments."""

    def __init__(self, names, tree, where):
        self.names, self.tree, self.where = names, tree, where


class Compiler:
    """Compiles the formulas of one operator, noting what they use. HANDS collects functions written by hand."""

    def __init__(self, op, by_c_name, hands):
        self.op, self.by_c_name, self.hands = op, by_c_name, hands
        self.tensors = {}  # argument: set of edges whose formulas use it
        self.results = {}  # result index: the same
        self.fields = {}  # name: (type, C expression to keep)
        self.lists = {}  # name: call that keeps the integers
        self.tensor_lists = []  # arguments that are lists of tensors, kept whole
        self.grads = set()  # indices of incoming gradients that are used
        self.whole_grads = False
        self.edges, self.where, self.mask = (), None, None
        self.edge_of = {}  # argument that has a gradient: its edge
        self.args = {arg.args[0].name: arg for arg in op.args if not arg.is_options}

    def fail(self, message):
        raise Problem(self.where, message)

    # ---- names ----

    def field(self, name, kind, source, sources=None):
        if kind == "ints":
            self.lists[name] = "tni_keep_ints(&kept->%s, %s, %s)" % ((name,) + tuple(sources))
            return Value("ints", "kept->%s.v" % name, "kept->%s.n" % name)
        if kind not in KEEP:
            self.fail("'%s' has a type that formulas cannot use" % name)
        self.fields[name] = (kind, source)
        kind_c = KEEP[kind]
        return Value(kind, *(c.format(n=name) for c in kind_c[2]))

    def argument(self, name):
        arg = self.args[name]
        kind = type_of(arg.type)
        if kind == "tensor":
            self.tensors.setdefault(name, set()).update(self.edges)
            return Value("tensor", arg.name)
        if kind == "tensors":
            if arg.name not in self.tensor_lists:
                self.tensor_lists.append(arg.name)
            return Value("tensors", arg.name, arg.name + "_n")
        if kind is None:
            self.fail("'%s' has a type that formulas cannot use" % name)
        return self.field(arg.name, kind, arg.name, (arg.name, arg.name + "_n"))

    def result(self, index):
        self.results.setdefault(index, set()).update(self.edges)
        return Value("tensor", "result%d" % index)

    def gradient(self, index):
        if index >= len(self.op.outs):
            self.fail("there are %d results" % len(self.op.outs))
        self.grads.add(index)
        return Value("grad", "b->grads[%d]" % index, str(index))

    def name(self, name):
        if name in ("true", "false"):
            return Value("bool", name)
        if name == "None":
            return Value("none", "NULL")
        if name == "grad":
            return self.gradient(0)
        if name == "grad_" and "grad" in self.args:
            return self.argument("grad")
        if name == "grads":
            self.whole_grads = True
            return Value("tensors", "b->grads", "(int64_t)b->node->n_inputs")
        if name in self.args:
            return self.argument(name)
        if name == "mask":
            if not self.mask:
                self.fail("'mask' is for lines that name several arguments")
            return Value("bools", "needed", str(self.mask))
        names = [out.name for out in self.op.outs]
        if name == "result" and len(names) == 1:
            return self.result(0)
        if name in names and len(names) > 1:
            return self.result(names.index(name))
        self.fail("'%s' in the formula is neither an argument nor a result" % name)

    def attribute(self, name, attribute):
        if attribute == "shapes" and name in self.args and type_of(self.args[name].type) == "tensors":
            x = self.args[name].name
            self.lists[x + "_shapes"] = "tni_keep_shapes(&kept->%s_shapes, %s, %s_n)" % (x, x, x)
            return Value("ints", "kept->%s_shapes.v" % x, "kept->%s_shapes.n" % x)
        if attribute not in ATTRIBUTES:
            self.fail("unknown attribute '%s'; known are: %s" % (attribute, " ".join(ATTRIBUTES)))
        kind = ATTRIBUTES[attribute]
        reads = {"sizes": ("{x}->sizes", "{x}->ndim"), "strides": ("{x}->strides", "{x}->ndim"),
                 "ndim": ("{x}->ndim",), "numel": ("{x}->numel",), "offset": ("{x}->offset",),
                 "dtype": ("(tn_dtype){x}->dtype",), "opts": ("{x}",),
                 "column_major": ("tni_column_major({x})",)}[attribute]
        if name not in self.args or type_of(self.args[name].type) != "tensor":
            self.fail("attributes are for arguments that are tensors, '%s' is none" % name)
        x = self.args[name].name
        sources = tuple(read.format(x=x) for read in reads)
        if self.args[name].type.optional:
            sources = tuple("(%s ? %s : 0)" % (x, source) for source in sources)
        return self.field("%s_%s" % (x, attribute), kind, sources[0], sources)

    # ---- expressions ----

    def compile(self, tree):
        kind = tree[0]
        if kind in ("int", "float"):
            return Value(kind, tree[1])
        if kind == "str":
            return Value("str", tree[1])
        if kind == "name":
            return self.name(tree[1])
        if kind == "attribute":
            return self.attribute(tree[1], tree[2])
        if kind == "element":
            if tree[1] != "grads" or not tree[2].isdigit():
                self.fail("only grads[NUMBER] has elements")
            return self.gradient(int(tree[2]))
        if kind == "list":
            return Value("list", *[self.compile(item) for item in tree[1]])
        if kind == "call":
            return self.call(tree[1], tree[2])
        if kind == "unary":
            return self.unary(tree[1], self.compile(tree[2]))
        if kind == "choice":
            return self.choice(*map(self.compile, tree[1:]))
        return self.binary(tree[1], self.compile(tree[2]), self.compile(tree[3]))

    def tensor(self, value):
        """C of a tensor that an operator takes: an undefined gradient among several is a zero."""
        if value.kind == "grad":
            return value.text if len(self.op.outs) == 1 else "tni_defined_grad(b, %s)" % value.c[1]
        if value.kind != "tensor":
            self.fail("want a tensor in the formula, found %s" % value.kind)
        return value.text

    def scalar(self, value):
        if value.kind == "scalar":
            return value.text
        if value.kind in ("int", "float"):
            return "tn_%s(%s)" % (value.kind, value.text)
        self.fail("want a number in the formula, found %s" % value.kind)

    def unary(self, sign, value):
        if sign == "!":
            return Value("bool", "!" + value.text)
        if value.kind in ("tensor", "grad"):
            return Value("tensor", "tnx_neg(%s)" % self.tensor(value))
        if value.kind == "scalar":
            return Value("scalar", "tni_scalar_neg(%s)" % value.text)
        return Value(value.kind, "-%s" % value.text)

    def choice(self, condition, yes, no):
        if condition.kind != "bool":
            self.fail("want a condition before '?'")
        if yes.kind in ("tensor", "grad") and no.kind in ("tensor", "grad"):
            return Value("tensor", "(%s ? %s : %s)" % (condition.text, self.tensor(yes), self.tensor(no)))
        if yes.kind != no.kind or len(yes.c) != 1:
            self.fail("both sides of ':' want one type")
        return Value(yes.kind, "(%s ? %s : %s)" % (condition.text, yes.text, no.text))

    def binary(self, sign, a, b):
        tensors = [v.kind in ("tensor", "grad") for v in (a, b)]
        if sign in ("==", "!=", "<", ">", "<=", ">=", "&&", "||"):
            if any(tensors):
                self.fail("'%s' does not compare tensors" % sign)
            return Value("bool", "(%s %s %s)" % (a.text, sign, b.text))
        one = "tn_int(1)"
        if all(tensors):
            name = {"+": "add", "-": "sub", "*": "mul", "/": "div"}[sign]
            more = ", " + one if sign in "+-" else ""
            return Value("tensor", "tnx_%s(%s, %s%s)" % (name, self.tensor(a), self.tensor(b), more))
        if tensors[0]:
            name = {"+": "add_scalar", "-": "sub_scalar", "*": "mul_scalar", "/": "div_scalar"}[sign]
            more = ", " + one if sign in "+-" else ""
            return Value("tensor", "tnx_%s(%s, %s%s)" % (name, self.tensor(a), self.scalar(b), more))
        if tensors[1]:
            if sign == "/":
                return Value("tensor", "tnx_mul_scalar(tnx_reciprocal(%s), %s)" % (self.tensor(b), self.scalar(a)))
            name = {"+": "add_scalar", "-": "rsub_scalar", "*": "mul_scalar"}[sign]
            more = ", " + one if sign in "+-" else ""
            return Value("tensor", "tnx_%s(%s, %s%s)" % (name, self.tensor(b), self.scalar(a), more))
        if a.kind not in NUMBERS or b.kind not in NUMBERS:
            self.fail("'%s' wants tensors or numbers" % sign)
        if "scalar" in (a.kind, b.kind):
            name = {"+": "add", "-": "sub", "*": "mul", "/": "div"}[sign]
            return Value("scalar", "tni_scalar_%s(%s, %s)" % (name, self.scalar(a), self.scalar(b)))
        if sign == "/" and a.kind == b.kind == "int":
            self.fail("'/' of two integers is not defined: write a function")
        kind = "float" if "float" in (a.kind, b.kind) else "int"
        cast = "(double)" if kind == "float" else ""
        return Value(kind, "(%s%s %s %s%s)" % (cast if a.kind == "int" else "", a.text, sign,
                                               cast if b.kind == "int" else "", b.text))

    # ---- calls ----

    def pass_to(self, value, arg):
        """C expressions that pass a value to an operator's argument."""
        kind, base = arg.type, cargs.base_of(arg.type)
        if arg.is_options:
            if value.kind == "none":
                return ["NULL"]
            if value.kind == "opts":
                return value.c
        elif value.kind == "none":
            if kind.is_list:
                return ["NULL", "0"]
            return default_of(arg.args[0].__class__(kind, "", "None"))
        elif base == "Tensor" and kind.is_list:
            if value.kind == "list":
                return ["(tn_tensor *const[]){%s}" % ", ".join(self.tensor(v) for v in value.c), str(len(value.c))]
            if value.kind == "tensors":
                return value.c
        elif base == "Tensor":
            return [value.text if kind.optional and value.kind == "grad" else self.tensor(value)]
        elif kind.is_list:
            if value.kind == "list":
                ctype = {"int": "int64_t", "bool": "bool", "float": "double"}[base]
                return ["(const %s[]){%s}" % (ctype, ", ".join(v.text for v in value.c) or "0"), str(len(value.c))]
            if value.kind == base + "s":
                return value.c
        elif base == "Scalar":
            if value.kind == "opt_scalar" and kind.optional:
                return value.c
            return ["(const tn_scalar[]){%s}" % self.scalar(value)] if kind.optional else [self.scalar(value)]
        elif base in ("int", "float") and kind.optional:
            if value.kind == "opt_" + base:
                return value.c
            if value.kind in ("int", "float"):
                return ["tn_some_%s(%s)" % (base, value.text)]
        elif base == "bool" and kind.optional:
            return value.c if value.kind == "opt_bool" else ["(%s ? TN_BOOL_TRUE : TN_BOOL_FALSE)" % value.text]
        elif base == "float" and value.kind in ("int", "float"):
            return ["(double)" + value.text if value.kind == "int" else value.text]
        elif type_of(kind) == value.kind:
            return value.c
        self.fail("argument '%s' wants %s, found %s" % (arg.args[0].name, kind, value.kind))

    def operator_arguments(self, op, values):
        if len(values) > len(op.args):
            self.fail("%s takes %d arguments, found %d" % (op.c_name, len(op.args), len(values)))
        found = []
        for i, arg in enumerate(op.args):
            if i < len(values):
                found += self.pass_to(values[i], arg)
                continue
            default = ["NULL"] if arg.is_options else default_of(arg.args[0])
            if default is None:
                self.fail("%s wants an argument '%s'" % (op.c_name, arg.args[0].name))
            found += default
        return found

    C_TYPES = {"tensor": ("tn_tensor *",), "grad": ("tn_tensor *",), "int": ("int64_t",), "float": ("double",),
               "bool": ("bool",), "scalar": ("tn_scalar",), "ints": ("const int64_t *", "int64_t"),
               "bools": ("const bool *", "int64_t"), "floats": ("const double *", "int64_t"),
               "str": ("const char *",), "dtype": ("tn_dtype",),
               "opts": ("const tn_tensor_opts *",), "none": ("tn_tensor *",),
               "opt_int": ("tn_opt_int",), "opt_float": ("tn_opt_float",), "opt_bool": ("tn_opt_bool",),
               "opt_scalar": ("const tn_scalar *",), "tensors": ("tn_tensor *const *", "int64_t")}

    def hand_arguments(self, name, values, kind):
        """Arguments of a function written by hand; notes its prototype."""
        params, found = [], []
        for i, value in enumerate(values):
            if value.kind == "list":
                value = Value("ints", "(const int64_t[]){%s}" % ", ".join(v.text for v in value.c), str(len(value.c)))
            for j, ctype in enumerate(self.C_TYPES[value.kind]):
                params.append((ctype, "a%d%s" % (i, "_n" if j else "")))
            found += value.c[:1] if value.kind == "grad" else value.c
        other = self.hands.setdefault(name, (kind, [t for t, _ in params], params, self.where))
        if (other[0], other[1]) != (kind, [t for t, _ in params]):
            self.fail("tni_grad_%s has another signature at %s:%d" % ((name,) + other[3]))
        return found

    def call(self, name, trees):
        if name == "needs":
            if len(trees) != 1 or trees[0][0] != "name" or trees[0][1] not in self.edge_of:
                self.fail("needs() wants an argument that has a gradient")
            return Value("bool", "tni_backward_needs(b, %d)" % self.edge_of[trees[0][1]])
        values = [self.compile(tree) for tree in trees]
        op = None if name == "conj" else self.by_c_name.get(name)  # conj: no call for real tensors
        if op is None:
            return Value("tensor", "tni_grad_%s(%s)" % (name, ", ".join(self.hand_arguments(name, values, "one"))))
        if not op.one_tensor:
            self.fail("%s does not return one tensor" % name)
        return Value("tensor", "tnx_%s(%s)" % (op.c_name, ", ".join(self.operator_arguments(op, values))))

    # ---- whole lines ----

    def assign(self, formula, edges):
        """Statements that compute one line's gradients. EDGES: edge of each named argument."""
        self.where, self.edges = formula.where, tuple(edges)
        if len(edges) == 1:
            value = self.compile(formula.tree)
            if value.kind == "none":
                return []
            if value.kind == "grad":
                value = Value("tensor", value.text)
            return ["if (tni_backward_needs(b, %d))" % edges[0],
                    "    b->results[%d] = %s;" % (edges[0], self.tensor(value))]
        self.mask = len(edges)
        if formula.tree[0] != "call":
            self.fail("a line for several arguments wants a call")
        name, values = formula.tree[1], [self.compile(tree) for tree in formula.tree[2]]
        op = self.by_c_name.get(name)
        if op is None:
            run = "tni_grad_%s(%s)" % (name, ", ".join(self.hand_arguments(name, values, "several") + ["made"]))
        else:
            if len(op.outs) != len(edges) or any(out.is_list for out in op.outs):
                self.fail("%s has %d results, wanted %d" % (name, len(op.outs), len(edges)))
            results = ["&made[%d]" % i for i in range(len(edges))]
            run = "tn_%s(%s)" % (op.c_name, ", ".join(self.operator_arguments(op, values) + results))
        self.mask = None
        needs = ", ".join("tni_backward_needs(b, %d)" % edge for edge in edges)
        return ["{", "    const bool needed[] = {%s};" % needs,
                "    tn_tensor *made[%d] = {NULL};" % len(edges),
                "    static const uint8_t edges[] = {%s};" % ", ".join(map(str, edges)),
                "    if (tni_any(needed, %d) && !tni_scope_failed())" % len(edges),
                "        tni_take_results(b, %s, edges, made, %d);" % (run, len(edges)), "}"]

    def assign_list(self, formula, first):
        """The gradients of a list of tensors, from edge FIRST to the last."""
        self.where, self.edges = formula.where, ()
        if formula.tree[0] != "call":
            self.fail("the gradients of a list want a call")
        name, values = formula.tree[1], [self.compile(tree) for tree in formula.tree[2]]
        args = self.hand_arguments(name, values, "list")
        return ["tni_grad_%s(%s);" % (name, ", ".join(args + ["b", str(first)]))]
