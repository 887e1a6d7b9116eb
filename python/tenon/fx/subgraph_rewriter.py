# SPDX-License-Identifier: MIT
"""Replacing every part of a graph that looks like a pattern."""

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node

__all__ = ["Match", "replace_pattern"]


class Match:
    """A part that fitted: `anchor` is the node of its result, `nodes_map` goes from the pattern's nodes to the graph's."""

    def __init__(self, anchor, nodes_map):
        self.anchor, self.nodes_map = anchor, nodes_map

    def __repr__(self):
        return "Match(anchor=%r, nodes_map=%r)" % (self.anchor, self.nodes_map)


def _graph_of(what):
    if isinstance(what, GraphModule):
        return what.graph, what
    if isinstance(what, Graph):
        return what, None
    traced = symbolic_trace(what)
    return traced.graph, traced


def _fits(pattern, node, found):
    """Whether a node and what it uses look like a pattern's."""
    if not isinstance(pattern, Node) or not isinstance(node, Node):
        if isinstance(pattern, (tuple, list)) and isinstance(node, (tuple, list)):
            return len(pattern) == len(node) and all(_fits(p, n, found) for p, n in zip(pattern, node))
        return not isinstance(pattern, Node) and not isinstance(node, Node) and type(pattern) is type(node) and \
            pattern == node
    if pattern in found:
        return found[pattern] is node
    if pattern.op == "placeholder":
        found[pattern] = node
        return True
    if pattern.op != node.op or pattern.target != node.target or set(pattern.kwargs) != set(node.kwargs):
        return False
    found[pattern] = node
    return _fits(pattern.args, node.args, found) and all(_fits(v, node.kwargs[k], found)
                                                         for k, v in pattern.kwargs.items())


def replace_pattern(gm, pattern, replacement):
    """Replace each part of gm that does what pattern does by what replacement does; gives the Matches."""
    wanted, _ = _graph_of(pattern)
    other, holder = _graph_of(replacement)
    result = wanted.output_node().args[0]
    matches, taken = [], set()
    for node in list(gm.graph.nodes):
        found = {}
        if node.op in ("placeholder", "output") or not _fits(result, node, found):
            continue
        inner = {n for p, n in found.items() if p.op != "placeholder"}
        inside_only = all(user in inner for n in inner if n is not node for user in n.users)
        if not inside_only or inner & taken:
            continue
        taken |= inner
        matches.append(Match(node, found))
    sources = [n for n in wanted.nodes if n.op == "placeholder"]
    inputs = [n for n in other.nodes if n.op == "placeholder"]
    replaced = {}
    for match in matches:
        given = {}
        for theirs, ours in zip(inputs, sources):
            value = match.nodes_map.get(ours)
            while value in replaced:
                value = replaced[value]
            given[theirs] = value
        with gm.graph.inserting_before(match.anchor):
            value = gm.graph.graph_copy(other, given)
        if isinstance(value, (tuple, list)) and len(value) == 1:
            value = value[0]
        match.anchor.replace_all_uses_with(value)
        replaced[match.anchor] = value
        for node in reversed(list(gm.graph.nodes)):
            if node in match.nodes_map.values() and not node.users and node.op != "placeholder":
                gm.graph.erase_node(node)
    if holder is not None:
        for node in other.nodes:
            if node.op in ("call_module", "get_attr"):
                try:
                    _copy_attr(gm, gm, node.target)
                except AttributeError:
                    _copy_attr(holder, gm, node.target)
    gm.recompile()
    return matches
