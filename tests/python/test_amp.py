# SPDX-License-Identifier: MIT
"""autocast on the CPU, GradScaler, custom_fwd and custom_bwd. The dtypes are those that PyTorch 2.11 gives."""
import threading
import unittest
import warnings

import harness
import tenon
from tenon.amp import GradScaler, autocast, custom_bwd, custom_fwd


class Autocast(unittest.TestCase):
    def test_one_region_is_entered_again_and_by_threads(self):
        region = autocast("cpu", dtype=tenon.bfloat16)
        with region:
            with region:
                self.assertTrue(tenon.is_autocast_enabled("cpu"))
            self.assertTrue(tenon.is_autocast_enabled("cpu"))
        self.assertFalse(tenon.is_autocast_enabled("cpu"))
        found = []

        def other():
            with region:
                found.append(tenon.is_autocast_enabled("cpu"))
            found.append(tenon.is_autocast_enabled("cpu"))

        with region:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        self.assertEqual(found + [tenon.is_autocast_enabled("cpu")], [True, False, False])

    def test_names_for_one_device_are_older_ones(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            tenon.set_autocast_cpu_enabled(False)
            tenon.set_autocast_gpu_dtype(tenon.float16)
            self.assertEqual((tenon.is_autocast_cpu_enabled(), tenon.get_autocast_cpu_dtype(), tenon.get_autocast_gpu_dtype()),
                             (False, tenon.bfloat16, tenon.float16))
            tenon.set_autocast_cpu_dtype(tenon.bfloat16)
        text = "torch.%s is deprecated. Please use torch.%s instead."
        self.assertEqual([str(w.message) for w in told], [
            text % ("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)"),
            text % ("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)"),
            text % ("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')"),
            text % ("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')"),
            text % ("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')"),
            text % ("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")])
        self.assertEqual({(w.filename, w.category) for w in told}, {(__file__, DeprecationWarning)})

    def test_ctrl_c_leaves_no_region_on(self):
        region = autocast("cpu", dtype=tenon.bfloat16)

        def call():
            with region, autocast("cpu", enabled=False):
                pass

        for at in harness.interruptions(call):
            self.assertFalse(tenon.is_autocast_enabled("cpu"), at)

    def test_dtypes(self):
        x, h, d = tenon.ones(4, 4), tenon.ones(4, 4, dtype=tenon.bfloat16), tenon.ones(4, 4, dtype=tenon.float64)
        image, kernel = tenon.ones(1, 1, 4, 4), tenon.ones(1, 1, 3, 3)
        loss = tenon._C._nn.mse_loss
        with autocast("cpu"):
            self.assertTrue(tenon.is_autocast_enabled("cpu"))
            self.assertEqual((x @ x).dtype, tenon.bfloat16)
            self.assertEqual(tenon.mm(x, h).dtype, tenon.bfloat16)
            self.assertEqual(tenon.addmm(x, x, x).dtype, tenon.bfloat16)
            self.assertEqual(tenon.conv2d(image, kernel).dtype, tenon.bfloat16)
            self.assertEqual((d @ d).dtype, tenon.float64)
            self.assertEqual((x + x).dtype, tenon.float32)
            self.assertEqual((h + h).dtype, tenon.bfloat16)
            self.assertEqual(x.softmax(0).dtype, tenon.float32)
            self.assertEqual(loss(h, h).dtype, tenon.float32)
            self.assertEqual(h.prod().dtype, tenon.float32)
            self.assertEqual(tenon.cat([x, h]).dtype, tenon.float32)
            self.assertEqual(tenon.stack([h, h]).dtype, tenon.bfloat16)
            with autocast("cpu", enabled=False):
                self.assertEqual((x @ x).dtype, tenon.float32)
            with autocast("cpu", dtype=tenon.float16):
                self.assertEqual((x @ x).dtype, tenon.float16)
            self.assertEqual((x @ x).dtype, tenon.bfloat16)
        self.assertEqual((x @ x).dtype, tenon.float32)
        self.assertFalse(tenon.is_autocast_enabled("cpu"))

    def test_a_device_may_stand_with_its_number(self):  # scripts pass str(device)
        x = tenon.ones(4, 4)
        with autocast("cpu:0") as region:
            self.assertEqual(((x @ x).dtype, region.device), (tenon.bfloat16, "cpu:0"))
        self.assertEqual(autocast("cpu:0")(lambda: (x @ x).dtype)(), tenon.bfloat16)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # there is no CUDA here
            with autocast("cuda:1"):
                self.assertEqual((x @ x).dtype, tenon.float32)
        self.assertTrue(tenon.amp.is_autocast_available("cuda:0"))
        with self.assertRaisesRegex(RuntimeError, "^Expected one of cpu, cuda, .* device type at start of device string: gpu$"):
            autocast("gpu")

    def recurrent(self, kind, dtype=None, **options):
        """A layer of 3 and 4 whose numbers a line of code tells, and what a region of bfloat16 makes of it."""
        layer = kind(3, 4, **options)
        for i, p in enumerate(layer.parameters()):
            p.data = tenon.linspace(-1, 1, p.numel()).reshape(p.shape).roll(i).to(dtype or tenon.float32)
        return layer

    def recurrent_dtypes(self, layer, x):
        with autocast("cpu", dtype=tenon.bfloat16):
            y, h = layer(x)
        y = y if isinstance(y, tenon.Tensor) else y.data
        return [y.dtype] + [s.dtype for s in (h if isinstance(h, tuple) else (h,))]

    def test_dtypes_of_recurrent_layers(self):
        from tenon import nn
        wide, low, x = tenon.float32, tenon.bfloat16, tenon.ones(2, 5, 3)
        packed = nn.utils.rnn.pack_padded_sequence(x, [2, 2, 1, 1, 1])
        for options in ({}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True}, {"bias": False}):
            self.assertEqual(self.recurrent_dtypes(self.recurrent(nn.LSTM, **options), x), [low, low, low])
            self.assertEqual(self.recurrent_dtypes(self.recurrent(nn.GRU, **options), x), [wide, wide])
        self.assertEqual(self.recurrent_dtypes(self.recurrent(nn.LSTM), packed), [wide, wide, wide])
        self.assertEqual(self.recurrent_dtypes(self.recurrent(nn.GRU), packed), [wide, wide])
        self.assertEqual(self.recurrent_dtypes(self.recurrent(nn.LSTM, proj_size=2), x), [low, low, wide])
        self.assertEqual(self.recurrent_dtypes(self.recurrent(nn.LSTM), x[:, 0]), [low, low, low])
        self.assertEqual(self.recurrent_dtypes(self.recurrent(nn.LSTM, tenon.float64), x.double()), [tenon.float64] * 3)
        with autocast("cpu", dtype=low):
            self.assertEqual(nn.GRUCell(3, 4)(x[0]).dtype, wide)

    def test_values_of_recurrent_layers(self):
        """The numbers are PyTorch 2.11's for these layers and this input; bfloat16 has 8 bits."""
        from tenon import nn
        for kind, values, gradient in (
                (nn.LSTM, [-0.1875, -0.18359375, -0.1494140625, -0.05908203125, -0.1982421875, -0.0517578125, 0.0390625,
                           0.008056640625], [0.0654296875, 0.091796875, 0.1181640625, 0.18359375, 0.2265625, 0.271484375]),
                (nn.GRU, [-0.4448089599609375, -0.41819000244140625, -0.41127777099609375, -0.49005889892578125,
                          0.21766406297683716, 0.288666307926178, 0.42028069496154785, 0.32918667793273926],
                 [1.9140625, 2.15625, 2.40625, 0.83203125, 0.83984375, 0.8515625])):
            layer = self.recurrent(kind)
            x = tenon.linspace(-1, 1, 6).reshape(2, 1, 3).requires_grad_()
            with autocast("cpu", dtype=tenon.bfloat16):
                y = layer(x)[0]
            tenon.testing.assert_close(y.flatten().float(), tenon.tensor(values), rtol=2e-2, atol=2e-3)
            y.float().sum().backward()
            tenon.testing.assert_close(x.grad.flatten(), tenon.tensor(gradient), rtol=2e-2, atol=2e-3)
            self.assertEqual({p.grad.dtype for p in layer.parameters()}, {tenon.float32})

    def test_as_a_decorator(self):
        @autocast("cpu", dtype=tenon.bfloat16)
        def f(x):
            return x @ x

        self.assertEqual(f(tenon.ones(2, 2)).dtype, tenon.bfloat16)
        self.assertEqual(f.__name__, "f")

    def test_it_ends_with_an_exception(self):
        with self.assertRaises(KeyError):
            with autocast("cpu"):
                raise KeyError
        self.assertFalse(tenon.is_autocast_enabled("cpu"))

    def test_training_gradients_are_float32(self):
        w = tenon.full((4, 4), 0.5, requires_grad=True)
        x = tenon.ones(2, 4)
        with tenon.autocast(device_type="cpu", dtype=tenon.bfloat16):
            y = x @ w
            z = y @ w
        self.assertEqual(z.dtype, tenon.bfloat16)
        z.float().sum().backward()
        self.assertEqual(w.grad.dtype, tenon.float32)
        self.assertEqual(w.grad.tolist(), [[8.0] * 4] * 4)

    def test_a_cast_made_without_recording_loses_no_gradient(self):
        w = tenon.ones(2, 2, requires_grad=True)
        with autocast("cpu"):
            with tenon.no_grad():
                tenon.ones(2, 2) @ w
            y = tenon.ones(2, 2) @ w
        self.assertTrue(y.requires_grad)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, "User specified an unsupported autocast device_type 'meta'"):
            autocast("meta")
        with self.assertRaisesRegex(ValueError, "Expected `device_type` of type `str`, got"):
            autocast(3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with autocast("cpu", dtype=tenon.float64):
                self.assertEqual((tenon.ones(2, 2) @ tenon.ones(2, 2)).dtype, tenon.float32)
        self.assertIn("In CPU autocast, but the target dtype is not supported. Disabling autocast.", str(caught[0].message))

    def test_cuda_names_without_a_gpu(self):
        if tenon.cuda.is_available():
            self.skipTest("there is a GPU")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with autocast("cuda"):
                self.assertEqual((tenon.ones(2, 2) @ tenon.ones(2, 2)).dtype, tenon.float32)
            self.assertIn("CUDA is not available or torch_xla is imported. Disabling autocast.", str(caught[0].message))
            scaler = GradScaler()
            self.assertIn("CUDA is not available.  Disabling.", str(caught[1].message))
        self.assertFalse(scaler.is_enabled())
        self.assertEqual((scaler.get_scale(), scaler.state_dict()), (1.0, {}))

    def test_functions(self):
        seen = []

        class Mul(tenon.autograd.Function):
            @staticmethod
            @custom_fwd(device_type="cpu", cast_inputs=tenon.float32)
            def forward(ctx, a, b):
                seen.append((a.dtype, tenon.is_autocast_enabled("cpu")))
                ctx.save_for_backward(a, b)
                return a @ b

            @staticmethod
            @custom_bwd(device_type="cpu")
            def backward(ctx, g):
                seen.append(tenon.is_autocast_enabled("cpu"))
                a, b = ctx.saved_tensors
                return g @ b.t(), a.t() @ g

        class Plain(Mul):
            @staticmethod
            @custom_fwd(device_type="cpu")
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                return a @ b

        a = tenon.ones(2, 2, dtype=tenon.bfloat16, requires_grad=True)
        with autocast("cpu"):
            y = Mul.apply(a, a)
        self.assertEqual(y.dtype, tenon.float32)
        y.sum().backward()
        b = tenon.ones(2, 2, requires_grad=True)
        with autocast("cpu"):
            y = Plain.apply(b, b)
        self.assertEqual(y.dtype, tenon.bfloat16)
        y.float().sum().backward()
        self.assertEqual(seen, [(tenon.float32, False), False, True])


class Scaler(unittest.TestCase):
    def make(self):
        w = tenon.tensor([1.0, 2.0], requires_grad=True)
        return w, tenon.optim.SGD([w], lr=1.0), GradScaler("cpu", init_scale=8.0, growth_interval=2)

    def test_steps_are_those_without_scaling(self):
        w, optimizer, scaler = self.make()
        for _ in range(2):
            optimizer.zero_grad()
            loss = (w * w).sum() * 0.125
            scaled = scaler.scale(loss)
            self.assertEqual(scaled.item(), loss.item() * 8.0)
            scaled.backward()
            scaler.step(optimizer)
            scaler.update()
        self.assertEqual(w.tolist(), [0.5625, 1.125])
        self.assertEqual(scaler.get_scale(), 16.0)

    def test_a_step_that_is_not_finite_is_skipped(self):
        w, optimizer, scaler = self.make()
        scaler.scale((w * float("inf")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        self.assertEqual(w.tolist(), [1.0, 2.0])
        self.assertEqual(scaler.get_scale(), 4.0)

    def test_unscale_and_its_order(self):
        w, optimizer, scaler = self.make()
        with self.assertRaisesRegex(AssertionError, "Attempted step but _scale is None."):
            scaler.step(optimizer)
        scaler.scale(w.sum()).backward()
        self.assertEqual(w.grad.tolist(), [8.0, 8.0])
        scaler.unscale_(optimizer)
        self.assertEqual(w.grad.tolist(), [1.0, 1.0])
        with self.assertRaisesRegex(RuntimeError, r"unscale_\(\) has already been called on this optimizer since the last update\(\)."):
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        with self.assertRaisesRegex(RuntimeError, r"step\(\) has already been called since the last update\(\)."):
            scaler.step(optimizer)
        with self.assertRaisesRegex(RuntimeError, r"unscale_\(\) is being called after step\(\)."):
            scaler.unscale_(optimizer)
        scaler.update()

    def test_state_comes_back(self):
        _, _, scaler = self.make()
        state = scaler.state_dict()
        self.assertEqual(state, {"scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2,
                                 "_growth_tracker": 0})
        other = GradScaler("cpu")
        other.load_state_dict(state)
        self.assertEqual(other.state_dict(), state)

    def test_disabled_it_does_nothing(self):
        w, optimizer, _ = self.make()
        scaler = GradScaler("cpu", enabled=False)
        loss = w.sum()
        self.assertIs(scaler.scale(loss), loss)
        loss.backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        self.assertEqual(w.tolist(), [0.0, 1.0])


if __name__ == "__main__":
    harness.main()
