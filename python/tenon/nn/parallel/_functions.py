# SPDX-License-Identifier: MIT
"""Parts and wholes of a tensor between devices, as functions with a gradient. `apply` is what scripts call; the places
are the CPU, where parts are views and a whole is a concatenation."""

import tenon

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]


class Scatter:
    """apply(target_gpus, chunk_sizes, dim, input): the parts, by their sizes, or one for each place."""

    @staticmethod
    def apply(target_gpus, chunk_sizes, dim, input):  # noqa: A002
        if chunk_sizes is not None:
            return tuple(input.split(list(chunk_sizes), dim))
        return tuple(input.chunk(len(target_gpus), dim))


class Gather:
    """apply(target_device, dim, *inputs): one tensor. Inputs without dimensions become a vector."""

    @staticmethod
    def apply(target_device, dim, *inputs):
        if all(x.dim() == 0 for x in inputs) and dim == 0:
            inputs = [x.view(1) for x in inputs]
        return tenon.cat(list(inputs), dim)


class Broadcast:
    """apply(target_gpus, *inputs): every input once for each place."""

    @staticmethod
    def apply(target_gpus, *inputs):
        return tuple(x.view_as(x) for _ in target_gpus for x in inputs)


class ReduceAddCoalesced:
    """apply(destination, num_inputs, *grads): sums over the places; `grads` has num_inputs tensors of each place in turn."""

    @staticmethod
    def apply(destination, num_inputs, *grads):
        return tuple(sum(grads[i + num_inputs::num_inputs], grads[i]) for i in range(num_inputs))
