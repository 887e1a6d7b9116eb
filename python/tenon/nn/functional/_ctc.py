# SPDX-License-Identifier: MIT
"""The CTC loss composed from tensor operators: the forward recursion over time, on all sequences of a batch at once."""

import tenon


def _lengths(given, count, device):
    lengths = given if isinstance(given, tenon.Tensor) else tenon.tensor(list(given), dtype=tenon.int64)
    lengths = lengths.to(device=device, dtype=tenon.int64).reshape(-1)
    if lengths.numel() != count:
        raise RuntimeError(f"input_lengths must be of size batch_size ({count}), got {lengths.numel()}")
    return lengths


def _padded(targets, lengths, blank):
    """The targets as (N, S), whether they came so or one after the other."""
    if targets.dim() == 2:
        return targets.to(tenon.int64)
    longest = max(lengths.tolist(), default=0)
    rows, at = [], 0
    for n in lengths.tolist():
        rows.append(tenon.nn.functional.pad(targets[at : at + n].to(tenon.int64), (0, longest - n), value=blank))
        at += n
    return tenon.stack(rows)


def _log_add(*terms):
    """log(sum(exp)) where -inf adds nothing, with a finite gradient also where all are -inf."""
    stacked = tenon.stack(terms)
    top = stacked.detach().amax(0)
    base = tenon.where(top == -float("inf"), tenon.zeros_like(top), top)
    total = (stacked - base).exp().sum(0)
    none = total == 0
    return tenon.where(none, tenon.full_like(total, -float("inf")), tenon.where(none, tenon.ones_like(total), total).log() + base)


def _masked(value, keep):
    return tenon.where(keep, value, tenon.full_like(value, -float("inf")))


def ctc_loss_composed(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """Minus the log probability of each target under all its alignments; `reduction` 0 none, 1 mean by length, 2 sum."""
    alone = log_probs.dim() == 2
    probs = log_probs.unsqueeze(1) if alone else log_probs
    if probs.dim() != 3:
        raise RuntimeError("Expected log_probs to be 2 or 3 dimensional")
    steps, batch, classes = probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if alone and targets.dim() == 1:
        targets = targets.unsqueeze(0)
    device = probs.device
    in_len, out_len = _lengths(input_lengths, batch, device), _lengths(target_lengths, batch, device)
    if int(in_len.max()) > steps:
        raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got value {int(in_len.max())}")
    labels = _padded(targets.to(device), out_len, blank)

    # The states of a sequence: its labels with a blank before, between and after them.
    states = tenon.full((batch, 2 * labels.size(1) + 1), blank, dtype=tenon.int64, device=device)
    states[:, 1::2] = labels
    width = states.size(1)
    valid = tenon.arange(width, device=device) < (2 * out_len + 1).unsqueeze(1)
    skip = tenon.zeros_like(valid)  # a label may follow the label before it unless they are equal
    if width > 3:
        skip[:, 3::2] = states[:, 3::2] != states[:, 1:-2:2]
    emit = probs.gather(2, states.unsqueeze(0).expand(steps, batch, width))

    first = tenon.arange(width, device=device) < 2
    alpha = _masked(emit[0], valid & first)
    closed = -float("inf")
    pad = tenon.nn.functional.pad
    for t in range(1, steps):
        one = pad(alpha, (1, 0), value=closed)[:, :width]
        two = _masked(pad(alpha, (2, 0), value=closed)[:, :width], skip)
        new = _masked(_log_add(alpha, one, two) + emit[t], valid)
        alpha = tenon.where((t < in_len).unsqueeze(1), new, alpha)

    last = (2 * out_len).unsqueeze(1)
    ends = _masked(alpha.gather(1, (last - 1).clamp(min=0)), last > 0)
    loss = -_log_add(alpha.gather(1, last), ends).squeeze(1)
    if zero_infinity:
        loss = tenon.where(loss == float("inf"), tenon.zeros_like(loss), loss)
    if reduction == 1:
        return (loss / out_len.clamp(min=1).to(loss.dtype)).mean()
    if reduction == 2:
        return loss.sum()
    return loss.squeeze(0) if alone else loss
