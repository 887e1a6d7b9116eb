#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every place in src/ where a thread can wait has a mark, so that the doctor can name it.

A function that calls one of the system's waits must call one of the functions that mark it, or stand in KNOWN with the
reason why it need not.
"""

import os
import re
import sys

ROOT = os.environ.get("TENON_SOURCE_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WAITS = re.compile(r"\b(pthread_mutex_lock|pthread_rwlock_\w*lock|pthread_cond_(?:timed)?wait|pthread_once|pthread_join|sem_wait|"
                   r"tni_futex_wait(?:_ms)?|sched_yield|flockfile|mtx_lock|call_once|pthread_barrier_wait)\s*\(")
MARKS = re.compile(r"\btni_wait_begin\s*\(")
KNOWN = {
    ("base/alloc.c", "make_lists"): "makes a key; nothing in there waits",
    ("base/status.c", "get_record"): "makes a key; nothing in there waits",
    ("base/pool.c", "take_pool"): "registers a handler; nothing in there waits",
    ("base/mark.c", "tni_mutex_lock_known"): "of a thread that has no place for marks yet",
    ("base/once.c", "wait_for"): "marked by tni_once_run, which alone calls it",
    ("dispatch/stages.c", "tni_mark_forget"): "stderr's lock, whose holder is marked",
    ("observe/flight.c", "check_process"): "a child made by fork() that has just begun: some instructions",
    ("observe/watchdog.c", "lock_dog"): "the watchdog's own thread has no place in the record",
    ("observe/watchdog.c", "rest"): "the watchdog's own thread",
}


def functions(text):
    """(name, body) of each function; they begin in the first column, as the formatter leaves them."""
    for m in re.finditer(r"^(?:[A-Za-z_][^\n;{}]*?)?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", text, re.M | re.S):
        yield m.group(1), m.group(2)


def main():
    found, wrong, used = 0, [], set()
    for folder, _, names in os.walk(os.path.join(ROOT, "src")):
        for name in sorted(names):
            if not name.endswith((".c", ".h")):
                continue
            path = os.path.join(folder, name)
            short = os.path.relpath(path, os.path.join(ROOT, "src"))
            text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), open(path).read(), flags=re.S)
            text = re.sub(r"//[^\n]*", "", text)
            seen = 0
            for function, body in functions(text):
                calls = WAITS.findall(body)
                seen += len(calls)
                found += len(calls)
                if not calls or MARKS.search(body):
                    continue
                if (short, function) in KNOWN:
                    used.add((short, function))
                else:
                    wrong.append("%s: %s calls %s without a mark" % (short, function, ", ".join(sorted(set(calls)))))
            outside = len([w for w in WAITS.finditer(text) if "static inline void tni_futex_wait" not in
                           text[text.rfind("\n", 0, w.start()) + 1:w.end()]])
            if outside != seen:
                wrong.append("%s: %d waits, of which %d are in functions that this test can read" % (short, outside, seen))
    wrong += ["%s: %s does not wait any more: take it out of KNOWN" % known for known in sorted(set(KNOWN) - used)]
    for line in wrong:
        print("FAIL  " + line)
    print("%d waits, %d known to need no mark" % (found, len(used)))
    print("%d passed, %d failed" % (not wrong, len(wrong)))
    return bool(wrong) or found < 10


sys.exit(main())
