# SPDX-License-Identifier: MIT
"""`record`: the exception that ends a process goes into the file where whoever launched it looks for it."""

import functools
import os

__all__ = ["ErrorHandler", "get_error_handler", "record"]


class ErrorHandler:
    """Writes an exception as JSON into the file that TORCHELASTIC_ERROR_FILE names, if it names one."""

    def _get_error_file_path(self):
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self):
        """Before the program begins: a crash shows where Python was."""
        import faulthandler
        import warnings
        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:
            warnings.warn("Unable to enable fault handler. %s: %s" % (type(error).__name__, error), stacklevel=2)

    def record_exception(self, e):
        """Write it."""
        import json
        import time
        import traceback
        path = self._get_error_file_path()
        if path:
            more = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"message": {"message": "%s: %s" % (type(e).__name__, e), "extraInfo": more}}, file)


def get_error_handler():
    return ErrorHandler()


def record(fn, error_handler=None):
    """A decorator of a program's main function. An exit with code 0 is a return."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code == 0:
                return None
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return wrapper
