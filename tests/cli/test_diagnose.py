#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `tenon diagnose` promises: the last line of each thread, what was open, and the right reading of it.

TENON_BUILD_DIR says which build to test; the traces are the corpus of the fuzz target. The last line of the output is
`N passed, N failed`.
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_cli  # noqa: E402  (the same folder)
from test_cli import ENVIRONMENT, MATMUL, SOURCE, TENON, TIMEOUT, Command, run  # noqa: E402

CORPUS = os.path.join(SOURCE, "tests/fuzz/corpus/trace")


def corpus(name):
    with open(os.path.join(CORPUS, name), "rb") as file:
        return file.read()


class Diagnose(Command):
    def read(self, trace, *options):
        return subprocess.run([TENON, "diagnose", "-", *options], input=trace, capture_output=True,
                              env=ENVIRONMENT, timeout=TIMEOUT)

    def data(self, trace):
        result = self.read(trace, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def one(self, trace):
        threads = self.data(trace)["threads"]
        self.assertEqual(len(threads), 1)
        return threads[0]

    def test_a_whole_trace_of_this_build_is_at_rest(self):
        trace = run("run", *MATMUL, TENON_DISPATCH_DEBUG="mm").stderr.encode()
        data = self.data(trace)
        self.assertEqual((data["program"], data["garbled"], data["other_lines"]), ("tenon", 0, 0))
        self.assertEqual(data["told_by"], "its mark, [DEBUG TENON]")
        self.assertEqual(len(data["threads"]), 1)
        self.assertEqual(data["threads"][0]["thread"], data["process"])
        self.assertTrue(data["threads"][0]["at_rest"])
        self.assertEqual(data["threads"][0]["open"], [])

    def test_trace_lines_before_the_first_stage_line_belong_to_the_same_thread(self):
        trace = run("trace", "aten::mm", "meta f32[2,3]", "meta f32[3,2]", "--debug").stderr.encode()
        self.assertIn(b"[callBoxed] op=[aten::mm]", trace)
        self.assertTrue(self.one(trace)["at_rest"])

    def test_every_point_at_which_a_trace_may_end_has_its_reading(self):
        lines = corpus("tenon_whole.txt").decode().splitlines(keepends=True)
        expected = {
            "About to call lookup()": "in lookup",
            "About to call entry.lookup()": "in lookup",
            "dispatch table index=112": "in the validity check",
            "kernel.isValid=1, isValidUnboxed=1": "between lookup and the kernel",
            "About to call kernel.call<>() [fast path]": "inside the kernel",
            "=== CALLING at::mm NOW ===": "entering the dispatcher",
            "Meta function complete": "after the meta kernel",
            "at::mm RETURNED!": "outside the dispatcher",
        }
        seen = set()
        for i in range(2, len(lines) + 1):
            thread = self.one("".join(lines[:i]).encode())
            self.assertEqual(thread["line"], i)
            self.assertEqual(thread["text"], lines[i - 1].rstrip("\n"))
            text = lines[i - 1].split("] ", 1)[1].rstrip("\n")
            if text in expected:
                self.assertEqual(thread["stands"], expected[text], lines[i - 1])
                seen.add(text)
            self.assertEqual(thread["at_rest"], i == len(lines))
            self.assertTrue(thread["means"] and thread["check"])
        self.assertEqual(seen, set(expected))

    def test_a_call_that_failed_is_over_whatever_line_comes_next(self):
        def hop(kind, *end):
            return (f"[DEBUG Dispatcher::{kind}] op=my::f", "[DEBUG OperatorEntry::lookup] op=my::f, keyset=DispatchKeySet(CPU)",
                    "[DEBUG OperatorEntry::lookup] dispatch table index=1", *end)

        boxed = ("[DEBUG OperatorEntry::lookup] kernel.isValid=1, isValidUnboxed=0",
                 "[DEBUG BoxedKernel::callBoxed] About to invoke (*boxed_kernel_func_)(...)")
        back = ("[DEBUG BoxedKernel::callBoxed] (*boxed_kernel_func_)() RETURNED!",
                "[DEBUG KernelFunction::callBoxed] boxed_kernel_func_.callBoxed() RETURNED")
        ends = ("[DEBUG OperatorEntry::lookup] No kernel, about to report it",
                "[DEBUG Dispatcher::redispatchBoxed] Refused: RECURSION")
        mark = "[DEBUG TENON] version 0.1.0, process 7, thread 7"
        for end in ends:
            for depth in (1, 2, 300):  # the last is deeper than calls are kept
                lines = [mark]
                lines += hop("callBoxed", *boxed) * depth + hop("redispatchBoxed", end)
                failed = self.one("\n".join(lines + [""]).encode())
                self.assertFalse(failed["at_rest"])
                lines += (*back, "[DEBUG Dispatcher::callBoxed] kernel.callBoxed() RETURNED [fast path]") * depth
                over = self.one("\n".join(lines + [""]).encode())
                self.assertEqual((over["at_rest"], over["open"]), (True, []), (end, depth))
                self.assertEqual(over["stands"], "outside the dispatcher")
                inside = self.one("\n".join(lines[:-1] + [""]).encode())  # one return is missing
                self.assertEqual((inside["at_rest"], len(inside["open"])), (False, 1), (end, depth))

    def test_the_reported_hang_is_read_as_a_wait_for_the_interpreter(self):
        data = self.data(corpus("pytorch_hang_in_boxed.txt"))
        self.assertEqual(data["program"], "pytorch")
        thread = data["threads"][0]
        self.assertEqual(thread["stands"], "inside the kernel")
        self.assertEqual([(c["operator"], c["key"], c["boxed_only"]) for c in thread["open"]],
                         [("aten::mm", "AutogradMeta", False), ("aten::mm", "Meta", True)])
        self.assertIn("interpreter's lock", thread["means"])
        self.assertIn("says nothing about routing", thread["means"])
        self.assertEqual(thread["report_says"], '"Hang is inside the kernel itself"')

    def test_each_row_of_the_reports_table_has_its_correction(self):
        begin = corpus("pytorch_hang_in_boxed.txt").decode().splitlines(keepends=True)
        redispatch = "".join(begin[:14]) + "[DEBUG Dispatcher::redispatchBoxed] op=aten::mm\n"
        rows = (("".join(begin[:2]), "entering the dispatcher", "entering dispatcher", "once in the process"),
                (redispatch + "[DEBUG Dispatcher::redispatchBoxed] About to call entry.lookup()\n", "in lookup",
                 "in lookup function", "138 rows"),
                ("".join(begin[:10]), "in the validity check", "validity check", "Impossible"),
                (redispatch + "[DEBUG Dispatcher::redispatchBoxed] about to call kernel.callBoxed()\n",
                 "in kernel invocation", "kernel invocation", "interpreter's lock"),
                ("".join(begin), "inside the kernel", "inside the kernel itself", "Right:"))
        for trace, stands, report, means in rows:
            thread = self.one(trace.encode())
            self.assertEqual(thread["stands"], stands)
            self.assertIn(report, thread["report_says"])
            self.assertIn(means, thread["means"])

    # Every line that the documents print or draw, and where a thread stands that printed it last.
    LINES = [
        ("[DEBUG _matmul_impl] Calling at::mm(t1_folded, *t2) instead...", "entering the dispatcher"),
        ("[DEBUG _matmul_impl] t1_folded.key_set() = DispatchKeySet(Meta, ADInplaceOrView, AutogradMeta)", "entering the dispatcher"),
        ("[DEBUG _matmul_impl] t1_folded.has_storage() = 1", "entering the dispatcher"),
        ("[DEBUG _matmul_impl] t2->is_python_dispatch() = 0", "entering the dispatcher"),
        ("[DEBUG _matmul_impl] GradMode::is_enabled() = 1", "entering the dispatcher"),
        ("[DEBUG _matmul_impl] Now calling at::mm...", "entering the dispatcher"),
        ("[DEBUG _matmul_impl] About to call at::mm WITHOUT NoGradGuard...", "entering the dispatcher"),
        ("[DEBUG _matmul_impl STDERR] === CALLING at::mm NOW ===", "entering the dispatcher"),
        ("[DEBUG _matmul_impl] Inside NoGradGuard, calling at::mm...", "entering the dispatcher"),
        ("[DEBUG Dispatcher::call] op=aten::mm", "entering the dispatcher"),
        ("[DEBUG Dispatcher::call] dispatchKeySet=DispatchKeySet(Meta, AutogradMeta)", "entering the dispatcher"),
        ("[DEBUG Dispatcher::call] About to call lookup()", "in lookup"),
        ("[DEBUG OperatorEntry::lookup] op=aten::mm, keyset=DispatchKeySet(Meta, AutogradMeta)", "in lookup"),
        ("[DEBUG OperatorEntry::lookup] highest priority key=AutogradMeta", "in lookup"),
        ("[DEBUG OperatorEntry::lookup] dispatch table index=112", "in the validity check"),
        ("[DEBUG OperatorEntry::lookup] kernel.isValid=1, isValidUnboxed=0  \u2190 BOXED ONLY", "between lookup and the kernel"),
        ("[DEBUG OperatorEntry::lookup] Returning kernel, about to call it", "between lookup and the kernel"),
        ("[DEBUG Dispatcher::call] lookup() returned", "between lookup and the kernel"),
        ("[DEBUG Dispatcher::call] About to call kernel.call<>() [fast path]", "inside the kernel"),
        ("[DEBUG Dispatcher::redispatchBoxed] op=aten::mm, dispatchKeySet=DispatchKeySet(Meta)", "entering the dispatcher"),
        ("[DEBUG Dispatcher::redispatchBoxed] About to call entry.lookup()", "in lookup"),
        ("[DEBUG Dispatcher::redispatchBoxed] Before calling entry.lookup()", "in lookup"),
        ("[DEBUG Dispatcher::redispatchBoxed] lookup() returned, about to call kernel.callBoxed()", "in kernel invocation"),
        ("[DEBUG Dispatcher::redispatchBoxed] After lookup, before kernel.callBoxed()", "in kernel invocation"),
        ("[DEBUG Dispatcher::callBoxed] About to call kernel.callBoxed() [fast path]", "in kernel invocation"),
        ("[DEBUG KernelFunction::callBoxed] About to call boxed_kernel_func_.callBoxed()", "in kernel invocation"),
        ("[DEBUG BoxedKernel::callBoxed] About to invoke (*boxed_kernel_func_)(...)", "inside the kernel"),
        ("[BoxedKernel LAMBDA] >>>>> Calling functor operator() <<<<<", "inside the kernel"),
        ("[DEBUG meta_mm] called", "inside the meta kernel"),
        ("[DEBUG TORCH_META_FUNC(mm)] ========== ENTERED MM META FUNCTION ==========", "inside the meta kernel"),
        ("[DEBUG TORCH_META_FUNC(mm)] self shape: [8, 16]", "inside the meta kernel"),
        ("[DEBUG TORCH_META_FUNC(mm)] Meta function complete", "after the meta kernel"),
        ("[DEBUG TORCH_IMPL_FUNC(mm_out_cpu)] ENTERED", "inside the CPU kernel"),
        ("[DEBUG BoxedKernel::callBoxed] (*boxed_kernel_func_)() RETURNED!", "returning"),
        ("[DEBUG KernelFunction::callBoxed] boxed_kernel_func_.callBoxed() RETURNED", "returning"),
        ("[DEBUG Dispatcher::callBoxed] kernel.callBoxed() RETURNED [fast path]", "outside the dispatcher"),
        ("[DEBUG _matmul_impl] at::mm RETURNED!", "outside the dispatcher"),
        ("[DEBUG DISPATCHER] op=[aten::mm], full key set=DispatchKeySet(Meta)", "in this dispatch or behind it"),
        ("[DEBUG OperatorEntry::computeDispatchTableEntryWithDebug] op=aten::mm, key=Meta", "registering"),
        ("[DEBUG computeDispatchTableEntry] Path 2.2: CompositeExplicitAutograd", "registering"),
        (" [call] op=[aten::mm], key=[AutogradMeta]", "in this dispatch or behind it"),
        ("[Dispatcher] Looking at dispatch keys: Meta, ADInplaceOrView, AutogradMeta", "entering the dispatcher"),
        ("[Autograd layer] Since AutogradMeta is present", "inside the kernel"),
        ("[Meta dispatch] Dispatch to Meta kernel", "in kernel invocation"),
        ("TORCH_META_FUNC(mm) - Compute output shape", "inside the meta kernel"),
        ("About to call at::mm...", "entering the dispatcher"),
        ("About to call entry.lookup()", "in lookup"),
        ("dispatch table index=16", "in the validity check"),
        ("about to call kernel.callBoxed()", "in kernel invocation"),
        ("kernel.callBoxed()", "inside the kernel"),
    ]

    def test_each_line_of_the_documents_has_its_reading_also_where_a_trace_begins_with_it(self):
        for line, stands in self.LINES:
            thread = self.one((line + "\n").encode())
            self.assertEqual(thread["stands"], stands, line)
            self.assertEqual(thread["text"], line.lstrip())

    def test_no_advice_for_pytorch_is_about_tenons_environment(self):
        for line, _ in self.LINES:
            data = self.data((line + "\n").encode())
            if data["program"] == "pytorch":
                self.assertNotIn("TENON_", json.dumps(data), line)
                self.assertNotIn("tenon doctor", json.dumps(data), line)

    def test_a_lookup_behind_a_kernel_is_a_hop_of_its_own(self):
        trace = "\n".join([
            "[DEBUG Dispatcher::call] op=aten::mm",
            "[DEBUG OperatorEntry::lookup] op=aten::mm, keyset=DispatchKeySet(Meta, AutogradMeta)",
            "[DEBUG OperatorEntry::lookup] highest priority key=AutogradMeta",
            "[DEBUG Dispatcher::call] About to call kernel.call<>() [fast path]",
            "[DEBUG OperatorEntry::lookup] op=aten::mm, keyset=DispatchKeySet(Meta)",
            "[DEBUG OperatorEntry::lookup] highest priority key=Meta", ""])
        self.assertEqual([call["key"] for call in self.one(trace.encode())["open"]], ["AutogradMeta", "Meta"])

    def test_the_dispatch_trace_gives_the_last_path(self):
        data = self.data(corpus("dispatch_trace.txt"))
        self.assertEqual(data["program"], "unknown")
        self.assertEqual([c["operator"] + " " + c["key"] for c in data["threads"][0]["open"]],
                         ["aten::matmul AutogradMeta", "aten::mm AutogradMeta", "aten::mm Meta"])
        unindented = b"[call] op=[aten::a], key=[CPU]\n [call] op=[aten::b], key=[CPU]\n [call] op=[aten::c], key=[CPU]\n"
        self.assertEqual([c["operator"] for c in self.one(unindented)["open"]], ["aten::a", "aten::c"])

    def test_threads_are_told_apart_by_tenons_marks(self):
        data = self.data(corpus("tenon_two_threads.txt"))
        self.assertEqual([t["thread"] for t in data["threads"]], [4711, 4712])
        self.assertTrue(data["cut"])
        self.assertEqual(data["garbled"], 1)
        self.assertEqual(data["threads"][1]["open"][0]["operator"], "aten::mm")

    def test_a_functor_of_pytorchs_is_its_mark(self):
        trace = corpus("pytorch_hang_in_boxed.txt") + b"[BoxedKernel LAMBDA] >>>>> Calling functor operator() <<<<<\n"
        data = self.data(trace)
        self.assertEqual(data["program"], "pytorch")
        self.assertIn("only it prints", data["told_by"])
        self.assertEqual(data["threads"][0]["stands"], "inside the kernel")

    def test_what_a_note_says_about_a_stage_is_no_line_of_it(self):
        hang = corpus("pytorch_hang_in_boxed.txt")
        alone, others = self.one(hang), self.data(hang)["other_lines"]
        for note in ("# note: no TORCH_META_FUNC(mm) after callBoxed",
                     "Killed after 5s. TORCH_META_FUNC(mm) was never entered!",
                     "- C++ TORCH_META_FUNC(mm) is not being called",
                     "   - But TORCH_META_FUNC(mm) was never reached",
                     "| `dispatch table index=N` | Hang is in kernel validity check |",
                     "Look for: `[DEBUG OperatorEntry::lookup]`",
                     "- `[DEBUG TORCH_META_FUNC(mm)] ========== ENTERED MM META FUNCTION ==========`",
                     "Note: [DEBUG TORCH_META_FUNC(mm)] was never printed",
                     "There was no [DEBUG _matmul_impl] at::mm RETURNED!",
                     '  std::cerr << "[DEBUG ...] ..." << std::endl;',
                     "at::mm RETURNED!", "kernel.callBoxed()"):
            for trace in (hang + note.encode() + b"\n", note.encode() + b"\n" + hang):
                data = self.data(trace)
                thread = data["threads"][0]
                self.assertEqual((thread["text"], thread["stands"], thread["open"]),
                                 (alone["text"], alone["stands"], alone["open"]), note)
                self.assertEqual((data["other_lines"], data["garbled"]), (others + 1, 0), note)

    def test_a_prefix_that_a_log_puts_before_each_line_is_no_damage(self):
        hang = corpus("pytorch_hang_in_boxed.txt").decode()
        alone = self.data(hang.encode())
        for prefix in ("2026-01-01T00:00:00.123Z rank0: ", "[12.345] ", "12:00:01 host stderr ", "worker | ", "stderr: ",
                       "INFO:root:1234 ", "> ", "(pid=77) "):
            data = self.data("".join(prefix + line for line in hang.splitlines(keepends=True)).encode())
            self.assertEqual(data["garbled"], 0, prefix)
            self.assertEqual((data["stage_lines"], data["threads"]), (alone["stage_lines"], alone["threads"]), prefix)
        trace = "".join("[9.5] " + line for line in corpus("dispatch_trace.txt").decode().splitlines(keepends=True))
        self.assertEqual(self.data(trace.encode())["threads"], self.data(corpus("dispatch_trace.txt"))["threads"])

    def test_colours_are_taken_off_and_no_control_character_is_passed_on(self):
        hang = corpus("pytorch_hang_in_boxed.txt")
        coloured = b"".join(b"\x1b[1;31m" + line + b"\x1b[0m\x1b]0;title\x07\n" for line in hang.splitlines())
        self.assertEqual(self.data(coloured), self.data(hang))
        evil = b"[DEBUG Dispatcher::call] op=aten::\x9b2J\xc2\x9bmm\x08\x0e\x7f\x1b\n"
        result = self.read(hang + evil)
        self.assertEqual(result.returncode, 0)
        for c in result.stdout.decode(errors="replace"):
            self.assertTrue(c == "\n" or not (ord(c) < 32 or 127 <= ord(c) < 160), hex(ord(c)))

    def test_registrations_are_not_calls(self):
        thread = self.one(corpus("registering.txt"))
        self.assertEqual(thread["stands"], "registering")
        self.assertIn("never in a call", thread["means"])

    def test_what_could_be_read_of_a_garbled_file_is_reported(self):
        result = self.read(corpus("garbled.bin"))
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"that could not be read in full", result.stdout)
        for size in range(0, 4000, 97):
            trace = (corpus("tenon_whole.txt") * 2)[:size] + bytes(range(256)) * (size % 3)
            self.assertIn(self.read(trace, "--json").returncode, (0, 1))

    def whole(self, trace):
        """Whatever it is, it is read to its end, and the answer makes sense; or it is said to be no trace."""
        result = self.read(trace, "--json")
        if result.returncode == 1:
            self.assertRegex(result.stderr, rb"none is a stage line|is empty")
            return None
        data = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(data["lines"], data["stage_lines"] + data["dispatch_lines"] + data["other_lines"])
        for thread in data["threads"]:
            self.assertTrue(thread["means"] and thread["stands"])
        return data

    def test_every_truncation_of_a_trace_is_read(self):
        trace = corpus("pytorch_hang_in_boxed.txt")
        for n in sorted(set(range(0, len(trace), 37)) | {1, 2, len(trace) - 1}):
            if trace[:n].strip():
                self.whole(trace[:n])

    def test_lines_of_any_kind_are_read(self):
        trace = corpus("pytorch_hang_in_boxed.txt")
        whole = self.whole(trace)["threads"][0]["stands"]
        self.assertEqual(self.whole(trace.replace(b"\n", b"\r\n"))["threads"][0]["stands"], whole)
        self.assertEqual(self.whole(b"\n\n" + trace + b"\n\n\n")["threads"][0]["stands"], whole)
        self.whole(trace.replace(b"aten", b"at\0en"))
        self.whole(b"\0" * 5000 + b"\n" + trace)
        self.whole(trace + b"[DEBUG Dispatcher::call] op=" + b"x" * 3000000)
        self.whole(b"y" * 3000000 + b"\n" + trace)
        self.whole(b"[DEBUG " * 20000 + b"\n" + trace)
        self.whole(b"\xff\xfe" + trace.decode().encode("utf-16-le"))

    def test_random_bytes_do_no_harm(self):
        import random
        chance = random.Random(5)
        trace = bytearray(corpus("tenon_whole.txt"))
        for _ in range(25):
            broken = bytearray(trace)
            for _ in range(chance.randrange(1, 60)):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            self.whole(bytes(broken))
        self.read(bytes(chance.randrange(256) for _ in range(20000)))

    def test_interleaved_threads_of_an_instrumented_pytorch_are_said_to_be_mixed(self):
        lines = corpus("pytorch_hang_in_boxed.txt").decode().splitlines(keepends=True)
        mixed = "".join(a + b for a, b in zip(lines, lines[3:] + lines[:3])).encode()
        data = self.whole(mixed)
        self.assertEqual(data["program"], "pytorch")
        text = self.read(mixed).stdout.decode()
        self.assertIn("several may be mixed", text)
        # Lines without a mark of their thread are one stream: its last line is reported as it stands.
        self.assertEqual(data["threads"][0]["text"], mixed.decode().splitlines()[-1])

    def test_a_file_that_is_none_is_refused(self):
        self.fails(1, r"cannot read /nonexistent", "diagnose", "/nonexistent")
        self.fails(1, r"has 2 lines, and none is a stage line", "diagnose", os.path.join(SOURCE, "src/base/CMakeLists.txt"))
        self.fails(1, r"cannot read /", "diagnose", "/")
        self.fails(2, r"which file\?", "diagnose")
        self.fails(2, r"one file at a time", "diagnose", "a", "b")

    def test_a_file_of_another_kind_is_told_by_its_kind(self):
        result = self.fails(1, r"cannot read /: it is a folder", "diagnose", "/")
        self.assertEqual(len(result.stderr.splitlines()), 1)
        for trace, kind in ((b"\x1f\x8b\x08rest", "compressed (gzip): zcat it into `tenon diagnose -`"),
                            (b"TENONREC\x01", "a record of the flight recorder: `tenon doctor` reads it"),
                            (b"", "empty"), (b"a\0b\n", "no text: it has zero bytes"), (b"\x7fELF\x02", "a program")):
            result = self.read(trace)
            self.assertEqual(result.returncode, 1)
            self.assertIn("standard input is no trace: it is " + kind, result.stderr.decode())

    def test_a_trace_in_utf_16_is_read_as_any_other(self):
        plain = corpus("pytorch_hang_in_boxed.txt").decode() + "Ω 𝄞 end\n"
        for codec in ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"):
            self.assertEqual(self.data(plain.encode(codec)), self.data(plain.encode()), codec)
        # Cut anywhere, also in the middle of a character: what is there is read.
        self.assertEqual(self.data(plain.encode("utf-16")[:-7])["threads"], self.data(plain.encode())["threads"])

    def test_the_text_shows_the_calls_that_are_open(self):
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            file.write(corpus("pytorch_hang_in_boxed.txt"))
            file.flush()
            output = self.succeeds("diagnose", file.name).stdout
        self.assertIn("  open      aten::mm [AutogradMeta] ->\n              aten::mm [Meta], boxed only\n", output)
        self.assertIn("written by an instrumented PyTorch", output)
        self.assertRegex(output, r"(?m)^  check     see who holds the interpreter's lock")


if __name__ == "__main__":
    sys.exit(test_cli.main())
