# SPDX-License-Identifier: MIT
"""Losses. `reduction` is 'none' (a loss for each element or sample), 'mean' or 'sum'; `size_average` and `reduce` are old names for it."""

import math
import warnings

import tenon
from tenon.nn._reduction import get_enum, legacy_get_string, reduce_by, resolve
from tenon.nn.functional._shared import give_way, one_overridden, op, overridable

_nn = tenon._C._nn


def _same_size(input, target, stacklevel=4):
    """Warn about sizes that differ, then broadcast."""
    if target.size() == input.size():
        return input, target
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely lead to "
        "incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=stacklevel,
    )
    return tenon._C._VariableFunctions.broadcast_tensors((input, target))


def _weighted(loss, weight, reduction):
    """Element losses times `weight`; the mean divides by the sum of the weights."""
    loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if reduction == "mean":
        return loss.sum() / weight.sum()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def _check_weight(weight, input):
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """The negative log likelihood of the classes `target` (N, *) under log probabilities `input` (N, C, *)."""
    if one_overridden(input, target, weight):
        old = {"size_average": size_average, "reduce": reduce, "reduction": reduction}
        return give_way(nll_loss, input, target, weight=weight, ignore_index=ignore_index, **old)
    mean = size_average is None and reduce is None and reduction == "mean"
    return _nn.nll_loss_nd(input, target, weight, 1 if mean else resolve(size_average, reduce, reduction), ignore_index)


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """The cross entropy of logits `input` (N, C, *) against class numbers (N, *) or class probabilities (N, C, *)."""
    if one_overridden(input, target, weight):
        old = {"size_average": size_average, "reduce": reduce, "reduction": reduction}
        more = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
        return give_way(cross_entropy, input, target, weight=weight, **more, **old)
    mean = size_average is None and reduce is None and reduction == "mean"
    enum = 1 if mean else resolve(size_average, reduce, reduction)
    return _nn.cross_entropy_loss(input, target, weight, enum, ignore_index, label_smoothing)


@overridable
def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """The negative log likelihood of counts `target` under Poisson rates `input` (their logarithms with `log_input`)."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not a valid value for reduction")
    return tenon.poisson_nll_loss(input, target, log_input, full, eps, get_enum(reduction))


@overridable
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """The negative log likelihood of `target` under normal distributions of mean `input` and variance `var`."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * tenon.ones_like(input)
    elif tenon.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = tenon.unsqueeze(var, -1)
        elif input.ndim != var.ndim or sum(own for whole, own in zip(input.size(), var.size()) if whole != own) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with tenon.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (tenon.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_by(loss, get_enum(reduction))


@overridable
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """The Kullback-Leibler divergence of log probabilities `input` from `target`; 'batchmean' divides by the batch size."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by "
            "the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
            "'batchmean' in the next major release.",
            stacklevel=3,
        )
    enum = get_enum("sum" if reduction == "batchmean" else reduction)
    loss = tenon.kl_div(input, target, enum, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        loss = loss / input.size()[0]
    return loss


@overridable
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The binary cross entropy of probabilities `input` against `target` of the same shape."""
    enum = resolve(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        if weight.size() != target.size():
            weight = tenon._C._VariableFunctions.broadcast_tensors((weight, target))[0]
    return _nn.binary_cross_entropy(input, target, weight, enum)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """The binary cross entropy of logits `input` against `target` of the same shape."""
    if one_overridden(input, target, weight, pos_weight):
        old = {"size_average": size_average, "reduce": reduce, "reduction": reduction}
        return give_way(binary_cross_entropy_with_logits, input, target, weight=weight, pos_weight=pos_weight, **old)
    mean = size_average is None and reduce is None and reduction == "mean"
    enum = 1 if mean else resolve(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return tenon.binary_cross_entropy_with_logits(input, target, weight, pos_weight, enum)


@overridable
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Squared below a difference of `beta`, absolute above it."""
    input, target = _same_size(input, target)
    enum = resolve(size_average, reduce, reduction)
    if beta == 0.0:
        return _nn.l1_loss(input, target, enum)
    return _nn.smooth_l1_loss(input, target, enum, beta)


@overridable
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Squared below a difference of `delta`, linear above it."""
    input, target = _same_size(input, target)
    if weight is None:
        return _nn.huber_loss(input, target, get_enum(reduction), delta)
    _check_weight(weight, input)
    return _weighted(_nn.huber_loss(input, target, get_enum("none"), delta), weight, reduction)


@overridable
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference."""
    input, target = _same_size(input, target)
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if weight is None:
        return _nn.l1_loss(input, target, get_enum(reduction))
    _check_weight(weight, input)
    return _weighted((input - target).abs(), weight, reduction)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared difference."""
    if one_overridden(input, target, weight):
        old = {"size_average": size_average, "reduce": reduce, "reduction": reduction}
        return give_way(mse_loss, input, target, weight=weight, **old)
    if target.size() != input.size():
        input, target = _same_size(input, target, 3)
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if weight is None:
        return _nn.mse_loss(input, target, get_enum(reduction))
    _check_weight(weight, input)
    return _weighted((input - target).pow(2), weight, reduction)


@overridable
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """`max(0, -target * (input1 - input2) + margin)`: which of two should rank higher, by `target` 1 or -1."""
    enum = resolve(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return tenon.margin_ranking_loss(input1, input2, target, margin, enum)


@overridable
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """`input` where `target` is 1, `max(0, margin - input)` where it is -1."""
    return tenon.hinge_embedding_loss(input, target, margin, resolve(size_average, reduce, reduction))


@overridable
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """`1 - cos` of pairs that belong together (`target` 1), `max(0, cos - margin)` of those that do not (-1)."""
    return tenon.cosine_embedding_loss(input1, input2, target, margin, resolve(size_average, reduce, reduction))


def _soft_margin(input, target, enum):
    return reduce_by(tenon.log1p(tenon.exp(-target * input)), enum)


@overridable
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """`log(1 + exp(-target * input))` for targets 1 and -1."""
    return op("soft_margin_loss", _soft_margin)(input, target, resolve(size_average, reduce, reduction))


@overridable
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The binary cross entropy of every class, meaned over the classes of (N, C)."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    logsigmoid = _nn.log_sigmoid
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    classes = input.size(input.dim() - 1)
    loss = loss.sum(dim=input.dim() - 1) / classes
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return reduce_by(loss, get_enum(reduction))


def _multilabel_margin(input, target, enum):
    """Each class of a row's target list (which ends at -1) against each class outside it."""
    x = input if input.dim() == 2 else input.reshape(1, -1)
    y = target if target.dim() == 2 else target.reshape(1, -1)
    if input.dim() > 2 or x.numel() == 0 or x.shape != y.shape:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    listed = (y == -1).cumsum(1) == 0
    classes = y.clamp(min=0)
    is_target = tenon.zeros_like(x).scatter_add(1, classes, listed.to(x.dtype)) > 0
    scores = x.gather(1, classes)
    margins = tenon.relu(1 - scores.unsqueeze(2) + x.unsqueeze(1))
    use = listed.unsqueeze(2) & ~is_target.unsqueeze(1)
    loss = (margins * use).sum((1, 2)) / x.size(1)
    return reduce_by(loss if input.dim() == 2 else loss.squeeze(0), enum)


@overridable
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The hinge of every class in `target` (N, C, filled from the left and ended by -1) against every other class."""
    return op("multilabel_margin_loss", _multilabel_margin)(input, target, resolve(size_average, reduce, reduction))


def _multi_margin(input, target, p, margin, weight, enum):
    x = input if input.dim() == 2 else input.reshape(1, -1)
    y = target.reshape(-1)
    if input.dim() > 2 or x.numel() == 0 or y.numel() != x.size(0):
        raise RuntimeError(f"inconsistent target size, expected {x.size(0)} but got {list(target.shape)}")
    index = y.unsqueeze(1)
    hinge = tenon.relu(margin - x.gather(1, index) + x)
    if p == 2:
        hinge = hinge * hinge
    if weight is not None:
        hinge = hinge * weight[y].unsqueeze(1)
    hinge = hinge.scatter(1, index, 0.0)
    loss = hinge.sum(1) / x.size(1)
    return reduce_by(loss if target.dim() else loss.squeeze(0), enum)


@overridable
def multi_margin_loss(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """The hinge (to the power `p`, 1 or 2) of the right class against every other one of (N, C)."""
    enum = resolve(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return op("multi_margin_loss", _multi_margin)(input, target, p, margin, weight, enum)


@overridable
def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)` with the p-norm distance."""
    enum = resolve(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return tenon.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, enum)


@overridable
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """`triplet_margin_loss` with any distance of two tensors."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    a, p, n = anchor.ndim, positive.ndim, negative.ndim
    if not (a == p == n):
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
            f"{a}D, positive {p}D, and negative {n}D inputs"
        )
    if distance_function is None:
        distance_function = tenon.pairwise_distance
    to_positive = distance_function(anchor, positive)
    to_negative = distance_function(anchor, negative)
    if swap:
        to_negative = tenon.minimum(to_negative, distance_function(positive, negative))
    return reduce_by(tenon.clamp_min(margin + to_positive - to_negative, 0), get_enum(reduction))


@overridable
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """The connectionist temporal classification loss of (T, N, C) log probabilities and label sequences."""
    return tenon.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, get_enum(reduction), zero_infinity)
