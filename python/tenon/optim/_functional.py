# SPDX-License-Identifier: MIT
"""Steps over lists of tensors, where optimizers that keep their state themselves look for them."""

from tenon.optim.adam import adam, adamw
from tenon.optim.sgd import sgd

__all__ = ["adam", "adamw", "sgd"]
