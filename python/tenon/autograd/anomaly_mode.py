# SPDX-License-Identifier: MIT
"""Anomaly mode: a failure in a backward pass says which call of the forward pass it belongs to."""
from tenon import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Switch anomaly mode, as a function or as a context manager."""

    def __init__(self, mode, check_nan=True):
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *args):
        _C._set_anomaly(self.prev, self.prev_check_nan)


class detect_anomaly:
    """While inside: recorded calls note where they were made, and a NaN in a backward pass is an error."""

    def __init__(self, check_nan=True):
        import warnings
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
                      "enabled for debugging.", stacklevel=2)

    def __enter__(self):
        _C._set_anomaly(True, self.check_nan)

    def __exit__(self, *args):
        _C._set_anomaly(self.prev, self.prev_check_nan)
