# SPDX-License-Identifier: MIT
"""Helpers for training: data, checkpoints of activations, hooks, logs. Each module is loaded when it is first named."""

from tenon._lazy import lazy_modules

__getattr__ = lazy_modules(__name__, ("_mode_utils", "_python_dispatch", "_pytree", "benchmark",
                                      "checkpoint", "collect_env", "data", "deterministic", "dlpack",
                                      "flop_counter", "hooks", "model_zoo", "module_tracker", "tensorboard"))
