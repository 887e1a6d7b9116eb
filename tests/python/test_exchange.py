# SPDX-License-Identifier: MIT
"""Memory shared with others: NumPy, buffers, DLPack, and the array-API namespace."""

import array
import ctypes
import gc
import subprocess
import sys
import unittest
import warnings

import harness
import tenon

try:
    import numpy as np
except ImportError:
    np = None


@unittest.skipIf(np is None, "there is no numpy")
class NumPy(unittest.TestCase):
    def test_both_ways_share_memory(self):
        a = np.arange(6, dtype=np.float32).reshape(2, 3)
        t = tenon.from_numpy(a)
        t[0, 0] = 9
        self.assertEqual(a[0, 0], 9)
        b = t.numpy()
        b[1, 1] = 7
        self.assertEqual(t[1, 1].item(), 7)
        self.assertEqual(b.__array_interface__["data"][0], t.data_ptr())

    def test_without_recording_a_tensor_that_requires_grad_is_an_array(self):
        w = tenon.ones(3, requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "Can't call numpy"):
            w.numpy()
        for mode in (tenon.no_grad, tenon.inference_mode):
            with mode():
                self.assertEqual(w.numpy().__array_interface__["data"][0], w.data_ptr())
                self.assertEqual(np.asarray(w).tolist(), [1, 1, 1])

    def test_each_keeps_the_other_alive(self):
        a = np.arange(100_000, dtype=np.float64)
        t = tenon.from_numpy(a)
        del a
        gc.collect()
        self.assertEqual(t.sum().item(), 100_000 * 99_999 / 2)
        b = t.numpy()
        del t
        gc.collect()
        self.assertEqual(b.sum(), 100_000 * 99_999 / 2)

    def test_an_array_cannot_move_while_a_tensor_uses_it(self):
        a = np.arange(4.)
        t = tenon.from_numpy(a)
        with self.assertRaises(ValueError):
            a.resize(400)
        self.assertEqual(t.tolist(), [0, 1, 2, 3])

    def test_memory_that_is_not_aligned_is_copied_where_that_cannot_be_seen(self):
        raw = b"\x07" + np.arange(4, dtype=np.float32).tobytes()  # a file with one byte before its numbers
        for fixed in (np.frombuffer(raw, np.float32, offset=1), np.frombuffer(raw, np.float32, offset=1).reshape(2, 2).T):
            for make in (tenon.from_numpy, tenon.tensor, tenon.as_tensor, tenon.asarray, tenon.Tensor, tenon.ones(1).new_tensor):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # it is read-only
                    self.assertEqual(make(fixed).tolist(), fixed.tolist())
            t = tenon.zeros(fixed.shape)
            t[:] = fixed
            self.assertEqual(t.tolist(), fixed.tolist())
            self.assertEqual(tenon.utils.data.default_collate([fixed, fixed])[1].tolist(), fixed.tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(tenon.frombuffer(raw, dtype=tenon.float32, offset=1).tolist(), [0, 1, 2, 3])
            self.assertEqual(tenon.frombuffer(raw, dtype=tenon.float32, offset=1, count=2).tolist(), [0, 1])
        written = np.frombuffer(bytearray(raw), np.float32, offset=1)
        self.assertEqual(tenon.tensor(written).tolist(), [0, 1, 2, 3])
        with self.assertRaisesRegex(ValueError, "not aligned for its dtype. Copy the numpy array"):
            tenon.from_numpy(written)  # writes could not be seen on both sides
        with self.assertRaisesRegex(RuntimeError, "not aligned"):
            tenon.frombuffer(bytearray(raw), dtype=tenon.float32, offset=1)
        self.assertEqual(tenon.from_numpy(written.copy()).tolist(), [0, 1, 2, 3])

    def test_the_array_is_given_back_when_the_tensor_goes(self):
        a = np.arange(4.)
        before = sys.getrefcount(a)
        views = [tenon.from_numpy(a)[1:] for unused in range(10)]
        del views
        gc.collect()
        self.assertEqual(sys.getrefcount(a), before)

    def test_strides_are_the_arrays_also_where_there_is_one_element_or_none(self):
        whole = np.arange(12.0).reshape(3, 4)
        for a, strides in [(whole[:1, ::2], (4, 2)), (whole[1:1], (4, 1)), (whole[:, 1:2].T, (1, 4)), (np.broadcast_to(whole[0, :1], (3, 1)), (0, 0))]:
            self.assertEqual(tenon.from_numpy(a).stride(), strides)
        for sizes in ((2, 0), (0, 3), (2, 0, 3)):
            a = np.empty(sizes)
            self.assertEqual(tenon.from_numpy(a).stride(), tuple(step // 8 for step in a.strides))

    def test_strides_travel(self):
        a = np.arange(24.).reshape(2, 3, 4)
        t = tenon.from_numpy(a.transpose(2, 0, 1)[::2])
        self.assertEqual(t.tolist(), a.transpose(2, 0, 1)[::2].tolist())
        self.assertEqual(tenon.arange(24.).reshape(2, 3, 4).permute(2, 0, 1).numpy().tolist(),
                         np.arange(24.).reshape(2, 3, 4).transpose(2, 0, 1).tolist())

    def test_memory_that_was_given_away_stays(self):
        """Whatever the tensor does afterwards. The values were freed, and others' in their place."""
        changes = {
            "set_": lambda x: x.set_(tenon.zeros(3)), "data": lambda x: setattr(x, "data", tenon.zeros(3)),
            "share_memory_": lambda x: x.share_memory_(), "to nothing": lambda x: x.set_()}
        for way in (lambda x: x.numpy(), np.asarray, memoryview, np.from_dlpack, lambda x: x.view(10, 100).numpy()):
            for name, change in changes.items():
                with self.subTest(name):
                    x = tenon.ones(1000)
                    given = way(x)
                    change(x)
                    others = [np.full(1000, 7, np.float32) for _ in range(50)] + [tenon.full((1000,), 7.) for _ in range(50)]
                    self.assertEqual(np.asarray(given).sum(), 1000)
                    del others
            x = tenon.ones(1000)
            given = way(x)
            with self.assertRaisesRegex(RuntimeError, "Trying to resize"):
                x.resize_(10**6)
            self.assertEqual((np.asarray(given).sum(), x.shape), (1000, (1000,)))
        layer = tenon.nn.Linear(1000, 1).requires_grad_(False)
        layer.weight.fill_(1)
        weight = layer.weight.numpy()
        layer.double()
        others = [np.full((1, 1000), 7, np.float32) for _ in range(50)] + [tenon.full((1, 1000), 7.) for _ in range(50)]
        self.assertEqual(weight.sum(), 1000)
        del others

    def test_every_dtype_that_both_have(self):
        for name in "uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 bool".split():
            a = np.array([0, 1, 2]).astype(name)
            t = tenon.from_numpy(a)
            self.assertEqual(str(t.dtype).rsplit(".", 1)[-1], name)
            self.assertEqual(t.numpy().dtype, a.dtype)
            self.assertEqual(np.asarray(t).tolist(), a.tolist())

    def test_numpy_functions_of_tensors_give_tensors(self):
        x = tenon.tensor([0.0, 1.0])
        self.assertIsInstance(np.exp(x), tenon.Tensor)
        self.assertEqual(np.add(x, 1).tolist(), [1, 2])
        self.assertEqual((np.float64(2) * x).tolist(), [0, 2])

    def test_arrays_are_operands(self):
        x = tenon.tensor([0.0, 1.0], requires_grad=True)
        a = np.array([2.0, 1.0], dtype=np.float32)
        for y in (x * a, a * x, x + a, a - x):
            self.assertIsInstance(y, tenon.Tensor)
            self.assertTrue(y.requires_grad)
        self.assertEqual((a - x).tolist(), [2, 0])
        self.assertEqual((x == a).tolist(), [False, True])
        self.assertEqual((a == x).tolist(), [False, True])

    def test_copy_says_whether_there_is_one(self):
        x = tenon.arange(3.)
        self.assertEqual(x.__array__().__array_interface__["data"][0], x.data_ptr())
        self.assertNotEqual(x.__array__(copy=True).__array_interface__["data"][0], x.data_ptr())
        self.assertEqual(x.__array__(dtype="int64").tolist(), [0, 1, 2])
        with self.assertRaises(ValueError):
            x.__array__(dtype="int64", copy=False)

    def test_sharing_read_only_memory_warns_once_in_a_process(self):
        for call, times in (("from_numpy(a)", 1), ("as_tensor(a)", 1), ("as_tensor(a, dtype=tenon.float32)", 1), ("tensor(a)", 0)):
            code = ("import numpy, tenon, warnings\na = numpy.ones(2); a.flags.writeable = False\n"
                    "with warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
                    "    tenon.%s; tenon.%s\nprint(sum('not writable' in str(w.message) for w in seen))" % (call, call))
            said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            self.assertEqual(said.stdout, "%d\n" % times, said.stderr)

    def test_importing_tenon_does_not_import_numpy(self):
        code = "import sys, tenon; tenon.ones(2).tolist(); sys.exit('numpy' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, 0)


class Buffers(unittest.TestCase):
    def test_a_tensor_has_a_buffer(self):
        x = tenon.arange(6, dtype=tenon.int32).reshape(2, 3)
        m = memoryview(x)
        self.assertEqual((m.shape, m.format, m.strides, m.readonly), ((2, 3), "i", (12, 4), False))
        m[1, 2] = 40
        self.assertEqual(x[1, 2].item(), 40)
        del x
        gc.collect()
        self.assertEqual(m.tolist(), [[0, 1, 2], [3, 4, 40]])

    def test_what_has_none_says_so(self):
        for t in (tenon.ones(2, requires_grad=True), tenon.ones(2, dtype=tenon.bfloat16),
                  tenon.ones(2, device="meta")):
            with self.assertRaises(BufferError):
                memoryview(t)

    def test_contiguity_is_asked_for(self):
        t = tenon.arange(6.).reshape(2, 3)[:, :2]
        self.assertFalse(memoryview(t).contiguous)
        with self.assertRaises(Exception):
            ctypes.c_char.from_buffer(t)

    def test_frombuffer_keeps_what_it_reads(self):
        data = bytearray(b"\0\0\x80?\0\0\0@")
        t = tenon.frombuffer(data, dtype=tenon.float32)
        self.assertEqual(t.tolist(), [1, 2])
        with self.assertRaises(BufferError):
            data.append(0)
        del t
        gc.collect()
        data.append(0)
        a = array.array("d", [1.5, 2.5])
        u = tenon.frombuffer(a, dtype=tenon.float64)
        a[0] = 9
        self.assertEqual(u.tolist(), [9, 2.5])


class DLPack(unittest.TestCase):
    def test_a_round_trip_shares_memory(self):
        x = tenon.arange(6.).reshape(2, 3).t()
        y = tenon.from_dlpack(x)
        self.assertEqual((y.shape, y.stride(), y.data_ptr()), (x.shape, x.stride(), x.data_ptr()))
        z = tenon.utils.dlpack.from_dlpack(tenon.utils.dlpack.to_dlpack(x))
        z[0, 0] = 5
        self.assertEqual(x[0, 0].item(), 5)
        del x, y
        gc.collect()
        self.assertEqual(z[0, 0].item(), 5)

    def test_capsules_of_both_kinds(self):
        x = tenon.arange(3.)
        self.assertIn('"dltensor"', repr(x.__dlpack__()))
        self.assertIn('"dltensor_versioned"', repr(x.__dlpack__(max_version=(1, 0))))
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        copied = tenon.from_dlpack(x.__dlpack__(max_version=(1, 0), copy=True))
        self.assertNotEqual(copied.data_ptr(), x.data_ptr())

    def test_a_capsule_is_taken_once(self):
        c = tenon.arange(3.).__dlpack__()
        tenon.from_dlpack(c)
        with self.assertRaisesRegex(RuntimeError, "consumed only once"):
            tenon.from_dlpack(c)
        with self.assertRaisesRegex(RuntimeError, r"from_dlpack received an invalid capsule.*\(it is <class 'int'>\)"):
            tenon.from_dlpack(3)

    def test_what_cannot_be_described_is_refused(self):
        with self.assertRaises(BufferError):
            tenon.ones(2, requires_grad=True).__dlpack__()
        with self.assertRaises(Exception):
            tenon.ones(2, device="meta").__dlpack__()
        with self.assertRaises(BufferError):
            tenon.ones(2).__dlpack__(dl_device=(2, 0))

    @unittest.skipIf(np is None, "there is no numpy")
    def test_numpy_speaks_it(self):
        x = tenon.arange(4.)
        a = np.from_dlpack(x)
        x[1] = 7
        self.assertEqual(a.tolist(), [0, 7, 2, 3])
        b = np.arange(3.)
        y = tenon.from_dlpack(b)
        b[0] = 5
        self.assertEqual(y.tolist(), [5, 1, 2])

    def test_lying_capsules_are_refused(self):
        class Tensor(ctypes.Structure):
            _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                        ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                        ("byte_offset", ctypes.c_uint64)]

        class Managed(ctypes.Structure):
            _fields_ = [("t", Tensor), ("ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        data = (ctypes.c_float * 4)(1, 2, 3, 4)
        shape = (ctypes.c_int64 * 1)(4)
        good = dict(data=ctypes.addressof(data), device_type=1, ndim=1, code=2, bits=32, lanes=1,
                    shape=ctypes.addressof(shape))
        m = Managed(t=Tensor(**good))
        self.assertEqual(tenon.from_dlpack(new(ctypes.addressof(m), b"dltensor", None)).tolist(),
                         [1, 2, 3, 4])
        minus = (ctypes.c_int64 * 1)(-4)
        for lie in (dict(ndim=-1), dict(ndim=1000), dict(bits=7), dict(code=99), dict(lanes=4),
                    dict(shape=None), dict(shape=ctypes.addressof(minus)), dict(device_type=77),
                    dict(data=None)):
            m = Managed(t=Tensor(**{**good, **lie}))
            with self.assertRaises(Exception, msg=str(lie)):
                tenon.from_dlpack(new(ctypes.addressof(m), b"dltensor", None))

    def test_the_c_exchange_interface(self):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype = ctypes.c_void_p
        get.argtypes = [ctypes.py_object, ctypes.c_char_p]
        at = get(tenon.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
        words = (ctypes.c_uint32 * 2).from_address(at)
        self.assertEqual(words[0], 1)
        table = (ctypes.c_void_p * 7).from_address(at)
        self.assertIsNone(table[1])
        self.assertTrue(all(table[i] for i in range(2, 7)))
        from_object = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object,
                                        ctypes.POINTER(ctypes.c_void_p))(table[3])
        to_object = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p,
                                      ctypes.POINTER(ctypes.py_object))(table[4])
        x = tenon.arange(3.)
        managed, out = ctypes.c_void_p(), ctypes.py_object()
        self.assertEqual(from_object(x, ctypes.byref(managed)), 0)
        self.assertEqual(to_object(managed, ctypes.byref(out)), 0)
        out.value[0] = 8
        self.assertEqual(x.tolist(), [8, 1, 2])
        with self.assertRaises(TypeError):
            from_object(3, ctypes.byref(managed))


class ArrayAPI(unittest.TestCase):
    def test_the_namespace_has_the_standard_s_names(self):
        xp = tenon.ones(2).__array_namespace__()
        x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual(xp.sum(x, axis=0).tolist(), [4, 6])
        self.assertEqual(xp.concat([x, x], axis=1).shape, (2, 4))
        self.assertEqual(xp.permute_dims(x, (1, 0)).tolist(), [[1, 3], [2, 4]])
        self.assertEqual(xp.astype(x, xp.int64).dtype, tenon.int64)
        self.assertEqual(xp.max(x).item(), 4)
        self.assertEqual(xp.any(x > 3, axis=1).tolist(), [False, True])
        self.assertEqual(xp.multiply(x, x).tolist(), [[1, 4], [9, 16]])
        self.assertEqual(xp.matrix_transpose(x).tolist(), [[1, 3], [2, 4]])
        self.assertEqual(xp.expand_dims(x, axis=0).shape, (1, 2, 2))
        self.assertTrue(xp.isdtype(x.dtype, "real floating"))
        self.assertFalse(xp.isdtype(x.dtype, ("integral", "bool")))
        self.assertEqual(xp.cumulative_sum(xp.arange(3), include_initial=True).tolist(), [0, 0, 1, 3])
        with self.assertRaises(AttributeError):
            xp.no_such_function
        with self.assertRaises(ValueError):
            x.__array_namespace__(api_version="1999.01")


@unittest.skipIf(np is None, "numpy is not installed")
class Namespaces(unittest.TestCase):
    """The standard's linalg and fft: NumPy's values."""

    def test_linear_algebra_is_numpys(self):
        xp = tenon.ones(1).__array_namespace__()
        a = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]])
        x, b = tenon.tensor(a), tenon.tensor([1.0, 2.0, 3.0], dtype=tenon.float64)
        for name, args, options, wanted in (
                ("cholesky", (x,), {}, np.linalg.cholesky(a)),
                ("cholesky", (x,), {"upper": True}, np.linalg.cholesky(a).T), ("det", (x,), {}, np.linalg.det(a)),
                ("diagonal", (x,), {"offset": 1}, np.diagonal(a, 1)), ("inv", (x,), {}, np.linalg.inv(a)),
                ("eigvalsh", (x,), {}, np.linalg.eigvalsh(a)), ("matrix_norm", (x,), {}, np.linalg.norm(a)),
                ("matrix_norm", (x,), {"ord": 1}, np.linalg.norm(a, 1)),
                ("matrix_power", (x, 3), {}, np.linalg.matrix_power(a, 3)), ("matrix_rank", (x,), {}, 3),
                ("matrix_transpose", (x,), {}, a.T), ("outer", (b, b), {}, np.outer(b.numpy(), b.numpy())),
                ("pinv", (x,), {}, np.linalg.pinv(a)), ("solve", (x, b), {}, np.linalg.solve(a, b.numpy())),
                ("solve", (x, x), {}, np.eye(3)), ("svdvals", (x,), {}, np.linalg.svd(a, compute_uv=False)),
                ("trace", (x,), {"offset": 1}, np.trace(a, 1)), ("vecdot", (b, b), {}, 14),
                ("vector_norm", (x,), {}, np.linalg.norm(a)),
                ("vector_norm", (x,), {"axis": 0, "ord": 1, "keepdims": True}, abs(a).sum(0, keepdims=True)),
                ("cross", (b, b + 1), {}, np.cross(b.numpy(), b.numpy() + 1))):
            with self.subTest(name):
                np.testing.assert_allclose(getattr(xp.linalg, name)(*args, **options).numpy(), wanted, atol=1e-12)
        q, r = xp.linalg.qr(x)
        np.testing.assert_allclose((q @ r).numpy(), a, atol=1e-12)
        u, s, v = xp.linalg.svd(x, full_matrices=False)
        np.testing.assert_allclose((u * s @ v).numpy(), a, atol=1e-12)

    def test_fourier_transforms_are_numpys(self):
        xp = tenon.ones(1).__array_namespace__()
        a = np.arange(12.0).reshape(3, 4) ** 0.5
        x = tenon.tensor(a)
        for name, options, given in (("fft", {"axis": 0}, {"axis": 0}), ("ifft", {"n": 6}, {"n": 6}), ("rfft", {}, {}),
                                     ("fftn", {"axes": (0, 1)}, {"axes": (0, 1)}), ("fftshift", {}, {}),
                                     ("ihfft", {"norm": "ortho"}, {"norm": "ortho"})):
            np.testing.assert_allclose(getattr(xp.fft, name)(x, **options).numpy(), getattr(np.fft, name)(a, **given),
                                          atol=1e-12)
        np.testing.assert_allclose(xp.fft.fftfreq(5, d=0.5).numpy(), np.fft.fftfreq(5, 0.5), atol=1e-6)
        np.testing.assert_allclose(xp.fft.irfft(xp.fft.rfft(x)).numpy(), a, atol=1e-12)


class Exporter:
    """An object of another library, which has nothing but DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **words):
        return self.tensor.__dlpack__(**words)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Exporters(unittest.TestCase):
    def test_tensors_are_made_of_what_has_dlpack(self):
        x = tenon.arange(4.0)
        for made in (tenon.tensor(Exporter(x)), tenon.as_tensor(Exporter(x)), tenon.tensor(Exporter(x), dtype=tenon.int64)):
            self.assertEqual(made.tolist(), x.tolist())
            self.assertNotEqual(made.data_ptr(), x.data_ptr())
        self.assertEqual(tenon.asarray(x.__dlpack__()).data_ptr(), x.data_ptr())

    def test_strides_of_single_elements_stay(self):
        self.assertEqual(tenon.from_dlpack(tenon.rand(16)[::3][:1]).stride(), (3,))

    def test_a_tensor_takes_no_storage_of_other_elements(self):
        whole = tenon.IntStorage([1, 2])
        for more in ((), (0, (2,), (1,))):
            with self.assertRaisesRegex(RuntimeError, "Expected a Storage of type .* or an UntypedStorage, but got type"):
                tenon.ones(2).set_(whole, *more)
            self.assertEqual(tenon.ones(2, dtype=tenon.int32).set_(whole, *more).tolist(), [1, 2])
        self.assertEqual(tenon.ones(2).set_(whole.untyped()).view(tenon.int32).tolist(), [1, 2])

    def test_storages_of_one_dtype_from_bytes_and_from_others(self):
        short = tenon.ShortStorage
        self.assertEqual(short.from_buffer(b"\x01\x02\x03\x04", "big").tolist(), [258, 772])
        self.assertEqual(short.from_buffer(b"\x01\x02\x03\x04", "little").tolist(), [513, 1027])
        self.assertEqual(tenon.BoolStorage.from_buffer(b"\x01\x02\x00", "big").tolist(), [True, True, False])
        for bad, text in (((b"\x01\x02\x03", "native"), "must be a multiple of element size"), ((b"\x01\x02", "abc"), "invalid byte_order 'abc'")):
            with self.assertRaisesRegex(ValueError, text):
                short.from_buffer(*bad)
        self.assertIs(tenon.Storage, tenon.FloatStorage)
        made = tenon.Storage([1, 2.5]).int()
        self.assertEqual((made.tolist(), type(made).__name__), ([1, 2], "IntStorage"))


if __name__ == "__main__":
    harness.main()
