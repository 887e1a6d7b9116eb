# SPDX-License-Identifier: MIT
"""Numbers that an int64, or a tensor's dtype, cannot hold. Results and texts are PyTorch 2.11's."""
import unittest

import harness
import tenon

BEYOND = 2 ** 63
REFUSED = "value cannot be converted to type int64_t without overflow"


class Beyond(unittest.TestCase):
    def refused(self, kind, text, call, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            call(*args, **kwargs)
        self.assertIn(text, str(caught.exception))

    def test_integers_that_are_filled_refuse_it(self):
        x = tenon.tensor([0, 1, 2])
        for call in (lambda: x.fill_(BEYOND), lambda: tenon.full((2,), BEYOND), lambda: tenon.full_like(x, BEYOND),
                     lambda: x.new_full((1,), BEYOND), lambda: x.masked_fill(x > 0, BEYOND), lambda: x.pow(BEYOND),
                     lambda: x.clamp(min=BEYOND), lambda: tenon.where(x > 0, x, BEYOND), lambda: tenon.arange(BEYOND),
                     lambda: tenon.addcmul(x, x, x, value=BEYOND)):
            self.refused(RuntimeError, REFUSED, call)
        self.assertEqual(x.tolist(), [0, 1, 2])

    def test_integers_that_are_computed_with_it_wrap(self):
        x = tenon.tensor([0, 1, 2])
        self.assertEqual((x + BEYOND).tolist(), [-BEYOND, 1 - BEYOND, 2 - BEYOND])
        self.assertEqual((x ^ (2 ** 64 - 1)).tolist(), [-1, -2, -3])
        self.assertEqual((x * 0x9E3779B97F4A7C15).tolist(), [0, 0x9E3779B97F4A7C15 - 2 ** 64, 0x13C6EF372FE94F82A - 2 ** 64])
        self.assertEqual((x / BEYOND).tolist(), [0, 2.0 ** -63, 2.0 ** -62])

    def test_floats_take_it_as_it_is(self):
        for dtype in (tenon.float32, tenon.float64, tenon.bfloat16):
            x = tenon.tensor([0.0, 1.0], dtype=dtype)
            for made, wanted in ((x + BEYOND, [2.0 ** 63] * 2), (BEYOND - x, [2.0 ** 63] * 2), (x.mul(BEYOND), [0, 2.0 ** 63]),
                                 (x / BEYOND, [0, 2.0 ** -63]), (x.clone().fill_(BEYOND), [2.0 ** 63] * 2),
                                 (tenon.full((2,), BEYOND, dtype=dtype), [2.0 ** 63] * 2), (x.clamp(min=BEYOND), [2.0 ** 63] * 2),
                                 (tenon.where(x > 0, x, BEYOND), [2.0 ** 63, 1]), (x.add(x, alpha=BEYOND), [0, 2.0 ** 63]),
                                 (tenon.nn.functional.leaky_relu(-x, BEYOND), [0, -(2.0 ** 63)]),
                                 (x.clone().add_(BEYOND), [2.0 ** 63] * 2), (tenon._foreach_mul([x], BEYOND)[0], [0, 2.0 ** 63])):
                self.assertEqual((made.dtype, made.tolist()), (dtype, wanted))
            self.assertEqual((x < BEYOND).tolist(), [True, True])

    def test_an_element_that_is_set_must_fit_an_int64(self):
        for dtype in (tenon.int64, tenon.float32, tenon.bool):
            x = tenon.zeros(2, dtype=dtype)
            for number in (BEYOND, 2 ** 70, -BEYOND - 1):
                self.refused(ValueError, "Overflow when unpacking long long", x.__setitem__, 0, number)
            self.assertEqual(x.tolist(), [0, 0])

    def test_what_no_64_bits_hold_is_an_overflow(self):
        x = tenon.tensor([1.0])
        for call in (lambda: x + 2 ** 64, lambda: x.fill_(2 ** 70), lambda: tenon.full((1,), 10 ** 400)):
            self.refused(OverflowError, "int too big to convert", call)
        for call in (lambda: x + (-BEYOND - 1), lambda: x.fill_(-2 ** 70)):
            self.refused(OverflowError, "can't convert negative int to unsigned", call)

    def test_sizes_are_named_with_their_place(self):
        for call, name, argument, place in ((lambda: tenon.zeros(2 ** 70), "zeros", "size", 1), (lambda: tenon.ones((2, BEYOND)), "ones", "size", 2),
                                            (lambda: tenon.ones(1).expand(BEYOND), "expand", "size", 1),
                                            (lambda: tenon.ones(2).reshape(1, BEYOND), "reshape", "shape", 2)):
            self.refused(TypeError, "%s(): argument '%s' failed to unpack the object at pos %d with error \"Overflow when unpacking long long"
                         % (name, argument, place), call)


if __name__ == "__main__":
    harness.main()
