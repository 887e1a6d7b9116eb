# SPDX-License-Identifier: MIT
"""save and load: PyTorch's files, safetensors, and files that lie."""

import collections
import io
import json
import os
import pickle
import random
import struct
import sys
import tempfile
import types
import unittest
import zipfile

import harness
import tenon
from tenon import safetensors, serialization

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
ORDINARY = (Exception, RecursionError)


def golden(name):
    return os.path.join(GOLDEN, name)


def values(t):
    return [repr(a) for a in t.detach().flatten().tolist()]


def saved(obj, **options):
    f = io.BytesIO()
    tenon.save(obj, f, **options)
    return f.getvalue()


class Reading(unittest.TestCase):
    def test_sparse_tensors_are_read_to_meta(self):
        x = tenon.eye(4)
        for one in (x.to_sparse(), x.to_sparse_csr(), x.to_sparse_bsc((2, 2))):
            for options in ({}, {"_use_new_zipfile_serialization": False}):
                read = tenon.load(io.BytesIO(saved(one, **options)), map_location="meta")
                self.assertEqual((read.device.type, read.layout, read.shape, read.dtype, read._nnz()),
                                 ("meta", one.layout, one.shape, one.dtype, one._nnz()))
        self.assertEqual(repr(read).replace("tenon.", "torch."), """\
tensor(ccol_indices=tensor(..., size=(3,)),
       row_indices=tensor(..., size=(2,)),
       values=tensor(..., size=(2, 2, 2)), device='meta', size=(4, 4),
       layout=torch.sparse_bsc)""")
        read = tenon.load(io.BytesIO(saved(x.to_sparse())), map_location="meta")
        self.assertTrue(read.is_coalesced())
        self.assertEqual(repr(read).replace("tenon.", "torch."), """\
tensor(indices=tensor(..., size=(2, 4)),
       values=tensor(..., size=(4,)),
       device='meta', size=(4, 4), layout=torch.sparse_coo)""")

    def check(self, state):
        with open(golden("files.json")) as f:
            rows = json.load(f)
        for name, (dtype, shape, stride, grad, numbers) in rows.items():
            t = state[name]
            self.assertEqual((str(t.dtype).rsplit(".", 1)[-1], list(t.shape), list(t.stride()),
                              t.requires_grad, values(t)), (dtype, shape, stride, grad, numbers), name)
        self.assertIsInstance(state, collections.OrderedDict)
        self.assertIsInstance(state["parameter"], tenon.nn.Parameter)
        plain = state["plain"]
        self.assertEqual((plain["lr"], plain["steps"], plain["name"], plain["betas"], plain["nothing"],
                          plain["list"], plain["set"], plain["bytes"]),
                         (0.1, 3, "sgd", (0.9, 0.999), None, [1, [2.5, True]], {1, 2}, b"abc"))
        self.assertEqual((plain["dtype"], plain["size"], str(plain["device"])),
                         (tenon.float16, (2, 3), "cpu"))
        state["base"][2] = 99
        self.assertEqual(state["view"][0].item(), 99, "tensors that shared memory share it again")

    def test_files_of_pytorch(self):
        self.check(tenon.load(golden("zip.pt")))
        self.check(tenon.load(golden("legacy.pt")))
        self.check(tenon.load(golden("zip.pt"), mmap=True))
        self.check(tenon.load(golden("zip.pt"), weights_only=False))
        self.check(tenon.load(golden("legacy.pt"), weights_only=False))
        with open(golden("zip.pt"), "rb") as f:
            self.check(tenon.load(io.BytesIO(f.read()), map_location="cpu"))

    def test_a_state_dict_of_pytorch_fits_a_module(self):
        model = tenon.nn.Sequential(tenon.nn.Linear(2, 3), tenon.nn.ReLU())
        model.load_state_dict(tenon.load(golden("module.pt")))
        self.assertEqual(model[0].weight.tolist(), [[0, 1], [2, 3], [4, 5]])
        self.assertEqual(model[0].bias.tolist(), [1, 2, 3])

    def test_what_we_write_we_read(self):
        for options in ({}, {"_use_new_zipfile_serialization": False}):
            state = tenon.load(golden("zip.pt"))
            self.check(tenon.load(io.BytesIO(saved(state, **options))))

    def test_streams_that_have_no_place_are_written(self):
        import zipfile
        inside, outside = os.pipe()
        with open(outside, "wb") as stream:
            tenon.save({"x": tenon.arange(4.0)}, stream)
        with open(inside, "rb") as stream:
            self.assertEqual(tenon.load(io.BytesIO(stream.read()))["x"].tolist(), [0, 1, 2, 3])
        whole = io.BytesIO()
        for options in ({}, {"_use_new_zipfile_serialization": False}):
            with zipfile.ZipFile(whole, "w") as archive:
                archive.writestr("first", b"12345")
                with archive.open("policy.pth", "w", force_zip64=True) as stream:
                    tenon.save({"x": tenon.arange(4.0)}, stream, **options)
            with zipfile.ZipFile(whole) as archive, archive.open("policy.pth") as stream:
                self.assertEqual(tenon.load(stream)["x"].tolist(), [0, 1, 2, 3])

    def test_paths_files_and_maps(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.pt")
            tenon.save({"x": tenon.arange(4.)}, path)
            mapped = tenon.load(path, mmap=True)
            mapped["x"][0] = 5
            self.assertEqual(tenon.load(path)["x"].tolist(), [0, 1, 2, 3])
            with self.assertRaises(RuntimeError):
                tenon.save({}, os.path.join(folder, "none", "a.pt"))
        with self.assertRaises(FileNotFoundError):
            tenon.load("/no/such/file.pt")
        self.assertEqual(tenon.load(io.BytesIO(saved([tenon.ones(2)])), map_location="meta")[0].device.type,
                         "meta")
        moved = []
        tenon.load(io.BytesIO(saved(tenon.ones(2))), map_location=lambda s, loc: moved.append(loc))
        self.assertEqual(moved, ["cpu"])

    def test_maps_of_files_in_the_old_format(self):
        base = tenon.arange(6.)
        data = saved([base, base[2:], tenon.tensor([True])], _use_new_zipfile_serialization=False)
        for t in tenon.load(io.BytesIO(data), map_location="meta"):
            self.assertEqual(t.device.type, "meta")
        copies = []

        def copy(storage, location):
            copies.append(storage.clone())
            return copies[-1]

        whole, part, flag = tenon.load(io.BytesIO(data), map_location=copy)
        self.assertEqual((len(copies), whole.tolist(), part.tolist(), flag.tolist()),
                         (2, [0, 1, 2, 3, 4, 5], [2, 3, 4, 5], [True]))
        self.assertEqual(whole.data_ptr(), copies[0].data_ptr())
        self.assertEqual(part.data_ptr(), whole.data_ptr() + 8)
        with self.assertRaisesRegex(TypeError, "map_location did not return a storage"):
            tenon.load(io.BytesIO(data), map_location=lambda storage, location: 3)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.pt")
            tenon.save(base, path, _use_new_zipfile_serialization=False)
            with self.assertRaisesRegex(RuntimeError, "mmap can only be used with files saved with `torch.save\\(.*a.pt, "
                                        "_use_new_zipfile_serialization=True\\), please torch.save your checkpoint"):
                tenon.load(path, mmap=True)

    def test_a_plain_pickle_names_what_pytorch_has(self):
        """A tensor with attributes is rebuilt by a function of torch._tensor, not of torch._utils."""
        t = tenon.ones(2)
        t.note = "kept"
        body = pickle.dumps(t, 2)
        self.assertIn(b"._tensor\n_rebuild_from_type_v2\n", body)
        self.assertEqual(pickle.loads(body).note, "kept")

    def test_records_are_aligned(self):
        data = saved({"x": tenon.arange(4.), "y": tenon.ones(3)})
        import zipfile

        with zipfile.ZipFile(io.BytesIO(data)) as z:
            for info in z.infolist():
                name, extra = struct.unpack("<HH", data[info.header_offset + 26:info.header_offset + 30])
                self.assertEqual((info.header_offset + 30 + name + extra) % 64, 0)
            self.assertIsNone(z.testzip())


class Restricted(unittest.TestCase):
    def test_code_is_refused_with_its_name(self):
        """Name and remedy are PyTorch's; what runs commands cannot even be allowed."""
        for obj, name in ((print, "print"), (Point, __name__ + ".Point"), (os.path.join, os.path.__name__ + ".join")):
            with self.assertRaises(pickle.UnpicklingError) as caught:
                tenon.load(io.BytesIO(saved({"x": obj})))
            self.assertTrue(str(caught.exception).startswith(
                "Weights only load failed. This file can still be loaded, to do so you have two options, "))
            self.assertIn(f"Unsupported global: GLOBAL {name} was not an allowed global by default. Please use "
                          f"`torch.serialization.add_safe_globals([{name}])` or the "
                          f"`torch.serialization.safe_globals([{name}])` context manager", str(caught.exception))
        with self.assertRaisesRegex(pickle.UnpicklingError, "Unsupported global"):
            tenon.load(io.BytesIO(saved({"x": tenon.nn.Linear})))
        with serialization.safe_globals([os.system]):
            with self.assertRaisesRegex(pickle.UnpicklingError, r"GLOBAL \w+.system whose module \w+ is blocked\."):
                tenon.load(io.BytesIO(saved({"x": os.system})))

    def test_a_device_that_is_not_there_is_told_with_the_remedy(self):
        with self.assertRaises(RuntimeError) as caught:
            tenon.load(io.BytesIO(saved(tenon.ones(1))), map_location="cuda")
        self.assertEqual(str(caught.exception),
                         "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
                         "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map "
                         "your storages to the CPU.")
        with self.assertRaisesRegex(AttributeError, "'int' object has no attribute 'seek'. You can only torch.load from"):
            tenon.load(5)

    def test_no_code_runs(self):
        class Evil:
            def __reduce__(self):
                return (exec, ("raise SystemExit",))

        with self.assertRaises(pickle.UnpicklingError):
            tenon.load(io.BytesIO(saved(Evil())))

    def test_classes_can_be_allowed(self):
        data = saved(Point(3))
        with self.assertRaises(pickle.UnpicklingError):
            tenon.load(io.BytesIO(data))
        with serialization.safe_globals([Point]):
            self.assertEqual(tenon.load(io.BytesIO(data)).x, 3)
        with self.assertRaises(pickle.UnpicklingError):
            tenon.load(io.BytesIO(data))
        self.assertEqual(tenon.load(io.BytesIO(data), weights_only=False).x, 3)

    def run_pickle(self, body):
        from tenon._weights_only_unpickler import Unpickler

        return Unpickler(io.BytesIO(body)).load()

    def test_every_plain_value_survives_every_protocol(self):
        things = [None, True, False, 0, -1, 255, 65536, -(1 << 31), 1 << 40, 1 << 200, -(1 << 200), 0.5,
                  float("inf"), "", "text", "\u20ac\n", b"", b"bytes\xff", (), (1,), (1, 2), (1, 2, 3),
                  (1, 2, 3, 4), [], [1, [2]], {}, {"a": {1: 2}}, {1, 2}, collections.OrderedDict(a=1),
                  bytearray(b"ab"), "x" * 300, b"y" * 300, [0] * 2000, {i: i for i in range(2000)}, 1 + 2j]
        for protocol in range(6):
            for thing in things:
                if isinstance(thing, set) and protocol < 2:
                    continue
                if protocol < 3 and isinstance(thing, (bytes, bytearray)):
                    continue
                got = self.run_pickle(pickle.dumps(thing, protocol))
                self.assertEqual((type(got), got), (type(thing), thing))

    def test_an_order_of_bytes_that_is_none_is_refused(self):
        data = saved(tenon.arange(3.0))
        self.assertEqual(data.count(b"little"), 1)
        with self.assertRaisesRegex(ValueError, "Unknown endianness type: middle"):
            tenon.load(io.BytesIO(data.replace(b"little", b"middle")))

    def test_nasty_pickles_are_refused(self):
        deep = b"\x80\x02)" + b"\x85" * 200_000
        for body in (
                b"", b".", b"\x80\x09N.", b"0.", b"1.", b"R.", b"(R.", b"N)R.", b"a.", b"Na.", b"NNa.",
                b"h\x05.", b"Q.", b"NQ.", b"(u.", b"}(NNNu.", b"b.", b"}Nb.", b"\x85.", b"\x93.", b"NN\x93.",
                b"\x81.", b"N)\x81.", b"cos\nsystem\n.", b"ctorch\nTensor\n(K\x05tR.",
                b"ctorch\nFloatStorage\n(J\xff\xff\xff\x7ftR.", b"cbuiltins\nbytearray\n(J\xff\xff\xff\x7ftR.",
                b"X\xff\xff\xff\xff.", b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", b"\x8b\xff\xff\xff\x7f.",
                b"\x8b\xff\xff\xff\xff.", b"T\xff\xff\xff\xff.", b"I" + b"9" * 100_000 + b"\n.", b"Iabc\n.",
                b"}" + deep + b"Ns.", b"\x8f(" + deep + b"\x90.",
                b"(" + deep + b"\x91.", b"\x95.", b"ctorch._utils\n_rebuild_tensor_v2\n(NNNNNNtR.",
                b"ccollections\nOrderedDict\n(K\x05tR.", b"ctorch._tensor\n_rebuild_from_type_v2\n(NNNNtR."):
            with self.assertRaises(ORDINARY, msg=str(body[:40])):
                self.run_pickle(body)
        self.run_pickle(deep + b".")


class Bools(unittest.TestCase):
    """Every byte but 0 is true, in files too, and tensors that were read have 1 for it."""

    raw = b"\x02\xff\x80\x00\x01"

    def check(self, t):
        self.assertEqual(t.dtype, tenon.bool)
        self.assertEqual(t.tolist(), [True, True, True, False, True])
        self.assertEqual(int(t.sum()), 4)
        self.assertEqual(tenon.arange(5)[t].tolist(), [0, 1, 2, 4])
        self.assertEqual(t.float().tolist(), [1, 1, 1, 0, 1])

    def read_back(self, **options):
        """The bytes of a saved tensor, with others in their place."""
        marks = b"\1\0\1\0\0\1\1\0\1\1"
        made = tenon.frombuffer(bytearray(marks), dtype=tenon.bool)
        file = io.BytesIO()
        tenon.save(made, file, **options)
        data = file.getvalue()
        self.assertEqual(data.count(marks), 1)
        return tenon.load(io.BytesIO(data.replace(marks, self.raw * 2)))

    def test_zip_and_legacy_files(self):
        for zipped in True, False:
            t = self.read_back(_use_new_zipfile_serialization=zipped)
            self.check(t[:5])
            self.assertEqual(bytes(memoryview(t.view(tenon.uint8))), b"\1\1\1\0\1" * 2)

    def test_safetensors(self):
        data = safetensors.save({"b": tenon.tensor([True] * 5)}).replace(b"\1\1\1\1\1", self.raw)
        t = safetensors.load(data)["b"]
        self.check(t)
        self.assertEqual(bytes(memoryview(t.view(tenon.uint8))), b"\1\1\1\0\1")

    def test_views_and_foreign_memory(self):
        self.check(tenon.tensor(list(self.raw), dtype=tenon.uint8).view(tenon.bool))
        self.check(tenon.frombuffer(bytearray(self.raw), dtype=tenon.bool))


class Point:
    def __init__(self, x):
        self.x = x


class Safetensors(unittest.TestCase):
    def state(self):
        return {"weight": tenon.arange(6.).reshape(2, 3), "bias": tenon.ones(3, dtype=tenon.bfloat16),
                "ids": tenon.tensor([1, 2, 3]), "flag": tenon.tensor([True]), "none": tenon.zeros(0, 2),
                "scalar": tenon.tensor(2.5, dtype=tenon.float64), "half": tenon.ones(1, dtype=tenon.float16)}

    def test_round_trip(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.safetensors")
            state = self.state()
            safetensors.save_file(state, path, metadata={"format": "pt"})
            got = safetensors.load_file(path)
            self.assertEqual(set(got), set(state))
            for name, t in state.items():
                self.assertEqual((got[name].dtype, got[name].shape, values(got[name])),
                                 (t.dtype, t.shape, values(t)))
            with safetensors.safe_open(path, framework="pt") as f:
                self.assertEqual(f.metadata(), {"format": "pt"})
                self.assertEqual(f.get_slice("weight")[:, 1].tolist(), [1, 4])
                self.assertEqual(f.get_slice("weight").get_shape(), [2, 3])
                with self.assertRaises(safetensors.SafetensorError):
                    f.get_tensor("nothing")
        self.assertEqual(set(safetensors.load(safetensors.save(state))), set(state))

    def test_the_bytes_are_the_format_s(self):
        data = safetensors.save({"b": tenon.tensor([1, 2], dtype=tenon.uint8), "a": tenon.tensor([1.0])})
        n = struct.unpack("<Q", data[:8])[0]
        self.assertEqual(n % 8, 0)
        self.assertEqual(json.loads(data[8:8 + n]),
                         {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                          "b": {"dtype": "U8", "shape": [2], "data_offsets": [4, 6]}})
        self.assertEqual(data[8 + n:], b"\0\0\x80?\x01\x02")

    def test_what_must_not_be_written(self):
        x = tenon.arange(4.)
        with self.assertRaisesRegex(RuntimeError, "share memory"):
            safetensors.save({"a": x, "b": x[1:]})
        with self.assertRaisesRegex(ValueError, "non contiguous"):
            safetensors.save({"a": x.reshape(2, 2).t()})
        with self.assertRaises(ValueError):
            safetensors.save({"a": 3})

    def test_parts_of_one_memory_are_written_when_they_do_not_overlap(self):
        x = tenon.arange(4.0)
        again = safetensors.load(safetensors.save({"a": x[:2], "b": x[2:]}))
        self.assertEqual((again["a"].tolist(), again["b"].tolist()), ([0, 1], [2, 3]))
        with self.assertRaisesRegex(RuntimeError, "Some tensors share memory"):
            safetensors.save({"a": x[:3], "b": x[2:]})
        for tensors, metadata in (({3: x}, None), ({"a": x}, {"a": 3})):
            with self.assertRaisesRegex(TypeError, "'int' object is not an instance of 'str'"):
                safetensors.save(tensors, metadata)

    def test_bytes_are_those_of_the_safetensors_package(self):
        """Written by safetensors 0.8.0: save({"b": ones(2), "a": ones(1, dtype=int64)}, {"k": "v"})."""
        made = safetensors.save({"b": tenon.ones(2), "a": tenon.ones(1, dtype=tenon.int64)}, {"k": "v"})
        self.assertEqual(made, struct.pack("<Q", 136) + b'{"__metadata__":{"k":"v"},"a":{"dtype":"I64","shape":[1],'
                         b'"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}   '
                         + struct.pack("<qff", 1, 1.0, 1.0))

    def test_models_with_tied_weights(self):
        model = tenon.nn.Sequential(tenon.nn.Linear(2, 2), tenon.nn.Linear(2, 2))
        model[1].weight = model[0].weight
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.safetensors")
            safetensors.save_model(model, path)
            other = tenon.nn.Sequential(tenon.nn.Linear(2, 2), tenon.nn.Linear(2, 2))
            other[1].weight = other[0].weight
            safetensors.load_model(other, path)
            self.assertEqual(other[1].weight.tolist(), model[0].weight.tolist())

    def test_headers_that_lie(self):
        def file(header, data=b"\0" * 16):
            text = header if isinstance(header, bytes) else json.dumps(header).encode()
            return struct.pack("<Q", len(text)) + text + data

        entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
        self.assertEqual(safetensors.load(file({"a": entry}))["a"].tolist(), [0] * 4)
        self.assertEqual(safetensors.load(file({"a": {**entry, "more": 1}}))["a"].tolist(), [0] * 4)
        for text, bad in (("incomplete metadata, file not fully covered", file({"a": entry}, b"\0" * 17)),
                          ("invalid offset for tensor `b`", file({"a": entry, "b": entry})),
                          ("header too small", b"abc"), ("missing field `shape`", file({"a": {"dtype": "F32"}}))):
            with self.assertRaisesRegex(safetensors.SafetensorError, "Error while deserializing: .*" + text):
                safetensors.load(bad)
        for bad in (b"", b"1234", struct.pack("<Q", 1 << 63) + b"{}", struct.pack("<Q", 200_000_000),
                    struct.pack("<Q", 10) + b"{}", file(b"{"), file(b"[]"), file(b"\xff\xfe{}"), file({}),
                    file(b"{" * 100_000), file(b'{"a":' * 100_000),
                    file({"a": {**entry, "shape": [5]}}), file({"a": {**entry, "shape": [-4]}}),
                    file({"a": {**entry, "shape": [1 << 62, 4]}}), file({"a": {**entry, "shape": [2.0, 2]}}),
                    file({"a": {**entry, "shape": "4"}}), file({"a": {**entry, "dtype": "F99"}}),
                    file({"a": {**entry, "data_offsets": [0, 32]}}), file({"a": {**entry, "data_offsets": [16, 0]}}),
                    file({"a": {**entry, "data_offsets": [-16, 0]}}),
                    file({"a": entry, "b": entry}), file({"a": entry}, b"\0" * 15), file({"a": entry}, b"\0" * 17),
                    file({"a": None}), file({"__metadata__": {"a": 1}, "a": entry}),
                    file(b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},'
                         b'"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}')):
            with self.assertRaises(safetensors.SafetensorError, msg=str(bad[:80])):
                safetensors.load(bad)


class Archives(unittest.TestCase):
    """What our writer of archives makes, as Python's zipfile reads it."""

    def read(self, data):
        import zipfile

        archive = zipfile.ZipFile(io.BytesIO(data))
        self.assertIsNone(archive.testzip())
        return archive

    def test_records_are_aligned_and_whole(self):
        from tenon._zip_writer import ZipWriter

        records = {"a/one": b"xyz", "a/none": b"", "a/h\u00f6": bytes(range(256)) * 40, "a/last": b"1"}
        file = io.BytesIO(b"before")
        file.seek(6)
        writer = ZipWriter(file, 64)
        for name, data in records.items():
            writer.write(name, memoryview(data))
        writer.close()
        data = file.getvalue()
        archive = self.read(data)
        self.assertEqual({name: archive.read(name) for name in archive.namelist()}, records)
        for info in archive.infolist():
            names, extra = (int.from_bytes(data[info.header_offset + at:info.header_offset + at + 2], "little") for at in (26, 28))
            self.assertEqual((info.header_offset + 30 + names + extra) % 64, 0)

    def test_more_records_than_sixteen_bits_count(self):
        from tenon._zip_writer import ZipWriter

        file = io.BytesIO()
        writer = ZipWriter(file, 1)
        for i in range(66000):
            writer.write(str(i), b"")
        writer.close()
        self.assertEqual(len(self.read(file.getvalue()).namelist()), 66000)

    def test_tensors_of_every_form_come_back(self):
        base = tenon.arange(24.0).reshape(4, 6)
        odd = tenon.ones(2)
        odd.note = "kept"
        given = {"base": base, "again": base, "view": base[1:, ::2], "turned": base.t(), "scalar": tenon.tensor(3),
                 "none": tenon.empty(0, 5), "many": tenon.ones(1, 2, 1, 2, 1), "grad": tenon.ones(2, requires_grad=True),
                 "large": tenon.ones(300, 300), "cpu": "cpu", "storage": "storage", "half": tenon.ones(2).half(), "odd": odd,
                 "bits": tenon.tensor([1, 2], dtype=tenon.uint16), "parameter": tenon.nn.Parameter(tenon.ones(2))}
        for options in ({}, {"pickle_protocol": 4}):
            file = io.BytesIO()
            tenon.save(given, file, **options)
            file.seek(0)
            got = tenon.load(file, weights_only=not options)
            self.assertEqual(list(got), list(given))
            for name, one in given.items():
                two = got[name]
                if not isinstance(one, tenon.Tensor):
                    self.assertEqual(one, two)
                    continue
                self.assertEqual([getattr(two, x) for x in ("dtype", "shape", "requires_grad")],
                                 [getattr(one, x) for x in ("dtype", "shape", "requires_grad")])
                self.assertEqual((type(two), two.stride(), two.storage_offset(), two.tolist()),
                                 (type(one), one.stride(), one.storage_offset(), one.tolist()))
            self.assertIs(got["base"], got["again"])
            self.assertEqual(got["view"].untyped_storage().data_ptr(), got["base"].untyped_storage().data_ptr())
            self.assertEqual(got["odd"].note, "kept")


class Switches(unittest.TestCase):
    def test_files_without_check_sums_are_written_and_read(self):
        self.assertIs(serialization.get_crc32_options(), True)
        serialization.set_crc32_options(False)
        try:
            self.assertIs(serialization.get_crc32_options(), False)
            file = io.BytesIO()
            tenon.save({"a": tenon.ones(3)}, file)
        finally:
            serialization.set_crc32_options(True)
        self.assertEqual({record.CRC for record in zipfile.ZipFile(file).infolist()}, {0})
        file.seek(0)
        self.assertEqual(tenon.load(file)["a"].tolist(), [1.0] * 3)

    def test_skip_data_leaves_room_and_reads_nothing(self):
        with tenon._subclasses.FakeTensorMode():
            fake = tenon.ones(5)
        file, whole = io.BytesIO(), io.BytesIO()
        tenon.save({"a": tenon.ones(300)}, whole)
        with serialization.skip_data():
            tenon.save({"a": tenon.ones(300)}, file)
        self.assertEqual(len(file.getvalue()), len(whole.getvalue()))
        file.seek(0)
        self.assertEqual(tenon.load(file)["a"].tolist(), [0.0] * 300)
        whole.seek(0)
        with serialization.skip_data():
            self.assertEqual(tenon.load(whole)["a"].shape, (300,))
            with self.assertRaisesRegex(RuntimeError, "^Cannot use skip_data=True with _use_new_zipfile_serialization=False$"):
                tenon.save(tenon.ones(2), io.BytesIO(), _use_new_zipfile_serialization=False)
        file = io.BytesIO()
        with serialization.skip_data(materialize_fake_tensors=True):
            tenon.save(fake, file)
        file.seek(0)
        self.assertEqual(tenon.load(file).shape, (5,))

    def test_a_pickle_module_of_ones_own_reads_and_writes(self):
        class Renaming(pickle.Unpickler):
            """Finds classes that have moved, as scripts for old checkpoints do."""

            def find_class(self, module, name):
                return Point if module == "moved.away" else super().find_class(module, name)

        class Counting(pickle.Pickler):
            points = 0

            def reducer_override(self, obj):
                Counting.points += isinstance(obj, Point)
                return NotImplemented

        module = types.SimpleNamespace(Unpickler=Renaming, Pickler=Counting, load=pickle.load, dump=pickle.dump, dumps=pickle.dumps)
        point = Point(tenon.arange(3.))
        for new in (True, False):
            file = io.BytesIO()
            Counting.points = 0
            tenon.save({"p": point, "n": 3}, file, pickle_module=module, _use_new_zipfile_serialization=new)
            self.assertEqual(Counting.points, 1)
            for data in (file.getvalue(), file.getvalue().replace(b"c__main__\nPoint", b"cmoved.away\nPoint")):
                if new and b"moved" in data:
                    continue  # its sums of bytes are checked
                made = tenon.load(io.BytesIO(data), pickle_module=module, weights_only=False)
                self.assertEqual((type(made["p"]), made["p"].x.tolist(), made["n"]), (Point, [0, 1, 2], 3))

        class Refusing(pickle.Unpickler):
            def load(self):
                raise RuntimeError("mine")

        for new in (True, False):
            file = io.BytesIO()
            tenon.save(tenon.ones(2), file, _use_new_zipfile_serialization=new)
            file.seek(0)
            with self.assertRaisesRegex(RuntimeError, "mine"):
                tenon.load(file, pickle_module=types.SimpleNamespace(Unpickler=Refusing), weights_only=False)

    def test_a_file_is_read_as_fake_tensors_where_the_mode_is_on(self):
        from tenon._subclasses.fake_tensor import FakeTensor, FakeTensorMode
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pt")
            base = tenon.arange(6.)
            for new in (True, False):
                tenon.save({"a": base[2:], "b": base.view(2, 3).t(), "c": tenon.nn.Parameter(tenon.ones(2)), "d": tenon.tensor([True])}, path,
                           _use_new_zipfile_serialization=new)
                for options in ({}, {"weights_only": False}, {"map_location": "cuda"}) + (({"mmap": True},) if new else ()):
                    with FakeTensorMode():
                        made = tenon.load(path, **options)
                    for t in made.values():
                        self.assertIsInstance(t, FakeTensor)
                        self.assertEqual(t.device.type, options.get("map_location", "cpu"))
                    self.assertEqual((made["a"].shape, made["a"].storage_offset(), made["b"].stride(), made["c"].requires_grad, made["d"].dtype),
                                     ((4,), 2, (1, 3), True, tenon.bool))
                self.assertEqual(tenon.load(path)["a"].tolist(), [2, 3, 4, 5])

    def test_the_order_of_bytes_of_files_that_do_not_say_it(self):
        from tenon.serialization import LoadEndianness, get_default_load_endianness, set_default_load_endianness
        file = io.BytesIO(saved(tenon.tensor([1., 2.])).replace(b"/byteorder", b"/bytefolder"[:10]))
        self.assertIsNone(get_default_load_endianness())
        try:
            for order, wanted in ((LoadEndianness.LITTLE, [1, 2]), (LoadEndianness.NATIVE, [1, 2] if sys.byteorder == "little" else None),
                                  (LoadEndianness.BIG, tenon.tensor([32831, 64], dtype=tenon.int32).view(tenon.float32).tolist())):
                set_default_load_endianness(order)
                file.seek(0)
                if wanted:
                    self.assertEqual(tenon.load(file).tolist(), wanted)
        finally:
            set_default_load_endianness(None)
        with self.assertRaisesRegex(TypeError, "Invalid argument type in function set_default_load_endianness"):
            set_default_load_endianness("big")

    def test_files_can_be_mapped_so_that_writes_reach_them(self):
        import mmap

        from tenon.serialization import get_default_mmap_options, set_default_mmap_options
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pt")
            tenon.save(tenon.zeros(3), path)
            self.assertEqual(get_default_mmap_options(), mmap.MAP_PRIVATE)
            tenon.load(path, mmap=True).fill_(7)
            self.assertEqual(tenon.load(path).tolist(), [0, 0, 0])
            with set_default_mmap_options(mmap.MAP_SHARED):
                self.assertEqual(get_default_mmap_options(), mmap.MAP_SHARED)
                tenon.load(path, mmap=True).fill_(7)
            self.assertEqual(get_default_mmap_options(), mmap.MAP_PRIVATE)
            self.assertEqual(tenon.load(path).tolist(), [7, 7, 7])
        with self.assertRaisesRegex(ValueError, "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED"):
            set_default_mmap_options(99)

    def test_a_storage_becomes_one_of_another_type(self):
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            storage = tenon.tensor([1.5, 2.5]).storage()
            for kind in ("torch.DoubleStorage", tenon.DoubleStorage):
                self.assertEqual((storage.type(kind).type(), storage.type(kind).tolist()), ("torch.DoubleStorage", [1.5, 2.5]))
            self.assertIs(storage.type("torch.FloatStorage"), storage)


class Fuzz(unittest.TestCase):
    """Bytes changed at random: an exception or a result, never a crash."""

    ROUNDS = int(os.environ.get("TENON_FUZZ_ROUNDS", "250"))

    def mutate(self, rng, data):
        data = bytearray(data)
        for unused in range(rng.choice([1, 1, 2, 4, 16])):
            how = rng.random()
            at = rng.randrange(len(data)) if data else 0
            if how < 0.5 and data:
                data[at] = rng.randrange(256)
            elif how < 0.6 and data:
                data[at] ^= 1 << rng.randrange(8)
            elif how < 0.75:
                del data[at:at + rng.choice([1, 4, 64, 1000])]
            elif how < 0.9:
                data[at:at] = bytes(rng.randrange(256) for unused in range(rng.choice([1, 4, 9])))
            else:
                data[at:at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0"])
        return bytes(data)

    def attack(self, data, read, seed):
        rng = random.Random(seed)
        refused = 0
        for unused in range(self.ROUNDS):
            try:
                read(self.mutate(rng, data))
            except ORDINARY:
                refused += 1
        self.assertGreater(refused, 0)

    def test_zip_files(self):
        with open(golden("zip.pt"), "rb") as f:
            self.attack(f.read(), lambda b: tenon.load(io.BytesIO(b)), 1)

    def test_pickles_inside(self):
        import zipfile

        with zipfile.ZipFile(golden("zip.pt")) as z:
            records = {i.filename: z.read(i) for i in z.infolist()}
        name = next(n for n in records if n.endswith("data.pkl"))

        def read(body):
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as z:
                for n, data in records.items():
                    z.writestr(n, body if n == name else data)
            tenon.load(out)

        self.attack(records[name], read, 2)

    def test_legacy_files(self):
        with open(golden("legacy.pt"), "rb") as f:
            self.attack(f.read(), lambda b: tenon.load(io.BytesIO(b)), 3)

    def test_safetensors(self):
        data = safetensors.save({"a": tenon.arange(4.), "b": tenon.ones(2, 3, dtype=tenon.int64)})
        self.attack(data, safetensors.load, 4)


class Slotted(tenon.Tensor):
    """A tensor that holds another in a slot."""

    __slots__ = ["elem"]

    @staticmethod
    def __new__(cls, elem):
        made = tenon.Tensor._make_subclass(cls, elem.to("meta"), False)
        made.elem = elem
        return made


class Telling(Slotted):
    def __getstate__(self):
        return ("told", self.elem, self.__dict__)

    def __setstate__(self, state):
        marker, self.elem, self.__dict__ = state
        self.marker = marker


class Wrapper(tenon.Tensor):
    """A tensor without elements that answers for another one."""

    @staticmethod
    def __new__(cls, elem):
        made = tenon.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype, requires_grad=True)
        made.elem = elem
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = [a.elem if isinstance(a, cls) else a for a in args]
        return cls(func(*inner, **(kwargs or {})))


def greet(name):
    return "hello " + name


class Greeting:
    def __reduce__(self):
        return (greet, ("you",))


class Measured:
    def __reduce__(self):
        return (len, ([1, 2, 3],))


class Keyed:
    def __reduce__(self):
        return (dict.fromkeys, (("a",), 1))


class Holder:
    class Inner:
        pass


class Allowed(unittest.TestCase):
    """What a class of tensors keeps beside the elements, and what a restricted load may call."""

    def through(self, obj, allowed, **how):
        file = io.BytesIO()
        tenon.save(obj, file)
        file.seek(0)
        with serialization.safe_globals(allowed):
            return tenon.load(file, **how)

    def test_slots_and_states(self):
        import copy
        for kind in (Slotted, Telling):
            t = kind(tenon.arange(3.0))
            t.note = "kept"
            for new in (self.through(t, [kind]), copy.deepcopy(t)):
                self.assertIs(type(new), kind)
                self.assertEqual((new.elem.tolist(), new.note), ([0.0, 1.0, 2.0], "kept"))
        self.assertEqual(self.through(Telling(tenon.ones(1)), [Telling]).marker, "told")

    def test_wrappers(self):
        new = self.through(Wrapper(tenon.arange(3.0)), [Wrapper])
        self.assertIs(type(new), Wrapper)
        self.assertEqual((new.elem.tolist(), new.shape, new.requires_grad), ([0.0, 1.0, 2.0], (3,), True))
        with self.assertRaisesRegex(pickle.UnpicklingError, "Wrapper was not an allowed global"):
            self.through(Wrapper(tenon.ones(1)), [])

    def test_functions_of_python_itself(self):
        self.assertEqual(self.through(Greeting(), [greet]), "hello you")
        self.assertEqual(self.through(Measured(), [len]), 3)
        self.assertIsInstance(self.through(Holder.Inner(), [getattr, Holder, Holder.Inner]), Holder.Inner)
        with self.assertRaisesRegex(pickle.UnpicklingError, "GLOBAL len was not an allowed global"):
            self.through(Measured(), [])

    def test_methods(self):
        self.assertEqual(self.through(Keyed(), [getattr, dict, dict.fromkeys]), {"a": 1})
        with self.assertRaisesRegex(pickle.UnpicklingError, "unrecognized function fromkeys"):
            self.through(Keyed(), [getattr, dict])

    def test_the_environment_may_insist(self):
        def under(name, **how):
            os.environ[name] = "1"
            try:
                return self.through(Measured(), [], **how)
            finally:
                del os.environ[name]

        with self.assertRaisesRegex(pickle.UnpicklingError, "Weights only load failed"):
            under("TORCH_FORCE_WEIGHTS_ONLY_LOAD", weights_only=False)
        with self.assertWarnsRegex(UserWarning, "forcing weights_only=False"):
            self.assertEqual(under("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"), 3)
        with self.assertRaisesRegex(pickle.UnpicklingError, "Weights only load failed"):
            under("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", weights_only=True)


if __name__ == "__main__":
    harness.main()
