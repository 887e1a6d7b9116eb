# SPDX-License-Identifier: MIT
"""Instance normalization: over each sample's channel alone, with or without a batch dimension."""

import warnings

import tenon.nn.functional as F
from tenon.nn.modules.batchnorm import _lazy, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """The call of instance normalization; a class says which inputs it takes, the one without a batch first."""

    _dims = None

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def _check_input_dim(self, input):
        if input.dim() not in self._dims:
            wanted = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")

    def _apply_instance_norm(self, input):
        momentum = self.momentum if self.momentum is not None else 0.0
        by_input = self.training or not self.track_running_stats
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, by_input, momentum, self.eps
        )

    def forward(self, input):
        self._check_input_dim(input)
        feature_dim = input.dim() - self._dims[0]
        if input.size(feature_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={feature_dim} to match num_features ({self.num_features}), but got: "
                    f"{input.size(feature_dim)}."
                )
            warnings.warn(
                f"input's size at dim={feature_dim} does not match num_features. You can silence this warning by not passing "
                "in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == self._dims[0]:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        # Before version 2 running statistics were saved although they were not tracked: say what to do about it.
        version = local_metadata.get("version", None)
        if version is None and not self.track_running_stats:
            names = [prefix + n for n in ("running_mean", "running_var") if prefix + n in state_dict]
            if names:
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {' and '.join(repr(n) for n in names)} for {type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be expected because "
                    f"{type(self).__name__} does not track running stats by default since 0.4.0. Please remove these keys from "
                    "state_dict. If the running stats are actually needed, instead set track_running_stats=True in "
                    f"{type(self).__name__} to enable them. See the documentation of {type(self).__name__} for details."
                )
                for n in names:
                    state_dict.pop(n)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of (N, C, L) or (C, L)."""

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of (N, C, H, W) or (C, H, W)."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = (4, 5)


LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(c) for c in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
