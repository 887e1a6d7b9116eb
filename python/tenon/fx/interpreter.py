# SPDX-License-Identifier: MIT
"""Running a graph node by node, and making another graph on the way."""

from tenon import nn

from .graph import Graph
from .graph_module import GraphModule
from .node import map_arg
from .proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph's nodes. What subclasses change: run_node, and the methods named after the kinds of nodes."""

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = {}
        if garbage_collect_values:
            seen = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """The graph's result for these inputs."""
        self.env = {} if initial_env is None else initial_env
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    text = "While executing %s" % node.format_node()
                    error.args = ("%s\n\n%s" % (error.args[0], text),) + error.args[1:] \
                        if error.args and isinstance(error.args[0], str) else error.args
                raise
            for used in self.user_to_last_uses.get(node, ()):
                self.env.pop(used, None)
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list):
        """run(*args_list), which empties the list."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n):
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError("Expected positional argument for parameter %s, but one was not passed in!" %
                               target) from None

    def get_attr(self, target, args, kwargs):
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target, args, kwargs):
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        return args[0]

    def fetch_attr(self, target):
        value = self.module
        for at, part in enumerate(target.split(".")):
            if not hasattr(value, part):
                raise RuntimeError("Node referenced nonexistent target %s" % ".".join(target.split(".")[:at + 1]))
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n):
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        def value(node):
            if node not in self.env:
                raise RuntimeError("Node %s referenced nonexistent value %s! Run Graph.lint() to diagnose such issues" % (
                    n, node))
            return self.env[node]

        return map_arg(args, value)


class _TransformerTracer(TracerBase):
    def __init__(self, graph, module):
        self.graph, self.module = graph, module

    def is_leaf_module(self, m, module_qualified_name):
        return True

    def create_arg(self, a):
        return a.node if isinstance(a, Proxy) else super().create_arg(a)


class Transformer(Interpreter):
    """An interpreter whose values are proxies: what its methods do becomes another graph."""

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _TransformerTracer(self.new_graph, module)
        self.tracer.root = module

    def placeholder(self, target, args, kwargs):
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self):
        """The GraphModule of the new graph."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(map_proxies(result))
        if not isinstance(self.module, nn.Module):
            raise AssertionError("a Transformer needs a module")
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)


def map_proxies(value):
    """A result with nodes for its proxies."""
    from .node import map_aggregate
    return map_aggregate(value, lambda x: x.node if isinstance(x, Proxy) else x)
