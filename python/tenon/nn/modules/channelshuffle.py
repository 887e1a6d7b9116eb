# SPDX-License-Identifier: MIT
"""Interleaving groups of channels."""

import tenon.nn.functional as F
from tenon.nn.modules._kept import Kept

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Kept, args="groups"):
    """(N, C, *) with the channels of `groups` groups interleaved."""

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)
