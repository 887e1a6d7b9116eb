# SPDX-License-Identifier: MIT
"""``tenon._C._functorch``: questions about the tensors that transforms see. Here those are ordinary tensors."""


def is_batchedtensor(tensor):
    return False


is_legacy_batchedtensor = is_gradtrackingtensor = is_functionaltensor = is_functorch_wrapped_tensor = is_batchedtensor


def get_unwrapped(tensor):
    return tensor


def maybe_get_level(tensor):
    return -1


def maybe_current_level():
    return None


def _refuse(*args, **kwargs):
    raise RuntimeError("vmap maps over slices, one call for each: there are no tensors with a hidden dimension")


_add_batch_dim = _remove_batch_dim = _vmap_increment_nesting = _vmap_decrement_nesting = _refuse
