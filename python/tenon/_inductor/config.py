# SPDX-License-Identifier: MIT
"""Settings that scripts read and set. They are kept, and change nothing."""

from tenon._settings import patch_of

coordinate_descent_tuning = False
coordinate_descent_check_all_directions = False
cpp_wrapper = False
debug = False
epilogue_fusion = True
force_fuse_int_mm_with_mul = False
freezing = False
fx_graph_cache = True
fx_graph_remote_cache = None
max_autotune = False
max_autotune_gemm = False
max_autotune_gemm_backends = "ATEN"
shape_padding = True
use_mixed_mm = True


class triton:
    """Settings under config.triton."""

    cudagraphs = False
    cudagraph_trees = True
    unique_kernel_names = True


class trace:
    """Settings under config.trace."""

    enabled = False


patch = patch_of(__name__)
