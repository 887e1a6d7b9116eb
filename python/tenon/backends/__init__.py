# SPDX-License-Identifier: MIT
"""Switches of the libraries below. Those of libraries that are not used are kept, and change nothing."""

from tenon._lazy import lazy_modules

__getattr__ = lazy_modules(__name__, ("cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "miopen", "mkl",
                                      "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized", "xnnpack"))
