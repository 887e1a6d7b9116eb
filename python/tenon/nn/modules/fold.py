# SPDX-License-Identifier: MIT
"""Images to columns of patches and back."""

import tenon.nn.functional as F
from tenon.nn.modules._kept import Kept

__all__ = ["Fold", "Unfold"]


class Fold(Kept, args="output_size, kernel_size, dilation=1, padding=0, stride=1"):
    """Columns of patches (N, C * kernel, L) summed into an image of `output_size`."""

    def forward(self, input):
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(Kept, args="kernel_size, dilation=1, padding=0, stride=1"):
    """The patches of (N, C, H, W) as columns: (N, C * kernel, L)."""

    def forward(self, input):
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
