# SPDX-License-Identifier: MIT
"""Settings and small functions of the package itself that scripts touch: determinism, precision of products, names of
types, conditions. They are loaded when they are first named."""

import tenon

__all__ = ["are_deterministic_algorithms_enabled", "compiled_with_cxx11_abi", "get_deterministic_debug_mode",
           "get_float32_matmul_precision", "get_num_interop_threads", "is_deterministic_algorithms_warn_only_enabled",
           "is_warn_always_enabled", "set_default_tensor_type", "set_deterministic_debug_mode",
           "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads", "set_warn_always", "typename",
           "use_deterministic_algorithms"]

_deterministic = [False, False]  # on; warn only
_precision = ["highest"]
_warn_always = [False]


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Every algorithm here gives the same bits for the same input, so that none is refused. What it changes: tensors that
    nobody wrote are filled, see utils.deterministic."""
    if not isinstance(mode, bool):
        raise TypeError("_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not %s"
                        % type(mode).__name__)
    if not isinstance(warn_only, bool):
        raise TypeError("_set_deterministic_algorithms(): argument 'warn_only' must be bool, not %s" % type(warn_only).__name__)
    _deterministic[:] = [mode, warn_only]
    _fill_empty()


def _fill_empty():
    tenon._C._set_fill_empty(_deterministic[0] and tenon.utils.deterministic.fill_uninitialized_memory)


def are_deterministic_algorithms_enabled():
    return _deterministic[0]


def is_deterministic_algorithms_warn_only_enabled():
    return _deterministic[1]


def set_deterministic_debug_mode(debug_mode):
    """0 or "default", 1 or "warn", 2 or "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError("debug_mode must be str or int, but got %s" % type(debug_mode))
    names = {"default": 0, "warn": 1, "error": 2}
    if isinstance(debug_mode, str):
        if debug_mode not in names:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got %s"
                               % debug_mode)
        debug_mode = names[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected 0, 1, or 2, but got %s" % debug_mode)
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode():
    if not _deterministic[0]:
        return 0
    return 1 if _deterministic[1] else 2


def set_float32_matmul_precision(precision):
    """"highest", "high" or "medium". Products of floats are always computed in floats: the setting is kept."""
    if precision not in ("highest", "high", "medium"):
        import warnings
        warnings.warn("%s is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has "
                      "no effect." % precision, UserWarning, stacklevel=2)
        return
    _precision[0] = precision


def get_float32_matmul_precision():
    return _precision[0]


def set_warn_always(b):
    _warn_always[0] = bool(b)


def is_warn_always_enabled():
    return _warn_always[0]


def compiled_with_cxx11_abi():
    return True


def get_num_interop_threads():
    """Operators run one after another."""
    return 1


def set_num_interop_threads(num):
    """Checked, and changes nothing: operators run one after another."""
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def set_flush_denormal(mode):
    """False: tiny numbers are kept."""
    return False


def set_default_tensor_type(t):
    """The default dtype, by the name of a type: torch.DoubleTensor or "torch.DoubleTensor"."""
    import warnings
    warnings.warn("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
                  "torch.set_default_device() as alternatives.", stacklevel=2)
    name = t if isinstance(t, str) else getattr(t, "__name__", str(t))
    kinds = {"FloatTensor": tenon.float32, "DoubleTensor": tenon.float64, "HalfTensor": tenon.float16,
             "BFloat16Tensor": tenon.bfloat16}
    short = name.rsplit(".", 1)[-1]
    if ".cuda." in name:
        raise TypeError("type %s not available. Torch not compiled with CUDA enabled." % name)
    if short not in kinds:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    tenon.set_default_dtype(kinds[short])


def typename(obj):
    """torch.FloatTensor and so on for a tensor; the qualified name of the class for anything else."""
    if isinstance(obj, tenon.Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(kind, "__module__", None)
    if module in (None, "builtins", "__main__"):
        return kind.__qualname__
    return "%s.%s" % (module, kind.__qualname__)
