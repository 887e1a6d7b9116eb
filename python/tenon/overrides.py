# SPDX-License-Identifier: MIT
"""`__torch_function__` for Python code: asking whether an argument overrides, handing a call over, and modes."""

import contextlib
import functools

import tenon
from tenon import _C
from tenon._C import (DisableTorchFunction, DisableTorchFunctionSubclass,  # noqa: F401
                      _disabled_torch_function_impl)

__all__ = ["get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "get_default_nowrap_functions", "has_torch_function",
           "has_torch_function_unary", "has_torch_function_variadic", "handle_torch_function", "is_tensor_like",
           "is_tensor_method_or_property", "resolve_name", "wrap_torch_function"]

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Give a call to the modes, and to those of the relevant arguments that override it."""
    return _C._override_call(public_api, args, kwargs, tuple(relevant_args))


def wrap_torch_function(dispatcher):
    """Let a function be overridden: `dispatcher(*args)` gives the arguments that are asked."""
    def inner(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def get_default_nowrap_functions():
    """Functions whose results keep the class that they have."""
    tensor = tenon.Tensor
    return {tensor._base.__get__, tensor.grad.__get__, tensor._grad.__get__}


def is_tensor_like(inp):
    """Whether it is a tensor, or overrides `__torch_function__`."""
    return type(inp) is tenon.Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether it is a method of Tensor that asks modes and classes, or gets an attribute."""
    return func in _tensor_methods() or getattr(func, "__name__", None) == "__get__"


@functools.lru_cache(None)
def _tensor_methods():
    return frozenset(f for f in get_overridable_functions()[tenon.Tensor] if f.__hash__)


# Where functions lie: those that PyTorch asks nobody about, or only through the functions that they are made of.
_IGNORED = {
    "": (
        "arange are_deterministic_algorithms_enabled as_strided as_tensor asarray autocast_decrement_nesting "
        "autocast_increment_nesting bartlett_window blackman_window broadcast_shapes can_cast clear_autocast_cache compile cond "
        "default_generator device dtype empty empty_permuted empty_strided enable_grad eye fill finfo from_file from_numpy "
        "frombuffer full get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_device get_default_dtype "
        "get_deterministic_debug_mode get_device_module get_float32_matmul_precision get_num_interop_threads get_num_threads "
        "get_rng_state hamming_window hann_window has_lapack has_mkl has_openmp has_spectral iinfo inference_mode "
        "init_num_threads initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_cache_enabled "
        "is_autocast_cpu_enabled is_autocast_enabled is_deterministic_algorithms_warn_only_enabled is_grad_enabled "
        "is_inference_mode_enabled is_storage is_tensor is_vulkan_available is_warn_always_enabled kaiser_window layout "
        "linspace load logspace manual_seed memory_format no_grad normal ones promote_types qscheme rand rand_like randint "
        "randint_like randn randn_like randperm range result_type save scalar_tensor seed set_anomaly_enabled "
        "set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled "
        "set_autocast_gpu_dtype set_default_device set_default_tensor_type set_deterministic_debug_mode "
        "set_float32_matmul_precision set_flush_denormal set_grad_enabled set_num_interop_threads set_num_threads "
        "set_printoptions set_rng_state set_warn_always sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor "
        "sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor tril_indices triu_indices typename "
        "use_deterministic_algorithms vander vitals_enabled vmap zeros"),
    "Tensor": (
        "__delitem__ __hash__ __iter__ _addmm_activation _conj _conj_physical _is_all_true _is_any_true _make_subclass "
        "_make_wrapper_subclass _typed_storage _use_count as_subclass eig lstsq new new_empty new_empty_strided new_full "
        "new_ones new_tensor new_zeros reinforce solve stride symeig to_padded_tensor to_sparse_bsc to_sparse_bsr to_sparse_coo "
        "to_sparse_csc to_sparse_csr unflatten"),
    "nn.functional": (
        "handle_torch_function hardsigmoid hardswish has_torch_function has_torch_function_unary has_torch_function_variadic "
        "sigmoid tanh upsample upsample_bilinear upsample_nearest"),
    "nn.init": (
        "calculate_gain constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse uniform xavier_normal "
        "xavier_uniform"),
    "functional": (
        "broadcast_shapes"),
    "fft": (
        "fftfreq rfftfreq"),
}
# Functions of the package that are no operators, and ask.
_MADE_OF_OPERATORS = (
    "dequantize dsmm fake_quantize_per_channel_affine fake_quantize_per_tensor_affine get_device histogramdd hsmm hspmm "
    "is_distributed lobpcg nonzero numel segment_reduce smm spmm sspaddmm sym_float sym_int sym_ite sym_max sym_min sym_not "
    "sym_sqrt sym_sum")


def _at(path):
    return functools.reduce(getattr, path.split("."), tenon) if path else tenon


@functools.lru_cache(None)
def _ignored():
    return frozenset(getattr(space, name) for space, names in ((_at(path), names.split()) for path, names in _IGNORED.items())
                     for name in names if getattr(getattr(space, name, None), "__hash__", None))


def get_ignored_functions():
    """Functions that no class and no mode is asked about, or that only hand over to others that ask."""
    return set(_ignored())


# What Python does with every object: no function of tensors.
_OBJECTS_OWN = {"__class__", "__delattr__", "__dir__", "__doc__", "__getattribute__", "__getstate__", "__init__", "__init_subclass__", "__new__",
                "__setattr__", "__sizeof__", "__str__", "__subclasshook__", "__torch_function__", "__torch_dispatch__", "__weakref__",
                "__dict__", "__module__", "__dictoffset__", "__weaklistoffset__", "__del__", "__bytes__",
                "constant", "fake_device", "fake_mode"}


def get_overridable_functions():
    """{module, class or attribute: its functions that ask modes and classes}"""
    ignored = _ignored()
    found = {}

    def take(space, functions):
        found[space] = [f for f in functions if callable(f) and not isinstance(f, type) and not (f.__hash__ and f in ignored)]

    def is_public(name):
        return name[0].islower() and not name.endswith("_") and name != "unique_dim"

    names = dict.fromkeys([*vars(_C._VariableFunctions), *_MADE_OF_OPERATORS.split()])
    take(tenon, [getattr(tenon, name) for name in names if is_public(name) and hasattr(tenon, name)])
    for name, module in reversed(_function_modules()):
        listed = getattr(module, "__all__", None) or list(vars(module))
        if name != "nn.init":
            take(module, [getattr(module, n) for n in listed if is_public(n)])
    own = [name for name in dir(tenon.Tensor)
           if name not in _OBJECTS_OWN and getattr(object, name, None) is not getattr(tenon.Tensor, name)]
    take(tenon.Tensor, [getattr(tenon.Tensor, name) for name in own])
    for name in own:
        attribute = getattr(tenon.Tensor, name)
        if not callable(attribute) and hasattr(attribute, "__get__"):
            take(attribute, [attribute.__get__])
    return found


def get_testing_overrides():
    """{function: one with its signature that returns -1}, for all functions that ask modes and classes."""
    init = tenon.nn.init
    made = {f: _stand_in(f) for f in (init.uniform_, init.normal_, init.constant_, init.kaiming_uniform_)}
    for functions in get_overridable_functions().values():
        for f in functions:
            if f.__hash__:
                made[f] = _stand_in(f)
    return made


def _stand_in(f):
    import inspect

    def stand_in(*args, **kwargs):
        return -1

    try:
        stand_in.__signature__ = inspect.signature(f)
    except (TypeError, ValueError):
        pass  # it tells none
    return stand_in


def resolve_name(f):
    """"torch.add", "torch.Tensor.add": the name of a function; None where it has none."""
    if isinstance(f, (tenon._ops.OpOverload, tenon._ops.OpOverloadPacket)):
        return str(f)
    module = _C._module_name()
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    owner = getattr(f, "__self__", None)
    if name in ("__get__", "__set__", "__delete__") and owner is not None:
        return "%s.Tensor.%s.%s" % (module, owner.__name__, name)
    if getattr(tenon.Tensor, name, None) is f:
        return "%s.Tensor.%s" % (module, name)
    for prefix, space in [*_function_modules(), ("", tenon)]:
        for own in (name, name.removeprefix(prefix + "_")):  # linalg.norm is the operator linalg_norm
            if getattr(space, own, None) is f:
                return ".".join(part for part in (module, prefix, own) if part)
    return None


def _function_modules():
    """[(name, module)]: those beside the package itself whose functions ask modes and classes; the first that has one names it."""
    return [("special", tenon.special), ("fft", tenon.fft), ("linalg", tenon.linalg), ("nn.init", tenon.nn.init),
            ("nn.functional", tenon.nn.functional), ("functional", tenon.functional)]


class TorchFunctionMode:
    """A context manager whose `__torch_function__(self, func, types, args=(), kwargs=None)` is given every call of
    the API made inside it. While it is asked the mode is off."""

    def __init__(self):
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, kind, value, trace):
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode():
    n = _C._len_torch_function_stack()
    return _C._get_function_stack_at(n - 1) if n else None


def _get_current_function_mode_stack():
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


@contextlib.contextmanager
def _pop_mode_temporarily():
    mode = _C._pop_torch_function_stack()
    try:
        yield mode
    finally:
        _C._push_on_torch_function_stack(mode)
