# SPDX-License-Identifier: MIT
"""save() and load(): PyTorch's `.pt` files, both ways.

A file is a zip archive: a pickle of the object, in which storages are named, and a record of bytes
for each storage. Older files are a row of pickles with the storages behind. Unless `weights_only` is
False, the pickle is read by a machine that runs no code (_weights_only_unpickler.py).
"""

import io
import os
import pickle
import struct
import sys
import threading

import tenon
from tenon import _load_options, _utils
from tenon import _weights_only_unpickler as _restricted
from tenon._load_options import (  # noqa: F401
    LoadEndianness, get_default_load_endianness, get_default_mmap_options, set_default_load_endianness, set_default_mmap_options)
from tenon._saving import (  # noqa: F401
    MAGIC_NUMBER, PROTOCOL_VERSION, _get_layout, _save_legacy, _save_zip, location_tag, normalize_storage_type)
from tenon.storage import TypedStorage, UntypedStorage

DEFAULT_PROTOCOL = 2

UnpicklingError = pickle.UnpicklingError
MAP_LOCATION = object  # for annotations: a function, a device, its name, a dict, or None


class SourceChangeWarning(Warning):
    """Nothing gives it: no source is kept with a module. Programs filter it."""


# ---- names that a restricted load may use ----

def add_safe_globals(safe_globals):
    """Allow classes and functions in `load(…, weights_only=True)`: objects, or (object, name)."""
    for item in safe_globals:
        obj, name = item if isinstance(item, tuple) else (item, _restricted.full_name(item))
        _restricted._marked_safe[name] = obj


def get_safe_globals():
    return list(_restricted._marked_safe.values())


def clear_safe_globals():
    _restricted._marked_safe.clear()


class safe_globals:
    """`with safe_globals([MyClass]): load(…)`"""

    def __init__(self, safe_globals):
        self._items = safe_globals

    def __enter__(self):
        self._old = dict(_restricted._marked_safe)
        add_safe_globals(self._items)

    def __exit__(self, *unused):
        _restricted._marked_safe.clear()
        _restricted._marked_safe.update(self._old)


# ---- switches ----

_crc32 = True
_skipping = threading.local()  # .how: the skip_data that this thread is in


def get_crc32_options():
    """Whether save() writes check sums of its records."""
    return _crc32


def set_crc32_options(compute_crc32):
    """Without check sums save() is faster; load() reads such files, programs that unpack archives may refuse them."""
    global _crc32
    _crc32 = compute_crc32


class skip_data:
    """Inside, save() leaves room for the bytes of storages, which somebody else fills, and load() makes storages that nobody
    fills. materialize_fake_tensors: fake tensors are written as ordinary ones."""

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        self._old = getattr(_skipping, "how", None)
        _skipping.how = self

    def __exit__(self, *unused):
        _skipping.how = self._old


# ---- files ----

class _Opened:
    """A path that we open, or a file-like object that stays the caller's."""

    def __init__(self, f, mode):
        self._ours = isinstance(f, (str, bytes, os.PathLike))
        self.file = open(f, mode) if self._ours else f

    def __enter__(self):
        return self.file

    def __exit__(self, *unused):
        if self._ours:
            self.file.close()
        elif hasattr(self.file, "flush") and getattr(self.file, "writable", lambda: False)():
            self.file.flush()


# ---- writing ----

def save(obj, f, pickle_module=None, pickle_protocol=DEFAULT_PROTOCOL,
         _use_new_zipfile_serialization=True, _disable_byteorder_record=False):
    """Write an object with its tensors to a path or a file-like object, as torch.save does."""
    if not isinstance(f, (str, bytes, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a 'write' "
                             f"attribute")
    name = "archive"
    if isinstance(f, (str, os.PathLike)):
        name = os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"
        parent = os.path.dirname(os.fspath(f))
        if parent and not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {parent} does not exist.")
    skip = getattr(_skipping, "how", None) is not None
    if skip and not _use_new_zipfile_serialization:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    with _Opened(f, "wb") as file:
        if not _use_new_zipfile_serialization:
            _save_legacy(obj, file, pickle_protocol, pickle_module)
        elif hasattr(file, "seek") and hasattr(file, "tell"):
            _save_zip(obj, file, pickle_protocol, name, _crc32, skip, pickle_module)
        else:
            whole = io.BytesIO()
            _save_zip(obj, whole, pickle_protocol, name, _crc32, skip, pickle_module)
            file.write(whole.getvalue())


# ---- reading ----

_UNSAFE = ("In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. "
           "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code "
           "execution. Do it only if you got the file from a trusted source.")
_DOCUMENTED = ("\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
               "https://pytorch.org/docs/stable/generated/torch.load.html.")


def _weights_only_text(error):
    """What a restricted load says of `error`: what can be allowed is told apart from what cannot."""
    if "was not an allowed global by default" in error:
        return ("Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those steps "
                "only if you trust the source of the checkpoint\033[0m. \n\t(1) " + _UNSAFE + "\n\t(2) Alternatively, to load "
                "with `weights_only=True` please check the recommended steps in the following error message.\n\t"
                "WeightsUnpickler error: " + error + _DOCUMENTED)
    return "Weights only load failed. " + _UNSAFE + "\n\nWeightsUnpickler error: " + error + _DOCUMENTED


class _NamesOfTorch:
    """The part of an unpickler that runs what the pickle says: PyTorch's names mean Tenon's."""

    def __init__(self, file, persistent_load, **options):
        super().__init__(file, **options)
        self.persistent_load = persistent_load

    def find_class(self, module, name):
        if module == "torch" or module.startswith("torch."):
            found = _restricted._functions.get(f"{module}.{name}")
            if found is not None and name != "_rebuild_from_type_v2":
                return found
            if name == "_rebuild_from_type_v2":
                return tenon._utils._rebuild_from_type_v2
            if (module, name) == ("torch._dynamo.decorators", "_DimRange"):
                return _restricted._DimRange
            found = tenon.storage.storage_class(name) if module == "torch" else None
            if found is not None:
                return found
            module = "tenon" + module[5:]
            if "." not in name and module == "tenon":
                return getattr(tenon, name)
        return super().find_class(module, name)


class _TrustedUnpickler(_NamesOfTorch, pickle.Unpickler):
    pass


def _trusted(pickle_module):
    """The class of unpicklers, over that of a module which was given."""
    if pickle_module is None or pickle_module.Unpickler is pickle.Unpickler:
        return _TrustedUnpickler
    return type("Unpickler", (_NamesOfTorch, pickle_module.Unpickler), {})


def _unpickle(file, persistent_load, weights_only, encoding, pickle_module=None):
    if weights_only:
        machine = _restricted.Unpickler(file, encoding=encoding)
        machine.persistent_load = persistent_load
        try:
            return machine.load()
        except UnpicklingError as error:
            raise UnpicklingError(_weights_only_text(str(error))) from None
    return _trusted(pickle_module)(file, persistent_load, encoding=encoding).load()


def _mover(map_location):
    """A function (storage, location) -> storage."""
    def move(storage, location):
        if tenon.device(location).type == "cpu":
            return storage
        return storage.to(device=location)

    if map_location is None:
        def restore(storage, location):
            kind = str(location).split(":")[0]
            if kind in ("cpu", "meta"):
                return move(storage, location)
            try:
                return move(storage, location)
            except (RuntimeError, AssertionError, ValueError, NotImplementedError):
                raise RuntimeError(
                    f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. "
                    "If you are running on a CPU-only machine, please use torch.load with "
                    "map_location=torch.device('cpu') to map your storages to the CPU.") from None
        return restore
    if isinstance(map_location, dict):
        plain = _mover(None)
        return lambda storage, location: plain(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes, tenon.device)):
        where = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        plain = _mover(None)
        return lambda storage, location: plain(storage, where)

    def call(storage, location):
        out = map_location(storage, location)
        return _mover(None)(storage, location) if out is None else out
    return call


def default_restore_location(storage, location):
    """The storage where a file says that it was."""
    return _mover(None)(storage, location)


def get_unsafe_globals_in_checkpoint(f):
    """Names that a file asks for and that a load with weights_only refuses. Runs nothing of the file."""
    import pickletools
    with _Opened(f, "rb") as file:
        data = PyTorchFileReader(file).get_record("data.pkl")
    found, texts = {}, []
    for op, value, _ in pickletools.genops(data):
        if op.name == "GLOBAL":
            found[tuple(value.split(" ", 1))] = None
        elif op.name == "STACK_GLOBAL":
            found[tuple(texts[-2:])] = None
        elif isinstance(value, str):
            texts.append(value)
    machine, refused = _restricted.Unpickler(io.BytesIO()), []
    for module, name in found:
        try:
            machine._find(module, name)
        except UnpicklingError:
            refused.append("%s.%s" % (module, name))
    return refused


def _storage_dtype(kind):
    """The dtype that a storage class in a persistent id stands for."""
    if kind is UntypedStorage:
        return tenon.uint8
    dtype = getattr(kind, "dtype", None)
    if not (isinstance(kind, type) and issubclass(kind, TypedStorage)) or dtype is None:
        raise UnpicklingError("a persistent id that names no storage type")
    return dtype


def _parse_id(pid, lengths):
    if not isinstance(pid, tuple) or len(pid) not in lengths:
        raise UnpicklingError("a persistent id that is no storage")
    tag, kind, key, location, numel = pid[:5]
    if tag in ("storage", b"storage") and isinstance(key, (str, int, bytes)):
        location = location.decode() if isinstance(location, bytes) else location
        if isinstance(numel, int) and 0 <= numel < 1 << 60 and isinstance(location, str):
            return kind, str(key), location, numel
    raise UnpicklingError("a persistent id that is no storage")


def _wrap(kind, untyped, dtype):
    if kind is UntypedStorage:
        return untyped
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _read_into_new(file, nbytes):
    """A storage with the next bytes of a file; what is not there is not allocated."""
    flat = tenon.empty(nbytes, dtype=tenon.uint8, device="cpu")
    if nbytes and not tenon._C._is_fake(flat):
        view = memoryview(flat)
        done = 0
        while done < nbytes:
            got = _read_some(file, view[done:done + (64 << 20)])
            if not got:
                raise RuntimeError("unexpected EOF: the file is shorter than its storages")
            done += got
    return UntypedStorage(flat)


def _read_some(file, view):
    if hasattr(file, "readinto"):
        return file.readinto(view)
    data = file.read(len(view))
    view[:len(data)] = data
    return len(data)


def _swap(untyped, dtype):
    """Turn the bytes of each number round."""
    width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    if width > 1:
        rows = untyped._flat.view(-1, width)
        rows.copy_(rows.flip(1).clone())


def _clean(untyped):
    """Write 1 for every byte of a bool that is true: others who get these bytes may know no other."""
    if untyped._flat.device.type == "cpu":
        untyped._flat.ne_(0)


class _Archive:
    """The records of a zip file that are stored as they are: anything else is refused."""

    def __init__(self, file):
        import zipfile

        self.file = file
        try:
            self.zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {error}") from None
        names = self.zip.namelist()
        first = next((n for n in names if n.endswith("/data.pkl")), None)
        if first is None:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")
        self.prefix = first[:-len("data.pkl")]
        file.seek(0, 2)
        self.size = file.tell()
        self.left = self.size  # records may not overlap: all together fit into the file

    def has(self, record):
        return self.prefix + record in self.zip.NameToInfo

    def span(self, record):
        """(offset, length) of a record's bytes in the file."""
        info = self.zip.NameToInfo.get(self.prefix + record)
        if info is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {record}: file not found")
        if info.compress_type != 0 or info.flag_bits & 1:
            raise RuntimeError(f"the record {record} is compressed or encrypted, which is not part of "
                               "the format")
        self.file.seek(info.header_offset)
        head = self.file.read(30)
        if len(head) < 30 or head[:4] != b"PK\x03\x04":
            raise RuntimeError(f"the header of the record {record} is damaged")
        name, extra = struct.unpack("<HH", head[26:30])
        start = info.header_offset + 30 + name + extra
        if info.header_offset < 0 or start + info.file_size > self.size:
            raise RuntimeError(f"the record {record} reaches beyond the end of the file")
        self.left -= info.file_size
        if self.left < 0:
            raise RuntimeError("the records of the file overlap")
        return start, info.file_size

    def read(self, record):
        start, length = self.span(record)
        self.file.seek(start)
        data = self.file.read(length)
        if len(data) != length:
            raise RuntimeError("unexpected EOF")
        return data


class PyTorchFileReader:
    """The records of a file that torch.save wrote, one by one; takes a path or a file-like object."""

    def __init__(self, file):
        self._archive = _Archive(open(file, "rb") if isinstance(file, (str, os.PathLike)) else file)

    def has_record(self, name):
        return self._archive.has(name)

    def get_all_records(self):
        prefix = self._archive.prefix
        return [name[len(prefix):] for name in self._archive.zip.namelist() if name.startswith(prefix)]

    def get_record(self, name):
        self._archive.left = self._archive.size
        return self._archive.read(name)

    def get_record_offset(self, name):
        self._archive.left = self._archive.size
        return self._archive.span(name)[0]

    def get_storage_from_record(self, name, numel, dtype):
        """A record as a tensor of that many elements, whose storage has the record's bytes."""
        data = self.get_record(name)
        if numel < 0 or numel * dtype.itemsize > len(data):
            raise RuntimeError("the record %s has no %d elements of %s" % (name, numel, dtype))
        if not numel:
            return tenon.empty(0, dtype=dtype)
        return tenon.frombuffer(bytearray(data), dtype=dtype, count=numel)


def _load_zip(file, map_location, weights_only, encoding, mapped, pickle_module):
    archive = _Archive(file)
    move = _mover(map_location)
    done = {}
    order = archive.read("byteorder")[:8] if archive.has("byteorder") else _default_order()
    if order not in (b"little", b"big"):
        raise ValueError("Unknown endianness type: " + order.decode(errors="replace"))
    swap = order != sys.byteorder.encode()

    def persistent_load(pid):
        kind, key, location, numel = _parse_id(pid, (5, 6))
        dtype = _storage_dtype(kind)
        if key not in done:
            start, length = archive.span("data/" + key)
            nbytes = numel * dtype.itemsize
            if nbytes > length:
                raise RuntimeError(f"the storage {key} should have {nbytes} bytes, and has {length}")
            if location.split(":")[0] == "meta" or tenon.device(
                    map_location if isinstance(map_location, (str, tenon.device)) else "cpu"
            ).type == "meta":
                untyped = UntypedStorage(nbytes, device="meta")
            elif getattr(_skipping, "how", None) is not None:
                untyped = UntypedStorage(nbytes)
            elif mapped is not None and nbytes and not _making_fakes():
                untyped = UntypedStorage(
                    tenon.frombuffer(mapped, dtype=tenon.uint8, count=nbytes, offset=start))
            else:
                file.seek(start)
                untyped = _read_into_new(file, nbytes)
            if not tenon._C._is_fake(untyped._flat):
                if swap:
                    _swap(untyped, dtype)
                if dtype is tenon.bool and mapped is None:
                    _clean(untyped)
            done[key] = _untyped_of(move(untyped, location))
        return _wrap(kind, done[key], dtype)

    return _unpickle(io.BytesIO(archive.read("data.pkl")), persistent_load, weights_only, encoding, pickle_module)


def _default_order():
    kind = _load_options.get_default_load_endianness()
    return {LoadEndianness.LITTLE: b"little", LoadEndianness.BIG: b"big"}.get(kind, sys.byteorder.encode())


def _making_fakes():
    """Whether what is made now is a fake tensor: then nothing is read."""
    return tenon._C._is_fake(tenon.empty(0))


def _untyped_of(storage):
    storage = getattr(storage, "_untyped_storage", storage)
    if not isinstance(storage, UntypedStorage):
        raise TypeError("map_location did not return a storage")
    return storage


class _Row:
    """A file read as a row of pickles: knows how many bytes are left."""

    def __init__(self, file):
        here = file.tell()
        file.seek(0, 2)
        self.end = file.tell()
        file.seek(here)
        self.file = file

    def left(self):
        return self.end - self.file.tell()


def _load_legacy(file, map_location, weights_only, encoding, pickle_module):
    move = _mover(map_location)
    row = _Row(file)
    storages = {}   # key -> [what the bytes are read into, dtype, the storage of the tensors: map_location says where]
    total = 0

    def persistent_load(pid):
        if isinstance(pid, tuple) and pid[:1] == ("module",):
            return pid[1] if len(pid) > 1 else None
        kind, key, location, numel = _parse_id(pid, (5, 6))
        dtype = _storage_dtype(kind)
        if key not in storages:
            nonlocal total
            nbytes = numel * dtype.itemsize
            total += nbytes
            if total > row.end:  # their bytes are in this file, further on
                raise RuntimeError(f"the storage {key} should have {nbytes} bytes, more than the file")
            read = UntypedStorage(nbytes)
            storages[key] = [read, dtype, _untyped_of(move(read, location))]
        placed = storages[key][2]
        view = pid[5] if len(pid) > 5 else None
        if view is not None:
            view_key, offset, size = view
            part = placed._flat[offset * dtype.itemsize:(offset + size) * dtype.itemsize]
            return _wrap(kind, UntypedStorage(part), dtype)
        return _wrap(kind, placed, dtype)

    def plain(pid):
        raise UnpicklingError("a persistent id where there can be none")

    magic = _unpickle(file, plain, True, encoding)
    if magic != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = _unpickle(file, plain, True, encoding)
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    info = _unpickle(file, plain, True, encoding)

    def fill():
        keys = _unpickle(file, plain, True, encoding)
        if not isinstance(keys, list):
            raise RuntimeError("the list of storages is missing; corrupt file?")
        for key in keys:
            if str(key) not in storages:
                raise RuntimeError("the file has a storage that nothing names; corrupt file?")
            untyped, dtype, placed = storages[str(key)]
            head = file.read(8)
            if len(head) != 8 or struct.unpack("<q", head)[0] * dtype.itemsize != untyped.nbytes():
                raise RuntimeError("a storage has another size than the file says; corrupt file?")
            if untyped.nbytes() > row.left():
                raise RuntimeError("unexpected EOF: the file is shorter than its storages")
            if tenon._C._is_fake(untyped._flat):
                file.seek(untyped.nbytes(), 1)
                continue
            if untyped.nbytes():
                view = memoryview(untyped._flat)
                done = 0
                while done < len(view):
                    got = _read_some(file, view[done:])
                    if not got:
                        raise RuntimeError("unexpected EOF")
                    done += got
            if isinstance(info, dict) and info.get("little_endian", True) != (
                    sys.byteorder == "little"):
                _swap(untyped, dtype)
            if dtype is tenon.bool:
                _clean(untyped)
            if placed is not untyped and placed.device.type != "meta":
                placed.copy_(untyped)

    return _utils._check_sparse_later(lambda: _unpickle(file, persistent_load, weights_only, encoding, pickle_module), fill)


def _weights_only(said, pickle_module):
    """Whether a load is restricted: as the call says, unless the environment insists."""
    yes = ("1", "y", "yes", "true")
    force = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD") in yes
    force_no = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD") in yes
    if force and force_no:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, "
                           "but both were set.")
    if force:
        return True
    if said is not None:
        return said
    if force_no:
        import warnings
        warnings.warn("Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not "
                      "explicitly passed to `torch.load`, forcing weights_only=False.", UserWarning, stacklevel=3)
        return False
    return pickle_module is None


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **options):
    """Read what save() or torch.save wrote.

    weights_only: True (also when not given): tensors, plain values and containers alone, no code is
    run. False: everything that pickle can do, which includes running any code: for trusted files.
    mmap: map the file instead of reading it; it must be a path.
    """
    encoding = options.pop("encoding", "utf-8")
    if options:
        raise TypeError(f"load() got an unexpected keyword argument {next(iter(options))!r}")
    weights_only = _weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with _Opened(f, "rb") as file:
        if not hasattr(file, "read") or not hasattr(file, "seek"):
            lacks = "read" if hasattr(file, "seek") else "seek"
            raise AttributeError(f"{type(file).__name__!r} object has no attribute {lacks!r}. You can only torch.load from a file that is seekable. Please "
                                 "pre-load the data into a buffer like io.BytesIO and try to load "
                                 "from it instead.")
        here = file.tell()
        head = file.read(4)
        file.seek(here)
        if head != b"PK\x03\x04":
            if mmap:
                raise RuntimeError(f"mmap can only be used with files saved with `torch.save({f}, "
                                   "_use_new_zipfile_serialization=True), please torch.save your checkpoint with this "
                                   "option in order to use mmap.")
            if not head:
                raise EOFError("Ran out of input")
            return _load_legacy(file, map_location, weights_only, encoding, pickle_module)
        mapped = _load_options.map_file(f) if mmap else None
        return _load_zip(file, map_location, weights_only, encoding, mapped, pickle_module)
