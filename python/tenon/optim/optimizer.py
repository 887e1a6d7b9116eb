# SPDX-License-Identifier: MIT
"""Optimizer: groups of parameters, their options and their state.

What is kept here is what every algorithm shares: the groups, the state of each parameter, hooks, and the
layout of `state_dict`, which is PyTorch's, so that checkpoints can be exchanged. An algorithm is a subclass;
those of this package derive from `Algorithm`, which walks the parameters and asks for one update at a time.
"""

from collections import OrderedDict, defaultdict
from copy import deepcopy
from itertools import chain
import functools
import warnings

import tenon
from tenon._surface import typename
from tenon.utils.hooks import _register
from tenon._typing import Any as _Any

__all__ = ["Optimizer", "register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"]


class _Required:
    """Stands for an option that has no default."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()

_global_pre_hooks: OrderedDict = OrderedDict()
_global_post_hooks: OrderedDict = OrderedDict()


def register_optimizer_step_pre_hook(hook):
    """Call `hook(optimizer, args, kwargs)` before every step of every optimizer. Returns a handle with `remove()`."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Call `hook(optimizer, args, kwargs)` after every step of every optimizer. Returns a handle with `remove()`."""
    return _register(_global_post_hooks, hook)


def _hooked_step(step):
    """`step` with the hooks around it. The name of a step in a profile is Optimizer.step#Class.step."""
    at_once = tenon._C._step_at_once

    @functools.wraps(step)
    def run(self, *args, **kwargs):
        if not args and not kwargs and at_once(self, step):
            return None
        args = (self, *args)  # as hooks see them, and give them back
        pre = self.__dict__.get("_optimizer_step_pre_hooks")
        if pre or _global_pre_hooks:
            for hook in chain(list(_global_pre_hooks.values()), list((pre or {}).values())):
                changed = tenon._C._call_user(hook, self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            "%s must return None or a tuple of (new_args, new_kwargs), but got %s."
                            % (step, changed))
                    args, kwargs = changed
        result = step(*args, **kwargs)
        post = self.__dict__.get("_optimizer_step_post_hooks")
        if post or _global_post_hooks:
            for hook in chain(list((post or {}).values()), list(_global_post_hooks.values())):
                tenon._C._call_user(hook, self, args, kwargs)
        return result

    run.hooked = True
    return run


class Optimizer:
    """Base class of all optimizers.

    params: an iterable of tensors, of (name, tensor) pairs, or of dicts that each describe a group.
    defaults: the options of a group that does not name its own.
    """

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._make_hook_tables()
        self._patch_step_function()
        if isinstance(params, tenon.Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                            + typename(params))
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if len(groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group) if isinstance(group, dict) else group)

    def _make_hook_tables(self):
        self._optimizer_step_pre_hooks = OrderedDict()
        self._optimizer_step_post_hooks = OrderedDict()
        self._optimizer_state_dict_pre_hooks = OrderedDict()
        self._optimizer_state_dict_post_hooks = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks = OrderedDict()
        self._optimizer_load_state_dict_post_hooks = OrderedDict()

    def _patch_step_function(self):
        self._zero_grad_profile_name = "Optimizer.zero_grad#%s.zero_grad" % type(self).__name__
        step = type(self).step
        if not getattr(step, "hooked", None):
            type(self).step = _hooked_step(step)

    @staticmethod
    def profile_hook_step(step):
        """A decorator: `step` with the hooks before and after it."""
        return _hooked_step(step)

    # Groups.

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
        """For steps over lists, here and in packages: what may stand in one list with what."""
        from tenon.utils._foreach_utils import _group_tensors_by_device_and_dtype
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def add_param_group(self, param_group):
        """Add a group: a dict with "params" and the options that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError("param_group must be a dict, but got %s" % type(param_group))
        params = param_group["params"]
        if isinstance(params, tenon.Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of "
                            "tensors in sets will change between runs. Please use a list instead.")
        else:
            param_group["params"] = list(params)

        tensors, names = [], []
        for item in param_group["params"]:
            if isinstance(item, tuple):
                names.append(item[0])
                tensors.append(item[1])
            else:
                tensors.append(item)
        param_group["params"] = tensors
        if names:
            if len(names) != len(tensors):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = names

        for p in tensors:
            if not isinstance(p, tenon.Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(p))
            if not self.defaults.get("differentiable") and not (p.is_leaf or getattr(p, "retains_grad", False)):
                raise ValueError("can't optimize a non-leaf Tensor")

        for name, value in self.defaults.items():
            if value is required and name not in param_group:
                raise ValueError("parameter group didn't specify a value of required optimization parameter %s" % name)
            param_group.setdefault(name, value)

        if len(tensors) != len(set(map(id, tensors))):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause "
                          "an error; see github.com/pytorch/pytorch/issues/40967 for more information", stacklevel=3)
        taken = set()
        for group in self.param_groups:
            taken.update(map(id, group["params"]))
            if ("param_names" in param_group) != ("param_names" in group):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group %s to the optimizer"
                    % ("with names" if "param_names" in param_group else "without names"))
        if not taken.isdisjoint(map(id, tensors)):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters; with set_to_none=False they are filled with zeros instead."""
        if "_zero_grad_profile_name" not in self.__dict__:
            self._patch_step_function()
        if set_to_none:
            tenon._C._forget_gradients(self.param_groups)
            return
        for group in self.param_groups:
            for grad in tenon._C._gradients(group["params"])[1]:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def step(self, closure=None):
        """One update of the parameters. `closure` computes the loss again and returns it."""
        raise NotImplementedError

    # Hooks.

    def register_step_pre_hook(self, hook):
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new (args, kwargs)."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call `hook(optimizer)` before `state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another one."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call `hook(optimizer, state_dict)` before `load_state_dict`; it may return another one."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call `hook(optimizer)` after `load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)

    # Exchange.

    def state_dict(self):
        """{"state": {number: state}, "param_groups": [...]}, where numbers stand for parameters in order."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        number_of = {}
        groups = []
        begin = 0
        for group in self.param_groups:  # of a parameter that is there twice the last place counts, and both take a number
            number_of.update({id(p): i for i, p in enumerate(group["params"], begin) if id(p) not in number_of})
            begin += len(group["params"])
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [number_of[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(number_of[id(key)] if isinstance(key, tenon.Tensor) else key): value
                 for key, value in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` of an optimizer with groups of the same sizes gave. Tensors of the state take
        their parameter's dtype (where that is a float) and device; steps stay as they are."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed

        ours = self.param_groups
        theirs = deepcopy(state_dict["param_groups"])
        if len(ours) != len(theirs):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(ours, theirs)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of "
                             "optimizer's group")
        param_of = dict(zip(chain.from_iterable(group["params"] for group in theirs),
                            chain.from_iterable(group["params"] for group in ours)))
        group_of = {number: group for group in theirs for number in group["params"]}

        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                state[param_of[key]] = _cast_state(value, param_of[key], group_of[key])
            else:
                state[key] = value
        groups = []
        for old, new in zip(ours, theirs):
            new["params"] = old["params"]
            if "param_names" in old and "param_names" not in new:
                new["param_names"] = old["param_names"]
            groups.append(new)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hook_tables()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + ["Parameter Group %d" % i]
            # A rate that is a tensor is shown as its number: format does that, str does not.
            lines.extend("    {}: {}".format(name, group[name]) for name in sorted(group) if name != "params")
        lines.append(")")
        return "\n".join(lines)


def _cast_state(value, param, group, name=None):
    """`value`, a part of a loaded state, as it fits `param`."""
    if isinstance(value, tenon.Tensor):
        if name == "step":
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=tenon.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {key: _cast_state(part, param, group, key) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_cast_state(part, param, group, name) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


class Algorithm(Optimizer):
    """An optimizer whose step treats one parameter after another.

    A subclass has `_start(state, p, group)`, which fills the state before the first update, and
    `_update(p, grad, state, group)`. One that has a fused form has `_fused(params, grads, states, group)` too.
    """

    #: Names of options, and what a group from an older checkpoint gets when it lacks them.
    _added_options: tuple = ()

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._added_options:
                group.setdefault(name, value)
            for p in group["params"]:
                own = self.state.get(p)
                if own and "step" in own and not isinstance(own["step"], tenon.Tensor):
                    own["step"] = tenon.tensor(float(own["step"]), dtype=scalar_dtype())

    def step(self, closure=None):
        """One update of every parameter that has a gradient. Returns what `closure`, called first, returns."""
        loss = None
        if closure is not None:
            with tenon.enable_grad():
                loss = closure()
        before = tenon.is_grad_enabled()
        try:
            for group in self.param_groups:
                tenon._C._set_grad_enabled(bool(self.defaults.get("differentiable")))
                self._step_group(group)
        finally:
            tenon._C._set_grad_enabled(before)
        return loss

    def _step_group(self, group):
        params, grads, plain = tenon._C._gradients(group["params"])
        states = [None] * len(params)
        if self._is_stateful(group):
            all_state = self.state
            for i, p in enumerate(params):
                if not plain and grads[i].is_sparse and not self._takes_sparse:
                    raise RuntimeError(self._sparse_message())
                state = states[i] = all_state[p]
                if not state:
                    self._start(state, p, group)
                elif not isinstance(state.get("step", p), tenon.Tensor):
                    raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
        if not plain and any(grad.is_sparse for grad in grads):
            params, grads, states = self._update_sparse(params, grads, states, group)
        if params:
            if group.get("capturable") or group.get("foreach"):
                from tenon.optim._custom import check_form

                check_form(type(self), params, group)
            self._update_all(params, grads, states, group)

    def _update_sparse(self, params, grads, states, group):
        """Update what has sparse gradients; what remains is returned."""
        rest = [], [], []
        for row in zip(params, grads, states):
            p, grad, state = row
            if not grad.is_sparse:
                for column, value in zip(rest, row):
                    column.append(value)
            elif not self._takes_sparse:
                raise RuntimeError(self._sparse_message())
            else:
                self._update(p, -grad if group.get("maximize") else grad, state, group)
        return rest

    _takes_sparse = False

    def _sparse_message(self):
        return type(self).__name__ + " does not support sparse gradients"

    def _is_stateful(self, group):
        """Whether parameters of this group have a state at all."""
        return True

    def _start(self, state, p, group):
        pass

    def _update_all(self, params, grads, states, group):
        for p, grad, state in zip(params, grads, states):
            self._update(p, -grad if group.get("maximize") else grad, state, group)

    def _update(self, p, grad, state, group):
        raise NotImplementedError


tenon._C._know_step(Algorithm.step, _global_pre_hooks, _global_post_hooks)

def new_step(group=None, p=None):
    """The count of steps that a state starts with: a float32 tensor, on the CPU unless the group is capturable."""
    if group is not None and (group.get("capturable") or group.get("fused")):
        return tenon.zeros((), dtype=scalar_dtype(group), device=p.device)
    return tenon.tensor(0.0, dtype=scalar_dtype())


def scalar_dtype(group=None):
    """The dtype of counts and rates in a state: float32, unless the default dtype is float64."""
    if group is not None and group.get("fused"):
        return tenon.float32
    return tenon.float64 if tenon.get_default_dtype() == tenon.float64 else tenon.float32


def like(p, value=0.0):
    """A tensor of p's shape, dtype, device and, where it is dense, strides."""
    return tenon.full_like(p, value, memory_format=tenon.preserve_format)


def number(value):
    """A Python number from a number or a tensor of one element."""
    return value.item() if isinstance(value, tenon.Tensor) else value


def option(value, group):
    """A number, or in a step that is to be differentiated a tensor that has a gradient of its own."""
    if group["differentiable"] and isinstance(value, tenon.Tensor) and value.requires_grad:
        return value
    return number(value)


def can_fuse(params, grads, group):
    """Whether C does the whole step and gives what the separate operators give: floats and doubles on the CPU, no
    subclass whose operators must be seen, no graph wanted. The kernels take any strides."""
    if group.get("differentiable") or group.get("foreach"):
        return False
    wanted = group.get("fused")
    if wanted is False:
        return False
    return tenon._C._can_fuse(params, grads, tenon.nn.Parameter, bool(wanted))


def check(condition, message, value):
    """ValueError "message: value" unless the condition holds."""
    if not condition:
        raise ValueError("%s: %s" % (message, value))


def check_rate(lr, group=None):
    if isinstance(lr, tenon.Tensor):
        if group is not None and group.get("foreach") and not group.get("capturable"):
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    check(0.0 <= lr, "Invalid learning rate", lr)


def check_fused(fused, foreach, differentiable):
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def __getattr__(name) -> _Any:
    """What optimizers of others import from here and those of this package do without."""
    from tenon.optim import _custom
    if name.startswith("__") or name not in _custom.__dict__:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    return getattr(_custom, name)
