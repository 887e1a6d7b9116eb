# SPDX-License-Identifier: MIT
"""Tenon: a tensor runtime. The names are those of PyTorch."""

from math import e, inf, nan, pi  # noqa: F401

from . import _fork  # noqa: F401  (first: what follows takes a while, and another thread may fork)
from . import _C
from ._C import *  # noqa: F401,F403  (types, dtypes, and functions that are no operators)
from ._C import __version__  # noqa: F401
from ._typing import Any as _Any

_C._check_interpreter()

# Operators whose function takes more forms than the operator: it is in _functional.
_WRAPPED = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "meshgrid", "nonzero", "norm", "tensordot", "unique_consecutive")
globals().update({name: f for name, f in vars(_C._VariableFunctions).items()
                  if name[:2] != "__" and name not in _WRAPPED})

def _parse_to(*args, **kwargs):
    """What the arguments of a `to` method mean: (device, dtype, non_blocking, memory_format)."""
    from tenon.nn.modules._walk import _parse_to as parse
    return parse(*args, **kwargs)


newaxis = None
_C._nn._parse_to = _parse_to
_C._TensorMeta = type(_C.Tensor)  # the class of tensor classes, which packages import from there


def _loaded_later(name):
    """Names of _C that are written in Python: dispatch keys, and questions about them."""
    if name == "_profiler":
        from . import _profiler_names
        return _profiler_names
    if name == "_functorch":
        from . import _functorch_names
        return _functorch_names
    from . import _c_names, _dispatch_keys
    for home in (_dispatch_keys, _c_names):
        if name in home.NAMES:
            value = getattr(home, name)
            setattr(_C, name, value)
            return value
    raise AttributeError("module '%s._C' has no attribute %r" % (_C._module_name(), name))


_C.__getattr__ = _loaded_later

# Names that live in a module of the package, which is loaded when one of them is first asked for. A module's own
# name needs no mention: any module of the package is loaded so.
_NAMES = {
    "_compile": ("compile",),
    "_jit_types": (
        "AnyType", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType", "FloatType", "FutureType", "IntType",
        "InterfaceType", "JitType", "ListType", "NoneType", "NumberType", "OptionalType", "ScriptObject", "StringType",
        "TensorType", "TupleType", "Type", "UnionType"),
    "_fake_quantize": ("fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine"),
    "futures": ("Future",),
    "_higher_order_ops": ("while_loop",),
    "cpu": ("Event",),
    "_streams": ("Stream",),
    "_named_dtypes": ("float8_e8m0fnu", "float4_e2m1fn_x2", "complex32", "chalf", "qint8", "qint32", "quint8",
                      "quint4x2", "quint2x4", "bit", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2", "uint1", "uint2",
                      "qscheme", "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
                      "per_channel_affine_float_qparams", "uint3", "uint4", "uint5", "uint6", "uint7", "int1", "int2", "int3", "int4", "int5", "int6", "int7"),
    "_dtype_info": ("finfo", "iinfo"),
    "_functional": _WRAPPED + (
        "broadcast_shapes", "numel", "poisson", "unique", "unravel_index"),
    "_exchange": (
        "asarray", "_legacy_tensor", "tensortype", "DoubleTensor", "FloatTensor", "HalfTensor", "BFloat16Tensor",
        "LongTensor", "IntTensor", "ShortTensor", "CharTensor", "ByteTensor", "BoolTensor", "ComplexFloatTensor",
        "ComplexDoubleTensor"),
    "_dispatch_keys": ("DispatchKey", "DispatchKeySet", "ExcludeDispatchKeyGuard"),
    "_ops": ("Tag", "ops"),
    "func": ("vmap",),
    "_sym": (
        "SymBool", "SymFloat", "SymInt", "_assert", "_check", "_check_index", "_check_is_size", "_check_not_implemented",
        "_check_tensor_all", "_check_tensor_all_with", "_check_type", "_check_value", "_check_with", "get_device_module",
        "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"),
    "_tensor_str": ("set_printoptions", "get_printoptions"),
    "jit": ("ScriptFunction", "ScriptModule"),
    "_lobpcg": ("lobpcg",),
    "_lowrank": ("pca_lowrank", "svd_lowrank"),
    "serialization": ("PyTorchFileReader", "load", "save"),
    "sparse": ("dsmm", "hsmm", "hspmm", "smm", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
               "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "spmm", "sspaddmm"),
    "storage": (
        "is_storage", "StorageBase", "UntypedStorage", "TypedStorage", "DoubleStorage", "FloatStorage", "HalfStorage", "BFloat16Storage",
        "LongStorage", "IntStorage", "ShortStorage", "CharStorage", "ByteStorage", "BoolStorage",
        "ComplexFloatStorage", "ComplexDoubleStorage", "Storage"),
    "_segments": ("_segment_reduce", "segment_reduce"),
    "_histogram": ("histogramdd",),
    "_rare": (
        "_assert_async", "_shape_as_tensor", "lu", "_cast_Long", "_cast_Float", "_cast_Int", "eig", "lstsq", "matrix_rank", "solve", "symeig",
        "legacy_contiguous_format", "_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo",
        "zero_", "fill_", "resize_as_", "get_device",
        "is_distributed", "empty_permuted", "conv_tbc", "native_channel_shuffle", "embedding_renorm_", "dequantize", "to_dlpack",
        "from_file", "cond", "feature_dropout", "feature_dropout_", "alpha_dropout", "alpha_dropout_",
        "feature_alpha_dropout", "feature_alpha_dropout_", "rrelu", "rrelu_", "has_lapack", "has_spectral",
        "has_openmp", "has_mkl", "get_autocast_cpu_dtype", "set_autocast_cpu_dtype", "is_autocast_cpu_enabled",
        "set_autocast_cpu_enabled", "get_autocast_gpu_dtype", "set_autocast_gpu_dtype", "set_anomaly_enabled",
        "is_vulkan_available", "vitals_enabled", "set_vital", "read_vitals", "init_num_threads"),
    "amp.autocast_mode": ("autocast",),
    "amp.grad_scaler": ("GradScaler",),
    "_surface": (
        "are_deterministic_algorithms_enabled", "compiled_with_cxx11_abi", "get_deterministic_debug_mode",
        "get_float32_matmul_precision", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
        "get_num_interop_threads", "set_default_tensor_type", "set_deterministic_debug_mode",
        "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads", "set_warn_always", "typename",
        "use_deterministic_algorithms"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}


def _public():
    """What `from tenon import *` gives: as in PyTorch all that is public, but no operator with the name of a builtin or
    of a module of Python's, nor those that PyTorch has elsewhere (in special, fft, linalg) or keeps to itself."""
    module = type(_C)
    hidden = {"alias", "copy", "functools", "graph", "index", "lift_fresh", "operator", "repeat", "slice"}
    return sorted(
        name for name in {*globals(), *_HOME}
        if name[0] != "_" and name not in hidden and not isinstance(globals().get(name), module)
        and not name.startswith(("fft_", "linalg_", "special_")) and not name.endswith(("_backward", "_forward")))


def __getattr__(name) -> _Any:
    home = _HOME.get(name)
    if home is not None:
        module = __import__("tenon." + home, None, None, ["*"])
        value = globals()[name] = getattr(module, name)
        return value
    if name[:2] != "__" or name in ("__config__", "__future__"):
        full = "tenon." + name
        try:
            return __import__(full, None, None, ["*"])
        except ModuleNotFoundError as error:
            if error.name != full:
                raise
    if name == "__all__":
        return _public()
    if name in ("math", "os", "sys", "warnings"):  # what the reference's package happens to import: torch.math.pi
        return __import__(name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def __dir__():
    from pkgutil import iter_modules
    return sorted({*globals(), *_HOME, *(found.name for found in iter_modules(__path__) if found.name[0] != "_")})
