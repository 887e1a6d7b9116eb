# SPDX-License-Identifier: MIT
"""Optimizers whose state is spread over processes. With one process the whole state is here."""

from tenon.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """Wraps an optimizer of another class: it has the parameters, the state and the steps."""

    def __init__(self, params, optimizer_class, process_group=None, parameters_as_bucket_view=False,
                 overlap_with_ddp=False, **defaults):
        self.optim = optimizer_class(params, **defaults)
        super().__init__(self.optim.param_groups, self.optim.defaults)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state
        self._all_states = None

    def step(self, closure=None, **kwargs):
        return self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)

    def add_param_group(self, param_group):
        if "optim" in self.__dict__ and self.param_groups is self.optim.param_groups:
            self.optim.add_param_group(param_group)
        else:
            super().add_param_group(param_group)

    def zero_grad(self, set_to_none=True):
        self.optim.zero_grad(set_to_none)

    def consolidate_state_dict(self, to=0):
        """Gather the state of all processes."""
        self._all_states = self.optim.state_dict()

    def state_dict(self):
        if self._all_states is None:
            raise RuntimeError("Optimizer state has not been consolidated on this rank. Please call "
                               "`consolidate_state_dict(to=0)` on all ranks beforehand if you meant to save the global "
                               "state.")
        return self._all_states

    def load_state_dict(self, state_dict):
        self.optim.load_state_dict(state_dict)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state
