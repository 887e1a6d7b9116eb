# SPDX-License-Identifier: MIT
"""Values that come later: one thread sets a result or an exception, others wait for it."""

import threading

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that may not be there yet."""

    def __class_getitem__(cls, item):
        """Future[int], in annotations."""
        return cls

    def __init__(self, *, devices=None):
        self._ready, self._lock = threading.Event(), threading.Lock()
        self._value = self._error = None
        self._after = []

    def done(self):
        return self._ready.is_set()

    def wait(self):
        """The value, once it is there; an exception that was set is raised."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self):
        """The value, which must be there."""
        if not self.done():
            raise RuntimeError("value() called on a Future that is not completed")
        return self.wait()

    def _finish(self, value, error):
        with self._lock:
            if self._ready.is_set():
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note that a Future can only "
                                   "be marked completed once.")
            self._value, self._error = value, error
            self._ready.set()
            after, self._after = self._after, []
        for function in after:
            function(self)

    def set_result(self, result):
        self._finish(result, None)

    def set_exception(self, result):
        if not isinstance(result, Exception):
            raise AssertionError("%s is of type %s, not an Exception." % (result, type(result)))
        self._finish(None, result)

    def add_done_callback(self, callback):
        """callback(self), once the value is there; what it raises is printed and forgotten."""
        def call(future):
            try:
                callback(future)
            except Exception:
                import traceback
                traceback.print_exc()
        self._call_later(call)

    def _call_later(self, function):
        with self._lock:
            if not self._ready.is_set():
                self._after.append(function)
                return
        function(self)

    def then(self, callback):
        """A future of callback(self)."""
        made = Future()

        def call(future):
            try:
                value = callback(future)
            except Exception as error:
                made.set_exception(error)
            else:
                made.set_result(value)
        self._call_later(call)
        return made


def collect_all(futures):
    """A future of the list of futures, done when all of them are."""
    futures = list(futures)
    made, left, lock = Future(), [len(futures)], threading.Lock()
    if not futures:
        made.set_result(futures)

    def count(_):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            made.set_result(futures)

    for future in futures:
        future._call_later(count)
    return made


def wait_all(futures):
    """The values of all."""
    return [future.wait() for future in collect_all(futures).wait()]
