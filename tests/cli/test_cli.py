#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the `tenon` command promises: outputs, exit statuses, JSON, traces, manual pages.

  tests/cli/test_cli.py [--update] [names of tests]

TENON_BUILD_DIR says which build to test. Golden outputs are in golden/, with times and line numbers masked;
--update writes them anew: look at the difference before you commit it. The last line of the output is
`N passed, N failed`.
"""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("TENON_SOURCE_DIR") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("TENON_BUILD_DIR") or os.path.join(SOURCE, "build")
TENON = os.path.join(BUILD, "tenon")
UPDATE = False
TIMEOUT = 1000
ESCAPE = "\033"
# Watching and colours come from the environment: tests start without any.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("TENON_", "TORCH_", "NO_COLOR"))}

MATMUL = ("aten::matmul", "meta f32[2,4,16]", "meta f32[16,16]")
KEYS = "DispatchKeySet(Meta, AutogradMeta)"
# What `matmul` of the two dispatches below itself, in the reference's format.
TRACE_BELOW = """\
  [call] op=[aten::reshape], key=[AutogradMeta]
   [call] op=[aten::view], key=[AutogradMeta]
    [redispatch] op=[aten::view], key=[ADInplaceOrView]
     [redispatch] op=[aten::view], key=[Meta]
  [call] op=[aten::mm], key=[AutogradMeta]
   [redispatch] op=[aten::mm], key=[Meta]
  [call] op=[aten::_unsafe_view], key=[AutogradMeta]
   [redispatch] op=[aten::_unsafe_view], key=[Meta]
"""


def run(*arguments, program=TENON, **environment):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=TIMEOUT,
                          env={**ENVIRONMENT, **environment})


def run_on_terminal(*arguments, **environment):
    """(exit status, what a person sees): both streams go to a terminal."""
    try:
        leader, follower = pty.openpty()
    except OSError as error:
        raise unittest.SkipTest("the system has no pseudo-terminals: %s" % error)
    process = subprocess.Popen([TENON, *arguments], stdin=subprocess.DEVNULL, stdout=follower,
                               stderr=follower, env={**ENVIRONMENT, "TERM": "xterm", **environment})
    os.close(follower)
    seen = b""
    while select.select([leader], [], [], TIMEOUT)[0]:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        seen += piece
    os.close(leader)
    return process.wait(timeout=TIMEOUT), seen.decode()


def masked(text):
    """Without what changes from run to run, or when a line is added to a source file."""
    text = re.sub(r"\b\d+(\.\d+)? (ns|us|ms|s)\b", "TIME", text)
    text = re.sub(r"(\.(?:op|c|h)):\d+(  +)?", lambda m: m.group(1) + ":LINE" + ("  " if m.group(2) else ""), text)
    text = re.sub(r'"line": \d+', '"line": 0', text)
    text = re.sub(r'"nanoseconds": \d+', '"nanoseconds": 0', text)
    return re.sub(r"\d+ bytes", "N bytes", text)


class Command(unittest.TestCase):
    maxDiff = None

    def golden(self, name, text):
        path = os.path.join(HERE, "golden", name)
        text = masked(text)
        if UPDATE:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            self.assertMultiLineEqual(file.read(), text)

    def succeeds(self, *arguments, **environment):
        result = run(*arguments, **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def fails(self, status, pattern, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertRegex(result.stderr, pattern)
        return result


class Usage(Command):
    def test_no_command_shows_the_usage_and_is_wrong(self):
        self.fails(2, r"^usage: tenon COMMAND")

    def test_version_says_what_was_built(self):
        output = self.succeeds("--version").stdout
        self.assertRegex(output, r"^tenon \d+\.\d+\.\d+\ncompiler: ")

    def test_help_lists_every_command_and_explains_each(self):
        overview = self.succeeds("--help").stdout
        self.assertEqual(overview, self.succeeds("help").stdout)
        self.golden("help.txt", overview)
        for name in ("ops", "explain", "trace", "run", "profile", "diagnose", "repro", "demo", "help"):
            self.assertRegex(overview, r"(?m)^  %s " % name)
            text = self.succeeds("help", name).stdout
            self.assertTrue(text.startswith("usage: tenon %s" % name))
            self.assertEqual(text, self.succeeds(name, "--help").stdout)

    def test_a_command_that_is_nearly_right_is_suggested(self):
        self.fails(2, r"'explian' is not a command.*\n.*similar command is 'explain'", "explian")
        self.assertNotIn("similar", self.fails(2, "not a command", "frobnicate").stderr)

    def test_commands_of_later_versions_are_neither_listed_nor_run(self):
        overview = self.succeeds("--help").stdout
        for name in ("train", "compile", "bench"):
            self.fails(2, r"^tenon: '%s' is not part of this version$" % name, name)
            self.assertNotRegex(overview, r"(?m)^  %s\b" % name)

    def test_wrong_options_are_refused_with_the_usage_line(self):
        self.fails(2, r"unknown option '--jsn'\nusage: tenon ops ", "ops", "--jsn")
        self.fails(2, r"'--json' takes no value", "ops", "--json=yes")
        self.fails(2, r"unknown option '-x'", "-x")
        self.fails(2, r"which operator\?", "explain")
        self.fails(2, r"one pattern", "ops", "a", "b")
        self.fails(2, r"--all goes with", "ops", "mm", "--all")
        self.fails(2, r"do not go together", "explain", *MATMUL, "--json", "--time")
        self.fails(2, r"takes no argument", "demo", "x")

    def test_a_number_below_zero_is_an_argument(self):
        self.assertIn("tensor([1., 1.])", self.succeeds("run", "aten::add.Scalar", "f32[2]=3", "-2").stdout)
        self.assertIn("tensor([1., 1.])",
                      self.succeeds("run", "aten::add.Scalar", "--", "f32[2]=3", "-2").stdout)

    def test_an_operator_that_does_not_exist_is_named_with_what_is_near(self):
        self.fails(1, r"Could not find schema for aten::mmm\. Did you mean aten::mm", "run", "aten::mmm")
        self.fails(1, r"Did you mean aten::mm", "ops", "aten::mmm")
        self.fails(1, r"no operator's name contains 'qqq'", "ops", "qqq")

    def test_an_argument_that_cannot_be_read_is_quoted_beside_the_schema(self):
        result = self.fails(1, r"f33\[2\]", "run", "aten::mm", "f33[2]", "f32[2,2]")
        self.assertIn("aten::mm(Tensor self, Tensor mat2) -> Tensor", result.stderr)
        self.assertEqual(result.stdout, "")
        self.fails(1, r"missing value for argument 'mat2'", "run", "aten::mm", "f32[2,2]")

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_full_disk_is_a_failure(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([TENON, "ops"], stdout=full, stderr=subprocess.PIPE, text=True,
                                    env=ENVIRONMENT, timeout=TIMEOUT)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write", result.stderr)


class Colours(Command):
    def test_a_pipe_gets_no_escape_codes(self):
        for arguments in (("explain", *MATMUL), ("ops", "aten::mm"), ("ops",), ("--help",)):
            self.assertNotIn(ESCAPE, self.succeeds(*arguments, TERM="xterm").stdout)

    def test_a_terminal_gets_colours_unless_it_is_dumb_or_they_are_not_wanted(self):
        self.assertIn(ESCAPE, run_on_terminal("explain", *MATMUL)[1])
        self.assertNotIn(ESCAPE, run_on_terminal("explain", *MATMUL, NO_COLOR="1")[1])
        self.assertNotIn(ESCAPE, run_on_terminal("explain", *MATMUL, TERM="dumb")[1])
        self.assertIn(ESCAPE, run_on_terminal("explain", *MATMUL, NO_COLOR="")[1])


class Ops(Command):
    def test_the_list_is_sorted_and_complete_in_both_forms(self):
        lines = self.succeeds("ops").stdout.splitlines()
        data = json.loads(self.succeeds("ops", "--json").stdout)
        self.assertEqual(lines, [entry["schema"] for entry in data])
        names = [entry["name"] for entry in data]
        self.assertEqual(names, sorted(names))
        self.assertTrue({"aten::mm", "aten::matmul", "aten::add.Tensor", "aten::view"} <= set(names))

    def test_a_pattern_is_a_part_of_a_name_or_a_glob(self):
        parts = self.succeeds("ops", "mm").stdout.splitlines()
        self.assertTrue(parts)
        for line in parts:
            self.assertIn("mm", line.split("(")[0])
        globbed = self.succeeds("ops", "aten::*mm").stdout.splitlines()
        self.assertEqual({line.split("(")[0] for line in globbed},
                         {line.split("(")[0] for line in parts if line.split("(")[0].endswith("mm")})

    def test_one_operator_shows_schema_kernels_table_and_mask(self):
        self.golden("ops_mm.txt", self.succeeds("ops", "aten::mm").stdout)
        self.golden("ops_matmul.txt", self.succeeds("ops", "aten::matmul").stdout)

    def test_all_shows_each_of_the_138_slots(self):
        output = self.succeeds("ops", "aten::mm", "--all").stdout
        numbers = [int(n) for n in re.findall(r"(?m)^  (\d+) +\w", output)]
        self.assertEqual(numbers, list(range(138)))

    def test_json_gives_all_slots_with_their_reasons(self):
        data = json.loads(self.succeeds("ops", "aten::mm", "--json").stdout)
        table = data["table"]
        self.assertEqual([slot["slot"] for slot in table], list(range(138)))
        self.assertEqual(table[16]["key"], "Meta")
        self.assertEqual(table[112]["key"], "AutogradMeta")
        self.assertEqual(table[16]["provenance"], "kernel")
        self.assertEqual(table[112]["provenance"], "autograd kernel")
        self.assertEqual(table[2]["valid"], False)
        self.assertEqual({kernel["key"] for kernel in data["kernels"]}, {"CPU", "Meta", "Autograd", "AutocastCPU"})
        self.assertEqual(data["falls_through"]["Meta"], ["BackendSelect", "ADInplaceOrView", "AutocastCUDA"])
        self.assertTrue(data["doc"])
        self.assertLess(data["table_bytes"], 1536)

    def test_every_operator_can_be_shown(self):
        for entry in json.loads(self.succeeds("ops", "--json").stdout)[::17]:
            self.assertEqual(json.loads(self.succeeds("ops", entry["name"], "--json").stdout)["schema"],
                             entry["schema"])


class Explain(Command):
    def test_each_hop_of_a_matmul_on_meta_is_explained(self):
        self.golden("explain_matmul.txt", self.succeeds("explain", *MATMUL).stdout)

    def test_json_says_the_same(self):
        output = self.succeeds("explain", *MATMUL, "--json").stdout
        self.golden("explain_matmul.json", output)
        hops = json.loads(output)["hops"]
        self.assertEqual([(hop["depth"], hop["operator"], hop["key"], hop["slot"]) for hop in hops
                          if hop["operator"] == "aten::mm"],
                         [(2, "aten::mm", "AutogradMeta", 112), (3, "aten::mm", "Meta", 16)])
        for hop in hops:
            self.assertEqual(hop["key"], hop["keys"][-1])
            self.assertTrue(hop["returned"])

    def test_a_call_on_fake_tensors_passes_the_fake_key(self):
        words = ("aten::mm", "cuda f32[8,16]", "cuda f32[16,16].t", "--fake")
        data = json.loads(self.succeeds("explain", *words, "--json").stdout)
        self.assertEqual([hop["key"] for hop in data["hops"]], ["AutogradCUDA", "Fake", "Meta"])
        self.assertIn("float32[8, 16], strides [16, 1], on cuda:0", self.succeeds("explain", *words).stdout)
        self.assertIn("FakeTensor(..., device='cuda:0', size=(8, 16))", self.succeeds("run", *words).stdout)
        self.assertIn("key=[Fake]", self.succeeds("trace", *words).stderr)
        self.fails(1, r"found two different devices cuda:0, cpu", "run", "aten::mm", "cuda f32[2,2]", "f32[2,2]", "--fake")
        self.fails(1, r"nothing provides this device", "run", "aten::neg", "cuda f32[2]")

    def test_a_failing_call_is_explained_as_far_as_it_went(self):
        result = run("explain", "aten::mm", "meta f32[2,3]", "meta f32[4,5]")
        self.assertEqual(result.returncode, 1)
        self.golden("explain_error.txt", result.stdout)
        data = json.loads(run("explain", "aten::mm", "f32[2,3]", "f32[4,5]", "--json").stdout)
        self.assertEqual(data["status"], "INVALID")
        self.assertEqual(data["error"]["operator"], "aten::mm")
        self.assertIn("(2x3 and 4x5)", data["error"]["message"])
        self.assertEqual([hop["status"] for hop in data["hops"]], ["INVALID", "INVALID"])

    def test_arguments_may_be_named_and_the_key_set_follows_the_device(self):
        data = json.loads(self.succeeds("explain", "aten::add.Tensor", "f32[2]=1", "f32[2]=1", "alpha=3",
                                        "--json").stdout)
        self.assertEqual(data["hops"][0]["argument_keys"],
                         [["CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU"]] * 2)
        self.assertEqual([hop["key"] for hop in data["hops"]], ["AutogradCPU", "CPU"])
        self.assertEqual(data["results"], [{"dtype": "float32", "sizes": [2], "strides": [1], "offset": 0,
                                            "device": "cpu"}])

    def test_time_adds_a_line_about_calls_that_nobody_watched(self):
        self.assertRegex(self.succeeds("explain", *MATMUL, "--time").stdout,
                         r"(?m)^time +[\d.]+ (ns|us|ms), the best of \d+ boxed calls that nobody watched$")

    def test_text_that_is_not_utf8_still_gives_json(self):
        result = subprocess.run([TENON, "explain", "aten::mm", "f32[2,2]", b"'\xff\"", "--json"],
                                capture_output=True, env=ENVIRONMENT, timeout=TIMEOUT)
        self.assertEqual(result.returncode, 1)
        result = subprocess.run([TENON, "explain", "aten::div.Tensor_mode", "f32[2]", "f32[2]",
                                 b"rounding_mode='\xff'", "--json"],
                                capture_output=True, env=ENVIRONMENT, timeout=TIMEOUT)
        self.assertEqual(json.loads(result.stdout.decode("utf-8"))["arguments"][2], "rounding_mode='\ufffd'")


class Trace(Command):
    def test_the_trace_has_the_format_of_the_reference(self):
        result = self.succeeds("trace", *MATMUL)
        self.assertMultiLineEqual(result.stderr,
                                  " [callBoxed] op=[aten::matmul], key=[AutogradMeta]\n" + TRACE_BELOW)
        self.assertIn("float32[2, 4, 16], strides [64, 16, 1], on meta", result.stdout)

    def test_the_environment_traces_a_typed_call_of_any_program(self):
        for name in ("TENON_SHOW_DISPATCH_TRACE", "TORCH_SHOW_DISPATCH_TRACE"):
            result = run(program=os.path.join(BUILD, "examples", "trace_call"), **{name: "1"})
            self.assertEqual(result.returncode, 0, result.stderr)
            # The program makes its tensors first.
            wanted = " [call] op=[aten::matmul], key=[AutogradMeta]\n" + TRACE_BELOW
            self.assertIn("\n" + wanted, "\n" + result.stderr)

    def test_stage_lines_are_those_of_the_documents(self):
        errors = self.succeeds("run", *MATMUL, TENON_DISPATCH_DEBUG="mm").stderr
        lookups = [line for line in errors.splitlines() if "OperatorEntry::lookup" in line]
        label = "[DEBUG OperatorEntry::lookup] "
        self.assertEqual(lookups, [label + text for text in (
            "op=aten::mm, keyset=" + KEYS,
            "highest priority key=AutogradMeta",
            "dispatch table index=112",
            "kernel.isValid=1, isValidUnboxed=1",
            "Returning kernel, about to call it",
            "op=aten::mm, keyset=DispatchKeySet(Meta)",
            "highest priority key=Meta",
            "dispatch table index=16",
            "kernel.isValid=1, isValidUnboxed=1",
            "Returning kernel, about to call it")])
        stages = [line for line in errors.splitlines() if line.startswith("[DEBUG Dispatcher::call]")]
        self.assertEqual(stages, ["[DEBUG Dispatcher::call] " + text for text in (
            "op=aten::mm", "dispatchKeySet=" + KEYS, "About to call lookup()", "lookup() returned",
            "About to call kernel.call<>() [fast path]", "kernel.call<>() RETURNED [fast path]")])
        self.assertIn("[DEBUG TORCH_META_FUNC(mm)] ========== ENTERED MM META FUNCTION ==========", errors)
        self.assertNotIn("op=aten::view", errors)

    def test_a_boxed_call_shows_its_own_stages(self):
        errors = self.succeeds("trace", "aten::mm", "meta f32[2,3]", "meta f32[3,2]", "--debug").stderr
        self.assertIn(" [callBoxed] op=[aten::mm], key=[AutogradMeta]\n", errors)
        self.assertIn("[DEBUG Dispatcher::callBoxed] About to call kernel.callBoxed() [fast path]\n", errors)
        self.assertIn("[DEBUG Dispatcher::callBoxed] kernel.callBoxed() RETURNED [fast path]\n", errors)
        for line in ("KernelFunction::callBoxed] About to call boxed_kernel_func_.callBoxed()",
                     "BoxedKernel::callBoxed] About to invoke (*boxed_kernel_func_)(...)",
                     "BoxedKernel::callBoxed] (*boxed_kernel_func_)() RETURNED!",
                     "KernelFunction::callBoxed] boxed_kernel_func_.callBoxed() RETURNED"):
            self.assertEqual(errors.count("[DEBUG %s\n" % line), 1)
        self.assertIn("[DEBUG DISPATCHER] op=[aten::mm], full key set=%s\n" % KEYS, errors)

    def test_the_filter_chooses_operators(self):
        errors = self.succeeds("trace", *MATMUL, "--debug=_unsafe_view").stderr
        self.assertIn("op=aten::_unsafe_view", errors)
        self.assertNotIn("op=aten::mm", errors)
        self.fails(2, "needs the name of an operator", "trace", *MATMUL, "--debug=")

    def test_without_watching_nothing_is_printed_to_stderr(self):
        self.assertEqual(self.succeeds("run", *MATMUL).stderr, "")


class Run(Command):
    def test_results_are_printed_with_shape_and_values(self):
        output = self.succeeds("run", "aten::mm", "f32[2,3]=2", "f32[3,2]=1").stdout
        self.assertEqual(output, "result    float32[2, 2], strides [2, 1], on cpu\n"
                                 "tensor([[6., 6.],\n        [6., 6.]])\n")

    def test_lists_and_numbers_are_printed(self):
        self.assertRegex(self.succeeds("run", "aten::split.Tensor", "i64[4]=3", "2").stdout,
                         r"^result    2 tensors: int64\[2\].*; int64\[2\].*offset 2.*\ntensor\(\[3, 3\]\)")
        self.assertEqual(self.succeeds("run", "aten::item", "f32[]=2.5").stdout, "result    2.5\n")

    def test_a_failure_goes_to_stderr(self):
        result = self.fails(1, r"^tenon run: mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)",
                            "run", "aten::mm", "f32[2,3]", "f32[4,5]")
        self.assertEqual(result.stdout, "")


class Demo(Command):
    def test_the_demo_shows_the_call_and_computes(self):
        result = self.succeeds("demo")
        self.assertIn("winner    AutogradMeta, slot 112", result.stdout)
        self.assertIn("[2, 4, 16]", result.stdout)
        self.assertRegex(result.stdout, r"After its library was closed: .*demo::shifted_square")
        self.assertIn("\nTry: %s explain aten::linear " % TENON, result.stdout)
        error = re.search(r"mean squared error (\S+)", result.stdout)
        self.assertLess(float(error.group(1)), 0.02)
        self.assertLess(float(re.search(r"by definition is (\S+)\.\n", result.stdout).group(1)), 1e-4)
        # Piped: the trace alone on stderr, and no bar.
        self.assertEqual(result.stderr, " [call] op=[aten::matmul], key=[AutogradMeta]\n" + TRACE_BELOW)
        self.assertNotIn(ESCAPE, result.stdout)
        nanoseconds = int(re.search(r"One call takes (\d+) ns", result.stdout).group(1))
        if "sanitizer" not in run("--version").stdout:
            self.assertLess(nanoseconds, 10000)  # a slow machine is no mistake; the figures are bench's business

    def test_a_terminal_sees_the_progress(self):
        status, seen = run_on_terminal("demo")
        self.assertEqual(status, 0)
        self.assertRegex(seen, r"\r  \[#+\.+\] +\d+%  step \d+, loss")


class Examples(Command):
    def test_an_out_of_tree_device_prints_under_its_own_name(self):
        result = run(program=os.path.join(BUILD, "examples", "my_device"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("[redispatch] op=[aten::mm], key=[toy]\n", result.stderr)
        self.assertRegex(result.stderr, r"op=\[aten::relu_\], key=\[toy\]\n")
        self.assertRegex(result.stderr, r"op=\[aten::relu_\], key=\[CPU\]\n")
        self.assertIn("device='toy:0'", result.stdout)

    def test_a_custom_operator_says_who_registered_it(self):
        result = run(program=os.path.join(BUILD, "examples", "custom_op"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^CPU: registered at \S*custom_op\.c:\d+ ")
        self.assertIn("aten::neg ran here 1 time of 2\n", result.stdout)


class Manual(Command):
    PAGES = tuple(sorted(os.listdir(os.path.join(SOURCE, "docs/man"))))

    @unittest.skipUnless(shutil.which("groff"), "needs groff")
    def test_pages_render_without_warnings(self):
        for page in self.PAGES:
            result = subprocess.run(["groff", "-man", "-ww", "-Tutf8", os.path.join(SOURCE, "docs/man", page)],
                                    capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual((result.returncode, result.stderr), (0, ""), page)
            self.assertGreater(len(result.stdout.splitlines()), 30)

    def test_pages_name_every_command_and_option(self):
        with open(os.path.join(SOURCE, "docs/man/tenon.1"), encoding="utf-8") as file:
            overview = file.read()
        for name in re.findall(r"(?m)^  (\w+) ", self.succeeds("--help").stdout):
            self.assertRegex(overview, r'(?m)^\.BR? "?%s\b' % name)
        pages = {"ops": "tenon-ops.1", "explain": "tenon-explain.1", "trace": "tenon-explain.1",
                 "run": "tenon-explain.1", "doctor": "tenon-doctor.1", "profile": "tenon-profile.1",
                 "diagnose": "tenon-diagnose.1", "repro": "tenon-repro.1"}
        for name, page in pages.items():
            with open(os.path.join(SOURCE, "docs/man", page), encoding="utf-8") as file:
                text = file.read().replace("\\-", "-")
            for word in re.findall(r"--\w+", self.succeeds("help", name).stdout):
                self.assertIn(word, text, name)

    def test_pages_name_every_public_header(self):
        for page in ("docs/man/tenon.3", "docs/user/c-api.md"):
            with open(os.path.join(SOURCE, page), encoding="utf-8") as file:
                text = file.read()
            for header in os.listdir(os.path.join(SOURCE, "include/tenon")) + ["ops.h", "kernels.h"]:
                self.assertIn("tenon/" + header, text, page)

    @unittest.skipUnless(shutil.which("cc"), "needs cc")
    def test_the_program_in_the_manual_compiles(self):
        with open(os.path.join(SOURCE, "docs/man/tenon.3"), encoding="utf-8") as file:
            program = re.search(r"\.EX\n(.*?)\.EE\n", file.read(), re.DOTALL).group(1).replace("\\e", "\\")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            result = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                                     "-I" + os.path.join(SOURCE, "include"),
                                     "-I" + os.path.join(BUILD, "gen/include"), path],
                                    capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(result.returncode, 0, result.stderr)


def main():
    global UPDATE
    UPDATE = "--update" in sys.argv
    program = unittest.main(argv=[a for a in sys.argv if a != "--update"], exit=False)
    result = program.result
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    sys.stderr.flush()
    for test, reason in result.skipped:
        print("skipped: %s: %s" % (test.id(), reason))
    print("%d passed, %d failed%s" % (result.testsRun - failed - skipped, failed,
                                      ", %d skipped" % skipped if skipped else ""))
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
