# SPDX-License-Identifier: MIT
"""Tensors as text, in PyTorch's format: repr, format(), set_printoptions()."""

import math

import tenon


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


PRINT_OPTS = _Options()

_PROFILES = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None,
                     sci_mode=None):
    """How tensors are printed. `profile`: 'default', 'short' or 'full'; the others override it."""
    o = PRINT_OPTS
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"unknown print profile {profile!r}")
        o.precision, o.threshold, o.edgeitems, o.linewidth = _PROFILES[profile]
    if precision is not None:
        o.precision = precision
    if threshold is not None:
        o.threshold = threshold
    if edgeitems is not None:
        o.edgeitems = edgeitems
    if linewidth is not None:
        o.linewidth = linewidth
    o.sci_mode = sci_mode


def get_printoptions():
    o = PRINT_OPTS
    return {"precision": o.precision, "threshold": o.threshold, "edgeitems": o.edgeitems,
            "linewidth": o.linewidth, "sci_mode": o.sci_mode}


class printoptions:
    """`with printoptions(precision=2): …`"""

    def __init__(self, **options):
        self._options = options

    def __enter__(self):
        self._old = get_printoptions()
        set_printoptions(**self._options)

    def __exit__(self, *unused):
        set_printoptions(**self._old)


def _flat(values, out):
    """The numbers of nested lists, in order."""
    if isinstance(values, list):
        for v in values:
            _flat(v, out)
    else:
        out.append(values)
    return out


class _Format:
    """How one column of numbers is written: found from all of them, so that they line up."""

    def __init__(self, numbers, floating):
        self.floating = floating
        self.int_mode = True
        self.sci_mode = False
        self.width = 1
        if not floating:
            for v in numbers:
                self.width = max(self.width, len(str(v)))
            return
        finite = [v for v in numbers if v != 0 and math.isfinite(v)]
        if not finite:
            return
        low = min(abs(v) for v in finite)
        high = max(abs(v) for v in finite)
        precision = PRINT_OPTS.precision
        self.int_mode = all(v == math.ceil(v) for v in finite)
        self.sci_mode = high / low > 1000.0 or high > 1.0e8 or (not self.int_mode and low < 1.0e-4)
        if PRINT_OPTS.sci_mode is not None:
            self.sci_mode = PRINT_OPTS.sci_mode
        if self.int_mode and not self.sci_mode:
            widths = [len(f"{v:.0f}") + 1 for v in finite]
        else:
            kind = "e" if self.sci_mode else "f"
            widths = [len(f"{v:.{precision}{kind}}") for v in finite]
        self.width = max(self.width, max(widths))

    def text(self, v):
        if not self.floating:
            out = str(v)
        elif self.sci_mode:
            out = f"{v:{self.width}.{PRINT_OPTS.precision}e}"
        elif self.int_mode:
            out = f"{v:.0f}"
            if math.isfinite(v):
                out += "."
        else:
            out = f"{v:.{PRINT_OPTS.precision}f}"
        return " " * (self.width - len(out)) + out


class _Complex:
    """Two columns: the real and the imaginary parts."""

    def __init__(self, numbers):
        self.real = _Format([v.real for v in numbers], True)
        self.imag = _Format([v.imag for v in numbers], True)
        self.width = self.real.width + self.imag.width + 1

    def text(self, v):
        imag = (self.imag.text(v.imag) + "j").lstrip()
        if v.imag < 0 or imag[0] == "-":
            return self.real.text(v.real) + imag
        return self.real.text(v.real) + "+" + imag


def _corners(t, edge):
    """The part of a large tensor that is shown, as a tensor that is small."""
    for dim in range(t.dim()):
        n = t.size(dim)
        if n > 2 * edge:
            if edge == 0:
                t = t.narrow(dim, 0, 0)
            else:
                t = tenon.cat([t.narrow(dim, 0, edge), t.narrow(dim, n - edge, edge)], dim)
    return t


def _vector(values, cut, indent, form):
    """One line of numbers, or several; `cut`: a gap goes after the first `edgeitems`."""
    width = form.width + 2
    per_line = max(1, int(math.floor((PRINT_OPTS.linewidth - indent) / width)))
    texts = [form.text(v) for v in values]
    if cut:
        edge = PRINT_OPTS.edgeitems
        texts = texts[:edge] + [" ..."] + texts[edge:] if edge else ["..."]
    lines = [", ".join(texts[i:i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _body(values, shape, summarize, indent, form):
    if not shape:
        return form.text(values)
    edge = PRINT_OPTS.edgeitems
    cut = summarize and shape[0] > 2 * edge
    if len(shape) == 1:
        return _vector(values, cut, indent, form)
    parts = [_body(v, shape[1:], summarize, indent + 1, form) for v in values]
    if cut:
        parts = parts[:edge] + ["..."] + parts[edge:]
    gap = "," + "\n" * (len(shape) - 1) + " " * (indent + 1)
    return "[" + gap.join(parts) + "]"


def _tensor_str(t, indent):
    """The numbers in their brackets, nothing else."""
    if t.numel() == 0:
        return "[]"
    t = t.detach().rename_(None)
    summarize = t.numel() > PRINT_OPTS.threshold
    shape = tuple(t.shape)
    values = (_corners(t, PRINT_OPTS.edgeitems) if summarize else t).tolist()
    numbers = _flat(values, [])
    form = _Complex(numbers) if t.is_complex() else _Format(numbers, t.is_floating_point())
    return _body(values, shape, summarize, indent, form)


def _add_suffixes(text, suffixes, indent, force_newline=False):
    """A text with what is told behind the numbers, closed. Classes of tensors in packages make their texts with it, too."""
    out = [text]
    last = len(text) - text.rfind("\n") + 1
    for s in suffixes:
        if force_newline or last + len(s) + 2 > PRINT_OPTS.linewidth:
            out.append(",\n" + " " * indent + s)
            last, force_newline = indent + len(s), False
        else:
            out.append(", " + s)
            last += len(s) + 2
    return "".join(out) + ")"


def _is_plain(kind):
    return kind is tenon.Tensor or kind.__name__ == "Parameter"


def _default_dtypes():
    default = tenon.get_default_dtype()
    wide = tenon.complex128 if default == tenon.float64 else tenon.complex64
    return (default, wide, tenon.int64, tenon.bool)


def _grad_suffix(t):
    try:
        fn = getattr(t, "grad_fn", None)
    except RuntimeError:  # a view that an in-place write made useless
        return "grad_fn=<Invalid>"
    if fn is not None:
        name = type(fn).__name__
        if name in ("Node", "CppFunction"):
            name = fn.name().rsplit("::", 1)[-1]
        return f"grad_fn=<{name}>"
    return "requires_grad=True" if t.requires_grad else None


def _str_plain(t, contents=None):
    """`contents`, of a class that says itself what is in it, stands for the elements."""
    fake = tenon._C._is_fake(t)
    if fake:
        prefix = "FakeTensor("
    else:
        prefix = "tensor(" if _is_plain(type(t)) else type(t).__name__ + "("
    indent = len(prefix)
    suffixes = []
    device = t.device
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")
    if device.type == "meta" or fake:
        suffixes.append("size=" + str(tuple(t.shape)))
        if t.dtype != tenon.get_default_dtype():
            suffixes.append("dtype=" + str(t.dtype))
        body = "..." if contents is None else contents
    elif t.numel() == 0:
        if t.dim() != 1:
            suffixes.append("size=" + str(tuple(t.shape)))
        if t.dtype != tenon.get_default_dtype():
            suffixes.append("dtype=" + str(t.dtype))
        body = "[]" if contents is None else contents
    else:
        if not PRINT_OPTS.edgeitems:
            suffixes.append("size=" + str(tuple(t.shape)))
        if t.dtype not in _default_dtypes():
            suffixes.append("dtype=" + str(t.dtype))
        body = _tensor_str(t, indent) if contents is None else contents
    grad = _grad_suffix(t)
    if grad is not None:
        suffixes.append(grad)
    if tenon._C._in_dual_level():
        tangent = tenon._C._unpack_dual(t)[1]
        if tangent is not None:
            suffixes.append(f"tangent={tangent}")
    if t.has_names():
        suffixes.append(f"names={t.names}")
    text = _add_suffixes(prefix + body, suffixes, indent)
    if not _is_plain(type(t)) and isinstance(t, tenon.nn.Parameter):
        return f"Parameter({text})"
    return text


def part(name, t):
    """A tensor that another one is made of, as it stands in the text of that one, after the name of its place."""
    head = name + "=tensor("
    if t.is_meta:
        return head + "..., size=" + str(tuple(t.shape)) + ")"
    if t.numel() == 0:
        return head + "[], size=" + str(tuple(t.shape)) + ")"
    with tenon.no_grad():
        return head + _tensor_str(t.detach(), len("tensor(") + len(head)) + ")"


def _str(t, *, tensor_contents=None):
    """The text of repr()."""
    on = tenon.is_grad_enabled()
    try:  # an interrupt may come as soon as it is switched off
        tenon._C._set_grad_enabled(False)
        if tenon._C._len_torch_dispatch_stack():
            from tenon.utils._python_dispatch import _disable_current_modes
            with _disable_current_modes():
                return _str_plain(t, tensor_contents)
        return _str_plain(t, tensor_contents)
    finally:
        tenon._C._set_grad_enabled(on)


def format_tensor(t, spec):
    """`format(t, spec)`: of a tensor without dimensions its number."""
    if t.dim() == 0 and t.device.type != "meta" and type(t) is tenon.Tensor:
        return format(t.item(), spec)
    if spec:
        raise TypeError(f"unsupported format string passed to {type(t).__name__}.__format__")
    return str(t)
