# SPDX-License-Identifier: MIT
"""Counts of floating-point operations. Counts and tables were seen to be those of PyTorch 2.11."""
import contextlib
import io
import unittest

import harness
import tenon
from tenon import nn
from tenon.utils.flop_counter import FlopCounterMode, register_flop_formula

TABLE = """\
Module          FLOP    % Total
------------  ------  ---------
Sequential       672    100.00%
- aten.addmm     288     42.86%
- aten.mm        384     57.14%
Sequential.0     384     57.14%
- aten.addmm     192     28.57%
- aten.mm        192     28.57%
Sequential.2     288     42.86%
- aten.addmm      96     14.29%
- aten.mm        192     28.57%"""


class Counts(unittest.TestCase):
    def total(self, fn):
        with FlopCounterMode(display=False) as counter:
            fn()
        return counter.get_total_flops()

    def test_of_operators(self):
        r = tenon.randn
        for wanted, fn in ((48, lambda: r(2, 3) @ r(3, 4)), (240, lambda: tenon.bmm(r(2, 3, 4), r(2, 4, 5))),
                           (24, lambda: tenon.addmm(r(2, 2), r(2, 3), r(3, 2))),
                           (15552, lambda: nn.functional.conv2d(r(2, 3, 8, 8), r(4, 3, 3, 3))),
                           (15552, lambda: nn.functional.conv_transpose2d(r(2, 4, 6, 6), r(4, 3, 3, 3))),
                           (168, lambda: nn.functional.conv1d(r(1, 2, 9), r(4, 1, 3), groups=2)),
                           (7680, lambda: nn.functional.scaled_dot_product_attention(
                               r(2, 4, 5, 8), r(2, 4, 6, 8), r(2, 4, 6, 8))),
                           (0, lambda: r(2) + 1)):
            self.assertEqual(self.total(fn), wanted)

    def test_of_gradients(self):
        x, w = tenon.randn(2, 3, 8, 8, requires_grad=True), tenon.randn(4, 3, 3, 3, requires_grad=True)
        self.assertEqual(self.total(lambda: nn.functional.conv2d(x, w).sum().backward()), 3 * 15552)
        y = x.detach()
        self.assertEqual(self.total(lambda: nn.functional.conv2d(y, w).sum().backward()), 2 * 15552)

    def test_by_module(self):
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        with FlopCounterMode(net, display=False) as counter:
            net(tenon.randn(3, 4)).sum().backward()
        self.assertEqual(counter.get_total_flops(), 672)
        counts = {name: {str(op): n for op, n in ops.items()} for name, ops in counter.get_flop_counts().items()}
        self.assertEqual(counts["Sequential.0"], {"aten.addmm": 192, "aten.mm": 192})
        self.assertEqual(counter.get_table(), TABLE)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), FlopCounterMode(depth=1):
            net(tenon.randn(3, 4))
        self.assertIn("Sequential       288    100.00%", shown.getvalue())

    def test_of_large_products_without_memory(self):
        m = tenon.empty(10000, 10000, device="meta")
        with FlopCounterMode(display=False) as counter:
            m @ m
        self.assertIn("Global     2000.000B    100.00%", counter.get_table())

    def test_formulas_of_users(self):
        with FlopCounterMode(display=False, custom_mapping={tenon.ops.aten.sin: lambda *shapes, **_: 7}) as counter:
            tenon.ones(2).sin()
        self.assertEqual(counter.get_total_flops(), 7)
        with self.assertRaisesRegex(RuntimeError, "duplicate registrations for aten.mm"):
            register_flop_formula(tenon.ops.aten.mm)(lambda: 0)
        with self.assertRaisesRegex(ValueError, "expected each target to be OpOverloadPacket"):
            register_flop_formula(tenon.mm)(lambda: 0)


if __name__ == "__main__":
    harness.main()
