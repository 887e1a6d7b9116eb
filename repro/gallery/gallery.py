#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the planted faults and check what is said about them.

usage: gallery.py [NAME...]
A program either prints "refused STATUS: MESSAGE" and ends: then that is the verdict. Or it prints "ready PID" at its
fault and stays there: then `tenon doctor PID --json` is asked. The verdict must come within two seconds, at the first
try or at a later one: the machine may have other things to do.
TENON_BUILD_DIR says which build to test. The last line is "N passed, N failed".
"""

import json
import os
import re
import select
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("TENON_BUILD_DIR") or os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
PROGRAMS = os.path.join(BUILD, "repro", "gallery")
TENON = os.path.join(BUILD, "tenon")
SLOW = os.path.exists(os.path.join(BUILD, "CMakeCache.txt")) and re.search(
    r"^TN_SAN:\w+=.", open(os.path.join(BUILD, "CMakeCache.txt")).read(), re.M)
LIMIT = 2.0 * (10 if SLOW else 1)
PATIENCE = 60  # for that long it is asked again

# name, arguments, kind of verdict ("refused" or the doctor's), what the sentence must say.
ENTRIES = [
    ("own_operator", [], "refused", r"RECURSION: gallery::ouroboros: .*cycle.*gallery::ouroboros \[CPU\] in calls_itself"),
    ("keeps_key", [], "refused", r"RECURSION: redispatch does not lower the key.*gallery::keeps_key \[CPU\]"),
    ("mutual_recursion", [], "refused", r"RECURSION.*cycle.*gallery::(to_copy|device_put) \[Meta\].*->.*gallery::"),
    ("mutual_recursion", ["slow"], "recursion", r"deep in a cycle: gallery::(to_copy|device_put) \[Meta\] -> gallery::"),
    ("never_returns", [], "spinning", r"busy, inside the kernel of gallery::spins \[CPU\], kernel spins \(gallery.c:\d+\)"),
    ("callers_lock", [], "deadlock",
     r"with itself: .*gallery::takes_lock \[CPU\].*waits for lock 'model', which it holds itself"),
    ("callers_lock", ["two"], "deadlock",
     r"thread \d+.*waits for lock '(model|optimizer)'.*thread \d+.*waits for lock '(optimizer|model)'.*again"),
    ("backward_waits", [], "deadlock", r"with itself: .*in a tensor hook of a backward pass, waits for the end of thread"),
    ("fork_busy", [], "progress", r"makes progress"),
    ("once_reenters", [], "refused", r"RECURSION: initialising registering the built-in operators needs .* itself"),
    ("observer_reenters", [], "deadlock",
     r"with itself: .*in an observer callback, .*aten::mul.Tensor .*waits for lock 'log', which it holds itself"),
    ("saved_hook_blocks", [], "callout", r"sleeps.*in a saved-tensor hook \(pack\), inside the kernel of aten::mul.Tensor"),
    ("interpreter_lock.py", [], "interpreter",
     r"in a tensor hook of a backward pass, waits for the interpreter lock"),
    ("stuck_blas", [os.path.join(PROGRAMS, "libopenblas.so.0")], "pool",
     r"aten::mm \[CPU\].*waits for pool workers.*\(tenon-1\) has not finished its part and sleeps"),
]


def has_openblas():
    return "openblas" in subprocess.run([TENON, "--version"], capture_output=True, text=True).stdout.lower()


def first_line(process, seconds):
    end, text = time.monotonic() + seconds, b""
    while not text.endswith(b"\n") and time.monotonic() < end:
        if select.select([process.stdout], [], [], end - time.monotonic())[0]:
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                break
            text += piece
    return text.decode(errors="replace")


def verdict_of(name, arguments, kind, pattern):
    """(kind, sentence, seconds it took)"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
    environment["TENON_NUM_THREADS"] = "2"
    environment["PYTHONPATH"] = os.path.join(BUILD, "python")
    # What is refused ends the program in the middle of things: nobody gives back what it held.
    environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    program = [sys.executable, "-B", os.path.join(HERE, name)] if name.endswith(".py") else [os.path.join(PROGRAMS, name)]
    process = subprocess.Popen(program + arguments, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env=environment)
    try:
        begin = time.monotonic()
        line = first_line(process, 2 * PATIENCE)
        if not line.startswith("ready "):
            rest = line + process.stdout.read().decode(errors="replace") if line.startswith("refused") else line
            return line.split()[0] if line else "silent", rest, time.monotonic() - begin
        # The word is printed before the fault: another thread, a product or some frames may have to come first.
        end = time.monotonic() + PATIENCE
        while True:
            begin = time.monotonic()
            answer = subprocess.run([TENON, "doctor", line.split()[1], "--json"], capture_output=True, text=True,
                                    timeout=2 * PATIENCE)
            if answer.returncode != 0:
                return "error", answer.stderr, time.monotonic() - begin
            report = json.loads(answer.stdout)
            said = report["verdict"]
            if "\n" in said["text"] or not said["next"] or "\n" in said["next"]:
                return "error", "no sentence with what to try next: %r" % said, time.monotonic() - begin
            seconds = time.monotonic() - begin
            if seconds < LIMIT and said["kind"] == kind and re.search(pattern, said["text"], re.S) or begin > end:
                return said["kind"], said["text"], seconds
            time.sleep(0.1)
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
        if name == "fork_busy" and line.startswith("ready "):
            try:
                os.kill(int(line.split()[1]), 9)
            except ProcessLookupError:
                pass


def main():
    wanted = sys.argv[1:]
    passed = failed = 0
    for name, arguments, kind, pattern in ENTRIES:
        if wanted and name not in wanted:
            continue
        if name == "stuck_blas" and not has_openblas():
            print("skip  stuck_blas: this build has no BLAS to be stuck in")
            continue
        if name.endswith(".py") and (SLOW or not os.path.exists(os.path.join(BUILD, "python", "tenon"))):
            print("skip  %s: this build has no Python package that runs without a sanitizer's help" % name)
            continue
        found, text, seconds = verdict_of(name, arguments, kind, pattern)
        good = found == kind and re.search(pattern, text, re.S) and (kind == "refused" or seconds < LIMIT)
        passed, failed = passed + bool(good), failed + (not good)
        label = " ".join([name] + [os.path.basename(a) for a in arguments])
        print("%s  %-30s %5.2f s  %s: %s" % ("ok   " if good else "FAIL ", label, seconds, found, text.strip().split("\n")[0]))
        if not good:
            print("      wanted %s: %s\n      %s" % (kind, pattern, text.strip()))
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


sys.exit(main())
