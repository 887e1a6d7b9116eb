# SPDX-License-Identifier: MIT
"""Calling a module with other tensors in place of its parameters and buffers."""

import contextlib

from tenon.nn.modules.module import Module
from tenon.nn.utils._named_member_accessor import _MISSING, submodule, swap_tensor

__all__ = ["functional_call"]


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
            owner = submodule(module, path)
            before.append((name, owner, leaf, swap_tensor(owner, leaf, value, allow_missing=True)))
            if hasattr(owner, "_init_flat_weights"):
                owner._init_flat_weights()
        yield
    finally:
        for name, owner, leaf, value in reversed(before):
            now = swap_tensor(owner, leaf, value, allow_missing=True)
            if name in parameters_and_buffers and now is not given[name] and now is not _MISSING:
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
