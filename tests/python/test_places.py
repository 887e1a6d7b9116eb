# SPDX-License-Identifier: MIT
"""Kernels and modes that are written in Python are shown by their own names, files and lines: in listings, in the
record that the doctor reads, in profiles, in stage lines and in errors."""

import functools
import json
import operator
import os
import subprocess
import sys
import unittest

import harness
import tenon
from tenon import library
from tenon.profiler import profile
from tenon.utils._python_dispatch import TorchDispatchMode

BUILD = os.environ.get("TENON_BUILD_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
TENON = os.path.join(BUILD, "tenon")
HERE = os.path.abspath(__file__)

lib = library.Library("places", "DEF")


def line_of(fn):
    return fn.__code__.co_firstlineno


def ask_doctor():
    """The frames of this thread, as another process sees them."""
    run = subprocess.run([TENON, "doctor", "--json", str(os.getpid())], capture_output=True, text=True, timeout=1000)
    report = json.loads(run.stdout)
    return [f for t in report["threads"] if t["tid"] == os.getpid() for f in t["frames"]]


seen = []


def asks(x):
    seen[:] = ask_doctor()
    return x.clone()


class Callable:
    def __call__(self, x):
        return x.clone()

    def method(self, x):
        return x.clone()

    @classmethod
    def of_class(cls, x):
        return x.clone()


class Hostile:
    def __getattr__(self, name):
        raise KeyError(name)

    def __call__(self, x):
        return x


def wraps(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        return fn(*args)
    return wrapper


def inner(x):
    return x.clone()


class Asking(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        seen[:] = ask_doctor()
        return func(*args, **(kwargs or {}))


class Subclass(tenon.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        seen[:] = ask_doctor()
        return tenon.ones(1)


class Shown(unittest.TestCase):
    def shown(self, fn, key="CPU"):
        """What the listing of an operator says about a kernel."""
        own = library.Library("places_one", "DEF")
        own.define("f(Tensor x) -> Tensor")
        try:
            own.impl("f", fn, key)
            lines = tenon._C._dispatch_dump("places_one::f").splitlines()
            found = [text for text in lines if text.startswith(key + ":")]
            self.assertEqual(len(found), 1, lines)
            return found[0][len(key) + 2:].split(" :: ")[0]
        finally:
            own._destroy()

    def at(self, fn, name=None):
        return "registered at %s:%d (%s)" % (HERE, line_of(fn), name or fn.__qualname__)

    def test_a_function_by_its_qualified_name_and_its_line(self):
        def local(x):
            return x
        self.assertEqual(self.shown(inner), self.at(inner))
        self.assertEqual(self.shown(local), self.at(local))
        self.assertIn("<locals>.local", self.shown(local))
        some = lambda x: x  # noqa: E731
        self.assertEqual(self.shown(some), self.at(some))

    def test_a_callable_by_the_function_behind_it(self):
        self.assertEqual(self.shown(Callable()), self.at(Callable.__call__))
        self.assertEqual(self.shown(Callable().method), self.at(Callable.method))
        self.assertEqual(self.shown(Callable.of_class), self.at(Callable.of_class.__func__))
        self.assertEqual(self.shown(functools.partial(inner)), self.at(inner, "partial(inner)"))
        self.assertEqual(self.shown(wraps(inner)), self.at(inner))
        self.assertEqual(self.shown(Hostile()), self.at(Hostile.__call__))

    def test_a_function_without_code_by_who_registers_it(self):
        for fn, name in ((operator.neg, "_operator.neg"), (functools.partial(abs), "partial(builtins.abs)")):
            text = self.shown(fn)
            self.assertRegex(text, r"^registered at .*test_places\.py:\d+ \(%s\)$" % name.replace("(", r"\(").replace(")", r"\)"))

    def test_a_name_of_odd_characters_stays_one_line(self):
        def odd(x):
            return x
        odd.__qualname__ = "o\nd\0d\udcff\x1b[31m %s é"
        self.assertEqual(self.shown(odd), self.at(odd, r"o\nd\x00d\udcff\x1b[31m %s é"))
        circle = wraps(inner)
        circle.__wrapped__ = circle
        self.assertIn("(inner)", self.shown(circle))

    def test_a_key_that_is_skipped_by_who_says_so(self):
        self.assertRegex(self.shown(library.fallthrough_kernel), r"^registered at .*test_places\.py:\d+$")

    def test_a_library_and_its_definitions_by_who_opened_it(self):
        own = library.Library("places_two", "DEF")
        line = sys._getframe().f_lineno - 1
        own.define("f(Tensor x) -> Tensor")
        self.assertIn("debug: registered at %s:%d" % (HERE, line), tenon._C._dispatch_dump("places_two::f"))
        with self.assertRaisesRegex(RuntimeError, "test_places.py:%d" % line):
            library.Library("places_two", "DEF")
        own._destroy()

    def test_the_parts_of_a_custom_operator(self):
        @library.custom_op("places_three::f", mutates_args=())
        def custom(x: tenon.Tensor) -> tenon.Tensor:
            return x.clone()
        dump = tenon._C._dispatch_dump("places_three::f")
        for part in ("custom", "autograd of ", "fake of "):
            self.assertRegex(dump, r"registered at .*test_places\.py:%d \(%s" % (
                line_of(custom._init_fn), part if part != "custom" else "Shown.*custom"))

        @custom.register_fake
        def fake(x):
            return tenon.empty_like(x)

        @custom.register_kernel("cpu")
        def on_cpu(x):
            return x.clone()
        dump = tenon._C._dispatch_dump("places_three::f")
        self.assertRegex(dump, r"\nMeta: registered at .*test_places\.py:%d \(\S*\.fake\)" % line_of(fake))
        self.assertRegex(dump, r"\nCPU: registered at .*test_places\.py:%d \(\S*\.on_cpu\)" % line_of(on_cpu))
        self.assertEqual(custom(tenon.ones(2, device="meta")).shape, (2,))

    def test_the_doctor_shows_the_function_of_a_frame(self):
        lib.define("asks(Tensor x) -> Tensor")
        lib.impl("asks", asks, "CPU")
        tenon.ops.places.asks(tenon.ones(3))
        last = [f for f in seen if f["operator"] == "places::asks"][-1]
        self.assertEqual((last["kernel"], last["file"], last["line"]), ("asks", HERE, line_of(asks)))

    def test_the_doctor_shows_the_mode_or_the_class_that_answers(self):
        for fn, call in ((Asking.__torch_dispatch__, lambda: tenon.ones(2).relu()),
                         (Subclass.__torch_dispatch__.__func__, lambda: tenon.ones(2).as_subclass(Subclass).relu())):
            if fn is Asking.__torch_dispatch__:
                with Asking():
                    call()
            else:
                call()
            frames = [f for f in seen if f.get("key") == "Python"]
            self.assertEqual([(f["kernel"], f["file"], f["line"]) for f in frames],
                             [(fn.__qualname__, HERE, line_of(fn))])

    def test_a_profile_shows_them_too(self):
        lib.define("profiled(Tensor x) -> Tensor")
        lib.impl("profiled", inner, "CPU")

        class Quiet(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))
        with profile(with_stack=True) as prof, Quiet():
            tenon.ops.places.profiled(tenon.ones(2))
        outer, event = [e for e in prof.events() if e.key == "places::profiled"]
        self.assertIs(event.cpu_parent, outer)
        self.assertIn("Quiet.__torch_dispatch__ (%s:" % HERE, outer.kernels[-1])
        self.assertEqual(event.kernels, ["inner (%s:%d)" % (HERE, line_of(inner))])
        path = os.path.join(self.enterContext(_folder()), "trace.json")
        prof.export_chrome_trace(path)
        with open(path) as file:
            text = file.read()
        self.assertIn("inner (%s:%d)" % (HERE, line_of(inner)), text)
        self.assertIn("Quiet.__torch_dispatch__ (%s:" % HERE, text)

    def test_the_stage_lines_of_a_registration(self):
        program = ("import tenon\nlib = tenon.library.Library('p', 'DEF')\nlib.define('f(Tensor x) -> Tensor')\n"
                   "def kernel(x):\n    return x\nlib.impl('f', kernel, 'CPU')\n")
        env = dict(os.environ, TENON_DISPATCH_DEBUG="p::f")
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=1000, env=env)
        self.assertIn("Path 1: Direct registration: kernel, registered at <string>:4", run.stderr)

    def test_an_error_names_the_functions_of_a_cycle(self):
        lib.define("loops(Tensor x) -> Tensor")

        def loops(x):
            return tenon.ops.places.loops(x)
        lib.impl("loops", loops, "CPU")
        with self.assertRaises(RuntimeError) as caught:
            sys.setrecursionlimit(20000)
            tenon.ops.places.loops(tenon.ones(1))
        self.assertIn("loops (%s:%d)" % (HERE, line_of(loops)), str(caught.exception))


def _folder():
    import tempfile
    return tempfile.TemporaryDirectory()


if __name__ == "__main__":
    harness.main()
