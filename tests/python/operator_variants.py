# SPDX-License-Identifier: MIT
"""More calls of an operator than its samples: in other dtypes, layouts and sizes, with other numbers, numbers for tensors and the other
way round, arguments by name and at other values than the default, in place, and into tensors that are given. For
compare_operators.py, which see.

A call is a text of arguments, as in the samples: the same one always makes the same tensors."""

import random
import re

from literal import SHORT, split
from operator_calls import arguments, call, torch

TENSOR = re.compile(r"\b(bool|bf16|f16|f32|f64|c64|c128|u8|i8|i16|i32|i64)\[([\d, ]*)\]((?:\.\w+)*)(=[^,\]\s]+)?")
NUMBER = re.compile(r"-?\d+(\.\d*)?(e-?\d+)?$")
DTYPES = ("f32", "f64", "f16", "bf16", "c64", "c128", "i64", "i32", "i16", "i8", "u8", "bool")
MIXED = 24  # calls that a seed makes of each sample


def tensors(text):
    return list(TENSOR.finditer(text))


def changed(text, match, dtype=None, sizes=None, words=None):
    """The text with another tensor in the place of one."""
    made = "%s[%s]%s%s" % (dtype or match[1], match[2] if sizes is None else sizes, match[3] if words is None else words, match[4] or "")
    return text[:match.start()] + made + text[match.end():]


def in_dtypes(text):
    """All tensors of the first one's dtype, then one of them alone."""
    found = tensors(text)
    if not found:
        return
    main = found[0][1]
    alike = [match for match in found if match[1] == main]
    for dtype in DTYPES:
        if dtype == main:
            continue
        yield TENSOR.sub(lambda match: match[0].replace(main + "[", dtype + "[", 1) if match[1] == main else match[0], text)
        if len(alike) > 1 and dtype in ("f64", "i64", "f16", "c64", "bool"):
            for match in (alike[0], alike[-1]):
                yield changed(text, match, dtype=dtype)


def in_layouts(text):
    for match in tensors(text)[:3]:
        ndim = len([size for size in match[2].split(",") if size.strip()])
        if match[3] or ndim == 0:
            continue
        for word, least in ((".t", 2), (".strided", 1), (".expanded", 1), (".offset", 1)):
            if ndim >= least and not (word == ".offset" and "out=" in text):
                yield changed(text, match, words=word)
        if ndim in (4, 5):
            yield changed(text, match, words=".cl")
    alike = [match for match in tensors(text) if match[2] and match[2] == tensors(text)[0][2]]
    if len(alike) > 1:  # all of one size in the same layout
        for word in (".t", ".strided", ".expanded"):
            if "," in alike[0][2] or word != ".t":
                yield TENSOR.sub(lambda match: changed(match[0], TENSOR.match(match[0]), words=word)  # noqa: B023
                                 if match[2] == alike[0][2] and not match[3] else match[0], text)


def in_sizes(text):
    found = tensors(text)
    if not found:
        return
    yield changed(text, found[0], sizes="", words="")
    yield changed(text, found[0], sizes="1," + found[0][2] if found[0][2] else "1", words="")
    sizes = [size.strip() for size in found[0][2].split(",") if size.strip()]
    for d in {0, len(sizes) - 1} if sizes else ():
        gone = list(sizes)
        gone[d] = "0"
        yield changed(text, found[0], sizes=",".join(gone), words="")
        yield TENSOR.sub(lambda match: changed(match[0], TENSOR.match(match[0]), sizes=",".join(gone), words="")
                         if match[2] == found[0][2] else match[0], text)


def as_other_kinds(op, text):
    """A number for a tensor, a tensor without dimensions for a number, None where it may be."""
    schema, pieces = schema_of(op), split(text)
    known = {argument.name: argument for argument in schema.arguments} if schema else {}
    for i, piece in enumerate(pieces):
        key, equals, value = piece.rpartition("=") if "[" not in piece else ("", "", piece)
        value = value.strip()
        argument = known.get(key) if key else schema.arguments[i] if schema and i < len(schema.arguments) else None
        others = ["None"] if argument and str(argument.type).startswith("Optional") else []
        if TENSOR.fullmatch(value) and i:
            others += ["2", "0.5", "True"]
        elif NUMBER.match(value):
            others.append("%s[].number=%s" % ("f64" if "." in value or "e" in value else "i64", value))
        elif value.startswith("["):
            others.append("[]")
        for other in others:
            yield ", ".join(pieces[:i] + [key + equals + other] + pieces[i + 1:])


def in_numbers(text):
    pieces = split(text)
    for i, piece in enumerate(pieces):
        key, equals, value = piece.rpartition("=") if "[" not in piece else ("", "", piece)
        value = value.strip()
        others = ()
        if NUMBER.match(value):
            others = ("0", "-1", "2", "1.5", "True", "nan") if "." in value or "e" in value else ("0", "-1", "1", "3", "1.5", "True")
        elif value in ("True", "False"):
            others = ("False" if value == "True" else "True", "1")
        elif value == "None":
            others = ("1", "0.5")
        for other in others:
            if other != value:
                yield ", ".join(pieces[:i] + [key + equals + other] + pieces[i + 1:])


def schema_of(op):
    name, _, overload = op.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    entry = packet and getattr(packet, overload or "default", None)
    return entry and entry._schema


def other_default(argument):
    """Values for an argument that is not given, other than its default."""
    kind, value = str(argument.type), argument.default_value
    if kind == "bool":
        return ("False",) if value else ("True",)
    if kind == "int":
        return (str(value + 1),) if isinstance(value, int) else ()
    if kind == "float":
        return (str(value * 2 + 0.5),) if isinstance(value, float) else ()
    if kind in ("Optional[int]", "Optional[SymInt]") and argument.name == "dtype":
        return "float64", "int64", "float16"
    if kind == "Optional[int]" and argument.name not in ("layout", "memory_format"):
        return "0", "-1"
    if kind == "Optional[float]":
        return ("0.5",)
    if kind == "Optional[bool]" and argument.name != "pin_memory":
        return "True", "False"
    if kind in ("number", "Union[int, float, bool]", "Scalar", "Optional[number]"):
        return "2", "0.5", "True"
    return ()


def by_name(op, text):
    schema, pieces = schema_of(op), split(text)
    if schema is None or any(re.match(r"\s*[A-Za-z_]\w*=", piece) for piece in pieces):
        return
    if 1 < len(pieces) <= len(schema.arguments):
        named = ["%s=%s" % (argument.name, piece.strip()) for argument, piece in zip(schema.arguments, pieces)]
        yield ", ".join(pieces[:-1] + named[-1:])
        yield ", ".join(pieces[:1] + named[1:])
        yield ", ".join(pieces[:1] + named[:0:-1])
        yield ", ".join(["input=" + pieces[0].strip()] + named[1:])
    for argument in schema.arguments[len(pieces):]:
        if str(argument.type).startswith("Optional"):
            yield "%s, %s=None" % (text, argument.name)
        for value in other_default(argument):
            yield "%s, %s=%s" % (text, argument.name, value)


def given_results(op, text):
    """Into a tensor without elements, one that fits, ones of another size, dtype and layout."""
    packet = getattr(torch.ops.aten, op.partition(".")[0], None)
    if packet is None or not any("out" in overload for overload in packet.overloads()) or "out=" in text or ".out" in op:
        return
    given, named = arguments(text, False)
    result, error = call(torch, op, given, named, operator=False)
    if error is not None or not isinstance(result, torch.Tensor) or result.dtype not in SHORT:
        return
    dtype, sizes = SHORT[result.dtype], ",".join(str(size) for size in result.size())
    if isinstance(call(torch, op, given, dict(named, out=torch.empty_like(result)), operator=False)[1], TypeError):
        return  # not from Python
    yield "%s, out=%s[0]" % (text, dtype)
    yield "%s, out=%s[%s]" % (text, dtype, sizes)
    yield "%s, out=%s[2,%s]" % (text, dtype, sizes) if sizes else "%s, out=%s[2]" % (text, dtype)
    yield "%s, out=%s[]" % (text, dtype)
    yield "%s, out=None" % text
    if sizes:
        yield "%s, out=%s[%s].strided" % (text, dtype, sizes)
        yield "%s, out=%s[%s].offset" % (text, dtype, sizes)
    for other in ("f64", "i64", "c64", "f16", "bool"):
        if other != dtype:
            yield "%s, out=%s[%s]" % (text, other, sizes)
    yield from cast_results(op, text)
    if result.dim() > 1:
        yield "%s, out=%s[%s].t" % (text, dtype, sizes)
        yield "%s, out=%s[%s].expanded" % (text, dtype, sizes)


def cast_results(op, text):
    """In halves, doubles and complex numbers, into a tensor of another inexact dtype."""
    main = tensors(text)[0][1] if tensors(text) else ""
    for dtype, others in (("f16", ("f32", "bf16")), ("bf16", ("f32",)), ("f64", ("f32", "c128")), ("c64", ("c128", "f32"))):
        more = TENSOR.sub(lambda match: match[0].replace(main + "[", dtype + "[", 1) if match[1] == main else match[0], text)  # noqa: B023
        if not main or not can_be_made(more):
            continue
        given, named = arguments(more, False)
        result, error = call(torch, op, given, named, operator=False)
        if error is None and isinstance(result, torch.Tensor) and SHORT.get(result.dtype) == dtype:
            for other in others:
                yield "%s, out=%s[%s]" % (more, other, ",".join(str(size) for size in result.size()))


def in_place(op, text):
    """(the operator that writes its first argument, arguments)."""
    name, _, overload = op.partition(".")
    packet = getattr(torch.ops.aten, name + "_", None)
    if packet is None or name.endswith("_") or "out=" in text or (overload or "default") not in packet.overloads():
        return
    if not TENSOR.match(split(text)[0].strip().lstrip("[")):
        return  # a number is not written
    twin = name + "_" + ("." + overload if overload else "")
    for more in (text, *in_dtypes(text), *in_layouts(text), *in_sizes(text)):
        yield twin, more


def mixed(text, chance):
    """Dtypes, sizes and layouts by chance, at once: equal sizes stay equal, so that most calls are valid."""
    found = tensors(text)
    if not found:
        return
    for _ in range(MIXED):
        dtype = chance.choice(DTYPES) if chance.random() < 0.6 else None
        sizes = {} if chance.random() < 0.7 else None
        lead = chance.choice(("1,", "2,", "2,1,")) if chance.random() < 0.2 else ""

        def another(match):
            own = [size.strip() for size in match[2].split(",") if size.strip()]
            if sizes is not None:  # noqa: B023
                own = [sizes.setdefault(size, chance.choice((size, size, "0", "1", "2", "4", "7"))) for size in own]  # noqa: B023
            words = [word for word, least in ((".t", 2), (".strided", 1), (".expanded", 1), (".offset", 1)) if len(own) >= least]
            if len(own) + lead.count(",") in (4, 5):  # noqa: B023
                words.append(".cl")
            word = chance.choice(words) if words and chance.random() < 0.4 else ""
            kind = dtype if dtype and match[1] == found[0][1] else match[1]  # noqa: B023
            return changed(match[0], TENSOR.match(match[0]), dtype=kind, sizes=lead + ",".join(own), words=word)  # noqa: B023

        yield TENSOR.sub(another, text)


def can_be_made(text):
    try:
        arguments(text, False)
    except Exception:  # noqa: BLE001: a whole number that is infinite, a size that is none
        return False
    return True


def variants(op, samples, seed=0):
    """[(operator, arguments)] beyond the samples. With a seed also calls by chance, of all samples."""
    found = []
    chance = random.Random("%s %d" % (op, seed))
    for sample in [sample for sample in samples if seed and "meta " not in sample]:
        found += [(op, text) for text in mixed(sample, chance)]
    for sample in [sample for sample in samples if "meta " not in sample][:2]:
        found += [(op, text) for make in (in_dtypes, in_layouts, in_sizes, in_numbers) for text in make(sample)]
        found += [(op, text) for text in as_other_kinds(op, sample)]
        found += [(op, text) for text in by_name(op, sample)]
        found += [(op, text) for text in given_results(op, sample)]
        found += list(in_place(op, sample))
    known = {(op, sample) for sample in samples}
    return [entry for entry in dict.fromkeys(found) if entry not in known and can_be_made(entry[1])]
