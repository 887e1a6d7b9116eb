# SPDX-License-Identifier: MIT
"""Backward passes on several threads, after fork, and under Ctrl+C."""
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import harness
from leaves import leaf
import tenon


class Threads(unittest.TestCase):
    def test_eight_threads_share_leaves(self):
        x, w = tenon.ones(64, requires_grad=True), tenon.ones(64, requires_grad=True)
        errors, rounds = [], 50
        x.register_hook(lambda g: None)

        def work():
            try:
                for _ in range(rounds):
                    (x * w * 2).sum().backward()
                    x.grad
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(600)
        self.assertEqual(errors, [])
        self.assertEqual(x.grad.tolist(), [2.0 * 8 * rounds] * 64)
        self.assertEqual(w.grad.tolist(), [2.0 * 8 * rounds] * 64)

    def test_other_threads_run_during_a_pass(self):
        x = tenon.ones(256, 256, requires_grad=True)
        y = x
        for _ in range(60):
            y = (y @ x) * 0.001
        count, stop = [0], threading.Event()

        def tick():
            while not stop.is_set():
                count[0] += 1
                time.sleep(0)

        t = threading.Thread(target=tick)
        t.start()
        loss, during = y.sum(), 0
        for _ in range(100):  # it may get no processor for a while
            before = count[0]
            loss.backward(retain_graph=True)
            during = count[0] - before
            if during:
                break
        stop.set()
        t.join()
        self.assertGreater(during, 0)

    def test_a_child_of_fork_computes_gradients(self):
        x = leaf(1.0, 2.0)
        (x * x).sum().backward()
        pid = os.fork()
        if pid == 0:
            try:
                (x * x).sum().backward()
                os._exit(0 if x.grad.tolist() == [4.0, 8.0] else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)


INTERRUPTED = r"""
import sys, time
import tenon
x = tenon.ones(256, 256, requires_grad=True)
y = x
for _ in range(%d):
    y = (y @ x) * 1e-3
try:
    print("ready", flush=True)
    y.sum().backward()
    print("not interrupted", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
z = (x * 2).sum()
z.backward()
print("usable" if x.grad is not None else "broken", flush=True)
"""


class Interrupt(unittest.TestCase):
    def test_ctrl_c_ends_a_pass_without_python_in_it(self):
        for patience in 0.3, 0.1, 0.03, 0.01:  # a fast machine may be done before the signal comes
            process = subprocess.Popen([sys.executable, "-c", INTERRUPTED % 1500], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline().strip(), "ready")
            time.sleep(patience)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=600)
            if "not" not in out:
                break
        self.assertEqual(out.split(), ["interrupted", "usable"], err)


if __name__ == "__main__":
    harness.main()
