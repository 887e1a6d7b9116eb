# SPDX-License-Identifier: MIT
"""State of models and optimizers by the names of parameters, so that it does not depend on how they are spread."""

from dataclasses import dataclass

__all__ = ["StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict",
           "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict"]


@dataclass
class StateDictOptions:
    """What to give. Nothing is spread over processes, so that a full state is the state."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def get_model_state_dict(model, *, submodules=None, options=None):
    """The state of a model, or of some of its modules."""
    options = options or StateDictOptions()
    made = model.state_dict()
    if options.ignore_frozen_params:
        for name, p in model.named_parameters():
            if not p.requires_grad:
                made.pop(name, None)
    if submodules:
        prefixes = [name + "." for name, module in model.named_modules() if module in submodules]
        cut = (lambda name, prefix: name) if options.keep_submodule_prefixes else lambda name, prefix: name[len(prefix):]
        made = {cut(name, prefix): value for name, value in made.items() for prefix in prefixes if name.startswith(prefix)}
    return dict(made)


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Put a state back; what was missing and what was too much."""
    options = options or StateDictOptions()
    return model.load_state_dict(model_state_dict, strict=options.strict)


def _names(model):
    return {p: name for name, p in model.named_parameters()}


def _optimizers(optimizers):
    return tuple(optimizers) if isinstance(optimizers, (list, tuple, set)) else (optimizers,)


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The state of optimizers, with the names of the parameters for their numbers."""
    options = options or StateDictOptions()
    names, state, groups = _names(model), {}, []
    for optimizer in _optimizers(optimizers):
        own = optimizer.state_dict()
        by_number = {}
        for group, plain in zip(optimizer.param_groups, own["param_groups"]):
            by_number.update(zip(plain["params"], (names[p] for p in group["params"])))
            groups.append({**plain, "params": [names[p] for p in group["params"]]})
        state.update({by_number[number]: value for number, value in own["state"].items()})
    if not options.flatten_optimizer_state_dict:
        return {"state": state, "param_groups": groups}
    flat = {"state.%s.%s" % (name, key): value for name, values in state.items() for key, value in values.items()}
    for group in groups:
        for name in group["params"]:
            flat.update({"param_groups.%s.%s" % (name, key): value for key, value in group.items() if key != "params"})
    return flat


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Put a state with names back."""
    names = _names(model)
    flat = "state" not in optim_state_dict and optim_state_dict
    for optimizer in _optimizers(optimizers):
        own = optimizer.state_dict()
        state, groups, number = {}, [], 0
        for at, (group, plain) in enumerate(zip(optimizer.param_groups, own["param_groups"])):
            new = dict(plain)
            for p in group["params"]:
                name = names[p]
                if flat:
                    prefix = "state.%s." % name
                    found = {key[len(prefix):]: value for key, value in optim_state_dict.items() if key.startswith(prefix)}
                    prefix = "param_groups.%s." % name
                    new.update({key[len(prefix):]: value for key, value in optim_state_dict.items()
                                if key.startswith(prefix)})
                else:
                    found = optim_state_dict["state"].get(name)
                    for given in optim_state_dict["param_groups"]:
                        if name in given["params"]:
                            new.update({key: value for key, value in given.items() if key != "params"})
                if found:
                    state[number] = found
                number += 1
            groups.append(new)
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """The states of a model and of its optimizers."""
    return (get_model_state_dict(model, submodules=submodules, options=options),
            get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options))


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Put both states back."""
    if optim_state_dict:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
