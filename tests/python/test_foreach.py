# SPDX-License-Identifier: MIT
"""Functions of lists of tensors: which overload a call means, and what it returns."""

import unittest

import harness
import tenon
from tenon._subclasses import FakeTensorMode


class Foreach(unittest.TestCase):
    """Lists of tensors at once, as PyTorch's functions take and return them."""

    def test_overwriting_gives_the_list_itself(self):
        xs = [tenon.ones(2), tenon.ones(1)]
        self.assertIs(tenon._foreach_add_(xs, 1), xs)
        self.assertIs(tenon._foreach_zero_(self=xs), xs)
        both = tuple(xs)
        self.assertIs(tenon._foreach_sqrt_(both), both)

    def test_a_list_of_numbers_chooses_its_overload(self):
        xs, ys = [tenon.ones(2), tenon.ones(1)], [tenon.zeros(2), tenon.zeros(1)]
        self.assertEqual([x.tolist() for x in tenon._foreach_sub(xs, [2, 0.5])], [[-1, -1], [0.5]])
        self.assertEqual([x.tolist() for x in tenon._foreach_lerp(xs, ys, [0.25, 0.5])], [[0.75, 0.75], [0.5]])
        with self.assertRaisesRegex(RuntimeError, "same number of elements as scalar list"):
            tenon._foreach_sub(xs, [2])

    def test_what_may_be_written_is_written_once(self):
        x = tenon.ones(3)
        with tenon.no_grad():
            v = x[:2]
        with self.assertRaisesRegex(RuntimeError, "a leaf Variable that requires grad"):
            tenon._foreach_add_([v, tenon.ones(2, requires_grad=True)], 1)
        self.assertEqual((x._version, x.tolist()), (0, [1, 1, 1]))
        tenon._foreach_add_([v], 1)
        self.assertEqual((x._version, x.tolist()), (1, [2, 2, 1]))
        y = tenon.ones(3, requires_grad=True)
        with tenon.no_grad():
            w = y[:2]
        with self.assertRaisesRegex(RuntimeError, "A view was created in no_grad mode"):
            tenon._foreach_add_([w], 1)
        self.assertEqual(y._version, 0)

    def test_a_list_of_tensors_without_dimensions_is_no_list_of_numbers(self):
        x = tenon.tensor(3.0, requires_grad=True)
        tenon._foreach_mul([tenon.tensor(2.0)], [x])[0].backward()
        self.assertEqual(x.grad.item(), 2)
        self.assertEqual(tenon._foreach_add([tenon.tensor(2.0)], [tenon.tensor(3.0)], alpha=2)[0].item(), 8)

    def test_a_number_to_the_powers_of_a_list(self):
        self.assertEqual([x.tolist() for x in tenon._foreach_pow(2, [tenon.ones(2), tenon.tensor(3.0)])], [[2, 2], 8])

    def test_equal_elements_share_the_slope_of_a_maximum_and_keep_that_of_a_bound(self):
        for name, tied in (("maximum", 0.5), ("minimum", 0.5), ("clamp_min", 1), ("clamp_max", 1)):
            call, up = getattr(tenon, "_foreach_" + name), name in ("maximum", "clamp_min")
            for other in (2.0, [2.0], [tenon.tensor([2.0] * 3, requires_grad=True)]):
                x = tenon.tensor([1.0, 2, 3], requires_grad=True)
                with_slope = isinstance(other, list) and isinstance(other[0], tenon.Tensor)
                made = tenon.autograd.grad(call([x], other)[0].sum(), [x] + (other if with_slope else []))
                wanted = [0.0, tied, 1.0] if up else [1.0, tied, 0.0]
                self.assertEqual(made[0].tolist(), wanted)
                if with_slope:
                    self.assertEqual(made[1].tolist(), [1 - slope for slope in wanted])
        made, = tenon._foreach_maximum([tenon.tensor([1, 3])], 1.5)
        self.assertEqual((made.dtype, made.tolist()), (tenon.float32, [1.5, 3]))
        made, = tenon._foreach_minimum([tenon.tensor([1.0, 3], dtype=tenon.float16)], 1.5)
        self.assertEqual((made.dtype, made.tolist()), (tenon.float16, [1, 1.5]))

    def test_what_is_refused_of_one_has_written_none(self):
        mode = FakeTensorMode()
        for make in (lambda *given, **named: tenon.ones(*given, **named),
                     lambda *given, **named: tenon.ones(*given, **named, device="meta"),
                     lambda *given, **named: mode.from_tensor(tenon.ones(*given, **named))):
            x = make(2, 3)
            for call in (lambda y: tenon._foreach_sqrt_([x, y]), lambda y: tenon._foreach_mul_([x, y], 1.5),
                         lambda y: tenon._foreach_add_([x, y], [x, x])):
                for y in (make(4, dtype=tenon.int64), make(4)[:1].expand(4)):
                    with self.assertRaisesRegex(RuntimeError, "can't be cast|single memory location|must match"):
                        call(y)
                    self.assertEqual((x._version, y._version), (0, 0))

    def test_gradients_of_a_list_are_clipped_by_its_norms(self):
        x = tenon.tensor([3.0, 4.0], requires_grad=True)
        (tenon._foreach_abs([x])[0] * x).sum().backward()
        self.assertEqual(x.grad.tolist(), [6, 8])
        scale = tenon._foreach_clamp_max([5 / tenon._foreach_norm([x.grad])[0]], 1.0)
        tenon._foreach_mul_([x.grad], scale)
        self.assertEqual(x.grad.tolist(), [3, 4])


if __name__ == "__main__":
    harness.main()
