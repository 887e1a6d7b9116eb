# SPDX-License-Identifier: MIT
"""The bytes of an event file: protocol buffers, by hand, in TFRecord frames with masked CRC-32C."""

import struct

_POLYNOMIAL = 0x82F63B78
_table = []


def _crc_table():
    if not _table:
        for byte in range(256):
            for _ in range(8):
                byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
            _table.append(byte)
    return _table


def crc32c(data):
    """CRC-32C (Castagnoli) of bytes."""
    table, crc = _crc_table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data):
    """The CRC as TFRecord keeps it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(data):
    """A record: length, its CRC, the data, its CRC."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field, value):
    return varint(field << 3) + varint(int(value))


def double(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def single(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def chunk(field, data):
    """Bytes, a string or a message."""
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed_doubles(field, values):
    return chunk(field, struct.pack("<%dd" % len(values), *values))


def event(wall_time, step=None, summary=None, file_version=None):
    """An Event message."""
    out = double(1, wall_time)
    if step is not None:
        out += integer(2, step)
    if file_version is not None:
        out += chunk(3, file_version)
    if summary is not None:
        out += chunk(5, summary)
    return out


def value(tag, content, plugin=None, plugin_content=b""):
    """A Summary with one Value. `content` is the encoded field that holds what is shown."""
    out = chunk(1, tag) + content
    if plugin is not None:
        out += chunk(9, chunk(1, chunk(1, plugin) + (chunk(2, plugin_content) if plugin_content else b"")))
    return chunk(1, out)


def scalar(tag, number):
    return value(tag, single(2, number))


def histogram(tag, low, high, count, total, squares, limits, buckets):
    """A HistogramProto: edges on the right, and how many lie below each."""
    message = (double(1, low) + double(2, high) + double(3, count) + double(4, total) + double(5, squares)
               + packed_doubles(6, limits) + packed_doubles(7, buckets))
    return value(tag, chunk(5, message))


def image(tag, height, width, channels, png):
    return value(tag, chunk(4, integer(1, height) + integer(2, width) + integer(3, channels) + chunk(4, png)))


def text(tag, words):
    """A string tensor for the text plugin."""
    tensor = integer(1, 7) + chunk(2, chunk(2, integer(1, 1))) + chunk(8, words)
    return value(tag + "/text_summary", chunk(8, tensor), "text")
