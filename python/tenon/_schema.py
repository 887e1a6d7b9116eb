# SPDX-License-Identifier: MIT
"""Schemas of operators as objects: what `op._schema` gives. They are read from the text that the library prints."""

# Kinds of arguments, as python/src/bind.h numbers them.
(_TENSOR, _TENSORS, _OPT_TENSORS, _INT, _INTS, _FLOAT, _FLOATS, _BOOL, _BOOLS, _SCALAR, _SCALARS, _STR, _DTYPE,
 _LAYOUT, _FORMAT, _DEVICE, _GENERATOR, _STORAGE, _STREAM) = range(19)
_OPTIONAL = 1

_KINDS = {
    "Tensor": _TENSOR, "int": _INT, "SymInt": _INT, "float": _FLOAT, "bool": _BOOL, "SymBool": _BOOL,
    "Scalar": _SCALAR, "complex": _SCALAR, "str": _STR, "Device": _DEVICE, "ScalarType": _DTYPE, "Layout": _LAYOUT,
    "MemoryFormat": _FORMAT, "Generator": _GENERATOR, "Storage": _STORAGE, "Stream": _STREAM}
_LISTS = {_TENSOR: _TENSORS, _INT: _INTS, _FLOAT: _FLOATS, _BOOL: _BOOLS, _SCALAR: _SCALARS}
# How torch's type objects are printed.
_TYPE_NAMES = {"Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "SymInt": "int",
               "SymBool": "bool"}


class SchemaType:
    """The type of an argument: `str()` writes it as torch's type objects do."""

    def __init__(self, text):
        self._text = text
        self._N = None

    def kind(self):
        return self._text

    def __str__(self):
        text = self._text
        if text.endswith("?"):
            return "Optional[%s]" % SchemaType(text[:-1])
        if text.endswith("]"):
            return "List[%s]" % SchemaType(text[:text.rindex("[")])
        return _TYPE_NAMES.get(text, text)

    annotation_str = property(__str__)

    def __repr__(self):
        return str(self)

    def __eq__(self, other):
        return isinstance(other, SchemaType) and self._text == other._text

    def __hash__(self):
        return hash(self._text)

    def code(self):
        """Its kind, whether it may be None, and N of `int[N]`."""
        text, optional, size = self._text, 0, 0
        if text.endswith("?"):
            text, optional = text[:-1], _OPTIONAL
        if not text.endswith("]"):
            return _KINDS.get(text, _STR), optional, 0
        at = text.rindex("[")
        if text[at + 1:-1]:
            size = int(text[at + 1:-1])
        element = text[:at]
        if element == "Tensor?":
            return _OPT_TENSORS, optional, size
        return _LISTS.get(_KINDS.get(element), _SCALARS), optional, size


class AliasInfo:
    def __init__(self, text):
        self.is_write = "!" in text
        before, _, after = text.replace("!", "").partition("->")
        self.before_set = {part.strip() for part in before.split("|")}
        self.after_set = {part.strip() for part in after.split("|")} if after.strip() else set(self.before_set)


class Argument:
    def __init__(self, name, type, default, kwarg_only, alias, size):
        self.name = name
        self.type = self.real_type = type
        self._default = default
        self.kwarg_only = kwarg_only
        self.alias_info = alias
        self.N = size or None

    @property
    def default_value(self):
        return None if self._default is _MISSING else self._default

    def has_default_value(self):
        return self._default is not _MISSING

    @property
    def is_write(self):
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self):
        return self.kwarg_only and self.is_write


class FunctionSchema:
    def __init__(self, text):
        self._text = text
        full, rest = text.split("(", 1)
        self.name, _, self.overload_name = full.partition(".")
        inside, returns = _split_arrow(rest)
        self.is_vararg = "..." in inside
        self.arguments = _arguments(inside)
        returns = returns.strip()
        if returns.startswith("(") and returns.endswith(")"):
            returns = returns[1:-1]
        self.returns = _arguments(returns)

    @property
    def is_mutable(self):
        return any(argument.is_write for argument in self.arguments)

    def __str__(self):
        return self._text

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, FunctionSchema) and self._text == other._text

    def __hash__(self):
        return hash(self._text)


_MISSING = object()


def _split_arrow(text):
    """What stands between the parentheses, and what behind the arrow."""
    depth = 1
    for at, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if not depth:
            return text[:at], text[at + 1:].split("->", 1)[1]
    raise ValueError("a schema without its closing parenthesis: %r" % text)


def _parts(text):
    depth, start, quote, parts = 0, 0, "", []
    for at, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return parts + [last] if last else parts


def _arguments(text):
    arguments, kwarg_only = [], False
    for part in _parts(text):
        if part == "*":
            kwarg_only = True
            continue
        if part == "...":
            continue
        arguments.append(_argument(part, kwarg_only))
    return arguments


def _argument(text, kwarg_only):
    alias = None
    if "(" in text and "=" not in text.split("(", 1)[0]:
        at = text.index("(")
        end = text.index(")", at)
        alias = AliasInfo(text[at + 1:end])
        text = text[:at] + text[end + 1:]
    declared, _, default = text.partition("=")
    type_text, _, name = declared.strip().partition(" ")
    type = SchemaType(type_text)
    _, _, size = type.code()
    return Argument(name.strip(), type, _default(default, type) if default else _MISSING, kwarg_only, alias, size)


def _default(text, type):
    """A default as Python has it."""
    kind = type.code()[0]
    if text == "None":
        return None
    if text in ("True", "False"):
        return text == "True"
    if text[:1] in "\"'":
        return text[1:-1]
    if text[:1] == "[":
        return [_default(part, SchemaType(type._text.rstrip("?").rpartition("[")[0])) for part in _parts(text[1:-1])]
    if kind in (_DTYPE, _LAYOUT, _FORMAT, _DEVICE):
        return _constant(text, kind)
    try:
        value = int(text)
    except ValueError:
        return {"Mean": 1, "Sum": 2}.get(text) or float(text)
    if kind == _FLOAT:
        return float(value)
    if type.code()[0] == _INTS and type.code()[2]:
        return [value] * type.code()[2]
    return value


def _constant(text, kind):
    import tenon
    if kind == _DEVICE:
        return tenon.device(text)
    return int(text) if text.isdigit() else getattr(tenon, text, None)
