# SPDX-License-Identifier: MIT
"""assert_close: compares tensors, arrays, numbers and containers of them, and says exactly how they differ."""

from collections.abc import Mapping, Sequence
import cmath
import math
import warnings

import tenon

__all__ = ["assert_allclose", "assert_close", "default_tolerances"]

# By dtype: the relative tolerance, the absolute tolerance. Exact for all others.
_TOLERANCES = {
    tenon.float16: (1e-3, 1e-5), tenon.bfloat16: (1.6e-2, 1e-5), tenon.float32: (1.3e-6, 1e-5),
    tenon.float64: (1e-7, 1e-7), tenon.complex64: (1.3e-6, 1e-5), tenon.complex128: (1e-7, 1e-7),
}


class _Mismatch(AssertionError):
    """A difference, and the keys and indices that lead to it."""

    def __init__(self, text, where=()):
        super().__init__(text)
        self.text, self.where = text, where


class _Options:
    def __init__(self, **options):
        self.__dict__.update(options)


def default_tolerances(*inputs, dtype_precisions=None):
    """The looser of the tolerances of tensors or dtypes."""
    dtypes = [one.dtype if isinstance(one, tenon.Tensor) else one for one in inputs]
    pairs = [(dtype_precisions or _TOLERANCES).get(dtype, (0.0, 0.0)) for dtype in dtypes]
    return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)


#: Of assert_allclose, which is older.
_OLDER = {tenon.float16: (1e-3, 1e-3), tenon.float32: (1e-4, 1e-5), tenon.float64: (1e-5, 1e-8)}


def _tolerances(options, *inputs):
    if options.rtol is None:
        return default_tolerances(*inputs)
    return options.rtol, options.atol


def _allowed(tolerance):
    return " (up to %s allowed)" % tolerance


def _is_array(value):
    return isinstance(value, tenon.Tensor) or type(value).__module__ == "numpy"


def _is_number(value):
    return isinstance(value, (int, float, complex)) or (
        type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0)


def _compare(actual, expected, options, where):
    """Raise _Mismatch where two values differ."""
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(f"None mismatch: {actual} is not {expected}", where)
        return
    if isinstance(actual, bool) and isinstance(expected, bool):
        if actual is not expected:
            raise _Mismatch("Booleans mismatch: %s is not %s" % (actual, expected), where)
        return
    if not isinstance(actual, tenon.Tensor) and not isinstance(expected, tenon.Tensor):
        if _is_number(actual) and _is_number(expected):
            _compare_numbers(actual, expected, options, where)
            return
    if _is_array(actual) and _is_array(expected):
        kinds = [tenon.Tensor if isinstance(a, tenon.Tensor) and a.layout in _INDICES else type(a) for a in (actual, expected)]
        related = issubclass(kinds[0], kinds[1]) or issubclass(kinds[1], kinds[0])
        if related and (options.allow_subclasses or kinds[0] is kinds[1]):
            _compare_tensors(tenon.as_tensor(actual), tenon.as_tensor(expected), options, where)
            return
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _compare_mappings(actual, expected, options, where)
        return
    elif (isinstance(actual, Sequence) and isinstance(expected, Sequence)
          and not isinstance(actual, (str, bytes)) and not isinstance(expected, (str, bytes))):
        if len(actual) != len(expected):
            raise _Mismatch("The length of the sequences mismatch: %d != %d" % (len(actual), len(expected)), where)
        for i, (one, other) in enumerate(zip(actual, expected)):
            _compare(one, other, options, where + (i,))
        return
    raise TypeError("No comparison pair was able to handle inputs of type %s and %s." % (type(actual), type(expected)))


def _compare_mappings(actual, expected, options, where):
    missing = [key for key in expected if key not in actual]
    extra = [key for key in actual if key not in expected]
    if missing or extra:
        raise _Mismatch("The keys of the mappings do not match:\nMissing keys in the actual mapping: %s\n"
                        "Additional keys in the actual mapping: %s" % (_in_order(missing), _in_order(extra)), where)
    for key in _in_order(list(actual)):
        _compare(actual[key], expected[key], options, where + (key,))


def _in_order(keys):
    try:
        return sorted(keys)
    except TypeError:
        return keys


def _compare_numbers(actual, expected, options, where):
    actual = actual.item() if hasattr(actual, "item") else actual
    expected = expected.item() if hasattr(expected, "item") else expected
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch("The (d)types do not match: %s != %s." % (type(actual), type(expected)), where)
    kinds = {int: tenon.int64, float: tenon.float64, complex: tenon.complex128, bool: tenon.bool}
    rtol, atol = _tolerances(options, kinds[type(actual)], kinds[type(expected)])
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    difference = abs(actual - expected)
    if cmath.isfinite(actual) and cmath.isfinite(expected) and difference <= atol + rtol * abs(expected):
        return
    raise _Mismatch(_numbers_text(actual, expected, difference, rtol, atol), where)


def _numbers_text(actual, expected, difference, rtol, atol):
    exact = rtol == 0 and atol == 0
    relative = difference / abs(expected) if expected != 0 else math.inf
    return "Scalars are not %s!\n\nExpected %s but got %s.\nAbsolute difference: %s%s\nRelative difference: %s%s" % (
        "equal" if exact else "close", expected, actual, difference, "" if exact else _allowed(atol), relative,
        "" if exact else _allowed(rtol))


def _compare_tensors(actual, expected, options, where):
    def same(name, one, other):
        if one != other:
            raise _Mismatch("The values for attribute %r do not match: %s != %s." % (name, one, other), where)

    same("shape", actual.shape, expected.shape)
    if options.check_layout:
        same("layout", actual.layout, expected.layout)
    if options.check_device:
        same("device", actual.device, expected.device)
    if options.check_dtype:
        same("dtype", actual.dtype, expected.dtype)
    if options.check_stride:
        same("stride()", actual.stride(), expected.stride())
    if actual.device.type == "meta" or expected.device.type == "meta":
        return  # nothing to look at
    rtol, atol = _tolerances(options, actual, expected)
    actual, expected = actual.detach(), expected.detach().to(actual.device)
    if actual.layout == expected.layout and actual.layout != tenon.strided:
        _compare_sparse(actual, expected, options, rtol, atol, where)
        return
    if actual.layout != tenon.strided or expected.layout != tenon.strided:
        actual, expected = actual.to_dense(), expected.to_dense()
    _compare_values(actual, expected, options, rtol, atol, where, "Tensor-likes")


#: The tensors of indices that a sparse layout has.
_INDICES = {
    tenon.sparse_coo: ("COO", ("indices",)),
    tenon.sparse_csr: ("CSR", ("crow_indices", "col_indices")),
    tenon.sparse_csc: ("CSC", ("ccol_indices", "row_indices")),
    tenon.sparse_bsr: ("BSR", ("crow_indices", "col_indices")),
    tenon.sparse_bsc: ("BSC", ("ccol_indices", "row_indices")),
}


def _compare_sparse(actual, expected, options, rtol, atol, where):
    """Two tensors of one sparse layout: as many values, at the same indices, and each as the other; COO tensors as they are
    written, unless one alone is coalesced."""
    kind, names = _INDICES[actual.layout]
    if kind == "COO" and actual.is_coalesced() != expected.is_coalesced():
        actual, expected = actual.coalesce(), expected.coalesce()
    if actual._nnz() != expected._nnz():
        raise _Mismatch("The number of specified values in sparse %s tensors does not match: %d != %d"
                        % (kind, actual._nnz(), expected._nnz()), where)
    mark = "_" if kind == "COO" else ""
    for name in names:
        _compare_values(getattr(actual, mark + name)(), getattr(expected, mark + name)(), options, 0.0, 0.0, where,
                        "Sparse %s %s" % (kind, name))
    _compare_values(getattr(actual, mark + "values")(), getattr(expected, mark + "values")(), options, rtol, atol, where, "Sparse %s values" % kind)


def _compare_values(actual, expected, options, rtol, atol, where, name):
    if actual.dtype != expected.dtype:
        dtype = tenon.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(dtype), expected.to(dtype)
    matches = tenon.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if bool(matches.all()):
        return
    if actual.dim() == 0:
        one, other = actual.item(), expected.item()
        raise _Mismatch(_numbers_text(one, other, abs(one - other), rtol, atol), where)
    raise _Mismatch(_tensors_text(actual, expected, matches, rtol, atol, name), where)


def _tensors_text(actual, expected, matches, rtol, atol, name):
    exact = rtol == 0 and atol == 0
    wrong = int((~matches).sum().item())
    total = actual.numel()
    if not (actual.is_floating_point() or actual.is_complex()):
        # Wide enough for any difference of the whole numbers.
        actual, expected = actual.to(tenon.int64), expected.to(tenon.int64)
    good = matches.flatten()
    difference = (actual - expected).abs()
    size = expected.abs()
    zero = difference.new_zeros(())
    absolute = tenon.where(good, zero, difference.flatten())
    where_absolute = int(tenon.argmax(absolute).item())
    relative = difference / size
    relative = tenon.where(good, relative.new_zeros(()), relative.flatten())
    where_relative = int(tenon.argmax(relative).item())
    return ("%s are not %s!\n\nMismatched elements: %d / %d (%.1f%%)\n"
            "Greatest absolute difference: %s at index %s%s\nGreatest relative difference: %s at index %s%s") % (
        name, "equal" if exact else "close", wrong, total, 100 * wrong / total,
        absolute[where_absolute].item(), _index(where_absolute, actual.shape), "" if exact else _allowed(atol),
        relative[where_relative].item(), _index(where_relative, actual.shape), "" if exact else _allowed(rtol))


def _index(flat, shape):
    """The index of an element from its place in memory order."""
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True,
                 check_dtype=True, check_layout=True, check_stride=False, msg=None):
    """Raise an AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Both tolerances are given or none, in which case they depend on the dtype. Sequences and mappings are compared item
    by item. `msg` replaces the text, or makes another one of it.
    """
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        raise ValueError("Both 'rtol' and 'atol' must be either specified or omitted, but got no %s."
                         % ("rtol" if rtol is None else "atol"))
    options = _Options(allow_subclasses=allow_subclasses, rtol=rtol, atol=atol, equal_nan=equal_nan,
                       check_device=check_device, check_dtype=check_dtype, check_layout=check_layout,
                       check_stride=check_stride)
    text = None
    try:
        _compare(actual, expected, options, ())
    except _Mismatch as mismatch:
        text = mismatch.text
        if mismatch.where:
            text += "\n\nThe failure occurred for item " + "".join("[%r]" % (part,) for part in mismatch.where)
    if text is not None:
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        raise AssertionError(text)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The older name: device, dtype and stride are not compared."""
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
                  "Please use `torch.testing.assert_close()` instead.", FutureWarning, stacklevel=2)
    if not isinstance(actual, tenon.Tensor):
        actual = tenon.tensor(actual)
    if not isinstance(expected, tenon.Tensor):
        expected = tenon.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected, dtype_precisions=_OLDER)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False,
                 check_stride=False, msg=msg or None)
