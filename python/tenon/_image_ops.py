# SPDX-License-Identifier: MIT
"""The operators of torchvision's library of picture files, by Pillow. Loaded when torchvision loads that library."""

import io

import tenon
from tenon import _ops_later

__all__ = ["define"]

_MODES = (None, "L", "LA", "RGB", "RGBA")  # as torchvision.io.ImageReadMode numbers them


def read_file(path):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    return tenon.frombuffer(data, dtype=tenon.uint8) if data else tenon.empty(0, dtype=tenon.uint8)


def write_file(path, data):
    with open(path, "wb") as file:
        file.write(bytes(data.contiguous().numpy()))


def _picture(data):
    from PIL import Image
    try:
        return Image.open(io.BytesIO(bytes(data.contiguous().numpy())))
    except OSError as error:
        raise RuntimeError("Unsupported image file: %s" % error) from None


def _tensor(picture):
    import numpy
    pixels = tenon.from_numpy(numpy.array(picture))
    return pixels.unsqueeze(0) if pixels.dim() == 2 else pixels.permute(2, 0, 1).contiguous()


def decode_image(data, mode, apply_exif_orientation=False):
    """A picture as (C, H, W) bytes, in a mode of ImageReadMode."""
    picture = _picture(data)
    if apply_exif_orientation:
        from PIL import ImageOps
        picture = ImageOps.exif_transpose(picture)
    wanted = _MODES[mode] or ("RGB" if picture.mode == "P" else None)
    return _tensor(picture if wanted in (None, picture.mode) else picture.convert(wanted))


def decode_webp(encoded_data, mode):
    return decode_image(encoded_data, mode)


def decode_gif(data):
    """The frames of a GIF: (N, 3, H, W), or (3, H, W) of one alone."""
    from PIL import ImageSequence
    frames = [_tensor(frame.convert("RGB")) for frame in ImageSequence.Iterator(_picture(data))]
    return frames[0] if len(frames) == 1 else tenon.stack(frames)


def _encoded(picture, kind, **options):
    from PIL import Image
    pixels = picture.squeeze(0) if picture.shape[0] == 1 else picture.permute(1, 2, 0)
    file = io.BytesIO()
    Image.fromarray(pixels.contiguous().numpy()).save(file, kind, **options)
    return tenon.frombuffer(bytearray(file.getvalue()), dtype=tenon.uint8)


def encode_png(picture, level):
    return _encoded(picture, "PNG", compress_level=level)


def encode_jpeg(picture, quality):
    return _encoded(picture, "JPEG", quality=quality)


_SCHEMAS = {
    "read_file(str _0) -> Tensor": read_file, "write_file(str _0, Tensor _1) -> ()": write_file,
    "decode_png(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": decode_image,
    "decode_jpeg(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": decode_image,
    "decode_image(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": decode_image,
    "decode_gif(Tensor _0) -> Tensor": decode_gif, "decode_webp(Tensor encoded_data, int mode) -> Tensor": decode_webp,
    "encode_png(Tensor _0, int _1) -> Tensor": encode_png, "encode_jpeg(Tensor _0, int _1) -> Tensor": encode_jpeg,
}


def define():
    """Make the operators, once."""
    _ops_later.define_all("image", _SCHEMAS.items())
