# SPDX-License-Identifier: MIT
"""repr of tensors, character by character as PyTorch 2.11 writes it."""

import unittest
from unittest import mock

import golden_check
import harness
import tenon


def build(row):
    dtype = getattr(tenon, row["dtype"])
    values = row["values"]
    if dtype.is_complex:
        values = [complex(*v) for v in values]
    t = tenon.tensor(values, dtype=dtype).reshape(row["shape"])
    if row["grad"]:
        t.requires_grad_()
    return t.clone() if row["op"] else t


class Repr(unittest.TestCase):
    def tearDown(self):
        tenon.set_printoptions(profile="default")

    def test_text_is_pytorch_s(self):
        bad, seen = [], 0
        for row in golden_check.rows("repr"):
            tenon.set_printoptions(profile="default")
            if "ask" in row:
                got = repr(eval(row["ask"], {"torch": tenon}))
            else:
                tenon.set_printoptions(**row["options"])
                got = repr(build(row))
            seen += 1
            got = got.replace("tenon.", "torch.")
            if got != row["text"]:
                bad.append(f"got\n{got}\nwanted\n{row['text']}\n")
        print(f"repr: {seen} tensors")
        self.assertEqual(bad, [], "".join(bad[:5]) + f"{len(bad)} of {seen} differ")

    def test_options_can_be_set_for_a_while(self):
        from tenon._tensor_str import get_printoptions, printoptions

        x = tenon.tensor([1 / 3])
        before = get_printoptions()
        with printoptions(precision=2):
            self.assertEqual(repr(x), "tensor([0.33])")
        self.assertEqual(get_printoptions(), before)
        self.assertEqual(repr(x), "tensor([0.3333])")

    def test_format_of_a_number_and_of_a_tensor(self):
        self.assertEqual(f"{tenon.tensor(2.5):.2f}", "2.50")
        self.assertEqual(f"{tenon.ones(2)}", "tensor([1., 1.])")
        self.assertEqual(str(tenon.tensor(2.5)), "tensor(2.5000)")
        with self.assertRaises(TypeError):
            f"{tenon.ones(2):.2f}"

    def test_a_dual_tensor_shows_its_tangent(self):
        from tenon.autograd import forward_ad

        x = tenon.tensor([1.0, 2.0])
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, tenon.ones(2))
            self.assertEqual(repr(dual), "tensor([1., 2.], tangent=tensor([1., 1.]))")
            self.assertEqual(repr(dual * 3), "tensor([3., 6.], tangent=tensor([3., 3.]))")
            self.assertEqual(repr(x), "tensor([1., 2.])")
        self.assertEqual(repr(dual), "tensor([1., 2.])")
    def test_an_interrupt_leaves_the_recording_of_gradients_on(self):
        switch, left = tenon._C._set_grad_enabled, [KeyboardInterrupt]

        def interrupted(on):  # as by a signal that comes the moment after
            before = switch(on)
            if left:
                raise left.pop()
            return before

        self.addCleanup(switch, True)
        with mock.patch.object(tenon._C, "_set_grad_enabled", interrupted), self.assertRaises(KeyboardInterrupt):
            repr(tenon.ones(3))
        self.assertTrue(tenon.is_grad_enabled())

    def test_an_unknown_profile_is_refused(self):
        with self.assertRaises(ValueError):
            tenon.set_printoptions(profile="colourful")


class Contents(unittest.TestCase):
    """The text of a class that says itself what is in it, as PyTorch writes it."""

    def test_contents(self):
        class Says(tenon.Tensor):
            def __repr__(self):
                return super().__repr__(tensor_contents="hello")

        t = tenon.ones(2).as_subclass(Says)
        double = str(tenon.float64)
        for made, text in ((t, "Says(hello)"), (t.double(), "Says(hello, dtype=%s)" % double),
                           (tenon.nn.Parameter(t), "Parameter(Says(hello, requires_grad=True))"),
                           (tenon.ones(2, device="meta").as_subclass(Says), "Says(hello, device='meta', size=(2,))")):
            self.assertEqual(repr(made), text)
        self.assertEqual(tenon.Tensor.__repr__(tenon.ones(2), tensor_contents="x"), "tensor(x)")


if __name__ == "__main__":
    harness.main()
