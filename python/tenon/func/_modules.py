# SPDX-License-Identifier: MIT
"""Modules as functions of their parameters."""
import tenon


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call the module with other parameters and buffers in the place of its own."""
    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts  # itself: what the call puts in the place of a tensor is put there too
    elif isinstance(parameter_and_buffer_dicts, (list, tuple)):
        counts = {}
        for each in parameter_and_buffer_dicts:
            for name in each:
                counts[name] = counts.get(name, 0) + 1
        repeated = [name for name, count in counts.items() if count > 1]
        if repeated:
            raise ValueError("%s appeared in multiple dictionaries; behavior of functional call is ambiguous" % repeated)
        given = {name: value for each in parameter_and_buffer_dicts for name, value in each.items()}
    else:
        raise ValueError("Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got %s"
                         % type(parameter_and_buffer_dicts))
    from tenon.nn.utils.stateless import _functional_call
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """Parameters and buffers of several modules of one kind, each stacked: for functional_call under vmap."""
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(tables):
        made = {}
        for name in tables[0]:
            parts = [t[name] for t in tables]
            if len({p.requires_grad for p in parts}) > 1:
                raise RuntimeError("Expected %s from each model to have the same .requires_grad" % name)
            together = tenon.stack([p.detach() for p in parts])
            if parts[0].requires_grad:
                together.requires_grad_(True)
            made[name] = together
        return made

    return (stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models]))
