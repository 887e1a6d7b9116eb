# SPDX-License-Identifier: MIT
"""The extension: calls, overloads, properties, identity."""

import unittest

import harness
import tenon


class Calls(unittest.TestCase):
    def test_functions_take_positions_and_keywords(self):
        x = tenon.ones(2, 3)
        self.assertEqual(tenon.add(x, x).sum().item(), 12)
        self.assertEqual(tenon.add(input=x, other=x, alpha=2).sum().item(), 18)
        self.assertEqual(tenon.sum(x, dim=1, keepdim=True).shape, (2, 1))
        self.assertEqual(tenon.sum(x, axis=1, keepdims=True).shape, (2, 1))
        self.assertEqual(tenon.zeros(2).copy_(other=x[0, :2]).tolist(), x[0, :2].tolist())
        self.assertEqual(tenon.zeros(2).copy_(src=x[0, :2], non_blocking=True).tolist(), x[0, :2].tolist())
        with self.assertRaisesRegex(TypeError, r"copy_\(\) missing 1 required positional arguments: \"other\""):
            tenon.zeros(2).copy_(non_blocking=True)

    def test_a_list_of_sizes_may_be_several_arguments(self):
        x = tenon.arange(6)
        self.assertEqual(x.view(2, 3).shape, (2, 3))
        self.assertEqual(x.view((3, 2)).shape, (3, 2))
        self.assertEqual(x.view(-1).shape, (6,))
        self.assertEqual(x.view(2, 3).permute(1, 0).shape, (3, 2))
        self.assertEqual(tenon.zeros(2, 3).shape, tenon.zeros([2, 3]).shape)

    def test_numbers_and_tensors_meet(self):
        x = tenon.arange(3)
        self.assertEqual((x + 1).dtype, tenon.int64)
        self.assertEqual((x + 1.5).dtype, tenon.float32)
        self.assertEqual((1 - x).sum().item(), 0)
        self.assertEqual((2 ** x).sum().item(), 7)
        self.assertEqual(tenon.add(2, x).sum().item(), 9)
        self.assertEqual((x == 1).sum().item(), 1)

    def test_out_is_written_and_returned(self):
        x, out = tenon.ones(3), tenon.empty(3)
        self.assertIs(tenon.add(x, 1, out=out), out)
        self.assertEqual(out.sum().item(), 6)

    def test_several_results_have_names(self):
        found = tenon.arange(6).view(2, 3).max(1)
        self.assertEqual(found.values.sum().item(), 7)
        self.assertIs(found[1], found.indices)
        values, indices = found
        self.assertIs(values, found.values)

    def test_a_bad_call_is_a_type_error(self):
        with self.assertRaises(TypeError):
            tenon.add(tenon.ones(2), "x")
        with self.assertRaises(TypeError):
            tenon.ones(2) + "x"


class Tensors(unittest.TestCase):
    def test_identity_lives_with_the_object(self):
        x = tenon.ones(2, requires_grad=True)
        x.grad = tenon.zeros(2)
        self.assertIs(x.grad, x.grad)
        y = x.view(2, 1)
        self.assertIs(y._base, x)
        self.assertIs(x.add_(0) if not x.requires_grad else x, x)

    def test_attributes_survive_while_the_library_holds_the_tensor(self):
        x, g = tenon.ones(2), tenon.zeros(2)
        g.note = "kept"
        x.grad = g
        number = id(g)
        del g
        self.assertEqual(x.grad.note, "kept")
        self.assertEqual(id(x.grad), number)
        self.assertEqual(x.grad.note, "kept")

    def test_a_subclass_object_survives_too(self):
        class Mine(tenon.Tensor):
            pass

        x = tenon.ones(2)
        x.grad = Mine._make_subclass(Mine, tenon.zeros(2))
        self.assertIs(type(x.grad), Mine)

    def test_a_view_can_be_given_other_elements_and_leaves_its_base(self):
        base = tenon.ones(3, requires_grad=True) * 2
        view = base[:2]
        view.data = tenon.full((2,), 5.0)
        self.assertEqual(view.tolist(), [5, 5])
        self.assertFalse(view._is_view())
        view.add_(1)
        self.assertEqual(base.tolist(), [2, 2, 2])
        view.sum().backward()

    def test_a_complex_number_is_a_real_one_when_nothing_is_lost(self):
        self.assertEqual(float(tenon.tensor(1 + 0j)), 1.0)
        self.assertEqual(int(tenon.tensor(2 + 0j)), 2)
        for wanted, name in ((float, "double"), (int, "int64_t")):
            with self.assertRaisesRegex(RuntimeError, "value cannot be converted to type %s without overflow" % name):
                wanted(tenon.tensor(1 + 2j))
        with self.assertRaisesRegex(ValueError, "only one element tensors can be converted to Python scalars"):
            complex(tenon.tensor([1j, 2]))

    def test_in_place_operators_keep_the_object(self):
        x = tenon.ones(2)
        y = x
        x += 1
        self.assertIs(x, y)
        self.assertEqual(x._version, 1)

    def test_a_gradient_has_the_dtype_of_its_tensor_and_no_other(self):
        for x in (tenon.ones(2), tenon.ones(2, dtype=tenon.float64, requires_grad=True), tenon.ones(2, dtype=tenon.int64)):
            self.assertIs(x.grad_dtype, x.dtype)
            x.grad_dtype = x.dtype
            for other in (None, tenon.float16):
                with self.assertRaisesRegex(NotImplementedError, "gradients of another dtype than their tensor's"):
                    x.grad_dtype = other
            for wrong, name in ((3, "int"), (float, "type")):
                with self.assertRaises(RuntimeError) as caught:
                    x.grad_dtype = wrong
                self.assertEqual(str(caught.exception), "grad_dtype must be a torch.dtype or None, but got " + name)
            with self.assertRaisesRegex(RuntimeError, "grad_dtype cannot be deleted"):
                del x.grad_dtype
            self.assertIs(x.grad_dtype, x.dtype)
        y = tenon.ones(2, requires_grad=True) * 2
        with self.assertRaises(RuntimeError) as caught:
            y.grad_dtype
        self.assertEqual(str(caught.exception), "grad_dtype can only be accessed on leaf tensors.")
        with self.assertRaises(RuntimeError) as caught:
            y.grad_dtype = y.dtype
        self.assertEqual(str(caught.exception), "grad_dtype can only be set on leaf tensors.")


class Modes(unittest.TestCase):
    def test_no_grad_is_a_block_and_a_decorator(self):
        x = tenon.ones(2, requires_grad=True)
        with tenon.no_grad():
            self.assertFalse((x * 2).requires_grad)
        self.assertTrue((x * 2).requires_grad)

        @tenon.no_grad()
        def f():
            return x * 2
        self.assertFalse(f().requires_grad)

    def test_the_default_device_is_a_block(self):
        with tenon.device("meta"):
            self.assertTrue(tenon.ones(2).is_meta)
        self.assertFalse(tenon.ones(2).is_meta)


if __name__ == "__main__":
    harness.main()
