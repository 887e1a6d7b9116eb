# SPDX-License-Identifier: MIT
"""What all schedules of learning rates stand on: LRScheduler, and the ways in which a group's values are read and
set. The schedules are in lr_scheduler.py and _lr_cycles.py."""

import warnings
import weakref

import tenon
from tenon.optim.optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose.")

_ORDER_LINK = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def _check_verbose_deprecated_warning(verbose):
    return False


def _copy(value):
    return value.clone() if isinstance(value, tenon.Tensor) else value


def _update_param_group_val(group, key, value):
    """Set group[key]; a tensor there keeps its identity."""
    if isinstance(group[key], tenon.Tensor):
        group[key].fill_(value.item() if isinstance(value, tenon.Tensor) else value)
    else:
        group[key] = value


def _format_param(name, optimizer, value):
    """A list with one value for each group."""
    if isinstance(value, (list, tuple)):
        if len(value) != len(optimizer.param_groups):
            raise ValueError("%s must have the same length as optimizer.param_groups. %s has %d values, param_groups "
                             "has %d." % (name, name, len(value), len(optimizer.param_groups)))
        return list(map(_copy, value))
    return [_copy(value) for _ in optimizer.param_groups]


def _warn_if_direct(scheduler):
    if not scheduler._get_lr_called_within_step:
        warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                      UserWarning, stacklevel=3)


def _note_calls_of_step(optimizer):
    """Let `optimizer._opt_called` say whether its step has been called; a schedule that is stepped first warns."""
    if getattr(optimizer.step, "_wrapped_by_lr_sched", False):
        return
    plain = optimizer.step.__func__ if hasattr(optimizer.step, "__func__") else None
    if plain is None:
        return
    owner = weakref.ref(optimizer)

    def step(*args, **kwargs):
        optimizer = owner()
        optimizer._opt_called = True
        return plain(optimizer, *args, **kwargs)

    step.__name__, step.__doc__ = "step", plain.__doc__
    step.__func__ = plain
    step._wrapped_by_lr_sched = True
    optimizer.step = step


class LRScheduler:
    """Base class. A subclass defines `get_lr()`, which gives one rate for each group."""

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError("%s is not an Optimizer" % type(optimizer).__name__)
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                initial = group["lr"]
                group.setdefault("initial_lr", _copy(initial))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        "param 'initial_lr' is not specified in param_groups[%d] when resuming scheduler with "
                        "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
                        "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 "
                        "for a fresh training run (not recommended)" % i)
        self.base_lrs = [_copy(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _note_calls_of_step(optimizer)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Everything but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` gave. The optimizer's own state has the rates: load it too."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates that the last step computed."""
        return self._last_lr

    def get_lr(self):
        """The rates for `last_epoch`, one for each group."""
        raise NotImplementedError

    def step(self, epoch=None):
        """Go on by one step (or to `epoch`) and set the rates."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
                    + _ORDER_LINK, UserWarning, stacklevel=2)
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                    "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure "
                    "to do this will result in PyTorch skipping the first value of the learning rate schedule. See "
                    "more details at " + _ORDER_LINK, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                rates = closed() if closed is not None else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _set(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates):
            _update_param_group_val(group, "lr", rate)
        self._last_lr = [_copy(group["lr"]) for group in self.optimizer.param_groups]

    def _rates_now(self):
        return [_copy(group["lr"]) for group in self.optimizer.param_groups]

    def _times(self, factor):
        return [group["lr"] * factor for group in self.optimizer.param_groups]


LRScheduler.__module__ = "tenon.optim.lr_scheduler"
