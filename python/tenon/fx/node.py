# SPDX-License-Identifier: MIT
"""A node of a graph: one call, input, attribute or result, the nodes it uses, and the nodes that use it."""

import builtins
import operator
import types

import tenon
from tenon import _C

from .immutable_collections import immutable_dict, immutable_list

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = object    # a function, or the name of a method, module, attribute or input
Argument = object  # a node, a plain value, or a tuple, list, dict, slice or range of them

_OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root")
_side_effectful = {tenon._assert}


def has_side_effect(fn):
    """Mark a function: a call of it is no dead code. Gives the function."""
    _side_effectful.add(fn)
    return fn


def map_aggregate(a, fn):
    """`a` with fn called on every value inside its tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        values = [map_aggregate(x, fn) for x in a]
        return type(a)(*values) if hasattr(a, "_fields") else tuple(values)
    if isinstance(a, list):
        return immutable_list(map_aggregate(x, fn) for x in a)
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(x, fn)) for key, x in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a, fn):
    """`a` with fn called on every node inside it."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _resolve(path):
    """The object that a dotted path names, from the root of the package; None where it names nothing."""
    value = tenon
    for part in path.split(".")[1:]:
        value = getattr(value, part, None)
        if value is None:
            return None
    return value


def _get_qualified_name(function):
    """The path by which code finds a function: torch.cat, torch.nn.functional.relu, operator.add."""
    name = getattr(function, "__name__", None)
    if name is None:
        raise RuntimeError("Unable to resolve the name of %r" % (function,))
    if getattr(builtins, name, None) is function:
        return name
    if getattr(operator, name, None) is function:
        return "_operator." + name
    if isinstance(function, tenon._ops.OpOverload):
        return "%s.ops.%s" % (_C._module_name(), function)
    shown = _C._module_name()
    for place in ("", "nn.functional.", "_C._nn.", "functional."):
        if _resolve("tenon." + place + name) is function:
            return "%s.%s%s" % (shown, place, name)
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return "%s.Tensor.%s" % (shown, name)
    module = getattr(function, "__module__", None) or "builtins"
    if module.partition(".")[0] == "tenon":
        module = shown + module[len("tenon"):]
    return "%s.%s" % (module.replace("%s._ops" % shown, "%s.ops" % shown), name)


def _format(a):
    """An argument as `Graph.__str__` writes it: nodes have a % before them."""
    if isinstance(a, tuple):
        if hasattr(a, "_fields"):
            return "%s(%s)" % (type(a).__name__, ", ".join("%s=%s" % (f, _format(x)) for f, x in zip(a._fields, a)))
        return "(%s%s)" % (", ".join(_format(x) for x in a), "," if len(a) == 1 else "")
    if isinstance(a, list):
        return "[%s]" % ", ".join(_format(x) for x in a)
    if isinstance(a, dict):
        return "{%s}" % ", ".join("%s: %s" % (key, _format(x)) for key, x in a.items())
    return "%" + a.name if isinstance(a, Node) else str(a)


class Node:
    """One step. `op` says its kind and `target` what it calls; `args` and `kwargs` may hold nodes. `users` has the nodes
    that use it, `meta` what passes wrote about it."""

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _OPS:
            raise AssertionError("%s is not a valid op" % op)
        if op == "call_function":
            if not callable(target):
                raise ValueError("Node [graph = %s, name = '%s'] target %s has type %s but a Callable is expected" % (
                    graph, name, target, type(target)))
        elif not isinstance(target, str):
            raise ValueError("Node [graph = %s, name = '%s'] target %s has type %s but a str is expected" % (
                graph, name, target, type(target)))
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users, self.meta = {}, {}
        self._input_nodes = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn = None
        self._args, self._kwargs = (), {}
        self._set(map_arg(tuple(args), _itself), map_arg(dict(kwargs), _itself))

    def _set(self, args, kwargs):
        """Take other arguments, and keep the uses true."""
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}
        self._args, self._kwargs = args, kwargs

        def use(node):
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        map_arg((args, kwargs), use)

    args = property(lambda self: self._args, lambda self, args: self._set(map_arg(tuple(args), _itself), self._kwargs))
    kwargs = property(lambda self: self._kwargs,
                      lambda self, kwargs: self._set(self._args, map_arg(dict(kwargs), _itself)))
    next = property(lambda self: self._next)
    prev = property(lambda self: self._prev)

    @property
    def all_input_nodes(self):
        return list(self._input_nodes)

    @property
    def stack_trace(self):
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    def prepend(self, x):
        """Move x before this node."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x):
        """Move x after this node."""
        self._next.prepend(x)

    def _remove_from_list(self):
        self._prev._next, self._next._prev = self._next, self._prev
        self._prev = self._next = self

    def update_arg(self, idx, arg):
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = self.args[:idx] + (arg,) + self.args[idx:]

    def update_kwarg(self, key, arg):
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Let every node that uses this one use another; gives those nodes."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                                     "replace_with already has .meta keys")
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input, new_input):
        def other(node):
            return new_input if node is old_input else node

        self._set(map_arg(self._args, other), map_arg(self._kwargs, other))

    def is_impure(self, impure_random=True):
        """Whether it must stay although nobody uses it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            schema = getattr(self.target, "_schema", None)
            return self.target in _side_effectful or bool(schema is not None and schema.is_mutable) or \
                self.target in (operator.setitem,)
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return getattr(module.get_submodule(self.target), "_is_impure", False)
        return False

    def _pretty_print_target(self, target):
        if isinstance(target, str):
            return target
        name = getattr(target, "__module__", None)
        if name in ("builtins", "_operator") or getattr(operator, getattr(target, "__name__", ""), None) is target:
            return "%s.%s" % ("builtins" if name == "builtins" else "operator", target.__name__)
        return _get_qualified_name(target)

    def format_node(self, placeholder_names=None, maybe_return_typename=None, *, include_tensor_metadata=False):
        """The node as a line of `Graph.__str__`."""
        if self.op == "output":
            return "return %s" % (self.args[0],)
        line = "%%%s : [num_users=%d] = %s[target=%s]" % (
            self.name, len(self.users), self.op, self._pretty_print_target(self.target))
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target)
            return line + ("(default=%s)" % (self.args[0],) if self.args else "")
        if self.op == "get_attr":
            return line
        return line + "(args = %s, kwargs = %s)" % (_format(self.args), _format(self.kwargs))

    def __repr__(self):
        return self._repr_fn(self) if self._repr_fn else self.name

    def __lt__(self, other):
        """In the graph's order."""
        for node in self.graph.nodes:
            if node is self or node is other:
                return node is self and node is not other
        return False


def _itself(node):
    return node
