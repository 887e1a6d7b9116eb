# SPDX-License-Identifier: MIT
"""Golden files: argument literals as PyTorch values, and a writer of cases. See README.md beside it.

    with Writer("pointwise") as w:
        w.tensor("a", torch.ones(2, 3).t())
        w.case("add.Tensor", "$a, f32[2], alpha=2", "ulp=1")

A case is computed from the very text that is written, so the two cannot disagree."""

import os
import re
import warnings

import torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)

DTYPES = {"bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16,
          "i32": torch.int32, "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16,
          "f32": torch.float32, "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128}
SHORT = {dtype: name for name, dtype in DTYPES.items()}
LONG = {str(dtype)[6:]: dtype for dtype in SHORT}
FORMATS = {"contiguous_format": torch.contiguous_format, "preserve_format": torch.preserve_format,
           "channels_last": torch.channels_last, "channels_last_3d": torch.channels_last_3d}
TENSOR = re.compile(r"(?:(cpu|meta) )?(bool|b?f16|[uif]\d+|c64|c128)\[([\d, ]*)\]((?:\.\w+)*)(?:=(.+))?$")
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


# ---- tensor literals: Note [Argument literals] of src/op/schema.h ----

SHIFT = 0  # where in the sequence of values tensors start: other than 0 in comparisons alone, never in golden files
SCATTERED = False  # the values in another order, without the period that leaves larger matrices without full rank: as SHIFT


def pattern(k):
    if SCATTERED:
        k = (k + 1) * 2654435761 % 2**32
        k = (k ^ k >> 15) * 2246822519 % 2**32
        k ^= k >> 13
    m = (7919 * k + 13) % 41 - 20
    return (m if m else 21) / 8


def value_at(dtype, k):
    if dtype.is_complex:
        return complex(pattern(k), pattern(k + 7))
    if dtype.is_floating_point:
        return pattern(k)
    if dtype == torch.bool:
        return k % 2 == 0
    if dtype == torch.uint8:
        return (7919 * k + 13) % 10
    return (7919 * k + 13) % 11 - 5


def make_tensor(text):
    device, short, sizes, modifiers, fill = TENSOR.match(text).groups()
    dtype = DTYPES[short]
    sizes = [int(size) for size in sizes.split(",")] if sizes.strip() else []
    words = modifiers.split(".")[1:]
    memory = list(sizes)
    if "t" in words:
        memory[-1], memory[-2] = sizes[-2], sizes[-1]
    elif "strided" in words:
        memory[-1] *= 2
    elif "expanded" in words:
        memory[0] = min(memory[0], 1)
    n = 1
    for size in memory:
        n *= size
    strides = [1] * len(memory)
    for d in range(len(memory) - 2, -1, -1):
        strides[d] = strides[d + 1] * max(memory[d + 1], 1)
    if "t" in words:
        strides[-1], strides[-2] = strides[-2], strides[-1]
    elif "strided" in words:
        strides[-1] = 2
    elif "expanded" in words:
        strides[0] = 0
    elif "cl" in words:
        order = (1, 3, 2, 0) if len(sizes) == 4 else (1, 4, 3, 2, 0)
        step = 1
        for d in order:
            strides[d] = step
            step *= max(sizes[d], 1)
    offset = 1 if "offset" in words else 0
    storage = torch.zeros(n + offset, dtype=dtype)
    if storage.numel():
        storage.view(torch.uint8).fill_(1 if dtype == torch.bool else 0x7f)
    result = storage.as_strided(sizes, strides, offset)
    whole = result[:1] if "expanded" in words and sizes[0] > 0 else result
    values = [parse(fill) if fill else value_at(dtype, k + SHIFT) for k in range(whole.numel())]
    if whole.numel():
        whole.copy_(torch.tensor(values, dtype=dtype).reshape(whole.shape))
    if "grad" in words:
        result.requires_grad_()
    return result.to("meta") if device == "meta" else result


# ---- any literal ----

def vector(dtype, values):
    """These values as a dtype has them; a complex number has the third value after its own as imaginary part."""
    if dtype == torch.bool:
        return torch.tensor([v != 0 for v in values])
    if dtype == torch.uint8:
        return torch.tensor([int(v) % 256 for v in values], dtype=dtype)
    if dtype.is_complex:
        return torch.tensor([complex(v, w) for v, w in zip(values, values[3:] + values[:3])], dtype=dtype)
    return torch.tensor(values, dtype=dtype)


def split(text):
    """Pieces between commas that are outside brackets and quotes."""
    pieces, depth, quote, start = [], 0, False, 0
    for i, c in enumerate(text):
        if c == "'":
            quote = not quote
        elif not quote and c in "[(":
            depth += 1
        elif not quote and c in "])":
            depth -= 1
        elif c == "," and depth == 0 and not quote:
            pieces.append(text[start:i].strip())
            start = i + 1
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def parse(text, named=None):
    text = text.strip()
    if text.startswith("$"):
        name, _, word = text[1:].partition(".")
        if word == "storage":
            return named[name].untyped_storage()
        return named[name].requires_grad_() if word else named[name]
    if TENSOR.match(text):
        return make_tensor(text)
    if text.startswith("["):
        return [parse(piece, named) for piece in split(text[1:-1])]
    if text in LONG:
        return LONG[text]
    if text in FORMATS:
        return FORMATS[text]
    if text in ("cpu", "meta"):
        return torch.device(text)
    if text.startswith("'"):
        return text[1:-1]
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            pass
    raise ValueError("not a literal: " + text)


# ---- writing ----

def number(value):
    """A number as the reader wants it: floats in hexadecimal, without needless zeros."""
    if isinstance(value, complex):
        return number(value.real) + " " + number(value.imag)
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return str(value)
    text = value.hex() if value == value and abs(value) != float("inf") else repr(value)
    return re.sub(r"\.?0+p", "p", text) if "." in text else text


def geometry(t):
    def numbers(values):
        return ",".join(str(v) for v in values)
    return "%s[%s](%s)+%d" % (SHORT[t.dtype], numbers(t.size()), numbers(t.stride()), t.storage_offset())


def values(t):
    return " ".join(number(v) for v in t.detach().reshape(-1).tolist())


class Writer:
    def __init__(self, family):
        self.path = os.path.join(DATA, family + ".txt")
        self.lines = ["# Made by tests/golden/make_%s.py with PyTorch %s; see README.md there."
                      % (family, torch.__version__.split("+")[0])]
        self.bases, self.views = {}, {}

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        if kind is None:
            os.makedirs(DATA, exist_ok=True)
            with open(self.path, "w", encoding="utf-8") as file:
                file.write("\n".join(self.lines) + "\n")
        return False

    def comment(self, text):
        self.lines += ["", "# " + text]

    def tensor(self, name, t):
        """A named tensor: its whole storage is kept."""
        storage = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage())
        self.bases[name] = storage.clone()
        self.views[name] = (name, list(t.size()), list(t.stride()), t.storage_offset())
        self.lines.append("$%s = %s | %s" % (name, geometry(t), values(storage)))

    def view(self, name, base, sizes, strides, offset=0):
        """Another tensor over the storage of a named one."""
        self.views[name] = (base, list(sizes), list(strides), offset)
        self.lines.append("$%s = $%s[%s](%s)+%d" % (name, base, ",".join(map(str, sizes)),
                                                    ",".join(map(str, strides)), offset))

    def fresh(self):
        storages = {name: storage.clone() for name, storage in self.bases.items()}
        return {name: storages[base].as_strided(sizes, strides, offset)
                for name, (base, sizes, strides, offset) in self.views.items()}

    def arguments(self, arguments):
        named = self.fresh()
        args, kwargs = [], {}
        for piece in split(arguments):
            keyword = re.match(r"([a-z_]\w*)=(.*)$", piece)
            if keyword and not TENSOR.match(piece):
                kwargs[keyword.group(1)] = parse(keyword.group(2), named)
            else:
                args.append(parse(piece, named))
        return args, kwargs

    @staticmethod
    def function(op):
        name, _, overload = op.partition(".")
        return getattr(getattr(torch.ops.aten, name), overload or "default")

    def call(self, op, arguments):
        args, kwargs = self.arguments(arguments)
        function = self.function(op)
        self.written = [args[i] for i, a in enumerate(function._schema.arguments)
                        if a.alias_info and a.alias_info.is_write and i < len(args)]
        return function(*args, **kwargs)

    def case(self, op, arguments, options=""):
        head = "%s | %s | " % (op, arguments)
        try:
            result = self.call(op, arguments)
        except Exception as error:  # whatever the reference raises is the expectation
            text = str(error).split("\n")[0]
            if "ComplexHalf" in text:
                return
            only = "cpu " if "cpu" in options.split() else ""
            self.lines.append(head + only + type(error).__name__ + ": " + text)
            return
        if result is None:  # what it wrote, then
            result = [t for given in self.written for t in (given if isinstance(given, list) else [given])]
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        if any(isinstance(t, torch.Tensor) and t.dtype not in SHORT for t in results):
            return  # a dtype that Tenon does not have
        if isinstance(result, torch.Tensor) or isinstance(result, (list, tuple)):
            shown = " ; ".join("None" if t is None else geometry(t) for t in results) or "-"
            show_values = "values=no" not in options
            contents = " ; ".join(values(t) if show_values and t is not None else "" for t in results)
        else:
            shown, contents = number(result) if result is not None else "-", ""
        line = head + shown + " | " + contents
        self.lines.append((line + " | " + options if options else line).rstrip())

    def gradients(self, op, arguments, options):
        """The gradients of the arguments that require one, for seeds that are literals."""
        function = self.function(op)
        args, kwargs = self.arguments(arguments)
        order = [(i if i < len(args) else arg.name) for i, arg in enumerate(function._schema.arguments)]
        wanted, given = [], {}
        for key, arg in zip(order, function._schema.arguments):
            value = args[key] if isinstance(key, int) else kwargs.get(key)
            for t in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(t, torch.Tensor) and t.requires_grad and all(t is not other for other in wanted):
                    wanted.append(t)
            if arg.alias_info and arg.alias_info.is_write and value.requires_grad:
                given[key] = value.clone()
        args = [given.get(i, value) for i, value in enumerate(args)]
        kwargs = {key: given.get(key, value) for key, value in kwargs.items()}
        result = function(*args, **kwargs)
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        asked = re.search(r"seeds=([\d,]+)", options)
        asked = [int(i) for i in asked.group(1).split(",")] if asked else range(len(results))
        outputs = [results[i] for i in asked if isinstance(results[i], torch.Tensor) and results[i].requires_grad]
        if not outputs:
            return []
        seeds = [make_tensor("%s[%s]" % (SHORT[t.dtype], ",".join(map(str, t.size())))) for t in outputs]
        if re.search(r"\btwice\b", options):
            for seed in seeds:
                seed.requires_grad_()
            first = torch.autograd.grad(outputs, wanted, seeds, allow_unused=True, create_graph=True)
            outputs = [t for t in first if t is not None and t.requires_grad]
            wanted += seeds
            if not outputs:
                return [None] * len(wanted)
            seeds = [make_tensor("%s[%s]" % (SHORT[t.dtype], ",".join(map(str, t.size())))) for t in outputs]
        found = torch.autograd.grad(outputs, wanted, seeds, allow_unused=True)
        return [torch.zeros_like(t) if t is not None and t._is_zerotensor() else t for t in found]

    def grad(self, op, arguments, options=""):
        """A case of gradients: of the arguments that require one (`f32[3].grad`, `$name.grad`)."""
        head = "grad %s | %s | " % (op, arguments)
        try:
            found = self.gradients(op, arguments, options)
        except Exception as error:  # whatever the reference raises is the expectation
            self.lines.append(head + type(error).__name__ + ": " + str(error).split("\n")[0])
            return
        shown = " ; ".join("None" if t is None else geometry(t) for t in found) or "-"
        contents = " ; ".join("" if t is None or "values=no" in options else values(t) for t in found)
        self.lines.append((head + shown + " | " + contents + (" | " + options if options else "")).rstrip())

    def refuse(self, op, arguments, error):
        """A case in which Tenon refuses what the reference accepts or words badly: docs/differences.md."""
        self.lines.append("%s | %s | %s" % (op, arguments, error))
