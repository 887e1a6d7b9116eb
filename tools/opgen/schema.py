# SPDX-License-Identifier: MIT
"""Schemas of declarations: parser, printer, and the schemas of variants.

The grammar is that of src/op/schema.h, less what no declared operator may use (tuples, dicts, classes,
type variables, varargs): those have no C type.
"""

import re
from dataclasses import dataclass, replace

BASES = ("Tensor", "int", "SymInt", "float", "bool", "SymBool", "Scalar", "str", "ScalarType", "Layout",
         "MemoryFormat", "Device", "Generator", "Storage", "Stream")
TOKEN = re.compile(r"""\s*(?:(->|::|\.\.\.)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
                   r"""|(-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|([()\[\],.=*!?|]))""")
OPTIONS = (("dtype", "ScalarType"), ("layout", "Layout"), ("device", "Device"), ("pin_memory", "bool"))


class SchemaError(Exception):
    pass


@dataclass(frozen=True)
class Alias:
    before: str  # "a", "a|b", "*"
    write: bool
    after: str  # the same as before unless "->" was given

    def __str__(self):
        arrow = " -> " + self.after if self.after != self.before else ""
        return "(%s%s%s)" % (self.before, "!" if self.write else "", arrow)


@dataclass(frozen=True)
class Type:
    base: str
    alias: Alias = None
    element_optional: bool = False  # Tensor?[]
    is_list: bool = False
    size: int = None  # N of int[N]
    optional: bool = False

    def text(self, with_alias=True, with_size=True):
        text = self.base + (str(self.alias) if self.alias and with_alias else "")
        if self.is_list:
            size = str(self.size) if self.size is not None and with_size else ""
            text += ("?" if self.element_optional else "") + "[" + size + "]"
        return text + ("?" if self.optional else "")

    def __str__(self):
        return self.text()

    @property
    def is_tensor(self):
        return self.base == "Tensor"

    @property
    def write(self):
        return self.alias is not None and self.alias.write


@dataclass(frozen=True)
class Arg:
    type: Type
    name: str  # "" for a result without one
    default: str = None  # as written
    kw_only: bool = False

    def __str__(self):
        text = "%s %s" % (self.type, self.name) if self.name else str(self.type)
        return text + ("=" + self.default if self.default is not None else "")


@dataclass(frozen=True)
class Schema:
    ns: str
    name: str
    overload: str
    args: tuple
    rets: tuple

    @property
    def full(self):
        return "%s::%s%s" % (self.ns, self.name, "." + self.overload if self.overload else "")

    def __str__(self):
        parts, star = [], False
        for arg in self.args:
            if arg.kw_only and not star:
                parts.append("*")
                star = True
            parts.append(str(arg))
        rets = ", ".join(map(str, self.rets))
        return "%s(%s) -> %s" % (self.full, ", ".join(parts),
                                 rets if len(self.rets) == 1 else "(%s)" % rets)

    def signature(self):
        """Types alone, as kernels carry them."""
        def plain(arg):
            return arg.type.text(with_alias=False, with_size=False)
        rets = ", ".join(map(plain, self.rets))
        return "(%s) -> %s" % (", ".join(map(plain, self.args)),
                               rets if len(self.rets) == 1 else "(%s)" % rets)


class Parser:
    def __init__(self, text):
        self.text = text
        self.tokens = []
        at = 0
        while text[at:].strip():
            match = TOKEN.match(text, at)
            if not match:
                raise SchemaError("cannot read '%s' in the schema" % text[at:].strip()[:20])
            self.tokens.append((match.group(match.lastindex), match.lastindex))
            at = match.end()
        self.i = 0

    def peek(self):
        return self.tokens[self.i][0] if self.i < len(self.tokens) else ""

    def kind(self):
        return self.tokens[self.i][1] if self.i < len(self.tokens) else 0

    def take(self, want=None):
        token = self.peek()
        if want is not None and token != want:
            raise SchemaError("want '%s' in the schema, found '%s'" % (want, token or "the end"))
        self.i += 1
        return token

    def accept(self, token):
        if self.peek() == token:
            self.i += 1
            return True
        return False

    def ident(self, what):
        if self.kind() != 4:
            raise SchemaError("want %s in the schema, found '%s'" % (what, self.peek() or "the end"))
        return self.take()

    def alias(self):
        if not self.accept("("):
            return None
        before = self.sets()
        write = self.accept("!")
        after = self.sets() if self.accept("->") else before
        self.take(")")
        return Alias(before, write, after)

    def sets(self):
        names = [self.take() if self.peek() == "*" else self.ident("an alias set")]
        while self.accept("|"):
            names.append(self.take() if self.peek() == "*" else self.ident("an alias set"))
        return "|".join(names)

    def type(self):
        base = self.ident("a type")
        if base not in BASES:
            raise SchemaError("unknown type '%s'" % base)
        kind = Type(base, self.alias())
        while self.peek() in ("?", "["):
            if self.accept("?"):
                if kind.optional:
                    raise SchemaError("'%s?' says optional twice" % kind)
                kind = replace(kind, optional=True)
            else:
                if kind.is_list:
                    raise SchemaError("lists of lists have no C type: '%s[]'" % kind)
                self.take("[")
                size = int(self.take()) if self.kind() == 3 else None
                self.take("]")
                kind = replace(kind, is_list=True, size=size, element_optional=kind.optional,
                               optional=False)
        return kind

    def default(self):
        """The default as text, spaces normalised."""
        if self.accept("["):
            items = []
            while not self.accept("]"):
                items.append(self.constant())
                if self.peek() != "]":
                    self.take(",")
            return "[%s]" % ", ".join(items)
        return self.constant()

    def constant(self):
        if self.kind() not in (2, 3, 4):
            raise SchemaError("want a default in the schema, found '%s'" % (self.peek() or "the end"))
        return self.take()

    def schema(self):
        ns, name, overload = "aten", self.ident("a name"), ""
        if self.accept("::"):
            ns, name = name, self.ident("a name")
        if self.accept("."):
            overload = self.ident("an overload name")
        self.take("(")
        args, kw_only = [], False
        while not self.accept(")"):
            if args or kw_only:
                self.take(",")
            if not kw_only and self.accept("*"):
                kw_only = True
                continue
            kind = self.type()
            arg = Arg(kind, self.ident("an argument name"), None, kw_only)
            if self.accept("="):
                arg = replace(arg, default=self.default())
            args.append(arg)
        self.take("->")
        rets = self.returns()
        if self.peek():
            raise SchemaError("want the end of the schema, found '%s'" % self.peek())
        return Schema(ns, name, overload, tuple(args), tuple(rets))

    def returns(self):
        if not self.accept("("):
            return [self.ret()]
        rets = []
        while not self.accept(")"):
            if rets:
                self.take(",")
            rets.append(self.ret())
        return rets

    def ret(self):
        kind = self.type()
        return Arg(kind, self.take() if self.kind() == 4 else "")


NUMBER = re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?$")
INTEGER = re.compile(r"-?\d+$")
DTYPES = ("float", "double", "half", "long", "int", "short", "bool", "uint8", "int8", "int16", "int32",
          "int64", "float16", "float32", "float64", "bfloat16", "complex64", "complex128")
CONSTANTS = {  # what a default of a base type may be
    "int": INTEGER.match,
    "SymInt": INTEGER.match,
    "float": NUMBER.match,
    "bool": lambda text: text in ("True", "False"),
    "Scalar": lambda text: NUMBER.match(text) or text in ("True", "False"),
    "str": lambda text: text[0] in "\"'",
    "ScalarType": lambda text: text in DTYPES,
    "Layout": lambda text: text == "strided",
    "MemoryFormat": lambda text: text in ("contiguous_format", "preserve_format", "channels_last"),
    "Device": lambda text: text[0] in "\"'",
}


def default_fits(arg):
    text, kind = arg.default, arg.type
    if text == "None":
        return kind.optional
    constant = CONSTANTS.get(kind.base, lambda _: False)
    if not kind.is_list:
        return bool(constant(text)) if not text.startswith("[") else False
    if text.startswith("["):
        return all(constant(item) for item in text[1:-1].split(", ") if item)
    return kind.size is not None and bool(constant(text))


def check(schema):
    """Rules beyond the grammar; yields messages."""
    seen, optional_before = set(), None
    for arg in schema.args:
        if arg.name in seen:
            yield "argument '%s' is declared twice" % arg.name
        seen.add(arg.name)
        if arg.default is not None and not default_fits(arg):
            yield "'%s' is no default for '%s %s'" % (arg.default, arg.type, arg.name)
        if arg.default is not None:
            optional_before = arg.name
        elif optional_before and not arg.kw_only and not arg.type.is_list:
            yield "argument '%s' has no default but follows '%s', which has one" % (arg.name,
                                                                                   optional_before)
        if arg.type.alias and not arg.type.is_tensor:
            yield "argument '%s': only tensors have alias annotations" % arg.name
        if arg.type.element_optional and not arg.type.is_tensor:
            yield "argument '%s': '%s' has no C type" % (arg.name, arg.type)
    if len(schema.args) > 64:
        yield "an operator has at most 64 arguments"
    if schema.overload == "default" or schema.overload.startswith("__"):
        yield "'%s' is no overload name" % schema.overload
    sets = {}
    for arg in schema.args:
        if arg.type.alias:
            sets.setdefault(arg.type.alias.before, arg)
    for ret in schema.rets:
        alias = ret.type.alias
        if alias and alias.after not in sets:
            yield "the result '%s' aliases no argument" % ret.type
        elif alias and alias.write and not sets[alias.after].type.write:
            yield "the result '%s' is written, but argument '%s' is not" % (
                ret.type, sets[alias.after].name)


def parse(text):
    return Parser(text).schema()


def options_at(args, i):
    """Do dtype, layout, device, pin_memory begin at argument i?"""
    group = args[i:i + 4]
    return len(group) == 4 and all(
        arg.name == name and arg.type == Type(base, optional=True)
        for arg, (name, base) in zip(group, OPTIONS))


def without_options(args):
    for i in range(len(args)):
        if options_at(args, i):
            return args[:i] + args[i + 4:]
    return args


def inplace(schema, overload):
    """name_(Tensor(a!) self, …) -> Tensor(a!)"""
    written = Type("Tensor", Alias("a", True, "a"))
    self = replace(schema.args[0], type=written)
    return replace(schema, name=schema.name + "_", overload=overload, args=(self,) + schema.args[1:],
                   rets=(Arg(written, ""),))


def out_overload(overload):
    return "out" if overload in ("", "Tensor") else overload + "_out"


def out_names(schema):
    if len(schema.rets) == 1:
        return ["out"]
    return [ret.name or "out%d" % i for i, ret in enumerate(schema.rets)]


def out(schema, overload, names=(), named_results=True):
    """name.overload(…, *, Tensor(a!) out) -> Tensor(a!); options are those of `out`. A list that is written is not returned:
    name.overload(…, *, Tensor(a!)[] out) -> ()."""
    names = names or out_names(schema)
    if schema.rets[0].type.is_list:
        written = replace(schema.rets[0].type, alias=Alias("a", True, "a"))
        return replace(schema, overload=overload, args=schema.args + (Arg(written, names[0], None, True),), rets=())
    types = [Type("Tensor", Alias(chr(ord("a") + i), True, chr(ord("a") + i)))
             for i in range(len(names))]
    outs = tuple(Arg(kind, name, None, True) for kind, name in zip(types, names))
    rets = tuple(replace(ret, type=kind, name=ret.name if named_results else "")
                 for kind, ret in zip(types, schema.rets))
    return replace(schema, overload=overload, args=without_options(schema.args) + outs, rets=rets)
