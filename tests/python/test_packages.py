# SPDX-License-Identifier: MIT
"""Names that packages built on torch import, beside those that scripts use: they are there, and do what they say."""

import argparse
from copy import deepcopy
import gc
import io
import sys
import threading
import unittest

import harness
import tenon


class Swap(unittest.TestCase):
    def test_two_tensors_become_each_other(self):
        layer = tenon.nn.Linear(2, 3)
        held, other = layer.weight, tenon.nn.Parameter(tenon.full((3, 2), 5.0))
        other.tag = "other"
        tenon.utils.swap_tensors(held, other)
        self.assertIs(layer.weight, held)
        self.assertEqual(held.tolist(), [[5, 5]] * 3)
        self.assertEqual((held.tag, hasattr(other, "tag")), ("other", False))
        layer(tenon.ones(2)).sum().backward()
        self.assertEqual(held.grad.tolist(), [[1, 1]] * 3)
        self.assertIsNone(other.grad)

    def test_classes_go_with_the_tensors(self):
        class Mine(tenon.Tensor):
            pass

        a, b = tenon.ones(2), tenon.zeros(3).as_subclass(Mine)
        tenon.utils.swap_tensors(a, b)
        self.assertEqual((type(a), type(b)), (Mine, tenon.Tensor))
        self.assertEqual((type(a + 1), (a + 1).tolist(), b.tolist()), (Mine, [1, 1, 1], [1, 1]))
        with self.assertRaises(TypeError):
            tenon._C._swap_tensor_impl(a, 1)

    def test_a_tensor_that_is_weakly_held_stays(self):
        import weakref
        a, b = tenon.ones(2), tenon.zeros(2)
        ref = weakref.ref(a)
        with self.assertRaisesRegex(RuntimeError, "t1 because it has weakref"):
            tenon.utils.swap_tensors(a, b)
        self.assertIs(ref(), a)


class Futures(unittest.TestCase):
    def test_values_come_from_another_thread(self):
        first, second = tenon.futures.Future(), tenon.futures.Future()
        twice = first.then(lambda future: future.wait() * 2)
        both = tenon.futures.collect_all([first, second])
        self.assertFalse(first.done() or both.done())
        thread = threading.Thread(target=lambda: (second.set_result(1), first.set_result(21)))
        thread.start()
        self.assertEqual(twice.wait(), 42)
        self.assertEqual([future.wait() for future in both.wait()], [21, 1])
        thread.join()
        with self.assertRaisesRegex(RuntimeError, "only be marked completed once"):
            first.set_result(1)

    def test_errors_are_raised_where_somebody_waits(self):
        future = tenon.futures.Future()
        after = future.then(lambda f: f.wait())
        future.set_exception(KeyError("k"))
        for one in (future, after):
            with self.assertRaises(KeyError):
                one.wait()
        with self.assertRaises(KeyError):
            tenon.futures.wait_all([future])


class Apart(unittest.TestCase):
    """Modules taken apart into a function and its parameters, by the names that scripts used before torch.func."""

    def setUp(self):
        from tenon._functorch import make_functional
        self.f = make_functional

    def test_a_module_as_a_function_of_its_parameters(self):
        layer = tenon.nn.Linear(2, 1)
        f, params = self.f.make_functional(layer)
        self.assertIs(params[0], layer.weight)
        self.assertEqual(f([tenon.ones(1, 2), tenon.zeros(1)], tenon.ones(2)).item(), 2)
        f(params, tenon.ones(2)).backward()
        self.assertEqual(layer.weight.grad.tolist(), [[1, 1]])
        self.assertFalse(self.f.make_functional(layer, disable_autograd_tracking=True)[1][0].requires_grad)
        with self.assertRaisesRegex(RuntimeError, "has buffers"):
            self.f.make_functional(tenon.nn.BatchNorm1d(2))

    def test_an_ensemble_is_mapped(self):
        layers = [tenon.nn.BatchNorm1d(2).eval() for _ in range(3)]
        f, params, buffers = self.f.combine_state_for_ensemble(layers)
        self.assertEqual([tuple(p.shape) for p in params + buffers], [(3, 2), (3, 2), (3, 2), (3, 2), (3,)])
        x = tenon.ones(4, 2)
        out = self.f.vmap(f, in_dims=(0, 0, None))(params, buffers, x)
        tenon.testing.assert_close(out, layers[0](x).expand(3, 4, 2))
        with self.assertRaisesRegex(RuntimeError, "at least one model"):
            self.f.combine_state_for_ensemble([])

    def test_functionalize_gives_the_same_results(self):
        x = tenon.zeros(2)
        self.assertEqual(self.f.functionalize(lambda t: t.add_(1) * 2)(x).tolist(), [2, 2])
        self.assertEqual(x.tolist(), [1, 1])
        with self.assertRaisesRegex(RuntimeError, "Valid options"):
            self.f.functionalize(len, remove="all")

    def test_tensors_of_a_module_by_name(self):
        from tenon.nn.utils._named_member_accessor import NamedMemberAccessor, swap_tensor
        net = tenon.nn.Sequential(tenon.nn.Linear(2, 1), tenon.nn.BatchNorm1d(1))
        access, new = NamedMemberAccessor(net), tenon.nn.Parameter(tenon.zeros(1, 2))
        weight = net[0].weight
        self.assertIs(access.swap_tensor("0.weight", new), weight)
        self.assertIs(net[0].weight, new)
        self.assertIs(access.get_tensor("1.running_mean"), net[1].running_mean)
        with self.assertRaisesRegex(RuntimeError, "Missing key"):
            access.swap_tensors_dict({"0.weight": weight, "0.none": weight})
        self.assertIs(net[0].weight, new)
        for name in ("", "a.b"):
            with self.assertRaises(KeyError):
                swap_tensor(net, name, new)


class Loops(unittest.TestCase):
    """Loops as functions."""

    def test_a_scan_of_any_length_either_way(self):
        from tenon._higher_order_ops.associative_scan import associative_scan
        for n in (1, 2, 3, 4, 5, 8, 13):
            x = tenon.arange(2.0 * n).reshape(2, n)
            tenon.testing.assert_close(associative_scan(lambda a, b: a + b, x, 1), x.cumsum(1))
            tenon.testing.assert_close(associative_scan(lambda a, b: a + b, x, -1, reverse=True),
                                       x.flip(1).cumsum(1).flip(1))
            tenon.testing.assert_close(associative_scan(lambda a, b: a + b, x, 1, combine_mode="generic"), x.cumsum(1))
            a, h, want = x * 0.1, tenon.zeros(2), []
            for i in range(n):
                h = h * a[:, i] + x[:, i]
                want.append(h)
            made = associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, x), 1)
            tenon.testing.assert_close(made[1], tenon.stack(want, 1))

    def test_while_scan_and_map(self):
        i, x = tenon.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (tenon.tensor(0), tenon.ones(2)))
        self.assertEqual((i.item(), x.tolist()), (3, [8, 8]))
        from tenon._higher_order_ops import map as each, scan
        carry, ys = scan(lambda c, v: (c + v, c * v), tenon.zeros(2), tenon.arange(6.0).reshape(3, 2))
        self.assertEqual((carry.tolist(), ys.tolist()), ([6, 9], [[0, 0], [0, 3], [8, 20]]))
        self.assertEqual(each(lambda v, k: v * k, tenon.arange(3.0), 2).tolist(), [0, 2, 4])


class States(unittest.TestCase):
    """States of models and optimizers by name, and checkpoints of safetensors files."""

    def test_an_optimizer_goes_on_with_its_state(self):
        from tenon.distributed.checkpoint import state_dict as sd

        def make():
            net = tenon.nn.Sequential(tenon.nn.Linear(2, 2), tenon.nn.Linear(2, 1))
            return net, tenon.optim.Adam([{"params": net[0].parameters(), "lr": 0.1}, {"params": net[1].parameters()}])

        def step(net, optimizer):
            optimizer.zero_grad()
            net(tenon.ones(3, 2)).square().sum().backward()
            optimizer.step()

        net, optimizer = make()
        step(net, optimizer)
        for options in (None, sd.StateDictOptions(flatten_optimizer_state_dict=True)):
            model, state = deepcopy(sd.get_state_dict(net, optimizer, options=options))
            other, again = make()
            sd.set_state_dict(other, again, model_state_dict=model, optim_state_dict=state, options=options)
            copy, last = make()
            copy.load_state_dict(net.state_dict())
            last.load_state_dict(deepcopy(optimizer.state_dict()))
            step(other, again)
            step(copy, last)
            for a, b in zip(other.parameters(), copy.parameters()):
                self.assertEqual(a.tolist(), b.tolist())
        self.assertEqual(sorted(sd.get_optimizer_state_dict(net, optimizer)["state"]),
                         ["0.bias", "0.weight", "1.bias", "1.weight"])
        self.assertEqual(sorted(sd.get_model_state_dict(net, submodules={net[1]}, options=sd.StateDictOptions(
            keep_submodule_prefixes=False))), ["bias", "weight"])

    def test_a_folder_of_safetensors(self):
        import os
        import tempfile
        from tenon.distributed import checkpoint
        from tenon.distributed.checkpoint.default_planner import DefaultLoadPlanner
        from tenon.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
        with tempfile.TemporaryDirectory() as folder:
            made = {"a": tenon.ones(2), "b": tenon.zeros(3)}
            checkpoint.save(made, storage_writer=HuggingFaceStorageWriter(folder, {"a": 1, "b": 2}))
            self.assertEqual(sorted(os.listdir(folder)), ["model-00001-of-00002.safetensors",
                                                          "model-00002-of-00002.safetensors",
                                                          "model.safetensors.index.json"])
            into = {"a": tenon.zeros(2), "b": tenon.ones(3), "c": tenon.ones(1)}
            with self.assertRaisesRegex(RuntimeError, "Missing key"):
                checkpoint.load(dict(into), storage_reader=HuggingFaceStorageReader(folder))
            checkpoint.load(into, storage_reader=HuggingFaceStorageReader(folder),
                            planner=DefaultLoadPlanner(allow_partial_load=True))
            self.assertEqual([v.tolist() for v in into.values()], [[1, 1], [0, 0, 0], [1]])
            with self.assertRaisesRegex(ValueError, "is no tensor"):
                checkpoint.save({"x": 1}, storage_writer=HuggingFaceStorageWriter(folder))


class Net(tenon.nn.Module):
    """A module of a program's own, to be scripted and saved."""

    def __init__(self):
        super().__init__()
        self.layers = tenon.nn.ModuleList([tenon.nn.Linear(2, 2)])
        self.factor = 3
        self.register_buffer("shift", tenon.ones(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.factor + self.shift


class Scripted(unittest.TestCase):
    """Modules that were scripted or traced, and their files."""

    def test_scripted_modules_of_local_classes(self):
        class Inner(tenon.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = tenon.nn.Linear(3, 2)

            def forward(self, x):
                return self.linear(x).relu()

        class Outer(tenon.nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = tenon.nn.Sequential(Inner())
                self.scale = 3

            def forward(self, x):
                return self.parts(x) * self.scale

        x, outer = tenon.ones(1, 3), Outer()
        for model in (outer, tenon.nn.Sequential(outer, tenon.nn.ReLU())):
            for made in (tenon.jit.script(model), tenon.jit.trace(model, x)):
                file = io.BytesIO()
                tenon.jit.save(made, file)
                file.seek(0)
                again = tenon.jit.load(file)
                self.assertIsInstance(again, tenon.jit.ScriptModule)
                self.assertEqual(list(again.state_dict()), list(model.state_dict()))
                self.assertTrue(tenon.equal(again(x), model(x)))
        self.assertIs(type(outer.parts[0]), Inner)  # saving leaves the module as it is
        del tenon.jit._scripted._local[tenon.jit._scripted._full_name(Inner)]
        file.seek(0)
        with self.assertRaisesRegex(RuntimeError, "Inner, a class that a function of this program defines"):
            tenon.jit.load(file)

    def test_a_scripted_module_is_the_module_and_can_be_saved(self):
        net, x = Net(), tenon.ones(1, 2)
        for made in (tenon.jit.script(net), tenon.jit.trace(net, x)):
            self.assertIsInstance(made, tenon.jit.ScriptModule)
            self.assertIsInstance(made, Net)
            self.assertNotIsInstance(net, tenon.jit.ScriptModule)
            self.assertIs(made.layers[0].weight, net.layers[0].weight)
            self.assertEqual((made.original_name, "forward" in made.code), ("Net", True))
            self.assertEqual(made(x).tolist(), net(x).tolist())
            copied = deepcopy(made)
            self.assertIsInstance(copied, tenon.jit.ScriptModule)
            self.assertIsNot(copied.layers[0].weight, net.layers[0].weight)
            file, found = io.BytesIO(), {"note": b""}
            tenon.jit.save(made, file, _extra_files={"note": "read me"})
            file.seek(0)
            again = tenon.jit.load(file, _extra_files=found)
            self.assertEqual((again(x).tolist(), again.factor, found), (net(x).tolist(), 3, {"note": b"read me"}))
            self.assertIsInstance(again, tenon.jit.ScriptModule)

    def test_a_file_makes_modules_alone(self):
        file = io.BytesIO()
        tenon.save({"tenon_script_module": 1, "module": argparse.Namespace(), "files": {}}, file)
        file.seek(0)
        with self.assertRaisesRegex(RuntimeError, "names argparse.Namespace, which is no class of modules"):
            tenon.jit.load(file)

        class Evil:
            def __reduce__(self):
                return eval, ("1 / 0",)

        file = io.BytesIO()
        tenon.save({"tenon_script_module": 1, "module": Evil(), "files": {}}, file)
        file.seek(0)
        with self.assertRaisesRegex(RuntimeError, "eval, which is no class"):
            tenon.jit.load(file)
        for data in (b"", b"nothing", b"PK\x05\x06" + b"\0" * 18):
            with self.assertRaises((RuntimeError, ValueError, KeyError)):
                tenon.jit.load(io.BytesIO(data))
        file = io.BytesIO()
        tenon.save({"module": 1}, file)
        file.seek(0)
        with self.assertRaisesRegex(RuntimeError, "no archive of a scripted module"):
            tenon.jit.load(file)


class Logs(unittest.TestCase):
    """What a SummaryWriter writes besides numbers, single pictures and text. TensorBoard itself read the same as of
    PyTorch 2.11 from such files."""

    def test_embeddings_are_files_for_the_projector(self):
        import os
        import tempfile
        from tenon.utils.tensorboard import SummaryWriter
        with tempfile.TemporaryDirectory() as folder:
            with SummaryWriter(folder) as writer:
                writer.add_embedding(tenon.arange(6.0).reshape(3, 2), metadata=list("xyz"),
                                     label_img=tenon.ones(3, 3, 4, 4), global_step=2, tag="e")
                with self.assertRaises(AssertionError):
                    writer.add_embedding(tenon.ones(2, 2), metadata=["one"])
            with open(os.path.join(folder, "00002", "e", "tensors.tsv")) as file:
                self.assertEqual(file.read(), "0.0\t1.0\n2.0\t3.0\n4.0\t5.0\n")
            with open(os.path.join(folder, "00002", "e", "metadata.tsv")) as file:
                self.assertEqual(file.read(), "x\ny\nz\n")
            with open(os.path.join(folder, "00002", "e", "sprite.png"), "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
            with open(os.path.join(folder, "projector_config.pbtxt")) as file:
                text = file.read()
            self.assertIn('tensor_name: "e:00002"', text)
            self.assertIn("single_image_dim: 4", text)

    def test_what_is_no_number_is_refused(self):
        import tempfile
        from tenon.utils.tensorboard import SummaryWriter
        with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
            for value in (1, True, "3.5", tenon.ones(1, 1), tenon.tensor(2)):
                writer.add_scalar("a", value, 0)
            for value in (None, [1.0], (), {}):
                with self.assertRaisesRegex(NotImplementedError, "^Got <class '%s'>, but numpy array or torch tensor are expected.$"
                                            % type(value).__name__):
                    writer.add_scalar("a", value, 0)
            with self.assertRaisesRegex(AssertionError, r"one element \(0 dimensions\)\. Was given size: 6 and 2 dimensions"):
                writer.add_scalar("a", tenon.ones(2, 1, 3), 0)
            self.assertRaises(ValueError, writer.add_scalar, "a", "x", 0)

    def test_hyperparameters_are_a_run_of_their_own(self):
        import os
        import tempfile
        from tenon.utils.tensorboard import SummaryWriter
        from tenon.utils.tensorboard.summary import hparams
        with tempfile.TemporaryDirectory() as folder:
            with SummaryWriter(folder) as writer:
                writer.add_hparams({"lr": 0.1, "name": "sgd"}, {"loss": 1.0}, run_name="one")
                with self.assertRaises(TypeError):
                    writer.add_hparams([], {})
            name, = os.listdir(os.path.join(folder, "one"))
            with open(os.path.join(folder, "one", name), "rb") as file:
                data = file.read()
        for part in (b"_hparams_/experiment", b"_hparams_/session_start_info", b"_hparams_/session_end_info", b"loss"):
            self.assertIn(part, data)
        with self.assertRaisesRegex(TypeError, "hparam_domain_discrete"):
            hparams({"a": 1}, {}, {"a": ["x"]})
        with self.assertRaisesRegex(ValueError, "value should be one of"):
            hparams({"a": object()}, {})

    def test_pictures_sound_and_curves_are_records(self):
        import os
        import struct
        import tempfile
        from tenon.utils.tensorboard import SummaryWriter
        with tempfile.TemporaryDirectory() as folder:
            with SummaryWriter(folder) as writer:
                writer.add_images("many", tenon.rand(3, 3, 4, 5), 0)
                writer.add_images("gray", tenon.rand(2, 4, 5), 0, dataformats="NHW")
                writer.add_audio("sound", tenon.linspace(-1, 1, 20), 0, 1000)
                writer.add_pr_curve("curve", tenon.tensor([0, 1, 1]), tenon.tensor([0.2, 0.9, 0.4]), 0, num_thresholds=5)
                writer.add_custom_scalars({"all": {"a": ["Multiline", ["x", "y"]], "b": ["Margin", ["m", "l", "u"]]}})
            name, = os.listdir(folder)
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
        records, at = [], 0
        while at < len(data):
            length, = struct.unpack_from("<Q", data, at)
            records.append(data[at + 12:at + 12 + length])
            at += 16 + length
        self.assertEqual(len(records), 6)
        # 6 rows of 5: true and false positives, true and false negatives, precision, recall, as PyTorch computes them.
        want = [2, 2, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 2, 2 / 3, 1, 1, 1, 0, 1, 1, 0.5, 0.5, 0]
        self.assertIn(struct.pack("<30f", *want), records[4])
        self.assertIn(b"custom_scalars__config__", records[5])


class Small(unittest.TestCase):
    def test_ranges_of_a_profiler_by_operators(self):
        with tenon.profiler.profile() as profile:
            handle = tenon.ops.profiler._record_function_enter("mine")
            tenon.ones(2) + 1
            tenon.ops.profiler._record_function_exit(handle)
        self.assertIn("mine", [event.key for event in profile.key_averages()])

    def test_a_file_that_tensors_share(self):
        import os
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x")
            first = tenon.from_file(path, shared=True, size=3, dtype=tenon.float32)
            first.copy_(tenon.arange(3.0))
            second = tenon.from_file(path, shared=True, size=3, dtype=tenon.float32)
            second[1] = 7
            self.assertEqual((first.tolist(), os.path.getsize(path)), ([0, 7, 2], 12))
            self.assertIsInstance(first.untyped_storage(), tenon.StorageBase)

    def test_segments(self):
        x = tenon.arange(12.0).reshape(6, 2)
        lengths = tenon.tensor([2, 0, 3, 1])
        # Made by PyTorch 2.11 with the same calls.
        self.assertEqual(tenon.segment_reduce(x, "sum", lengths=lengths).tolist(), [[2, 4], [0, 0], [18, 21], [10, 11]])
        self.assertEqual(tenon.segment_reduce(x, "max", lengths=lengths, initial=1.0).tolist(),
                         [[2, 3], [1, 1], [8, 9], [10, 11]])
        offsets = tenon.tensor([[0, 2, 6], [0, 3, 6]])
        self.assertEqual(tenon.segment_reduce(tenon.arange(12.0).reshape(2, 6), "mean", offsets=offsets, axis=1).tolist(),
                         [[0.5, 3.5], [7, 10]])
        y = tenon.tensor([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0], [7.0, 8.0]], requires_grad=True)
        made = tenon._segment_reduce(y, "amin", offsets=tenon.tensor([1, 1, 4]), initial=0)
        self.assertEqual(made.tolist(), [[0, 0], [0, -4]])
        self.assertEqual(tenon.autograd.grad(made.sum(), y)[0].tolist(), [[0, 0], [0, 1], [0, 0], [0, 0]])
        self.assertEqual(tenon._segment_reduce(y, "sum", offsets=tenon.tensor([0, 3])).tolist(), [[9, 4]])
        with self.assertRaisesRegex(RuntimeError, "sum, prod, mean, amax or amin, got median"):
            tenon.segment_reduce(x, "median", lengths=lengths)
        with self.assertRaisesRegex(NotImplementedError, "\"_segment_reduce_cpu\" not implemented for 'Long'"):
            tenon.segment_reduce(x.long(), "sum", lengths=lengths)
        with self.assertRaisesRegex(NotImplementedError, "\"_segment_reduce_lengths_cpu_kernel1\" not implemented for 'Float'"):
            tenon.segment_reduce(x, "sum", lengths=lengths.float())
        with self.assertRaisesRegex(RuntimeError, "indices based reduction is not supported yet"):
            tenon.segment_reduce(x, "sum", indices=lengths)
        with self.assertRaisesRegex(IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
            tenon.segment_reduce(x, "sum", lengths=lengths, axis=2)
        self.assertEqual(tenon.segment_reduce(tenon.empty(0, 3), "sum", lengths=tenon.tensor([0, 0])).tolist(), [[0.0] * 3] * 2)
        self.assertEqual(tenon.segment_reduce(x.to("meta"), "mean", lengths=lengths.to("meta")).shape, (4, 2))
        nan = float("nan")
        for reduce, wanted in (("max", [1, 1, 0, 0.5, 0.5]), ("min", [1, 1, 0, 0.5, 0.5]), ("prod", [1, 3, nan, 5, 5])):
            z = tenon.tensor([1.0, nan, 3.0, 5.0, 5.0], requires_grad=True)
            made = tenon.segment_reduce(z, reduce, lengths=tenon.tensor([1, 2, 2, 0]))
            made.sum().backward()
            self.assertEqual([str(v) for v in z.grad.tolist()], [str(float(v)) for v in wanted])
            self.assertTrue(made[1].isnan())
            made = tenon.segment_reduce(z, reduce, lengths=tenon.tensor([1, 2, 2, 0]), initial=2.0)
            self.assertEqual(made[2:].tolist(), {"max": [5, 2], "min": [2, 2], "prod": [50, 2]}[reduce])
        tied = tenon.tensor([2.0, 3.0], requires_grad=True)
        tenon.segment_reduce(tied, "min", lengths=tenon.tensor([2]), initial=2.0).sum().backward()
        self.assertEqual(tied.grad.tolist(), [1.0, 0.0])
        with self.assertRaisesRegex(RuntimeError, "Expected all rows of lengths"):
            tenon.segment_reduce(x, "sum", lengths=tenon.tensor([1, 2]))
        self.assertEqual(tenon._convert_indices_from_coo_to_csr(tenon.tensor([0, 0, 2]), 4).tolist(), [0, 2, 2, 3, 3])
        with self.assertRaisesRegex(RuntimeError, "but got zero"):
            tenon._assert_async(tenon.tensor(0))

    def test_names_that_a_file_asks_for(self):
        file = io.BytesIO()
        tenon.save({"x": tenon.ones(1), "n": argparse.Namespace(a=1)}, file)
        file.seek(0)
        self.assertEqual(tenon.serialization.get_unsafe_globals_in_checkpoint(file), ["argparse.Namespace"])
        with tenon.serialization.safe_globals([argparse.Namespace]):
            file.seek(0)
            self.assertEqual(tenon.serialization.get_unsafe_globals_in_checkpoint(file), [])

    def test_dictionaries_by_identity(self):
        a, b = tenon.ones(2), tenon.ones(2)
        d = tenon.utils.weak.WeakIdKeyDictionary()
        d[a], d[b] = 1, 2
        self.assertEqual((d[a], d[b], len(d), a in d, tenon.ones(2) in d), (1, 2, 2, True, False))
        del a
        gc.collect()
        self.assertEqual((list(d.values()), len(d)), ([2], 1))

    def test_a_decorator_enters_its_context_for_each_call(self):
        log = []

        class note(tenon.utils._contextlib._DecoratorContextManager):
            def __enter__(self):
                log.append("in")

            def __exit__(self, *error):
                log.append("out")

        @note()
        def plain():
            log.append("f")
            return 1

        @note()
        def generator():
            got = yield 1
            log.append(got)
            return 3

        self.assertEqual(plain(), 1)
        self.assertEqual(log, ["in", "f", "out"])
        made = generator()
        self.assertEqual(next(made), 1)
        log.clear()
        with self.assertRaises(StopIteration) as end:
            made.send("sent")
        self.assertEqual((end.exception.value, log), (3, ["in", "sent", "out"]))

    def test_older_names(self):
        import typing
        flat = tenon._utils._flatten_dense_tensors([tenon.ones(2, 2), tenon.zeros(3)])
        self.assertEqual(flat.tolist(), [1, 1, 1, 1, 0, 0, 0])
        parts = tenon._utils._unflatten_dense_tensors(flat, [tenon.ones(2, 2), tenon.zeros(3)])
        self.assertEqual([p.tolist() for p in parts], [[[1, 1], [1, 1]], [0, 0, 0]])
        self.assertIs(tenon.functional.einsum, tenon.einsum)
        matrix = tenon.tensor([[2.0, 1.0], [4.0, 3.0]])
        factors, pivots = tenon.lu(matrix)
        self.assertEqual((factors.tolist(), pivots.tolist()), ([[4, 3], [0.5, -0.5]], [2, 2]))
        self.assertEqual(tenon.lu(tenon.zeros(2, 2), get_infos=True)[2].item(), 1)
        loss = tenon.nn.CrossEntropyLoss()  # of an object: no longer, from 3.14 on
        self.assertIn("training", typing.get_type_hints(loss if sys.version_info < (3, 14) else type(loss)))

    def test_values_as_if_in_few_bits(self):
        x = tenon.tensor([-3.0, -0.25, 0.05, 0.15, 2.0, 100.0], requires_grad=True)
        out = tenon.fake_quantize_per_tensor_affine(x, 0.1, 10, 0, 255)
        out.sum().backward()
        # Made by PyTorch 2.11 with the same call.
        tenon.testing.assert_close(out.detach(), tenon.tensor([-1.0, -0.2, 0.0, 0.2, 2.0, 24.5]))
        self.assertEqual(x.grad.tolist(), [0, 1, 1, 1, 1, 0])
        w = tenon.arange(6.0).reshape(2, 3).sub(2.5).requires_grad_()
        made = tenon.fake_quantize_per_channel_affine(w, tenon.tensor([0.5, 0.2]), tenon.tensor([0, 1]), 0, -4, 3)
        tenon.testing.assert_close(made.detach(), tenon.tensor([[-2.0, -1.5, -0.5], [0.4, 0.4, 0.4]]))
        made.sum().backward()
        self.assertEqual(w.grad.tolist(), [[0, 1, 1], [1, 0, 0]])
        with self.assertRaisesRegex(RuntimeError, "must be between"):
            tenon.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255)

    def test_groups_of_one_dtype(self):
        xs = [tenon.ones(1), tenon.ones(1, dtype=tenon.float64), tenon.ones(2)]
        made = tenon.utils._foreach_utils._group_tensors_by_device_and_dtype([xs, []], with_indices=True)
        lists, indices = made[tenon.device("cpu"), tenon.float32]
        self.assertEqual((len(made), indices, len(lists[0]), lists[1]), (2, [0, 2], 2, []))

    def test_parts_for_devices(self):
        from tenon.nn.parallel.scatter_gather import gather, scatter_kwargs
        x = tenon.arange(4.0)
        inputs, kwargs = scatter_kwargs((x,), {"k": [x, 1]}, [0, 1])
        self.assertEqual([i[0].tolist() for i in inputs], [[0, 1], [2, 3]])
        self.assertEqual([k["k"][1] for k in kwargs], [1, 1])
        self.assertEqual(gather([i[0] for i in inputs], "cpu").tolist(), [0, 1, 2, 3])

    def test_operators_that_are_defined_when_they_are_named(self):
        x = tenon.ones(2)
        self.assertEqual(tenon.ops.aten._pin_memory.default(x).tolist(), [1, 1])
        self.assertIsNot(tenon.ops.aten._pin_memory(x), x)
        self.assertIn("_sparse_mm_reduce_impl", str(tenon.ops.aten._sparse_mm_reduce_impl.default))

    def test_optimizers_from_elsewhere_group_their_tensors(self):
        a, b, c = tenon.ones(1), tenon.ones(2, dtype=tenon.float64), tenon.ones(3)
        groups = tenon.optim.Optimizer._group_tensors_by_device_and_dtype([[a, b, c], [c, b, a], []], with_indices=True)
        self.assertEqual([key[1] for key in groups], [tenon.float32, tenon.float64])
        (first, second, none), indices = groups[a.device, a.dtype]
        self.assertTrue(first[0] is a and first[1] is c and second[0] is c and second[1] is a)
        self.assertEqual((none, indices), ([], [0, 2]))

    def test_texts_of_classes_from_elsewhere(self):
        add = tenon._tensor_str._add_suffixes
        self.assertEqual(add("Index([1, 2]", ["dim_size=3", "is_sorted=True"], 6, force_newline=False),
                         "Index([1, 2], dim_size=3, is_sorted=True)")
        self.assertEqual(add("Index([1, 2]", ["dim_size=3", "is_sorted=True"], 6, force_newline=True),
                         "Index([1, 2],\n      dim_size=3, is_sorted=True)")
        self.assertEqual(add("[" + "1" * 75, ["dim_size=3"], 1, force_newline=False), "[" + "1" * 75 + ",\n dim_size=3)")

    def test_what_a_launcher_looks_for_is_written(self):
        import json
        import os
        import tempfile
        from unittest import mock
        from tenon.distributed.elastic.multiprocessing.errors import record

        @record
        def main(what):
            """The program."""
            if what is None:
                sys.exit(0)
            if isinstance(what, int):
                sys.exit(what)
            raise ValueError(what)

        with tempfile.TemporaryDirectory() as folder, mock.patch("faulthandler.enable"):
            path = os.path.join(folder, "error.json")
            self.assertEqual((main.__doc__, main(None)), ("The program.", None))
            self.assertRaises(SystemExit, main, 3)
            self.assertRaises(ValueError, main, "nowhere")
            with mock.patch.dict(os.environ, TORCHELASTIC_ERROR_FILE=path):
                self.assertRaises(ValueError, main, "here")
            with open(path, encoding="utf-8") as file:
                message = json.load(file)["message"]
        self.assertEqual(message["message"], "ValueError: here")
        self.assertIn("in main", message["extraInfo"]["py_callstack"])

    def test_what_trainers_of_several_processes_ask(self):
        from tenon.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
        dist = tenon.distributed
        self.assertEqual(dist.Backend.default_device_backend_map["cpu"], "gloo")
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=10)
        self.assertEqual((state.matrix_approximation_rank, state.warm_start), (2, True))
        bucket = argparse.Namespace(buffer=lambda: tenon.ones(2))
        for got in (default_hooks.allreduce_hook(None, bucket), powerSGD_hook.powerSGD_hook(state, bucket),
                    default_hooks.fp16_compress_wrapper(default_hooks.bf16_compress_hook)(None, bucket),
                    post_localSGD_hook.post_localSGD_hook(post_localSGD_hook.PostLocalSGDState(None, None, 5), bucket)):
            self.assertEqual(got.wait().tolist(), [1, 1])
        dist.init_process_group("gloo", world_size=1, rank=0, store=dist.HashStore())
        self.addCleanup(dist.destroy_process_group)
        model = tenon.nn.parallel.DistributedDataParallel(tenon.nn.Linear(2, 1))
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        self.assertFalse(model._get_ddp_logging_data().get("can_set_static_graph"))

    def test_what_is_not_there_says_so(self):
        rpc = tenon.distributed.rpc
        self.assertFalse(rpc.is_available() or isinstance(tenon.ones(1), rpc.api.RRef))
        with self.assertRaisesRegex(RuntimeError, "Current RPC agent is not set"):
            rpc.RRef(1)
        self.assertFalse(rpc.api._is_current_rpc_agent_set())
        self.assertIs(rpc.api._is_current_rpc_agent_set, tenon._C._distributed_rpc._is_current_rpc_agent_set)

        @rpc.api._require_initialized
        def ask(worker):
            """Ask a worker."""
            raise AssertionError("called")
        self.assertEqual((ask.__name__, ask.__doc__), ("ask", "Ask a worker."))
        with self.assertRaisesRegex(RuntimeError, "RPC has not been initialized. Call torch.distributed.rpc.init_rpc first."):
            ask("worker1")
        with self.assertRaisesRegex(RuntimeError, "Class a.B not registered"):
            tenon.classes.a.B
        self.assertIsNone(tenon._C._get_tracing_state())
        self.assertIs(tenon._C._is_tracing(), False)
        self.assertEqual(tenon._C._jit_set_profiling_mode(False), True)
        self.assertEqual(tenon._C._jit_set_profiling_mode(True), False)
        self.assertIn("CPU capability", tenon.__config__.show())
        self.assertTrue(issubclass(tenon.TensorType, tenon.Type) and tenon.TensorType.get() == tenon.TensorType())

    def test_a_worker_seeds_numpy_as_numpy_would(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("NumPy is not installed")
        from tenon.utils.data._utils.worker import _generate_state
        # Made by PyTorch 2.11: torch.utils.data._utils.worker._generate_state(987654321987, 3)
        self.assertEqual(_generate_state(987654321987, 3), [4240036713, 3417735677, 1348725599, 3390489940])


if __name__ == "__main__":
    harness.main()
