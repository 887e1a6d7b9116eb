# SPDX-License-Identifier: MIT
"""Proxies: what a traced function is called with. Everything that is done to one becomes a node."""

import dis
import inspect
import operator
import sys

import tenon

from .node import Node, map_aggregate

__all__ = ["Attribute", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """What was asked needs a value, and a proxy has none."""


class TracerBase:
    """Makes nodes and proxies."""

    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node):
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """A node of these arguments, in which proxies may stand, and its proxy."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a):
        """What a value is as an argument of a node."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            values = [self.create_arg(x) for x in a]
            return type(a)(*values) if hasattr(a, "_fields") else tuple(values)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            def no_node(key):
                if isinstance(key, Node):
                    raise RuntimeError("Keys for dictionaries used as an argument cannot contain a Node. Got key: %s" %
                                       key)
                return key

            result = {}
            for key, value in a.items():
                key = self.create_arg(key)
                map_aggregate(key, no_node)
                result[key] = self.create_arg(value)
            return result
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if a is None or a is Ellipsis or isinstance(a, (str, int, float, bool, complex, tenon.dtype, tenon.Tensor,
                                                        tenon.device, tenon.memory_format, tenon.layout,
                                                        tenon._ops.OpOverload, Node)):
            return a
        if inspect.isclass(a) or inspect.isfunction(a) or inspect.isbuiltin(a):
            return a
        import enum
        if isinstance(a, enum.Enum):
            return a
        raise NotImplementedError("argument of type: %s" % type(a))

    def to_bool(self, obj):
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """`a, b = proxy` is known by the caller's code; other loops have no length to go by."""
        frame = sys._getframe(2)
        code, at = frame.f_code, frame.f_lasti
        for instruction in dis.get_instructions(code):
            if instruction.offset == at:
                if instruction.opname == "UNPACK_SEQUENCE":
                    return (obj[i] for i in range(instruction.argval))
                break
        raise TraceError("Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as "
                         "a *args or **kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed "
                         "explanation of what types of control flow can be traced, and check out the Proxy docstring for "
                         "help troubleshooting Proxy iteration errors")

    def keys(self, obj):
        """For **proxy."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """For proxies that are made by hand: nodes go to the end of a graph."""

    def __init__(self, graph):
        self.graph = graph


class Proxy:
    """Stands for the value of a node."""

    def __init__(self, node, tracer=None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self):
        return "Proxy(%s)" % self.node.name

    def __getattr__(self, k):
        return Attribute(self, k)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, d):
        self.__dict__ = d

    def __deepcopy__(self, memo):
        import copy
        new = Proxy.__new__(type(self))
        new.__dict__ = {key: copy.deepcopy(value, memo) for key, value in self.__dict__.items()}
        return new

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self,) + args, kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self):
        return self.tracer.to_bool(self)

    def keys(self):
        return self.tracer.keys(self)

    def __len__(self):
        raise RuntimeError("'len' is not supported in symbolic tracing by default. If you want this call to be recorded, "
                           "please call torch.fx.wrap('len') at module scope")

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        tracers = []

        def find(x):
            if isinstance(x, Proxy):
                tracers.append(x.tracer)
            return x

        map_aggregate((args, kwargs), find)
        tracer = tracers[0]
        if any(t is not tracer for t in tracers):
            raise RuntimeError("Found multiple different tracers %s while trying to trace operations %s" % (
                tracers, orig_method))
        if tenon.overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs,
                                   name=getattr(orig_method, "__name__", None) if callable(orig_method) else None)

    __hash__ = object.__hash__


class Attribute(Proxy):
    """proxy.name: a call of it is a call of a method, another use of it takes the attribute."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root,) + args, kwargs)


class ParameterProxy(Proxy):
    """A parameter's proxy: its shape and dimensions are known, and asking for them makes no node."""

    def __init__(self, tracer, node, name, param):
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self):
        return "ParameterProxy(%s)" % self.name

    @property
    def shape(self):
        return self.param.shape

    @property
    def ndim(self):
        return self.param.ndim

    def size(self, *args):
        return self.param.size(*args)

    def dim(self):
        return self.param.dim()

    def numel(self):
        return self.param.numel()

    def nelement(self):
        return self.param.nelement()


def _add_operators():
    def forward(function):
        def method(self, *args, **kwargs):
            return self.tracer.create_proxy("call_function", function, (self,) + args, kwargs)
        return method

    def reflected(function):
        def method(self, other):
            return self.tracer.create_proxy("call_function", function, (other, self), {})
        return method

    two = ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "matmul")
    for name in two + ("eq", "ne", "lt", "gt", "le", "ge", "getitem", "neg", "pos", "invert"):
        setattr(Proxy, "__%s__" % name, forward(getattr(operator, name)))
    for name in two:
        setattr(Proxy, "__r%s__" % name, reflected(getattr(operator, name)))
    for name, function in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)):
        setattr(Proxy, "__%s__" % name, forward(function))
        setattr(Proxy, "__r%s__" % name, reflected(function))


_add_operators()
