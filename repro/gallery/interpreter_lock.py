# SPDX-License-Identifier: MIT
"""A hook in Python waits for the interpreter lock: another thread keeps it through a call of C that does not give it
back. The hook runs in a backward pass, which had let go of the lock."""

import ctypes
import os
import threading
import time

import tenon

entered = threading.Event()


def run_backward():
    x = tenon.ones(2500, 2500, requires_grad=True)
    z = (x @ tenon.ones(2500, 2500)).sum()
    x.register_hook(lambda grad: None)
    entered.set()
    z.backward()


threading.Thread(target=run_backward, daemon=True).start()
entered.wait()
time.sleep(0.05)  # it is in the product now, without the lock
print("ready", os.getpid(), flush=True)
ctypes.PyDLL(None).sleep(300)  # and we keep it
os._exit(0)
