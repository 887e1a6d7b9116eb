# SPDX-License-Identifier: MIT
"""A module whose forward is written from a graph."""

import copy
import linecache
import weakref

from tenon import nn

__all__ = ["GraphModule"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_written = 0


def _compiled(code, names):
    """The function of a text. Tracebacks show its lines, which are kept as long as its code is."""
    global _written
    _written += 1
    file = "<eval_with_key>.%d" % _written
    linecache.cache[file] = (len(code), None, [line + "\n" for line in code.splitlines()], file)
    found = dict(names)
    exec(compile(code, file, "exec"), found)
    forward = found["forward"]
    weakref.finalize(forward.__code__, linecache.cache.pop, file, None).atexit = False
    return forward


def _holder(module, target, make):
    """The module that holds the last part of a target, and that part."""
    *path, last = target.split(".")
    for part in path:
        following = getattr(module, part, None)
        if following is None and make:
            following = nn.Module()
            setattr(module, part, following)
        module = following
    return module, last


def _copy_attr(from_module, to_module, target):
    """Let to_module have what from_module has at a path; modules on the way are made."""
    source, last = _holder(from_module, target, False)
    place, _ = _holder(to_module, target, True)
    value = getattr(source, last)
    if last in getattr(source, "_buffers", {}):
        place.register_buffer(last, value, persistent=last not in source._non_persistent_buffers_set)
    else:
        setattr(place, last, value)


def _assign_attr(value, to_module, target):
    place, last = _holder(to_module, target, True)
    setattr(place, last, value)


class _CodeOnlyModule(nn.Module):
    """A module that has nothing but given attributes."""

    def __init__(self, body):
        super().__init__()
        self.__dict__ = body


class GraphModule(nn.Module):
    """Runs a graph: `code` is the Python of its forward, written anew by recompile()."""

    def __new__(cls, *args, **kwargs):
        """Each one has a class of its own, since the forward is the class's."""
        for base in cls.__mro__:
            if base.__qualname__ == "GraphModuleImpl":
                cls = base.__bases__[0]
                break
        return super().__new__(type("GraphModuleImpl", (cls,), {}))

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        used = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in used:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in used:
                if target not in root:
                    raise RuntimeError("Node referenced target %s but that target was not provided in ``root``!" % target)
            for target in sorted(set(used), key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError("Unsupported type %s passed for root!" % root)
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras
        self.meta = dict(getattr(root, "meta", None) or {})

    @property
    def graph(self):
        return self._graph

    @graph.setter
    def graph(self, g):
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self):
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self):
        """Write the code anew: call it after the graph was changed."""
        written = self._graph.python_code(root_module="self")
        self.__dict__["_code"] = written.src
        cls = type(self)
        cls.forward = _compiled(written.src, written.globals)
        return written

    def add_submodule(self, target, m):
        """Put a module at a path; whether that could be done."""
        place, last = self, target
        if "." in target:
            try:
                place, last = _holder(self, target, True)
            except AttributeError:
                return False
        if not isinstance(place, nn.Module):
            return False
        place.add_module(last, m)
        return True

    def delete_submodule(self, target):
        """Take the module at a path away; whether there was one."""
        place, last = _holder(self, target, False)
        if place is None or not isinstance(getattr(place, last, None), nn.Module):
            return False
        delattr(place, last)
        return True

    def delete_all_unused_submodules(self):
        """Take away the modules that no node needs."""
        used = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                try:
                    inner = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update("%s.%s" % (node.target, name) for name, _ in inner.named_modules() if name)
        for name in [name for name, _ in self.named_modules()]:
            if name and name not in used:
                self.delete_submodule(name)

    def print_readable(self, print_output=True, **options):
        """The class as one would write it."""
        text = "class %s(%s.nn.Module):\n%s" % (type(self).__name__, "torch", "\n".join(
            "    " + line if line.strip() else line for line in self._code.strip("\n").splitlines())) + "\n"
        if print_output:
            print(text)
        return text

    def __str__(self):
        return "\n".join([super().__repr__(), self._code,
                          "# To see more debug info, please use `graph_module.print_readable()`"])

    def __deepcopy__(self, memo):
        root = _CodeOnlyModule.__new__(_CodeOnlyModule)
        body = {key: value for key, value in self.__dict__.items() if key not in ("_graph", "_code")}
        root.__dict__ = copy.deepcopy(body, memo)
        new = GraphModule.__new__(type(self))
        GraphModule.__init__(new, root, copy.deepcopy(self._graph), type(self).__name__)
        new.meta = copy.copy(self.meta)
        new.training = self.training
        return new

    def __copy__(self):
        new = GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)
        new.meta = copy.copy(self.meta)
        return new

    def __reduce__(self):
        body = {key: value for key, value in self.__dict__.items() if key not in ("_graph", "_code", "_tracer_cls")}
        return _rebuilt, (body, self._graph, type(self).__name__)


def _rebuilt(body, graph, name):
    root = _CodeOnlyModule.__new__(_CodeOnlyModule)
    root.__dict__ = body
    module = GraphModule(root, graph, name)
    module.training = body.get("training", True)
    return module
