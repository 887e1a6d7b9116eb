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


class Trace(Profile):
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
        self.assertRegex(dom, r'<pre id="selftest">PASS \d+ checks, \d+ events, \d+ names, \d+ arrows, 2 threads</pre>')
        self.assertIn("aten::gelu", dom)
        self.assertIn("MmBackward0", dom)
        self.assertRegex(dom, r'<p id="notice" hidden="">')

    @NEEDS_CHROMIUM
    def test_an_empty_profile_is_a_page_too(self):
        path = self.path("empty.html")
        result = run("ops", "aten::mm", TENON_PROFILE=path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(self.opened(path), r'<pre id="selftest">PASS \d+ checks, 0 events')

    @NEEDS_CHROMIUM
    def test_a_long_recording_is_cut_to_its_longest_events(self):
        path = self.path("long.html")
        self.succeeds("profile", "--repeat=50000", "-o", path, *MATMUL)
        self.assertLess(os.path.getsize(path), 16 << 20)
        dom = self.opened(path)
        self.assertRegex(dom, r'<pre id="selftest">PASS \d+ checks, 200000 events')
        self.assertRegex(dom, r"the 200 000 longest of 250 000 events")

    @NEEDS_CHROMIUM
    def test_what_did_not_fit_is_said_on_the_page(self):
        path = self.path("full.html")
        self.succeeds("profile", "--repeat=20000", "--max=64K", "-o", path, *MATMUL)
        dom = self.opened(path)
        self.assertRegex(dom, r'<pre id="selftest">PASS ')
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
