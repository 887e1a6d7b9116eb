# SPDX-License-Identifier: MIT
"""What loaders from elsewhere call so that a signal of a worker is an exception here. Nothing handles signals: they look
after their workers when they wait for them, and the loader here waits on the workers themselves."""

__all__ = ["_error_if_any_worker_fails", "_remove_worker_pids", "_set_SIGCHLD_handler", "_set_worker_pids",
           "_set_worker_signal_handlers"]


def _set_worker_signal_handlers():
    pass


def _set_SIGCHLD_handler():
    pass


def _set_worker_pids(loader_id, pids):
    pass


def _remove_worker_pids(loader_id):
    pass


def _error_if_any_worker_fails():
    pass
