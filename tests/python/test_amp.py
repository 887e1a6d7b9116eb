# SPDX-License-Identifier: MIT
"""autocast on the CPU, GradScaler, custom_fwd and custom_bwd. The dtypes are those that PyTorch 2.11 gives."""
import unittest
import warnings

import harness
import tenon
from tenon.amp import GradScaler, autocast, custom_bwd, custom_fwd


class Autocast(unittest.TestCase):
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
