# SPDX-License-Identifier: MIT
"""Parts of the loader, at the paths where scripts look for them."""

from tenon.utils.data._utils import collate, fetch, transport, worker

MP_STATUS_CHECK_INTERVAL = 5.0

__all__ = ["collate", "fetch", "transport", "worker"]
