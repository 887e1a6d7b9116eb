# SPDX-License-Identifier: MIT
"""Pickling and copying tensors: `__reduce_ex__`, `__deepcopy__`, `__setstate__`."""

from collections import OrderedDict

import tenon
from tenon import _utils
from tenon.storage import has_typed_storage, typed_storage_of, untyped_storage_of


def reduce_ex(t, protocol):
    """What pickle stores: the storage, where in it the tensor lies, and its attributes."""
    if t.has_names():
        raise RuntimeError("NYI: Named tensors don't support serialization. Please drop names via `tensor = tensor.rename(None)` "
                           "before serialization.")
    state = _state(t)
    kind = type(t)
    if kind.__name__ == "Parameter" and issubclass(kind, tenon.nn.Parameter):
        data = t.detach()
        if not state:
            return (_utils._rebuild_parameter, (data, t.requires_grad, OrderedDict()))
        return (_utils._rebuild_parameter_with_state,
                (data, t.requires_grad, OrderedDict(), state))
    func, args = _reduce_plain(t)
    if kind is tenon.Tensor and not state:
        return (func, args)
    return (_utils._rebuild_from_type_v2, (func, kind, args, state))


def _state(t):
    """What is there beside the elements: attributes, slots, or what a class of its own says; empty where there is nothing."""
    state = t.__getstate__()
    return dict(state) if isinstance(state, dict) else state or {}


def _is_wrapper(t):
    """Whether a class answers for all operators, and the tensor itself has no elements."""
    kind = type(t)
    return (kind is not tenon.Tensor and kind.__torch_dispatch__ is not tenon.Tensor.__torch_dispatch__
            and t.layout == tenon.strided and t.data_ptr() == 0)


def _reduce_plain(t):
    if _is_wrapper(t):
        return (_utils._rebuild_wrapper_subclass,
                (type(t), t.dtype, tuple(t.size()), t.stride(), t.storage_offset(), t.layout, t.device, t.requires_grad))
    if t.device.type == "meta":
        return (_utils._rebuild_meta_tensor_no_storage,
                (t.dtype, tuple(t.size()), tuple(t.stride()), t.requires_grad))
    if t.device.type != "cpu":
        return (_utils._rebuild_device_tensor_from_cpu_tensor,
                (t.detach().cpu(), t.dtype, str(t.device), t.requires_grad))
    if not has_typed_storage(t.dtype):
        return (_utils._rebuild_tensor_v3,
                (untyped_storage_of(t), t.storage_offset(), tuple(t.size()), tuple(t.stride()),
                 t.requires_grad, OrderedDict(), t.dtype))
    return (_utils._rebuild_tensor_v2,
            (typed_storage_of(t), t.storage_offset(), tuple(t.size()), tuple(t.stride()),
             t.requires_grad, OrderedDict()))


def setstate(t, state):
    """The state of pickles of long ago, (storage, offset, size, stride), or attributes."""
    if isinstance(state, dict):
        _utils._set_state(t, state)
        return
    if len(state) == 5:  # what __reduce__ gave once: requires_grad and hooks
        storage, offset, size, stride = state[0], state[1], state[2], state[3]
    elif len(state) == 4:
        storage, offset, size, stride = state
    else:
        requires_grad, unused, hooks = state
        t.requires_grad_(requires_grad)
        return
    t.set_(storage, offset, tuple(size), tuple(stride))


def deepcopy(t, memo):
    """A copy with memory of its own; tensors that shared memory share the copy's."""
    if not t.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001")
    if id(t) in memo:
        return memo[id(t)]
    if t.has_names():
        raise RuntimeError("aten::new_empty is not yet supported with named tensors. Please drop names via `tensor = "
                           "tensor.rename(None)`, call the op with an unnamed tensor, and set names on the result of the operation.")
    import copy
    import copyreg

    with tenon.no_grad():
        kind = type(t)
        if t.device.type == "meta":
            new = tenon.empty_strided(tuple(t.size()), tuple(t.stride()), dtype=t.dtype,
                                      device="meta")
        elif getattr(kind, "__torch_dispatch__", None) is not getattr(tenon.Tensor,
                                                                      "__torch_dispatch__", None):
            new = t.clone()
        else:
            storage = copy.deepcopy(typed_storage_of(t).untyped(), memo)
            new = storage.tensor_of(t.dtype, t.storage_offset(), tuple(t.size()),
                                    tuple(t.stride()))
        if kind is not tenon.Tensor and type(new) is not kind:
            new = _as_kind(kind, new, t.requires_grad)
        if t.requires_grad and not new.requires_grad:
            new.requires_grad_()
        memo[id(t)] = new
        if t.grad is not None:
            new.grad = copy.deepcopy(t.grad, memo)
        for slot in copyreg._slotnames(kind):
            if hasattr(t, slot):
                setattr(new, slot, copy.deepcopy(getattr(t, slot), memo))
        for key, value in dict(getattr(t, "__dict__", ())).items():
            setattr(new, key, copy.deepcopy(value, memo))
    return new


def _as_kind(kind, data, requires_grad):
    if data.is_floating_point() or data.is_complex():
        return tenon.Tensor._make_subclass(kind, data, requires_grad)
    return tenon.Tensor._make_subclass(kind, data)
