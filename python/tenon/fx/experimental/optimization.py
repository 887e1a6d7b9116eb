# SPDX-License-Identifier: MIT
"""Models that compute the same with less: norms go into the convolutions before them, and dropouts away."""

import copy

from tenon import fx, nn
from tenon.nn.utils.fusion import fuse_conv_bn_eval

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

_PAIRS = ((nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d))


def matches_module_pattern(pattern, node, modules):
    """Whether a node and the one that its first argument comes from call modules of these two classes."""
    if not node.args or not isinstance(node.args[0], fx.Node):
        return False
    for kind, one in zip(pattern, (node.args[0], node)):
        if one.op != "call_module" or type(modules.get(one.target)) is not kind:
            return False
    return True


def replace_node_module(node, modules, new_module):
    """Let a node call another module, under the same name."""
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model, inplace=False, no_trace=False):
    """A model in evaluation whose convolutions have the norms that follow them in their weights."""
    traced = (model if inplace else copy.deepcopy(model)) if no_trace else fx.symbolic_trace(model if inplace else copy.deepcopy(model))
    modules, graph = dict(traced.named_modules()), copy.deepcopy(traced.graph)
    for pair in _PAIRS:
        for node in list(graph.nodes):
            if not matches_module_pattern(pair, node, modules):
                continue
            before, norm = node.args[0], modules[node.target]
            if len(before.users) > 1 or not norm.track_running_stats:
                continue  # somebody else uses the convolution as it is, or the norm is of each batch
            replace_node_module(before, modules, fuse_conv_bn_eval(modules[before.target], norm))
            node.replace_all_uses_with(before)
            graph.erase_node(node)
    return fx.GraphModule(traced, graph)


def remove_dropout(model):
    """A model without its dropouts, which do nothing in evaluation."""
    class Without(fx.Transformer):
        def call_module(self, target, args, kwargs):
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return Without(fx.symbolic_trace(model)).transform()
