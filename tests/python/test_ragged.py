# SPDX-License-Identifier: MIT
"""Nested and masked tensors: what PyTorch says about each expression of ragged_cases.py, and what goes beyond it."""
import copy
import io
import json
import os
import pickle
import unittest

import harness
import tenon
import tenon.masked
from ragged_cases import results
from tenon.nn import functional as F

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def nested(*lengths, **options):
    parts = [tenon.arange(n * 2.0).reshape(n, 2) for n in lengths]
    return tenon.nested.nested_tensor(parts, layout=tenon.jagged, **options)


class Expressions(unittest.TestCase):
    def test_each_gives_what_pytorch_gives(self):
        with open(os.path.join(GOLDEN, "ragged.json")) as file:
            wanted = json.load(file)
        got = list(results(tenon, tenon.masked))
        self.assertEqual(len(got), len(wanted))
        for ours, theirs in zip(got, wanted):
            with self.subTest(expression=theirs[0]):
                self.assertEqual(list(ours), theirs)


class Attention(unittest.TestCase):
    """Attention and encoders of nested tensors: each part by itself, with and without gradients."""

    PARTS = (3, 1, 5)

    def parts(self):
        return [tenon.arange(8.0 * n).add(n).sin().reshape(n, 8).requires_grad_() for n in self.PARTS]

    def test_an_encoder_gives_each_part_what_it_gives_it_alone(self):
        encoder = tenon.nn.TransformerEncoder(tenon.nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True), 2)
        for training in (True, False):
            encoder.train(training)
            parts, alone = self.parts(), self.parts()
            out = encoder(tenon.nested.as_nested_tensor(parts))
            self.assertTrue(out.is_nested)
            for made, part in zip(out.unbind(), alone, strict=True):
                wanted = encoder(part)
                self.assertTrue(tenon.allclose(made, wanted, atol=1e-6))
                wanted.sin().sum().backward()
            tenon.cat([made.reshape(-1) for made in out.unbind()]).sin().sum().backward()
            for got, wanted in zip(parts, alone, strict=True):
                self.assertTrue(tenon.allclose(got.grad, wanted.grad, atol=1e-5))

    def test_weights_are_padded_with_zeros(self):
        attention = tenon.nn.MultiheadAttention(8, 2, batch_first=True)
        given = tenon.nested.nested_tensor([part.detach() for part in self.parts()])
        for average, shape in ((True, (3, 5, 5)), (False, (3, 2, 5, 5))):
            weights = attention(given, given, given, average_attn_weights=average)[1]
            self.assertEqual(tuple(weights.shape), shape)
            for weight, n in zip(weights, self.PARTS):
                self.assertTrue(tenon.allclose(weight[..., :n, :n].sum(-1), tenon.ones(())))
                self.assertEqual(weight[..., n:, :].abs().sum().item() + weight[..., n:].abs().sum().item(), 0.0)
        self.assertIsNone(attention(given, given, given, need_weights=False)[1])

    def test_what_parts_have_no_place_for_is_refused(self):
        given = tenon.nested.nested_tensor([part.detach() for part in self.parts()])
        dense = tenon.ones(3, 5, 8)
        ours = tenon.nn.MultiheadAttention(8, 2, batch_first=True)
        for attention, others, masks, why in (
            (ours, (given, given), {"attn_mask": tenon.zeros(5, 5)}, "not supported with NestedTensor input"),
            (ours, (given, given), {"key_padding_mask": tenon.zeros(3, 5)}, "not supported with NestedTensor input"),
            (ours, (dense, dense), {}, "non-self attention was used"),
            (tenon.nn.MultiheadAttention(8, 2), (given, given), {}, "batch_first was not True"),
        ):
            with self.assertRaisesRegex(AssertionError, "outside of its fast path.*" + why):
                attention(given, *others, **masks)
        with self.assertRaisesRegex(RuntimeError, "is_causal"):
            ours(given, given, given, need_weights=False, is_causal=True)  # a hint about a mask that is not there
        fewer = tenon.nested.nested_tensor([tenon.ones(2, 8)])
        with self.assertRaisesRegex(AssertionError, "3, 1 and 1 parts"):
            ours(given, fewer, fewer)
        jagged = tenon.nested.nested_tensor([part.detach() for part in self.parts()], layout=tenon.jagged)
        with self.assertRaisesRegex(AssertionError, "non-self attention was used"):
            ours(given, jagged, jagged)


class Files(unittest.TestCase):
    PARTS = [[[0.0, 1, 2], [3, 4, 5]], [[10.0, 11, 12], [13, 14, 15], [16, 17, 18]]]

    def test_files_of_pytorch_are_read_and_ours_are_read_again(self):
        path = os.path.join(GOLDEN, "ragged.pt")
        for restricted in (True, False):
            jagged, strided = tenon.load(path, weights_only=restricted)
            self.assertEqual((jagged.layout, jagged.requires_grad, strided.layout), (tenon.jagged, True, tenon.strided))
            file = io.BytesIO()
            tenon.save([jagged, strided], file)
            file.seek(0)
            again = tenon.load(file, weights_only=restricted)
            for one in (jagged, strided, *again, *(pickle.loads(pickle.dumps(t)) for t in (jagged, strided))):
                self.assertEqual([part.tolist() for part in one.unbind()], self.PARTS)

    def test_parts_that_lie_are_refused(self):
        from tenon.nested._internal.nested_tensor import _rebuild_njt
        values = tenon.ones(5, 3)
        for offsets, more in (([0, 2, 6], {}), ([-1, 2, 5], {}), ([0, 3, 2], {}), ([0.0, 2, 5], {}), ([[0, 2, 5]], {}),
                              ([0, 2, 5], {"_ragged_idx": 3}), ([0, 2, 5], {"_ragged_idx": True}),
                              ([0, 2, 5], {"lengths": tenon.tensor([2, 4])}), ([0, 2, 5], {"values": 3})):
            with self.assertRaises(pickle.UnpicklingError):
                _rebuild_njt({"values": values, "offsets": tenon.tensor(offsets), **more})
        from tenon._utils import _rebuild_nested_tensor
        for sizes, strides, begins in (([[9, 9]], [[3, 1]], [0]), ([[2, 3]], [[3, 1]], [-1]), ([[2, 3]], [[3, 1]], [2**62]),
                                       ([[2, 3]], [[3, 1]], [0, 1]), ([[2, 3]], [[3, 1, 1]], [0])):
            with self.assertRaises((RuntimeError, ValueError)):
                _rebuild_nested_tensor(values.view(-1), *map(tenon.tensor, (sizes, strides, begins)))


class Nested(unittest.TestCase):
    def test_gradients_along_the_ragged_dimension_are_those_of_each_part(self):
        values = tenon.arange(10.0).reshape(5, 2).requires_grad_()
        n = tenon.nested.nested_tensor_from_jagged(values, tenon.tensor([0, 2, 5]))
        (F.softmax(n, 1).values() * tenon.arange(10.0).reshape(5, 2)).sum().backward()
        parts = tenon.arange(10.0).reshape(5, 2).requires_grad_()
        whole = tenon.cat([F.softmax(p, 0) for p in (parts[:2], parts[2:])])
        (whole * tenon.arange(10.0).reshape(5, 2)).sum().backward()
        self.assertTrue(tenon.allclose(values.grad, parts.grad))

    def test_attention_of_a_batch_is_that_of_each(self):
        for causal in (False, True):
            q = nested(3, 1, 4).sin().unflatten(-1, [2, 1]).transpose(1, 2)
            out = F.scaled_dot_product_attention(q, q, q, is_causal=causal)
            for o, p in zip(out.unbind(), q.unbind()):
                self.assertTrue(tenon.allclose(o, F.scaled_dot_product_attention(p[None], p[None], p[None],
                                                                                 is_causal=causal)[0]))

    def test_attention_between_nested_and_dense_tensors_is_refused(self):
        q = nested(3, 1).unflatten(-1, [2, 1]).transpose(1, 2)
        with self.assertRaisesRegex(ValueError, "to be nested tensors, but got query.is_nested: True, key.is_nested: False"):
            F.scaled_dot_product_attention(q, tenon.ones(2, 2, 4, 1), q)

    def test_sizes_that_scripts_read_can_be_given_back(self):
        n = nested(2, 3)
        self.assertEqual(n.view(n.size(0), n.size(1), 1, 2).shape, (2, n.size(1), 1, 2))
        self.assertNotEqual(n.size(1), nested(2, 3).size(1))
        with self.assertRaises(RuntimeError):
            n.view(2, nested(2, 3).size(1), 2)

    def test_a_layer_trains_on_it(self):
        layer = tenon.nn.Sequential(tenon.nn.Linear(2, 4), tenon.nn.LayerNorm(4), tenon.nn.GELU(), tenon.nn.Linear(4, 1))
        optimizer = tenon.optim.SGD(layer.parameters(), lr=0.05)
        n, losses = nested(2, 5, 1), []
        for step in range(20):
            loss = (layer(n).to_padded_tensor(0.0).sum(1) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0])

    def test_copies_and_pickles_have_the_same_parts(self):
        n = nested(2, 3)
        for m in (copy.deepcopy(n), pickle.loads(pickle.dumps(n)), n.clone()):
            self.assertEqual([p.tolist() for p in m.unbind()], [p.tolist() for p in n.unbind()])
        self.assertEqual([p.tolist() for p in pickle.loads(pickle.dumps(tenon.nested.nested_tensor([tenon.ones(1)])))], [[1.0]])

    def test_what_has_no_meaning_is_refused(self):
        n = nested(2, 3)
        for call in (lambda: n @ n, lambda: tenon.fft.fft(n), lambda: n[:, 0], lambda: n.stride(), lambda: n.cumsum(1),
                     lambda: tenon.nested.nested_tensor(3), lambda: tenon.nested.nested_tensor_from_jagged(n.values()),
                     lambda: tenon.nested.nested_tensor([tenon.ones(2, 3), tenon.ones(1, 2)], layout=tenon.jagged)):
            with self.assertRaises((RuntimeError, TypeError, NotImplementedError)):
                call()


class Lists(unittest.TestCase):
    """Nested tensors of the strided layout."""

    def test_reshape_and_view_keep_the_batch_and_what_is_minus_one(self):
        a, b = tenon.arange(6.0).reshape(1, 6), tenon.arange(12.0).reshape(2, 6)
        n = tenon.nested.nested_tensor([a, b], requires_grad=True)
        for out in (n.reshape(2, -1, 2, 3), n.view(2, -1, 2, 3), tenon.reshape(n, (2, -1, 2, 3)), n.reshape([2, -1, 2, 3])):
            self.assertEqual([p.shape for p in out.unbind()], [(1, 2, 3), (2, 2, 3)])
        self.assertEqual([p.shape for p in n.reshape(2, -1, -1).unbind()], [(1, 6), (2, 6)])
        n.reshape(2, -1, 2, 3).to_padded_tensor(0.0).sum().backward()
        self.assertEqual([g.tolist() for g in n.grad.unbind()], [[[1.0] * 6], [[1.0] * 6] * 2])
        for shape, text in (((3, -1, 6), "reshape: For now nested reshape cannot change or infer the implicit batch dimension"),
                            ((2, -1, 6, -1), "nested tensor does not infer shape"),
                            ((2, -1, -1, 6), "only one dimension can be inferred"),
                            ((2, -1, 2, 4), "shape '[2, -1, 2, 4]' is invalid for input of size 6")):
            with self.assertRaises(RuntimeError) as caught:
                n.reshape(*shape)
            self.assertEqual(str(caught.exception), text)


    def test_what_its_parts_are_like(self):
        n = tenon.nested.nested_tensor([tenon.arange(6.0).view(2, 3), tenon.arange(12.0).view(4, 3)])
        for one, sizes, strides in ((n, [[2, 3], [4, 3]], [[3, 1], [3, 1]]), (n.transpose(1, 2), [[3, 2], [3, 4]], [[1, 3], [1, 3]])):
            self.assertEqual((one._nested_tensor_size().tolist(), one._nested_tensor_strides().tolist(),
                              one._nested_tensor_storage_offsets().tolist()), (sizes, strides, [0, 6]))
        numbers = tenon.nested.nested_tensor([tenon.tensor(1.0), tenon.tensor(2.0)])
        self.assertEqual((numbers._nested_tensor_size().shape, numbers._nested_tensor_storage_offsets().tolist()), ((2, 0), [0, 1]))
        self.assertEqual([p.tolist() for p in pickle.loads(pickle.dumps(n.transpose(1, 2))).unbind()],
                         [p.tolist() for p in n.transpose(1, 2).unbind()])


class Masked(unittest.TestCase):
    def test_gradients_of_what_does_not_count_are_0(self):
        x, mask = tenon.tensor([1.0, 2.0, 3.0], requires_grad=True), tenon.tensor([True, False, True])
        y = tenon.masked.as_masked_tensor(x, mask)
        (y * y).sum().backward()
        self.assertEqual(x.grad.tolist(), [2.0, 0.0, 6.0])

    def test_a_mean_of_nothing_does_not_count(self):
        x = tenon.masked.masked_tensor(tenon.ones(2, 2), tenon.tensor([[True, True], [False, False]]))
        self.assertEqual(x.mean(1).get_mask().tolist(), [True, False])
        self.assertEqual(x.mean(1).to_tensor(-1.0).tolist(), [1.0, -1.0])

    def test_pickles_keep_both_parts(self):
        x = pickle.loads(pickle.dumps(tenon.masked.masked_tensor(tenon.ones(2), tenon.tensor([True, False]))))
        self.assertEqual((x.get_data().tolist(), x.get_mask().tolist()), ([1.0, 1.0], [True, False]))


if __name__ == "__main__":
    harness.main()
