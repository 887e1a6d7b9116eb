# SPDX-License-Identifier: MIT
"""no_grad, enable_grad, set_grad_enabled, inference_mode: blocks and decorators."""

import threading
import unittest
import warnings

import harness
import tenon

KINDS = {"no_grad": (), "enable_grad": (), "set_grad_enabled": (False,), "inference_mode": ()}


class Blocks(unittest.TestCase):
    def test_each_holds_until_its_end_also_when_an_exception_ends_it(self):
        for kind, inside in (("no_grad", False), ("enable_grad", True), ("inference_mode", False)):
            for before in (True, False):
                with tenon.set_grad_enabled(before):
                    with self.assertRaises(ZeroDivisionError), getattr(tenon, kind)() as value:
                        self.assertIsNone(value)
                        self.assertIs(tenon.is_grad_enabled(), inside)
                        raise ZeroDivisionError
                    self.assertIs(tenon.is_grad_enabled(), before)
        self.assertTrue(tenon.is_grad_enabled())

    def test_one_object_serves_again_and_knows_what_was(self):
        mode = tenon.no_grad()
        self.assertIs(mode.prev, False)
        for _ in range(3):
            with mode:
                self.assertFalse(tenon.is_grad_enabled())
            self.assertTrue(tenon.is_grad_enabled())
        self.assertIs(mode.prev, True)

    def test_set_grad_enabled_switches_at_once(self):
        mode = tenon.set_grad_enabled(False)
        try:
            self.assertFalse(tenon.is_grad_enabled())
            self.assertEqual((mode.mode, mode.prev), (False, True))
            self.assertEqual(repr(mode), "tenon.autograd.grad_mode.set_grad_enabled(mode=False)")
        finally:
            tenon.set_grad_enabled(True)
        with self.assertRaisesRegex(TypeError, r"set_grad_enabled\(\): argument 'enabled' \(position 1\) must be bool, not int"):
            tenon.set_grad_enabled(2)
        self.assertTrue(tenon.is_grad_enabled())

    def test_inference_mode_can_be_asked_not_to(self):
        with tenon.inference_mode(False):
            self.assertFalse(tenon.is_inference_mode_enabled())
            self.assertTrue((tenon.ones(2, requires_grad=True) * 2).requires_grad)
        with tenon.inference_mode():
            self.assertTrue(tenon.is_inference_mode_enabled())
            self.assertTrue(tenon.ones(2).is_inference())
            with tenon.inference_mode(mode=False):
                self.assertFalse(tenon.is_inference_mode_enabled())
        self.assertFalse(tenon.is_inference_mode_enabled())
        with self.assertRaises(RuntimeError):
            tenon.inference_mode().__exit__(None, None, None)

    def test_threads_have_their_own(self):
        seen = []
        with tenon.no_grad():
            thread = threading.Thread(target=lambda: seen.append(tenon.is_grad_enabled()))
            thread.start()
            thread.join()
        self.assertEqual(seen, [True])

    def test_a_class_may_be_derived(self):
        class Loud(tenon.no_grad):
            def __init__(self, word):
                super().__init__()
                self.word = word

            def __new__(cls, word):
                return super().__new__(cls)

            def __enter__(self):
                super().__enter__()
                return self.word

        with Loud("hush") as word:
            self.assertEqual(word, "hush")
            self.assertFalse(tenon.is_grad_enabled())
        self.assertTrue(tenon.is_grad_enabled())


class Decorators(unittest.TestCase):
    def test_the_mode_holds_for_each_call(self):
        for kind, arguments in KINDS.items():
            @getattr(tenon, kind)(*arguments)
            def f(a, *, b=2):
                """what it does"""
                return a, b, tenon.is_grad_enabled()
            self.assertTrue(tenon.is_grad_enabled())
            self.assertEqual(f(1, b=3), (1, 3, kind == "enable_grad"))
            self.assertEqual((f.__name__, f.__doc__), ("f", "what it does"))
            self.assertTrue(tenon.is_grad_enabled())

    def test_no_parentheses_are_needed(self):
        for kind in ("no_grad", "enable_grad", "inference_mode"):
            f = getattr(tenon, kind)(lambda: tenon.is_grad_enabled())
            self.assertEqual(f(), kind == "enable_grad")

    def test_a_generator_runs_in_it_and_its_caller_does_not(self):
        log = []

        @tenon.no_grad()
        def numbers():
            try:
                sent = yield tenon.is_grad_enabled()
                log.append(sent)
                try:
                    yield tenon.is_grad_enabled()
                except KeyError:
                    yield "caught %s" % tenon.is_grad_enabled()
            finally:
                log.append(tenon.is_grad_enabled())

        steps = numbers()
        self.assertFalse(next(steps))
        self.assertTrue(tenon.is_grad_enabled())
        self.assertFalse(steps.send("hello"))
        self.assertEqual(steps.throw(KeyError), "caught False")
        self.assertTrue(tenon.is_grad_enabled())
        steps.close()
        self.assertEqual(log, ["hello", False])

    def test_decorating_a_class_warns_and_holds_for_making_one(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")

            @tenon.no_grad()
            class Thing:
                def __init__(self):
                    self.inside = tenon.is_grad_enabled()
        self.assertEqual([w.category for w in said], [FutureWarning])
        self.assertIn("Decorating classes is deprecated", str(said[0].message))
        self.assertFalse(Thing().inside)


class Nodes(unittest.TestCase):
    def test_an_operator_without_a_derivative_fails_at_the_call_that_needs_one(self):
        x = tenon.arange(3.0).requires_grad_()
        with self.assertRaisesRegex(NotImplementedError, "derivative for aten::floor_divide is not implemented"):
            x // 2
        with self.assertRaisesRegex(NotImplementedError, r"^the derivative for 'nextafter' is not implemented\.$"):
            tenon.nextafter(x, tenon.ones(3))
        with tenon.no_grad():
            self.assertEqual((x // 2).tolist(), [0, 0, 1])
        self.assertEqual((x.detach() // 2).tolist(), [0, 0, 1])

    def test_norm_is_recorded_as_the_norm_of_vectors(self):
        x = tenon.ones(2, 3, requires_grad=True)
        for y in (x.norm(), x.norm(1), x.norm(dim=1), tenon.norm(x, "fro", (0, 1)), x.norm(2, 1, keepdim=True)):
            self.assertEqual(y.grad_fn.name(), "LinalgVectorNormBackward0")
        self.assertEqual(x.norm(dim=1, keepdim=True).shape, (2, 1))
        self.assertEqual(x.norm(dtype=tenon.float64).dtype, tenon.float64)


if __name__ == "__main__":
    harness.main()
