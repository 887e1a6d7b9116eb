# SPDX-License-Identifier: MIT
"""Functions that scripts rarely call, written with others: older names, names of switches.
Loaded when one of them is first named."""

import warnings

import tenon
from tenon._asking import overridable
from tenon._linalg_utils import _symeig as symeig
from tenon._linalg_utils import eig, lstsq, matrix_rank, solve

# ---- methods as functions ----

def zero_(input):
    return input.zero_()


def fill_(input, value):
    return input.fill_(value)


def resize_as_(input, the_template, *, memory_format=None):
    return input.resize_as_(the_template)


def get_device(input):
    return input.get_device()


def is_distributed(input):
    return False


def polygamma(self, n):
    """Tensor.polygamma"""
    return tenon.polygamma(n, self)


def reversed_(self):
    """reversed(tensor): its rows in the other order, as a tensor."""
    return self if self.dim() == 0 else self.flip(0)


def is_set_to(self, tensor):
    """Tensor.is_set_to: the same memory, seen in the same way."""
    return (tenon._C._storage_id(self) == tenon._C._storage_id(tensor) and self.storage_offset() == tensor.storage_offset()
            and self.shape == tensor.shape and self.stride() == tensor.stride())


def dim_order(self, *, ambiguity_check=False):
    """Tensor.dim_order: the dimensions from the slowest to the fastest. Where strides leave it open the order of the
    dimensions decides; `ambiguity_check` refuses such a tensor, unless one alone of the memory formats fits that it lists."""
    if self.is_sparse:
        raise AttributeError("Can't get dim order on sparse type: %s Use Tensor.to_dense() to convert to a dense tensor "
                             "first." % self.type())
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(f, tenon.memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check is not False:
        several = 1 in self.shape or len(set(self.stride())) != self.dim()
        if several and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory "
                               "formats.")
    if self.dim() < 2 or (self.is_contiguous() and not _is_channels_last(self)):
        return tuple(range(self.dim()))
    if _is_channels_last(self) and not self.is_contiguous():
        return (0, *range(2, self.dim()), 1)
    return _order_of(self.shape, self.stride(), bool(ambiguity_check))


def _is_channels_last(t):
    return t.dim() == 4 and t.is_contiguous(memory_format=tenon.channels_last)


def _order_of(shape, stride, unique):
    """Dimensions are sorted from behind, by insertion: what is not comparable (a stride of 0) stays where it is."""
    def comes_after(a, b):
        if stride[a] == 0 or stride[b] == 0:
            return 0
        if stride[a] == stride[b]:
            return int(shape[a] > shape[b] > 0)
        return 1 if stride[a] > stride[b] else -1

    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        at = i
        for before in reversed(range(i)):
            found = comes_after(order[before], order[at])
            if found > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif found < 0:
                break
    if unique and any(comes_after(a, b) >= 0 for a, b in zip(order, order[1:])):
        raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(reversed(order))


def dequantize(self):
    """Tensor.dequantize: no tensor is quantized here, so that only the dtype changes."""
    return self.to(tenon.float32)


def embedding_renorm_(input, indices, max_norm, norm_type):
    """Scale, in place, the rows of `input` that `indices` name and whose norm is above `max_norm`."""
    from tenon.nn.functional._sparse import _renorm
    if indices.dtype not in (tenon.int32, tenon.int64):
        raise RuntimeError("Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; "
                           "but got %s instead (while checking arguments for embedding_renorm_)" % indices.type())
    _renorm(input, indices, max_norm, norm_type)
    return input


def to_dlpack(tensor):
    """A DLPack capsule of a tensor."""
    if not isinstance(tensor, tenon.Tensor):
        raise TypeError("_to_dlpack(): argument 'data' (position 1) must be Tensor, not %s" % type(tensor).__name__)
    return tenon.utils.dlpack.to_dlpack(tensor)


def to_padded_tensor(self, padding, output_size=None):
    """Tensor.to_padded_tensor: of nested tensors, which have a method of their own."""
    raise NotImplementedError("Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend: it is for "
                              "nested tensors.")


def to_mkldnn(self, dtype=None):
    """Tensor.to_mkldnn: there is no such layout here."""
    raise RuntimeError("MKL-DNN build is disabled")


def chalf(self, *, memory_format=None):
    """Tensor.chalf: there is no such dtype here."""
    raise RuntimeError("Tenon has no complex32, see docs/differences.md")


def reinforce(self, reward):
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead: the log probability of an action, times "
                       "the reward, is what to descend.")


def module_load(self, other, assign=False):
    """Tensor.module_load: what Module.load_state_dict puts in the place of ``self``, whose value is ``other``."""
    if tenon.overrides.has_torch_function((self, other)):  # the class of the value has its say, too
        return tenon.overrides.handle_torch_function(tenon.Tensor.module_load, (self, other), self, other, assign=assign)
    return other.detach() if assign else self.copy_(other).detach()


# ---- numbers ----

def empty_permuted(size, physical_layout, **options):
    """An empty tensor whose dimensions lie in memory in the order given."""
    if len(physical_layout) != len(size):
        raise RuntimeError("Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
                           "%d is not equal to len(physical_layout) = %d" % (len(size), len(physical_layout)))
    for i, d in enumerate(physical_layout):
        if not 0 <= d < len(size):
            raise RuntimeError("Dimension out of range (expected to be between 0 and %d, but got %d at index %d).  NB: negative dims "
                               "not currently supported; file an issue if you want it." % (len(size) - 1, d, i))
    if len(set(physical_layout)) != len(physical_layout):
        raise RuntimeError("Duplicate dim not allowed")
    back = [physical_layout.index(d) for d in range(len(size))]
    return tenon.empty([size[d] for d in physical_layout], **options).permute(back)


@overridable
def conv_tbc(input, weight, bias, pad=0):
    """A convolution of (time, batch, channels) with weights of (taps, in, out)."""
    if input.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    return tenon.nn.functional.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def native_channel_shuffle(input, groups):
    return tenon.nn.functional.channel_shuffle(input, groups)


def from_file(filename, shared=None, size=0, *, dtype=None, **options):
    """A tensor of the bytes of a file: of ``size`` elements. With shared, what is written to the tensor is written to
    the file, which is made, or made longer, where it is too short."""
    dtype = dtype or tenon.get_default_dtype()
    wanted = size * dtype.itemsize
    if shared and wanted:
        import mmap
        import os
        file = os.open(filename, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if os.fstat(file).st_size < wanted:
                os.ftruncate(file, wanted)
            return tenon.frombuffer(mmap.mmap(file, wanted), dtype=dtype, count=size)
        finally:
            os.close(file)
    with open(filename, "rb") as file:
        data = bytearray(file.read(wanted))
    if len(data) < wanted:
        raise RuntimeError("file %s has %d bytes, and %d are needed" % (filename, len(data), wanted))
    return tenon.frombuffer(data, dtype=dtype, count=size) if size else tenon.empty(0, dtype=dtype)


def cond(pred, true_fn, false_fn, operands=()):
    """One of two functions of the operands, by a truth value."""
    if isinstance(pred, tenon.Tensor):
        if pred.numel() != 1:
            raise RuntimeError("Expected pred to be bool or single-element tensor, but got %s" % pred)
        pred = pred.item()
    return (true_fn if pred else false_fn)(*operands)


# ---- random zeros ----

def _dropped(name, module_function, in_place=False):
    def function(input, p, train):
        made = getattr(tenon.nn.functional, module_function)(input, p, train)
        return input.copy_(made) if in_place else made
    function.__name__ = function.__qualname__ = name
    return function


def feature_dropout(input, p, train):
    """Whole channels become 0: of the second dimension."""
    if not train or p == 0:
        return input.clone()
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    keep = tenon.empty(tuple(input.shape[:2]) + (1,) * (input.dim() - 2), dtype=input.dtype).bernoulli_(1 - p)
    return input * (keep / (1 - p) if p < 1 else keep)


def feature_dropout_(input, p, train):
    return input.copy_(feature_dropout(input, p, train))


alpha_dropout = _dropped("alpha_dropout", "alpha_dropout")
alpha_dropout_ = _dropped("alpha_dropout_", "alpha_dropout", True)
feature_alpha_dropout = _dropped("feature_alpha_dropout", "feature_alpha_dropout")
feature_alpha_dropout_ = _dropped("feature_alpha_dropout_", "feature_alpha_dropout", True)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """Negative numbers times a slope, in training a random one for each."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return tenon.nn.functional.leaky_relu(input, (lower + upper) / 2)
    slopes = tenon.empty_like(input.detach()).uniform_(lower, upper, generator=generator)
    return tenon.where(input <= 0, input * slopes, input)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    return input.copy_(rrelu(input, lower, upper, training))


# ---- switches ----

has_lapack = has_spectral = has_openmp = True
has_mkl = False


def _of_one_device(name, argument=""):
    """is_autocast_cpu_enabled and its kin: what takes the device's name now, under the name it had before."""
    device = "cpu" if "_cpu" in name else "cuda"
    now = name.replace("_cpu", "").replace("_gpu", "")
    text = "torch.%s(%s) is deprecated. Please use torch.%s('%s'%s) instead." % (
        name, argument, now, device, argument and ", " + argument)

    def older(*args, **kwargs):
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(tenon, now)(device, *args, **kwargs)
    older.__name__ = older.__qualname__ = name
    return older


is_autocast_cpu_enabled = _of_one_device("is_autocast_cpu_enabled")
set_autocast_cpu_enabled = _of_one_device("set_autocast_cpu_enabled", "enabled")
get_autocast_cpu_dtype = _of_one_device("get_autocast_cpu_dtype")
set_autocast_cpu_dtype = _of_one_device("set_autocast_cpu_dtype", "dtype")
get_autocast_gpu_dtype = _of_one_device("get_autocast_gpu_dtype")
set_autocast_gpu_dtype = _of_one_device("set_autocast_gpu_dtype", "dtype")


def set_anomaly_enabled(enabled, check_nan=True):
    tenon.autograd.set_detect_anomaly(enabled, check_nan)


def is_vulkan_available():
    return False


def vitals_enabled():
    return False


def set_vital(vital, attr, value):
    """Vital signs are not kept."""
    return False


def read_vitals():
    return ""


def init_num_threads():
    """Threads start when they are first needed."""


def lu(self, pivot=True, get_infos=False):
    """Tensor.lu: factors in one matrix, and pivots."""
    made = tenon.linalg.lu_factor_ex(self, pivot=pivot)
    return tuple(made) if get_infos else tuple(made)[:2]


def xpu(self, *args, **kwargs):
    raise AssertionError("Torch not compiled with XPU enabled")


# ---- checks, casts and indices under older names ----

def _assert_async(input, assert_msg=None):
    """Raises unless the one element is true."""
    if input.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with %s is ambiguous" % (
            "no values" if input.numel() == 0 else "more than one value"))
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _shape_as_tensor(input):
    return tenon.tensor(list(input.shape), dtype=tenon.int64)


def _cast_Long(input, non_blocking=False):
    return input.to(tenon.int64)


def _cast_Int(input, non_blocking=False):
    return input.to(tenon.int32)


def _cast_Float(input, non_blocking=False):
    return input.to(tenon.float32)


legacy_contiguous_format = tenon.contiguous_format


def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False):
    """Where each row begins, from the sorted rows of the elements."""
    rows = tenon.arange(size + 1, dtype=input.dtype)
    return tenon.searchsorted(input.contiguous(), rows).to(tenon.int32 if out_int32 else tenon.int64)


def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """The rows and columns of the elements, from where each row begins."""
    rows = tenon.repeat_interleave(tenon.arange(crow_indices.numel() - 1), crow_indices.diff())
    pair = [rows.to(col_indices.dtype), col_indices]
    return tenon.stack(pair[::-1] if transpose else pair).to(tenon.int32 if out_int32 else tenon.int64)


@overridable
def lu(A, pivot=True, get_infos=False, out=None):
    """The older name of linalg.lu_factor_ex: (LU, pivots), and where an elimination failed when asked for."""
    from tenon._functional import _once
    _once("torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a future "
          "PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = "
          "torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\n"
          "should be replaced with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)", 3)
    made = tuple(tenon.linalg.lu_factor_ex(A, pivot=pivot))[:3 if get_infos else 2]
    return made if out is None else tuple(o.resize_(m.shape).copy_(m) for o, m in zip(out, made))
