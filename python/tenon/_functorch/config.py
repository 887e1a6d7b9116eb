# SPDX-License-Identifier: MIT
"""Settings of ahead-of-time autograd that scripts read and set. They are kept, and change nothing."""

from tenon._settings import patch_of

activation_memory_budget = 1.0
autograd_cache_allow_custom_autograd_functions = False
bundled_autograd_cache = False
debug_partitioner = False
donated_buffer = True
enable_autograd_cache = True
functionalize_rng_ops = False
recompute_views = False
treat_parameters_as_free_to_save = True

patch = patch_of(__name__)
