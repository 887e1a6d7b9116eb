# SPDX-License-Identifier: MIT
"""How losses name their reduction: the word, the number that operators take, and the two old flags."""

import warnings

_ENUM = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction):
    """The number of a reduction's name."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
    try:
        return _ENUM[reduction]
    except (KeyError, TypeError):
        raise ValueError(f"{reduction} is not a valid value for reduction") from None


def legacy_get_string(size_average, reduce, emit_warning=True):
    """The reduction's name for the flags `size_average` and `reduce`, which count as true when they are None."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=2
        )
    return name


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """The reduction's number for the two old flags."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def resolve(size_average, reduce, reduction):
    """The reduction's number, where the old flags win over the name."""
    if size_average is not None or reduce is not None:
        return legacy_get_enum(size_average, reduce)
    return get_enum(reduction)


def reduce_by(loss, enum):
    """`loss` as it is, its mean or its sum."""
    return loss if enum == 0 else loss.mean() if enum == 1 else loss.sum()
