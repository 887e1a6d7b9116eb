# SPDX-License-Identifier: MIT
"""A fork while another thread loads a part of the package: the child can use that part."""

import os
import subprocess
import sys
import unittest

import harness

# The thread is in the middle of loading the module when the main thread forks. The child has five minutes.
SCRIPT = """
import os, signal, sys, threading, time
{before}
class Slow:
    reached = threading.Event()
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            self.reached.set()
            time.sleep({takes})
sys.meta_path.insert(0, Slow())
def use():
    {use}
thread = threading.Thread(target=use)
thread.start()
assert Slow.reached.wait(300)
pid = os.fork()
if pid == 0:
    signal.alarm(300)
    use()
    os._exit(7)
thread.join()
sys.exit(0 if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7 else 1)
"""


@unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
class Fork(unittest.TestCase):
    def child_can_use(self, module, use, before="import tenon", takes=0.3):
        script = SCRIPT.format(module=module, use=use, before=before, takes=takes)
        done = subprocess.run([sys.executable, "-B", "-W", "ignore", "-c", script], capture_output=True, text=True,
                              timeout=900)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_while_the_package_itself_is_loaded(self):
        self.child_can_use("tenon._C", "import tenon; tenon.ones(2, requires_grad=True).sum().backward()",
                           before="")

    def test_while_a_part_is_loaded_at_first_use(self):
        self.child_can_use("tenon.nn.functional", "tenon.nn.functional.relu(tenon.ones(2))")

    def test_while_a_part_is_loaded_slowly(self):
        self.child_can_use("tenon.nn.functional", "tenon.nn.functional.relu(tenon.ones(2))", takes=6)

    def test_while_a_part_is_loaded_inside_a_function(self):
        self.child_can_use(
            "tenon.sparse._coo",
            "tenon.nn.functional.embedding(tenon.tensor([1]), tenon.ones(2, 2, requires_grad=True), sparse=True)",
            before="import tenon.nn.functional")

    def test_while_a_part_is_loaded_under_its_other_name(self):
        for module in "torch.nn.functional", "tenon.nn.functional":
            with self.subTest(module):
                self.child_can_use(module, "import torch.nn.functional; torch.nn.functional.relu(torch.ones(2))",
                                   before="import tenon.as_torch; tenon.as_torch.install(); import torch")

    def test_a_thread_that_forks_while_it_loads_waits_for_nobody(self):
        script = ("import os, sys, time\n"
                  "import tenon\n"
                  "class Forks:\n"
                  "    def find_spec(self, name, path=None, target=None):\n"
                  "        if name == 'tenon.nn.functional' and not times:\n"
                  "            times.append(time.monotonic())\n"
                  "            pid = os.fork()\n"
                  "            if pid:\n"
                  "                times.append(time.monotonic())\n"
                  "                assert os.waitpid(pid, 0)[1] == 0\n"
                  "times = []\n"
                  "sys.meta_path.insert(0, Forks())\n"
                  "tenon.nn.functional.relu(tenon.ones(2))\n"
                  "assert len(times) == 1 or times[1] - times[0] < 25, times\n")
        done = subprocess.run([sys.executable, "-B", "-W", "ignore", "-c", script], capture_output=True, text=True,
                              timeout=900)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    harness.main()
