# SPDX-License-Identifier: MIT
"""Optimizers, schedules of their rates, and averages of weights."""

from tenon.optim.optimizer import Optimizer
from tenon.optim.sgd import ASGD, Rprop, SGD
from tenon.optim.adam import Adam, AdamW, Adamax, NAdam, RAdam
from tenon.optim.adaptive import Adadelta, Adafactor, Adagrad, RMSprop
from tenon.optim.lbfgs import LBFGS
from tenon.optim.muon import Muon
from tenon.optim.sparse_adam import SparseAdam
from tenon.optim import lr_scheduler
from tenon._lazy import lazy_modules

__all__ = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam",
           "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler", "swa_utils"]

__getattr__ = lazy_modules(__name__, ("swa_utils",))  # it needs nn, which a bare optimizer does not
