# SPDX-License-Identifier: MIT
"""Trees of containers: take the leaves out, put others in. Lists, tuples, named tuples, dicts, ordered and default
dicts and deques are containers; other classes can be registered."""

from collections import OrderedDict, defaultdict, deque

__all__ = ["LeafSpec", "PyTree", "TreeSpec", "register_pytree_node", "tree_all", "tree_any", "tree_flatten",
           "tree_iter", "tree_leaves", "tree_map", "tree_map_", "tree_map_only", "tree_structure", "tree_unflatten"]

PyTree = object
_registered = {}


def register_pytree_node(cls, flatten_fn, unflatten_fn, **options):
    """flatten_fn(x) gives (children, context); unflatten_fn(children, context) gives x back."""
    if cls in _registered:
        raise ValueError("%s is already registered as pytree node." % cls)
    _registered[cls] = (flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node

for _cls in (list, tuple, deque):
    register_pytree_node(_cls, lambda x: (list(x), None), lambda children, context, cls=_cls: cls(children))
for _cls in (dict, OrderedDict):
    register_pytree_node(_cls, lambda x: (list(x.values()), list(x)),
                         lambda children, context, cls=_cls: cls(zip(context, children)))
register_pytree_node(defaultdict, lambda x: (list(x.values()), (x.default_factory, list(x))),
                     lambda children, context: defaultdict(context[0], zip(context[1], children)))


def _is_namedtuple(value):
    return isinstance(value, tuple) and type(value) is not tuple and hasattr(value, "_fields")


class TreeSpec:
    """The shape of a tree: the class of a container, what it needs besides its children, and their shapes."""

    def __init__(self, type, context, children_specs):
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_leaves = sum(spec.num_leaves for spec in children_specs)
        self.num_children = len(children_specs)

    def is_leaf(self):
        return False

    def __eq__(self, other):
        return (isinstance(other, TreeSpec) and self.type is other.type and self.context == other.context
                and self.children_specs == other.children_specs)

    def __hash__(self):
        return hash((self.type, self.num_leaves))

    def __repr__(self):
        return "TreeSpec(%s, %s, %s)" % (getattr(self.type, "__name__", None), self.context, self.children_specs)

    def unflatten(self, leaves):
        return tree_unflatten(leaves, self)


class LeafSpec(TreeSpec):
    """A place for one leaf."""

    def __init__(self):
        super().__init__(None, None, [])
        self.num_leaves = 1

    def is_leaf(self):
        return True

    def __repr__(self):
        return "*"


def _children(tree, is_leaf):
    """(class, children, context) of a container; None of a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    if _is_namedtuple(tree) and type(tree) not in _registered:
        return type(tree), list(tree), type(tree)
    found = _registered.get(type(tree))
    if found is None:
        return None
    children, context = found[0](tree)
    return type(tree), list(children), context


def tree_flatten(tree, is_leaf=None):
    """The leaves, and the shape."""
    leaves = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree, leaves, is_leaf):
    found = _children(tree, is_leaf)
    if found is None:
        leaves.append(tree)
        return LeafSpec()
    cls, children, context = found
    return TreeSpec(cls, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves, treespec):
    """The tree of that shape with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError("tree_unflatten(leaves, treespec): `leaves` has length %d but the spec refers to a pytree that "
                         "holds %d items (%s)." % (len(leaves), treespec.num_leaves, treespec))
    return _unflatten(iter(leaves), treespec)


def _unflatten(leaves, spec):
    if spec.is_leaf():
        return next(leaves)
    children = [_unflatten(leaves, child) for child in spec.children_specs]
    if spec.type not in _registered:
        return spec.type(*children)
    return _registered[spec.type][1](children, spec.context)


def tree_iter(tree, is_leaf=None):
    found = _children(tree, is_leaf)
    if found is None:
        yield tree
        return
    for child in found[1]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """A tree of func(leaf, …) of the leaves of trees of one shape."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    for rest, found in zip(rests, others):
        if len(found) != len(leaves):
            raise ValueError("tree_map: the trees do not have the same shape")
    return tree_unflatten([func(*row) for row in zip(leaves, *others)], spec)


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call func on the leaves, and return the tree as it was."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(types, func=None, tree=None, is_leaf=None):
    """As tree_map, on leaves of the types given alone."""
    test = types if callable(types) and not isinstance(types, type) else lambda leaf: isinstance(leaf, types)
    return tree_map(lambda leaf: func(leaf) if test(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_iter(tree, is_leaf)))
