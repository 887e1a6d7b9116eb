# SPDX-License-Identifier: MIT
"""Moving channels into space and back."""

import tenon.nn.functional as F
from tenon.nn.modules._kept import Kept

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Kept, args="upscale_factor"):
    """(*, C * r * r, H, W) to (*, C, H * r, W * r)."""

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Kept, args="downscale_factor"):
    """(*, C, H * r, W * r) to (*, C * r * r, H, W)."""

    def forward(self, input):
        return F.pixel_unshuffle(input, self.downscale_factor)
