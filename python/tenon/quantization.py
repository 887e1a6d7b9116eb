# SPDX-License-Identifier: MIT
"""The path under which older models look for what tenon.ao.quantization has."""

from tenon.ao.quantization import *  # noqa: F401,F403
