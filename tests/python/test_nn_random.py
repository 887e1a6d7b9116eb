# SPDX-License-Identifier: MIT
"""Layers that draw random numbers, checked by what their draws must satisfy; and what PyTorch gives no oracle for."""

import math
import subprocess
import sys
import unittest

import harness

import tenon
import tenon.nn.functional as F
from tenon import nn


class Dropping(unittest.TestCase):
    def setUp(self):
        tenon.manual_seed(3)

    def test_dropout_zeroes_a_share_and_scales_the_rest(self):
        y = nn.Dropout(0.3)(tenon.ones(100, 100))
        share = (y == 0).float().mean().item()
        self.assertAlmostEqual(share, 0.3, delta=0.02)
        self.assertAlmostEqual(y.max().item(), 1 / 0.7, places=5)
        self.assertAlmostEqual(y.mean().item(), 1.0, delta=0.03)

    def test_dropout_of_channels_zeroes_them_whole(self):
        for layer, shape in ((nn.Dropout1d, (40, 30, 3)), (nn.Dropout2d, (40, 30, 2, 2)), (nn.Dropout3d, (40, 30, 2, 2, 2))):
            y = layer(0.4)(tenon.ones(*shape)).flatten(2)
            dead = (y == 0).all(2)
            alive = (y != 0).all(2)
            self.assertTrue(bool((dead | alive).all()))
            self.assertAlmostEqual(dead.float().mean().item(), 0.4, delta=0.06)
            self.assertAlmostEqual(y.max().item(), 1 / 0.6, places=5)

    def test_dropout_without_a_batch_drops_channels(self):
        y = F.dropout1d(tenon.ones(200, 4), 0.5)
        self.assertTrue(bool(((y == 0).all(1) | (y != 0).all(1)).all()))
        with self.assertRaisesRegex(RuntimeError, "dropout1d: Expected 2D or 3D input, but received a 4D input"):
            F.dropout1d(tenon.ones(1, 1, 1, 1))

    def test_dropout_in_place_changes_its_input(self):
        x = tenon.ones(50, 50)
        self.assertIs(F.dropout(x, 0.5, inplace=True), x)
        self.assertTrue(bool((x == 0).any()))
        x = tenon.ones(50, 20, 2, 2)
        self.assertIs(F.dropout2d(x, 0.5, inplace=True), x)

    def test_certain_dropout_gives_zeros_and_a_zero_gradient(self):
        x = tenon.ones(4, 4, requires_grad=True)
        F.dropout(x, 1.0).sum().backward()
        self.assertEqual(x.grad.abs().sum().item(), 0)

    def test_alpha_dropout_keeps_mean_and_variance(self):
        x = tenon.randn(200, 200)
        for drop in (nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.3)):
            y = drop(x)
            self.assertAlmostEqual(y.mean().item(), 0.0, delta=0.05)
            self.assertAlmostEqual(y.std().item(), 1.0, delta=0.05)

    def test_dropout_passes_gradients_where_it_kept(self):
        x = tenon.ones(30, 30, requires_grad=True)
        y = F.dropout(x, 0.5)
        y.sum().backward()
        self.assertTrue(bool(((x.grad == 0) == (y == 0)).all()))


class Sampling(unittest.TestCase):
    def test_rrelu_in_training_draws_slopes_within_its_bounds(self):
        x = -tenon.ones(60, 60)
        y = -nn.RReLU(0.2, 0.4)(x)
        self.assertGreaterEqual(y.min().item(), 0.2)
        self.assertLessEqual(y.max().item(), 0.4)
        self.assertAlmostEqual(y.mean().item(), 0.3, delta=0.01)
        self.assertEqual(F.rrelu(tenon.ones(3), training=True).tolist(), [1, 1, 1])
        z = -tenon.ones(4)
        self.assertIs(F.rrelu_(z, 0.2, 0.4, True), z)

    def test_gumbel_softmax_samples_the_distribution(self):
        logits = tenon.tensor([0.7, 0.2, 0.1]).log().expand(4000, 3)
        hard = F.gumbel_softmax(logits, hard=True)
        self.assertTrue(bool((hard.sum(1) - 1).abs().max() < 1e-5))
        for got, wanted in zip(hard.mean(0).tolist(), (0.7, 0.2, 0.1)):
            self.assertAlmostEqual(got, wanted, delta=0.04)
        soft = F.gumbel_softmax(logits, tau=0.5)
        self.assertTrue(bool((soft.sum(1) - 1).abs().max() < 1e-5))

    def test_fractional_pooling_picks_values_of_its_input(self):
        x = tenon.randn(2, 3, 9, 8)
        y, where = F.fractional_max_pool2d(x, 2, output_ratio=0.5, return_indices=True)
        self.assertEqual(tuple(y.shape), (2, 3, 4, 4))
        self.assertEqual(x.flatten(2).gather(2, where.flatten(2)).tolist(), y.flatten(2).tolist())

    def test_one_seed_gives_one_network(self):
        tenon.manual_seed(5)
        a = nn.Linear(3, 4).weight.tolist()
        tenon.manual_seed(5)
        self.assertEqual(nn.Linear(3, 4).weight.tolist(), a)
        self.assertNotEqual(nn.Linear(3, 4).weight.tolist(), a)


class Better(unittest.TestCase):
    """Where the reference is off, or has nothing to compare with."""

    def test_cross_map_norm_sums_over_its_window_alone(self):
        x = tenon.randn(1, 7, 2, 2)
        got = nn.CrossMapLRN2d(3, 0.5, 0.75, 1.0)(x)
        for c in range(7):
            window = x[:, max(0, c - 1) : c + 2]
            wanted = x[:, c] / (1.0 + 0.5 / 3 * window.pow(2).sum(1)).pow(0.75)
            self.assertLess((got[:, c] - wanted).abs().max().item(), 1e-6)

    def test_an_impossible_ctc_target_has_no_gradient(self):
        x = tenon.randn(2, 1, 3, requires_grad=True)
        loss = F.ctc_loss(x.log_softmax(-1), tenon.tensor([[1, 1, 1]]), (2,), (3,), reduction="none")
        self.assertEqual(loss.item(), math.inf)
        loss.sum().backward()
        self.assertEqual(x.grad.abs().sum().item(), 0)

    def test_flex_attention_has_gradients_and_masks_blocks(self):
        from tenon.nn.attention import flex_attention as flex

        q, k, v = (tenon.randn(1, 2, 5, 4, requires_grad=True) for _ in range(3))
        mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 5, 5, BLOCK_SIZE=2)
        out = flex.flex_attention(q, k, v, block_mask=mask)
        wanted = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        self.assertLess((out - wanted).abs().max().item(), 1e-5)
        out.sum().backward()
        self.assertIsNotNone(q.grad)
        self.assertEqual(mask.to_dense().tolist(), [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]])
        nowhere = flex.create_block_mask(lambda b, h, i, j: (i > 0) & (j < 9), 1, 1, 5, 5)
        self.assertEqual(flex.flex_attention(q, k, v, block_mask=nowhere)[0, 0, 0].tolist(), [0.0] * 4)

    def test_a_function_gives_way_to_a_class(self):
        seen = []

        class Mine(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})

        x = Mine._make_subclass(Mine, tenon.ones(2, 2))
        F.relu(x)
        F.layer_norm(x, (2,))
        F.mse_loss(tenon.ones(2, 2), target=x)
        self.assertEqual(seen[0], F.relu)
        self.assertIn(F.layer_norm, seen)
        self.assertIn(F.mse_loss, seen)

    def test_one_process_trains_through_the_distributed_wrapper(self):
        import tenon.distributed as dist

        with self.assertRaisesRegex(ValueError, "Default process group has not been initialized"):
            nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
        dist.init_process_group("gloo", rank=0, world_size=1)
        try:
            m = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
            with m.no_sync():
                m(tenon.ones(1, 2)).sum().backward()
            self.assertEqual(m.module.weight.grad.tolist(), [[1.0, 1.0], [1.0, 1.0]])
            self.assertEqual(list(m.state_dict()), ["module.weight", "module.bias"])
            with self.assertRaisesRegex(RuntimeError, "is not needed when a module doesn't have any parameter"):
                nn.parallel.DistributedDataParallel(nn.ReLU())
        finally:
            dist.destroy_process_group()

    def test_importing_the_package_loads_no_layer(self):
        code = "import sys, tenon, tenon.nn; print([m for m in sys.modules if m.startswith('tenon.nn.modules.')])"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertEqual(out.strip(), "['tenon.nn.modules._names']")

    def test_every_layer_is_where_the_table_says(self):
        import importlib

        from tenon.nn.modules import _names

        for family, names in _names._FAMILIES.items():
            listed = set(importlib.import_module("tenon.nn.modules." + family).__all__)
            self.assertLessEqual(set(names.split()), listed)
            if family != "module":
                self.assertEqual(set(names.split()), listed)


if __name__ == "__main__":
    harness.main()
