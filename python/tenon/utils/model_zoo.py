# SPDX-License-Identifier: MIT
"""The older name of tenon.hub.load_state_dict_from_url."""

from tenon.hub import load_state_dict_from_url as load_url, tqdm

__all__ = ["tqdm", "load_url"]
