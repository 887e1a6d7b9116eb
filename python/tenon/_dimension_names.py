# SPDX-License-Identifier: MIT
"""Methods that name dimensions: none has a name here, so that names can be taken away, and not given."""


def _check(self, names, renames):
    if any(name is not None for name in names):
        raise RuntimeError("Tenon has no named tensors: dimensions are numbers")
    if renames:
        old, new = next(iter(renames.items()))
        raise RuntimeError("rename: Tried to rename dim '%s' to dim %s in Tensor[%s] but dim '%s' does not exist"
                           % (old, new, self.names, old))
    if names != (None,) and len(names) != self.dim():
        raise RuntimeError("Number of names (%d) and number of dimensions in tensor (%d) do not match. Attempted to create a tensor "
                           "with names %s" % (len(names), self.dim(), list(names)))


def rename(self, *names, **renames):
    """A view without names."""
    _check(self, names, renames)
    return self.view_as(self)


def rename_(self, *names, **renames):
    _check(self, names, renames)
    return self


def named(self, *names):
    """refine_names and align_to: what has names, or an order by them."""
    _check(self, names, {})
    return self.view_as(self)
