# SPDX-License-Identifier: MIT
"""Parts of the loader, at the paths where scripts and loaders from elsewhere look for them."""

import atexit
from importlib.util import find_spec

from tenon.utils.data._utils import collate, fetch, pin_memory, signal_handling, transport, worker

MP_STATUS_CHECK_INTERVAL = 5.0
HAS_NUMPY = find_spec("numpy") is not None
IS_WINDOWS = False
python_exit_status = False

__all__ = ["collate", "fetch", "pin_memory", "signal_handling", "transport", "worker"]


@atexit.register
def _set_python_exit_flag():
    """Loaders from elsewhere leave their workers alone from here on."""
    global python_exit_status
    python_exit_status = True
