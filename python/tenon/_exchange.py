# SPDX-License-Identifier: MIT
"""How tensors meet other Python: NumPy's hooks, membership, the array-API namespace, and the
constructors that need no C: asarray, new_tensor and the legacy tensor types."""

import numbers
import warnings

import tenon


# ---- NumPy ----

def array(t, dtype=None, copy=None):
    """`__array__`: a NumPy array over the tensor's memory, or a copy where one is asked for."""
    out = t.numpy()
    if dtype is not None and out.dtype != dtype:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return out.astype(dtype)
    return out.copy() if copy else out


def array_wrap(t, result, context=None, return_scalar=False):
    """`__array_wrap__`: the result of a NumPy function of a tensor is a tensor."""
    if result.dtype == bool:
        result = result.astype("uint8")
        return tenon.from_numpy(result).to(tenon.bool)
    return tenon.as_tensor(result)


def as_bytes(t):
    """`bytes(t)`: its integers one by one, as of any sequence."""
    return bytes(iter(t))


def contains(t, what):
    """`what in t`"""
    if isinstance(what, (tenon.Tensor, numbers.Number)):
        return bool((what == t).any().item())
    raise RuntimeError("Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                       f"{type(what)}.")


# ---- the array API ----

def array_namespace(t, *, api_version=None):
    """`__array_namespace__`: the module with the functions of the array-API standard."""
    if api_version is not None and api_version not in ("2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"unsupported version of the array API: {api_version!r}")
    import tenon.array_api

    return tenon.array_api


# ---- constructors ----

def asarray(*args, **kwargs):
    """asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False): a tensor of `obj`, sharing its memory where
    `copy` is not True and that is possible."""
    if kwargs and tenon._C._has_torch_function(tuple(kwargs.values())):
        return tenon._C._override_call(asarray, args, kwargs, tuple(kwargs.values()))
    if tenon._C._has_torch_function(()):
        return tenon._C._override_call(asarray, args)
    return _asarray(*args, **kwargs)


def _asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    if copy is False and hasattr(obj, "dtype") and hasattr(obj, "ndim") and type(obj).__module__ == "numpy" and \
            type(obj).__name__ != "ndarray":
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    device = tenon._C._context_device() if device is None else device
    source = obj
    if isinstance(obj, tenon.Tensor):
        out = obj
        if out.requires_grad and not requires_grad:
            out = out.detach()
    elif type(obj).__name__ == "PyCapsule" or hasattr(type(obj), "__dlpack__") and not hasattr(type(obj), "__array_interface__"):
        out = tenon.from_dlpack(obj)
    elif hasattr(type(obj), "__array_interface__"):
        out = tenon.as_tensor(obj)
    elif isinstance(obj, (bytearray, memoryview, bytes)) or _is_buffer(obj):
        out = tenon.frombuffer(obj, dtype=dtype or tenon.get_default_dtype())
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        out = tenon.tensor(obj, dtype=dtype, device=device)
        source = None
    moved = out
    if dtype is not None and out.dtype != dtype:
        moved = out.to(device=out.device if device is None else device, dtype=dtype)
    elif device is not None:
        moved = out.to(device)
    if copy is False and moved is not out:
        if moved.device != out.device:
            raise ValueError("can't alias tensor from device '%s' to '%s'." % (out.device, moved.device))
        names = tuple(t.type().rpartition(".")[2][:-len("Tensor")] for t in (out, moved))
        raise ValueError("can't alias tensor with dtype '%s' into dtype '%s'." % names)
    if copy and moved is out and source is not None:
        moved = moved.clone()
    if requires_grad and not moved.requires_grad:
        moved = (moved if source is None else moved.detach()).requires_grad_()
    return moved


def _is_buffer(obj):
    if isinstance(obj, (list, tuple, range, str, int, float, complex)):
        return False
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def new_tensor(t, data, *, dtype=None, device=None, requires_grad=False, layout=None,
               pin_memory=False):
    """`tensor()` with the dtype and device of `t`, unless said otherwise."""
    if isinstance(data, tenon.Tensor):
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor).",
                      stacklevel=2)
        data = data.detach()
        return data.to(device=device or t.device, dtype=dtype or t.dtype,
                       copy=True).requires_grad_(requires_grad)
    return tenon.tensor(data, dtype=dtype or t.dtype, device=device or t.device,
                        requires_grad=requires_grad)


def new(t, *args, size=None, device=None):
    """`t.new(…)`: like `Tensor(…)`, with the dtype of `t`; of a sparse tensor, another one."""
    if t.layout is tenon.sparse_coo:
        return _sparse_new(t, args if size is None else (*args, size))
    return legacy_new(t.dtype, args if size is None else (tenon.Size(size),), device)


def _sparse_new(t, args):
    """Indices and values, with or without the sizes; or sizes alone, of which all is zero."""
    def are_sizes(value):
        return isinstance(value, (tuple, list)) and all(isinstance(n, int) for n in value)

    if len(args) in (2, 3) and all(isinstance(a, tenon.Tensor) for a in args[:2]) and (len(args) == 2 or are_sizes(args[2])):
        if args[0].dtype is not tenon.int64:
            raise RuntimeError("indices must be an int64 tensor")
        return tenon.sparse_coo_tensor(*args)
    if len(args) == 1 and isinstance(args[0], list):
        raise TypeError("SparseTensor.new(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a "
                        "strided tensor and convert it to sparse via to_sparse.")
    sizes = args[0] if len(args) == 1 and are_sizes(args[0]) else args
    if not are_sizes(sizes):
        raise TypeError("new() received an invalid combination of arguments - got (%s), but expected sizes, or indices, "
                        "values and sizes" % ", ".join(type(a).__name__ for a in args))
    return tenon.empty(sizes or (0,), dtype=t.dtype, layout=tenon.sparse_coo)


def type_of(t, dtype=None, non_blocking=False):
    """`t.type()`: its legacy type as a text; `t.type(dtype)`: converted to one."""
    if dtype is None:
        name = str(t.dtype).rsplit(".", 1)[-1]
        where = "" if t.device.type == "cpu" else t.device.type + "."
        legacy = [k for k, v in _LEGACY.items() if v == name]
        kind = legacy[0] if legacy else name.replace("uint", "UInt").replace("float", "Float") + "Tensor"
        return f"torch.{where}{kind}"
    if isinstance(dtype, str):
        found = _LEGACY.get(dtype.rsplit(".", 1)[-1])
        if found is None or dtype.split(".")[0] not in ("torch", "tenon"):
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = getattr(tenon, found)
    elif isinstance(dtype, tensortype):
        dtype = dtype.dtype
    elif not isinstance(dtype, (tenon.dtype, type)):
        raise TypeError("dtype must be a type, str, or dtype object")
    elif dtype is tenon.Tensor:
        dtype = tenon.get_default_dtype()
    elif not isinstance(dtype, tenon.dtype):
        raise ValueError(f"invalid type: '{getattr(dtype, '__name__', dtype)}'")
    return t.to(dtype, non_blocking=non_blocking)


# ---- legacy types: FloatTensor, LongTensor … ----

_LEGACY = {
    "DoubleTensor": "float64", "FloatTensor": "float32", "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16", "LongTensor": "int64", "IntTensor": "int32",
    "ShortTensor": "int16", "CharTensor": "int8", "ByteTensor": "uint8", "BoolTensor": "bool",
    "ComplexFloatTensor": "complex64", "ComplexDoubleTensor": "complex128",
}


def _legacy_tensor(*args, device=None, dtype=None):
    """`Tensor(…)`"""
    return legacy_new(tenon.get_default_dtype(), args, device)


def legacy_new(dtype, args, device=None):
    """What `Tensor(…)` and its typed kin make of their arguments: sizes, data, or a tensor. No class and no mode is asked."""
    with tenon._C.DisableTorchFunction():
        return _legacy_new(dtype, args, device)


def _legacy_new(dtype, args, device):
    if device is not None and tenon.device(device).type != "cpu":
        raise RuntimeError("legacy constructor expects device type: cpu but device type: "
                           f"{tenon.device(device).type} was passed")
    if not args:
        return tenon.empty(0, dtype=dtype)
    first = args[0]
    if len(args) == 1:
        if isinstance(first, tenon.Tensor):
            if device is not None:
                raise RuntimeError("Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  "
                                   "Use torch.tensor(...) or torch.as_tensor(...) instead.")
            return tenon.alias(first)
        if isinstance(first, tenon.Size):
            return tenon.empty(tuple(first), dtype=dtype)
        if isinstance(first, (bool, float, complex)):
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
        if hasattr(first, "untyped_storage") or hasattr(first, "_untyped_storage"):
            return _from_storage(first, dtype)
        if not isinstance(first, int):
            return tenon.tensor(first, dtype=dtype)
    if not all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        got = ", ".join(type(a).__name__ for a in args)
        raise TypeError("new() received an invalid combination of arguments - got "
                        f"({got}), but expected sizes, a sequence or a tensor")
    if any(a < 0 for a in args):
        bad = next(a for a in args if a < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {bad}: {list(args)}")
    return tenon.empty(args, dtype=dtype)


def _from_storage(storage, dtype):
    untyped = getattr(storage, "_untyped_storage", storage)
    return untyped.tensor_of(dtype)


class tensortype(type):
    """The metatype of FloatTensor and its kin: a call makes a tensor of that dtype."""

    def __call__(cls, *args, device=None):
        if len(args) == 1 and isinstance(args[0], tenon.Tensor) and args[0].dtype != cls.dtype:
            raise TypeError(f"expected a tensor of dtype {cls.dtype} (got {args[0].dtype})")
        return legacy_new(cls.dtype, args, device)

    def __instancecheck__(cls, t):
        return (isinstance(t, tenon.Tensor) and t.dtype == cls.dtype
                and t.device.type == cls.device_type)

    def __repr__(cls):
        return f"<class 'torch.{cls.__name__}'>"


def __getattr__(name):
    if name not in _LEGACY:
        raise AttributeError(f"module 'tenon._exchange' has no attribute {name!r}")
    made = tensortype(name, (), {"__module__": tenon.__name__, "dtype": getattr(tenon, _LEGACY[name]), "device_type": "cpu",
                                 "is_cuda": False, "layout": tenon.strided, "is_sparse": False})
    globals()[name] = made
    return made
