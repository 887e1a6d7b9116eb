# SPDX-License-Identifier: MIT
"""Writes a zip archive of records that are stored as they are, each aligned, one after the other. For files that hold
tensors: of a small one zipfile takes half of the time."""

import struct
from zlib import crc32

_LIMIT = 0xFFFFFFFF  # sizes and places from here on stand in fields of 64 bits
_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s4H2LH")
_END64, _LOCATOR64 = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_DATE = 1 << 5 | 1  # 1980-01-01


def _place_in(file):
    """Where writing begins; a stream that cannot say (a pipe, a member of an archive) begins with what is written."""
    try:
        return file.tell()
    except OSError:
        return 0


class ZipWriter:
    """For a file that is written from its position on. Names are plain."""

    def __init__(self, file, alignment, checked=True):
        """`checked`: records have check sums; without them they are 0."""
        self._checked = checked
        self._write, self._at, self._alignment = file.write, _place_in(file), alignment
        self._records = []  # (name, crc, size, place)

    def _put(self, data):
        self._write(data)
        self._at += len(data)

    def write(self, name, data):
        """A record; `data` is bytes, or a memory of bytes."""
        data = memoryview(data).cast("B") if len(data) else b""
        name, size, crc, place = name.encode(), len(data), crc32(data) if self._checked else 0, self._at
        long = struct.pack("<2H2Q", 1, 16, size, size) if size >= _LIMIT else b""
        shown = min(size, _LIMIT)
        pad = -(place + _LOCAL.size + len(name) + len(long) + 4) % self._alignment
        extra = long + b"FB" + struct.pack("<H", pad) + b"Z" * pad
        version = 45 if long else 20
        self._put(_LOCAL.pack(b"PK\3\4", version, 0 if name.isascii() else 0x800, 0, 0, _DATE, crc, shown, shown, len(name),
                              len(extra)) + name + extra)
        self._write(data)
        self._at += size
        self._records.append((name, crc, size, place))

    def close(self):
        """The list of records, and the end."""
        start = self._at
        for name, crc, size, place in self._records:
            long = [n for n in (size, size, place) if n >= _LIMIT] if size >= _LIMIT or place >= _LIMIT else []
            extra = struct.pack("<2H%dQ" % len(long), 1, 8 * len(long), *long) if long else b""
            version, shown = 45 if long else 20, min(size, _LIMIT)
            self._put(_CENTRAL.pack(b"PK\1\2", version | 3 << 8, version, 0 if name.isascii() else 0x800, 0, 0, _DATE, crc,
                                    shown, shown, len(name), len(extra), 0, 0, 0, 0o600 << 16, min(place, _LIMIT))
                      + name + extra)
        count, size = len(self._records), self._at - start
        if count >= 0xFFFF or size >= _LIMIT or start >= _LIMIT:
            end = self._at
            self._put(_END64.pack(b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start))
            self._put(_LOCATOR64.pack(b"PK\6\7", 0, end, 1))
        self._put(_END.pack(b"PK\5\6", 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), min(size, _LIMIT), min(start, _LIMIT), 0))
