# SPDX-License-Identifier: MIT
"""`DistributedDataParallel` with one process: gradients are those of the one replica."""

from contextlib import contextmanager

from tenon.distributed import is_initialized
from tenon.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Holds `module` and calls it; there is nobody to average gradients with."""

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=True,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        delay_all_reduce_named_params=None,
        param_to_hook_all_reduce=None,
        mixed_precision=None,
        device_mesh=None,
        skip_all_reduce_unused_params=False,
        bucket_cap_mb_list=None,
    ):
        super().__init__()
        if process_group is None and not is_initialized():
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        self.module = module
        self.device_ids = device_ids
        self.output_device = output_device
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.process_group = process_group
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.device = next(module.parameters()).device
        self.device_type = self.device.type
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self):
        """Within the block gradients are not averaged, which with one process changes nothing."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Uneven inputs need no care with one process."""
        yield

    def register_comm_hook(self, state, hook):
        """There is no communication to hook into."""

    def will_sync_module_buffers(self):
        """Whether a forward would broadcast buffers: with one process it never does."""
        return False

    def _set_static_graph(self):
        self.static_graph = True

    def _get_ddp_logging_data(self):
        """What trainers ask before they give advice."""
        return {"world_size": 1, "rank": 0, "can_set_static_graph": False}
