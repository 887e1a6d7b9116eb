# SPDX-License-Identifier: MIT
"""A pickle machine that runs no code: it knows plain values, containers and tensors, and calls
nothing but a short list of functions. What else a pickle names is refused with its name.

It reads files of strangers: every failure is an UnpicklingError or another ordinary exception, and
nothing is allocated that the file's own bytes did not pay for.
"""

import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from pickle import UnpicklingError
from types import BuiltinMethodType, MethodType

import tenon
from tenon import _utils
from tenon.storage import _load_from_bytes

_KEY_DEPTH = 32  # of tuples used as keys: hashing them recurses in C

_marked_safe = {}  # full name -> object: what the user allowed


# ---- what a pickle may name ----

def _bytearray(*args):
    if not args:
        return bytearray()
    if len(args) == 2 and isinstance(args[0], str) and args[1] in ("latin-1", "latin1", "utf-8"):
        return bytearray(*args)
    if len(args) == 1 and isinstance(args[0], (bytes, list)):
        return bytearray(args[0])
    raise UnpicklingError("bytearray of something else than bytes")


def _encode(text, encoding="utf-8"):
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8", "utf8", "ascii"):
        raise UnpicklingError("_codecs.encode of something else than a text")
    return text.encode(encoding)


def _nested(parts):
    from tenon.nested._internal.nested_tensor import _rebuild_njt
    if not isinstance(parts, dict):
        raise UnpicklingError("a nested tensor of something else than its parts")
    return _rebuild_njt(parts)


class _DimRange:
    """What PyTorch's compiler notes about a size. It is read over."""

    def __setstate__(self, state):
        pass


def _check_state(state):
    """Attributes alone, or with slots beside them: no name may be one that Python itself asks for."""
    for part in state if isinstance(state, tuple) else (state,):
        if isinstance(part, dict) and any(str(k).startswith("__") for k in part):
            raise UnpicklingError("a tensor's state may not set special attributes")


def _from_type(func, new_type, args, state):
    if not _is_one_of(func, _functions.values()):
        raise UnpicklingError("_rebuild_from_type_v2 of a function that is not allowed")
    if not (isinstance(new_type, type) and issubclass(new_type, tenon.Tensor)):
        raise UnpicklingError("_rebuild_from_type_v2 of something that is no tensor type")
    _check_state(state)
    return _utils._rebuild_from_type_v2(func, new_type, args, state)


def _wrapper(cls, *args):
    if not (isinstance(cls, type) and issubclass(cls, tenon.Tensor)):
        raise UnpicklingError("_rebuild_wrapper_subclass of something that is no tensor type")
    return _utils._rebuild_wrapper_subclass(cls, *args)


_functions = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "builtins.set": set,
    "__builtin__.set": set,
    "builtins.complex": complex,
    "__builtin__.complex": complex,
    "builtins.bytearray": _bytearray,
    "__builtin__.bytearray": _bytearray,
    "_codecs.encode": _encode,
    "torch._utils._rebuild_tensor": _utils._rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _utils._rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": _utils._rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": _utils._rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _utils._rebuild_parameter_with_state,
    "torch._utils._rebuild_meta_tensor_no_storage": _utils._rebuild_meta_tensor_no_storage,
    "torch._utils._rebuild_sparse_tensor": _utils._rebuild_sparse_tensor,
    "torch._utils._rebuild_nested_tensor": _utils._rebuild_nested_tensor,
    "torch.nested._internal.nested_tensor._rebuild_njt": _nested,
    "torch.serialization._get_layout": lambda name: tenon.serialization._get_layout(name),
    "torch._utils._rebuild_wrapper_subclass": _wrapper,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor":
        _utils._rebuild_device_tensor_from_cpu_tensor,
    "torch.storage._load_from_bytes": _load_from_bytes,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "torch._utils._rebuild_from_type_v2": _from_type,
}

_DTYPES = ("uint8 int8 int16 int32 int64 float16 float32 float64 bfloat16 bool complex64 complex128 "
           "uint16 uint32 uint64 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
           "float double half long int short cfloat cdouble").split()


def _allowed(name):
    """The object of a full name, or None."""
    found = _functions.get(name) or _marked_safe.get(name)
    if found is not None:
        return found
    if not name.startswith("torch."):
        return None
    short = name[6:]
    if short in _DTYPES:
        return getattr(tenon, short)
    if short in ("device", "Size", "Tensor", "strided", "contiguous_format", "preserve_format",
                 "channels_last"):
        return getattr(tenon, short)
    if short == "nested._internal.nested_tensor.NestedTensor":
        from tenon.nested._internal.nested_tensor import NestedTensor
        return NestedTensor
    if short == "_dynamo.decorators._DimRange":
        return _DimRange
    if short in ("nn.parameter.Parameter", "nn.Parameter"):
        return tenon.nn.Parameter
    if short in ("storage.UntypedStorage", "UntypedStorage"):
        return tenon.storage.UntypedStorage
    if short in ("storage.TypedStorage", "storage._LegacyStorage"):
        return tenon.storage.TypedStorage
    return tenon.storage.storage_class(short)


def _callable(func):
    """May REDUCE call it?"""
    return (_is_one_of(func, _functions.values()) or func is tenon.device or func is tenon.Size
            or _is_one_of(func, _marked_safe.values()) or _is_method_of(func, _marked_safe.values()))


def _is_method_of(func, candidates):
    """Methods are made anew each time they are asked for: one is another if its function and its object are."""
    if type(func) not in (MethodType, BuiltinMethodType):
        return False
    return any(type(c) is type(func) and c.__self__ is func.__self__ and c.__name__ == func.__name__ and c == func
               for c in candidates)


def _is_one_of(obj, candidates):
    """By identity: what a file made has no say in it."""
    return any(obj is c for c in candidates)


def _check_key(key):
    """Refuse keys that would recurse without end when they are hashed."""
    depth, level = 0, [key]
    while level:
        level = [x for t in level if type(t) is tuple for x in t]
        depth += 1
        if depth > _KEY_DEPTH or len(level) > 4096:
            raise UnpicklingError("a key of nested tuples")
    return key


def _name_now(module, name):
    """The full name of what pickles of the older protocols name as Python 2 did: files are written by protocol 2."""
    if (module, name) in NAME_MAPPING:
        module, name = NAME_MAPPING[module, name]
    elif module in IMPORT_MAPPING:
        module = IMPORT_MAPPING[module]
    return f"{module}.{name}"


def full_name(obj):
    module = obj.__module__
    if module is None:  # a method in C: its class says
        module = getattr(obj.__self__, "__module__", type(obj.__self__).__module__)
    if module == "tenon" or module.startswith("tenon."):
        module = "torch" + module[5:]
    return f"{module}.{obj.__qualname__}"


# ---- the machine ----

class Unpickler:
    """One pickle of a stream with read() and readline()."""

    def __init__(self, file, *, encoding="utf-8"):
        self.file = file
        self.encoding = encoding
        self.memo = {}
        self.stack = []
        self.marks = []

    def persistent_load(self, pid):
        raise UnpicklingError("a persistent id in a stream that has none")

    # reading

    def _read(self, n):
        if n < 0:
            raise UnpicklingError("a negative length")
        out = []
        left = n
        while left > 0:  # in pieces: a lying length must not allocate
            piece = self.file.read(min(left, 1 << 20))
            if not piece:
                raise EOFError("Ran out of input")
            out.append(piece)
            left -= len(piece)
        return out[0] if len(out) == 1 else b"".join(out)

    def _line(self):
        line = self.file.readline(65536)
        if not line.endswith(b"\n"):
            raise UnpicklingError("pickle data was truncated")
        return line[:-1]

    def _number(self, form, n):
        return struct.unpack(form, self._read(n))[0]

    # stack

    def _pop(self):
        if not self.stack:
            raise UnpicklingError("unexpected end of the stack")
        return self.stack.pop()

    def _top(self):
        if not self.stack:
            raise UnpicklingError("unexpected end of the stack")
        return self.stack[-1]

    def _pop_mark(self):
        if not self.marks:
            raise UnpicklingError("there is no mark")
        items = self.stack
        self.stack = self.marks.pop()
        return items

    # values with behaviour

    def _find(self, module, name):
        full = f"{module}.{name}"
        if module in ("sys", "os", "posix", "nt"):  # whatever was allowed
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        found = _allowed(full) or _marked_safe.get(_name_now(module, name))
        if found is None:
            full = full.removeprefix("__builtin__.").removeprefix("builtins.")
            raise UnpicklingError(
                f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{full}])` or the "
                f"`torch.serialization.safe_globals([{full}])` context manager to allowlist this "
                "global if you trust this class/function.")
        return found

    def _reduce(self):
        args, func = self._pop(), self._pop()
        if not isinstance(args, tuple):
            raise UnpicklingError("the arguments of a call are no tuple")
        if not _callable(func):
            raise UnpicklingError("Trying to call reduce for unrecognized function "
                                  f"{getattr(func, '__name__', type(func).__name__)}")
        if _is_one_of(func, (OrderedDict, Counter, set)):
            for a in args:
                if not isinstance(a, (list, dict, tuple)):
                    raise UnpicklingError(f"{func.__name__} of something else than a container")
                for item in a if not isinstance(a, dict) else ():
                    _check_key(item[0] if isinstance(item, (list, tuple)) and item else item)
        self.stack.append(func(*args))

    def _new(self, kwargs):
        args, cls = self._pop(), self._pop()
        if not isinstance(cls, type) or not isinstance(args, tuple):
            raise UnpicklingError("Trying to create an object of something that is no class")
        if _is_one_of(cls, (OrderedDict, Counter, set)) and not args:
            self.stack.append(cls())
        elif cls is tenon.Size:
            self.stack.append(cls(*args))
        elif cls is _DimRange:
            self.stack.append(cls())
        elif _is_one_of(cls, _marked_safe.values()):
            self.stack.append(cls.__new__(cls, *args, **kwargs))
        elif cls is tenon.nn.Parameter:
            raise UnpicklingError("Trying to create a new object of Parameter without its data")
        else:
            raise UnpicklingError("Trying to create new object for unrecognized class "
                                  f"{getattr(cls, '__name__', cls)}")

    def _build(self):
        state, inst = self._pop(), self._top()
        if isinstance(inst, OrderedDict) and type(inst) is OrderedDict:
            if not isinstance(state, dict) or any(str(k).startswith("__") for k in state):
                raise UnpicklingError("a state that is no dict of attributes")
            inst.__dict__.update(state)
        elif isinstance(inst, tenon.Tensor):
            _check_state(state)
            inst.__setstate__(state)
        elif type(inst) is _DimRange:
            pass
        elif _is_one_of(type(inst), _marked_safe.values()):
            if hasattr(inst, "__setstate__"):
                inst.__setstate__(state)
            else:
                _utils._set_state(inst, state)
        else:
            raise UnpicklingError(f"Can only build Tensor, Parameter, OrderedDict or types allowlisted"
                                  f" via `add_safe_globals`, but got {type(inst)}")

    def _pairs(self, target, items):
        if not isinstance(target, dict) or len(items) % 2:
            raise UnpicklingError("items for something that is no dict")
        for i in range(0, len(items), 2):
            target[_check_key(items[i])] = items[i + 1]

    def _text(self, data):
        return data if self.encoding == "bytes" else data.decode(self.encoding)

    # the loop

    def load(self):
        push = self._push
        while True:
            op = self._read(1)[0]
            if op == 0x2E:  # STOP
                return self._pop()
            handler = _OPS.get(op)
            if handler is None:
                raise UnpicklingError(f"Unsupported operand {op}")
            value = handler(self)
            if value is not _NOTHING:
                push(value)

    def _push(self, value):
        self.stack.append(value)

    def _get(self, key):
        if key not in self.memo:
            raise UnpicklingError(f"Memo value not found at index {key}")
        return self.memo[key]

    def _put(self, key):
        self.memo[key] = self._top()
        return _NOTHING


_NOTHING = object()


def _op_proto(m):
    if m._read(1)[0] > 5:
        raise UnpicklingError("unsupported pickle protocol")
    return _NOTHING


def _op_frame(m):
    m._read(8)
    return _NOTHING


def _op_mark(m):
    m.marks.append(m.stack)
    m.stack = []
    return _NOTHING


def _op_pop(m):
    if m.stack:
        m.stack.pop()
    else:
        m._pop_mark()
    return _NOTHING


def _op_pop_mark(m):
    m._pop_mark()
    return _NOTHING


def _op_int(m):
    line = m._line()
    return {b"00": False, b"01": True}.get(line) if line in (b"00", b"01") else int(line, 0)


def _op_long_text(m):
    line = m._line()
    return int(line[:-1] if line[-1:] == b"L" else line, 0)


def _op_long(m, n):
    return int.from_bytes(m._read(n), "little", signed=True)


def _op_string(m):
    line = m._line()
    if len(line) < 2 or line[0] != line[-1] or line[:1] not in (b"'", b'"'):
        raise UnpicklingError("the STRING opcode argument must be quoted")
    import codecs

    return m._text(codecs.escape_decode(line[1:-1])[0])


def _op_append(m):
    value, target = m._pop(), m._top()
    if not isinstance(target, list):
        raise UnpicklingError("append to something that is no list")
    target.append(value)
    return _NOTHING


def _op_appends(m):
    items, target = m._pop_mark(), m._top()
    if not isinstance(target, list):
        raise UnpicklingError("append to something that is no list")
    target.extend(items)
    return _NOTHING


def _op_dict(m):
    out = {}
    m._pairs(out, m._pop_mark())
    return out


def _op_setitem(m):
    value, key = m._pop(), m._pop()
    m._pairs(m._top(), [key, value])
    return _NOTHING


def _op_setitems(m):
    items = m._pop_mark()
    m._pairs(m._top(), items)
    return _NOTHING


def _op_additems(m):
    items, target = m._pop_mark(), m._top()
    if not isinstance(target, set):
        raise UnpicklingError("items for something that is no set")
    for item in items:
        target.add(_check_key(item))
    return _NOTHING


def _op_tuple(m, n):
    if len(m.stack) < n:
        raise UnpicklingError("unexpected end of the stack")
    out = tuple(m.stack[-n:])
    del m.stack[-n:]
    return out


def _op_global(m):
    module, name = m._line().decode("utf-8"), m._line().decode("utf-8")
    return m._find(module, name)


def _op_stack_global(m):
    name, module = m._pop(), m._pop()
    if type(name) is not str or type(module) is not str:
        raise UnpicklingError("STACK_GLOBAL requires str")
    return m._find(module, name)


def _op_reduce(m):
    m._reduce()
    return _NOTHING


def _op_new(m):
    m._new({})
    return _NOTHING


def _op_new_ex(m):
    kwargs = m._pop()
    if not isinstance(kwargs, dict):
        raise UnpicklingError("the arguments of a call are no dict")
    m._new(kwargs)
    return _NOTHING


def _op_build(m):
    m._build()
    return _NOTHING


_OPS = {
    0x80: _op_proto,
    0x95: _op_frame,
    ord("("): _op_mark,
    ord("0"): _op_pop,
    ord("1"): _op_pop_mark,
    ord("2"): lambda m: m._top(),
    ord("N"): lambda m: None,
    0x88: lambda m: True,
    0x89: lambda m: False,
    ord("I"): _op_int,
    ord("J"): lambda m: m._number("<i", 4),
    ord("K"): lambda m: m._read(1)[0],
    ord("M"): lambda m: m._number("<H", 2),
    ord("L"): _op_long_text,
    0x8A: lambda m: _op_long(m, m._read(1)[0]),
    0x8B: lambda m: _op_long(m, m._number("<i", 4)),
    ord("F"): lambda m: float(m._line()),
    ord("G"): lambda m: m._number(">d", 8),
    ord("S"): _op_string,
    ord("T"): lambda m: m._text(m._read(m._number("<i", 4))),
    ord("U"): lambda m: m._text(m._read(m._read(1)[0])),
    ord("V"): lambda m: m._line().decode("raw-unicode-escape"),
    ord("X"): lambda m: m._read(m._number("<I", 4)).decode("utf-8", "surrogatepass"),
    0x8C: lambda m: m._read(m._read(1)[0]).decode("utf-8", "surrogatepass"),
    0x8D: lambda m: m._read(m._number("<Q", 8)).decode("utf-8", "surrogatepass"),
    ord("B"): lambda m: m._read(m._number("<I", 4)),
    ord("C"): lambda m: m._read(m._read(1)[0]),
    0x8E: lambda m: m._read(m._number("<Q", 8)),
    0x96: lambda m: bytearray(m._read(m._number("<Q", 8))),
    ord("]"): lambda m: [],
    ord("a"): _op_append,
    ord("e"): _op_appends,
    ord("l"): lambda m: list(m._pop_mark()),
    ord(")"): lambda m: (),
    ord("t"): lambda m: tuple(m._pop_mark()),
    0x85: lambda m: _op_tuple(m, 1),
    0x86: lambda m: _op_tuple(m, 2),
    0x87: lambda m: _op_tuple(m, 3),
    ord("}"): lambda m: {},
    ord("d"): _op_dict,
    ord("s"): _op_setitem,
    ord("u"): _op_setitems,
    0x8F: lambda m: set(),
    0x90: _op_additems,
    0x91: lambda m: frozenset(_check_key(x) for x in m._pop_mark()),
    ord("c"): _op_global,
    0x93: _op_stack_global,
    ord("R"): _op_reduce,
    0x81: _op_new,
    0x92: _op_new_ex,
    ord("b"): _op_build,
    ord("Q"): lambda m: m.persistent_load(m._pop()),
    ord("g"): lambda m: m._get(int(m._line())),
    ord("h"): lambda m: m._get(m._read(1)[0]),
    ord("j"): lambda m: m._get(m._number("<I", 4)),
    ord("p"): lambda m: m._put(int(m._line())),
    ord("q"): lambda m: m._put(m._read(1)[0]),
    ord("r"): lambda m: m._put(m._number("<I", 4)),
    0x94: lambda m: m._put(len(m.memo)),
}
