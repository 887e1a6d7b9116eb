# SPDX-License-Identifier: MIT
"""CUDA's switches: precision of products, kinds of attention. They are kept, and change nothing without a device."""

import warnings
from contextlib import contextmanager

import tenon


class _Matmul:
    """torch.backends.cuda.matmul. allow_tf32 and the float32 precision of products are two names for one thing."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = "none"

    @property
    def allow_tf32(self):
        return tenon.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value):
        tenon.set_float32_matmul_precision("high" if value else "highest")


class _PlanCache:
    """cufft_plan_cache: always empty."""

    size = 0
    max_size = 0

    def clear(self):
        pass

    def __getitem__(self, device):
        return self


matmul = _Matmul()
cufft_plan_cache = _PlanCache()
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built():
    """Whether this build can use CUDA."""
    return False


def preferred_linalg_library(backend=None):
    return "default"


def preferred_blas_library(backend=None):
    return "default"


def flash_sdp_enabled():
    return _sdp["flash"]


def enable_flash_sdp(enabled):
    _sdp["flash"] = bool(enabled)


def mem_efficient_sdp_enabled():
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled):
    _sdp["mem_efficient"] = bool(enabled)


def math_sdp_enabled():
    return _sdp["math"]


def enable_math_sdp(enabled):
    _sdp["math"] = bool(enabled)


def cudnn_sdp_enabled():
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled):
    _sdp["cudnn"] = bool(enabled)


def allow_fp16_bf16_reduction_math_sdp(enabled):
    pass


def is_flash_attention_available():
    return False


def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """The kinds of attention that are allowed inside; the older form of nn.attention.sdpa_kernel."""
    warnings.warn("`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please "
                  "see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
                  FutureWarning, stacklevel=2)
    return _allowed(enable_flash, enable_math, enable_mem_efficient, enable_cudnn)


@contextmanager
def _allowed(enable_flash, enable_math, enable_mem_efficient, enable_cudnn):
    before = dict(_sdp)
    _sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        _sdp.update(before)


class SDPAParams:
    """A call of scaled_dot_product_attention, for the questions below."""

    def __init__(self, query, key, value, attn_mask, dropout, is_causal, enable_gqa):
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def can_use_flash_attention(params, debug=False):
    """Whether a GPU would take that kernel: no tensor is on one."""
    return False


def can_use_efficient_attention(params, debug=False):
    """Whether a GPU would take that kernel: no tensor is on one."""
    return False


def can_use_cudnn_attention(params, debug=False):
    """Whether a GPU would take that kernel: no tensor is on one."""
    return False
