# SPDX-License-Identifier: MIT
"""Arguments that mean harm: objects that change, lie or raise while they are read. Nothing of it may end the process."""

import importlib.util
import math
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest

import harness
import tenon


class Shrinks:
    """An integer that empties a list when it is asked for its value."""

    def __init__(self, victim):
        self.victim = victim

    def __index__(self):
        self.victim.clear()
        return 1


class ShrinksToZero(Shrinks):
    def __index__(self):
        self.victim.clear()
        return 0


class ChangingLists(unittest.TestCase):
    def test_a_list_of_numbers_that_becomes_shorter_is_an_error(self):
        calls = [tenon.zeros, tenon.ones(1).view, tenon.ones(4, 2).permute, tenon.ones(2, 3).sum, tenon.ones(4).split,
                 lambda sizes: tenon.native_layer_norm(tenon.ones(3, 2), sizes, None, None, 1e-5)]
        for call in calls:
            sizes = []
            sizes.extend([Shrinks(sizes), 1, 1])
            with self.assertRaises(IndexError):
                call(sizes)

    def test_the_tensors_of_a_list_live_as_long_as_the_call(self):
        for _ in range(20):
            tensors = [tenon.full((64,), float(i)) for i in range(10)]
            result = tenon.cat(tensors, ShrinksToZero(tensors))
            self.assertEqual(result.view(10, 64)[:, 0].tolist(), [float(i) for i in range(10)])
            self.assertEqual(tensors, [])


class Bomb(Exception):
    pass


def bomb(name, base=object):
    """An object of which one question raises."""
    def method(self, *args, **kwargs):
        raise Bomb(name)
    return type("Bomb" + name, (base,), {name: method})


class Raising(unittest.TestCase):
    def test_what_an_argument_raises_arrives_or_is_an_ordinary_refusal(self):
        x = tenon.ones(3, 4)
        values = [bomb("__index__")(), bomb("__getattr__")(), bomb("__getattribute__")(), bomb("__torch_function__")(),
                  bomb("__len__", list)([1, 2]), bomb("__iter__", list)([1, 2]), bomb("__float__")(), bomb("__bool__")(),
                  bomb("__array__")(), bomb("__dlpack__")()]
        leaf = tenon.ones(1, requires_grad=True)
        calls = [tenon.zeros, x.view, x.__add__, x.__radd__, x.__getitem__, lambda o: x.clone().__setitem__(0, o),
                 lambda o: x.clone().__setitem__(o, 1), tenon.tensor, lambda o: tenon.tensor([o, o]), tenon.cat,
                 lambda o: tenon.cat([x, o]), lambda o: x.sum(dim=o), x.to, x.__eq__, lambda o: tenon.full((2,), o),
                 lambda o: tenon.add(x, x, out=o), lambda o: tenon.add(x, other=o), leaf.backward, tenon.from_numpy,
                 tenon.from_dlpack, tenon.device, tenon.nn.Parameter, lambda o: setattr(leaf, "grad", o), x.as_subclass,
                 lambda o: tenon.rand(2, generator=o), tenon.Size, tenon.manual_seed, lambda o: tenon.zeros(2, dtype=o),
                 lambda o: tenon.ops.aten.add.Tensor(x, o), tenon.as_tensor, tenon.is_tensor, tenon.load]
        for value in values:
            for call in calls:
                try:
                    call(value)
                except SystemError:
                    raise
                except Exception:
                    pass
        self.assertEqual((x.sum().item(), leaf.grad), (12.0, None))

    def test_objects_of_the_extension_that_nobody_made_whole(self):
        for name in dir(tenon._C):
            cls = getattr(tenon._C, name)
            for make in (lambda: cls(), lambda: cls.__new__(cls), lambda: object.__new__(cls)) if isinstance(cls, type) else ():
                try:
                    made = make()
                    repr(made), hash(made), made == made
                    for attribute in dir(made):
                        if not attribute.startswith("__"):
                            getattr(made, attribute, None)
                except SystemError:
                    raise
                except Exception:
                    pass


class Threads(unittest.TestCase):
    def test_a_gradient_may_be_replaced_while_it_is_added_to(self):
        """Most telling under the address sanitizer."""
        x = tenon.ones(10000, requires_grad=True)
        end = time.monotonic() + 1

        def passes():
            while time.monotonic() < end:
                (x * 2).sum().backward()

        def replaces():
            while time.monotonic() < end:
                x.grad = None
                x.grad = tenon.zeros(10000)

        threads = [threading.Thread(target=f) for f in (passes, passes, replaces, replaces)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(x.grad[0].item() % 2, 0)


class HugeNumbers(unittest.TestCase):
    """What a number would make too large is refused at once: nothing loops for hours."""

    def setUp(self):
        signal.alarm(600)

    def tearDown(self):
        signal.alarm(0)

    def test_a_triangle_has_no_time_for_rows_without_elements(self):
        many = 2**33
        self.assertEqual(tenon.tril_indices(many, 0).shape, (2, 0))
        self.assertEqual(tenon.triu_indices(many, 3, 5).shape, (2, 0))
        self.assertEqual(tenon.tril_indices(many, 3, 2 - many).tolist(), [[many - 2, many - 1, many - 1], [0, 0, 1]])
        self.assertEqual(tenon.triu_indices(many, 3, 1).tolist(), [[0, 0, 1], [1, 2, 2]])
        for row, col in [(2**62, 2**63 - 1), (2**63 - 1, 2**63 - 1), (2**63 - 1, 2)]:
            with self.assertRaises(RuntimeError):
                tenon.tril_indices(row, col)

    def test_mvlgamma_of_more_terms_than_memory_holds(self):
        with self.assertRaises(RuntimeError):
            tenon.mvlgamma(tenon.ones(3), 2**62)
        x = tenon.tensor([2.5, 3.0], dtype=tenon.float64)
        expected = math.lgamma(2.5) + math.lgamma(2.0) + math.lgamma(1.5) + 1.5 * math.log(math.pi)
        self.assertAlmostEqual(tenon.mvlgamma(x, 3)[0].item(), expected, places=12)


class Interpreters(unittest.TestCase):
    """Each in a process of its own: what is done to it stays there."""

    def run_text(self, text):
        done = subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(text)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_a_second_interpreter_is_refused_and_the_first_goes_on(self):
        name = next((n for n in ("_xxsubinterpreters", "_interpreters") if importlib.util.find_spec(n)), None)
        if name is None:
            self.skipTest("this Python has no module for interpreters")
        for first in ("import tenon", "pass"):
            said = self.run_text("""
                import %s as interpreters
                %s
                other = interpreters.create()
                try:
                    error = interpreters.run_string(other, "import tenon")
                except Exception as e:
                    error = e
                # Python itself refuses from 3.12 on where the other interpreter has a lock of its own.
                said = str(error)
                print("main interpreter of a process alone" in said or
                      "does not support loading in subinterpreters" in said)
                interpreters.destroy(other)
                import tenon
                print(tenon.ones(2).sum().item())
                """ % (name, first))
            self.assertEqual(said, ["True", "2.0"])

    def test_threads_that_compute_when_the_program_ends(self):
        said = self.run_text("""
            import threading
            import tenon

            started = threading.Barrier(4)

            def work():
                started.wait()
                while True:
                    w = tenon.ones(100, 100, requires_grad=True)
                    (w @ w).sum().backward()
            for _ in range(3):
                threading.Thread(target=work, daemon=True).start()
            kept = tenon.ones(2, requires_grad=True) * 2
            kept.register_hook(lambda g: None)
            tenon.kept = kept
            started.wait()
            print("end")
            """)
        self.assertEqual(said, ["end"])

    def test_an_interrupt_while_a_hook_is_asked_for_its_place_arrives(self):
        # Python looks for signals where it says that an attribute is missing, which was forgotten with it
        class Hook:
            def __call__(self, grad):
                return None

            def __getattr__(self, name):
                raise KeyboardInterrupt if name == asked else AttributeError(name)

        for asked in ("__code__", "__wrapped__"):
            w = tenon.ones(3, requires_grad=True)
            w.register_hook(Hook())
            with self.assertRaises(KeyboardInterrupt, msg=asked):
                w.sum().backward()
        asked = None
        w = tenon.ones(3, requires_grad=True)
        w.register_hook(Hook())
        w.sum().backward()
        self.assertEqual(w.grad.tolist(), [1, 1, 1])

    def test_interrupts_arrive_and_leave_everything_usable(self):
        said = self.run_text("""
            import os
            import signal
            import threading
            import tenon

            def run(call):
                threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
                for _ in range(10**9):
                    call()

            def interrupted(call):
                try:
                    run(call)
                except KeyboardInterrupt:
                    return True

            w = tenon.ones(3, requires_grad=True)
            deep = w
            for _ in range(2000):
                deep = deep * 1.0001
            big = tenon.ones(300, 300)
            model = tenon.nn.Sequential(*[tenon.nn.Linear(8, 8) for _ in range(10)])
            optimizer = tenon.optim.Adam(model.parameters())

            def train():
                optimizer.zero_grad()
                model(tenon.ones(4, 8)).sum().backward()
                optimizer.step()
            for call in (lambda: deep.sum().backward(retain_graph=True), lambda: big @ big, lambda: repr(big),
                         lambda: tenon.tensor([[1.0] * 100] * 10), train):
                print(interrupted(call))
            w.grad = None
            (w * 2).sum().backward()
            train()
            print(w.grad.tolist(), len({state["step"].item() for state in optimizer.state.values()}))
            """)
        self.assertEqual(said, ["True"] * 5 + ["[2.0, 2.0, 2.0] 1"])


class Nothing(unittest.TestCase):
    def test_questions_about_no_elements(self):
        """Memory of nothing is no pointer to hand on, which the undefined-behaviour sanitizer says."""
        for dtype in (tenon.int64, tenon.bool, tenon.float32, tenon.complex64):
            x = tenon.zeros(0, 3, dtype=dtype)
            self.assertEqual([f(x).shape for f in (tenon.isnan, tenon.isinf, tenon.isfinite)], [(0, 3)] * 3)


if __name__ == "__main__":
    harness.main()
