# SPDX-License-Identifier: MIT
"""GradScaler: losses are scaled up so that small gradients survive a small dtype, and steps with an Inf or NaN among
the gradients are skipped."""
import warnings

import tenon

__all__ = ["GradScaler", "OptState"]


class OptState:
    READY, UNSCALED, STEPPED = 0, 1, 2


class GradScaler:
    def __init__(self, device="cuda", init_scale=2.0 ** 16, growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000, enabled=True):
        self._device = device
        self._enabled = enabled
        if self._device == "cuda" and enabled and not tenon.cuda.is_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if self._enabled:
            if not growth_factor > 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if not backoff_factor < 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
            self._init_scale = init_scale
            self._scale = None
            self._growth_factor = growth_factor
            self._backoff_factor = backoff_factor
            self._growth_interval = growth_interval
            self._init_growth_tracker = 0
            self._growth_tracker = None
            self._states = {}

    def _state(self, optimizer):
        return self._states.setdefault(id(optimizer), {"stage": OptState.READY, "found_inf": None})

    def _begin(self):
        if self._scale is None:
            self._scale = tenon.full((), self._init_scale, dtype=tenon.float32)
            self._growth_tracker = self._init_growth_tracker

    def _check_begun(self, name):
        if self._scale is None:
            raise AssertionError("Attempted %s but _scale is None.  This may indicate your script did not use "
                                 "scaler.scale(loss or outputs) earlier in the iteration." % name)

    def scale(self, outputs):
        """Outputs times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, tenon.Tensor):
            self._begin()
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, (list, tuple)):
            made = [self.scale(o) for o in outputs]
            return made if isinstance(outputs, list) else tuple(made)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale(self, optimizer, inverse):
        """Gradients times the inverse; whether one of them was not finite."""
        found = False
        with tenon.no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if p.grad.dtype == tenon.float16 and not self._allow_fp16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    if not bool(p.grad.isfinite().all()):
                        found = True
                    p.grad.mul_(inverse)
        return found

    _allow_fp16 = False

    def unscale_(self, optimizer):
        """Divide the gradients of the optimizer's parameters by the scale."""
        if not self._enabled:
            return
        self._check_begun("unscale_")
        state = self._state(optimizer)
        if state["stage"] == OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] == OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf"] = self._unscale(optimizer, 1.0 / self._scale.double().item())
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """The optimizer's step, unless a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_begun("step")
        state = self._state(optimizer)
        if state["stage"] == OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] == OptState.READY:
            self.unscale_(optimizer)
        if all(p.grad is None for group in optimizer.param_groups for p in group["params"]):
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if state["found_inf"] else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None):
        """The next scale: smaller after a skipped step, larger after many good ones."""
        if not self._enabled:
            return
        self._check_begun("update")
        if new_scale is not None:
            self._scale.fill_(new_scale)
        else:
            found = [s["found_inf"] for s in self._states.values() if s["found_inf"] is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(found):
                self._scale.mul_(self._backoff_factor)
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    larger = self._scale * self._growth_factor
                    if bool(larger.isfinite()):
                        self._scale = larger
                    self._growth_tracker = 0
        self._states = {}

    def get_scale(self):
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker

    def is_enabled(self):
        return self._enabled

    def state_dict(self):
        """What a restart needs; empty when disabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance "
                               "of GradScaler.")
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker = state_dict["_growth_tracker"]
