# SPDX-License-Identifier: MIT
"""The safetensors format: tensors by name, and nothing that could run.

save_file, load_file, save, load, safe_open, save_model and load_model are called as in
`safetensors.torch`. Reading checks the header against the file before any memory is taken.
"""

import json
import os
import struct

import tenon

HEADER_LIMIT = 100_000_000  # bytes

_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64",
           "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool",
           "C64": "complex64", "U16": "uint16", "U32": "uint32", "U64": "uint64", "F8_E4M3": "float8_e4m3fn",
           "F8_E5M2": "float8_e5m2"}
_CODES = {name: code for code, name in _DTYPES.items()}


class SafetensorError(Exception):
    """The file is not what the format says."""


# ---- writing ----

def _code(t):
    name = str(t.dtype).rsplit(".", 1)[-1]
    if name not in _CODES:
        raise SafetensorError(f"the format has no dtype {t.dtype}")
    return _CODES[name]


def _check(tensors):
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    owners = {}
    for name, t in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"argument 'tensor_dict': '{type(name).__name__}' object is not an instance of 'str'")
        if not isinstance(t, tenon.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(t)}")
        if not t.is_contiguous():
            raise ValueError(f"You are trying to save a non contiguous tensor: `{name}` which is not "
                             "allowed. It either means you are trying to save tensors which are "
                             "reference of each other in which case it's recommended to save only "
                             "the full tensors, and reslice at load time, or simply call "
                             "`.contiguous()` on your tensor to pack it before saving.")
        if t.numel() and t.device.type == "cpu":
            owners.setdefault(t.untyped_storage().data_ptr(), []).append(name)
    shared = [group for names in owners.values() if len(names) > 1 for group in _overlapping(tensors, names)]
    if shared:
        raise RuntimeError(f"\n            Some tensors share memory, this will lead to duplicate "
                           f"memory on disk and potential differences when loading them again: "
                           f"{shared}.\n            A potential way to correctly save your model is to "
                           "use `save_model`.\n            More information at "
                           "https://huggingface.co/docs/safetensors/torch_shared_tensors\n        ")


def _overlapping(tensors, names):
    """Of tensors in one memory, all of them contiguous, the groups of those that share elements."""
    spans = sorted((tensors[n].data_ptr(), tensors[n].data_ptr() + tensors[n].numel() * tensors[n].dtype.itemsize, n)
                   for n in names)
    groups, end = [], None
    for begin, stop, name in spans:
        if end is None or begin >= end:
            groups.append(set())
            end = stop
        groups[-1].add(name)
        end = max(end, stop)
    return [group for group in groups if len(group) > 1]


def _prepare(tensors, metadata):
    """(header, tensors in the order of their bytes)"""
    _check(tensors)
    order = sorted(tensors.items(), key=lambda kv: (-kv[1].dtype.itemsize, kv[0]))
    header = {}
    if metadata is not None:
        for text in (*metadata, *metadata.values()):
            if not isinstance(text, str):
                raise TypeError(f"argument 'metadata': '{type(text).__name__}' object is not an instance of 'str'")
        header["__metadata__"] = dict(metadata)
    offset = 0
    for name, t in order:
        n = t.numel() * t.dtype.itemsize
        header[name] = {"dtype": _code(t), "shape": list(t.shape), "data_offsets": [offset, offset + n]}
        offset += n
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_LIMIT:
        raise SafetensorError("the header is too large")
    return struct.pack("<Q", len(text)) + text, [t for unused, t in order]


def _bytes_of(t):
    flat = t.detach().cpu().reshape(-1)
    return memoryview(flat.view(tenon.uint8)) if flat.numel() else b""


def save(tensors, metadata=None):
    """The bytes of a file with these tensors."""
    header, order = _prepare(tensors, metadata)
    return b"".join([header] + [bytes(_bytes_of(t)) for t in order])


def save_file(tensors, filename, metadata=None):
    """Write a dict of tensors to a file."""
    header, order = _prepare(tensors, metadata)
    with open(filename, "wb") as f:
        f.write(header)
        for t in order:
            f.write(_bytes_of(t))


# ---- reading ----

def _no_twice(pairs):
    out = dict(pairs)
    if len(out) != len(pairs):
        raise SafetensorError("Error while deserializing: a name occurs twice")
    return out


def _int(v):
    return type(v) is int and 0 <= v < 1 << 62


def _entry(name, e):
    """(dtype, shape, begin, end) of a header entry, checked."""
    if not isinstance(e, dict):
        raise SafetensorError(f"Error while deserializing: invalid JSON in header: the entry of {name!r} is malformed")
    for field in ("dtype", "shape", "data_offsets"):
        if field not in e:
            raise SafetensorError(f"Error while deserializing: invalid JSON in header: missing field `{field}`")
    code, shape, span = e["dtype"], e["shape"], e["data_offsets"]
    if code not in _DTYPES:
        raise SafetensorError(f"Error while deserializing: invalid JSON in header: unknown variant `{code}`")
    if not isinstance(shape, list) or not all(_int(v) for v in shape) or len(shape) > 64:
        raise SafetensorError(f"Error while deserializing: invalid JSON in header: the shape of {name!r} is malformed")
    if not isinstance(span, list) or len(span) != 2 or not all(_int(v) for v in span):
        raise SafetensorError(f"Error while deserializing: invalid JSON in header: the offsets of {name!r} are malformed")
    dtype = getattr(tenon, _DTYPES[code])
    nbytes = dtype.itemsize
    for v in shape:
        nbytes *= v
    if nbytes >= 1 << 64:
        raise SafetensorError("Error while deserializing: overflow computing buffer size from shape and/or element type")
    begin, end = span
    if begin > end:
        raise SafetensorError(f"Error while deserializing: invalid offset for tensor `{name}`")
    if end - begin != nbytes:
        raise SafetensorError("Error while deserializing: invalid shape, data type, or offset for tensor")
    return dtype, shape, begin, end


def _header(f, size):
    """(entries, metadata, where the data begin) of an open file of `size` bytes."""
    head = f.read(8)
    if len(head) < 8:
        raise SafetensorError("Error while deserializing: header too small")
    n = struct.unpack("<Q", head)[0]
    if n > HEADER_LIMIT:
        raise SafetensorError("Error while deserializing: header too large")
    if n > size - 8:
        raise SafetensorError("Error while deserializing: invalid header length")
    try:
        text = f.read(n).decode("utf-8")
        if not text.startswith("{"):
            raise SafetensorError("Error while deserializing: invalid JSON in header: it is no object")
        header = json.loads(text, object_pairs_hook=_no_twice)
    except (ValueError, RecursionError):
        raise SafetensorError("Error while deserializing: invalid JSON in header") from None
    metadata = header.pop("__metadata__", None)
    if metadata is not None and not (isinstance(metadata, dict) and all(
            isinstance(v, str) for v in metadata.values())):
        raise SafetensorError("Error while deserializing: invalid JSON in header: metadata are malformed")
    entries = {name: _entry(name, e) for name, e in header.items()}
    at = 0
    for name, (dtype, shape, begin, end) in sorted(entries.items(), key=lambda e: e[1][2:]):
        if begin != at:
            raise SafetensorError(f"Error while deserializing: invalid offset for tensor `{name}`")
        at = end
    if at != size - 8 - n:
        raise SafetensorError("Error while deserializing: incomplete metadata, file not fully covered")
    return entries, metadata, 8 + n


def _read(f, start, entry, device):
    dtype, shape, begin, end = entry
    flat = tenon.empty(end - begin, dtype=tenon.uint8)
    if end > begin:
        f.seek(start + begin)
        view, done = memoryview(flat), 0
        while done < len(view):
            got = f.readinto(view[done:done + (64 << 20)])
            if not got:
                raise SafetensorError("the file became shorter while it was read")
            done += got
    if dtype is tenon.bool:
        flat.ne_(0)  # any byte but 0 is true: others who get these bytes may want 1
    t = tenon._C._storage_view(flat, dtype, 0, shape, None)
    return t if str(device) == "cpu" else t.to(device)


def _size(f):
    f.seek(0, 2)
    size = f.tell()
    f.seek(0)
    return size


def _load(f, device):
    entries, unused, start = _header(f, _size(f))
    return {name: _read(f, start, e, device) for name, e in entries.items()}


def load_file(filename, device="cpu"):
    """The tensors of a file, by name."""
    with open(filename, "rb") as f:
        return _load(f, device)


def load(data):
    """The tensors of a file's bytes, by name."""
    import io

    return _load(io.BytesIO(data), "cpu")


class safe_open:
    """`with safe_open(path, framework="pt") as f: f.get_tensor(name)`: one tensor at a time."""

    def __init__(self, filename, framework="pt", device="cpu"):
        if framework not in ("pt", "torch", "pytorch"):
            raise SafetensorError(f"framework {framework} is invalid")
        self._device = device
        self._file = open(os.fspath(filename), "rb")
        try:
            self._entries, self._metadata, self._start = _header(self._file, _size(self._file))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._file.close()

    def keys(self):
        return sorted(self._entries)

    def offset_keys(self):
        return sorted(self._entries, key=lambda k: self._entries[k][2])

    def metadata(self):
        return self._metadata

    def _find(self, name):
        if name not in self._entries:
            raise SafetensorError(f"File does not contain tensor {name}")
        return self._entries[name]

    def get_tensor(self, name):
        return _read(self._file, self._start, self._find(name), self._device)

    def get_slice(self, name):
        return _Slice(self, name)


class _Slice:
    """A tensor of the file that is read when it is indexed."""

    def __init__(self, owner, name):
        self._owner, self._name = owner, name
        self._entry = owner._find(name)

    def get_shape(self):
        return list(self._entry[1])

    def get_dtype(self):
        return _CODES[str(self._entry[0]).rsplit(".", 1)[-1]]

    def __getitem__(self, index):
        return self._owner.get_tensor(self._name)[index].clone()


# ---- models ----

def save_model(model, filename, metadata=None, force_contiguous=True):
    """Write a model's state; of names that share memory one is kept, the others are noted."""
    state, metadata = model.state_dict(), dict(metadata or {})
    kept, seen = {}, {}
    for name in sorted(state):
        t = state[name]
        key = (t.data_ptr(), tuple(t.shape), tuple(t.stride()))
        if t.numel() and key in seen:
            metadata[name] = seen[key]
            continue
        seen[key] = name
        kept[name] = t.contiguous() if force_contiguous else t
    save_file(kept, filename, metadata)


def load_model(model, filename, strict=True, device="cpu"):
    """Fill a model from a file of save_model; returns (missing, unexpected) names."""
    state = load_file(filename, device)
    own = model.state_dict()
    shared = {}
    for name, t in own.items():
        shared.setdefault((t.data_ptr(), tuple(t.shape), tuple(t.stride())), []).append(name)
    for names in shared.values():
        source = next((n for n in names if n in state), None)
        for n in names:
            if source is not None and n not in state and own[n].numel():
                state[n] = state[source]
    missing, unexpected = model.load_state_dict(state, strict=False)
    if strict and (missing or unexpected):
        raise RuntimeError(f"Error(s) in loading state_dict for {type(model).__name__}:\n    Missing "
                           f"key(s) in state_dict: {missing}\n    Unexpected key(s): {unexpected}")
    return missing, unexpected
