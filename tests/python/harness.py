# SPDX-License-Identifier: MIT
"""Runs the unittest cases of the file that calls main() and says how many passed, in the words of the C harness:
the last line is `N passed, N failed[, N skipped]`. A skipped test prints why."""

import sys
import unittest


def interruptions(call):
    """Do `call` again and again, with a KeyboardInterrupt at another place of the package's own Python code each time: wherever
    Ctrl+C could be noticed. Yields after each that came."""
    import itertools
    import os
    import sys

    import tenon
    inside = os.path.dirname(tenon.__file__) + os.sep
    for at in itertools.count():
        left, came = at, False

        def trace(frame, event, argument):
            nonlocal left, came
            code = frame.f_code  # Python prints what a finalizer or a generator that is closed raises, and goes on
            if code.co_filename.startswith(inside) and code.co_name not in ("_abandon", "<genexpr>"):
                if left == 0:
                    came = True
                    raise KeyboardInterrupt
                left -= 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        if not came:
            return
        yield at


def main(module="__main__"):
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[module])
    if len(sys.argv) > 1:  # names that tests must contain
        chosen = unittest.TestSuite()
        stack = [suite]
        while stack:
            item = stack.pop()
            if isinstance(item, unittest.TestSuite):
                stack.extend(item)
            elif any(word in item.id() for word in sys.argv[1:]):
                chosen.addTest(item)
        suite = chosen
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=1).run(suite)
    for test, reason in result.skipped:
        print("skipped: %s: %s" % (test.id(), reason))
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    passed = result.testsRun - failed - len(result.skipped)
    line = "%d passed, %d failed" % (passed, failed)
    if result.skipped:
        line += ", %d skipped" % len(result.skipped)
    sys.stderr.flush()
    print(line, flush=True)
    sys.exit(1 if failed or not result.testsRun else 0)
