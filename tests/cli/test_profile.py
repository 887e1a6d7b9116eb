#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a profile promises: a trace that Perfetto can show, a page that works in a browser, a table, clear refusals.

TENON_BUILD_DIR says which build to test. The page is opened by Debian's chromium, without a screen; where there is
none those tests are skipped and say so. The last line of the output is `N passed, N failed`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_cli  # noqa: E402  (the same folder)
from test_cli import BUILD, MATMUL, TENON, TIMEOUT, Command, run  # noqa: E402

EXAMPLE = os.path.join(BUILD, "examples", "profile")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDS_CHROMIUM = unittest.skipUnless(CHROMIUM, "needs chromium (apt-get install chromium)")


class Profile(Command):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def recorded(self, name, *arguments):
        """The example's profile in the form that NAME asks for."""
        path = self.path(name)
        result = run(path, *arguments, program=EXAMPLE)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def opened(self, path, where="#selftest"):
        """The page's DOM after its scripts ran."""
        result = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + self.path("chromium"),
             "--virtual-time-budget=10000", "--dump-dom", "file://" + path + where],
            capture_output=True, text=True, timeout=TIMEOUT, env={**os.environ, "HOME": self.folder})
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    @staticmethod
    def selftest(dom):
        """What the page says about itself: the whole of it is too long for a message."""
        found = re.search(r'<pre id="selftest"[^>]*>(.*?)</pre>', dom, re.S)
        return found.group(1) if found else "the page has no selftest"


def strict_trace(text):
    """The events of a trace that follows the rules of the trace-event format, which Perfetto's importer relies on; an
    AssertionError says which rule does not hold."""

    def once(pairs):
        assert len({key for key, _ in pairs}) == len(pairs), "a key occurs twice in %r" % (pairs,)
        return dict(pairs)

    def no_constant(word):
        raise AssertionError("%s is no number of JSON" % word)

    data = json.loads(text, object_pairs_hook=once, parse_constant=no_constant)  # refuses raw control characters
    assert set(data) == {"displayTimeUnit", "otherData", "traceEvents"} and data["displayTimeUnit"] in ("ns", "ms")
    number = (int, float)
    required = {"X": {"name": str, "cat": str, "ts": number, "dur": number, "pid": int, "tid": int, "args": dict},
                "M": {"name": str, "pid": int, "args": dict}, "C": {"name": str, "ts": number, "pid": int, "args": dict},
                "s": {"name": str, "cat": str, "id": int, "ts": number, "pid": int, "tid": int},
                "f": {"name": str, "cat": str, "id": int, "ts": number, "pid": int, "tid": int, "bp": str},
                "i": {"name": str, "s": str, "ts": number, "pid": int, "tid": int}}
    open_until, last, named, arrows = {}, {}, set(), {}
    for event in data["traceEvents"]:
        kind = event["ph"]
        assert kind in required, "an event of kind %r" % kind
        for key, wanted in required[kind].items():
            assert isinstance(event[key], wanted) and not isinstance(event[key], bool), (key, event)
        assert event["pid"] == data["traceEvents"][0]["pid"]
        if "ts" in event:
            assert 0 <= event["ts"] < 1e15, event
        if kind == "X":
            track = event["tid"]
            start, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            assert event["dur"] >= 0 and start >= last.get(track, 0), "a thread's events go back in time: %r" % event
            assert track in named, "thread %d has no name yet" % track
            last[track] = start
            stack = open_until.setdefault(track, [])
            while stack and stack[-1] <= start:
                stack.pop()
            assert not stack or end <= stack[-1] + 1, "events overlap without nesting: %r" % event
            stack.append(end)
        elif kind == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            assert isinstance(event["args"].get("name", ""), str)
            named.add(event.get("tid"))
        elif kind == "C":
            assert all(isinstance(value, int) for value in event["args"].values()) and event["args"]
        elif kind in "sf":
            arrows.setdefault(event["id"], []).append(event)
    for number, ends in arrows.items():
        assert [e["ph"] for e in ends] == ["s", "f"], "arrow %d has the ends %r" % (number, ends)
        assert (ends[0]["cat"], ends[0]["name"]) == (ends[1]["cat"], ends[1]["name"])
        assert ends[0]["ts"] <= ends[1]["ts"] and ends[1]["bp"] == "e"
    return data


class Trace(Profile):
    def test_a_trace_follows_the_rules_of_the_format(self):
        data = strict_trace(self.recorded("run.json"))
        self.assertEqual(data["otherData"]["events"], data["otherData"]["shown"])
        self.assertEqual(len([e for e in data["traceEvents"] if e["ph"] == "X"]), data["otherData"]["shown"])

    def test_odd_names_do_not_break_a_trace(self):
        """Control characters, quotes, bytes that are no UTF-8, huge names, words that look like numbers."""
        names = [b"plain", b'"quoted\\"', b"tab\tnew\nline\rbell\x07\x1b[31m\x7f", b"\xff\xfe\x80", b"cut \xe2\x82",
                 "übergroß €".encode(), b"</script><!--", b"NaN", b"Infinity", b"-1e999", b"null", b"\\u0000", b"x" * 100000,
                 b"\xed\xa0\x80 surrogate", b"\xc0\xaf", "\U0001f525\u2028".encode(), b"%s%n%d"]
        script = self.path("odd.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write("import ctypes, sys\n"
                       "lib = ctypes.CDLL(sys.argv[1])\n"
                       "lib.tn_profile_write.argtypes = [ctypes.c_void_p, ctypes.c_char_p]\n"
                       "names = %r\n"
                       "assert lib.tn_profiler_start(None) == 0\n"
                       "for name in names:\n"
                       "    assert lib.tn_profiler_range_begin(name) == 0\n"
                       "    assert lib.tn_profiler_range_end() == 0\n"
                       "p = ctypes.c_void_p()\n"
                       "assert lib.tn_profiler_stop(ctypes.byref(p)) == 0\n"
                       "for path in sys.argv[2:]:\n"
                       "    assert lib.tn_profile_write(p, path.encode()) == 0, path\n" % (names,))
        library = os.path.join(BUILD, "libtenon.so")
        json_path, page = self.path("odd.json"), self.path("odd.html")
        with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
            if re.search(r"^TN_SAN:\w+=.", file.read(), re.M) or not os.path.exists(library):
                self.skipTest("needs a shared library without a sanitizer")
        result = subprocess.run([sys.executable, script, library, json_path, page], capture_output=True, text=True,
                                timeout=TIMEOUT)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(json_path, encoding="utf-8", errors="strict") as file:
            data = strict_trace(file.read())
        shown = [e["name"] for e in data["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(len(shown), len(names))
        for name, text in zip(names, shown):
            wanted = name.decode("utf-8", errors="replace")
            self.assertEqual(text.replace("\ufffd", ""), wanted.replace("\ufffd", ""))
        with open(page, encoding="utf-8", errors="strict") as file:
            self.assertEqual(file.read().count("</script>"), self.recorded("run.html").count("</script>"))

    def test_events_of_a_thread_nest_and_never_overlap(self):
        events = json.loads(self.recorded("run.json"))["traceEvents"]
        slices = [event for event in events if event["ph"] == "X"]
        self.assertGreater(len(slices), 100)
        self.assertEqual(len({event["tid"] for event in slices}), 2)
        for tid in {event["tid"] for event in slices}:
            open_until = []
            # In whole nanoseconds, and in the order of the file: a parent before what is inside it.
            for event in (e for e in slices if e["tid"] == tid):
                start, length = round(event["ts"] * 1000), round(event["dur"] * 1000)
                while open_until and open_until[-1] <= start and len(open_until) > event["args"]["depth"]:
                    open_until.pop()
                self.assertEqual(len(open_until), event["args"]["depth"])
                self.assertLessEqual(start + length, open_until[-1] if open_until else start + length)
                open_until.append(start + length)

    def test_an_event_says_what_it_was(self):
        events = json.loads(self.recorded("run.json"))["traceEvents"]
        product = next(e for e in events if e["name"] == "aten::mm" and e["cat"] == "operator")
        self.assertEqual(product["args"]["key"], "AutogradCPU")
        self.assertEqual(product["args"]["shapes"], "float32[64, 96], float32[96, 96]")
        self.assertRegex(product["args"]["kernel"], r"^tni_autograd_mm \(ops/linalg\.op:\d+\)$")
        self.assertEqual(product["args"]["allocated"], 64 * 96 * 4)
        self.assertEqual({e["cat"] for e in events if e["ph"] == "X"}, {"operator", "redispatch", "backward", "range"})
        names = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        self.assertEqual(names, {"profile"})
        self.assertTrue([e for e in events if e["ph"] == "C"])

    def test_arrows_lead_from_calls_to_their_backward_turns(self):
        events = json.loads(self.recorded("run.json"))["traceEvents"]
        slices = [event for event in events if event["ph"] == "X"]

        def on(arrow, category):
            """The slices that an end of an arrow lies on."""
            return [e for e in slices if e["tid"] == arrow["tid"] and e["cat"] == category
                    and e["ts"] <= arrow["ts"] <= e["ts"] + e["dur"] and "sequence" in e["args"]]

        starts = {e["id"]: e for e in events if e["ph"] == "s"}
        ends = {e["id"]: e for e in events if e["ph"] == "f"}
        self.assertEqual(set(starts), set(ends))
        self.assertGreater(len(starts), 10)
        for number, start in starts.items():
            end = ends[number]
            self.assertEqual(end["bp"], "e")
            self.assertLess(start["ts"], end["ts"])
            made = {e["args"]["sequence"] for e in on(start, "operator")}
            ran = {e["args"]["sequence"] for e in on(end, "backward")}
            self.assertTrue(made & ran)


class Page(Profile):
    def test_the_page_needs_nothing_else(self):
        page = self.recorded("run.html")
        self.assertTrue(page.startswith("<!DOCTYPE html>"))
        self.assertIn("default-src 'none'", page)
        self.assertNotRegex(page, r"(?i)(src|href)\s*=|https?:|@import|url\(")
        self.assertLess(len(page), 400000)

    @NEEDS_CHROMIUM
    def test_the_page_works_in_a_browser(self):
        self.recorded("run.html")
        dom = self.opened(self.path("run.html"))
        self.assertRegex(self.selftest(dom), r"^PASS \d+ checks, \d+ events, \d+ names, \d+ arrows, 2 threads$")
        self.assertIn("aten::gelu", dom)
        self.assertIn("MmBackward0", dom)
        self.assertRegex(dom, r'<p id="notice" hidden="">')

    @NEEDS_CHROMIUM
    def test_an_empty_profile_is_a_page_too(self):
        path = self.path("empty.html")
        result = run("ops", "aten::mm", TENON_PROFILE=path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(self.selftest(self.opened(path)), r"^PASS \d+ checks, 0 events")

    @NEEDS_CHROMIUM
    def test_a_long_recording_is_cut_to_its_longest_events(self):
        path = self.path("long.html")
        self.succeeds("profile", "--repeat=50000", "-o", path, *MATMUL)
        self.assertLess(os.path.getsize(path), 16 << 20)
        dom = self.opened(path)
        self.assertRegex(self.selftest(dom), r"^PASS \d+ checks, 200000 events")
        self.assertRegex(dom, r"the 200 000 longest of 250 000 events")

    @NEEDS_CHROMIUM
    def test_what_did_not_fit_is_said_on_the_page(self):
        path = self.path("full.html")
        self.succeeds("profile", "--repeat=20000", "--max=64K", "-o", path, *MATMUL)
        dom = self.opened(path)
        self.assertRegex(self.selftest(dom), r"^PASS ")
        self.assertRegex(dom, r"\d\d \d\d\d events did not fit")

    @NEEDS_CHROMIUM
    def test_the_page_can_be_drawn(self):
        self.recorded("run.html")
        picture = self.path("run.png")
        subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                        "--user-data-dir=" + self.path("chromium"), "--window-size=1400,1000",
                        "--screenshot=" + picture, "file://" + self.path("run.html")],
                       capture_output=True, timeout=TIMEOUT, env={**os.environ, "HOME": self.folder}, check=True)
        self.assertGreater(os.path.getsize(picture), 20000)


class CommandLine(Profile):
    def test_a_call_prints_the_table(self):
        output = self.succeeds("profile", "--repeat=7", *MATMUL).stdout
        self.assertRegex(output, r"(?m)^name +calls +self +total +mean$")
        self.assertRegex(output, r"(?m)^aten::matmul +7 ")
        self.assertRegex(output, r"(?m)^35 events on 1 thread in ")

    def test_a_program_is_recorded_and_its_status_kept(self):
        path = self.path("run.txt")
        result = run("profile", "--shapes", "--memory", "--stack", "-o", path, "--", EXAMPLE.replace("profile", "gradients"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("wrote " + path, result.stderr)
        with open(path, encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^aten::\w+.* +allocated|^aten::")
        result = run("profile", "-o", path, "--", TENON, "run", "aten::mm", "f32[2,3]", "f32[4,5]")
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot be multiplied", result.stderr)

    def test_a_program_without_tenon_is_said_to_be_one(self):
        self.fails(1, r"was not written: true uses no Tenon", "profile", "-o", self.path("a.html"), "--", "true")
        self.fails(127, r"cannot run nothing-like-it", "profile", "-o", self.path("a.html"), "--", "nothing-like-it")

    def test_a_folder_that_takes_no_files_is_refused_before_the_program_runs(self):
        mark = self.path("it-ran")
        result = self.fails(1, r"^tenon profile: cannot write /nonexistent/a\.html: No such file or directory\n$",
                            "profile", "-o", "/nonexistent/a.html", "--", "touch", mark)
        self.assertEqual((result.stdout, os.path.exists(mark)), ("", False))

    def test_wrong_options_are_refused(self):
        self.fails(2, r"unknown option '--shape'", "profile", "--shape", *MATMUL)
        self.fails(2, r"must end in \.html, \.json or \.txt, not 'a\.png'", "profile", "-o", "a.png", *MATMUL)
        self.fails(2, r"'-o' needs a value", "profile", "-o")
        self.fails(2, r"number of bytes such as 64M, not 'lots'", "profile", "--max=lots", *MATMUL)
        self.fails(2, r"number from 1, not '0'", "profile", "--repeat=0", *MATMUL)
        self.fails(2, r"which operator or program\?", "profile")
        self.fails(2, r"which program\?", "profile", "--")
        self.fails(2, r"goes with OP", "profile", "--repeat=3", "--", "true")

    def test_a_mistake_in_the_environment_is_refused_and_printed(self):
        for value, pattern in ((self.path("a.html") + ",shape", r"unknown option 'shape'; it is FILE, then any of"),
                               (self.path("a.png"), r"must end in \.html, \.json or \.txt"),
                               (self.path("a.html") + ",max=x", r"max= needs a number of bytes")):
            result = run("run", *MATMUL, TENON_PROFILE=value)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"^tenon: TENON_PROFILE: .*" + pattern)
        result = run("run", *MATMUL, TENON_PROFILE="/nonexistent/a.html")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"tenon: TENON_PROFILE: cannot write /nonexistent/a\.html.*No such file")

    def test_the_name_of_the_file_may_have_the_process_in_it(self):
        result = run("run", *MATMUL, TENON_PROFILE=self.path("p%p.json"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(re.match(r"p\d+\.json$", os.listdir(self.folder)[0]))


if __name__ == "__main__":
    sys.exit(test_cli.main())
