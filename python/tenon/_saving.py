# SPDX-License-Identifier: MIT
"""How save() writes: objects under PyTorch's names, storages as records of their own. Files are read in serialization.py."""

import io
import pickle
import struct
import sys
from collections import OrderedDict

import tenon
from tenon import _utils
from tenon.storage import TypedStorage, UntypedStorage, _class_name

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_ALIGNMENT = 64


def _get_layout(name):
    """The layout of a name as pickles have it: "torch.sparse_coo"."""
    found = getattr(tenon, name.rpartition(".")[2], None)
    if not isinstance(found, tenon.layout):
        raise ValueError("%r is not the name of a layout" % name)
    return found


_get_layout.__module__ = "tenon.serialization"  # files name it so


def _torch_name(module):
    return "torch" + module[5:] if module == "tenon" or module.startswith("tenon.") else module


def _text(text):
    data = text.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data


def _int(n):
    if n < 256:
        return pickle.BININT1 + bytes((n,))
    if n < 1 << 31:
        return pickle.BININT + struct.pack("<i", n)
    data = pickle.encode_long(n)
    return pickle.LONG1 + bytes((len(data),)) + data


_TUPLES = (b"", pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)


def _ints(sizes):
    text = b"".join(map(_int, sizes))
    n = len(sizes)
    return pickle.EMPTY_TUPLE if n == 0 else text + _TUPLES[n] if n < 4 else pickle.MARK + text + pickle.TUPLE


class _Pickler(pickle._Pickler):
    """Writes Tenon's classes under PyTorch's names, and storages as persistent ids."""

    dispatch = pickle._Pickler.dispatch.copy()

    def __init__(self, file, protocol, storages):
        super().__init__(file, protocol)
        self.persistent_id, self._storages = storages.persistent_id, storages

    def save(self, obj, save_persistent_id=True):
        # A checkpoint is mostly numbers, names and tuples: none of them is a storage, or is written in a way of its own.
        plain = self._plain.get(type(obj))
        if plain is None:
            super().save(obj, save_persistent_id)
            return
        self.framer.commit_frame()
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
        else:
            plain(self, obj)

    def _save_tensor(self, t):
        """What save would write for a tensor without anything unusual, at once: a checkpoint has many small ones."""
        if (self.proto != 2 or getattr(t, "__dict__", None) or t.device.type != "cpu" or t.has_names()
                or not tenon.storage.has_typed_storage(t.dtype)):
            super().save(t)
            return
        storage = tenon.storage.untyped_storage_of(t)
        mark, kind, key, place, numel = self._storages.describe(
            storage, t.dtype, tenon.storage.storage_type_of(t))[:5]
        rest = pickle.NONE if self._storages.legacy else b""
        self.write(b"".join((
            self._once(_utils._rebuild_tensor_v2, b"ctorch._utils\n_rebuild_tensor_v2\n"), b"((",
            self._once(mark, _text(mark)), self._once(kind, b"ctorch\n%s\n" % kind.__name__.encode()), _text(key),
            self._once(place, _text(place)), _int(numel), rest, b"tQ", _int(t.storage_offset()), _ints(t.size()),
            _ints(t.stride()), pickle.NEWTRUE if t.requires_grad else pickle.NEWFALSE,
            self._once(OrderedDict, b"ccollections\nOrderedDict\n"), b")RtR")))
        self.memoize(t)

    def _once(self, obj, text):
        """An object that is written in full the first time."""
        known = self.memo.get(id(obj))
        if known is not None:
            return self.get(known[0])
        at = len(self.memo)
        self.memo[id(obj)] = at, obj
        return text + self.put(at)

    def reducer_override(self, obj):
        if isinstance(obj, tenon.dtype):
            return str(obj).rsplit(".", 1)[-1]
        if isinstance(obj, tenon.layout):
            return (_get_layout, ("torch." + str(obj).rpartition(".")[2],))
        if isinstance(obj, tenon.memory_format):
            return str(obj).rsplit(".", 1)[-1]
        if isinstance(obj, tenon.device):
            args = (obj.type,) if obj.index is None else (obj.type, obj.index)
            return (tenon.device, args)
        if isinstance(obj, tenon.Size):
            return (tenon.Size, (tuple(obj),))
        return NotImplemented

    def save_global(self, obj, name=None):
        if isinstance(obj, (tenon.dtype, tenon.memory_format)):
            module = "torch"
        elif obj is tenon.device or obj is tenon.Size or obj is tenon.Tensor:
            module, name = "torch", obj.__name__
        else:
            module = _torch_name(getattr(obj, "__module__", None) or "")
            if module != "torch" and not module.startswith("torch."):
                return super().save_global(obj, name)
            name = name or obj.__qualname__
            if module == "torch._pickling":
                module = "torch._utils"
            if name == "_rebuild_from_type_v2":
                module = "torch._tensor"
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    dispatch[type(_torch_name)] = save_global


_Pickler._plain = {kind: _Pickler.dispatch[kind] for kind in (int, float, bool, type(None), str, bytes, tuple, list, dict,
                                                              type, type(_torch_name))}
_Pickler._plain[tenon.Tensor] = _Pickler._save_tensor


def _pickler(pickle_module, file, protocol, storages):
    """A pickler; with a module that was given, one of its own, under which classes keep the names that they have."""
    if pickle_module is None or pickle_module.Pickler is pickle.Pickler:
        return _Pickler(file, protocol, storages)

    class Given(pickle_module.Pickler):
        def persistent_id(self, obj):
            return storages.persistent_id(obj)

    return Given(file, protocol=protocol)


class _Storages:
    """Gives a storage its key, and remembers which there are."""

    def __init__(self, legacy):
        self.legacy = legacy
        self.keys = {}    # storage's identity -> key
        self.found = []   # (key, UntypedStorage)
        self.dtypes = {}  # data pointer -> dtype

    def persistent_id(self, obj):
        if isinstance(obj, TypedStorage):
            untyped, dtype = obj._untyped_storage, obj.dtype
            kind = tenon.storage.storage_class(_class_name(dtype))
        elif isinstance(obj, UntypedStorage):
            untyped, dtype, kind = obj, tenon.uint8, UntypedStorage
        else:
            return None
        return self.describe(untyped, dtype, kind)

    def describe(self, untyped, dtype, kind):
        pointer = untyped.data_ptr()
        if pointer != 0 and self.dtypes.setdefault(pointer, dtype) != dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as "
                               "different types")
        key = self.keys.get(untyped._cdata)
        if key is None:
            key = str(len(self.found))
            self.keys[untyped._cdata] = key
            self.found.append((key, untyped))
        location = sys.intern(str(untyped.device))
        numel = untyped.nbytes() // dtype.itemsize
        if self.legacy:
            return ("storage", kind, key, location, numel, None)
        return ("storage", kind, key, location, numel)


def _bytes_of(untyped):
    flat = untyped._flat
    if flat.device.type != "cpu":
        flat = flat.cpu()
    return memoryview(flat) if flat.numel() else b""


def _save_zip(obj, file, protocol, name, checked=True, skip=False, pickle_module=None):
    """`checked`: with check sums. `skip`: room for the bytes of storages, zeros in it."""
    from tenon._zip_writer import ZipWriter

    storages = _Storages(legacy=False)
    body = io.BytesIO()
    _pickler(pickle_module, body, protocol, storages).dump(obj)
    archive = ZipWriter(file, _ALIGNMENT, checked)
    for record, data in (("data.pkl", body.getbuffer()), (".format_version", b"1"),
                         (".storage_alignment", b"%d" % _ALIGNMENT), ("byteorder", sys.byteorder.encode())):
        archive.write("%s/%s" % (name, record), data)
    for key, untyped in storages.found:
        archive.write("%s/data/%s" % (name, key), bytes(untyped.nbytes()) if skip else _bytes_of(untyped))
    archive.write(name + "/version", b"3\n")
    archive.close()


def _save_legacy(obj, file, protocol, pickle_module=None):
    storages = _Storages(legacy=True)
    pickle.dump(MAGIC_NUMBER, file, protocol)
    pickle.dump(PROTOCOL_VERSION, file, protocol)
    pickle.dump({"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little",
                 "type_sizes": {"short": 2, "int": 4, "long": 4}}, file, protocol)
    body = io.BytesIO()
    _pickler(pickle_module, body, protocol, storages).dump(obj)
    file.write(body.getvalue())
    pickle.dump([key for key, unused in storages.found], file, protocol)
    for key, untyped in storages.found:
        itemsize = storages.dtypes.get(untyped.data_ptr(), tenon.uint8).itemsize
        file.write(struct.pack("<q", untyped.nbytes() // itemsize))
        file.write(_bytes_of(untyped))


def location_tag(storage):
    """The name of the device that a storage lies on, as a file has it."""
    return str(storage.device)


def normalize_storage_type(storage_type):
    """The class of storages with that name which the package itself has."""
    return getattr(tenon, storage_type.__name__)
