# SPDX-License-Identifier: MIT
"""What scripts touch beside tensors: answers without a GPU, one process, eager compilation, small functions, logs."""

import glob
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections import namedtuple
from unittest import mock

import numpy

import harness
import tenon
from tenon.utils import _pytree as pytree
from tenon.utils.tensorboard import SummaryWriter, record


class WithoutGpu(unittest.TestCase):
    def test_a_star_gives_what_is_loaded_later_too(self):
        names = {}
        exec("from tenon import *\nfrom tenon.nn import *", names)
        for name in ("einsum", "meshgrid", "norm", "save", "load", "LongTensor", "finfo", "vmap", "tensor", "float32", "compile",
                     "functional", "init", "utils", "Linear", "Parameter"):
            self.assertIn(name, names)
        self.assertEqual({"slice", "copy", "index", "repeat", "operator", "fft_fft", "linalg_norm"} & set(names), set())

    def test_nothing_is_there_and_seeds_are_taken(self):
        self.assertFalse(tenon.cuda.is_available() or tenon.backends.mps.is_available() or tenon.xpu.is_available())
        self.assertEqual((tenon.cuda.device_count(), tenon.cuda.memory_allocated(), tenon.version.cuda), (0, 0, None))
        self.assertIsNone(tenon.accelerator.current_accelerator())
        tenon.cuda.manual_seed_all(3)
        tenon.cuda.empty_cache()
        for call in (tenon.cuda.current_device, tenon.cuda.synchronize, tenon.cuda.get_device_properties):
            with self.assertRaisesRegex(AssertionError, "Torch not compiled with CUDA enabled"):
                call()

    def test_switches_are_kept(self):
        tenon.backends.cudnn.benchmark = True
        with tenon.backends.cudnn.flags(benchmark=False):
            self.assertFalse(tenon.backends.cudnn.benchmark)
        self.assertTrue(tenon.backends.cudnn.benchmark)
        tenon.backends.cuda.matmul.allow_tf32 = True
        self.assertEqual(tenon.get_float32_matmul_precision(), "high")
        tenon.set_float32_matmul_precision("highest")
        self.assertFalse(tenon.backends.cuda.matmul.allow_tf32)
        tenon.use_deterministic_algorithms(True, warn_only=True)
        self.assertEqual(tenon.get_deterministic_debug_mode(), 1)
        tenon.use_deterministic_algorithms(False)

    def test_deterministic_algorithms_fill_what_nobody_wrote(self):
        largest = {tenon.int64: 2 ** 63 - 1, tenon.int8: 127, tenon.uint8: 255, tenon.uint16: 65535, tenon.bool: True}
        x = tenon.ones(2)
        makers = {
            "empty": lambda: tenon.empty(300), "empty_like": lambda: tenon.empty_like(x), "new_empty": lambda: x.new_empty(2),
            "empty_strided": lambda: tenon.empty_strided((2, 2), (1, 2)), "Tensor": lambda: tenon.Tensor(3),
            "empty_permuted": lambda: tenon.empty_permuted((2, 2), (1, 0)), "FloatTensor": lambda: tenon.FloatTensor(2),
            "new_empty_strided": lambda: x.new_empty_strided((2,), (1,)),
            "channels_last": lambda: tenon.empty(1, 2, 2, 2, memory_format=tenon.channels_last)}
        fill = tenon.utils.deterministic
        try:
            tenon.use_deterministic_algorithms(True)
            for name, make in makers.items():
                with self.subTest(name):
                    self.assertTrue(make().isnan().all())
            for dtype in (tenon.float16, tenon.bfloat16, tenon.float64, tenon.float8_e4m3fn, tenon.float8_e5m2):
                with self.subTest(dtype):
                    self.assertTrue(tenon.empty(3, dtype=dtype).float().isnan().all())
            for dtype, number in largest.items():
                with self.subTest(dtype):
                    self.assertEqual(tenon.empty(2, dtype=dtype).tolist(), [number, number])
            z = tenon.empty(2, dtype=tenon.complex64)
            self.assertTrue(z.real.isnan().all() and (z.imag == 0).all())
            self.assertEqual(tenon.ones(2).resize_(5).nan_to_num(7.0).tolist(), [1.0, 1.0, 7.0, 7.0, 7.0])
            self.assertEqual(tenon.ones(5).resize_(2).resize_(5).tolist(), [1.0] * 5)
            self.assertEqual(tenon.zeros(3).tolist() + tenon.full_like(x, 2.0).tolist(), [0.0] * 3 + [2.0] * 2)
            self.assertEqual(tenon.empty(2, device="meta").shape, (2,))
            fill.fill_uninitialized_memory = False
            kept = tenon.full((64,), 3.0)
            del kept
            self.assertFalse(tenon.empty(64).isnan().all())
            with self.assertRaisesRegex(RuntimeError, "^expected a bool, but got int$"):
                fill.fill_uninitialized_memory = 3
        finally:
            fill.fill_uninitialized_memory = True
            tenon.use_deterministic_algorithms(False)
        kept = tenon.full((64,), 3.0)
        del kept
        self.assertFalse(tenon.empty(64).isnan().all())

    def test_one_process_is_a_world(self):
        d = tenon.distributed
        self.assertTrue(d.is_available() and not d.is_initialized())
        with self.assertRaisesRegex(ValueError, "Default process group has not been initialized"):
            d.get_rank()
        with self.assertRaisesRegex(RuntimeError, "a world of 2 processes is not supported"):
            d.init_process_group("gloo", world_size=2, rank=0)
        with mock.patch.dict(os.environ):
            for name in ("RANK", "WORLD_SIZE"):
                os.environ.pop(name, None)
            for name in ("RANK", "WORLD_SIZE"):
                with self.assertRaisesRegex(ValueError, "^Error initializing torch.distributed using env:// rendezvous: "
                                            "environment variable %s expected, but not set$" % name):
                    d.init_process_group("gloo")
                os.environ[name] = {"RANK": "0", "WORLD_SIZE": "2"}[name]
            with self.assertRaisesRegex(RuntimeError, "a world of 2 processes is not supported"):
                d.init_process_group()
            with self.assertRaisesRegex(ValueError, "using tcp:// rendezvous: world size parameter missing"):
                d.init_process_group("gloo", init_method="tcp://localhost:29500", rank=0)
        d.init_process_group("gloo", init_method="tcp://localhost:29500?rank=0&world_size=1")
        d.destroy_process_group()
        d.init_process_group("nccl", rank=0, world_size=1)
        self.addCleanup(lambda: d.is_initialized() and d.destroy_process_group())
        x, out = tenon.ones(2), [tenon.zeros(2)]
        d.all_reduce(x)
        d.all_gather(out, x)
        d.barrier()
        self.assertEqual((d.get_rank(), d.get_world_size(), d.get_backend(), x.tolist(), out[0].tolist()),
                         (0, 1, "nccl", [1.0, 1.0], [1.0, 1.0]))
        self.assertTrue(d.all_reduce(x, async_op=True).wait())
        with self.assertRaisesRegex(TypeError, "Expected parameter `tensor` of type torch.Tensor\n             but got <class 'int'>"):
            d.all_reduce(3)
        self.assertTrue(d.is_gloo_available())
        self.assertEqual((repr(d.ReduceOp.MAX), str(d.ReduceOp.MAX), d.ReduceOp.RedOpType.MAX is d.ReduceOp.MAX),
                         ("<RedOpType.MAX: 4>", "RedOpType.MAX", True))
        d.destroy_process_group()
        self.assertFalse(d.is_initialized())


    def test_an_object_is_told_its_module(self):
        def f():
            pass
        tenon.utils.set_module(f, "a.b")
        self.assertEqual(f.__module__, "a.b")
        with self.assertRaisesRegex(TypeError, "The mod argument should be a string"):
            tenon.utils.set_module(f, 3)

    def test_older_names_of_mixed_precision_warn_and_are_off(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with tenon.cuda.amp.autocast():
                self.assertEqual(tenon.mm(tenon.ones(2, 2), tenon.ones(2, 2)).dtype, tenon.float32)
            self.assertFalse(tenon.cuda.amp.GradScaler().is_enabled())
        self.assertEqual([str(w.message)[:40] for w in seen if w.category is FutureWarning],
                         ["`torch.cuda.amp.autocast(args...)` is de", "`torch.cuda.amp.GradScaler(args...)` is "])


class Compiled(unittest.TestCase):
    def test_functions_and_modules_run_as_they_are(self):
        @tenon.compile(fullgraph=True)
        def f(x):
            return x + 1

        self.assertEqual(f(tenon.ones(1)).item(), 2.0)
        model = tenon.compile(tenon.nn.Linear(2, 3), mode="max-autotune")
        self.assertEqual(list(model.state_dict()), ["_orig_mod.weight", "_orig_mod.bias"])
        self.assertEqual((model.in_features, model(tenon.ones(1, 2)).shape), (2, (1, 3)))
        model.eval()
        self.assertFalse(model._orig_mod.training)
        with self.assertRaisesRegex(RuntimeError, "Unrecognized mode=bad"):
            tenon.compile(f, mode="bad")
        self.assertIs(tenon.jit.script(f), f)
        self.assertFalse(tenon.jit.is_scripting() or tenon.compiler.is_compiling())
        with tenon._dynamo.config.patch(cache_size_limit=99):
            self.assertEqual(tenon._dynamo.config.cache_size_limit, 99)
        self.assertEqual(tenon._dynamo.config.cache_size_limit, 8)


class Functions(unittest.TestCase):
    def test_values_are_numpys(self):
        a = numpy.arange(12, dtype=numpy.float64).reshape(3, 4) - 5
        x = tenon.from_numpy(a.copy())

        def same(found, wanted):
            numpy.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)

        same(tenon.norm(x), numpy.linalg.norm(a))
        same(x.norm(dim=1), numpy.linalg.norm(a, axis=1))
        same(x.norm(p=1, dim=0, keepdim=True), numpy.abs(a).sum(0, keepdims=True))
        same(x.norm(float("inf")), numpy.abs(a).max())
        same(tenon.einsum("ij,kj->ik", x, x), a @ a.T)
        same(tenon.einsum(x, [0, 1], x, [2, 1], [0, 2]), a @ a.T)
        same(tenon.tensordot(x, x, dims=([1], [1])), a @ a.T)
        same(tenon.tensordot(x, x.t(), dims=1), a @ a.T)
        same(tenon.block_diag(x, x), numpy.block([[a, numpy.zeros((3, 4))], [numpy.zeros((3, 4)), a]]))
        for found, wanted in zip(tenon.meshgrid(x[0], x[1], indexing="xy"), numpy.meshgrid(a[0], a[1])):
            same(found, wanted)
        for found, wanted in zip(x.nonzero(as_tuple=True), a.nonzero()):
            same(found, wanted)
        same(tenon.linalg.norm(x, 1), numpy.linalg.norm(a, 1))
        same(tenon.linalg.norm(x, float("inf")), numpy.linalg.norm(a, numpy.inf))
        self.assertEqual(tenon.broadcast_shapes((3, 1), (4,), 1), (3, 4))
        with self.assertRaisesRegex(RuntimeError, "Attempting to broadcast a dimension of length 4 at -1!"):
            tenon.broadcast_shapes((3,), (4,))
        self.assertEqual([int(i) for i in tenon.unravel_index(tenon.tensor(7), (3, 4))], [1, 3])

    def test_unique_gives_what_is_asked_for(self):
        x = tenon.tensor([3, 1, 3, 2])
        self.assertEqual(tenon.unique(x).tolist(), [1, 2, 3])
        values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
        self.assertEqual((values[inverse].tolist(), counts.tolist()), (x.tolist(), [1, 1, 2]))
        self.assertEqual(tenon.unique(tenon.tensor([[1, 2], [1, 2]]), dim=0).tolist(), [[1, 2]])

    def test_normal_numbers_have_their_parameters(self):
        tenon.manual_seed(0)
        x = tenon.normal(tenon.tensor([0.0, 10.0]).expand(5000, 2), tenon.tensor([1.0, 3.0]))
        self.assertLess((x.mean(0) - tenon.tensor([0.0, 10.0])).abs().max().item(), 0.3)
        self.assertLess((x.std(0) - tenon.tensor([1.0, 3.0])).abs().max().item(), 0.2)
        self.assertEqual(tenon.normal(2.0, 0.0, size=(2,)).tolist(), [2.0, 2.0])
        with self.assertRaisesRegex(RuntimeError, "normal expects std >= 0.0"):
            tenon.normal(0.0, -1.0, size=(2,))

    def test_limits_of_dtypes(self):
        info = tenon.finfo(tenon.float32)
        self.assertEqual((info.eps, info.max, info.tiny), tuple(
            float(x) for x in (numpy.finfo("f4").eps, numpy.finfo("f4").max, numpy.finfo("f4").tiny)))
        self.assertEqual(tenon.iinfo(tenon.int64).max, 2 ** 63 - 1)
        self.assertEqual(tenon.finfo(tenon.bfloat16).eps, 2.0 ** -7)
        with self.assertRaises(TypeError):
            tenon.finfo(tenon.int32)

    def test_versions_compare(self):
        from tenon.torch_version import TorchVersion
        v = TorchVersion("2.11.0+tenon")
        self.assertTrue(v > "2.9" and v >= (2, 11) and v < "3" and v > "1.13.1+cu117" and not v < "2.2.0a0")


class Logs(unittest.TestCase):
    def test_event_files_are_records_with_checksums(self):
        self.assertEqual(record.crc32c(b"123456789"), 0xE3069283)
        with tempfile.TemporaryDirectory() as folder:
            with SummaryWriter(folder) as writer:
                writer.add_scalar("loss", tenon.tensor(1.5), 3)
                writer.add_histogram("h", tenon.randn(10), 1)
            path, = glob.glob(os.path.join(folder, "events.out.tfevents.*"))
            with open(path, "rb") as file:
                content = file.read()
        records = []
        while content:
            length, = struct.unpack_from("<Q", content)
            self.assertEqual(struct.unpack_from("<I", content, 8)[0], record.masked(content[:8]))
            data = content[12:12 + length]
            self.assertEqual(struct.unpack_from("<I", content, 12 + length)[0], record.masked(data))
            records.append(data)
            content = content[16 + length:]
        self.assertEqual(len(records), 3)
        self.assertIn(b"brain.Event:2", records[0])
        # step 3; a summary with tag "loss" and the number 1.5
        self.assertIn(b"\x10\x03", records[1])
        self.assertIn(b"\x0a\x04loss\x15" + struct.pack("<f", 1.5), records[1])


    def test_what_nobody_closed_is_written_when_the_writer_or_the_process_ends(self):
        script = ("import os, sys, tenon\n"
                  "from tenon.utils.tensorboard import SummaryWriter\n"
                  "writer = SummaryWriter(sys.argv[1])\n"
                  "for i in range(13):\n"
                  "    writer.add_scalar('loss', i, i)\n"
                  "child = os.fork()\n"  # what waits is the parent's to write, however the child ends
                  "if child == 0:\n"
                  "    sys.exit()\n"
                  "os.waitpid(child, 0)\n")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-W", "error::ResourceWarning", "-c", script, folder],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(len(self.summaries(folder)), 13)
        with tempfile.TemporaryDirectory() as folder:
            writer = SummaryWriter(folder)
            writer.add_scalar("loss", 1.0, 0)
            del writer
            self.assertEqual(len(self.summaries(folder)), 1)

    @staticmethod
    def summaries(folder):
        """The summaries of a folder's file, as bytes."""
        path, = glob.glob(os.path.join(folder, "events.out.tfevents.*"))
        with open(path, "rb") as file:
            content = file.read()
        out = []
        while content:
            length, = struct.unpack_from("<Q", content)
            out.append(content[12:12 + length])
            content = content[16 + length:]
        return out[1:]

    def test_histograms_have_the_bins_that_pytorch_writes(self):
        def doubles(field, values):
            return record.packed_doubles(field, values)

        values = tenon.tensor([-1.5, -0.2, 0.0, 0.3, 0.3, 2.0])
        with tempfile.TemporaryDirectory() as folder:
            with SummaryWriter(folder) as writer:
                writer.add_histogram("a", values, 0, bins=4)
                writer.add_histogram("b", numpy.array([1.0, 1.05]), 0)
                writer.add_histogram("c", values, 0, bins=[-1.0, 0.0, 0.25, 9.0])
                writer.add_histogram("d", tenon.zeros(5), 0)
                writer.add_histogram_raw("e", 0, 1, 3, 2.0, 2.0, [0.5, 1.0], [1, 2])
                with self.assertRaisesRegex(ValueError, "The input has no element"):
                    writer.add_histogram("f", tenon.empty(0))
                with self.assertRaisesRegex(ValueError, "bucket_limits"):
                    writer.add_histogram_raw("f", 0, 1, 3, 2.0, 2.0, [0.5], [1, 2])
            made = self.summaries(folder)
        self.assertIn(doubles(6, [-1.5, -0.625, 0.25, 1.125, 2.0]) + doubles(7, [0.0, 1.0, 2.0, 2.0, 1.0]), made[0])
        self.assertIn(doubles(7, [0.0, 1.0, 1.0]), made[1])  # 10 % apart, and an edge between them
        self.assertIn(doubles(6, [-1.0, 0.0, 0.25, 9.0]) + doubles(7, [0.0, 1.0, 1.0, 3.0]), made[2])
        self.assertIn(doubles(6, [0.0, 1e-12]) + doubles(7, [0.0, 5.0]), made[3])
        self.assertIn(doubles(6, [0.5, 1.0]) + doubles(7, [1.0, 2.0]), made[4])

    def test_pictures_are_bytes_of_three_colors(self):
        import zlib
        from tenon.utils.tensorboard.writer import _pixels
        grey = tenon.tensor([[0.0, 0.5], [1.0, 2.0]])
        self.assertEqual(_pixels(grey, "HW"), (2, 2, [bytes([0] * 3 + [127] * 3), bytes([255] * 6)]))
        self.assertEqual(_pixels(grey[None], "CHW"), _pixels(grey, "HW"))
        whole = numpy.arange(12, dtype=numpy.uint8).reshape(2, 2, 3)
        self.assertEqual(_pixels(whole, "HWC"), (2, 2, [bytes(range(6)), bytes(range(6, 12))]))
        with tempfile.TemporaryDirectory() as folder:
            with SummaryWriter(folder) as writer:
                writer.add_image("i", whole, dataformats="HWC")
            made, = self.summaries(folder)
        start = made.index(b"IDAT") + 4
        self.assertEqual(zlib.decompressobj().decompress(made[start:]), b"\0" + bytes(range(6)) + b"\0" + bytes(range(6, 12)))

    def test_meshes_and_known_curves(self):
        with tempfile.TemporaryDirectory() as folder:
            with SummaryWriter(folder) as writer:
                writer.add_mesh("m", tenon.ones(1, 4, 3), faces=tenon.tensor([[[0, 1, 2]]]))
                writer.add_pr_curve_raw("p", [3, 2], [1, 0], [0, 1], [0, 1], [.75, 1.], [1., .5], num_thresholds=2)
            mesh, curve = self.summaries(folder)
        # what TensorBoard's own writer gives: name, kind, configuration, shape, which parts there are
        self.assertIn(b"m_VERTEX", mesh)
        self.assertIn(b"\x12\x01m\x18\x01*\x02{}2\x03\x01\x04\x038\x06", mesh)
        self.assertIn(b"\x12\x01m\x18\x02*\x02{}2\x03\x01\x01\x038\x06", mesh)
        self.assertIn(struct.pack("<3f", 0, 1, 2), mesh)
        self.assertIn(struct.pack("<12f", 3, 2, 1, 0, 0, 1, 0, 1, .75, 1, 1, .5), curve)


class Trees(unittest.TestCase):
    def test_leaves_come_out_and_go_back(self):
        Pair = namedtuple("Pair", "x y")
        tree = {"a": [1, (2, 3)], "b": Pair(4, {"c": None})}
        leaves, spec = pytree.tree_flatten(tree)
        self.assertEqual(leaves, [1, 2, 3, 4, None])
        self.assertEqual(pytree.tree_unflatten(leaves, spec), tree)
        self.assertEqual(pytree.tree_map(lambda x: x and x * 2, tree),
                         {"a": [2, (4, 6)], "b": Pair(8, {"c": None})})
        self.assertEqual(pytree.tree_map_only(int, lambda x: -x, [1, "a"]), [-1, "a"])
        with self.assertRaisesRegex(ValueError, "has length 1 but the spec"):
            pytree.tree_unflatten([1], spec)

    def test_leaves_have_paths(self):
        Pair = namedtuple("Pair", "x y")
        pairs, spec = pytree.tree_flatten_with_path({"a": [1, Pair(2, 3)]})
        self.assertEqual([(pytree.keystr(path), leaf) for path, leaf in pairs],
                         [("['a'][0]", 1), ("['a'][1].x", 2), ("['a'][1].y", 3)])
        self.assertEqual(pytree.tree_map_with_path(lambda path, x: len(path) * x, {"a": [1, 2]}), {"a": [2, 4]})
        self.assertEqual(repr(spec), "TreeSpec(dict, ['a'], [TreeSpec(list, None, [*,\n    TreeSpec(namedtuple, %r, [*,\n"
                         "      *])])])" % Pair)

    def test_trees_of_other_shapes_are_refused(self):
        for first, second, text in (([1, 2], [1, 2, 3], "Node arity mismatch; expected 2, but got 3."),
                                    ([1], (1,), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>."),
                                    ({"a": 1}, {"b": 1}, r"missing key\(s\): {'a'}; extra key\(s\): {'b'}")):
            with self.assertRaisesRegex(ValueError, text):
                pytree.tree_map(lambda a, b: a, first, second)
        self.assertEqual(pytree.tree_map(lambda a, b: (a, b), [1], [(2, 3)]), [(1, (2, 3))])

    def test_classes_can_be_registered(self):
        class Box:
            def __init__(self, inside):
                self.inside = inside
        pytree.register_pytree_node(Box, lambda box: ([box.inside], None), lambda children, _: Box(*children))
        self.assertEqual(pytree.tree_map(lambda x: x + 1, [Box(1)])[0].inside, 2)
        with self.assertRaisesRegex(ValueError, "is already registered as pytree node"):
            pytree.register_pytree_node(Box, None, None)

    def test_shapes_are_written_and_read(self):
        spec = pytree.tree_structure([1, {"a": (2, None)}])
        self.assertEqual(pytree.treespec_loads(pytree.treespec_dumps(spec)), spec)
        self.assertEqual(pytree.treespec_pprint(spec), "[*, {'a': (*, *)}]")


class Assertions(unittest.TestCase):
    def test_assert_close_says_how_tensors_differ(self):
        close = tenon.testing.assert_close
        close([tenon.ones(2), 1.0], [tenon.ones(2), 1.0])
        for call, text in (
                (lambda: close(tenon.tensor([1.0, 2.0, 3.0]), tenon.tensor([1.0, 2.5, 3.0])),
                 "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\n"
                 "Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)\n"
                 "Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)"),
                (lambda: close(1, 2), "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\n"
                                      "Relative difference: 0.5"),
                (lambda: close({"a": tenon.ones(1)}, {"a": tenon.zeros(1)}), "The failure occurred for item ['a']"),
                (lambda: close(tenon.ones(1), tenon.ones(2)), "The values for attribute 'shape' do not match"),
                (lambda: close(tenon.tensor(math.nan), tenon.tensor(math.nan)), "Scalars are not close!")):
            with self.assertRaises(AssertionError) as caught:
                call()
            self.assertIn(text, str(caught.exception))
        close(tenon.tensor(math.nan), tenon.tensor(math.nan), equal_nan=True)

    def test_made_tensors_have_what_was_asked(self):
        for dtype in (tenon.bool, tenon.uint8, tenon.int64, tenon.float16, tenon.float32, tenon.complex64):
            x = tenon.testing.make_tensor(3, 4, dtype=dtype, device="cpu", noncontiguous=True)
            self.assertEqual((x.dtype, x.shape, x.is_contiguous()), (dtype, (3, 4), False))
            self.assertEqual(x.storage_offset(), 1)
        make = tenon.testing.make_tensor
        for dtype in (tenon.uint16, tenon.uint32, tenon.uint64, tenon.float8_e4m3fn, tenon.float8_e5m2fnuz):
            x = make((50,), dtype=dtype, device="cpu").to(tenon.float64)
            self.assertTrue(-9 <= x.min() < x.max() <= 9)
        self.assertIsNone(make(4, dtype=tenon.complex64, device="cpu")._base)
        most = tenon.finfo(tenon.float32).max
        self.assertTrue(make(9, dtype=tenon.float32, device="cpu", low=-most, high=most).isfinite().all())
        with self.assertWarnsRegex(FutureWarning, "Passing `low==high`"):
            self.assertEqual(make(2, dtype=tenon.float32, device="cpu", low=2, high=2).tolist(), [2.0, 2.0])
        with self.assertRaisesRegex(ValueError, r"is \[300, 400\), but .*uint8 only supports \[0, 256\)"):
            make(2, dtype=tenon.uint8, device="cpu", low=300, high=400)


class Refusals(unittest.TestCase):
    """What PyTorch does where an operator cannot go on."""

    def test_unique_elements_have_no_gradient_and_are_found_all_the_same(self):
        x = tenon.tensor([1.0, 2.0, 2.0], requires_grad=True)
        values, counts = x.unique(return_counts=True)
        self.assertEqual((values.tolist(), counts.tolist()), ([1, 2], [1, 2]))
        self.assertTrue(values.requires_grad and not counts.requires_grad)
        self.assertEqual(tenon.unique_consecutive(x).tolist(), [1, 2])
        self.assertEqual(tenon.unique(x.view(3, 1), dim=0).tolist(), [[1], [2]])
        with self.assertRaisesRegex(NotImplementedError, "the derivative for '_unique2' is not implemented."):
            values.sum().backward()
        with tenon.no_grad():
            self.assertFalse(x.unique().requires_grad)

    def test_nonzero_gives_out_its_size(self):
        out = tenon.empty(0, dtype=tenon.int64)
        self.assertIs(tenon.nonzero(tenon.tensor([[0, 3]]), out=out), out)
        self.assertEqual(out.tolist(), [[0, 1]])

    def test_classes_of_exceptions(self):
        x = tenon.ones(6)
        for error, call in ((IndexError, lambda: x.index_add(0, tenon.tensor([6]), tenon.ones(1))),
                            (RuntimeError, lambda: x.view(6, 1).index_add(0, tenon.tensor([6]), tenon.ones(1, 1))),
                            (IndexError, lambda: tenon.put(x, tenon.tensor([1, 2]), tenon.ones(3))),
                            (RuntimeError, lambda: tenon.polygamma(-1, x)),
                            (RuntimeError, lambda: tenon.chain_matmul()),
                            (ValueError, lambda: tenon.einsum("i"))):
            with self.assertRaises(error) as caught:
                call()
            self.assertIs(type(caught.exception), error)


class ForPackages(unittest.TestCase):
    """Names that packages which build on torch ask for when they are imported."""

    def test_checks_raise_their_class_with_their_words(self):
        for check, error in ((tenon._check, RuntimeError), (tenon._check_value, ValueError),
                             (tenon._check_type, TypeError), (tenon._check_index, IndexError),
                             (tenon._check_not_implemented, NotImplementedError)):
            check(True)
            with self.assertRaisesRegex(error, "^because$"):
                check(False, lambda: "because")
            with self.assertRaisesRegex(error, "^Expected cond to be True, but got False"):
                check(False)
        with self.assertRaisesRegex(TypeError, "cond must be a bool"):
            tenon._check(tenon.tensor(True))
        with self.assertRaisesRegex(AssertionError, "^m$"):
            tenon._assert(tenon.tensor(False), "m")
        tenon._check_tensor_all(tenon.tensor([True]))

    def test_arithmetic_of_sizes_is_plain(self):
        self.assertEqual((tenon.sym_int(2.7), tenon.sym_max(2, 3.5), tenon.sym_min(2, 3), tenon.sym_not(True),
                          tenon.sym_ite(True, 1, 2), tenon.sym_sqrt(4.0), tenon.sym_sum([1, 2])),
                         (2, 3.5, 2, False, 1, 2.0, 3))
        self.assertFalse(isinstance(tenon.ones(2).shape[0], (tenon.SymInt, tenon.SymFloat, tenon.SymBool)))
        self.assertIs(tenon.get_device_module("cpu"), tenon.cpu)

    def test_modules_are_there(self):
        import importlib
        for name, names in (("_custom_ops", "impl_abstract"), ("jit.annotations", "BroadcastingList2"),
                            ("onnx.symbolic_opset11", "unsqueeze"), ("onnx.symbolic_helper", "parse_args"),
                            ("ao.quantization", "QuantStub DeQuantStub"), ("nn.quantized", "FloatFunctional"),
                            ("utils.model_zoo", "tqdm load_url"), ("hub", "_get_torch_home HASH_REGEX tqdm urlparse"),
                            ("fx.experimental.symbolic_shapes", "guard_or_false")):
            module = importlib.import_module("tenon." + name)
            for part in names.split():
                self.assertTrue(hasattr(module, part), (name, part))

    def test_a_prompt_completes_modules_that_are_not_loaded(self):
        import rlcompleter
        complete = rlcompleter.Completer({"torch": tenon}).complete
        for start, found in (("torch.lina", "torch.linalg"), ("torch.cud", "torch.cuda"), ("torch.utils.che", "torch.utils.checkpoint"),
                             ("torch.autograd.functi", "torch.autograd.function"), ("torch.nn.utils.parametriza", "torch.nn.utils.parametrizations"),
                             ("torch.backends.cudn", "torch.backends.cudnn"), ("torch.randper", "torch.randperm(")):
            self.assertEqual(complete(start, 0), found)
        code = "import sys, tenon; names = dir(tenon); print('distributions' in names, 'tenon.distributions' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout, "True False\n")

    def test_the_device_of_new_tensors_under_the_names_of_packages(self):
        from tenon.utils import _device
        self.assertIsNone(_device.CURRENT_DEVICE)
        with _device.DeviceContext("meta"):
            self.assertEqual(_device.CURRENT_DEVICE, tenon.device("meta"))
            self.assertEqual(tenon.ones(1).device.type, "meta")
        self.assertEqual(_device.set_device("meta")(tenon.zeros)(2).device.type, "meta")

        @_device.set_device("meta")
        def some():
            yield tenon.zeros(1)
            yield tenon.zeros(2)

        self.assertEqual([t.device.type for t in some()], ["meta", "meta"])
        self.assertTrue({tenon.ones, tenon.tensor, tenon.randn} <= _device._device_constructors())

    def test_arguments_of_to_are_read(self):
        parse = tenon._C._nn._parse_to
        self.assertEqual(parse("cpu", tenon.float64), (tenon.device("cpu"), tenon.float64, False, None))
        self.assertEqual(parse(tenon.ones(1, dtype=tenon.int8)), (tenon.device("cpu"), tenon.int8, False, None))
        self.assertEqual(parse(memory_format=tenon.channels_last), (None, None, False, tenon.channels_last))
        self.assertTrue(isinstance(tenon.Tensor, tenon._C._TensorMeta))
        self.assertIs(tenon.ScriptModule, tenon.jit.ScriptModule)

    def test_rare_dtypes_have_names_and_limits_alone(self):
        import copy
        import pickle
        rare = tenon.complex32
        self.assertEqual((str(rare), rare.itemsize, tenon.finfo(rare).max), ("tenon.complex32", 4, 65504.0))
        self.assertTrue(rare is copy.deepcopy(rare) is pickle.loads(pickle.dumps(rare)))
        self.assertFalse(rare == tenon.float32 or isinstance(rare, tenon.dtype))
        for dtype in rare, tenon.float8_e8m0fnu, tenon.quint8:
            with self.assertRaisesRegex(TypeError, "dtype"):
                tenon.zeros(2, dtype=dtype)
        self.assertEqual((tenon.finfo(tenon.float8_e4m3fn).max, tenon.finfo(tenon.float8_e5m2).tiny), (448.0, 2.0 ** -14))
        self.assertEqual((tenon.iinfo(tenon.uint16).max, tenon.iinfo(tenon.uint64).max), (2 ** 16 - 1, 2 ** 64 - 1))

    def test_collectives_and_placements_of_one_process(self):
        from tenon.distributed import _functional_collectives as collectives
        from tenon.distributed.tensor.placement_types import _StridedShard
        x = tenon.ones(3)
        self.assertEqual(collectives.wait_tensor(collectives.all_reduce(x, "sum", None)).tolist(), [1.0] * 3)
        self.assertTrue(_StridedShard(1, split_factor=2).is_shard(1))
        from tenon._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
        with TransformGetItemToIndex():
            self.assertEqual(tenon.arange(6).view(2, 3)[tenon.tensor(1), tenon.tensor(2)].item(), 5)
        self.assertEqual(pytree._dict_flatten({"a": 1})[0], [1])

    def test_every_kind_of_device_has_a_name(self):
        self.assertEqual((str(tenon.device("mps")), tenon.device("xpu:1").index), ("mps", 1))
        self.assertNotEqual(tenon.device("mps"), tenon.device("cpu"))
        with self.assertRaisesRegex(RuntimeError, "mps"):
            tenon.zeros(2, device="mps")

    def test_distributions_have_modules_of_their_own(self):
        from tenon.distributions.beta import Beta
        from tenon.distributions.multivariate_normal import MultivariateNormal
        from tenon.distributions.relaxed_bernoulli import RelaxedBernoulli
        d = tenon.distributions
        self.assertEqual((Beta, MultivariateNormal, RelaxedBernoulli),
                         (d.Beta, d.MultivariateNormal, d.RelaxedBernoulli))

    def test_a_matrix_of_low_rank_is_taken_apart(self):
        tenon.manual_seed(0)
        for shape in ((8, 5), (5, 8), (3, 9, 4)):
            a, q = tenon.randn(*shape, dtype=tenon.float64), min(shape[-2:])
            u, s, v = tenon.svd_lowrank(a, q=q, niter=4)
            tenon.testing.assert_close(u @ tenon.diag_embed(s) @ v.mT, a)
            tenon.testing.assert_close(s, tenon.linalg.svdvals(a))
        low = tenon.randn(20, 2, dtype=tenon.float64) @ tenon.randn(2, 7, dtype=tenon.float64)
        u, s, v = tenon.pca_lowrank(low + 3, q=2)
        tenon.testing.assert_close(u @ s.diag() @ v.mT, low - low.mean(0))
        with self.assertRaisesRegex(ValueError, r"q\(=9\) must be non-negative integer"):
            tenon.pca_lowrank(low, q=9)

    def test_the_records_of_a_file_are_read_one_by_one(self):
        path = os.path.join(tempfile.mkdtemp(), "a.pt")
        tenon.save({"a": tenon.arange(6.0)}, path)
        reader = tenon.PyTorchFileReader(path)
        self.assertTrue(reader.has_record("data.pkl") and not reader.has_record("none"))
        self.assertIn("data/0", reader.get_all_records())
        self.assertEqual(reader.get_record("version").strip(), b"3")
        self.assertEqual(reader.get_storage_from_record("data/0", 6, tenon.float32).tolist(), list(range(6)))
        with self.assertRaisesRegex(RuntimeError, "has no 7 elements"):
            reader.get_storage_from_record("data/0", 7, tenon.float32)
        with self.assertRaisesRegex(RuntimeError, "failed locating file none"):
            reader.get_record("none")

    def test_one_process_joins_and_keeps_all_of_the_state(self):
        from tenon.distributed.algorithms.join import Join, Joinable, JoinHook
        from tenon.distributed.optim import ZeroRedundancyOptimizer
        said = []

        class Hook(JoinHook):
            def post_hook(self, is_last_joiner):
                said.append(is_last_joiner)

        class One(Joinable):
            join_device = join_process_group = None

            def __init__(self):
                super().__init__()

            def join_hook(self, **kwargs):
                return Hook()

        with Join([One()]):
            pass
        self.assertEqual(said, [True])
        plain, spread = (tenon.nn.Linear(3, 1), tenon.nn.Linear(3, 1))
        spread.load_state_dict(plain.state_dict())
        one = tenon.optim.Adam(plain.parameters(), lr=0.1)
        two = ZeroRedundancyOptimizer(spread.parameters(), tenon.optim.Adam, lr=0.1)
        for _ in range(3):
            for layer, optimizer in ((plain, one), (spread, two)):
                optimizer.zero_grad()
                layer(tenon.ones(2, 3)).square().sum().backward()
                optimizer.step()
        self.assertTrue(tenon.equal(plain.weight, spread.weight))
        with self.assertRaisesRegex(RuntimeError, "has not been consolidated"):
            two.state_dict()
        two.consolidate_state_dict()
        self.assertEqual(two.state_dict()["param_groups"], one.state_dict()["param_groups"])

    def test_markers_of_quantization_pass_on_what_they_get(self):
        from tenon.ao.quantization import QuantWrapper
        x, f = tenon.ones(2), tenon.nn.quantized.FloatFunctional()
        self.assertEqual(QuantWrapper(tenon.nn.Identity())(x).tolist(), [1.0, 1.0])
        self.assertEqual((f.add(x, x).tolist(), f.cat([x, x]).tolist()), ([2.0, 2.0], [1.0] * 4))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    harness.main()
