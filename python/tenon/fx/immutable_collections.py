# SPDX-License-Identifier: MIT
"""Lists and dicts that nobody changes in place: a node's arguments are these, so that the uses it has counted stay true."""

__all__ = ["immutable_dict", "immutable_list"]

_HELP = "If you are attempting to modify the kwargs or args of a torch.fx.Node object,\n" \
        "instead create a new copy of it and assign the copy to the node:\n" \
        "    new_args = ...  # copy and mutate args\n    node.args = new_args\n"


def _refuse(self, *args, **kwargs):
    raise TypeError("%r object does not support mutation. %s" % (type(self).__name__, _HELP))


class immutable_list(list):
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    clear = pop = popitem = setdefault = update = __delitem__ = __ior__ = __setitem__ = _refuse

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return immutable_dict, (tuple(self.items()),)
