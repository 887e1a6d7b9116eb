# SPDX-License-Identifier: MIT
"""Anomaly mode: a failure in a backward pass says which call of the forward pass it belongs to."""
from tenon import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


def _forward_bits(check_forward):
    """What is looked for in results of the forward pass: False, True or "nan" (NaN), or "inf" (Inf, too)."""
    bits = {False: 0, True: 4, "nan": 4, "inf": 12}
    if check_forward not in bits:
        raise ValueError("check_forward must be False, True, 'nan' or 'inf', got %r" % (check_forward,))
    return bits[check_forward]


def _now():
    return _C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled(), _C._anomaly_forward()


class set_detect_anomaly:
    """Switch anomaly mode, as a function or as a context manager. ``check_forward`` is that of detect_anomaly."""

    def __init__(self, mode, check_nan=True, *, check_forward=False):
        for at, (name, value) in enumerate((("enabled", mode), ("check_nan", check_nan)), 1):
            if not isinstance(value, bool):
                raise TypeError("set_anomaly_enabled(): argument '%s' (position %d) must be bool, not %s" %
                                (name, at, type(value).__name__))
        bits = _forward_bits(check_forward)
        self._before = _now()
        self.prev, self.prev_check_nan = self._before[:2]
        _C._set_anomaly(mode, check_nan, bits)

    def __enter__(self):
        pass

    def __exit__(self, *args):
        _C._set_anomaly(*self._before)


class detect_anomaly:
    """While inside: recorded calls note where they were made, and a NaN in a backward pass is an error.

    With ``check_forward`` (which PyTorch does not have) the recorded call that makes the first NaN fails, with the
    operator's name; with ``check_forward="inf"`` the first Inf, too.
    """

    def __init__(self, check_nan=True, *, check_forward=False):
        import warnings
        self._forward = _forward_bits(check_forward)
        self._before = _now()
        self.prev, self.prev_check_nan = self._before[:2]
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
                      "enabled for debugging.", stacklevel=2)

    def __enter__(self):
        _C._set_anomaly(True, self.check_nan, self._forward)

    def __exit__(self, *args):
        _C._set_anomaly(*self._before)
