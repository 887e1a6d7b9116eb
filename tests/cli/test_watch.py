#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tenon doctor --watch` on a terminal and elsewhere, and `--native` with tools of every kind.

TENON_BUILD_DIR says which build to test. The last line of the output is `N passed, N failed`. Every wait is for something
that is seen, with a limit that only a program that hangs can reach.
"""

import errno
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_cli  # noqa: E402  (the same folder)
from test_cli import BUILD, ENVIRONMENT, TENON, Command  # noqa: E402

LIMIT = 600  # seconds
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Program:
    """A program to look at: one of the gallery, asleep in a kernel."""

    def __enter__(self):
        self.process = subprocess.Popen([os.path.join(BUILD, "repro", "gallery", "callers_lock")],
                                        stdout=subprocess.PIPE, env=ENVIRONMENT)
        self.process.stdout.readline()
        return self.process.pid

    def __exit__(self, *exception):
        self.process.kill()
        self.process.communicate()


class Terminal:
    """A command on a terminal, as a job of a shell: its own group, in the foreground."""

    def __init__(self, *words, rows=24, columns=80, environment=None):
        self.seen = b""
        self.said, say = os.pipe()
        hear, self.tell = os.pipe()
        try:
            self.shell, self.file = pty.fork()
        except OSError as error:
            raise unittest.SkipTest("the system has no pseudo-terminals: %s" % error)
        if self.shell == 0:
            try:
                self.be_shell(words, rows, columns, environment, say, hear)
            finally:
                os._exit(99)
        os.close(say)
        os.close(hear)

    @staticmethod
    def be_shell(words, rows, columns, environment, say, hear):
        """Say what becomes of the command: a letter and a number for each change."""
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        before = termios.tcgetattr(0)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execve(words[0], words, dict(ENVIRONMENT, TERM="xterm", **(environment or {})))
        while True:
            os.write(say, b"p%d\n" % job)
            _, status = os.waitpid(job, os.WUNTRACED)
            os.tcsetpgrp(0, os.getpgrp())
            same = b"=" if termios.tcgetattr(0) == before else b"!"
            if not os.WIFSTOPPED(status):
                ending = b"k%d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else b"e%d" % os.WEXITSTATUS(status)
                os.write(say, ending + same + b"\n")
                os.read(hear, 1)
                return
            os.write(say, b"s" + same + b"\n")
            os.read(hear, 1)
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)

    def until(self, condition, what):
        end = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("%s: never seen; but %r" % (what, self.seen[-2000:]))
            if select.select([self.file], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.file, 65536)
                except OSError as error:
                    if error.errno != errno.EIO:
                        raise
                    time.sleep(0.01)

    def wait_for(self, text):
        """Read until @p text comes, and give what came before."""
        self.until(lambda: text in self.seen, text)
        before, _, self.seen = self.seen.partition(text)
        return before

    def change(self):
        """The next change of the command; what it writes meanwhile is read."""
        line = b""
        while not line.endswith(b"\n"):
            self.until(lambda: select.select([self.said], [], [], 0)[0], "a change of the command")
            line += os.read(self.said, 1)
        return line.decode().strip()

    def started(self):
        return int(self.change()[1:])

    def type(self, keys):
        os.write(self.file, keys)

    def go_on(self):
        os.write(self.tell, b"g")

    def resize(self, rows, columns):
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self):
        """What became of it: what it wrote last is read."""
        how = self.change()
        while select.select([self.file], [], [], 0)[0]:
            try:
                self.seen += os.read(self.file, 65536)
            except OSError:
                break
        self.go_on()
        os.waitpid(self.shell, 0)
        for file in (self.file, self.said, self.tell):
            os.close(file)
        return how


def screen(text, rows, columns):
    """What a terminal of that size shows after @p text: enough of one for what the command writes."""
    lines, row, column, i = [[" "] * columns for _ in range(rows)], 0, 0, 0
    text = text.decode()
    while i < len(text):
        if text[i] == "\x1b":
            end = i + 2
            while not text[end].isalpha():
                end += 1
            numbers, letter = text[i + 2:end], text[end]
            if letter == "H":
                row, column = (int(n) - 1 for n in numbers.split(";")) if numbers else (0, 0)
            elif letter == "K":
                lines[row][column:] = [" "] * (columns - column)
            elif letter == "J":
                lines[row][column:] = [" "] * (columns - column)
                lines[row + 1:] = [[" "] * columns for _ in range(rows - row - 1)]
            i = end + 1
            continue
        if text[i] == "\r":
            column = 0
        elif text[i] == "\n":
            assert row < rows - 1, "the screen would scroll"
            row += 1
        else:
            assert column < columns, "the line would go on below"
            lines[row][column] = text[i]
            column += 1
        i += 1
    return ["".join(line).rstrip() for line in lines]


class Watch(Command):
    def watch(self, pid, *options, **more):
        return Terminal(TENON, "doctor", "--watch=0.05", *options, str(pid), **more)

    def first_screen(self, terminal, rows, columns):
        terminal.wait_for(b"\x1b[H")
        return screen(b"\x1b[H" + terminal.wait_for(b"\x1b[H"), rows, columns)

    def test_a_terminal_has_a_screen_that_goes_again(self):
        with Program() as pid:
            terminal = self.watch(pid)
            terminal.started()
            terminal.wait_for(ENTER)
            shown = self.first_screen(terminal, 24, 80)
            self.assertTrue(shown[0].startswith("process %d (callers_lock)" % pid), shown)
            self.assertTrue(any(line.startswith("verdict: ") for line in shown), shown)
            self.assertIn("q to quit", shown[-1])
            terminal.type(b"q")
            self.assertEqual(terminal.end(), "e0=")
            # The last report stays on the screen that was there before.
            self.assertIn(b"verdict:", terminal.seen.partition(LEAVE)[2])
            self.assertIn(b"\x1b[?25h", terminal.seen)

    def test_control_c_and_signals_leave_the_terminal_as_it_was(self):
        for how, ending in ((b"\x03", "e0="), (signal.SIGTERM, "k15="), (signal.SIGHUP, "k1="), (b"\x04", "e0=")):
            with Program() as pid:
                terminal = self.watch(pid)
                job = terminal.started()
                terminal.wait_for(ENTER)
                if isinstance(how, bytes):
                    terminal.wait_for(b"q to quit")
                    terminal.type(how)
                else:
                    os.kill(job, how)
                self.assertEqual(terminal.end(), ending)
                self.assertIn(LEAVE, terminal.seen)

    def test_control_z_gives_the_terminal_back_and_going_on_takes_it_again(self):
        with Program() as pid:
            terminal = self.watch(pid)
            terminal.started()
            terminal.wait_for(b"q to quit")
            terminal.type(b"\x1a")
            self.assertEqual(terminal.change(), "s=")
            terminal.wait_for(LEAVE)
            terminal.go_on()
            terminal.started()
            terminal.wait_for(ENTER)
            terminal.wait_for(b"q to quit")
            terminal.type(b"q")
            self.assertEqual(terminal.end(), "e0=")

    def test_a_terminal_that_changes_its_size_is_filled_and_never_left(self):
        with Program() as pid:
            terminal = self.watch(pid, rows=40, columns=100)
            terminal.started()
            terminal.wait_for(ENTER)
            self.first_screen(terminal, 40, 100)
            for rows, columns in ((10, 40), (3, 12), (1, 1), (50, 200)):
                terminal.resize(rows, columns)
                end = time.monotonic() + LIMIT
                while True:  # a drawing that began before may still be of the old size
                    try:
                        shown = screen(b"\x1b[H" + terminal.wait_for(b"\x1b[H"), rows, columns)
                        if rows < 20 or len(shown[1]) > 100:
                            break
                    except (AssertionError, IndexError):
                        pass
                    self.assertLess(time.monotonic(), end)
            terminal.type(b"q")
            self.assertEqual(terminal.end(), "e0=")

    def test_a_long_report_can_be_moved(self):
        with Program() as pid:
            terminal = self.watch(pid, rows=8, columns=120)
            terminal.started()
            terminal.wait_for(b"lines 1 to ")
            terminal.type(b"\x1b[B")
            terminal.wait_for(b"lines 2 to ")
            terminal.type(b"k")
            terminal.wait_for(b"lines 1 to ")
            terminal.type(b"jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj")
            terminal.wait_for(b"verdict: ")  # the head stays
            terminal.type(b"q")
            self.assertEqual(terminal.end(), "e0=")

    def test_a_process_that_ends_is_told_with_its_last_report(self):
        program = Program()
        pid = program.__enter__()
        terminal = self.watch(pid)
        terminal.started()
        terminal.wait_for(b"q to quit")
        program.__exit__()
        self.assertEqual(terminal.end(), "e0=")
        after = terminal.seen.partition(LEAVE)[2].decode()
        self.assertIn("verdict: ", after)
        self.assertRegex(after, r"process %d\b.*(ended|no process)|there is no process %d" % (pid, pid))

    def test_without_a_terminal_reports_come_one_after_the_other(self):
        with Program() as pid:
            for more, start in ((), b"process %d" % pid), (("--json",), b"{"), (("--verdict",), b"verdict:"):
                watching = subprocess.Popen([TENON, "doctor", "--watch=0.05", *more, str(pid)], stdout=subprocess.PIPE,
                                            stdin=subprocess.DEVNULL, env=ENVIRONMENT)
                found = 0
                while found < 3:
                    line = watching.stdout.readline()
                    self.assertNotIn(b"\x1b", line)
                    found += line.startswith(start)
                watching.send_signal(signal.SIGINT)
                watching.communicate(timeout=LIMIT)
                self.assertEqual(watching.returncode, 0, more)
        with Program() as pid:  # objects, one after the other, each whole
            watching = subprocess.Popen([TENON, "doctor", "--watch=0.05", "--json", str(pid)], stdout=subprocess.PIPE,
                                        env=ENVIRONMENT)
            text, decoder, found = "", json.JSONDecoder(), 0
            while found < 2:
                text += watching.stdout.readline().decode()
                try:
                    data, end = decoder.raw_decode(text)
                except ValueError:
                    continue
                self.assertEqual(data["pid"], pid)
                text, found = text[end:].lstrip(), found + 1
            watching.terminate()
            watching.communicate(timeout=LIMIT)

    def test_a_reader_that_goes_ends_it(self):
        with Program() as pid:
            watching = subprocess.Popen([TENON, "doctor", "--watch=0.05", str(pid)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=ENVIRONMENT)
            watching.stdout.readline()
            watching.stdout.close()
            self.assertIn(watching.wait(LIMIT), (1, -signal.SIGPIPE))
            watching.stderr.close()

    def test_what_does_not_go_together_is_refused(self):
        self.fails(2, "--native stops the process", "doctor", "--watch", "--native", "1")
        for wrong in ("0", "-1", "x", "1e9", "nan", ""):
            self.fails(2, "--watch takes a number of seconds", "doctor", "--watch=" + wrong, "1")
        self.fails(2, "a file does not change", "doctor", "--watch", "file")


class Native(Command):
    """With tools of our own instead of eu-stack and gdb."""

    def native(self, pid, **tools):
        with tempfile.TemporaryDirectory() as folder:
            for name, script in tools.items():
                path = os.path.join(folder, name.replace("_", "-"))
                with open(path, "w") as file:
                    file.write("#!/bin/sh\n" + script)
                os.chmod(path, 0o755)
            return subprocess.run([TENON, "doctor", "--native", str(pid)], capture_output=True, text=True,
                                  env=dict(ENVIRONMENT, PATH=folder), timeout=LIMIT)

    def test_the_first_tool_that_shows_a_stack_is_taken(self):
        with Program() as pid:
            result = self.native(pid, eu_stack="echo 'TID 1:'; echo '#0 here'", gdb="echo '#0 there'")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("native stacks:\nTID 1:\n#0 here\n", result.stdout)
            self.assertNotIn("there", result.stdout)
            result = self.native(pid, eu_stack="echo no >&2; exit 2", gdb="echo '#0 there'")
            self.assertIn("no\n#0 there\n", result.stdout)

    def test_without_tools_or_rights_it_says_what_is_missing(self):
        with Program() as pid:
            result = self.native(pid)
            self.assertIn("neither eu-stack (elfutils) nor gdb is installed", result.stdout)
            result = self.native(pid, gdb="echo 'ptrace: Operation not permitted.'; exit 0")
            self.assertIn("ptrace: Operation not permitted.\n  they need the right to trace it", result.stdout)
            self.assertIn("TENON_HANG_NATIVE=1", result.stdout)
            self.assertEqual(result.returncode, 0)

    def test_a_process_that_dies_meanwhile_is_said_to_have_ended(self):
        program = Program()
        pid = program.__enter__()
        # The tool ends it; its parent, this test, reaps it only when it is asked: until then it is a zombie.
        result = self.native(pid, gdb="kill -9 %d; echo 'No such process.'" % pid)
        self.assertEqual(result.returncode, 0)
        self.assertIn("No such process.", result.stdout)
        program.__exit__()

    def test_a_tool_gets_no_keyboard_and_may_say_much(self):
        with Program() as pid:
            result = self.native(pid, gdb="read line && echo \"got $line\"; i=0; while [ $i -lt 20000 ]; do "
                                          "echo \"#$i frame of a deep stack\"; i=$((i+1)); done")
            self.assertNotIn("got", result.stdout)
            self.assertIn("#19999 frame", result.stdout)


if __name__ == "__main__":
    sys.exit(test_cli.main())
