# SPDX-License-Identifier: MIT
"""Leaves of graphs, for tests of autograd."""
import tenon


def leaf(*values):
    return tenon.tensor(list(values), requires_grad=True)
