# SPDX-License-Identifier: MIT
"""A softmax over many classes that spends less on rare ones."""

from collections import namedtuple

import tenon
import tenon.nn.functional as F
from tenon.nn.modules.container import ModuleList, Sequential
from tenon.nn.modules.linear import Linear
from tenon.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Classes sorted by frequency and cut at `cutoffs`: a head for the frequent ones and the tail clusters, a small
    projection for each cluster. Input (N, in_features), target (N); gives (log probability of the target, mean loss)."""

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        made = {"device": device, "dtype": dtype}
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
                "between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            out = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(Linear(in_features, hidden, bias=False, **made), Linear(hidden, out, bias=False, **made))
            )

    def reset_parameters(self):
        """Draw all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_, target_):
        dims = target_.dim()
        if dims == 1:
            if input_.size(0) != target_.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(
                    "1D target tensor expects 2D input tensors, but found inputs with size", input_.size()
                )
        elif dims == 0:
            if input_.dim() != 1:
                raise RuntimeError(
                    "0D target tensor expects 1D input tensors, but found inputs with size", input_.size()
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        batched = dims > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        used = 0
        output = input.new_zeros(target.size(0))
        places = target.new_empty(target.size(0))
        bounds = [0] + self.cutoffs
        for i in range(len(bounds) - 1):
            inside = (target >= bounds[i]) & (target < bounds[i + 1])
            rows = inside.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            if i == 0:
                places = places.index_put((rows,), target[inside])
            else:
                relative = target[inside] - bounds[i]
                cluster = self.tail[i - 1](input.index_select(0, rows))
                places = places.index_put((rows,), places.new_full((), self.shortlist_size + i - 1))
                logprob = F.log_softmax(cluster, dim=1).gather(1, relative.unsqueeze(1))
                output = output.index_put((rows,), logprob.squeeze(1))
            used += rows.numel()
        if used != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, places.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output):
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(cluster + head[:, self.shortlist_size + i].unsqueeze(1))
        return tenon.cat(parts, dim=1)

    def log_prob(self, input):
        """The log probabilities of all classes: (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most probable class of each row, without computing all of them where the head decides."""
        head_output = self.head(input)
        output = tenon.argmax(head_output, dim=1)
        unsure = output >= self.shortlist_size
        if not bool(unsure.any()):
            return output
        if bool(unsure.all()):
            return tenon.argmax(self._get_full_log_prob(input, head_output), dim=1)
        rest = self._get_full_log_prob(input[unsure], head_output[unsure])
        output[unsure] = tenon.argmax(rest, dim=1)
        return output
