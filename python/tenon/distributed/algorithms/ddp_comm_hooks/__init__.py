# SPDX-License-Identifier: MIT
"""Hooks into the averaging of gradients, which DistributedDataParallel of one process takes and never calls: there is nothing
to send. A hook that is called gives the bucket's gradients as they are."""

from tenon._lazy import lazy_modules

__all__ = ["default_hooks", "post_localSGD_hook", "powerSGD_hook"]

__getattr__ = lazy_modules(__name__, ("default_hooks", "post_localSGD_hook", "powerSGD_hook"))
