# SPDX-License-Identifier: MIT
"""Storages: the memory behind tensors, as scripts and file formats see it.

A storage is seen through a tensor of bytes that covers all of it, so it stays alive with its
tensors and the other way round.
"""

import operator
import sys

import tenon
from tenon._typing import Any as _Any

_NAMES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
}


class StorageBase:
    """What is common to storages of bytes, for isinstance."""

    __slots__ = ()


class UntypedStorage(StorageBase):
    """Bytes that tensors may share."""

    def __init__(self, size=0, *, device=None):
        if isinstance(size, tenon.Tensor):
            self._flat = size
        elif isinstance(size, int):
            self._flat = tenon.empty(size, dtype=tenon.uint8, device=device or "cpu")
        else:
            data = bytearray(size)
            self._flat = (tenon.frombuffer(data, dtype=tenon.uint8) if data
                          else tenon.empty(0, dtype=tenon.uint8))

    @classmethod
    def from_buffer(cls, buffer, *args, byte_order="native", dtype=None, **unused):
        """A copy of a buffer's bytes."""
        return cls(bytes(buffer))

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """The bytes of a file, mapped: written back to it when `shared`."""
        import mmap

        with open(filename, "r+b" if shared else "rb") as f:
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            mapped = mmap.mmap(f.fileno(), nbytes, access=access)
        return cls(tenon.frombuffer(mapped, dtype=tenon.uint8))

    # what it is

    def data_ptr(self):
        return self._flat.data_ptr()

    _data_ptr = data_ptr

    @property
    def _cdata(self):
        return tenon._C._storage_id(self._flat)

    def nbytes(self):
        return self._flat.numel()

    size = nbytes

    def __len__(self):
        return self._flat.numel()

    def element_size(self):
        return 1

    @property
    def device(self):
        return self._flat.device

    @property
    def is_cuda(self):
        return self.device.type == "cuda"

    is_sparse = False
    is_sparse_csr = False

    def get_device(self):
        return self.device.index if self.device.index is not None else -1

    def resizable(self):
        return True

    def is_pinned(self, device=None):
        return False

    def is_shared(self):
        return _shared is not None and self.data_ptr() in _shared

    def share_memory_(self):
        share_memory_(self._flat)
        return self

    def untyped(self):
        return self

    def type(self, dtype=None):
        if dtype is None:
            return "torch.storage.UntypedStorage"
        raise NotImplementedError("an UntypedStorage has no other type")

    # contents

    def tensor_of(self, dtype, offset=0, size=None, stride=None):
        """A tensor over these bytes; it keeps them alive."""
        return tenon._C._storage_view(self._flat, dtype, offset, size, stride)

    def _range(self, index):
        """Where a slice begins and ends."""
        start, stop, step = index.indices(len(self))
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is "
                               "supported")
        return start, max(start, stop)

    def __getitem__(self, index):
        """A byte; for a slice a storage of its own over the same memory, which it keeps alive."""
        if isinstance(index, slice):
            start, stop = self._range(index)
            part = self._flat[start:stop]
            if self.device.type == "cpu" and start < stop:
                part = tenon.frombuffer(memoryview(self._flat)[start:stop], dtype=tenon.uint8)
            return UntypedStorage(part if start < stop else part.clone())
        if not isinstance(index, int):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"index {at} out of range for storage of size {len(self)}")
        return self._flat[at].item()

    def __setitem__(self, index, value):
        if not isinstance(value, int):
            name = ("torch.storage.UntypedStorage" if isinstance(value, UntypedStorage)
                    else type(value).__name__)
            raise RuntimeError(f"can only set storage content with a int types, but got {name} "
                               "instead")
        if isinstance(index, slice):
            start, stop = self._range(index)
            self._flat[start:stop] = value & 255
            return
        if not isinstance(index, int):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        if not -len(self) <= index < len(self):
            raise RuntimeError("out of bounds")
        self._flat[index] = value & 255

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._flat.tolist()

    def fill_(self, value):
        self._flat.fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        source = getattr(source, "_untyped_storage", source)
        self._flat.copy_(source._flat)
        return self

    def clone(self):
        return UntypedStorage(self._flat.clone())

    def cpu(self):
        return self if self.device.type == "cpu" else UntypedStorage(self._flat.cpu())

    def to(self, *, device, non_blocking=False):
        return UntypedStorage(self._flat.to(device))

    def resize_(self, size):
        tenon._C._storage_resize(self._flat, size)
        return self

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        done = memo.setdefault("torch", {})
        if self._cdata not in done:
            done[self._cdata] = self.clone()
        return done[self._cdata]

    def __reduce__(self):
        return (_from_bytes, (bytes(memoryview(self._flat)) if len(self) else b"",))

    def __sizeof__(self):
        return object.__sizeof__(self) + len(self)

    def __repr__(self):
        numbers = "\n ".join(str(b) for b in self.tolist()) if self.device.type != "meta" else "..."
        return f" {numbers}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


def _from_bytes(data):
    return UntypedStorage(data)


class TypedStorage:
    """A storage seen as elements of one dtype. Kept for older scripts and for files."""

    dtype = None

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if type(self).dtype is None:
            self.dtype = dtype or tenon.get_default_dtype()
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
            return
        if args and not hasattr(args[0], "__index__"):
            t = tenon.tensor(list(args[0]), dtype=self.dtype)
            self._untyped_storage = untyped_storage_of(t)
        else:
            n = operator.index(args[0]) if args else 0
            self._untyped_storage = UntypedStorage(n * self._itemsize(), device=device)

    def _itemsize(self):
        return self.dtype.itemsize

    @classmethod
    def from_buffer(cls, buffer, byte_order=None, count=-1, offset=0, *, dtype=None, device=None):
        """The elements that bytes have in an order ("big", "little" or "native"), copied."""
        dtype = cls.dtype or dtype or tenon.get_default_dtype()
        data, size = bytes(memoryview(buffer).cast("B")), dtype.itemsize
        if size > 1 and byte_order not in ("big", "little", "native"):
            raise ValueError("invalid byte_order '%s' (expected 'big', 'little', or 'native')" % byte_order
                             if byte_order is not None else "function missing required argument 'byte_order' (pos 2)")
        if offset < 0 or offset > len(data):
            raise ValueError("offset must be non-negative and no greater than buffer length (%d), but got %d" % (len(data), offset))
        if count < 0 and (len(data) - offset) % size:
            raise ValueError("buffer size (%d) must be a multiple of element size (%d)" % (len(data), size))
        if count >= 0 and offset + count * size > len(data):
            raise ValueError("buffer has only %d elements after offset %d, but specified a size of %d"
                             % ((len(data) - offset) // size, offset, count))
        data = data[offset:] if count < 0 else data[offset:offset + count * size]
        if dtype == tenon.bool:
            data = bytes(byte != 0 for byte in data)
        part = size // 2 if dtype.is_complex else size
        if part > 1 and byte_order not in ("native", sys.byteorder):
            data = b"".join(data[at:at + part][::-1] for at in range(0, len(data), part))
        return cls(wrap_storage=UntypedStorage(data), dtype=dtype)

    def _tensor(self):
        return self._untyped_storage.tensor_of(self.dtype)

    def untyped(self):
        return self._untyped_storage

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        return self.device.type == "cuda"

    is_sparse = False

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def element_size(self):
        return self._itemsize()

    def size(self):
        return self.nbytes() // self._itemsize()

    _size = size
    __len__ = size

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._tensor()[index].item()

    def __setitem__(self, index, value):
        self._tensor()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._tensor().tolist()

    def fill_(self, value):
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        self._tensor().copy_(source._tensor())
        return self

    def _new(self, untyped):
        return type(self)(wrap_storage=untyped, dtype=self.dtype)

    def clone(self):
        return self._new(self._untyped_storage.clone())

    def cpu(self):
        return self._new(self._untyped_storage.cpu())

    def resize_(self, size):
        self._untyped_storage.resize_(size * self._itemsize())
        return self

    def is_shared(self):
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device=None):
        return False

    def pin_memory(self, device=None):
        return self

    def pickle_storage_type(self):
        return _class_name(self.dtype)

    _pickle_storage_type = pickle_storage_type

    def type(self, dtype=None, non_blocking=False):
        if dtype is None:
            return "torch." + _class_name(self.dtype)
        if isinstance(dtype, str):
            dtype = getattr(tenon, dtype.rpartition(".")[2])
        if not hasattr(dtype, "dtype"):
            raise TypeError("type() takes a class of storages or the name of one, not %s" % (dtype,))
        return self._as(dtype.dtype)

    def _as(self, dtype):
        if dtype == self.dtype:
            return self
        return storage_class(_class_name(dtype))(wrap_storage=untyped_storage_of(self._tensor().to(dtype)))

    def double(self):
        return self._as(tenon.float64)

    def float(self):
        return self._as(tenon.float32)

    def half(self):
        return self._as(tenon.float16)

    def bfloat16(self):
        return self._as(tenon.bfloat16)

    def long(self):
        return self._as(tenon.int64)

    def int(self):
        return self._as(tenon.int32)

    def short(self):
        return self._as(tenon.int16)

    def char(self):
        return self._as(tenon.int8)

    def byte(self):
        return self._as(tenon.uint8)

    def bool(self):
        return self._as(tenon.bool)

    def complex_double(self):
        return self._as(tenon.complex128)

    def complex_float(self):
        return self._as(tenon.complex64)

    def resizable(self):
        return not self.is_shared()

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        import copy

        return self._new(copy.deepcopy(self._untyped_storage, memo))

    def __reduce__(self):
        if self.device.type != "cpu" or not has_typed_storage(self.dtype):
            return (_typed_from, (self._untyped_storage, self.dtype))
        import io

        from tenon._saving import _save_legacy
        file = io.BytesIO()
        _save_legacy(self, file, 2)
        return (_load_from_bytes, (file.getvalue(),))

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr() and (
            self.dtype == other.dtype)

    __hash__ = object.__hash__

    def __repr__(self):
        numbers = "\n ".join(str(v) for v in self.tolist()) if self.device.type != "meta" else "..."
        return (f" {numbers}\n[torch.storage.TypedStorage(dtype={self.dtype}, "
                f"device={self.device}) of size {len(self)}]")


def _load_from_bytes(data):
    """A storage from what pickles of PyTorch's have for it: a file of the older format, which is read without running code."""
    import io
    return tenon.load(io.BytesIO(data), weights_only=True)


def _typed_from(untyped, dtype):
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def has_typed_storage(dtype):
    """Whether file formats have a storage class for it; tensors of other dtypes are written with bytes and the dtype."""
    return str(dtype).rsplit(".", 1)[-1] in _NAMES.values()


def _class_name(dtype):
    name = str(dtype).rsplit(".", 1)[-1]
    for cls, d in _NAMES.items():
        if d == name:
            return cls
    raise KeyError(dtype)


_classes = {}


def storage_class(name):
    """FloatStorage and such; None when there is no such name."""
    if name == "Storage":
        name = "FloatStorage"
    if name not in _NAMES:
        return None
    if name not in _classes:
        dtype = getattr(tenon, _NAMES[name])
        _classes[name] = type(name, (TypedStorage,), {"dtype": dtype, "__module__": tenon.__name__})
    return _classes[name]


def __getattr__(name) -> _Any:
    found = storage_class(name)
    if found is None:
        raise AttributeError(f"module 'tenon.storage' has no attribute {name!r}")
    return found


def is_storage(obj):
    return isinstance(obj, (UntypedStorage, TypedStorage))


# ---- methods of Tensor ----

def untyped_storage_of(t):
    return UntypedStorage(tenon._C._storage_bytes(t))


def typed_storage_of(t):
    return TypedStorage(wrap_storage=untyped_storage_of(t), dtype=t.dtype)


_told_of_typed = False


def storage_of(t):
    global _told_of_typed
    if not _told_of_typed:
        import warnings
        _told_of_typed = True
        warnings.warn("TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
                      "storage class. This should only matter to you if you are using storages directly.  To access "
                      "UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()", stacklevel=2)
    return typed_storage_of(t)


def storage_type_of(t):
    return storage_class(_class_name(t.dtype))


_shared = None  # where a storage lies -> the mapping that holds it, as long as that lives


def share_memory_(t):
    """Move the elements to memory that other processes share: those forked from here on, and those that are sent `t`."""
    if is_shared(t) or t.device.type != "cpu" or t.untyped_storage().nbytes() == 0:
        return t
    from tenon.multiprocessing import reductions

    old, names = untyped_storage_of(t), t.names if t.has_names() else None
    new = shared_storage(reductions.Mapping.of_size(old.nbytes()))
    new.copy_(old)
    tenon._C._set_data(t, new.tensor_of(t.dtype, t.storage_offset(), tuple(t.size()),
                                        tuple(t.stride())))
    return tenon._C._set_names(t, names)


def shared_storage(mapped):
    """The storage of memory that is mapped; it keeps the mapping."""
    global _shared
    if _shared is None:
        import weakref
        _shared = weakref.WeakValueDictionary()
    new = UntypedStorage(tenon.frombuffer(mapped, dtype=tenon.uint8))
    _shared[new.data_ptr()] = mapped
    return new


def mapping_of(t):
    """The mapping under `t`, None where its memory is not shared."""
    return _shared.get(untyped_storage_of(t).data_ptr()) if _shared is not None else None


def is_shared(t):
    return mapping_of(t) is not None


def pin_memory(t, device=None):
    """Memory is pinned for a GPU; where there is none the tensor is returned as it is."""
    return t
