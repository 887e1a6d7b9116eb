# SPDX-License-Identifier: MIT
"""compile with a backend that is a function: what the function does is recorded, and the backend is given the graph.

A call is recorded each time, and the backend is asked once for each graph and kind of inputs: whatever the function
reads besides its arguments may have changed, and a recording costs little beside what backends are tried out for. What
cannot be recorded (control flow by values, another grad mode inside, attributes that are set) runs as it is written,
with one warning.
"""

import inspect
import warnings

import tenon
from tenon._subclasses.fake_tensor import FakeTensorMode
from tenon.fx import GraphModule, Proxy, Tracer
from tenon.fx.node import map_arg
from tenon.utils import _pytree as pytree

from . import exc

__all__ = ["Captured"]


class _NotRecorded(RuntimeError):
    """A graph would not do what the function does."""


def _modes():
    return (tenon.is_grad_enabled(), tenon.is_inference_mode_enabled(), tenon.is_autocast_enabled("cpu"),
            tenon.get_autocast_dtype("cpu"))


class _ShapedProxy(Proxy):
    """A proxy that knows what can be known without values, so that code may ask for shapes."""

    def __getattr__(self, name):
        known = self.node.meta.get("example_value")
        if isinstance(known, tenon.Tensor):
            if name in ("shape", "ndim", "dtype", "device", "layout"):
                return getattr(known, name)
            if name in ("size", "dim", "numel", "is_floating_point", "is_complex", "element_size"):
                return getattr(known, name)
        return super().__getattr__(name)

    def __len__(self):
        known = self.node.meta.get("example_value")
        return len(known) if known is not None else super().__len__()

    def __iter__(self):
        known = self.node.meta.get("example_value")
        return super().__iter__() if known is None else (self[i] for i in range(len(known)))


class _InputTracer(Tracer):
    """Every tensor that the function reads is an input of the graph, also parameters, as they are in PyTorch."""

    def __init__(self, names):
        super().__init__()
        self.names = names  # id of a tensor -> what its input is called
        self.inputs = {}  # node -> tensor
        self.known = {}  # id of a tensor -> node
        self.modes = _modes()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.taken = set()

    def input(self, tensor, name):
        if name in self.taken:
            name += "%d_" % len(self.taken)
        self.taken.add(name)
        first = next(iter(self.graph.nodes), None)
        if first is None:
            node = self.graph.placeholder(name)
        else:
            with self.graph.inserting_before(first):
                node = self.graph.placeholder(name)
        node.meta["example_value"] = self.fake.from_tensor(tensor)
        self.inputs[node] = tensor
        self.known[id(tensor)] = node
        return node

    def create_node(self, *args, **kwargs):
        if _modes() != self.modes:
            raise _NotRecorded("the function changes the grad mode or autocast")
        return super().create_node(*args, **kwargs)

    def proxy(self, node):
        return _ShapedProxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        made = super().create_proxy(kind, target, args, kwargs, name, type_expr, proxy_factory_fn)
        a, k = map_arg((made.node.args, made.node.kwargs), lambda n: n.meta.get("example_value"))
        try:
            with self.fake:
                if kind == "call_function":
                    made.node.meta["example_value"] = target(*a, **k)
                elif kind == "call_method":
                    made.node.meta["example_value"] = getattr(a[0], target)(*a[1:], **k)
        except Exception:  # an operator without a rule, or a value that is needed: asking for the shape will say so
            pass
        return made

    def create_arg(self, a):
        if isinstance(a, tenon.Tensor):
            node = self.known.get(id(a))
            return self.input(a, self.names.get(id(a), "L_constant_")) if node is None else node
        return super().create_arg(a)

    def call_module(self, m, forward, args, kwargs):
        return forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        return attr_val

    def order_inputs(self):
        """In the order in which they are needed, parameters of an operator before what it works on; unused ones go."""
        wanted = []
        for node in self.graph.nodes:
            used = [n for n in node.all_input_nodes if n in self.inputs and n not in wanted]
            wanted += sorted(used, key=lambda n: not isinstance(self.inputs[n], tenon.nn.Parameter))
        for node in list(self.inputs):
            if node not in wanted:
                self.graph.erase_node(node)
        rest = next(n for n in self.graph.nodes if n.op != "placeholder")
        for node in wanted:
            rest.prepend(node)
        return wanted


def _kind(tensor):
    return (tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device, tensor.requires_grad, type(tensor))


def _attributes(module):
    """What setting an attribute of a module changes."""
    if module is None:
        return []
    return [(values, dict(values)) for m in module.modules()
            for values in (m.__dict__, m._parameters, m._buffers, m._modules)]


class Captured:
    """A function, or a module's call, that a backend runs."""

    def __init__(self, function, backend, options):
        self.function, self.backend, self.options = function, backend, options
        self.module = function if isinstance(function, tenon.nn.Module) else getattr(function, "__self__", None)
        if not isinstance(self.module, tenon.nn.Module):
            self.module = None
        self.compiled = {}
        self.plain = False  # it cannot be recorded

    def __call__(self, *args, **kwargs):
        if self.plain or any(isinstance(a, Proxy) for a in pytree.tree_leaves((args, kwargs))):
            return self.function(*args, **kwargs)
        recorded = self.recorded(args, kwargs)
        if recorded is None:
            return self.function(*args, **kwargs)
        graph, inputs, leaves, outputs, spec = recorded
        if outputs:
            key = self.key(graph, inputs)
            run = self.compiled.get(key)
            if run is None:
                run = self.compiled[key] = self.ask_backend(graph, inputs)
            results = run(*inputs)
            for at, result in zip(outputs, results):
                leaves[at] = result
        return pytree.tree_unflatten(leaves, spec)

    @staticmethod
    def key(graph, inputs):
        return (tuple((n.op, n.target if n.op != "placeholder" else None, repr(n.args), repr(n.kwargs))
                      for n in graph.nodes), tuple(_kind(t) for t in inputs), _modes())

    def ask_backend(self, graph, inputs):
        module = GraphModule(tenon.nn.Module(), graph)
        try:
            run = self.backend(module, list(inputs), **self.options)
        except Exception as error:
            name = getattr(self.backend, "__name__", type(self.backend).__name__)
            raise exc.BackendCompilerFailed("backend=%r raised:\n%s: %s" % (name, type(error).__name__, error)) from error
        if not callable(run):
            raise exc.BackendCompilerFailed("backend=%r raised:\nTypeError: compiler_fn did not return a callable" %
                                            getattr(self.backend, "__name__", type(self.backend).__name__))
        return run

    def input_names(self, args, kwargs):
        names = {}
        for name, tensor in () if self.module is None else self.module.named_parameters():
            *path, last = name.split(".")
            names[id(tensor)] = "L_self_" + "".join("modules_%s_" % p for p in path) + "parameters_%s_" % last
        for name, tensor in () if self.module is None else self.module.named_buffers():
            *path, last = name.split(".")
            names[id(tensor)] = "L_self_" + "".join("modules_%s_" % p for p in path) + "buffers_%s_" % last
        function = self.function.forward if isinstance(self.function, tenon.nn.Module) else self.function
        for name, value in inspect.signature(function).bind(*args, **kwargs).arguments.items():
            found = [t for t in pytree.tree_leaves(value) if isinstance(t, tenon.Tensor)]
            for i, tensor in enumerate(found):
                names.setdefault(id(tensor), "L_%s_" % name if value is tensor else "L_%s_%d_" % (name, i))
        return names

    def recorded(self, args, kwargs):
        """The graph, its inputs, the leaves of the result, which of them the graph makes, and how they are put together."""
        attributes, state = _attributes(self.module), tenon.get_rng_state()
        buffers = [] if self.compiled or self.module is None else [(b, b.clone()) for b in self.module.buffers()]
        try:
            found = self.record(args, kwargs)
            if any(values.keys() != before.keys() or any(values[k] is not before[k] for k in before)
                   for values, before in attributes):
                raise _NotRecorded("the function sets attributes of the module")
            return found
        except Exception as error:
            for values, before in attributes:
                values.clear()
                values.update(before)
            with tenon.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            tenon.set_rng_state(state)
            self.plain = True
            warnings.warn("compile: the backend is not called, the function runs as it is written, because it could not "
                          "be recorded: %s" % error, stacklevel=4)
            return None

    def record(self, args, kwargs):
        tracer = _InputTracer(self.input_names(args, kwargs))
        leaves, spec = pytree.tree_flatten((args, kwargs))
        made = []

        def call():
            given = list(leaves)
            for i, leaf in enumerate(leaves):
                if isinstance(leaf, tenon.Tensor):
                    node = tracer.known.get(id(leaf)) or tracer.input(leaf, tracer.names[id(leaf)])
                    given[i] = tracer.proxy(node)
            a, k = pytree.tree_unflatten(given, spec)
            values, out_spec = pytree.tree_flatten(self.function(*a, **k))
            at = [i for i, value in enumerate(values) if isinstance(value, Proxy)]
            made.append((values, at, out_spec))
            return tuple(values[i] for i in at)

        graph = tracer.trace(call)
        order = tracer.order_inputs()
        return (graph, [tracer.inputs[n] for n in order]) + made[0]
