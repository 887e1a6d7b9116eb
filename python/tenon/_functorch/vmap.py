# SPDX-License-Identifier: MIT
"""Parts of vmap that packages patch for containers of their own. Here vmap maps over slices, with ordinary tensors, so
that a container is cut and stacked by its own indexing."""

from tenon import Tensor  # noqa: F401
from tenon._functorch_names import _add_batch_dim, _remove_batch_dim  # noqa: F401
from tenon.func import vmap  # noqa: F401
from tenon.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map_, tree_unflatten  # noqa: F401

__all__ = ["vmap"]


def _get_name(func):
    return getattr(func, "__name__", repr(func))


def _refuse(*args, **kwargs):
    raise RuntimeError("vmap maps over slices, one call for each: there are no tensors with a hidden dimension")


_create_batched_inputs = _process_batched_inputs = _unwrap_batched = _maybe_remove_batch_dim = _refuse
