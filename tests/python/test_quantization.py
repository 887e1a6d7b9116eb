# SPDX-License-Identifier: MIT
"""Quantization without quantized tensors: observers, fake quantization, linear layers of 8-bit weights. Numbers and texts are
PyTorch 2.11's."""

import copy
import io
import unittest
import warnings

import harness
import tenon
from tenon import nn
from tenon.ao import quantization as Q


WANTED = [[0.42282211780548096, -2.7957379817962646, 2.432455539703369],
          [1.7124794721603394, -0.5487305521965027, -1.8054466247558594]]
WANTED_FULL = [[4.280354976654053, -3.666640520095825, -0.2823501527309418]]


def layer():
    made = nn.Linear(4, 3)
    with tenon.no_grad():
        made.weight.copy_(tenon.sin(tenon.arange(12.0)).view(3, 4))
        made.bias.copy_(tenon.tensor([0.5, -1.0, 0.0]))
    return made


class Dynamic(unittest.TestCase):
    def test_a_layer_gives_what_pytorchs_gives(self):
        made = tenon.quantization.quantize_dynamic(nn.Sequential(layer()), {nn.Linear}, dtype=tenon.qint8)
        self.assertEqual(repr(made[0]).replace("tenon.", "torch."), "DynamicQuantizedLinear(in_features=4, out_features=3, "
                         "dtype=torch.qint8, qscheme=torch.per_tensor_affine)")
        self.assertEqual(made[0].weight_values.dtype, tenon.int8)
        self.assertIs(type(made[0]), tenon.nn.quantized.dynamic.Linear)
        tenon.testing.assert_close(made(tenon.cos(tenon.arange(8.0)).view(2, 4)), tenon.tensor(WANTED))
        tenon.testing.assert_close(made(tenon.full((1, 4), 2.0)), tenon.tensor(WANTED_FULL))
        self.assertEqual(made(tenon.ones(2, 5, 4)).shape, (2, 5, 3))
        self.assertEqual(made(tenon.ones(0, 4)).shape, (0, 3))
        self.assertEqual(made(tenon.zeros(1, 4)).tolist(), [[0.5, -1.0, 0.0]])
        with self.assertRaisesRegex(RuntimeError, "^expected scalar type Float but found Double$"):
            made(tenon.zeros(1, 4).double())

    def test_which_layers(self):
        def kinds(model):
            return [type(m).__name__ if not isinstance(m, nn.Linear) else "plain" for m in (model[0], model[1][0])]

        model = nn.Sequential(layer(), nn.Sequential(nn.Linear(3, 2, bias=False)))
        self.assertEqual(kinds(Q.quantize_dynamic(model)), ["Linear", "Linear"])
        self.assertEqual(kinds(model), ["plain", "plain"])
        self.assertEqual(kinds(Q.quantize_dynamic(model, {"0"})), ["Linear", "plain"])
        self.assertEqual(kinds(Q.quantize_dynamic(model, {"1.0": Q.default_dynamic_qconfig})), ["plain", "Linear"])
        self.assertEqual(kinds(Q.quantize_dynamic(model, {"1"})), ["plain", "Linear"])
        same = copy.deepcopy(model)
        self.assertIs(Q.quantize_dynamic(same, inplace=True), same)
        self.assertEqual(kinds(same), ["Linear", "Linear"])

    def test_halves_and_files(self):
        model = nn.Sequential(layer())
        halves = Q.quantize_dynamic(model, {nn.Linear}, dtype=tenon.float16)
        tenon.testing.assert_close(halves(tenon.ones(1, 4)), model(tenon.ones(1, 4)).detach(), rtol=1e-3, atol=1e-3)
        whole, file = Q.quantize_dynamic(model), io.BytesIO()
        tenon.save(whole.state_dict(), file)
        file.seek(0)
        other = Q.quantize_dynamic(nn.Sequential(nn.Linear(4, 3)))
        other.load_state_dict(tenon.load(file))
        x = tenon.arange(4.0).view(1, 4)
        self.assertTrue(tenon.equal(other(x), whole(x)))
        self.assertTrue(tenon.equal(copy.deepcopy(whole)(x), whole(x)))

    def test_what_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, "Unknown dtype specified for quantize_dynamic: "):
            Q.quantize_dynamic(nn.Sequential(layer()), {nn.Linear}, dtype=tenon.float64)
        with self.assertRaisesRegex(NotImplementedError, "LSTM '0' cannot be quantized in Tenon"):
            Q.quantize_dynamic(nn.Sequential(nn.LSTM(2, 2)), {nn.LSTM, nn.Linear})
        with self.assertRaisesRegex(ValueError, "QConfig received observer instance"):
            Q.QConfig(activation=Q.MinMaxObserver(), weight=Q.MinMaxObserver)


class Observers(unittest.TestCase):
    def test_scales_and_zero_points(self):
        first, second = tenon.arange(12.0).view(3, 4) - 3, tenon.arange(12.0).view(3, 4) * 2 - 1
        for make, scale, zero in (
                (Q.MinMaxObserver, [24 / 255], [32]), (Q.default_weight_observer, [21 / 127.5], [0]),
                (Q.MinMaxObserver.with_args(qscheme=tenon.per_tensor_symmetric), [21 / 127.5], [128]),
                (Q.MinMaxObserver.with_args(reduce_range=True), [24 / 127], [16]),
                (Q.MinMaxObserver.with_args(quant_min=0, quant_max=15), [1.6], [2]),
                (Q.MovingAverageMinMaxObserver.with_args(averaging_constant=0.1), [12.1 / 255], [59]),
                (Q.PerChannelMinMaxObserver.with_args(ch_axis=1), [18 / 255, 19 / 255, 20 / 255, 21 / 255], [42, 27, 13, 0]),
                (Q.default_per_channel_weight_observer, [5 / 127.5, 13 / 127.5, 21 / 127.5], [0, 0, 0]),
                (Q.MovingAveragePerChannelMinMaxObserver, [3.03 / 255, 4.09 / 255, 8.13 / 255], [251, 0, 0])):
            observer = make()
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                self.assertEqual([t.tolist() for t in observer.calculate_qparams()], [[1.0], [0]])
            self.assertIn("must run observer before calling calculate_qparams", str(told[0].message))
            self.assertIs(observer(first), first)
            observer(second)
            made = observer.calculate_qparams()
            tenon.testing.assert_close(made[0], tenon.tensor(scale))
            self.assertEqual(made[1].tolist(), zero)
            self.assertEqual(list(observer.state_dict()), ["eps", "min_val", "max_val"])

    def test_they_show_what_they_saw(self):
        observer = Q.MinMaxObserver()
        self.assertEqual(repr(observer), "MinMaxObserver(min_val=inf, max_val=-inf)")
        observer(tenon.tensor([-3.0, 21.0]))
        self.assertEqual(repr(observer), "MinMaxObserver(min_val=-3.0, max_val=21.0)")
        observer.reset_min_max_vals()
        self.assertEqual(repr(observer), "MinMaxObserver(min_val=inf, max_val=-inf)")
        with self.assertRaisesRegex(NotImplementedError, "^MinMaxObserver's qscheme only support"):
            Q.MinMaxObserver(qscheme=tenon.per_channel_affine)
        with self.assertRaisesRegex(AssertionError, "^Default Observer only works for"):
            Q.MinMaxObserver(dtype=tenon.float32)

    def test_fake_quantization_rounds_and_passes_gradients_inside(self):
        fake = Q.FakeQuantize(observer=Q.MovingAverageMinMaxObserver, quant_min=0, quant_max=255, averaging_constant=0.5)
        tenon.testing.assert_close(fake(tenon.arange(6.0) - 2), tenon.arange(6.0) - 2)
        self.assertEqual(fake.zero_point.tolist(), [102])
        fake.apply(Q.disable_observer)
        tenon.testing.assert_close(fake(tenon.arange(6.0) * 9), tenon.tensor([0.0, 3, 3, 3, 3, 3]))
        x = (tenon.arange(6.0) * 50 - 100).requires_grad_()
        fake(x).sum().backward()
        self.assertEqual(x.grad.tolist(), [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        fake.apply(Q.disable_fake_quant)
        self.assertEqual(fake(tenon.tensor([0.33])).tolist(), tenon.tensor([0.33]).tolist())


if __name__ == "__main__":
    harness.main()
