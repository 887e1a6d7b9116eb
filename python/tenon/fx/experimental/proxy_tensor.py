# SPDX-License-Identifier: MIT
"""make_fx: a function is run once, and each operator that it comes to is a node of a graph. Its gradients are operators, too."""

import inspect
import operator
from contextlib import nullcontext

import tenon
from tenon import nn
from tenon._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from tenon.utils import _pytree as pytree
from tenon.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from ..graph import Graph
from ..graph_module import GraphModule
from ..passes.shape_prop import _extract_tensor_metadata

__all__ = ["get_proxy_mode", "make_fx", "maybe_disable_fake_tensor_mode"]

_running = []


def get_proxy_mode():
    """The mode that traces, or None."""
    return _running[-1] if _running else None


def maybe_disable_fake_tensor_mode():
    return nullcontext()


def _place(t):
    """Where a tensor's elements are, which an alias of it has as well; None where that cannot be known."""
    try:
        at = t.data_ptr()
    except (RuntimeError, NotImplementedError):
        return None
    return (at, t.dtype, tuple(t.shape), t.stride()) if at else None


class _Recorder(TorchDispatchMode):
    """Makes nodes of operators. All tensors are kept while it runs: neither an id nor memory turns up twice."""

    def __init__(self, graph, decompositions):
        super().__init__()
        self.graph, self.decompositions = graph, decompositions
        self.constants = {}
        self._kept, self._by_id, self._by_place = [], {}, {}
        self._numbers = {"_param_constant": 0, "_tensor_constant": 0}

    def track(self, t, node):
        self._kept.append(t)
        self._by_id[id(t)] = node
        place = _place(t)
        if place is not None:
            self._by_place[place] = node

    def known(self, t):
        return self._by_id.get(id(t)) or self._by_place.get(_place(t))

    def node_of(self, t):
        """The node of a tensor; one that no operator here made is an attribute of the graph's module."""
        node = self.known(t)
        if node is None:
            prefix = "_param_constant" if isinstance(t, nn.Parameter) else "_tensor_constant"
            name = "%s%d" % (prefix, self._numbers[prefix])
            self._numbers[prefix] += 1
            self.constants[name] = t
            node = self.graph.create_node("get_attr", name, (), {}, name)
            self.track(t, node)
        return node

    def as_argument(self, value):
        return pytree.tree_map(lambda x: self.node_of(x) if isinstance(x, tenon.Tensor) else x, value)

    def note(self, node, value):
        """What a node gives: lists and tuples are taken apart."""
        node.meta["val"] = value
        if isinstance(value, tenon.Tensor):
            node.meta["tensor_meta"] = _extract_tensor_metadata(value)
            self.track(value, node)
        elif isinstance(value, (list, tuple)):
            for i, part in enumerate(value):
                if isinstance(part, tenon.Tensor):
                    self.note(self.graph.create_node("call_function", operator.getitem, (node, i), {}), part)

    def written(self, fresh):
        """A tensor that the function writes down is made anew in each call of the graph: it may write it."""
        with _disable_current_modes():
            copy = fresh.detach().clone()
        made = tenon.ops.aten.lift_fresh.default(fresh)  # what a fake mode makes of it
        literal = self.node_of(copy)
        literal.meta["val"] = made
        self.note(self.graph.create_node("call_function", tenon.ops.aten.lift_fresh_copy.default, (literal,), {}, "lift_fresh_copy"), made)
        return made

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not all(cls in (tenon.Tensor, nn.Parameter) for cls in types):
            return NotImplemented  # the class says what operators it is made of, and those come here
        replaced = self.decompositions.get(func)
        if replaced is not None:
            with self:
                made = replaced(*args, **kwargs)
            if made is not NotImplemented:
                return made
        if func is tenon.ops.aten._local_scalar_dense.default and self.known(args[0]) is not None:
            raise RuntimeError(
                "It appears that you're trying to get value out of a tracing tensor with %s - erroring out! It's likely that this "
                "is caused by data-dependent control flow or similar.  It may be possible to trace this with dynamic shapes; try "
                "setting tracing_mode='symbolic' in your make_fx call." % func)
        if func is tenon.ops.aten.lift_fresh.default:
            return self.written(args[0])
        node = self.graph.create_node("call_function", func, self.as_argument(args), self.as_argument(kwargs),
                                      func.overloadpacket.__name__)
        made = func(*args, **kwargs)
        self.note(node, made)
        return made


def _names(f, n):
    """What the arguments are called: as in the function, numbered where it takes any."""
    inner = inspect.unwrap(f)
    code = getattr(inner, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return ["arg%d" % i for i in range(n)]
    return list(inspect.signature(inner).parameters)[:n]


def make_fx(f, decomposition_table=None, tracing_mode="real", _allow_non_fake_inputs=False, *, pre_dispatch=False,
            record_module_stack=False, _allow_fake_constant=False, _error_on_data_dependent_ops=True, record_stack_traces=False,
            proxy_module_inputs=False, _disable_torch_fn_metadata_mode=False):
    """A function that calls `f` with its arguments and returns a GraphModule of the operators that ran. Sizes are those of the
    arguments; tensors that `f` takes from elsewhere are attributes of the module."""
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError("tracing_mode must be real/fake/symbolic, got %s" % tracing_mode)
    if tracing_mode == "symbolic":
        raise NotImplementedError("make_fx(tracing_mode='symbolic'): sizes are numbers in Tenon; tracing_mode='real' and 'fake' "
                                  "trace for the sizes that are given")

    def traced(*args):
        graph, made = Graph(), None
        fake = nullcontext()
        if tracing_mode == "fake":
            fake, args = _fakes(args, _allow_non_fake_inputs)
        recorder = _Recorder(graph, dict(decomposition_table or {}))
        for name, value in zip(_names(f, len(args)), args):
            node = graph.create_node("placeholder", name + "_1", (), {}, name + "_1")
            _inputs(recorder, node, value)
        _running.append(recorder)
        try:
            with fake, recorder:
                made = f(*args)
            graph.create_node("output", "output", (recorder.as_argument(made),), {})
            graph.eliminate_dead_code()
        finally:
            _running.pop()
        root = nn.Module()
        for name, value in recorder.constants.items():
            if isinstance(value, nn.Parameter):
                root.register_parameter(name, value)
            else:
                root.register_buffer(name, value)
        return GraphModule(root, graph, getattr(f, "__name__", type(f).__name__))

    return traced


def _fakes(args, allow_non_fake_inputs):
    """(a fake mode, the arguments with fake tensors of it): the mode of a fake tensor among them, where there is one."""
    known = [x.fake_mode for x in pytree.tree_leaves(args) if isinstance(x, FakeTensor)]
    mode = known[0] if known else FakeTensorMode(allow_non_fake_inputs=allow_non_fake_inputs)
    return mode, pytree.tree_map(lambda x: mode.from_tensor(x) if isinstance(x, tenon.Tensor) else x, args)


def _inputs(recorder, node, value):
    """An argument's tensors: the argument itself, or what is taken out of it by keys."""
    node.meta["val"] = value
    if isinstance(value, tenon.Tensor):
        recorder.note(node, value)
    elif isinstance(value, (list, tuple, dict)):
        for key in value if isinstance(value, dict) else range(len(value)):
            if any(isinstance(x, tenon.Tensor) for x in pytree.tree_leaves(value[key])):
                _inputs(recorder, recorder.graph.create_node("call_function", operator.getitem, (node, key), {}), value[key])
