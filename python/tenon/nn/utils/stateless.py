# SPDX-License-Identifier: MIT
"""Calling a module with other tensors in place of its parameters and buffers."""

import contextlib

import tenon
from tenon.nn.modules.module import Module

__all__ = ["functional_call"]


_NOTHING = object()


def _owner(module, path):
    """The module of a dotted name, in the words of PyTorch's accessor where there is none."""
    for name in path.split(".") if path else ():
        below = getattr(module, name, _NOTHING)
        if below is _NOTHING:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if not isinstance(below, Module):
            raise TypeError(f"submodule `{name}`: {below} is not an instance of torch.nn.Module")
        module = below
    return module


def _put(owner, leaf, value):
    """Put a tensor in the place that a module has for this name, and return what was there. A name that it does not have is
    made an attribute; `_NOTHING` takes it away again."""
    if value is not _NOTHING and value is not None and not isinstance(value, tenon.Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    for table in (owner._parameters, owner._buffers):
        if leaf in table:
            before = table[leaf]
            if value is _NOTHING:
                del table[leaf]
            else:
                table[leaf] = value
            return before
    before = getattr(owner, leaf, _NOTHING)
    if before is not _NOTHING and before is not None and not isinstance(before, tenon.Tensor):
        raise TypeError(f"attribute `{leaf}`: {before} is not an instance of torch.Tensor")
    if value is not _NOTHING:
        setattr(owner, leaf, value)
    elif before is not _NOTHING:
        delattr(owner, leaf)
    return before


def _tied(module, given):
    """`given` with every name under which the module holds one of those tensors too."""
    names_of = {}
    for name, tensor in (
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ):
        names_of.setdefault(id(tensor), []).append(name)
    full = dict(given)
    for names in names_of.values():
        values = {id(given[n]): given[n] for n in names if n in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(n for n in names if n in given)}, which are tied. "
                "Consider using tie_weights=False"
            )
        if len(names) > 1 and values:
            (value,) = values.values()
            full.update((n, value) for n in names)
    return full


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False):
    """Hold the given tensors for the length of a block."""
    given = _tied(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        own = {n for n, _ in module.named_parameters(remove_duplicate=False)}
        own |= {n for n, _ in module.named_buffers(remove_duplicate=False)}
        unexpected = [n for n in given if n not in own]
        missing = sorted(own - set(given))
        texts = []
        if unexpected:
            texts.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
        if missing:
            texts.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
        if texts:
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(texts))
    before = []
    try:
        for name, value in given.items():
            path, _, leaf = name.rpartition(".")
            owner = _owner(module, path)
            before.append((name, owner, leaf, _put(owner, leaf, value)))
            if hasattr(owner, "_init_flat_weights"):
                owner._init_flat_weights()
        yield
    finally:
        for name, owner, leaf, value in reversed(before):
            now = _put(owner, leaf, value)
            if name in parameters_and_buffers and now is not given[name] and now is not _NOTHING:
                parameters_and_buffers[name] = now  # a tensor that the call replaced is the caller's to keep
            if hasattr(owner, "_init_flat_weights"):
                owner._init_flat_weights()


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """`module(*args, **kwargs)` with the given tensors in place of those it holds under these names."""
    import warnings

    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
