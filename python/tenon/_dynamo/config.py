# SPDX-License-Identifier: MIT
"""Settings that scripts read and set. They are kept, and change nothing."""

from tenon._settings import patch_of

cache_size_limit = 8
recompile_limit = 8
accumulated_cache_size_limit = 256
accumulated_recompile_limit = 256
assume_static_by_default = True
automatic_dynamic_shapes = True
automatic_dynamic_local_pgo = True
allow_unspec_int_on_nn_module = False
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
compiled_autograd = False
disable = False
dynamic_shapes = True
error_on_recompile = False
fail_on_recompile_limit_hit = False
force_parameter_static_shapes = True
inline_inbuilt_nn_modules = True
log_level = 30
optimize_ddp = True
print_graph_breaks = False
raise_on_ctx_manager_usage = True
skip_nnmodule_hook_guards = True
specialize_float = False
specialize_int = False
suppress_errors = False
verbose = False

patch = patch_of(__name__)
