# SPDX-License-Identifier: MIT
"""Tensors of a module by dotted names: read, put and exchanged in place."""

import tenon

__all__ = []

_MISSING = object()


def _table(module, name):
    """The dict of a module that holds a name, or None."""
    for table in (module._parameters, module._buffers):
        if name in table:
            return table
    return None


def submodule(module, path):
    """The module of a dotted name, or the module itself for none."""
    for name in path.split(".") if path else ():
        below = getattr(module, name, _MISSING)
        if below is _MISSING:
            raise AttributeError("%s has no attribute `%s`" % (module._get_name(), name))
        if not isinstance(below, tenon.nn.Module):
            raise TypeError("submodule `%s`: %s is not an instance of torch.nn.Module" % (name, below))
        module = below
    return module


def set_tensor(module, name, tensor):
    """Put a tensor in a module under a name of its own, whatever was there."""
    if "." in name:
        raise KeyError("tensor name can't contain \".\"")
    if not isinstance(tensor, tenon.Tensor) and tensor is not None:
        raise TypeError("%r is not an instance of torch.Tensor" % (tensor,))
    table = _table(module, name)
    if table is not None:
        table[name] = tensor
    else:
        setattr(module, name, tensor)


def swap_tensor(module, name, tensor, allow_missing=False):
    """Put a tensor in a module, and give what was there. A tensor that is `_MISSING` takes the name away."""
    if not isinstance(module, tenon.nn.Module):
        raise TypeError("%s is not an instance of torch.nn.Module" % (module,))
    if name == "":
        raise KeyError("tensor name can't be empty string \"\"")
    if "." in name:
        raise KeyError("tensor name can't contain \".\"")
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, tenon.Tensor):
        raise TypeError("%s is not an instance of torch.Tensor" % (tensor,))
    table = _table(module, name)
    if table is not None:
        old = table[name]
        if tensor is _MISSING:
            del table[name]
        else:
            table[name] = tensor
        return old
    old = getattr(module, name, _MISSING)
    if old is _MISSING and not allow_missing:
        raise AttributeError("%s has no attribute `%s`" % (module._get_name(), name))
    if old is not _MISSING and old is not None and not isinstance(old, tenon.Tensor):
        raise TypeError("attribute `%s`: %s is not an instance of torch.Tensor" % (name, old))
    if tensor is _MISSING:
        if old is not _MISSING:
            delattr(module, name)
    else:
        setattr(module, name, tensor)
    return old


class NamedMemberAccessor:
    """The tensors and modules of a module by their dotted names."""

    def __init__(self, module):
        self.module = module

    def _at(self, name):
        path, _, last = name.rpartition(".")
        return submodule(self.module, path), last

    def get_submodule(self, name):
        return submodule(self.module, name)

    def get_tensor(self, name):
        module, last = self._at(name)
        value = getattr(module, last)
        if value is not None and not isinstance(value, tenon.Tensor):
            raise TypeError("tensor `%s`: %s is not an instance of torch.Tensor" % (name, value))
        return value

    def set_tensor(self, name, value):
        module, last = self._at(name)
        set_tensor(module, last, value)

    def del_tensor(self, name):
        module, last = self._at(name)
        swap_tensor(module, last, _MISSING)

    def swap_tensor(self, name, value, allow_missing=False):
        module, last = self._at(name)
        return swap_tensor(module, last, value, allow_missing)

    def get_tensors(self, names):
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names, values):
        for name, value in zip(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors):
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def swap_tensors_dict(self, named_tensors, allow_missing=False):
        """Put all, and give what was there and the names that were missing; on an error nothing is changed."""
        old, missing = {}, []
        try:
            for name, value in named_tensors.items():
                was = self.swap_tensor(name, value, allow_missing=True)
                old[name] = was
                if was is _MISSING:
                    missing.append(name)
                    if not allow_missing:
                        raise RuntimeError("Missing key(s): %s." % ", ".join(map(repr, missing)))
        except Exception:
            for name, value in old.items():
                self.swap_tensor(name, value, allow_missing=True)
            raise
        return old, missing

    def named_parameters(self, remove_duplicate=True):
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate=True):
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate=True):
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate=True):
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
