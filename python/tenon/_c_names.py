# SPDX-License-Identifier: MIT
"""Names of ``_C`` that packages ask for and that need no C: what tracers, fusers and backends that are not there answer."""

import tenon
from tenon import _C


def _get_tracing_state():
    """Nobody traces."""
    return None


def _is_tracing():
    return False


def _get_privateuse1_backend_name():
    return "privateuseone"


def _get_default_device():
    return str(tenon.get_default_device())


def _get_accelerator(check=False):
    if check:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return tenon.device("cpu")


def _is_torch_function_mode_enabled():
    return _C._len_torch_function_stack() > 0 and not _C._is_torch_function_all_disabled()


def _is_alias_of(self, other):
    """Whether two tensors lie in one storage."""
    return _C._storage_id(self) == _C._storage_id(other)


def _are_functorch_transforms_active():
    """``vmap`` and the gradient transforms run on ordinary tensors."""
    return False


def _clear(*args):
    """What clears caches that are not there."""


_cuda_clearCublasWorkspaces = _set_math_sdp_allow_fp16_bf16_reduction = _clear


def _jit_setting(name, value):
    """A switch of the fuser: it is kept, and gives what it was."""
    kept = [value]

    def setting(new=None):
        old = kept[0]
        if new is not None:
            kept[0] = new
        return old
    setting.__name__ = name
    return setting


for _name, _value in (("_jit_can_fuse_on_cpu", False), ("_jit_can_fuse_on_gpu", False),
                      ("_jit_override_can_fuse_on_cpu", False), ("_jit_override_can_fuse_on_gpu", False),
                      ("_jit_set_nvfuser_enabled", False), ("_jit_set_nvfuser_guard_mode", False),
                      ("_jit_set_profiling_executor", True), ("_jit_set_profiling_mode", True),
                      ("_jit_set_texpr_fuser_enabled", False), ("_jit_set_bailout_depth", 20),
                      ("_jit_set_fusion_strategy", ()), ("_debug_set_autodiff_subgraph_inlining", True)):
    globals()[_name] = _jit_setting(_name, _value)


class _distributed_rpc:
    """Calls to other processes: for isinstance, no object is of these classes."""

    class PyRRef:
        """A value in another process."""

    class RpcAgent:
        """What carries the calls."""

    @staticmethod
    def _is_current_rpc_agent_set():
        return False


class ScriptObject:
    """An object of a TorchScript class; there is none."""


class Graph:
    """A graph of TorchScript; no function has one."""


class Value:
    """A value in a graph of TorchScript."""


class _DisableTorchDispatch:
    """Inside, no mode and no class sees an operator."""

    def __enter__(self):
        self._guard = _C._no_dispatch_enter()

    def __exit__(self, kind, value, trace):
        _C._no_dispatch_leave(self._guard)


class Node:
    """A node in a graph of TorchScript."""


class Block:
    """A block in a graph of TorchScript."""


_TensorBase = tenon.Tensor  # the name that it had before TensorBase

NAMES = frozenset(name for name in globals() if name not in ("tenon", "_C", "_clear", "_jit_setting", "_name", "_value")
                  and not name.startswith("__"))
