# SPDX-License-Identifier: MIT
"""Attention with functions of the user's: its values, lists of blocks, pictures and texts are PyTorch 2.11's."""

import unittest

import harness
import tenon
from tenon.nn.attention import flex_attention as flex


def causal(b, h, q, k):
    return q >= k


def prefix(b, h, q, k):
    return (k < 3) | (q >= k)


def lists(mask):
    return [getattr(mask, name).tolist() for name in (
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
        "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")]


class FlexAttention(unittest.TestCase):
    def test_functions_see_single_numbers(self):
        mask = flex.create_block_mask(prefix, None, None, 6, 6, BLOCK_SIZE=2)
        q = tenon.arange(2 * 2 * 6 * 4.).view(2, 2, 6, 4).sin()
        table = tenon.arange(12.).view(2, 6).cos().requires_grad_()

        def score(s, b, h, i, j):  # the sum is of two numbers: of whole tensors it would be another
            return s + table[h, (i - j).abs()] * tenon.stack([i * 1., j * 1.]).sum()

        out, lse = flex.flex_attention(q, (q * 3).cos(), (q * 2).sin(), score_mod=score, block_mask=mask, return_lse=True)
        for got, wanted in ((out[1, 1, :, 0], [0.5287, -0.27988, -0.51492, 0.86947, 0.20092, -0.94097]),
                            (lse[0, 1], [1.07856, 3.32746, 3.51792, 6.15462, 8.18148, 9.00955])):
            self.assertLess((got - tenon.tensor(wanted)).abs().max().item(), 2e-5)
        out.sum().backward()
        self.assertTrue(table.grad.abs().sum() > 0)

    def test_blocks_are_listed_by_queries_and_by_keys(self):
        mask = flex.create_block_mask(prefix, None, None, 6, 6, BLOCK_SIZE=2)
        self.assertEqual(lists(mask), [
            [[[1, 1, 1]]], [[[[1, 0, 2], [1, 0, 2], [2, 0, 1]]]], [[[1, 1, 2]]], [[[[0, 1, 2], [0, 1, 2], [0, 1, 2]]]],
            [[[0, 2, 1]]], [[[[0, 1, 2], [0, 1, 2], [2, 0, 1]]]], [[[3, 1, 0]]], [[[[0, 1, 2], [2, 0, 1], [0, 1, 2]]]]])
        self.assertEqual(mask.shape, (1, 1, 6, 6))
        longer = flex.create_block_mask(causal, 1, 1, 300, 300)
        self.assertEqual(longer.to_dense().tolist(), [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]])
        self.assertEqual(round(longer.sparsity(), 2), -9.23)  # blocks reach beyond the end
        flat = longer.as_tuple()
        self.assertEqual((flat[:2], flat[10:12], flat[-1]), ((300, 300), (128, 128), causal))

    def test_a_mask_is_made_of_lists(self):
        counts, columns = tenon.tensor([[[1, 2]]], dtype=tenon.int32), tenon.tensor([[[[0, 1], [0, 1]]]], dtype=tenon.int32)
        mask = flex.BlockMask.from_kv_blocks(counts, columns, BLOCK_SIZE=4)
        self.assertIs(mask.mask_mod, flex.noop_mask)
        self.assertEqual((mask.seq_lengths, mask.q_num_blocks.tolist(), mask.q_indices.tolist()),
                         ((8, 8), [[[2, 1]]], [[[[0, 1], [1, 0]]]]))
        x = tenon.arange(32.).view(1, 1, 8, 4) / 10
        out = flex.flex_attention(x, x, x, block_mask=mask)  # the first four queries see the first four keys
        wanted = tenon.nn.functional.scaled_dot_product_attention(x[:, :, :4], x[:, :, :4], x[:, :, :4])
        self.assertLess((out[:, :, :4] - wanted).abs().max().item(), 1e-6)
        with self.assertRaisesRegex(AssertionError, "must be both provided or omitted"):
            flex.BlockMask.from_kv_blocks(counts, columns, counts)

    def test_slices_and_cuts(self):
        mask = flex.create_block_mask(causal, 2, 3, 512, 640, BLOCK_SIZE=(64, 128))
        self.assertEqual((mask[1].shape, mask[1, -1].shape, mask[:, 0].shape),
                         ((1, 3, 512, 640), (1, 1, 512, 640), (2, 1, 512, 640)))
        some = mask[0, 0, tenon.tensor([1, 3])]
        self.assertEqual(some.q_num_blocks.tolist(), [[[1, 1, 0, 0, 0]]])
        x = tenon.ones(1, 1, 512, 4)
        y = tenon.ones(1, 1, 640, 4)
        with self.assertRaisesRegex(RuntimeError, "Cannot use mask_mod from a sliced BlockMask"):
            flex.flex_attention(x, y, y, block_mask=mask[0, 0])
        cut = flex.create_block_mask(causal, 1, 1, 300, 300)._adjust(200, 129)
        self.assertEqual((cut.shape, cut.kv_indices.tolist(), cut.full_kv_num_blocks.tolist()),
                         ((1, 1, 256, 256), [[[[0, 1], [1, 0]]]], [[[0, 1]]]))

    def test_lengths_must_fit(self):
        mask = flex.create_block_mask(causal, 1, 1, 30, 30)
        for q, k, word in ((20, 30, "larger"), (30, 20, "larger"), (40, 30, "smaller"), (30, 40, "smaller")):
            with self.assertRaisesRegex(ValueError, "shape=\\(1, 1, 30, 30\\) but got q_len=%d and kv_len=%d.*%s" % (q, k, word)):
                flex.flex_attention(tenon.ones(1, 1, q, 4), tenon.ones(1, 1, k, 4), tenon.ones(1, 1, k, 4), block_mask=mask)

    def test_pictures_and_texts(self):
        mask = flex.create_block_mask(lambda b, h, q, k: q - k == 0, 1, 2, 10, 22, BLOCK_SIZE=2)
        self.assertEqual(mask.to_string(grid_size=(3, 4)), "(0, 0)\n░░      \n░░░░    \n  ░░    \n\n(0, 1)\n░░      \n░░░░    \n  ░░    \n")
        self.assertEqual(str(flex.create_block_mask(causal, 1, 1, 300, 300)),
                         "BlockMask(shape=(1, 1, 300, 300), sparsity=-9.23%, \n(0, 0)\n██    \n████  \n██████\n)")
        self.assertIn("    sparsity=-9.23%,\n    mask_mod=causal\n)", repr(flex.create_block_mask(causal, 1, 1, 300, 300)))
        many = str(flex.create_block_mask(causal, 2, 3, 4, 4))
        self.assertTrue(many.endswith("...\nTo print out more, set BlockMask.to_string(limit=N)\n"
                                      "You can also index (BlockMask[batch, head]) to choose a specific batch or head\n)"))

    def test_what_a_function_is_shows_in_its_arguments(self):
        self.assertIs(flex._get_mod_type(causal), flex._ModificationType.MASK_MOD)
        self.assertIs(flex._get_mod_type(flex._identity), flex._ModificationType.SCORE_MOD)
        with self.assertRaisesRegex(AssertionError, "Expected 4 or 5 positional args, got 2"):
            flex.create_block_mask(lambda b, h: b, 1, 1, 8, 8)
        mask = flex.create_mask(lambda s, b, h, q, k: tenon.where(q >= k, s, -float("inf")), 1, None, 3, 3)
        self.assertEqual(mask.tolist(), [[[[True, False, False], [True, True, False], [True, True, True]]]])


if __name__ == "__main__":
    harness.main()
