# SPDX-License-Identifier: MIT
"""Collectives that have a gradient. With one process each gives its argument."""


def all_reduce(tensor, op=None, group=None):
    return tensor


def all_gather(tensor, group=None):
    return (tensor,)


def broadcast(tensor, src=0, group=None):
    return tensor


def reduce_scatter(output, input_list, op=None, group=None):
    return input_list[0]
