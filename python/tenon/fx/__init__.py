# SPDX-License-Identifier: MIT
"""Programs as graphs: a tracer that runs a module on proxies and records what it does, the graph, and a module that
runs the Python code written from the graph."""

from . import graph, graph_module, interpreter, node, proxy, subgraph_rewriter
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = ["symbolic_trace", "Tracer", "wrap", "Graph", "GraphModule", "Interpreter", "Transformer", "Node", "Proxy",
           "replace_pattern", "has_side_effect", "map_arg"]
