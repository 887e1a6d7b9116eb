# SPDX-License-Identifier: MIT
"""Averages of weights over a training: AveragedModel, its averaging rules, SWALR, and update_bn."""

from copy import deepcopy
import itertools
import math

import tenon
from tenon.nn import Module
from tenon.optim.lr_scheduler import LRScheduler, _format_param, _warn_if_direct

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError("Invalid decay value %s provided. Please provide a value in [0,1] range." % decay)


def get_ema_avg_fn(decay=0.999):
    """new average = decay * average + (1 - decay) * value, for one tensor."""
    _check_decay(decay)

    @tenon.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_ema_multi_avg_fn(decay=0.999):
    """The same for lists of tensors, in place."""
    _check_decay(decay)

    @tenon.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for average, value in zip(ema_param_list, current_param_list):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(value, 1 - decay)
            else:
                average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_avg_fn():
    """The plain mean of all values so far, for one tensor."""

    @tenon.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_swa_multi_avg_fn():
    """The same for lists of tensors, in place."""

    @tenon.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        part = 1 / (float(num_averaged) + 1)
        for average, value in zip(averaged_param_list, current_param_list):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(value, part)
            else:
                average.copy_(average + (value - average) * part)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's parameters at each `update_parameters`."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tenon.tensor(0, dtype=tenon.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Take the model's parameters (and its buffers, with use_buffers) into the average."""
        def tensors(of):
            return itertools.chain(of.parameters(), of.buffers() if self.use_buffers else ())

        averages, values = [], []
        for average, value in zip(tensors(self.module), tensors(model)):
            averages.append(average.detach())
            values.append(value.detach().to(average.device))
        first = self.n_averaged == 0
        if first:
            for average, value in zip(averages, values):
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values):
                average.copy_(self.avg_fn(average, value, self.n_averaged))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, values, self.n_averaged)
        if not self.use_buffers:  # running statistics are taken over as they are
            for average, value in zip(self.module.buffers(), model.buffers()):
                average.detach().copy_(value.detach().to(average.device))
        self.n_averaged += 1


@tenon.no_grad()
def update_bn(loader, model, device=None):
    """Compute the statistics of the batch normalisation layers anew, by one pass of the data."""
    layers = [m for m in model.modules() if isinstance(m, tenon.nn.modules.batchnorm._BatchNorm)]
    if not layers:
        return
    momenta = [(layer, layer.momentum) for layer in layers]
    was_training = model.training
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    model.train()
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        if device is not None:
            batch = batch.to(device)
        model(batch)
    for layer, momentum in momenta:
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneal each group's rate to swa_lr over anneal_epochs, then hold it."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for group, rate in zip(optimizer.param_groups, _format_param("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError("anneal_strategy must by one of 'cos' or 'linear', instead got %s" % (anneal_strategy,))
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError("anneal_epochs must be equal or greater than 0, got %s" % (anneal_epochs,))
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, t):
        """How much of the way to swa_lr is gone at t, from 0 to 1."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self):
        _warn_if_direct(self)
        step = self._step_count - 1
        length = max(1, self.anneal_epochs)
        before = self._weight(max(0, min(1, (step - 1) / length)))
        now = self._weight(max(0, min(1, step / length)))
        rates = []
        for group in self.optimizer.param_groups:
            target, rate = group["swa_lr"], group["lr"]
            start = target if before == 1 else (rate - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates

    def _set_anneal_func(self, anneal_strategy):
        self._anneal_strategy = anneal_strategy
