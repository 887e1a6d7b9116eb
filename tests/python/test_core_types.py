# SPDX-License-Identifier: MIT
"""dtype, device, Size, Generator, messages of bad calls, and the interpreter lock. Texts are those of PyTorch 2.11, with
Tenon's name in front of types."""

import copy
import gc
import pickle
import subprocess
import sys
import threading
import unittest

import harness
import tenon


class Values(unittest.TestCase):
    def test_dtypes_are_single_objects(self):
        self.assertIs(tenon.float, tenon.float32)
        self.assertIs(tenon.long, tenon.int64)
        self.assertIs(pickle.loads(pickle.dumps(tenon.bfloat16)), tenon.bfloat16)
        self.assertIs(copy.deepcopy(tenon.bool), tenon.bool)
        self.assertEqual(repr(tenon.complex64), "tenon.complex64")
        self.assertEqual((tenon.float16.itemsize, tenon.uint8.is_signed, tenon.int32.is_floating_point), (2, False, False))
        self.assertIs(tenon.float64.to_complex(), tenon.complex128)
        self.assertIs(tenon.complex64.to_real(), tenon.float32)

    def test_python_types_are_dtypes(self):
        for kind, dtype in ((float, tenon.float64), (int, tenon.int64), (bool, tenon.bool), (complex, tenon.complex128)):
            self.assertIs(tenon.zeros(1, dtype=kind).dtype, dtype)

    def test_devices(self):
        d = tenon.device("cuda", 1)
        self.assertEqual((d.type, d.index, str(d), repr(d)), ("cuda", 1, "cuda:1", "device(type='cuda', index=1)"))
        self.assertEqual(d, tenon.device("cuda:1"))
        self.assertEqual(hash(d), hash(tenon.device("cuda:1")))
        self.assertNotEqual(d, tenon.device("cuda"))
        self.assertEqual(repr(tenon.device("cpu")), "device(type='cpu')")
        self.assertEqual(repr(tenon.device("cpu:1")), "device(type='cpu', index=1)")
        self.assertEqual(tenon.ones(2, device="cpu:1").to("cpu:2").device, tenon.device("cpu"))
        self.assertEqual(pickle.loads(pickle.dumps(d)), d)
        with self.assertRaisesRegex(RuntimeError, "type \\(string\\) must not include an index because index was passed explicitly"):
            tenon.device("cuda:0", 1)
        with self.assertRaisesRegex(RuntimeError, "device type at start of device string: foo"):
            tenon.device("foo")

    def test_the_default_device_nests(self):
        with tenon.device("meta"):
            with tenon.device("cpu"):
                self.assertEqual(tenon.ones(1).device.type, "cpu")
            self.assertEqual(tenon.ones(1).device.type, "meta")
            self.assertEqual(tenon.ones(1, device="cpu").device.type, "cpu")
            self.assertEqual(tenon.zeros_like(tenon.ones(1, device="cpu")).device.type, "cpu")
        tenon.set_default_device("meta")
        try:
            self.assertEqual(tenon.rand(2).device.type, "meta")
            self.assertEqual(tenon.get_default_device(), tenon.device("meta"))
        finally:
            tenon.set_default_device(None)
        self.assertEqual(tenon.rand(2).device.type, "cpu")

    def test_sizes_are_tuples(self):
        s = tenon.ones(2, 3).shape
        self.assertIsInstance(s, tuple)
        self.assertEqual((repr(s), s.numel(), s[0], type(s[:1])), ("tenon.Size([2, 3])", 6, 2, tenon.Size))
        self.assertIs(type(s + (4,)), tenon.Size)
        self.assertIs(type(s * 2), tenon.Size)
        self.assertEqual(pickle.loads(pickle.dumps(s)), s)
        with self.assertRaisesRegex(TypeError, "takes an iterable of 'int' \\(item 0 is 'float'\\)"):
            tenon.Size([1.5])

    def test_generators_are_copied_and_pickled_as_they_stand(self):
        import copy, pickle
        g = tenon.Generator().manual_seed(9)
        tenon.rand(4, generator=g)
        for other in (copy.deepcopy(g), pickle.loads(pickle.dumps(g)), g.clone_state()):
            self.assertIsNot(other, g)
            self.assertEqual(other.initial_seed(), 9)
            self.assertEqual(other.get_state().tolist(), g.get_state().tolist())
        wanted = tenon.rand(5, generator=copy.deepcopy(g))
        self.assertEqual(tenon.rand(5, generator=g).tolist(), wanted.tolist())
        self.assertRaisesRegex(TypeError, "RNG state must be a torch.ByteTensor", g.set_state, tenon.zeros(3))
        self.assertRaisesRegex(RuntimeError, "RNG state is wrong size", g.__setstate__, b"short")

    def test_generators_of_classes_below(self):
        import copy, gc, weakref

        class Counted(tenon.Generator):
            calls = 0

            def manual_seed(self, seed):
                self.calls += 1
                return super().manual_seed(seed)

        g = Counted(device="cpu")
        self.assertIs(g.manual_seed(3), g)
        self.assertEqual((type(g), g.calls, g.initial_seed(), g.device.type), (Counted, 1, 3, "cpu"))
        wanted = tenon.rand(3, generator=tenon.Generator().manual_seed(3)).tolist()
        self.assertEqual(tenon.rand(3, generator=g).tolist(), wanted)
        self.assertEqual(tenon.empty(3).uniform_(generator=g.manual_seed(3)).tolist(), wanted)
        self.assertIs(type(copy.deepcopy(g)), Counted)
        self.assertIs(g.set_state(g.get_state()), g)
        g.itself, gone = g, weakref.ref(g)
        del g
        gc.collect()
        self.assertIsNone(gone())

    def test_generators_repeat(self):
        g = tenon.Generator()
        self.assertIs(g.manual_seed(5), g)
        a = tenon.rand(3, generator=g)
        state = g.get_state()
        b = tenon.rand(3, generator=g)
        g.set_state(state)
        self.assertTrue(tenon.equal(tenon.rand(3, generator=g), b))
        g.manual_seed(5)
        self.assertTrue(tenon.equal(tenon.rand(3, generator=g), a))
        self.assertEqual(g.initial_seed(), 5)
        self.assertEqual(g.device, tenon.device("cpu"))
        tenon.manual_seed(7)
        self.assertEqual((tenon.initial_seed(), tenon.default_generator.initial_seed()), (7, 7))
        with self.assertRaisesRegex(RuntimeError, "RNG state is wrong size"):
            g.set_state(tenon.zeros(3, dtype=tenon.uint8))

    def test_the_default_dtype(self):
        tenon.set_default_dtype(tenon.float64)
        try:
            self.assertIs(tenon.ones(1).dtype, tenon.float64)
        finally:
            tenon.set_default_dtype(tenon.float32)
        with self.assertRaisesRegex(TypeError, "only floating-point types are supported as the default type"):
            tenon.set_default_dtype(tenon.int32)

    def test_named_results_have_a_type_a_name(self):
        found = tenon.ones(2, 3).max(1)
        self.assertIs(type(found), tenon.return_types.max)
        self.assertIs(type(tenon.max(tenon.ones(2, 3), 1)), tenon.return_types.max)
        self.assertEqual(repr(found), "tenon.return_types.max(\nvalues=tensor([1., 1.]),\nindices=tensor([0, 0]))")


class Messages(unittest.TestCase):
    def check(self, call, text, kind=TypeError):
        with self.assertRaises(kind) as caught:
            call()
        self.assertEqual(str(caught.exception), text)

    def test_one_signature_says_what_is_wrong(self):
        x = tenon.ones(2, 3)
        self.check(lambda: tenon.add(x, "a"), "add(): argument 'other' (position 2) must be Tensor, not str")
        self.check(lambda: x.add("a"), "add(): argument 'other' (position 1) must be Tensor, not str")
        self.check(lambda: tenon.relu(), "relu() missing 1 required positional arguments: \"input\"")
        self.check(lambda: tenon.relu(x, x), "relu() takes 1 positional argument but 2 were given")
        self.check(lambda: tenon.relu(x, foo=1), "relu() got an unexpected keyword argument 'foo'")
        self.check(lambda: tenon.zeros("a"), "zeros(): argument 'size' (position 1) must be tuple of ints, not str")
        self.check(lambda: tenon.ones([[1, 2]]),
                   "ones(): argument 'size' (position 1) must be tuple of ints, but found element of type list at pos 0")
        self.check(lambda: x.view(2, 1.5), "view(): argument 'size' failed to unpack the object at pos 2 with error "
                   "\"type must be tuple of ints,but got float\"")
        self.check(lambda: tenon.cat([x, 1]), "expected Tensor as element 1 in argument 0, but got int")
        self.check(lambda: tenon.triu_indices(row=3), "triu_indices() missing 1 required positional arguments: \"col\"")
        self.check(lambda: tenon.triu_indices(col=3), "triu_indices() missing 2 required positional argument: \"row\", \"col\"")
        self.check(lambda: tenon.dropout(x), "dropout() missing 2 required positional argument: \"p\", \"train\"")

    def test_a_word_of_pythons_own_has_a_line_behind_it(self):
        self.assertFalse(tenon.can_cast(from_=tenon.float32, to=tenon.int64))

    def test_a_tensor_without_dimensions_is_a_tensor_before_it_is_a_number(self):
        x = tenon.tensor([[0.0, 5.0], [2.0, 1.0]])
        self.assertEqual(tenon.max(x, tenon.tensor(1)).tolist(), [[1, 5], [2, 1]])
        self.assertEqual(x.min(tenon.tensor(1)).tolist(), [[0, 1], [1, 1]])
        self.assertEqual(x.max(dim=tenon.tensor(1))[1].tolist(), [1, 0])
        self.assertEqual(tenon.normal(tenon.tensor(0.0, dtype=tenon.float64), tenon.ones(2)).dtype, tenon.float64)

    def test_several_signatures_are_listed(self):
        x = tenon.ones(2, 3)
        self.check(lambda: x.fill_("a"), "fill_() received an invalid combination of arguments - got (str), but expected one of:\n"
                   " * (Tensor value)\n      didn't match because some of the arguments have invalid types: (!str!)\n"
                   " * (Number value)\n      didn't match because some of the arguments have invalid types: (!str!)\n")
        self.check(lambda: tenon.add(x), "add() received an invalid combination of arguments - got (Tensor), but expected "
                   "(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)")
        self.check(lambda: tenon.add("a"), "add() received an invalid combination of arguments - got (str), but expected "
                   "(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)")
        self.check(lambda: tenon.add(zz=1), "add() received an invalid combination of arguments - got unrecognized keyword arguments: zz")
        with self.assertRaisesRegex(TypeError, r"got \(dim=float, \), but expected one of:\n \* \(\*, tenon.dtype dtype = None\)"):
            x.sum(dim=1.5)

    def test_operators_leave_it_to_the_other_operand(self):
        x = tenon.ones(2)
        self.check(lambda: x + "a", "unsupported operand type(s) for +: 'Tensor' and 'str'")
        self.check(lambda: x < "a", "'<' not supported between instances of 'Tensor' and 'str'")
        self.assertIs(x == None, False)  # noqa: E711

    def test_failures_of_operators_have_torch_s_classes(self):
        x = tenon.ones(2, 3)
        self.check(lambda: x.size(5), "Dimension out of range (expected to be in range of [-2, 1], but got 5)", IndexError)
        self.check(lambda: bool(x), "Boolean value of Tensor with more than one value is ambiguous", RuntimeError)
        self.check(lambda: float(x), "only one element tensors can be converted to Python scalars", ValueError)
        with self.assertRaisesRegex(RuntimeError, "mat1 and mat2 shapes cannot be multiplied"):
            x @ x
        with self.assertRaisesRegex(RuntimeError, "Found no NVIDIA driver"):
            x.to("cuda")

    def test_numbers_too_large_are_refused(self):
        with self.assertRaisesRegex(TypeError, "Overflow when unpacking long long"):
            tenon.zeros(2 ** 70)
        for call in (lambda: tenon.ones(3).sum(2 ** 70), lambda: tenon.manual_seed(2 ** 64), lambda: tenon.Generator().manual_seed(-2 ** 63 - 1)):
            self.assertRaisesRegex(ValueError, "Overflow when unpacking long long", call)
        for call in (lambda: tenon.ones(3) + 2 ** 70, lambda: tenon.full((2,), 2 ** 70), lambda: tenon.ones(3).fill_(2 ** 70)):
            self.assertRaisesRegex(OverflowError, "int too big to convert", call)


class Numbers(unittest.TestCase):
    def test_the_graph_shows_torch_s_operators(self):
        x = tenon.ones(2, requires_grad=True)
        for made, name in ((x + 1, "AddBackward0"), (2 * x, "MulBackward0"), (x / 2, "DivBackward0"), (2 / x, "MulBackward0"),
                           (1 - x, "RsubBackward1"), (x ** 2, "PowBackward0"), (x.max(), "MaxBackward1"),
                           (x.clamp(0, 1), "ClampBackward1"), (x.log1p(), "Log1PBackward0")):
            self.assertEqual(made.grad_fn.name(), name)

    def test_digits_are_kept(self):
        x = tenon.zeros(1, dtype=tenon.float64)
        self.assertEqual((x + 0.1).item(), 0.1)
        self.assertEqual(tenon.add(0.1, x).item(), 0.1)


class Threads(unittest.TestCase):
    def test_long_calls_let_others_run(self):
        big, seen = tenon.ones(1500, 1500), []
        done = threading.Event()

        def count():
            while not done.is_set():
                seen.append(1)
                done.wait(0.0005)

        thread = threading.Thread(target=count)
        thread.start()
        during = 0
        for _ in range(200):  # the other thread may get no processor for a while
            before = len(seen)
            big @ big
            during = max(during, len(seen) - before)
            if during > 3:
                break
        done.set()
        thread.join()
        self.assertGreater(during, 3)

    def test_objects_let_go_on_other_threads_are_released(self):
        class Mine(tenon.Tensor):
            alive = 0

            def __init__(self, *_):
                Mine.alive += 1

        holders = [tenon.ones(2) for _ in range(50)]
        for holder in holders:
            holder.grad = tenon.zeros(2).as_subclass(Mine)

        def drop():
            while holders:
                holders.pop().grad = None

        threads = [threading.Thread(target=drop) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        self.assertEqual([o for o in gc.get_objects() if type(o) is Mine], [])


class Import(unittest.TestCase):
    def test_little_is_loaded(self):
        code = ("import sys; before = set(sys.modules); import tenon; "
                "print(' '.join(sorted(set(sys.modules) - before)))")
        loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual([name for name in loaded if name in ("typing", "inspect", "dataclasses", "enum", "re", "numpy")], [])

    def test_a_name_that_is_not_there_says_so(self):
        with self.assertRaisesRegex(AttributeError, "module 'tenon' has no attribute 'nothing_of_the_kind'"):
            tenon.nothing_of_the_kind


class Refusals(unittest.TestCase):
    def test_device_texts(self):
        for make, error, text in (
                (lambda: tenon.device(""), RuntimeError, "Device string must not be empty"),
                (lambda: tenon.device("cpu:x"), RuntimeError, "Invalid device string: 'cpu:x'"),
                (lambda: tenon.device("cuda:1", 1), RuntimeError,
                 "type (string) must not include an index because index was passed explicitly: cuda:1"),
                (lambda: tenon.device("cpu", -2), RuntimeError, "Device index must not be negative"),
                (lambda: tenon.device("cpu", "1"), TypeError,
                 "device(): argument 'index' (position 2) must be int, not str"),
                (lambda: tenon.device(1.5), TypeError,
                 "device() received an invalid combination of arguments - got (float), but expected one of:\n"
                 " * (tenon.device device)\n      didn't match because some of the arguments have invalid types: (!float!)\n"
                 " * (str type, int index = -1)\n"),
                (lambda: tenon.device(), TypeError,
                 "device() received an invalid combination of arguments - got (), but expected one of:\n"
                 " * (tenon.device device)\n * (str type, int index = -1)\n")):
            with self.assertRaises(error) as caught:
                make()
            self.assertEqual(str(caught.exception), text)

    def test_sizes_are_tuples_and_lists_alone(self):
        import numpy
        for given, name in ((range(2), "range"), (numpy.array([2, 3]), "numpy.ndarray"), ({2: 3}, "dict"), ("ab", "str")):
            with self.assertRaises(TypeError) as caught:
                tenon.zeros(given)
            self.assertEqual(str(caught.exception), "zeros(): argument 'size' (position 1) must be tuple of ints, not %s" % name)
        self.assertEqual(tenon.zeros(tenon.ones(2, 3, 4).shape[1:]).shape, (3, 4))
        self.assertEqual(tenon.zeros(numpy.array(3)).shape, (3,))
        self.assertEqual(tenon.zeros((numpy.int64(2), 3)).shape, (2, 3))

    def test_numbers_that_overflow_a_dtype(self):
        small, half = tenon.zeros(2, dtype=tenon.uint8), tenon.zeros(2, dtype=tenon.float16)
        for call, kind in ((lambda: small.fill_(300), "uint8_t"), (lambda: small ** 300, "uint8_t"),
                           (lambda: small.add(1, alpha=300), "uint8_t"), (lambda: small.__setitem__(0, 300), "uint8_t"),
                           (lambda: tenon.full((2,), 1e6, dtype=tenon.float16), "c10::Half"),
                           (lambda: tenon.full((2,), 2 ** 40, dtype=tenon.int32), "int"),
                           (lambda: tenon.zeros(2).fill_(1e39), "float")):
            with self.assertRaisesRegex(RuntimeError, "value cannot be converted to type %s without overflow" % kind):
                call()
        self.assertEqual((small + 300).tolist(), [44, 44])
        self.assertEqual(small.fill_(-1).tolist(), [255, 255])
        half[0] = 1e9
        self.assertEqual(half.tolist(), [float("inf"), 0])
        half[[0]] = -1e9
        self.assertEqual(half.tolist(), [float("-inf"), 0])
        with self.assertRaisesRegex(RuntimeError, "value cannot be converted to type float without overflow"):
            tenon.zeros(2)[0] = 1e39
        self.assertEqual((half + 1e6)[1].item(), float("inf"))

    def test_nonzero_writes_indices_alone(self):
        with self.assertRaisesRegex(RuntimeError, "nonzero: Expected out tensor to have scalar type Long but got scalar typeFloat"):
            tenon.nonzero(tenon.ones(2), out=tenon.ones(2, 1))
        out = tenon.empty(0, dtype=tenon.int64)
        self.assertIs(tenon.nonzero(tenon.ones(2), out=out), out)
        self.assertEqual(out.tolist(), [[0], [1]])


if __name__ == "__main__":
    harness.main()
