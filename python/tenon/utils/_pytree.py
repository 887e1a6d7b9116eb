# SPDX-License-Identifier: MIT
"""Trees of containers: take the leaves out, put others in. Lists, tuples, named tuples, dicts, ordered and default
dicts, deques and what operators return several results in are containers; other classes can be registered.

A shape is a TreeSpec. Where a leaf is, is said by a path of keys: SequenceKey, MappingKey, GetAttrKey."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import tenon

__all__ = ["PyTree", "Context", "FlattenFunc", "UnflattenFunc", "DumpableContext", "ToDumpableContextFn",
           "FromDumpableContextFn", "PyTreeSpec", "TreeSpec", "LeafSpec", "keystr", "key_get", "register_pytree_node",
           "tree_is_leaf", "tree_flatten", "tree_flatten_with_path", "tree_unflatten", "tree_iter", "tree_leaves",
           "tree_leaves_with_path", "tree_structure", "tree_map", "tree_map_with_path", "tree_map_", "tree_map_only",
           "tree_map_only_", "tree_all", "tree_any", "tree_all_only", "tree_any_only", "treespec_dumps",
           "treespec_loads", "treespec_pprint", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance",
           "is_structseq", "is_structseq_class", "is_structseq_instance"]

PyTree = Context = FlattenFunc = UnflattenFunc = DumpableContext = object
ToDumpableContextFn = FromDumpableContextFn = KeyEntry = KeyPath = object


# ---- keys of a path ----

class SequenceKey(namedtuple("SequenceKey", "idx")):
    """An item of a list, tuple or deque."""

    __slots__ = ()

    def __str__(self):
        return "[%r]" % self.idx

    def get(self, sequence):
        return sequence[self.idx]


class MappingKey(namedtuple("MappingKey", "key")):
    """A value of a dict."""

    __slots__ = ()

    def __str__(self):
        return "[%r]" % (self.key,)

    def get(self, mapping):
        return mapping[self.key]


class GetAttrKey(namedtuple("GetAttrKey", "name")):
    """An attribute of an object."""

    __slots__ = ()

    def __str__(self):
        return "." + self.name

    def get(self, obj):
        return getattr(obj, self.name)


def keystr(path):
    """The path as one would write it in Python."""
    return "".join(map(str, path))


def key_get(obj, path):
    """What is at the end of the path."""
    for key in path:
        obj = key.get(obj)
    return obj


# ---- classes that are containers ----

class NodeDef(namedtuple("NodeDef", "type flatten_fn unflatten_fn flatten_with_keys_fn")):
    """How a class is taken apart and put together."""

    __slots__ = ()


SUPPORTED_NODES: dict = {}
SUPPORTED_SERIALIZED_TYPES: dict = {}  # class: its name, and how its context is written and read
BUILTIN_TYPES: frozenset = frozenset()
STANDARD_DICT_TYPES: frozenset = frozenset()
CONSTANT_NODES: set = set()


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None,
                         from_dumpable_context=None, flatten_with_keys_fn=None):
    """``flatten_fn(x)`` gives (children, context); ``unflatten_fn(children, context)`` gives x back."""
    if cls in SUPPORTED_NODES:
        raise ValueError("%s is already registered as pytree node." % cls)
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError("Both to_dumpable_context and from_dumpable_context for %s must be None or registered." % cls)
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = (serialized_type_name, to_dumpable_context, from_dumpable_context)


_register_pytree_node = _private_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls):
    del SUPPORTED_NODES[cls]
    del SUPPORTED_SERIALIZED_TYPES[cls]


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Make a dataclass a container of its fields."""
    import dataclasses
    names = [f.name for f in dataclasses.fields(cls) if f.init] if field_names is None else list(field_names)
    names = [n for n in names if n not in (drop_field_names or ())]

    def flatten(obj):
        there = [n for n in names if getattr(obj, n) is not None]
        return [getattr(obj, n) for n in there], [there, [n for n in names if n not in there]]

    def flatten_with_keys(obj):
        children, context = flatten(obj)
        return [(GetAttrKey(n), v) for n, v in zip(context[0], children)], context

    def unflatten(children, context):
        return cls(**dict(zip(context[0], children)), **dict.fromkeys(context[1]))

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                         flatten_with_keys_fn=flatten_with_keys)


class ConstantNode(namedtuple("ConstantNode", "value")):
    """The context of an object that is no leaf and has none."""

    __slots__ = ()


def register_constant(cls):
    """Objects of the class belong to the shape of a tree, and are no leaves; they must be hashable and comparable."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    register_pytree_node(cls, lambda x: ([], ConstantNode(x)), lambda _, context: context.value,
                         flatten_with_keys_fn=lambda x: ([], ConstantNode(x)))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls):
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _numbered(flatten):
    """With the places of children as their keys."""
    def with_keys(x):
        children, context = flatten(x)
        return [(SequenceKey(i), c) for i, c in enumerate(children)], context
    return with_keys


def _register_sequence(cls, name, context=lambda x: None, build=None):
    def flatten(x):
        return list(x), context(x)
    register_pytree_node(cls, flatten, build or (lambda children, context: cls(children)), serialized_type_name=name,
                         flatten_with_keys_fn=_numbered(flatten))


def _register_mapping(cls, name, context=list, build=None, **dump):
    def flatten_with_keys(x):
        return [(MappingKey(k), v) for k, v in x.items()], context(x)
    register_pytree_node(cls, lambda x: (list(x.values()), context(x)),
                         build or (lambda children, context: cls(zip(context, children))), serialized_type_name=name,
                         flatten_with_keys_fn=flatten_with_keys, **dump)


_register_sequence(tuple, "builtins.tuple")
_register_sequence(list, "builtins.list")
_register_sequence(tenon.Size, "torch.Size")
_register_sequence(deque, "collections.deque", lambda x: x.maxlen, lambda children, maxlen: deque(children, maxlen))
_register_mapping(dict, "builtins.dict")
_register_mapping(OrderedDict, "collections.OrderedDict")
_register_mapping(defaultdict, "collections.defaultdict", lambda x: [x.default_factory, list(x)],
                  lambda children, context: defaultdict(context[0], zip(context[1], children)))
register_pytree_node(
    namedtuple, lambda x: (list(x), type(x)), lambda children, cls: cls(*children),
    serialized_type_name="collections.namedtuple",
    flatten_with_keys_fn=lambda x: ([(GetAttrKey(n), getattr(x, n)) for n in x._fields], type(x)))
for _cls in (dict, list, tuple):  # PyTorch's names for these functions, which packages register for their own classes
    for _what in ("flatten", "unflatten", "flatten_with_keys"):
        globals()["_%s_%s" % (_cls.__name__, _what)] = getattr(SUPPORTED_NODES[_cls], _what + "_fn")
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)
STANDARD_DICT_TYPES = frozenset((dict, OrderedDict, defaultdict))


def is_namedtuple_class(cls):
    return (isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)
            and callable(getattr(cls, "_make", None)) and all(isinstance(n, str) for n in cls._fields))


def is_namedtuple_instance(obj):
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """Whether it is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls):
    """Whether operators return several results in it: ``tenon.return_types``."""
    return (isinstance(cls, type) and tuple in cls.__bases__ and not hasattr(cls, "_fields")
            and isinstance(getattr(cls, "n_sequence_fields", None), int))


def is_structseq_instance(obj):
    return is_structseq_class(type(obj))


def is_structseq(obj):
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _get_node_type(tree):
    cls = type(tree)
    if cls not in SUPPORTED_NODES:
        if is_namedtuple_class(cls):
            return namedtuple
        if is_structseq_class(cls):
            _register_sequence(cls, None)
    return cls


def tree_is_leaf(tree, is_leaf=None):
    """Whether it is no container, or ``is_leaf`` says so."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


# ---- shapes ----

class TreeSpec:
    """The shape of a tree: the class of a container, what it needs besides its children, and their shapes."""

    def __init__(self, type, context, children_specs):
        self.type, self._context, self._children = type, context, list(children_specs)
        self.num_leaves = sum(spec.num_leaves for spec in self._children)
        self.num_nodes = 1 + sum(spec.num_nodes for spec in self._children)
        self.num_children = len(self._children)

    context = property(lambda self: self._context)
    children_specs = property(lambda self: self._children)

    def children(self):
        return list(self._children)

    def child(self, index):
        return self._children[index]

    def is_leaf(self):
        return self.num_nodes == 1 and self.num_leaves == 1

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.type is other.type and self._context == other._context and self._children == other._children

    def __hash__(self):
        return hash((self.type, self.num_leaves, self.num_children))

    def __repr__(self):
        return self._text(2)

    def _text(self, indent):
        children = (",\n" + " " * indent).join(child._text(indent + 2) for child in self._children)
        return "TreeSpec(%s, %s, [%s])" % (self.type.__name__, self._context, children)

    def unflatten(self, leaves):
        """The tree of that shape with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError("treespec.unflatten(leaves): `leaves` has length %d but the spec refers to a pytree that "
                             "holds %d items (%s)." % (len(leaves), self.num_leaves, self))
        return self._build(iter(leaves))

    def _build(self, leaves):
        return SUPPORTED_NODES[self.type].unflatten_fn([child._build(leaves) for child in self._children],
                                                       self._context)

    def flatten_up_to(self, tree):
        """The parts of a tree that starts with this shape, one for each leaf of the shape."""
        parts = []
        self._collect(tree, parts)
        return parts

    def _collect(self, tree, parts):
        cls = _get_node_type(tree)
        mappings = self.type in STANDARD_DICT_TYPES and cls in STANDARD_DICT_TYPES
        if cls is not self.type and not mappings:
            raise ValueError("Node type mismatch; expected %r, but got %r." % (self.type, cls))
        children, context = SUPPORTED_NODES[cls].flatten_fn(tree)
        if mappings:
            wanted = self._context[1] if self.type is defaultdict else self._context
            if set(wanted) != set(tree):
                missing, extra = set(wanted) - set(tree), set(tree) - set(wanted)
                raise ValueError("Node keys mismatch%s%s." % (
                    "; missing key(s): %s" % missing if missing else "", "; extra key(s): %s" % extra if extra else ""))
            children = [tree[key] for key in wanted]
        elif len(children) != self.num_children:
            raise ValueError("Node arity mismatch; expected %d, but got %d." % (self.num_children, len(children)))
        elif cls is not deque and context != self._context:
            raise ValueError("Node context mismatch for custom node type %r." % self.type)
        for spec, child in zip(self._children, children):
            spec._collect(child, parts)


class LeafSpec(TreeSpec):
    """A place for one leaf."""

    def __init__(self):
        super().__init__(None, None, [])
        self.num_leaves = 1

    def _text(self, indent):
        return "*"

    def _build(self, leaves):
        return next(leaves)

    def _collect(self, tree, parts):
        parts.append(tree)


PyTreeSpec = TreeSpec
_LEAF_SPEC = LeafSpec()


def treespec_leaf():
    return _LEAF_SPEC


def treespec_tuple(iterable=(), /):
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping=(), /, **kwargs):
    both = dict(mapping, **kwargs)
    return TreeSpec(dict, list(both), list(both.values()))


# ---- leaves ----

def _flatten(tree, leaves, is_leaf=None):
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    cls = _get_node_type(tree)
    children, context = SUPPORTED_NODES[cls].flatten_fn(tree)
    return TreeSpec(cls, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree, is_leaf=None):
    """The leaves, and the shape."""
    leaves = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """The tree of that shape with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError("tree_unflatten(leaves, treespec): Expected `treespec` to be instance of PyTreeSpec but got item "
                        "of type %s." % type(treespec))
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args, **kwargs):
    """The leaves of arguments."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def _paths(tree, path, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    cls = _get_node_type(tree)
    with_keys = SUPPORTED_NODES[cls].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError("Did not find a flatten_with_keys_fn for type: %s. Please pass a flatten_with_keys_fn argument to "
                         "register_pytree_node." % cls)
    for key, child in with_keys(tree)[0]:
        yield from _paths(child, path + (key,), is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """Pairs of a path and the leaf that is there."""
    return list(_paths(tree, (), is_leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    """Pairs of a path and the leaf that is there, and the shape."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


# ---- functions of leaves ----

def tree_map(func, tree, *rests, is_leaf=None):
    """A tree of func(leaf, …); the further trees start with the shape of the first."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call func on the leaves, and return the tree as it was."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for row in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests)):
        func(*row)
    return tree


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """As tree_map, of func(path, leaf, …)."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = list(zip(*pairs)) or [(), ()]
    return spec.unflatten(map(func, *columns, *(spec.flatten_up_to(rest) for rest in rests)))


def _chooses(types):
    if isinstance(types, (type, tuple)) or type(types).__name__ == "UnionType":
        return lambda leaf: isinstance(leaf, types)
    if callable(types):
        return types
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred, /):
    """A decorator: the function is called on what is chosen, the rest stays as it is."""
    chosen = _chooses(type_or_types_or_pred)

    def wrapper(func):
        return lambda leaf: func(leaf) if chosen(leaf) else leaf
    return wrapper


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """As tree_map, on the leaves that are chosen alone."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """One leaf of ``tree`` for each leaf of the shape, which it may be a prefix of; None where it is none."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found = []
    for child, spec in zip(children, treespec.children_specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


# ---- shapes as text ----

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


def _described(spec):
    import json
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    name, dump, _ = SUPPORTED_SERIALIZED_TYPES[spec.type]
    if name is None:
        raise NotImplementedError("No registered serialization name for %s found. Please update your "
                                  "_register_pytree_node call with a `serialized_type_name` kwarg." % spec.type)
    context = spec.context
    if spec.type is namedtuple:
        context = "%s.%s" % (context.__module__, context.__qualname__)
    elif spec.type is defaultdict:
        kind = context[0]
        context = {"default_factory_module": kind.__module__, "default_factory_name": kind.__qualname__,
                   "dict_context": context[1]}
    text = json.dumps(dump(context) if dump else context)
    return {"type": name, "context": text, "children_spec": [_described(child) for child in spec.children_specs]}


def treespec_dumps(treespec, protocol=None):
    """The shape as JSON."""
    import json
    if not isinstance(treespec, TreeSpec):
        raise TypeError("treespec_dumps(treespec, protocol): Expected `treespec` to be instance of PyTreeSpec but got item "
                        "of type %s." % type(treespec))
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError("Unknown protocol %s. Available protocols: [1]" % protocol)
    return json.dumps((protocol, _described(treespec)))


def _named(module, name):
    import importlib
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _read(described):
    import json
    name = described["type"]
    if name is None:
        return _LEAF_SPEC
    found = [cls for cls, entry in SUPPORTED_SERIALIZED_TYPES.items() if entry[0] == name]
    if not found:
        raise NotImplementedError("Deserializing %s in pytree is not registered." % name)
    context = json.loads(described["context"])
    load = SUPPORTED_SERIALIZED_TYPES[found[0]][2]
    if load:
        context = load(context)
    elif found[0] is namedtuple:
        context = _named(*context.rsplit(".", 1))
    elif found[0] is defaultdict:
        context = [_named(context["default_factory_module"], context["default_factory_name"]), context["dict_context"]]
    return TreeSpec(found[0], context, [_read(child) for child in described["children_spec"]])


def treespec_loads(serialized):
    """The shape that treespec_dumps wrote."""
    import json
    protocol, described = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError("Unknown protocol %s. Available protocols: [1]" % protocol)
    return _read(described)


class _Star:
    def __repr__(self):
        return "*"


def treespec_pprint(treespec):
    """The shape as a tree of stars."""
    return repr(treespec.unflatten(_Star() for _ in range(treespec.num_leaves)))
