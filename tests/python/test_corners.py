# SPDX-License-Identifier: MIT
"""Corners of operators: how results lie in memory, what a refusal leaves as it was, errors that numbers are to blame for, and
dtypes that meet. Strides, texts and classes are PyTorch 2.11's."""
import unittest
import warnings

import harness
import tenon
from tenon._subclasses.fake_tensor import FakeTensorMode


def everywhere(call, *tensors):
    """The strides of call(tensors) on the CPU, on Meta and as fake tensors."""
    found = [call(*tensors).stride()]
    found.append(call(*[tenon.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta") for t in tensors]).stride())
    mode = FakeTensorMode()
    fakes = [mode.from_tensor(t) for t in tensors]
    with mode:
        found.append(call(*fakes).stride())
    return found


class Spread(unittest.TestCase):
    def test_variances_far_from_zero_are_those_of_the_deviations(self):
        deviations = tenon.tensor([-1.0, 0.0, 1.0, 2.0]).repeat(64)
        wanted = deviations.double().var().item()
        for mean in (1e4, 1e6, 4e6):
            x = deviations + mean
            for made in (x.var(), x.var(0), x.reshape(2, 128).var((0, 1)), tenon.var_mean(x)[0], x.std() ** 2):
                self.assertAlmostEqual(made.item(), wanted, places=5)
        self.assertAlmostEqual(tenon.tensor([1e30, -1e30, 2e30]).std().item() / 1e30, 1.5275252, places=6)
        self.assertEqual(tenon.full((7,), 0.1).var().item(), 0.0)
        self.assertEqual(tenon.full((1000,), 1e7).std().item(), 0.0)


class Strides(unittest.TestCase):
    def lies(self, wanted, call, *tensors):
        self.assertEqual(everywhere(call, *tensors), [wanted] * 3)

    def test_kl_div_lies_as_its_target(self):
        target = tenon.rand(3, 2).t()
        self.lies((1, 2), lambda a, b: tenon.nn.functional.kl_div(a, b, reduction="none"), tenon.rand(2, 3), target)

    def test_put_lies_as_a_copy_of_its_input(self):
        self.lies((1, 2), lambda a, i, b: a.put(i, b), tenon.rand(3, 2).t(), tenon.tensor([4]), tenon.rand(1))
        self.lies((3, 1), lambda a, i, b: a.put(i, b), tenon.rand(3).expand(2, 3), tenon.tensor([4]), tenon.rand(1))

    def test_quantile_keeps_a_dimension_of_size_one_as_the_rest_lies(self):
        x = tenon.rand(3, 5)
        self.lies((1, 1), lambda a: a.quantile(0.5, dim=-1, keepdim=True), x)
        self.lies((5, 1), lambda a: a.quantile(0.5, dim=0, keepdim=True), x)
        self.lies((15, 5, 1), lambda a: a.quantile(0.5, dim=0, keepdim=True), tenon.rand(1, 3, 5))
        self.assertEqual(x.quantile(tenon.tensor([0.25, 0.5]), dim=0, keepdim=True).shape, (2, 1, 5))
        self.assertEqual(tenon.rand(3, 5, 2).nanquantile(tenon.tensor([0.25, 0.5]), dim=1).shape, (2, 3, 2))

    def test_quantile_of_any_dimension_is_that_of_its_lines(self):
        x = tenon.arange(24.0).reshape(2, 3, 4)
        self.assertEqual(x.quantile(0.5, dim=1).tolist(), x[:, 1].tolist())
        self.assertEqual(x.quantile(0.5, dim=0).tolist(), ((x[0] + x[1]) / 2).tolist())
        self.assertEqual(x.quantile(tenon.tensor([0.0, 1.0]), dim=1).tolist(), [x[:, 0].tolist(), x[:, 2].tolist()])

    def test_isin_of_a_number_lies_row_by_row(self):
        self.lies((3, 1), lambda a: tenon.isin(a, 2), tenon.tensor([[1, 2], [3, 4], [5, 2]]).t())

    def test_the_gradient_of_mse_loss_lies_row_by_row(self):
        self.lies((3, 1), lambda g, a, b: tenon.ops.aten.mse_loss_backward(g, a, b, 1), tenon.rand(()), tenon.rand(3, 2).t(), tenon.rand(2, 3))


    def test_a_line_convolved_with_a_weight_whose_channels_lie_last_lies_so_too(self):
        weight = tenon.rand(6, 3, 4).mT
        self.lies((18, 1, 6), tenon.conv1d, tenon.rand(2, 4, 5), weight)
        self.lies((18, 3, 1), tenon.conv1d, tenon.rand(2, 5, 4).mT, weight.contiguous())
        x = tenon.rand(2, 4, 5)
        self.assertTrue(tenon.allclose(tenon.conv1d(x, weight), tenon.conv1d(x, weight.contiguous()), rtol=1e-5))

    def test_a_weight_that_is_normalised_lies_row_by_row(self):
        self.lies((3, 1), tenon._weight_norm, tenon.rand(3, 2).t(), tenon.rand(2, 1))


class Refusals(unittest.TestCase):
    def test_an_operator_takes_by_position_what_its_schema_lets(self):
        x, aten = tenon.ones(3), tenon.ops.aten
        text = r"aten::sum\(\) takes 3 positional argument\(s\) but 4 was/were given"
        with self.assertRaisesRegex(RuntimeError, text):
            aten.sum.dim_IntList(x, [0], False, tenon.float64)
        self.assertIs(aten.sum.dim_IntList(x, [0], False, dtype=tenon.float64).dtype, tenon.float64)
        with self.assertRaisesRegex(RuntimeError, "takes 2 positional"):
            aten.add(x, x, 2)
        with self.assertRaisesRegex(RuntimeError, "Expected a value of type 'int' for argument 'dim'"):
            aten.sort(x, 1.5, True)

    def test_what_goes_by_name_goes_by_name_to_a_subclass(self):
        class Seen(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                calls.append((len(args), dict(kwargs or {})))
                return super().__torch_function__(func, types, args, kwargs or {})
        calls = []
        x = tenon.ones(3).as_subclass(Seen)
        self.assertEqual(tenon.ops.aten.add.Tensor(x, x, alpha=2).tolist(), [3.0] * 3)
        self.assertEqual(calls[0], (2, {"alpha": 2}))

    def test_rms_norm_wants_as_many_dimensions_as_it_normalises(self):
        with self.assertRaisesRegex(ValueError, "Input tensor must have at least 2 dimensions, but got 1"):
            tenon.nn.functional.rms_norm(tenon.ones(3), [3, 3])

    def test_spacings_of_gradient_are_as_many_as_its_dimensions(self):
        x = tenon.rand(3, 5)
        self.assertEqual(tenon.gradient(tenon.tensor(1.0)), ())
        with self.assertRaisesRegex(RuntimeError, "a list of length equal to 'self.dim\\(\\) = 2'"):
            tenon.gradient(x, spacing=[0.5])
        with self.assertRaisesRegex(RuntimeError, "a spacing argument of length 1 and a dim argument of length 2"):
            tenon.gradient(x, spacing=[0.5], dim=[0, 1])
        self.assertEqual(len(tenon.gradient(x, spacing=0.5, dim=[0, 1])), 2)
        with self.assertRaisesRegex(IndexError, "tensor has no dimensions"):
            tenon.gradient(tenon.tensor(1.0), dim=0)

    def test_a_fused_step_takes_no_list_that_it_has_no_use_for(self):
        lists = [[tenon.ones(2)] for _ in range(5)]
        with self.assertRaisesRegex(RuntimeError, r"Expected max_exp_avg_sqs.empty\(\) to be true"):
            tenon._fused_adam_(*lists, [tenon.tensor(1.0)], lr=0.1, beta1=0.9, beta2=0.9, weight_decay=0.0, eps=1e-8,
                               amsgrad=False, maximize=False)
        self.assertEqual(lists[0][0].tolist(), [1.0, 1.0])
    def test_rrelu_that_may_not_write_leaves_its_noise(self):
        x, noise = tenon.ones(1, 3).expand(2, 3), tenon.zeros(2, 3)
        with self.assertRaisesRegex(RuntimeError, "more than one element"):
            tenon.ops.aten.rrelu_with_noise_(x, noise, 0.1, 0.3, True)
        self.assertEqual(noise.tolist(), [[0.0] * 3] * 2)
        out, noise = tenon.zeros(2, 3), tenon.zeros(1, 3).expand(2, 3)
        with self.assertRaisesRegex(RuntimeError, "more than one element"):
            tenon.ops.aten.rrelu_with_noise.out(-tenon.ones(2, 3), noise, 0.1, 0.3, True, out=out)
        self.assertEqual(out.tolist(), [[0.0] * 3] * 2)


class Strides(unittest.TestCase):
    def test_a_transposed_convolution_to_one_place_takes_the_middle_of_the_kernel(self):
        F = tenon.nn.functional
        for dtype in (tenon.float32, tenon.float64):
            for bias in (None, tenon.ones(1, dtype=dtype)):
                kernel, more = tenon.tensor([[[1.0, 2.0, 3.0]]], dtype=dtype), 0 if bias is None else 1
                made = F.conv_transpose1d(tenon.ones(2, 1, 1, dtype=dtype), kernel, bias, stride=2, padding=1)
                self.assertEqual(made.tolist(), [[[2.0 + more]]] * 2)
            x = tenon.ones(2, 1, 1, 1, dtype=dtype, requires_grad=True)
            F.conv2d(x, tenon.arange(9.0, dtype=dtype).reshape(1, 1, 3, 3), stride=2, padding=1).sum().backward()
            self.assertEqual(x.grad.reshape(-1).tolist(), [4.0, 4.0])


class Warnings(unittest.TestCase):
    def told(self, call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return [str(w.message).split(" This behavior")[0] for w in caught]

    def test_an_out_with_elements_that_is_resized_is_told_of(self):
        x, i = tenon.ones(2, 3), tenon.zeros(5, dtype=tenon.int64)
        meta = x.to("meta")
        calls = {
            "[2, 3]": [lambda o: tenon.add(x, x, out=o), lambda o: tenon.softmax(x, 0, out=o), lambda o: tenon.tril(x, out=o),
                       lambda o: tenon.sort(x, out=(o, i.resize_(2, 3)))],
            "[2, 2]": [lambda o: tenon.mm(x, x.t(), out=o), lambda o: tenon.matmul(x, x.t(), out=o)],
            "[1, 2, 2]": [lambda o: tenon.matmul(x[None], x.t(), out=o), lambda o: tenon.matmul(x[None], x[None].mT, out=o)],
            "[1, 2]": [lambda o: tenon.matmul(x[None], x[0], out=o)],
            "[3]": [lambda o: tenon.sum(x, 0, out=o)],
            "[4, 3]": [lambda o: tenon.cat([x, x], out=o)],
        }
        for shape, some in calls.items():
            for call in some:
                text = f"An output with one or more elements was resized since it had shape [5], which does not match the required output shape {shape}."
                self.assertEqual(self.told(lambda: call(tenon.zeros(5))), [text])
                self.assertEqual(self.told(lambda: call(tenon.zeros(0))), [])
        self.assertEqual(len(self.told(lambda: tenon.add(meta, meta, out=tenon.zeros(5, device="meta")))), 1)
        self.assertEqual(self.told(lambda: tenon.zeros(3, out=tenon.zeros(5))), [])
        self.assertIn("will be resized to a tensor of shape (3,)", self.told(lambda: tenon.arange(3, out=tenon.zeros(5)))[0])

    def test_a_warning_that_is_an_error_leaves_out_as_it_was(self):
        x = tenon.ones(2, 3)
        for call in (lambda o: tenon.add(x, x, out=o), lambda o: tenon.mm(x, x.t(), out=o), lambda o: tenon.sum(x, 0, out=o),
                     lambda o: tenon.max(x, 0, out=(o, tenon.zeros(4, dtype=tenon.int64))), lambda o: tenon.arange(3, out=o),
                     lambda o: tenon.linalg.inv(tenon.eye(2), out=o)):
            out = tenon.full((5,), 7.0)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertRaises(UserWarning, call, out)
            self.assertEqual(out.tolist(), [7.0] * 5)


class OfNumbers(unittest.TestCase):
    def test_a_matrix_that_numbers_make_hopeless_has_a_class_of_its_own(self):
        none, nan = tenon.zeros(2, 2), tenon.full((2, 2), float("nan"))
        for text, call in (("linalg.inv: ", lambda: tenon.linalg.inv(none)), ("linalg.cholesky: ", lambda: tenon.linalg.cholesky(none)),
                           ("cholesky: ", lambda: tenon.cholesky(none)), ("linalg.svd: ", lambda: tenon.linalg.svd(nan)),
                           ("torch.linalg.solve: ", lambda: tenon.linalg.solve(none, none)),
                           ("linalg.inv: ", lambda: tenon.linalg.matrix_power(none, -1)),
                           ("linalg.inv_ex: ", lambda: tenon.linalg.inv_ex(none, check_errors=True)),
                           ("torch.linalg.solve_ex: ", lambda: tenon.linalg.solve_ex(none, none, check_errors=True)),
                           ("linalg.cholesky_ex: ", lambda: tenon.linalg.cholesky_ex(none, check_errors=True))):
            with self.assertRaises(tenon.linalg.LinAlgError) as caught:
                call()
            self.assertTrue(str(caught.exception).startswith(text), caught.exception)
        self.assertTrue(issubclass(tenon.linalg.LinAlgError, RuntimeError))

    def test_a_factorisation_that_stops_at_a_zero_is_a_runtime_error(self):
        for name in ("lu_factor", "lu_factor_ex"):
            with self.assertRaisesRegex(RuntimeError, f"torch.linalg.{name}: .*U.1,1. is zero") as caught:
                getattr(tenon.linalg, name)(tenon.zeros(2, 2), **({"check_errors": True} if name.endswith("ex") else {}))
            self.assertIs(type(caught.exception), RuntimeError)
        self.assertEqual(tenon.lu(tenon.zeros(2, 2))[0].tolist(), [[0.0, 0.0], [0.0, 0.0]])

    def test_wrong_arguments_are_not_of_that_class(self):
        for call in (lambda: tenon.linalg.inv(tenon.zeros(2, 3)), lambda: tenon.linalg.cholesky(tenon.zeros(2)),
                     lambda: tenon.linalg.solve(tenon.zeros(2, 2), tenon.zeros(3))):
            with self.assertRaises(RuntimeError) as caught:
                call()
            self.assertIs(type(caught.exception), RuntimeError)


class Meeting(unittest.TestCase):
    def test_powers_between_complex_ends_are_complex(self):
        made = tenon.logspace(1 + 1j, tenon.tensor(3 + 1j), 3)
        self.assertIs(made.dtype, tenon.complex64)
        wanted = [-6.682015 + 7.439803j, -66.82016 + 74.39803j, -668.2017 + 743.9804j]
        self.assertTrue(tenon.allclose(made, tenon.tensor(wanted), rtol=1e-5))
        with self.assertRaisesRegex(RuntimeError, r"torch.logspace\(\): inferred dtype c10::complex<float> can't be safely cast"):
            tenon.logspace(1j, 3, 3, dtype=tenon.float64)

    def test_unsigned_integers_and_a_complex_number(self):
        for dtype in (tenon.uint16, tenon.uint32, tenon.uint64):
            x = tenon.tensor([1], dtype=dtype)
            self.assertIs(tenon.result_type(x, 1j), tenon.complex64)
            self.assertIs((x + 1j).dtype, tenon.complex64)
            self.assertIs((x + tenon.tensor(1j, dtype=tenon.complex128)).dtype, tenon.complex128)
            self.assertIs(tenon.result_type(x[0], tenon.tensor([1j])), tenon.complex64)
            with self.assertRaisesRegex(RuntimeError, "Promotion for uint16, uint32, uint64 types is not supported"):
                tenon.result_type(x, tenon.tensor([1j]))
            with self.assertRaisesRegex(RuntimeError, "Promotion for uint16, uint32, uint64 types is not supported"):
                x + tenon.tensor([True])

    def test_a_bound_that_is_not_a_number_leaves_none(self):
        nan = float("nan")
        for n in (2, 100):
            x = tenon.ones(n)
            for made in (x.clamp(min=nan), x.clamp(max=nan), x.clamp(nan, 2), x.clamp_min(nan), x.clone().clamp_(max=nan)):
                self.assertTrue(made.isnan().all())


if __name__ == "__main__":
    harness.main()
