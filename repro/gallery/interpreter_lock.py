# SPDX-License-Identifier: MIT
"""A hook in Python waits for the interpreter lock: another thread keeps it through a call of C that does not give it
back. The hook runs in a backward pass, which had let go of the lock."""

import ctypes
import os
import sys
import threading
import time

import tenon

sys.setswitchinterval(1000)  # the lock goes to another thread only where it is given back
ahead = False  # the pass has the hook before it, and is where it does not have the lock


def before(grad):
    global ahead
    ahead = True


def after(grad):
    global ahead
    ahead = False


def run_backward():
    x = tenon.ones(500, 500, requires_grad=True)
    y = x @ tenon.ones(500, 500)
    y.register_hook(before)
    x.register_hook(after)
    z = y.sum()
    while True:
        z.backward(retain_graph=True)


threading.Thread(target=run_backward, daemon=True).start()
while not ahead:
    time.sleep(0.001)
c = ctypes.PyDLL(None)  # what it calls keeps the lock, from here to the end
said = b"ready %d\n" % os.getpid()
c.write(1, said, len(said))
c.sleep(300)
os._exit(0)
