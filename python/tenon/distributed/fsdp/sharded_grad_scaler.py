# SPDX-License-Identifier: MIT
"""The scaler of losses under sharding: with one process it is the ordinary one."""

from tenon.amp import GradScaler

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    def __init__(self, device="cuda", init_scale=2.0 ** 16, backoff_factor=0.5, growth_factor=2.0, growth_interval=2000,
                 enabled=True, process_group=None):
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = process_group
