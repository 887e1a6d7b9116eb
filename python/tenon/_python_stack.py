# SPDX-License-Identifier: MIT
"""Which Python functions an event of the profiler was called from: for `with_stack=True`.

While it is on, every Python function that is called is a range of the recording, so that the timeline shows it; afterwards the ranges
around an event are its stack, innermost first. Ranges of the core nest strictly, and `record_function` may begin in one function and
end in another: see Note [Ranges that cross]."""

import os
import sys
import threading

from tenon import _C

active = None  # the one that runs; record_function asks it

_HERE = os.path.dirname(__file__)
_OWN = (__file__, os.path.join(_HERE, "autograd", "profiler.py"), os.path.join(_HERE, "profiler", "__init__.py"),
        os.path.join(_HERE, "_profiler_names.py"), os.path.join(_HERE, "_ops_later.py"))


def range_begin(name):
    """A range of the user's."""
    (_C._profiler_range_begin if active is None else active.begin)(name)


def range_end():
    (_C._profiler_range_end if active is None else active.end)()


class PythonStacks:
    """Begin with start(), end with stop(); `names` are those of its ranges, `outer` what was running at the start."""

    def __init__(self):
        self.names, self.outer = set(), []
        self._known, self._local = {}, threading.local()
        self._before = sys.getprofile()
        self._prefixes = sorted({os.path.join(os.path.abspath(p or "."), "") for p in sys.path}, key=len, reverse=True)

    def start(self):
        global active
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename not in _OWN:
                self.outer.append(self._name(frame.f_code))
            frame = frame.f_back
        self.names.add("")  # a range without a name tells which thread began
        _C._profiler_range_begin("")
        _C._profiler_range_end()
        active = self
        _C._want_frames(True)
        threading.setprofile(self._event)
        sys.setprofile(self._event)

    def stop(self):
        global active
        sys.setprofile(self._before)
        threading.setprofile(None)
        _C._want_frames(False)
        active = None

    def _name(self, code):
        name = self._known.get(code)
        if name is None:
            path = code.co_filename
            prefix = next((p for p in self._prefixes if path.startswith(p)), "")
            name = self._known[code] = "%s(%d): %s" % (path[len(prefix):], code.co_firstlineno, code.co_name)
            self.names.add(name)
        return name

    # Note [Ranges that cross]
    # The list of a thread has what is open: the frame of a function, or None for a range of record_function. A function that returns
    # while a range that it began stays open is kept, in stacks too, (False in place of its frame) until that range has ended; a range that ends in a
    # function which was called after it began is ended together with that function's, which begins anew.
    def _open(self):
        try:
            return self._local.open
        except AttributeError:
            self._local.open = []
            return self._local.open

    def _event(self, frame, event, arg):
        if active is not self or frame.f_code.co_filename in _OWN:
            return
        if event == "call":
            self._open().append(frame)
            _C._profiler_range_begin(self._name(frame.f_code))
        elif event == "return":
            opened = self._open()
            for i in range(len(opened) - 1, -1, -1):  # not found: it was called before the start
                if opened[i] is frame:
                    opened[i] = False
                    self._drop(opened)
                    break

    def _drop(self, opened):
        while opened and opened[-1] is False:
            opened.pop()
            _C._profiler_range_end()

    def around(self, events):
        """What each event was called from, innermost first, as a list beside @p events, where parents come first."""
        thread = next((e.thread for e in events if e.name == ""), None)
        found = []
        for e in events:
            parent = events[e.parent] if e.parent >= 0 else None
            if parent is None:
                found.append(self.outer if e.thread == thread else [])
            elif self.made(parent):
                found.append([parent.name] + found[e.parent])
            else:
                found.append(found[e.parent])
        return found

    def made(self, event):
        """Is it a range of a function?"""
        return event.is_user_annotation and event.name in self.names

    def begin(self, name):
        self._open().append(None)
        _C._profiler_range_begin(name)

    def end(self):
        opened = self._open()
        inside = []
        while opened and opened[-1] is not None:
            inside.append(opened.pop())
            _C._profiler_range_end()
        _C._profiler_range_end()
        if opened:
            opened.pop()
        for frame in reversed(inside):
            if frame is not False:
                opened.append(frame)
                _C._profiler_range_begin(self._name(frame.f_code))
        self._drop(opened)
