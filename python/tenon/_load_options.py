# SPDX-License-Identifier: MIT
"""What load() does where neither the file nor the call says it: the order of bytes, and how a file is mapped."""

import enum
import mmap

__all__ = ["LoadEndianness", "get_default_load_endianness", "set_default_load_endianness", "get_default_mmap_options",
           "set_default_mmap_options"]


class LoadEndianness(enum.Enum):
    NATIVE = 1
    LITTLE = 2
    BIG = 3


_endianness = None
_flags = mmap.MAP_PRIVATE


def set_default_load_endianness(endianness):
    """The order of bytes of files that do not say theirs; None, as at first: this machine's."""
    global _endianness
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _endianness = endianness


def get_default_load_endianness():
    return _endianness


class set_default_mmap_options:
    """Whether `load(…, mmap=True)` maps a file for this process (MAP_PRIVATE) or so that writes reach it (MAP_SHARED): from now
    on, or in a block."""

    def __init__(self, flags):
        global _flags
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError("Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                             "but got %s" % (flags,))
        self.prev, _flags = _flags, flags

    def __enter__(self):
        pass

    def __exit__(self, kind, value, trace):
        global _flags
        _flags = self.prev


def get_default_mmap_options():
    return _flags


def map_file(path):
    """A file as memory."""
    if _flags == mmap.MAP_SHARED:
        with open(path, "r+b") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE)
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
