# SPDX-License-Identifier: MIT
"""Forward mode: what `jvp` lines mean. The rules are data that src/autograd/forward_call.c follows with boxed
arguments; only explicit formulas become code, which reads these arguments."""

from formula import Compiler, Parser, Value, type_of
from problems import Problem

AUTO = {"auto_linear": "TNI_JVP_LINEAR", "auto_element_wise": "TNI_JVP_ELEMENT_WISE", "auto_twice": "TNI_JVP_TWICE"}

# How a formula reads a boxed argument (x: the value).
READ = {
    "opt_scalar": ("tni_jvp_opt_scalar(&{x}, &(tn_scalar){{0}})",), "opt_int": ("tni_jvp_opt_int(&{x})",),
    "opt_bool": ("tni_jvp_opt_bool(&{x})",),
    "tensor": ("{x}.u.tensor",), "int": ("{x}.u.i",), "float": ("{x}.u.f",), "bool": ("({x}.u.i != 0)",),
    "scalar": ("tni_jvp_scalar(&{x})",), "dtype": ("tni_jvp_dtype(&{x})",), "str": ("{x}.u.text",),
    "ints": ("{x}.u.ints", "(int64_t){x}.count"), "floats": ("{x}.u.floats", "(int64_t){x}.count"),
    "bools": ("{x}.u.bools", "(int64_t){x}.count"), "tensors": ("{x}.u.tensors", "(int64_t){x}.count"),
}
ATTRIBUTES = {"sizes": ("ints", "{x}->sizes", "{x}->ndim"), "strides": ("ints", "{x}->strides", "{x}->ndim"),
              "ndim": ("int", "{x}->ndim"), "numel": ("int", "{x}->numel"), "dtype": ("dtype", "(tn_dtype){x}->dtype")}


class Line:
    """A `jvp` line: one of the automatic kinds, or the tree of a formula."""

    def __init__(self, auto, tree, where):
        self.auto, self.tree, self.where = auto, tree, where


def parse(line, formulas):
    if not line:
        return None
    if not formulas:
        raise Problem(line.where, "`jvp` is for operators that have `grad` lines")
    if line.rest.startswith("auto_"):
        if line.rest not in AUTO:
            raise Problem(line.where, "unknown kind '%s'; known are: %s" % (line.rest, " ".join(AUTO)))
        return Line(AUTO[line.rest], None, line.where)
    return Line(None, Parser(line.rest, line.where).whole(), line.where)


def terms(tree):
    """[(sign, tree)] of a sum."""
    if tree[0] == "binary" and tree[1] in "+-":
        return terms(tree[2]) + [(tree[1], tree[3])]
    return [("+", tree)]


def names_in(tree):
    if tree[0] == "name":
        return {tree[1]}
    return set().union(*[names_in(item) for item in tree if isinstance(item, tuple)],
                       *[names_in(item) for part in tree if isinstance(part, list) for item in part])


class Terms(Compiler):
    """Compiles a formula over boxed arguments `f->args`, results `f->results` and tangents `f->tangents`."""

    def __init__(self, op, edges, by_c_name, hands):
        super().__init__(op, by_c_name, hands)
        self.edges_of_args = edges
        self.alone = None  # the one tangent that a term has; it is there when the term is computed

    def argument(self, name):
        arg = self.args[name]
        kind = type_of(arg.type)
        if kind not in READ:
            self.fail("'%s' has a type that formulas of tangents cannot use" % name)
        x = "f->args[%d]" % arg.index
        return Value(kind, *(read.format(x=x) for read in READ[kind]))

    def result(self, index):
        if self.op.outs[index].arg:
            self.fail("the tangent of what is written is computed before it is: say it without the result")
        return Value("tensor", "f->results[%d].u.tensor" % index)

    def tangent_of(self, name):
        """The argument whose tangent the name is, or None."""
        return self.args.get(name[:-2]) if name.endswith("_t") and name not in self.args else None

    def name(self, name):
        if name in ("grad", "grads", "mask"):
            self.fail("'%s' is for `grad` lines" % name)
        arg = self.tangent_of(name)
        if not arg:
            return super().name(name)
        if arg not in self.edges_of_args or arg.type.is_list:
            self.fail("'%s' is no tensor that has a gradient" % name[:-2])
        if name == self.alone:
            return Value("tensor", "f->tangents[%d]" % arg.index)
        return Value("tensor", "tni_jvp_tangent(f, %d)" % arg.index)

    def attribute(self, name, attribute):
        if name not in self.args or type_of(self.args[name].type) != "tensor":
            self.fail("attributes are for arguments that are tensors, '%s' is none" % name)
        if attribute not in ATTRIBUTES:
            self.fail("unknown attribute '%s'; known are: %s" % (attribute, " ".join(ATTRIBUTES)))
        kind, *reads = ATTRIBUTES[attribute]
        return Value(kind, *(read.format(x="f->args[%d].u.tensor" % self.args[name].index) for read in reads))

    def statements(self, line):
        self.where = line.where
        body = []
        for sign, tree in terms(line.tree):
            found = sorted((name for name in names_in(tree) if self.tangent_of(name)),
                           key=lambda name: self.tangent_of(name).index)
            if not found:
                self.fail("each term of the sum wants a tangent, the name of an argument with _t")
            self.alone = found[0] if len(found) == 1 else None
            value = self.compile(tree)
            text = self.tensor(value)
            tests = " || ".join("f->tangents[%d]" % self.tangent_of(name).index for name in found)
            body += ["if (%s)" % tests,
                     "    sum = tni_jvp_sum(sum, %s);" % (text if sign == "+" else "tnx_neg(%s)" % text)]
        return body


class Tangent:
    """The rule of one operator."""

    def __init__(self, op, line, by_c_name, hands):
        named = {arg.args[0].name for arg in op.gradient.singles} if op.gradient not in (None, "none") else set()
        if op.gradient not in (None, "none") and op.gradient.list:
            named.add(op.gradient.list.args[0].name)
        edges = [arg for arg in op.args if arg.is_tensor and arg.args[0].name in named]
        self.op, self.twin = op, None
        self.kind = line.auto or "TNI_JVP_FORMULA"
        self.edges = sum(1 << arg.index for arg in edges)
        if self.kind == "TNI_JVP_LINEAR" and op.outs[0].arg:
            self.kind = "TNI_JVP_FOLLOW"
            if "inplace_view" in op.family.tags:
                self.kind, self.twin = "TNI_JVP_MOVED", by_c_name.get(op.c_name.rstrip("_"))
                if self.twin is None:
                    raise Problem(line.where, "what changes the sizes of its argument follows the view of the same name, and there is none")
        if self.kind in ("TNI_JVP_FORMULA", "TNI_JVP_ELEMENT_WISE") and op.gradient not in (None, "none") \
                and op.gradient.differentiable != [0]:
            raise Problem(line.where, "this gives the tangent of the first result alone, others have gradients too")
        self.body = Terms(op, edges, by_c_name, hands).statements(line) if line.tree else None

    @classmethod
    def of_twin(cls, op, twin):
        """Of an operator that writes its first argument; None where the twin's rule does not say enough."""
        made = cls.__new__(cls)
        made.op, made.edges, made.body = op, twin.edges, None
        if op.family.kind == "view" or "inplace_view" in op.family.tags:
            if twin.kind not in ("TNI_JVP_LINEAR", "TNI_JVP_FORMULA"):
                return None
            made.kind, made.twin = "TNI_JVP_MOVED", twin.op
        else:
            made.kind, made.twin = "TNI_JVP_WRITTEN", twin.op
        return made
