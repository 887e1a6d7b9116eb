# SPDX-License-Identifier: MIT
"""The functions that pickled tensors name. Their names and arguments are part of file formats:
torch._utils has the same."""

from _thread import get_ident

import tenon


def _untyped(storage):
    return getattr(storage, "_untyped_storage", storage)


def _rebuild_tensor(storage, storage_offset, size, stride):
    return _untyped(storage).tensor_of(storage.dtype, storage_offset, tuple(size), tuple(stride))


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks,
                       metadata=None):
    t = _rebuild_tensor(storage, storage_offset, size, stride)
    if requires_grad:
        t.requires_grad_()
    return t


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype,
                       metadata=None):
    t = _untyped(storage).tensor_of(dtype, storage_offset, tuple(size), tuple(stride))
    if requires_grad:
        t.requires_grad_()
    return t


def _rebuild_parameter(data, requires_grad, backward_hooks):
    return tenon.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    return _set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return tenon.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta",
                               requires_grad=requires_grad)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    return tenon.Tensor._make_wrapper_subclass(cls, tuple(size), strides=tuple(stride), storage_offset=storage_offset,
                                               dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


# Thread -> sparse tensors of an old file that is being read: their storages are filled after all objects are made, and only
# then can places be looked at.
_unchecked: dict = {}


def _check_sparse_later(read, then):
    """What `read` gives; `then` fills the storages, and what is sparse is checked."""
    me = get_ident()
    before, _unchecked[me] = _unchecked.get(me), []
    try:
        result = read()
        made, _unchecked[me] = _unchecked[me], None
        then()
        for one, layout, data in made:
            one._parts = _rebuild_sparse_tensor(layout, data)._parts
        return result
    finally:
        if before is None:
            del _unchecked[me]
        else:
            _unchecked[me] = before


def _rebuild_sparse_tensor(layout, data):
    later = _unchecked.get(get_ident())
    if later is not None:
        from tenon import sparse
        cls = sparse.SparseTensor if layout is tenon.sparse_coo else sparse._compressed.LAYOUTS[layout]
        one = cls._of(*data)
        later.append((one, layout, data))
        return one
    if layout is tenon.sparse_coo:
        indices, values, size = data[:3]
        return tenon.sparse_coo_tensor(indices, values, tuple(size), is_coalesced=len(data) > 3 and data[3])
    if layout in (tenon.sparse_csr, tenon.sparse_csc, tenon.sparse_bsr, tenon.sparse_bsc):
        return tenon.sparse_compressed_tensor(*data[:3], tuple(data[3]), layout=layout)
    raise NotImplementedError("rebuilding sparse tensor for layout %s" % layout)


def _rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad):
    return data.to(device=device, dtype=dtype).detach().requires_grad_(requires_grad)


def _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets):
    """A list of tensors in one buffer; as_strided sees that each is inside."""
    from tenon.nested._list import ListTensor
    if buffer.dim() != 1 or sizes.shape != strides.shape or sizes.dim() != 2 or storage_offsets.dim() != 1:
        raise ValueError("a nested tensor of parts that do not fit each other")
    rows = zip(sizes.tolist(), strides.tolist(), storage_offsets.tolist(), strict=True)
    base = buffer.storage_offset()
    return ListTensor._of([buffer.as_strided(size, stride, base + offset) for size, stride, offset in rows])


def _rebuild_from_type_v2(func, new_type, args, state):
    out = func(*args)
    if type(out) is not new_type:
        out = out.as_subclass(new_type)
    if hasattr(type(out), "__setstate__") and type(out).__setstate__ is not (
            tenon.Tensor.__setstate__):
        out.__setstate__(state)
        return out
    return _set_state(out, state)


_rebuild_from_type_v2.__module__ = "tenon._tensor"  # where PyTorch has it: plain pickles are read there


def _set_state(obj, state):
    """Attributes from a dict, or from (dict, slots)."""
    if isinstance(state, tuple):
        state, slots = state
        for key, value in (slots or {}).items():
            setattr(obj, key, value)
    for key, value in (state or {}).items():
        setattr(obj, key, value)
    return obj


def _get_available_device_type():
    """The kind of accelerator that is there: none."""
    return None


def _get_device_module(device_type):
    """The module of a kind of device: tenon.cuda for "cuda"."""
    module = getattr(tenon, device_type, None)
    if module is None:
        raise RuntimeError("Device '%s' does not have a corresponding module registered as 'torch.%s'."
                           % (device_type, device_type))
    return module


def _element_size(dtype):
    """Bytes of an element."""
    if not isinstance(dtype, tenon.dtype):
        raise RuntimeError("expected torch.dtype, but got %s" % type(dtype))
    return dtype.itemsize


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device; -1 for the CPU, where that is allowed."""
    if isinstance(device, str):
        device = tenon.device(device)
    if isinstance(device, tenon.device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError("Expected a non cpu device, but got: %s" % device)
        return -1 if device.type == "cpu" else device.index if device.index is not None else 0
    if isinstance(device, int):
        return device
    if optional:
        return 0
    raise ValueError("Expected a torch.device with a specified index or an integer, but got:%s" % (device,))


def _flatten_dense_tensors(tensors):
    """All elements of several tensors in one row."""
    return tenon.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """A row cut into views of the shapes of several tensors."""
    made, at = [], 0
    for t in tensors:
        made.append(flat.narrow(0, at, t.numel()).view_as(t))
        at += t.numel()
    return tuple(made)


class KeyErrorMessage(str):
    """A KeyError shows the repr of its argument; this one has line breaks in it."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """An exception of another thread or process: its class and its traceback as text, which can always travel."""

    def __init__(self, exc_info=None, where="in background"):
        import traceback
        if exc_info is None:
            import sys
            exc_info = sys.exc_info()
        self.exc_type, self.where = exc_info[0], where
        self.exc_msg = "".join(traceback.format_exception(*exc_info))

    def __getstate__(self):
        import pickle
        state = dict(self.__dict__)
        try:
            pickle.dumps(self.exc_type)
        except Exception:
            state["exc_type"] = RuntimeError
        return state

    def reraise(self):
        """Raise it here."""
        text = "Caught %s %s.\nOriginal %s" % (self.exc_type.__name__, self.where, self.exc_msg)
        if self.exc_type is KeyError:
            raise KeyError(KeyErrorMessage(text))
        if getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            error = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error
