#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Build a flavour of Tenon, run its tests, and say how many passed.

  tools/test.py                          the plain build
  tools/test.py --san address,undefined  one sanitizer build; thread runs the tests labelled `threads`
  tools/test.py --all                    plain, address and undefined, thread
  tools/test.py --python-asan            the Python tests, with the extension under the address sanitizer

The last line is `N passed, N failed`, summed over all test programs of all flavours: a program of the
harness counts as many as its own last line says, anything else counts one. A program that fails without
saying so (a crash, a leak, a time-out) counts one failure more. What the programs that failed said stands
before that line, again and together: who reads the end of a log sees all that is wrong. The exit status is
0 only when tests ran and none failed.
"""

import argparse
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD") or "build"
JOBS = os.environ.get("JOBS") or str(os.cpu_count() or 1)
TOTAL = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", re.MULTILINE)
SKIPPED = re.compile(r"^skip(?:ped:)? (\S+): (.*)$", re.MULTILINE)


def build_folder(san):
    return BUILD if not san else BUILD + "-" + san.replace(",", "-")


def build(san):
    folder = build_folder(san)
    options = ["-DCMAKE_BUILD_TYPE=" + ("Debug" if san else "Release"), "-DTN_SAN=" + san]
    options += os.environ.get("CMAKE_ARGS", "").split()
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "--log-level=WARNING"] + options,
                   check=True)
    subprocess.run(["cmake", "--build", folder, "-j", JOBS], check=True)
    return folder


def last_words(section):
    """What a program said, without ctest's frame; of long texts the beginning and the end."""
    said = re.search(r"^Output:\n(?:-+\n)?(.*?)^<end of output>$", section, re.MULTILINE | re.DOTALL)
    text = (said.group(1) if said else section).rstrip()
    lines = [line if len(line) <= 500 else line[:250] + " ... " + line[-250:] for line in text.split("\n")]
    wrong = [line for line in lines if not line.startswith("ok ")]
    return "\n".join(wrong if len(wrong) <= 90 else wrong[:45] + ["..."] + wrong[-45:])


def reasons_of(name, section, n):
    """[(program, test that was skipped, why)] of a program that skipped n tests; one that skips all says so once."""
    said = SKIPPED.findall(section)
    if len(said) == 1:
        said *= n
    said += [("a test", "it gave no reason")] * (n - len(said))
    return [(name, test, reason) for test, reason in said[:n]]


def count(log):
    """(passed, failed, [(program, test that was skipped, why)], [(program that failed, what it said)]) of a ctest log."""
    passed = failed = 0
    skipped, bad = [], []
    for section in re.split(r"^\d+/\d+ Testing: ", log, flags=re.MULTILINE)[1:]:
        name = section.split("\n", 1)[0].strip()
        ok = re.search(r"^Test Passed\.$", section, re.MULTILINE) is not None
        totals = TOTAL.findall(section)
        if totals:
            said_passed, said_failed, said_skipped = (int(n or 0) for n in totals[-1])
            skipped += reasons_of(name, section, said_skipped)
        else:
            said_passed, said_failed = (1, 0) if ok else (0, 1)
        if not ok and said_failed == 0:
            said_failed = 1
        passed += said_passed
        failed += said_failed
        if not ok or said_failed:
            bad.append((name, last_words(section)))
    return passed, failed, skipped, bad


def run(san):
    start = time.monotonic()
    folder = build(san)
    command = ["ctest", "--test-dir", folder, "--output-on-failure", "-j", JOBS]
    if san == "thread":
        command += ["-L", "threads"]
    if os.environ.get("TESTS"):
        command += ["-R", os.environ["TESTS"]]
    log_path = os.path.join(folder, "Testing", "Temporary", "LastTest.log")
    if os.path.exists(log_path):
        os.remove(log_path)
    code = subprocess.run(command).returncode
    log = ""
    if os.path.exists(log_path):
        with open(log_path, encoding="utf-8", errors="replace") as file:
            log = file.read()
    passed, failed, skipped, bad = count(log)
    if code != 0 and failed == 0:
        failed = 1
        bad.append(("ctest itself (exit status %d)" % code, log[-2000:]))
    flavour = san or "plain"
    print("-- %s: %d passed, %d failed%s, %.0f s" % (
        flavour, passed, failed, ", %d skipped" % len(skipped) if skipped else "", time.monotonic() - start))
    for row in dict.fromkeys(skipped):
        print("   skipped: %s, %s: %s%s" % (*row, " (%d)" % skipped.count(row) if skipped.count(row) > 1 else ""))
    for name, _ in bad:
        print("   failed: %s (rerun: ctest --test-dir %s -R '^%s$' -V)" % (name, folder, name))
    sys.stdout.flush()
    return passed, failed, [(flavour, name, said) for name, said in bad]


def python_asan():
    """(passed, failed) of the Python tests with the instrumented extension. The interpreter is not instrumented: the
    sanitizer is loaded before it, and what CPython keeps until the end is no leak of ours."""
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "--log-level=WARNING", "-DCMAKE_BUILD_TYPE=Release"]
                   + os.environ.get("CMAKE_ARGS", "").split(), check=True)
    subprocess.run(["cmake", "--build", BUILD, "-j", JOBS, "--target", "tn_python_asan", "tenon"], check=True)
    folder = os.path.abspath(BUILD)
    libraries = [subprocess.run(["cc", "-print-file-name=" + name], check=True, stdout=subprocess.PIPE,
                                text=True).stdout.strip() for name in ("libasan.so", "libubsan.so")]
    environment = dict(os.environ, LD_PRELOAD=":".join(libraries), PYTHONMALLOC="malloc",
                       ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1", UBSAN_OPTIONS="print_stacktrace=1",
                       PYTHONPATH=os.path.join(folder, "python-asan"), TENON_BUILD_DIR=folder, TENON_SOURCE_DIR=ROOT)
    tests = os.path.join(ROOT, "tests", "python")
    passed = failed = 0
    for name in sorted(os.listdir(tests)):
        path = "python/" + name[5:-3]
        if not re.fullmatch(r"test_\w+\.py", name) or not re.search(os.environ.get("TESTS") or "", path):
            continue
        if path == "python/wheel":
            print("   left out: %s (it builds a package of its own)" % path)
            continue
        try:
            done = subprocess.run([sys.executable, "-B", os.path.join(tests, name)], env=environment, timeout=1200,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            code, text = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            code, text = 124, (late.stdout or b"").decode(errors="replace") + "\ntook too long"
        totals = TOTAL.findall(text)
        good, bad = (int(totals[-1][0]), int(totals[-1][1])) if totals else (0, 0)
        if code != 0 and bad == 0:
            bad = 1
        passed, failed = passed + good, failed + bad
        if bad:
            print("   failed: %s (exit status %d)\n%s" % (path, code, text[-4000:]))
        sys.stdout.flush()
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--san", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--python-asan", action="store_true")
    args = parser.parse_args()
    if args.python_asan:
        passed, failed = python_asan()
        print("%d passed, %d failed" % (passed, failed))
        return 0 if failed == 0 and passed > 0 else 1
    flavours = ["", "address,undefined", "thread"] if args.all else [args.san]
    passed = failed = 0
    wrong = []
    for san in flavours:
        try:
            flavour_passed, flavour_failed, flavour_wrong = run(san)
            wrong += flavour_wrong
        except subprocess.CalledProcessError as error:
            print("-- %s: cannot build: %s" % (san or "plain", " ".join(error.cmd)))
            failed += 1
            break
        except KeyboardInterrupt:
            return 130
        passed += flavour_passed
        failed += flavour_failed
        if flavour_passed + flavour_failed == 0 and san != "thread":
            print("-- no test ran")
            failed += 1
    for flavour, name, said in wrong:
        print("-- failed: %s (%s)\n%s" % (name, flavour, said))
    print("%d passed, %d failed" % (passed, failed))
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
