# SPDX-License-Identifier: MIT
"""A graph: nodes in the order in which they run, and the Python code that does the same."""

import builtins
import contextlib
import copy
import keyword
import math
import re

import tenon
from tenon import _C

from .node import Node, _get_qualified_name, map_aggregate, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

# How a call of these functions is written.
_WRITTEN = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "mod": "{} % {}",
    "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}", "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}",
    "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}", "pos": "+{}", "neg": "-{}", "invert": "~{}",
}
_IN_PLACE = {"iadd": "+=", "isub": "-=", "imul": "*=", "ifloordiv": "//=", "itruediv": "/=", "imod": "%=", "ipow": "**=",
             "ilshift": "<<=", "irshift": ">>=", "iand": "&=", "ior": "|=", "ixor": "^=", "imatmul": "@="}


class PythonCode:
    """The text of a forward function, and the global names that it needs."""

    def __init__(self, src, globals):
        self.src, self.globals = src, globals


class _Namespace:
    """Names of a function's locals: valid, and each used once."""

    def __init__(self):
        self._used = set()
        self._of = {}

    def create_name(self, candidate, obj=None):
        if obj is not None and obj in self._of:
            return self._of[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = "_" + candidate
        match = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (match.group(1), int(match.group(2))) if match else (candidate, 0)
        while candidate in self._used or self._illegal(candidate):
            number += 1
            candidate = "%s_%d" % (base, number)
        self._used.add(candidate)
        if obj is not None:
            self._of[obj] = candidate
        return candidate

    @staticmethod
    def _illegal(name):
        return name in keyword.kwlist or name in builtins.__dict__ or name in ("inf", "nan", "NoneType", "torch", "tenon",
                                                                               "device")


class _Nodes:
    """A graph's nodes, in order; a node that goes while they are walked is stepped over."""

    def __init__(self, graph, step="_next"):
        self.graph, self._step = graph, step

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        root = self.graph._root
        at = getattr(root, self._step)
        while at is not root:
            following = getattr(at, self._step)
            if not at._erased:
                yield at
                following = at._next if self._step == "_next" else at._prev
            at = following

    def __reversed__(self):
        return _Nodes(self.graph, "_prev" if self._step == "_next" else "_next")


class _InsertPoint:
    """New nodes of a graph go before `place`; where a block ends that this was the context of, to where they went before."""

    def __init__(self, graph, place):
        self._graph, self._old, graph._insert = graph, graph._insert, place

    def __enter__(self):
        return None

    def __exit__(self, kind, exception, traceback):
        self._graph._insert = self._old


class CodeGen:
    """Writes the code of a graph."""

    def __init__(self):
        self._body_transformer = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars, maybe_return_annotation=""):
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self"] + list(free_vars)
        return "def %s(%s)%s:" % (self._func_name, ", ".join(free_vars), maybe_return_annotation)

    def generate_output(self, output_args):
        return "return %s" % _text(output_args, repr)

    def process_inputs(self, *args):
        return args

    def process_outputs(self, outputs):
        return outputs

    def additional_globals(self):
        return []


def _text(a, plain):
    """An argument as code."""
    if isinstance(a, tuple):
        inner = ", ".join(_text(x, plain) for x in a)
        if hasattr(a, "_fields"):
            return "%s(%s)" % (plain(type(a)), inner)
        return "(%s%s)" % (inner, "," if len(a) == 1 else "")
    if isinstance(a, list):
        return "[%s]" % ", ".join(_text(x, plain) for x in a)
    if isinstance(a, dict):
        return "{%s}" % ", ".join("%r: %s" % (key, _text(x, plain)) for key, x in a.items())
    if isinstance(a, slice):
        return "slice(%s, %s, %s)" % (_text(a.start, plain), _text(a.stop, plain), _text(a.step, plain))
    return plain(a)


class _Globals:
    """The global names that code needs, as they turn up."""

    def __init__(self):
        root = _C._module_name()
        self.names = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), root: tenon, "device": tenon.device}
        self._namespace = _Namespace()

    def add(self, hint, value):
        """A name for a value."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self._namespace.create_name(hint.replace(".", "_"))
        while name in self.names:
            name = self._namespace.create_name(name + "_1")
        self.names[name] = value
        return name

    def of_function(self, function):
        """How code names a function: by its path where that leads to it, otherwise by a global name."""
        path = _get_qualified_name(function)
        parts = path.split(".")
        if parts[0] == _C._module_name():
            value = tenon
            for part in parts[1:]:
                value = getattr(value, part, None)
            if value is function:
                return path
        if getattr(builtins, parts[-1], None) is function:
            return parts[-1]
        return self.add(path, function)

    def of_value(self, value):
        """How code writes a plain value."""
        if isinstance(value, Node):
            return value.name
        if isinstance(value, (tenon.dtype, tenon.layout, tenon.memory_format)):
            return str(value)
        if value is None or value is Ellipsis or isinstance(value, (bool, int, str, float, complex, range, bytes)) and \
                type(value).__repr__ in (x.__repr__ for x in (bool, int, str, float, complex, range, bytes)):
            return repr(value)
        if isinstance(value, tenon.device):
            return repr(value)
        if isinstance(value, tenon._ops.OpOverload) or isinstance(value, type) or callable(value):
            return self.of_function(value)
        return self.add("_value", value)


class Graph:
    """Nodes in the order in which they run. New ones are made before `_insert`, which is the end unless a context of
    inserting_before or inserting_after says otherwise."""

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root
        self._len = 0
        self._namespace = _Namespace()
        self._owners = 0
        self._codegen = CodeGen()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras

    @property
    def owning_module(self):
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module):
        self._owning_module = module

    @property
    def nodes(self):
        return _Nodes(self)

    # ---- making ----

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        name = self._namespace.create_name(name if name is not None else self._target_to_str(target))
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._insert.prepend(node)
        self._len += 1
        return node

    @staticmethod
    def _target_to_str(target):
        name = getattr(target, "__name__", str(target)) if callable(target) else target
        if name[:2] == name[-2:] == "__" and len(name) > 4:
            name = name[2:-2]
        name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name))
        return name.lower() if callable(target) or "." not in target else name

    def placeholder(self, name, type_expr=None, default_value=...):
        return self.create_node("placeholder", name, () if default_value is ... else (default_value,),
                                type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        if self.owning_module is not None and not _has_module(self.owning_module, module_name):
            import warnings
            warnings.warn("Attempted to insert a call_module Node with no underlying reference in the owning "
                          "GraphModule! Call GraphModule.add_submodule to add the necessary submodule")
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result, type_expr=None):
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda x: x):
        """A node like one of another graph; arg_transform gives this graph's node for one of the other's."""
        new = self.create_node(node.op, node.target, map_arg(node.args, arg_transform),
                               map_arg(node.kwargs, arg_transform), node.name, node.type)
        new.meta = copy.copy(node.meta)
        return new

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copy another graph's nodes in; gives what the other's output node gives."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None):
        new = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        new._codegen = self._codegen
        memo = {} if memo is None else memo
        of = {}
        for node in self.nodes:
            of[node] = made = new.node_copy(node, lambda n: of[n])
            made.meta = {key: value for key, value in node.meta.items()}
        memo[id(self)] = new
        return new

    def __reduce__(self):
        at = {node: index for index, node in enumerate(self.nodes)}
        rows = [(n.name, n.op, n.target, map_aggregate(n.args, lambda x: _Reference(at[x]) if isinstance(x, Node) else x),
                 map_aggregate(n.kwargs, lambda x: _Reference(at[x]) if isinstance(x, Node) else x), n.type)
                for n in self.nodes]
        return _rebuilt, (rows,)

    # ---- changing ----

    def erase_node(self, to_erase):
        """Take out a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError("Tried to erase Node %s but it still had %d users in the graph: %s!" % (
                to_erase, len(to_erase.users), to_erase.users))
        if to_erase.graph is not self:
            raise RuntimeError("Attempting to remove %s from wrong graph!" % to_erase)
        if to_erase._erased:
            import warnings
            warnings.warn("erase_node(%s) on an already erased node" % to_erase)
            return
        before, after = to_erase._prev, to_erase._next
        to_erase._set((), {})
        to_erase._remove_from_list()
        to_erase._erased = True
        to_erase._prev, to_erase._next = before, after  # who walks the nodes goes on from here
        self._len -= 1

    def inserting_before(self, n=None):
        """From now on, and until the end of the block if this is a context, new nodes go before n, or to the start."""
        return _InsertPoint(self, self._root._next if n is None else n)

    def inserting_after(self, n=None):
        """From now on, and until the end of the block if this is a context, new nodes go after n, or to the end."""
        return _InsertPoint(self, self._root if n is None else n._next)

    def eliminate_dead_code(self, is_impure_node=None):
        """Take out nodes that nobody uses and that have no effect; whether there were any."""
        changed = False
        self.lint()
        for node in reversed(self.nodes):
            impure = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    # ---- looking ----

    def output_node(self):
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def find_nodes(self, *, op, target=None, sort=True):
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def process_inputs(self, *args):
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen):
        self._codegen = codegen

    def on_generate_code(self, make_transformer):
        """Let a function change the lines of the code; a context that undoes it."""
        old = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(old)

        @contextlib.contextmanager
        def until():
            try:
                yield
            finally:
                self._codegen._body_transformer = old

        return until()

    def lint(self):
        """Raise where a node uses one that comes later or is of another graph, or where two have one name."""
        seen, names = set(), set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError("Node '%s' does not belong to this Graph!" % node)
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError("Argument '%s' of Node '%s' does not belong to this Graph, but was used as an "
                                       "argument! If you are copying nodes from another graph, make sure to use "
                                       "``arg_transform`` on node_copy() to remap values\n%s" % (used, node, self))
                if used not in seen:
                    raise RuntimeError("Argument '%s' of Node '%s' was used before it has been defined! Please check "
                                       "that Nodes in the graph are topologically ordered\n%s" % (used, node, self))
            if node.name in names:
                raise RuntimeError("Node redefined name %s!" % node.name)
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op == "call_module" and \
                    not _has_module(self.owning_module, node.target):
                raise RuntimeError("Node %s target %s references nonexistent attribute %s of %s" % (
                    node, node.target, node.target.rpartition(".")[2], type(self.owning_module).__name__))

    def __str__(self):
        return "graph():" + "".join("\n    " + node.format_node() for node in self.nodes)

    def print_tabular(self):
        """Print the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [tuple(str(x) for x in (n.op, n.name, n.target, n.args, n.kwargs)) for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))
        print("\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows))

    # ---- code ----

    def python_code(self, root_module, *, verbose=False, include_stride=False, include_device=False, colored=False,
                    expanded_def=False, record_func=False, additional_meta=None):
        """The code of the graph: a function forward, whose first argument is the module."""
        known = _Globals()
        free, lines, last, wrapped = [], [], _last_uses(self), {}
        for node in self.nodes:
            if node.op == "placeholder":
                default = " = " + _text(node.args[0], known.of_value) if node.args else ""
                free.append(node.target + default)
                bare = node.target.replace("*", "")
                if bare != node.name:
                    lines.append("%s = %s" % (node.name, bare))
                continue
            if node.op == "output":
                given = _text(node.args[0], known.of_value)
                lines.append("return " + given if type(self._codegen) is CodeGen
                             else self._codegen.generate_output(node.args[0]))
                continue
            done = last.get(node, [])
            line = _line(node, root_module, known)
            if node.op == "call_function" and node.meta.get("is_wrapped"):
                wrapped.setdefault(known.of_function(node.target))
            lines.append(line + (";  %s = None" % " = ".join(n.name for n in done) if done else ""))
        if self._codegen._body_transformer is not None:
            lines = self._codegen._body_transformer([line + "\n" for line in lines])
            lines = "".join(lines).rstrip("\n").split("\n")
        for name, value in self._codegen.additional_globals():
            known.names[name] = value
        head = self._codegen.gen_fn_def(free)
        # what is recorded as one call stays so when the code is traced again
        first = "".join('%s.fx._symbolic_trace.wrap("%s")\n' % (_C._module_name(), name) for name in wrapped)
        return PythonCode("\n%s\n\n%s\n%s\n    " % (first[:-1], head, "\n".join("    " + x for x in lines or ["pass"])), known.names)


class _Reference:
    """The place of a node, in a pickled graph."""

    def __init__(self, at):
        self.at = at


def _rebuilt(rows):
    graph, made = Graph(), []
    for name, op, target, args, kwargs, kind in rows:
        def other(x):
            return made[x.at] if isinstance(x, _Reference) else x

        made.append(graph.create_node(op, target, map_aggregate(args, other), map_aggregate(kwargs, other), name, kind))
    return graph


def _has_module(root, target):
    try:
        root.get_submodule(target)
        return True
    except AttributeError:
        return False


def _last_uses(graph):
    """For each node the values that nobody needs after it."""
    last, seen = {}, set()
    for node in reversed(graph.nodes):
        if node.op == "output":
            seen.update(node.all_input_nodes)
            continue
        if node.op == "placeholder":
            continue
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                last.setdefault(node, []).append(used)
        if not node.users:
            last.setdefault(node, []).append(node)
    return last


def _path(root, target):
    """self.layers, and getattr(self.layers, "0") where a part is no name."""
    text = root
    for part in target.split("."):
        text = "%s.%s" % (text, part) if part.isidentifier() and part not in keyword.kwlist else \
            'getattr(%s, "%s")' % (text, part)
    return text


def _arguments(args, kwargs, known):
    return ", ".join([_text(a, known.of_value) for a in args] +
                     ["%s = %s" % (key, _text(a, known.of_value)) for key, a in kwargs.items()])


def _line(node, root, known):
    """One statement."""
    args, kwargs = node.args, node.kwargs
    if node.op == "get_attr":
        return "%s = %s" % (node.name, _path(root, node.target))
    if node.op == "call_module":
        return "%s = %s(%s)" % (node.name, _path(root, node.target), _arguments(args, kwargs, known))
    if node.op == "call_method":
        first = _text(args[0], known.of_value)
        if not isinstance(args[0], Node):
            first = "(%s)" % first
        return "%s = %s.%s(%s)" % (node.name, first, node.target, _arguments(args[1:], kwargs, known))
    target, name = node.target, getattr(node.target, "__name__", "")
    from_operator = getattr(target, "__module__", None) == "_operator"
    if from_operator and name in _WRITTEN and not kwargs:
        values = [_text(a, known.of_value) for a in args]
        values = [value if isinstance(a, Node) or name == "getitem" and i else "(%s)" % value
                  if isinstance(a, (int, float, complex)) and value.startswith("-") else value
                  for i, (a, value) in enumerate(zip(args, values))]
        return "%s = %s" % (node.name, _WRITTEN[name].format(*values))
    if from_operator and name in _IN_PLACE and not kwargs:
        first, second = (_text(a, known.of_value) for a in args)
        return "%s %s %s;  %s = %s" % (first, _IN_PLACE[name], second, node.name, first)
    if target is getattr and not kwargs and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier() and \
            args[1] not in keyword.kwlist and isinstance(args[0], Node):
        return "%s = %s.%s" % (node.name, args[0].name, args[1])
    return "%s = %s(%s)" % (node.name, known.of_function(target), _arguments(args, kwargs, known))
