# SPDX-License-Identifier: MIT
"""The package functorch, as scripts from before torch.func import it: modules taken apart into a function and its
parameters. Under as_torch, `import functorch` gives this module."""

import copy

import tenon
from tenon.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from tenon.nn.utils.stateless import _functional_call

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad",
           "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers",
           "vjp", "vmap"]


def _take_apart(model, fixed):
    """A copy of the module to call, and the names and values of its parameters and buffers."""
    bare = copy.deepcopy(model)
    for _, p in bare.named_parameters():
        p.requires_grad_(False)
    params = dict(model.named_parameters())
    values = [tenon.nn.Parameter(p.detach(), requires_grad=False) if fixed else p for p in params.values()]
    return bare, tuple(params), tuple(values), dict(model.named_buffers())


class FunctionalModule(tenon.nn.Module):
    """f(parameters, *inputs)"""

    def __init__(self, stateless_model, param_names, names_map=None):
        super().__init__()
        self.stateless_model, self.param_names = stateless_model, param_names

    def forward(self, params, *args, **kwargs):
        given = dict(zip(self.param_names, params))
        return _functional_call(self.stateless_model, given, args, kwargs, tie_weights=True, strict=False)


class FunctionalModuleWithBuffers(tenon.nn.Module):
    """f(parameters, buffers, *inputs)"""

    def __init__(self, stateless_model, param_names, buffer_names, param_names_map=None, buffer_names_map=None):
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, param_names, buffer_names

    def forward(self, params, buffers, *args, **kwargs):
        given = dict(zip(self.param_names + self.buffer_names, tuple(params) + tuple(buffers)))
        return _functional_call(self.stateless_model, given, args, kwargs, tie_weights=True, strict=False)


def make_functional(model, disable_autograd_tracking=False):
    """(f, parameters) of a module that has no buffers."""
    if list(model.buffers()):
        raise RuntimeError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) "
                           "instead.")
    bare, names, values, _ = _take_apart(model, disable_autograd_tracking)
    return FunctionalModule(bare, names), values


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(f, parameters, buffers) of a module."""
    bare, names, values, buffers = _take_apart(model, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(bare, names, tuple(buffers)), values, tuple(buffers.values())


def combine_state_for_ensemble(models):
    """(f, parameters, buffers) of modules of one kind, each value stacked: for vmap over f."""
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    made = [make_functional_with_buffers(m) for m in models]

    def stacked(at):
        return tuple(tenon.stack([p.detach() for p in parts]) for parts in zip(*(one[at] for one in made)))

    return made[0][0], stacked(1), stacked(2)
