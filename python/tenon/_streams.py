# SPDX-License-Identifier: MIT
"""Streams of a device: `Stream`. The CPU has one, which is the caller."""

import tenon


class Stream:
    """A stream of a device that has no queue: what was asked for has been done."""

    def __init__(self, device=None, priority=0, *, stream_id=0, device_index=-1, device_type=None):
        if device is None and device_type is None:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        if device is None and device_type != 0:
            raise RuntimeError("there are streams of the CPU alone, whose device_type is 0, not %r" % (device_type,))
        if not isinstance(device, tenon.device):
            device = tenon.device("cpu" if device is None else device)
        if device.type not in ("cpu", "meta"):
            raise RuntimeError("there is no stream of a %s device" % device.type)
        self.device = tenon.device(device.type)
        self.device_index = device_index
        self.device_type = 0 if device.type == "cpu" else 14
        self.stream_id = stream_id

    @property
    def _stream_number(self):
        """What operators know it by."""
        return self.stream_id

    def query(self):
        """Whether all that was asked for has been done: always."""
        return True

    def synchronize(self):
        """Nothing runs beside the caller."""

    def _no_events(self, *given):
        raise RuntimeError("%s backend doesn't support events." % self.device.type)

    wait_event = wait_stream = record_event = _no_events

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        pass

    def _key(self):
        return self.device_type, self.device_index, self.stream_id

    def __eq__(self, other):
        return isinstance(other, Stream) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return "torch.Stream device_type=%s, device_index=%d, stream_id=%d" % (self.device.type, self.device_index, self.stream_id)


Stream.__module__ = "tenon"
