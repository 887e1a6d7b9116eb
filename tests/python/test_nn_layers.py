# SPDX-License-Identifier: MIT
"""Layers and functions of `nn`: values, gradients, states, texts and errors are those that golden/make_nn.py took from PyTorch."""

import json
import math
import os
import unittest

import harness
import nn_cases
import numpy as np

import tenon

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def load():
    with open(os.path.join(GOLDEN, "nn.json")) as f:
        told = json.load(f)
    flat = np.load(os.path.join(GOLDEN, "nn.npz"))["values"]
    arrays, at = {}, 0
    for key, shape in told["arrays"].items():
        n = math.prod(shape)
        arrays.setdefault(int(key.split("/")[0]), {})[key.split("/", 1)[1]] = flat[at : at + n].reshape(shape)
        at += n
    return told["cases"], arrays


class Layers(unittest.TestCase):
    maxDiff = None

    def check(self, case, text, arrays):
        got = nn_cases.run(tenon, tenon.nn, *case)
        self.assertEqual(got.get("error"), text.get("error"))
        for key in ("repr", "state"):
            self.assertEqual(got.get(key), text.get(key), key)
        self.assertEqual({k for k, v in got.items() if isinstance(v, np.ndarray)}, set(arrays))
        for key, wanted in arrays.items():
            np.testing.assert_allclose(got[key], wanted, rtol=2e-4, atol=2e-5, err_msg=key)


def add_tests():
    texts, arrays = load()
    assert [t["case"] for t in texts] == [c[0] for c in nn_cases.CASES], "run golden/make_nn.py again"
    for i, (case, text) in enumerate(zip(nn_cases.CASES, texts)):

        def test(self, case=case, text=text, arrays=arrays.get(i, {})):
            self.check(case, text, arrays)

        name = "".join(c if c.isalnum() else "_" for c in case[0])[:60]
        setattr(Layers, f"test_{i:04d}_{name}", test)


add_tests()
class Grids(unittest.TestCase):
    """The transform that changes nothing puts the grid on the elements: which two a place lies between, and with it the
    gradient, is decided by rounding. The numbers are PyTorch 2.11's."""

    def test_steps_are_rounded_as_torchs(self):
        self.assertEqual([x.hex() for x in tenon.linspace(-1, 1, 28)[9:13].tolist()], [
            "-0x1.5555540000000p-2", "-0x1.097b420000000p-2", "-0x1.7b425e0000000p-3", "-0x1.c71c700000000p-4"])
        self.assertEqual([x.hex() for x in tenon.linspace(1e-4, 0.02, 1000)[[2, 500, 777]].tolist()],
                         ["0x1.2543f00000000p-13", "0x1.49a50e0000000p-7", "0x1.fe73de0000000p-7"])

    def test_places_on_elements_are_on_torchs_side(self):
        up = list(range(28))
        expected = {(10, False): up[1:9], (10, True): [0, 1, 3, 4, 5, 5, 7, 8],
                    (28, False): [1, 1, 3, 4, 5, 5] + up[7:15] + [14] + up[16:27],
                    (28, True): [1, 2, 2, 4, 5, 5] + up[7:18] + [17] + up[19:27]}
        for (n, align), left in expected.items():
            theta = tenon.tensor([1, 0, 0, 0, 1, 0.0]).view(1, 2, 3)
            grid = tenon.nn.functional.affine_grid(theta, (1, 1, n, n), align_corners=align).requires_grad_()
            x = (tenon.arange(n, dtype=tenon.float32) ** 2).view(1, 1, 1, n).expand(1, 1, n, n).contiguous()
            tenon.nn.functional.grid_sample(x, grid, align_corners=align).sum().backward()
            slope = (n - 1) / 2 if align else n / 2  # of x², between k and k + 1: (2 k + 1) slope
            found = ((grid.grad[0, n // 2, 1:-1, 0] / slope - 1) / 2).round().int().tolist()
            self.assertEqual(found, left, (n, align))


class Empty(unittest.TestCase):
    def test_cells_without_hidden_units(self):
        for kind in (tenon.nn.GRUCell, tenon.nn.LSTMCell, tenon.nn.RNNCell):
            out = kind(10, 0)(tenon.randn(3, 10))
            self.assertEqual((out[0] if isinstance(out, tuple) else out).shape, (3, 0))

    def test_attention_over_no_batch(self):
        for batch_first, size in ((False, (10, 0, 8)), (True, (0, 10, 8)), (False, (0, 10, 8))):
            x = tenon.randn(size, requires_grad=True)
            for need_weights in (True, False):
                layer = tenon.nn.MultiheadAttention(8, 2, batch_first=batch_first)
                if size[0] == 0 and not batch_first and need_weights:
                    continue
                out, _ = layer(x, x, x, need_weights=need_weights)
                self.assertEqual(out.shape, size)
        self.assertEqual(tenon.nn.TransformerEncoderLayer(8, 2, 16)(tenon.randn(10, 0, 8)).shape, (10, 0, 8))

    def test_sparse_rows_of_an_embedding_without_columns(self):
        for rows, ids in ((0, []), (10, [[2, 2]])):
            layer = tenon.nn.Embedding(rows, 0, sparse=True)
            layer(tenon.tensor(ids, dtype=tenon.int64)).sum().backward()
            self.assertEqual(layer.weight.grad.shape, (rows, 0))
            self.assertEqual(layer.weight.grad._nnz(), 0)


class Recurrent(unittest.TestCase):
    def test_halves_are_about_as_close_as_rounding_lets_them(self):
        """Beside the same in float64: at most so many times what rounding the exact outputs takes away."""
        for kind, most in (("LSTM", 2.0), ("GRU", 3.0), ("RNN", 3.0)):
            for dtype in (tenon.bfloat16, tenon.float16):
                tenon.manual_seed(7)
                layer = getattr(tenon.nn, kind)(32, 64, 2, bidirectional=True).to(dtype)
                exact = getattr(tenon.nn, kind)(32, 64, 2, bidirectional=True).double()
                exact.load_state_dict({k: v.double() for k, v in layer.state_dict().items()})
                x = tenon.randn(24, 8, 32).to(dtype)
                with tenon.no_grad():
                    (got, state), (wanted, _) = layer(x), exact(x.double())
                self.assertEqual({got.dtype} | {s.dtype for s in (state if kind == "LSTM" else [state])}, {dtype})
                error, rounding = (((y.double() - wanted) ** 2).mean().sqrt().item() for y in (got, wanted.to(dtype)))
                self.assertLess(error, most * rounding, (kind, dtype))

    def test_a_cell_keeps_the_dtypes_of_its_states(self):
        cell = tenon.nn.LSTMCell(3, 4).bfloat16()
        h, c = cell(tenon.randn(2, 3).bfloat16())
        self.assertEqual((h.dtype, c.dtype), (tenon.bfloat16, tenon.bfloat16))
        (h.sum() + c.sum()).backward()
        self.assertEqual(cell.weight_hh.grad.dtype, tenon.bfloat16)


class Rows(unittest.TestCase):
    def test_a_sparse_gradient_does_not_follow_the_indices(self):
        layer = tenon.nn.Embedding(10, 3, sparse=True)
        ids = tenon.tensor([7, 1, 3])
        layer(ids).sum().backward()
        ids[0] = 8
        self.assertEqual(layer.weight.grad._indices().tolist(), [[7, 1, 3]])
        layer(ids).sum().backward()
        self.assertEqual(layer.weight.grad._indices().tolist(), [[7, 1, 3, 8, 1, 3]])

    def test_weights_of_samples_have_the_dtype_of_the_table(self):
        with self.assertRaisesRegex(RuntimeError, "to have the same type as tensor .* torch.FloatTensor does not equal torch.DoubleTensor"):
            tenon.nn.functional.embedding_bag(tenon.tensor([[1, 2]]), tenon.ones(4, 3), mode="sum",
                                              per_sample_weights=tenon.ones(1, 2, dtype=tenon.float64))

    def test_a_factor_of_pixel_shuffle_whose_square_overflows(self):
        with self.assertRaisesRegex(ValueError, "overflowed: upscale_factor=545460846592"):
            tenon.pixel_shuffle(tenon.randn(2, 16, 9, 3), 545460846592)


class ComplexWeights(unittest.TestCase):
    def test_orthogonal(self):
        for shape in ((4, 4), (5, 3), (3, 5)):
            for kind in ("matrix_exp", "cayley"):
                layer = tenon.nn.Linear(*shape, dtype=tenon.complex64)
                tenon.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind)
                w = layer.weight if layer.weight.size(0) >= layer.weight.size(1) else layer.weight.mT
                tenon.testing.assert_close(w.mH @ w, tenon.eye(w.size(1), dtype=w.dtype), atol=1e-5, rtol=0)
        made = tenon.nn.init.orthogonal_(tenon.empty(5, 3, dtype=tenon.complex64))
        tenon.testing.assert_close(made.mH @ made, tenon.eye(3, dtype=made.dtype), atol=1e-5, rtol=0)

    def test_spectral_norm(self):
        layer = tenon.nn.Linear(2, 2, dtype=tenon.complex64)
        with tenon.no_grad():
            diagonal = tenon.tensor([3 + 4j, 1 - 1j])
            layer.weight.copy_(tenon.diag(diagonal))
            tenon.nn.utils.parametrizations.spectral_norm(layer)
            tenon.testing.assert_close(layer.weight.detach(), tenon.diag(diagonal / 5), atol=1e-5, rtol=0)


class Holding(unittest.TestCase):
    """What a module holds, and how it is put there."""

    def setUp(self):
        self.addCleanup(tenon.__future__.set_swap_module_params_on_conversion, False)

    def test_a_row_of_numbers_is_no_scalar(self):
        module = tenon.nn.Module()
        module.t = tenon.nn.Parameter(tenon.tensor(0.0))
        with self.assertRaisesRegex(RuntimeError, "size mismatch for t: .*Size\\(\\[3\\]\\) from checkpoint"):
            module.load_state_dict({"t": tenon.ones(3)})
        module.load_state_dict({"t": tenon.tensor([2.0])})
        self.assertEqual(module.t.item(), 2.0)

    def test_loading_leaves_no_cycle(self):
        import gc
        module = tenon.nn.Sequential(tenon.nn.Linear(2, 2), tenon.nn.Linear(2, 2))
        state = {k: v.clone() for k, v in module.state_dict().items()}
        gc.collect()
        gc.disable()
        try:
            module.load_state_dict(state)
            self.assertEqual(gc.collect(), 0)
        finally:
            gc.enable()

    def test_swapping(self):
        tenon.__future__.set_swap_module_params_on_conversion(True)
        module = tenon.nn.Linear(2, 3)
        weight = module.weight
        module(tenon.ones(1, 2)).sum().backward()
        module.double()
        self.assertIs(module.weight, weight)
        self.assertEqual((weight.dtype, weight.grad.dtype), (tenon.float64, tenon.float64))
        module.to("meta")
        self.assertIs(module.weight, weight)
        self.assertEqual(weight.device.type, "meta")
        module.load_state_dict({"weight": tenon.ones(3, 2), "bias": tenon.zeros(3)}, assign=True)
        self.assertIs(module.weight, weight)
        self.assertEqual(weight.tolist(), [[1.0, 1.0]] * 3)
        self.assertIsInstance(weight, tenon.nn.Parameter)

        class Keeps(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func is tenon.Tensor.module_load:
                    return args[1]
                return super().__torch_function__(func, types, args, kwargs)

        with self.assertRaisesRegex(RuntimeError, "module_load returned one of self or other"):
            module.load_state_dict({"weight": Keeps(tenon.ones(3, 2)), "bias": tenon.zeros(3)})

    def test_buffers(self):
        module = tenon.nn.Module()
        module.taken = 5
        with self.assertRaisesRegex(KeyError, "already exists"):
            module.taken = tenon.nn.Buffer(tenon.ones(2))

        class Like:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                raise NotImplementedError

        module.register_buffer("b", Like())
        module.b = other = Like()
        self.assertIs(module.b, other)

        class Older(tenon.nn.Module):
            def register_buffer(self, name, value):
                super().register_buffer(name, value, True)

        older = Older()
        older.b = tenon.nn.Buffer(tenon.ones(2))
        self.assertEqual(list(older.state_dict()), ["b"])
        with self.assertRaisesRegex(RuntimeError, "without the persistent argument is not allowed"):
            older.c = tenon.nn.Buffer(tenon.ones(2), persistent=False)

    def test_arguments_of_to(self):
        module = tenon.nn.Linear(1, 1)
        with self.assertRaisesRegex(RuntimeError, "does not accept copy argument"):
            module.to("cpu", copy=True)
        for args, kwargs, text in (((["cpu"],), {}, "got \\(list\\)"), (("cpu",), {"no": 1}, "got \\(str, no=int\\)"),
                                   (("cpu", False, False), {}, "got \\(str, bool, bool\\)"), (("cpu",), {"device": "cpu"}, "got")):
            with self.assertRaisesRegex(TypeError, text):
                module.to(*args, **kwargs)
        self.assertIs(module.to(tenon.ones(1), non_blocking=True), module)
        self.assertIs(module.to("cpu", tenon.float64).weight.dtype, tenon.float64)
        self.assertIs(module.to(None, tenon.float32).weight.dtype, tenon.float32)

    def test_text_of_parameters_on_meta(self):
        held = tenon.nn.ParameterList([tenon.nn.Parameter(tenon.ones(1, device="meta"))])
        self.assertEqual(str(held), "ParameterList(  (0): Parameter containing: [%s of size 1])" % tenon.float32)


class Encoders(unittest.TestCase):
    def test_padded_places_are_computed_where_there_is_a_mask_too(self):
        layer = tenon.nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True)
        encoder = tenon.nn.TransformerEncoder(layer, 2).eval()
        x = tenon.arange(80.0).reshape(2, 5, 8).sin()
        padding = tenon.tensor([[False] * 5, [False] * 3 + [True] * 2])
        mask = tenon.nn.Transformer.generate_square_subsequent_mask(5)
        for given, zero in ((None, True), (mask, False)):
            with tenon.no_grad():
                out = encoder(x, mask=given, src_key_padding_mask=padding.float().masked_fill(padding, float("-inf")))
            self.assertEqual(bool((out[1, 3:] == 0).all()), zero)


class Calls(unittest.TestCase):
    """functional_call with names that the module does not have, and with what is no tensor."""

    def test_a_new_name_is_an_attribute_for_the_call(self):
        class Adds(tenon.nn.Module):
            def forward(self, x):
                return x + self.extra

        module = Adds()
        self.assertEqual(tenon.func.functional_call(module, {"extra": tenon.tensor(2.0)}, tenon.tensor(1.0)).item(), 3.0)
        self.assertFalse(hasattr(module, "extra"))

    def test_a_tensor_that_the_call_replaced_is_given_back(self):
        class Counts(tenon.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("n", tenon.tensor([0.0]))

            def forward(self):
                self.n = self.n + 1

        given = {"n": tenon.tensor([2.0])}
        module = Counts()
        tenon.func.functional_call(module, given, ())
        self.assertEqual((given["n"].item(), module.n.item()), (3.0, 0.0))

    def test_refusals(self):
        module, x = tenon.nn.Linear(1, 1), tenon.ones(1, 1)
        before = module.weight
        for given, error, text in (({"weight": x, "foo.bar": x}, AttributeError, "Linear has no attribute `foo`"),
                                   ({"weight.bar": x}, TypeError, "submodule `weight`"),
                                   ({"weight": 3}, TypeError, "3 is not an instance of torch.Tensor"),
                                   ({"in_features": x}, TypeError, "attribute `in_features`: 1 is not an instance")):
            with self.assertRaisesRegex(error, text):
                tenon.func.functional_call(module, given, x)
            self.assertIs(module.weight, before)


if __name__ == "__main__":
    harness.main()
