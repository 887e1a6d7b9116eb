# SPDX-License-Identifier: MIT
"""Checkpointing that keeps what some operators computed: two modes, for the first run and for running again, with the
results that are kept between them. Loaded through tenon.utils.checkpoint."""
import enum
from collections import defaultdict

import tenon
from tenon import _C
from tenon.utils._pytree import tree_map
from tenon.utils._python_dispatch import TorchDispatchMode

__all__ = ["CheckpointPolicy", "SAC_IGNORED_OPS", "SelectiveCheckpointContext",
           "create_selective_checkpoint_contexts"]


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result: kept, or computed again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


SAC_IGNORED_OPS = {tenon.ops.aten.detach.default}  # made by recording, and not by the function


class SelectiveCheckpointContext:
    """What a policy is told of the run: whether it is the second one."""

    def __init__(self, *, is_recompute):
        self.is_recompute = is_recompute


def _kept(policy):
    return policy in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


def _policy(value):
    if isinstance(value, bool):  # an older way to say it
        return CheckpointPolicy.MUST_SAVE if value else CheckpointPolicy.PREFER_RECOMPUTE
    return value


class _Kept:
    """A result, and whether it was written since."""

    def __init__(self, value):
        self.value = value
        if isinstance(value, tenon.Tensor):  # an alias without history that counts writes together with it
            with _C._SetExcludeDispatchKeyGuard("ADInplaceOrView", False):
                self.value = value.detach()
        self.version = value._version if isinstance(value, tenon.Tensor) else None

    def get(self, may_be_written):
        if self.version is None:
            return self.value
        if self.value._version != self.version and not may_be_written:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value.detach()


class _First(TorchDispatchMode):
    def __init__(self, policy, kept):
        super().__init__()
        self.policy, self.kept = policy, kept

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        wanted = _policy(self.policy(SelectiveCheckpointContext(is_recompute=False), func, *args, **kwargs))
        out = func(*args, **kwargs)
        if _kept(wanted):
            self.kept[func].append(tree_map(_Kept, out))
        return out


class _Again(TorchDispatchMode):
    def __init__(self, policy, kept, may_be_written):
        super().__init__()
        self.policy, self.kept, self.may_be_written = policy, kept, may_be_written

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        if not _kept(_policy(self.policy(SelectiveCheckpointContext(is_recompute=True), func, *args, **kwargs))):
            return func(*args, **kwargs)
        if func not in self.kept:
            raise RuntimeError("%s encountered during backward, but not found in storage" % func)
        if not self.kept[func]:
            raise RuntimeError("Trying to backward an extra time. You are only allowed to backward once on any region "
                               "computed under selective activation checkpoint.")
        return tree_map(lambda one: one.get(self.may_be_written), self.kept[func].pop(0))


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """Contexts for ``checkpoint(context_fn=…)``: results of the operators listed, or of those that the policy
    ``(ctx, op, *args, **kwargs) -> CheckpointPolicy`` chooses, are kept and not computed again."""
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, tenon._ops.OpOverload):
                more = ("Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
                        "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                        if isinstance(op, tenon._ops.OpOverloadPacket) else "")
                raise ValueError("Expected op in `op_list` to be an OpOverload but got: %s of type %s. %s"
                                 % (op, type(op), more))

        def policy(ctx, op, *args, **kwargs):
            return CheckpointPolicy.MUST_SAVE if op in policy_fn_or_list else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept = defaultdict(list)
    return _First(policy, kept), _Again(policy, kept, allow_cache_entry_mutation)
