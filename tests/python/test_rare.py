# SPDX-License-Identifier: MIT
"""Functions that scripts rarely call. Values are closed forms, and were seen to be PyTorch 2.11's."""
import os
import tempfile
import unittest

import harness
import tenon


class Copies(unittest.TestCase):
    def test_what_views_show_in_memory_of_its_own(self):
        x = tenon.arange(6.0).reshape(2, 3)
        for name, args, wanted in (
                ("view_copy", ((3, 2),), x.view(3, 2)), ("t_copy", (), x.t()), ("transpose_copy", (0, 1), x.t()),
                ("permute_copy", ((1, 0),), x.t()), ("select_copy", (0, 1), x[1]), ("slice_copy", (1, 1, 3), x[:, 1:3]),
                ("unsqueeze_copy", (0,), x[None]), ("expand_copy", ((2, 2, 3),), x.expand(2, 2, 3)),
                ("diagonal_copy", (), x.diagonal()), ("as_strided_copy", ((2,), (1,), 1), x[0, 1:]),
                ("unfold_copy", (1, 2, 1), x.unfold(1, 2, 1)), ("detach_copy", (), x), ("alias_copy", (), x)):
            made = getattr(tenon, name)(x, *args)
            self.assertTrue(tenon.equal(made, wanted), name)
            self.assertFalse(made._is_view())
            self.assertNotEqual(made.untyped_storage().data_ptr(), x.untyped_storage().data_ptr())
        self.assertEqual([p.tolist() for p in tenon.split_copy(x, 1)], [[[0, 1, 2]], [[3, 4, 5]]])
        self.assertEqual([p.tolist() for p in tenon.unbind_copy(x)], x.tolist())

    def test_gradients_go_through(self):
        x = tenon.arange(4.0, requires_grad=True)
        (tenon.slice_copy(x, 0, 1, 3) ** 2).sum().backward()
        self.assertEqual(x.grad.tolist(), [0, 2, 4, 0])
        y = tenon.zeros(6, requires_grad=True)
        made = tenon.as_strided_scatter(y, tenon.ones(2), (2,), (2,), 1)
        self.assertEqual(y.as_strided_scatter(tenon.ones(2), (2,), (2,), 1).tolist(), made.tolist())
        self.assertEqual(made.tolist(), [0, 1, 0, 1, 0, 0])
        made.sum().backward()
        self.assertEqual(y.grad.tolist(), [1, 0, 1, 0, 1, 1])


class Functions(unittest.TestCase):
    def test_frexp_takes_numbers_apart(self):
        x = tenon.tensor([3.0, 0.0, -0.1, float("inf"), 1e-40, -8.0])
        mantissa, exponent = tenon.frexp(x)
        self.assertEqual(exponent.tolist(), [2, 0, -3, 0, -132, 4])
        self.assertEqual((mantissa[0].item(), mantissa[5].item(), exponent.dtype), (0.75, -0.5, tenon.int32))
        values = tenon.tensor([5e-324, 1.7e308, 0.5, 1.0, 2.0 ** 40 - 1], dtype=tenon.float64)
        import math
        made = tenon.frexp(values)
        self.assertEqual([(m, e) for m, e in zip(made.mantissa.tolist(), made.exponent.tolist())],
                         [math.frexp(v) for v in values.tolist()])
        with self.assertRaisesRegex(RuntimeError, "only supports floating-point dtypes"):
            tenon.frexp(tenon.arange(3))

    def test_in_place_as_functions(self):
        x = tenon.ones(2, 3)
        self.assertIs(tenon.fill_(x, 2), x)
        self.assertIs(tenon.zero_(x), x)
        self.assertEqual(x.addr_(tenon.ones(2), tenon.ones(3), alpha=2).tolist(), [[2] * 3] * 2)
        self.assertEqual(tenon.ones(2).map2_(tenon.ones(2), tenon.ones(2), lambda a, b, c: a + b + c).tolist(), [3, 3])

    def test_layouts_and_places(self):
        self.assertEqual(tenon.empty_permuted((2, 3, 4), (0, 2, 1)).stride(), (12, 1, 3))
        with self.assertRaisesRegex(RuntimeError, "Duplicate dim not allowed"):
            tenon.empty_permuted((2, 3), (0, 0))
        self.assertEqual(tenon.nonzero_static(tenon.tensor([[1, 0], [1, 1]]), size=4).tolist(),
                         [[0, 0], [1, 0], [1, 1], [-1, -1]])
        x = tenon.ones(1, 2, 3, 4).to(memory_format=tenon.channels_last)
        self.assertEqual(x.dim_order(), (0, 2, 3, 1))
        self.assertTrue(x.is_set_to(x) and not x.is_set_to(x.clone()))

    def test_choices_and_files(self):
        self.assertEqual(tenon.cond(tenon.tensor(False), lambda a: a + 1, lambda a: a - 1, (tenon.ones(1),)).item(), 0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.bin")
            with open(path, "wb") as file:
                file.write(b"\0\0\x80?" * 4)
            self.assertEqual(tenon.from_file(path, size=4).tolist(), [1] * 4)
            with self.assertRaisesRegex(RuntimeError, "has 16 bytes, and 20 are needed"):
                tenon.from_file(path, size=5)

    def test_a_matrix_without_an_inverse_has_an_infinite_condition(self):
        both = tenon.stack([tenon.ones(2, 2), tenon.eye(2)])
        for p, wanted in ((1, [float("inf"), 1.0]), (-1, [float("inf"), 1.0]), ("fro", [float("inf"), 2.0])):
            self.assertEqual([round(x, 5) for x in tenon.linalg.cond(both, p).tolist()], wanted)
        self.assertEqual(tenon.linalg.cond(tenon.zeros(2, 0, 0), 1).tolist(), [0.0, 0.0])

    def test_reversed_gives_the_rows_in_the_other_order(self):
        self.assertEqual([x.item() for x in reversed(tenon.arange(3))], [2, 1, 0])
        self.assertEqual(reversed(tenon.arange(4).reshape(2, 2)).tolist(), [[2, 3], [0, 1]])
        self.assertEqual(reversed(tenon.tensor(3)).item(), 3)

    def test_points_are_counted_in_boxes(self):
        x = tenon.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.5, 1.5], [3.0, 3.0]])
        made = tenon.histogramdd(x, bins=[3, 3], weight=tenon.tensor([1.0, 2, 4, 8, 1, 2]))
        self.assertEqual(made.hist.tolist(), [[0, 2, 0], [2, 0, 0], [4, 0, 10]])
        self.assertEqual([edge.tolist() for edge in made.bin_edges], [[0, 1, 2, 3]] * 2)
        self.assertEqual(tenon.histogramdd(x, (tenon.tensor([0.0, 1, 2]), tenon.tensor([0.0, 2, 3]))).hist.tolist(), [[2, 0], [2, 1]])
        self.assertEqual(tenon.histogramdd(tenon.tensor([[0.0, 0], [1, 1], [2, 2]]), [2, 2], range=[0.0, 1, 0, 1], density=True).hist.tolist(),
                         [[2, 0], [0, 2]])
        self.assertEqual(tenon.histogramdd(tenon.ones(4, 1), [2]).bin_edges[0].tolist(), [0.5, 1, 1.5])
        for args, keywords, text in (((x, [1]), {}, "The size of bins must be equal to the innermost dimension of the input."),
                                     ((x, [2, 2]), {"range": [1.0, 0, 0, 1]}, "but got min 1 max 0 for dimension 0"),
                                     ((x, [2, 2]), {"weight": tenon.ones(2)}, "input with shape [6, 2] and weight with shape [2]"),
                                     ((x.long(), [1, 1]), {}, "\"histogramdd\" not implemented for 'Long'")):
            with self.assertRaises(RuntimeError) as caught:
                tenon.histogramdd(*args, **keywords)
            self.assertIn(text, str(caught.exception))

    def test_random_zeros(self):
        tenon.manual_seed(0)
        x = tenon.ones(50, 8, 3)
        made = tenon.feature_dropout(x, 0.5, True)
        self.assertEqual({tuple(row) for row in made.reshape(-1, 3).tolist()}, {(0.0,) * 3, (2.0,) * 3})
        self.assertEqual(tenon.rrelu(tenon.tensor([-1.0, 2.0]), 0.1, 0.3, False).tolist(), [-0.20000000298023224, 2.0])
        slopes = -tenon.rrelu(-tenon.ones(1000), 0.1, 0.3, True)
        self.assertTrue(0.1 <= slopes.min().item() < slopes.max().item() <= 0.3)
        for name in ("alpha_dropout", "feature_alpha_dropout"):
            self.assertTrue(tenon.equal(getattr(tenon, name)(x, 0.5, False), x))

    def test_bags_of_one_length_may_count_their_end(self):
        weight, bags = tenon.arange(12.0).reshape(4, 3), tenon.tensor([[0, 2], [3, 1]])
        made = tenon.nn.functional.embedding_bag(bags, weight, mode="sum", include_last_offset=True)
        self.assertEqual(made.tolist(), [[6, 8, 10], [12, 14, 16]])

    def test_the_bound_of_a_cosine_takes_no_part_in_its_gradient(self):
        x = tenon.tensor([[0.3, 0.2], [2.0, 1.0]], requires_grad=True)
        y = tenon.tensor([[1.0, 0.5], [0.5, -1.0]])
        made = tenon.nn.functional.cosine_similarity(x, y, dim=1, eps=0.5)
        gradient, = tenon.autograd.grad(made.sum(), x)
        for found, wanted in zip(gradient.flatten().tolist(), (0.5981209, 0.1006048, 0.2, -0.4)):
            self.assertAlmostEqual(found, wanted, places=5)

    def test_numbers_are_their_own_transposes(self):
        self.assertEqual((tenon.tensor(2.0).mT.shape, tenon.tensor(1j).mH.item()), ((), -1j))

    def test_blocks_keep_the_dtype_that_numbers_do_not_change(self):
        made = tenon.block_diag(tenon.ones(1, 1), tenon.tensor(2.0, dtype=tenon.float64), tenon.ones(0))
        self.assertEqual((made.tolist(), made.dtype), ([[1, 0], [0, 2], [0, 0]], tenon.float32))

    def test_a_chain_of_many_matrices(self):
        turn = tenon.tensor([[0.0, -1.0], [1.0, 0.0]])
        self.assertEqual(tenon.chain_matmul(*[turn] * 100).tolist(), [[1, 0], [0, 1]])
        self.assertEqual(tenon.chain_matmul(turn, turn, out=tenon.empty(0)).tolist(), [[-1, 0], [0, -1]])

    def test_what_was_taken_away_says_what_to_use(self):
        x = tenon.ones(2, 2)
        for name in "eig", "lstsq", "solve", "symeig":
            for call in getattr(tenon, name), getattr(tenon.Tensor, name):
                with self.assertRaisesRegex(RuntimeError, r"is now removed[\s\S]*should be replaced with:\n.* = torch.linalg"):
                    call(x, x)
        with self.assertRaisesRegex(RuntimeError, "now removed.\nPlease use the `torch.linalg.matrix_rank` function instead"):
            tenon.matrix_rank(x)

    def test_data_cannot_be_deleted(self):
        x = tenon.ones(2)
        with self.assertRaisesRegex(RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!"):
            del x.data
        self.assertEqual(x.tolist(), [1, 1])

    def test_layouts_and_streams_that_are_not_here_say_so(self):
        x = tenon.tensor([1.5], dtype=tenon.float64)
        self.assertIs(x.dequantize().dtype, tenon.float32)
        for call, kind, text in ((x.to_mkldnn, RuntimeError, "MKL-DNN build is disabled"), (x.chalf, RuntimeError, "complex32"),
                                 (lambda: x.record_stream(None), RuntimeError, "unknown parameter type"),
                                 (lambda: x.to_padded_tensor(0.0), NotImplementedError, "aten::to_padded_tensor"),
                                 (lambda: x.reinforce(1), RuntimeError, "reinforce\\(\\) was removed"),
                                 (lambda: x.align_to("a"), RuntimeError, "All input dims must be named")):
            with self.assertRaisesRegex(kind, text):
                call()

    def test_memory_of_the_cpu_waits_for_no_stream(self):
        stream, x = tenon.Stream(device="cpu"), tenon.ones(3, requires_grad=True)
        y = x * 2
        for t in (x, y, y[1:], tenon.ones(2, device="meta")):
            version = t._version
            self.assertIsNone(t.record_stream(stream))
            self.assertIsNone(tenon.ops.aten.record_stream(t, s=stream))
            self.assertEqual(t._version, version)
        y.sum().backward()
        self.assertEqual(x.grad.tolist(), [2, 2, 2])
        self.assertEqual((stream, hash(stream)), (tenon.Stream("cpu"), hash(tenon.Stream("cpu"))))
        self.assertNotEqual(stream, tenon.Stream(stream_id=1, device_index=0, device_type=0))
        self.assertEqual(repr(stream), "torch.Stream device_type=cpu, device_index=-1, stream_id=0")
        self.assertTrue(stream.query())
        for wrong in (None, 3, tenon.cpu.Stream()):
            with self.assertRaisesRegex(RuntimeError, "unknown parameter type"):
                x.record_stream(wrong)
        for call, text in ((tenon.Stream, "no"), (lambda: tenon.Stream("cuda"), "cuda"), (lambda: stream.record_event(), "support events")):
            with self.assertRaisesRegex(RuntimeError, text):
                call()

    def test_testing_overrides_stand_for_every_function_that_can_be_overridden(self):
        made = tenon.overrides.get_testing_overrides()
        self.assertEqual(made[tenon.add](1, 2), -1)
        self.assertEqual(made[tenon.Tensor.add](1), -1)
        for functions in tenon.overrides.get_overridable_functions().values():
            self.assertTrue(all(f in made for f in functions if f.__hash__))


class Hooks(unittest.TestCase):
    def test_none_from_a_hook_of_a_node_is_no_gradient(self):
        x, y = tenon.ones(2, requires_grad=True), tenon.ones(2, requires_grad=True)
        z = x * y
        z.grad_fn.register_hook(lambda made, given: (None, made[1] * 2))
        z.sum().backward()
        self.assertIsNone(x.grad)
        self.assertEqual(y.grad.tolist(), [2, 2])
        z = (y * 2) * 3
        z.grad_fn.register_prehook(lambda given: (None,))
        z.sum().backward()
        self.assertEqual(y.grad.tolist(), [2, 2])

    def test_a_hook_of_a_module_returns_a_sequence(self):
        def gradient(hook, shape=(1, 2)):
            module, x = tenon.nn.Identity(), tenon.ones(shape, requires_grad=True)
            module.register_full_backward_hook(hook)
            module(x).sum().backward()
            return x.grad.tolist()
        self.assertEqual(gradient(lambda m, made, given: [made[0] * 2]), [[2, 2]])
        self.assertEqual(gradient(lambda m, made, given: made[0][None] * 2), [[2, 2]])  # whose rows are the gradients
        with self.assertRaisesRegex(RuntimeError, "hook 'hook' has changed the size of value"):
            gradient(lambda m, made, given: made[0])
        with self.assertRaisesRegex(RuntimeError, "an invalid number of grad_input, got 3, but expected 1"):
            gradient(lambda m, made, given: made[0], (3, 2))


class Refusals(unittest.TestCase):
    def test_what_is_no_truth_value_is_none(self):
        rows = [tenon.ones(2), tenon.ones(1)]
        for call, text in (
                (lambda: tenon.nn.Parameter(tenon.ones(2), 1), "argument 'require_grad' \\(position 3\\) must be bool, not int"),
                (lambda: tenon.nn.utils.rnn.pad_sequence(rows, 1), "argument 'batch_first' \\(position 2\\) must be bool, not int"),
                (lambda: tenon.nn.utils.rnn.pad_sequence(rows + [3]), "expected Tensor as element 2 in argument 0, but got int"),
                (lambda: tenon.device(2, 3), "argument 'type' \\(position 1\\) must be str, not int"),
                (lambda: tenon.finfo(None), "must be torch.dtype, not NoneType"),
                (lambda: tenon.unique([1]), "must be Tensor, not list"),
                (lambda: tenon.utils.data.RandomSampler([1], (1, 0)), "got replacement=\\(1, 0\\)"),
                (tenon.utils.data.IterableDataset, "abstract class IterableDataset")):
            with self.assertRaisesRegex(TypeError, text):
                call()
        with self.assertRaisesRegex(RuntimeError, "Device index must not be negative"):
            tenon.device(-1)


class Eigenpairs(unittest.TestCase):
    def check(self, wanted, A, B=None, **options):
        e, x = tenon.lobpcg(A, B=B, **options)
        dense = A.to_dense() if A.is_sparse else A
        same = x if B is None else B @ x
        tenon.testing.assert_close(e, tenon.tensor(wanted, dtype=e.dtype).expand_as(e))
        tenon.testing.assert_close(dense @ x, same * e.unsqueeze(-2), rtol=1e-3, atol=1e-3)
        tenon.testing.assert_close(x.mT @ same, tenon.eye(e.shape[-1], dtype=x.dtype).expand_as(x.mT @ same), rtol=0, atol=1e-4)

    def test_lobpcg_finds_the_outer_ones(self):
        steps = tenon.arange(1, 21, dtype=tenon.float64)
        turn = tenon.linalg.qr(tenon.cos(steps[:, None] * steps))[0]
        A = turn @ tenon.diag(steps) @ turn.mT
        A = (A + A.mT) / 2
        self.check([20.0, 19.0, 18.0], A, k=3)
        self.check([1.0, 2.0], A, k=2, largest=False)
        self.check([1.0, 2.0], A, k=2, largest=False, iK=tenon.linalg.inv(A))
        self.check([20.0], A)
        self.check([20.0, 19.0], A.to_sparse(), k=2, X=tenon.sin(steps[:, None] * steps[:4] * 0.7))
        self.check([20.0, 19.0], tenon.stack([A, A]), k=2)
        self.check([20.0], tenon.diag(steps) @ tenon.diag(steps), tenon.diag(steps))

    def test_lobpcg_wants_three_times_as_many_rows(self):
        with self.assertRaisesRegex(ValueError, r"^LPBPCG algorithm is not applicable when the number of A rows \(=5\) is smaller "
                                    r"than 3 x the number of requested eigenpairs \(=2\)$"):
            tenon.lobpcg(tenon.eye(5), k=2)
        with self.assertRaisesRegex(NotImplementedError, "linalg.eigh has a gradient"):
            tenon.lobpcg(tenon.eye(5).requires_grad_())


class NamesOfPackages(unittest.TestCase):
    def test_they_lead_somewhere(self):
        from tenon._jit_internal import BroadcastingList2, boolean_dispatch  # noqa: F401
        from tenon.functional import F
        self.assertIs(F, tenon.nn.functional)
        self.assertIs(tenon._C._TensorBase, tenon.Tensor)
        self.assertIs(tenon.jit.annotations.BroadcastingList2, BroadcastingList2)
        both = boolean_dispatch("pair", 1, False, lambda x, pair=False: (x, x), lambda x, pair=False: x, "here", "both")
        self.assertEqual((both(1), both(1, True), both(1, pair=True), both.__name__), (1, (1, 1), (1, 1), "both"))

    def test_an_unknown_backend_of_compile(self):
        with self.assertRaises(tenon._dynamo.exc.InvalidBackend) as caught:
            tenon.compile(lambda x: x, backend="nope")
        self.assertEqual(str(caught.exception),
                         "Invalid backend: 'nope', see `torch._dynamo.list_backends()` for available backends.")
        for name in ("inductor", "eager", "aot_eager", "cudagraphs"):
            self.assertEqual(tenon.compile(lambda x: x, backend=name)(3), 3)


class Sampled(unittest.TestCase):
    def test_a_product_where_a_csr_matrix_has_elements(self):
        at = tenon.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse_csr()
        one, two = tenon.arange(4.0).view(2, 2), tenon.arange(6.0).view(2, 3)
        made = tenon.sparse.sampled_addmm(at, one, two, beta=2.0, alpha=0.5)
        self.assertEqual((made.layout, made.values().tolist()), (tenon.sparse_csr, [3.5, 6.5, 13.0]))
        self.assertEqual(made.col_indices().tolist(), [0, 2, 1])
        for args, text in (((at, one, two.t()), "mat1 and mat2 shapes cannot be multiplied (2x2 and 3x2)"),
                           ((at, one[0], two), "Expected mat1 to be a matrix, got 1-D tensor"),
                           ((at, one.double(), two), "Expected mat1 and mat2 to have the same dtype, but got Double and Float")):
            with self.assertRaises(RuntimeError) as caught:
                tenon.sparse.sampled_addmm(*args)
            self.assertEqual(str(caught.exception), "sampled_addmm: " + text)


class Masks(unittest.TestCase):
    def test_causal_masks_know_what_they_are(self):
        from tenon.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left
        low, up = causal_lower_right(3, 4), causal_upper_left(3, 4)
        self.assertEqual(low.int().tolist(), [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])
        self.assertEqual(up.int().tolist(), [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]])
        self.assertIsInstance(low, CausalBias)
        self.assertEqual((low.variant, low.seq_len_q, low.seq_len_kv), (CausalVariant.LOWER_RIGHT, 3, 4))
        self.assertIs(type(low._materialize()), tenon.Tensor)
        self.assertTrue(repr(low).startswith("tensor([[ True,  True, False"))
        q, k = tenon.ones(1, 3, 2), tenon.arange(8.0).view(1, 4, 2)
        attend = tenon.nn.functional.scaled_dot_product_attention
        out = attend(q, k, k, low)
        self.assertIs(type(out), tenon.Tensor)
        self.assertTrue(tenon.equal(out, attend(q, k, k, low._materialize())))
        for refused in (lambda: attend(q, k, k, low, is_causal=True), lambda: attend(q, k, k, low, 0.0, True)):
            with self.assertRaisesRegex(ValueError, "CausalBias should not be used with causal=True"):
                refused()
        with self.assertRaisesRegex(AssertionError, "only supports 2D tensors"):
            causal_upper_left(3)


class Warnings(unittest.TestCase):
    def test_programs_filter_warnings_about_sources(self):
        self.assertTrue(issubclass(tenon.serialization.SourceChangeWarning, Warning))


if __name__ == "__main__":
    harness.main()
