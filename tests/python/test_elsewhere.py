# SPDX-License-Identifier: MIT
"""Modules that scripts import for one name, and names for optimizers that are written elsewhere. What they answer is what
PyTorch 2.11 answers on a machine without a GPU, unless a test says otherwise."""

import contextlib
import importlib
import sys
import types
import unittest
from unittest import mock

import harness
import tenon
import tenon.as_torch


class Contractions(unittest.TestCase):
    """The order of einsum, which the package opt_einsum finds where it is installed: here one stands in for it."""

    EQUATION = "ab,bc,cd->ad"

    def setUp(self):
        self.switch = importlib.import_module("tenon.backends.opt_einsum")
        self.operands = [tenon.arange(6.).reshape(2, 3), tenon.arange(12.).reshape(3, 4), tenon.arange(8.).reshape(4, 2)]
        self.wanted = [[324., 422.], [1008., 1304.]]  # numpy.linalg.multi_dot

    def standing_in(self, asked):
        def contract_path(equation, *operands, optimize):
            asked.append((equation, [tuple(x.shape) for x in operands], optimize))
            return [(1, 2), (0, 1)], "what a person reads"
        package = types.SimpleNamespace(contract_path=contract_path)
        stack = contextlib.ExitStack()
        for name, value in (("_available", True), ("enabled", True), ("strategy", "auto")):
            stack.enter_context(mock.patch.object(self.switch, name, value))
        stack.enter_context(mock.patch.dict(sys.modules, {"opt_einsum": package}))
        return stack

    def test_einsum_goes_the_way_that_the_package_finds(self):
        asked = []
        with self.standing_in(asked):
            self.assertEqual(tenon.einsum(self.EQUATION, *self.operands).tolist(), self.wanted)
            with self.switch.flags(strategy="greedy"):
                self.assertEqual(tenon.einsum(self.operands[0], [0, 1], self.operands[1], [1, 2], self.operands[2], [2, 3]).tolist(),
                                 self.wanted)
            with self.switch.flags(enabled=False):
                self.assertEqual(tenon.einsum(self.EQUATION, self.operands).tolist(), self.wanted)
            tenon.einsum("ab,bc", *self.operands[:2])
        shapes = [(2, 3), (3, 4), (4, 2)]
        self.assertEqual(asked, [(self.EQUATION, shapes, "auto"), ("AB,BC,CD", shapes, "greedy")])

    def test_switches_say_what_cannot_be_set(self):
        with self.standing_in([]):
            self.assertEqual(self.switch.set_flags(), (True, "auto"))
            with self.assertRaisesRegex(ValueError, r"one of the following: \[auto, greedy, optimal\] but is best"):
                self.switch.set_flags(True, "best")
            with self.switch.flags(enabled=False):
                with self.assertRaisesRegex(ValueError, "^opt_einsum is not enabled, so setting a `strategy` to auto"):
                    self.switch.set_flags(_strategy="auto")
        with mock.patch.object(self.switch, "_available", False):
            with self.assertRaisesRegex(ValueError, "^opt_einsum is not available, so setting `enabled` to True"):
                self.switch.set_flags(True)
            self.assertEqual(tenon.einsum(self.EQUATION, *self.operands).tolist(), self.wanted)


class Optimizers(unittest.TestCase):
    def test_an_optimizer_from_elsewhere_finds_what_it_imports(self):
        from tenon.optim.optimizer import Optimizer, ParamsT, _get_value, _use_grad_for_differentiable

        class Signs(Optimizer):
            def __init__(self, params: ParamsT, lr=0.5, differentiable=False):
                super().__init__(params, {"lr": lr, "differentiable": differentiable})

            @_use_grad_for_differentiable
            def step(self, closure=None):
                self.recorded = tenon.is_grad_enabled()
                for group in self.param_groups:
                    for p in group["params"]:
                        state = self.state[p]
                        state["step"] = state.get("step", tenon.tensor(0.0)) + 1
                        p.add_(p.grad.sign(), alpha=-group["lr"] / _get_value(state["step"]))

        p = tenon.tensor([1.0, -2.0, 3.0], requires_grad=True)
        optimizer = Signs([p])
        for _ in range(2):
            optimizer.zero_grad()
            (p ** 2).sum().backward()
            optimizer.step()
        self.assertEqual(p.tolist(), [0.25, -1.25, 2.25])
        self.assertFalse(optimizer.recorded)
        self.assertTrue(tenon.is_grad_enabled())
        q = tenon.tensor([1.0], requires_grad=True).clone()
        q.grad = tenon.ones(1)
        differentiable = Signs([p], differentiable=True)
        differentiable.param_groups[0]["params"] = [q]
        differentiable.step()
        self.assertTrue(differentiable.recorded)

    def test_forms_of_a_step(self):
        from tenon.optim import optimizer as o
        ones = [tenon.ones(1)]
        self.assertEqual(o._default_to_fused_or_foreach(ones, False, True), (True, False))
        self.assertEqual(o._default_to_fused_or_foreach(ones, False, False), (False, False))
        self.assertEqual(o._default_to_fused_or_foreach(ones, True, True), (False, False))
        self.assertEqual(o._default_to_fused_or_foreach([tenon.ones(1, dtype=tenon.int64)], False, True), (False, False))
        self.assertEqual(o._get_capturable_supported_devices(), ["cuda", "xpu", "hpu", "privateuseone", "xla"])
        self.assertEqual(o._get_capturable_supported_devices(False), ["cuda", "xpu", "hpu", "privateuseone"])
        self.assertEqual((o._get_scalar_dtype(), o._get_scalar_dtype(True)), (tenon.float32, tenon.float32))
        self.assertEqual((o._get_value(3), o._get_value(tenon.tensor(3.0)), o._stack_if_compiling(3)), (3, 3.0, 3))
        self.assertEqual((o._to_scalar(tenon.tensor([3.0])).shape, o._to_scalar(2.0)), ((), 2.0))
        with self.assertRaisesRegex(RuntimeError, "requires all the params to be floating point Tensors of supported devices: "
                                    r"\['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', 'privateuseone'\] but .*int64 and cpu"):
            o._device_dtype_check_for_fused(tenon.ones(1, dtype=tenon.int64))
        params, states = [tenon.ones(2, dtype=tenon.complex64), tenon.ones(3)], [tenon.zeros(2, dtype=tenon.complex64), 7]
        o._view_as_real(params, states)
        self.assertEqual((params[0].tolist(), params[1].tolist()), ([[1, 0], [1, 0]], [1, 1, 1]))
        self.assertEqual((states[0].shape, states[1]), ((2, 2), 7))
        with self.assertRaises(AttributeError):
            o._no_such_name


    def test_a_count_of_steps_is_a_tensor(self):
        # A3C scripts from before PyTorch 1.12 put a number there, and share it between processes.
        for name in ("Adam", "AdamW", "RMSprop", "Adagrad", "Adamax", "NAdam", "RAdam", "Adadelta", "Rprop"):
            p = tenon.nn.Parameter(tenon.ones(2))
            optimizer = getattr(tenon.optim, name)([p])
            p.grad = tenon.ones(2)
            optimizer.step()
            optimizer.state[p]["step"] = 1
            before = p.tolist()
            with self.subTest(name), self.assertRaisesRegex(
                    RuntimeError, "API has changed, `state_steps` argument must contain a list of singleton tensors"):
                optimizer.step()
            self.assertEqual(p.tolist(), before)


class Modules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tenon.as_torch.install()

    def test_modules_are_there_by_import_and_by_attribute(self):
        for name in ("_VF", "_logging", "_tensor", "cuda.nccl", "cuda.profiler", "cuda.sparse", "mtia", "signal.windows", "utils._triton",
                     "utils.backcompat", "utils.cpp_extension", "_dynamo.exc", "jit._trace", "nn.parallel._functions",
                     "onnx.operators", "_functorch.config", "_functorch.eager_transforms", "distributed.nn.functional",
                     "distributed.fsdp.api", "distributed.fsdp.sharded_grad_scaler", "quantization"):
            with self.subTest(name):
                found = importlib.import_module("torch." + name)
                at = importlib.import_module("torch")
                for word in name.split("."):
                    at = getattr(at, word)
                self.assertIs(at, found)

    def test_switches_of_old_programs_are_kept(self):
        from tenon.utils import backcompat
        self.assertEqual((backcompat.broadcast_warning.enabled, backcompat.keepdim_warning.enabled), (False, False))
        backcompat.broadcast_warning.enabled = True
        self.assertTrue(backcompat.broadcast_warning.enabled)
        backcompat.broadcast_warning.enabled = False

    def test_cpp_extensions_are_refused_with_their_name(self):
        # PyTorch compiles them.
        from tenon.utils import cpp_extension
        for build in (lambda: cpp_extension.load("fused_norm", ["norm.cpp"]),
                      lambda: cpp_extension.load_inline(name="fused_norm", cpp_sources=""),
                      lambda: cpp_extension.CUDAExtension("fused_norm", ["norm.cu"])):
            with self.assertRaisesRegex(RuntimeError, "Tenon cannot build 'fused_norm'"):
                build()
        self.assertIsNone(cpp_extension.CUDA_HOME)
        self.assertEqual(cpp_extension.include_paths(), [])

    def test_devices_that_are_not_here(self):
        self.assertEqual((tenon.mtia.is_available(), tenon.mtia.device_count()), (False, 0))
        self.assertFalse(tenon.utils._triton.has_triton())
        with self.assertRaises(AssertionError):
            tenon.cuda.profiler.start()
        with self.assertRaises(AssertionError):
            with tenon.cuda.profiler.profile():
                pass
        from tenon.backends import cuda
        x = tenon.ones(1, 1, 2, 2)
        params = cuda.SDPAParams(x, x, x, None, 0.0, False, False)
        self.assertEqual((params.dropout, params.query is x), (0.0, True))
        self.assertFalse(cuda.can_use_flash_attention(params) or cuda.can_use_efficient_attention(params)
                         or cuda.can_use_cudnn_attention(params))

    def test_what_is_sent_to_cuda_names_a_cuda_device(self):
        # Scripts pass the device that they chose; PyTorch says these texts without a GPU.
        for device in ("cpu", "meta", tenon.device("cpu")):
            for moved in (tenon.ones(2), tenon.nn.Linear(1, 1)):
                with self.subTest(device), self.assertRaisesRegex(RuntimeError, "Invalid device, must be cuda device"):
                    moved.cuda(device)
        for device in (None, 0, "cuda", "cuda:0"):
            with self.subTest(device), self.assertRaisesRegex(RuntimeError, "Found no NVIDIA driver"):
                tenon.ones(2).cuda(device)

    def test_what_waits_for_cuda_is_not_called(self):
        called = []
        self.assertIsNone(tenon.cuda._lazy_call(lambda: called.append(1), seed=True))
        self.assertEqual(called, [])

    def test_markers_for_quantization_under_their_older_name(self):
        from tenon.quantization import DeQuantStub, QuantStub
        self.assertIs(QuantStub, tenon.ao.quantization.QuantStub)
        model = tenon.nn.Sequential(QuantStub(), tenon.nn.ReLU(), DeQuantStub())
        self.assertEqual(model(tenon.tensor([-1.0, 2.0])).tolist(), [0, 2])

    def test_policies_choose_modules(self):
        from tenon.distributed.fsdp.wrap import ModuleWrapPolicy, _or_policy, lambda_auto_wrap_policy
        layer, choose = tenon.nn.Linear(1, 1), lambda m: isinstance(m, tenon.nn.ReLU)
        self.assertEqual([ModuleWrapPolicy([c])(layer, recurse, 3) for c in (tenon.nn.Linear, tenon.nn.ReLU) for recurse in (False, True)],
                         [True, True, False, True])
        self.assertEqual([lambda_auto_wrap_policy(layer, recurse, 3, choose) for recurse in (False, True)], [False, True])
        self.assertTrue(_or_policy(layer, False, 3, [lambda **k: False, lambda **k: k["module"] is layer]))

    def test_operators_by_their_own_names(self):
        from tenon import _VF
        self.assertEqual([p.tolist() for p in _VF.split(tenon.arange(5), 2)], [[0, 1], [2, 3], [4]])
        self.assertEqual(_VF.norm(tenon.tensor([3.0, 4.0]), 2).item(), 5.0)
        with self.assertRaises(AttributeError):
            _VF.no_such_operator

    def test_parts_of_a_tensor_have_gradients(self):
        from tenon.nn.parallel._functions import Broadcast, Gather, ReduceAddCoalesced, Scatter
        x = tenon.arange(6.0, requires_grad=True)
        a, b = Scatter.apply([-1, -1], None, 0, x)
        self.assertEqual([part.tolist() for part in Scatter.apply([-1, -1], [4, 2], 0, x)], [[0, 1, 2, 3], [4, 5]])
        whole = Gather.apply(-1, 0, a * 2, b)
        self.assertEqual(whole.tolist(), [0, 2, 4, 3, 4, 5])
        whole.sum().backward()
        self.assertEqual(x.grad.tolist(), [2, 2, 2, 1, 1, 1])
        self.assertEqual(Gather.apply(-1, 0, tenon.tensor(1.0), tenon.tensor(2.0)).tolist(), [1, 2])
        self.assertEqual([t.tolist() for t in Broadcast.apply([-1, -1], tenon.ones(1), tenon.zeros(1))], [[1], [0], [1], [0]])
        sums = ReduceAddCoalesced.apply(0, 2, *(tenon.full((1,), n) for n in (1.0, 10.0, 2.0, 20.0, 3.0, 30.0)))
        self.assertEqual([t.tolist() for t in sums], [[6.0], [60.0]])

    def test_names_that_packages_take_from_the_insides_of_files_and_loaders(self):
        from tenon.serialization import location_tag, normalize_storage_type
        from tenon.utils.data._utils.fetch import _BaseDatasetFetcher, _MapDatasetFetcher
        self.assertIs(normalize_storage_type(type("FloatStorage", (), {})), tenon.FloatStorage)
        self.assertEqual((location_tag(tenon.ones(1).untyped_storage()), location_tag(tenon.ones(1, device="meta").untyped_storage())),
                         ("cpu", "meta"))
        self.assertTrue(issubclass(_MapDatasetFetcher, _BaseDatasetFetcher))

    def test_collectives_of_one_process(self):
        from tenon.distributed.nn.functional import all_gather, all_to_all, gather, reduce_scatter, scatter
        x = tenon.ones(2, requires_grad=True)
        self.assertEqual([len(all_gather(x)), len(gather(x)), len(all_to_all([x], [x]))], [1, 1, 1])
        (all_gather(x)[0] + reduce_scatter(x, [x]) + scatter([x])).sum().backward()
        self.assertEqual(x.grad.tolist(), [3, 3])

    def test_the_older_name_of_a_rank(self):
        from tenon.distributed.distributed_c10d import _get_global_rank
        self.assertEqual(_get_global_rank(None, 0), 0)

    def test_a_scaler_for_shards(self):
        from tenon.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
        scaler = ShardedGradScaler("cpu", init_scale=4.0)
        self.assertEqual((scaler.get_scale(), scaler.scale(tenon.tensor(2.0)).item()), (4.0, 8.0))
        self.assertIsNone(scaler.process_group)

    def test_shapes_as_tensors(self):
        from tenon.onnx.operators import reshape_from_tensor_shape, shape_as_tensor
        shape = shape_as_tensor(tenon.ones(2, 3))
        self.assertEqual((shape.tolist(), shape.dtype), ([2, 3], tenon.int64))
        self.assertEqual(reshape_from_tensor_shape(tenon.arange(6), shape).tolist(), [[0, 1, 2], [3, 4, 5]])

    def test_the_largest_dimension_is_the_classs(self):
        engine = tenon.quasirandom.SobolEngine
        self.assertEqual((engine.MAXDIM, engine.MAXBIT), (engine(1).MAXDIM, 30))
        with self.assertRaises(ValueError):
            engine(engine.MAXDIM + 1)

    def test_dtypes_of_two_numbers(self):
        for a, b, wanted in ((1.0, 2j, tenon.complex64), (1, 2, tenon.int64), (True, 1.0, tenon.float32), (1, 1.0, tenon.float32),
                             (True, False, tenon.bool), (True, 2, tenon.int64)):
            self.assertIs(tenon.result_type(a, b), wanted)


if __name__ == "__main__":
    harness.main()
