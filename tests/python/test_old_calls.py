# SPDX-License-Identifier: MIT
"""Calls as older programs make them: numbers before tensors, and arrays of NumPy's as operands. The values are
PyTorch's (2.11)."""

import subprocess
import sys
import unittest

import numpy as np

import harness
import tenon


class NumbersFirst(unittest.TestCase):
    def test_sums(self):
        p, g = tenon.zeros(3), tenon.ones(3)
        self.assertEqual(p.add(2, g).tolist(), [2, 2, 2])
        self.assertIs(p.add_(-0.5, g), p)
        self.assertEqual(tenon.add(p, 2, g).tolist(), [1.5, 1.5, 1.5])
        self.assertEqual(p.sub(2, g).tolist(), [-2.5, -2.5, -2.5])
        self.assertEqual(p.sub_(2, other=g).tolist(), [-2.5, -2.5, -2.5])
        out = tenon.empty(3)
        self.assertIs(tenon.sub(p, 2, g, out=out), out)
        self.assertEqual(out.tolist(), [-4.5, -4.5, -4.5])
        self.assertEqual(p.addcmul(.5, g, g).tolist(), [-2, -2, -2])
        self.assertEqual(tenon.addcdiv(p, 2, g, tensor2=g * 4).tolist(), [-2, -2, -2])
        self.assertEqual(p.addcdiv_(.5, g, g).tolist(), [-2, -2, -2])

    def test_products(self):
        m, b, v = tenon.ones(2, 2), tenon.ones(1, 2, 2), tenon.ones(2)
        for name, first, others in (("addmm", m, (m, m)), ("addmv", v, (m, v)), ("baddbmm", b, (b, b)), ("addbmm", m, (b, b))):
            function, method = getattr(tenon, name), getattr(type(first), name)
            self.assertEqual(set(function(2, first, 3, *others).flatten().tolist()), {8})
            self.assertEqual(set(function(2, first, *others).flatten().tolist()), {4})
            self.assertEqual(set(method(first, 2, 3, *others).flatten().tolist()), {8})
            self.assertEqual(set(method(first, 2, *others).flatten().tolist()), {4})
            own = first.clone()
            self.assertIs(getattr(own, name + "_")(2, 3, *others), own)
            self.assertEqual(set(own.flatten().tolist()), {8})
        self.assertEqual(tenon.addr(2, m, 3, v, v).tolist(), [[5, 5], [5, 5]])
        self.assertEqual(m.addr(2, v, v).tolist(), [[3, 3], [3, 3]])

    def test_gradients_flow(self):
        x = tenon.ones(2, requires_grad=True)
        tenon.add(x, 3, x).sum().backward()
        self.assertEqual(x.grad.tolist(), [4, 4])

    def test_what_was_never_a_form_is_refused(self):
        p, g = tenon.zeros(3), tenon.ones(3)
        with self.assertRaisesRegex(TypeError, r"add_\(\) takes 1 positional argument but 2 were given"):
            p.add_(g, 2)
        with self.assertRaisesRegex(TypeError, r"mul\(\) takes 1 positional argument but 2 were given"):
            p.mul(2, g)
        with self.assertRaisesRegex(TypeError, r"addmm\(\) takes 2 positional arguments but 3 were given"):
            tenon.ones(2, 2).addmm(tenon.ones(2, 2), tenon.ones(2, 2), 1)
        self.assertEqual(p.tolist(), [0, 0, 0])

    def test_the_first_is_warned_of(self):
        """In a process of its own: others of these may have been warned before."""
        code = ("import sys; sys.path[:0] = %r\nimport tenon, warnings\np, g = tenon.zeros(1), tenon.ones(1)\n"
                "with warnings.catch_warnings(record=True) as seen:\n"
                "    warnings.simplefilter('always')\n    p.add_(2, g); tenon.addmm(1, g[None], g[None], g[None])\n"
                "print(len(seen), seen[0].category.__name__, seen[0].message)" % sys.path)
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.stdout, "1 UserWarning This overload of add_ is deprecated:\n\tadd_(Number alpha, Tensor other)\n"
                         "Consider using one of the following signatures instead:\n\tadd_(Tensor other, *, Number alpha = 1)\n",
                         done.stderr)


class Arrays(unittest.TestCase):
    def test_a_list_of_tensors_is_an_array(self):
        x = tenon.arange(6.).reshape(2, 3)
        wanted = [[0, 1, 2], [3, 4, 5]]
        for made in (np.array([x[0], x[1]]), np.array(list(x)), np.stack([x[0], x[1]]), np.vstack(list(x))):
            self.assertEqual((made.tolist(), made.dtype), (wanted, np.float32))
        self.assertEqual(np.array([x[0], x[1]], dtype=np.float64).dtype, np.float64)
        self.assertEqual(np.array([x, x]).shape, (2, 2, 3))
        self.assertEqual(np.array([tenon.tensor(1.), tenon.tensor(2.)]).tolist(), [1, 2])

    def test_an_array_on_the_right_decides_by_numpys_rules(self):
        x, i, b = tenon.arange(3.), tenon.arange(3), tenon.tensor([True, False, True])
        numbers = np.array([1, 2, 3])
        for made, dtype, values in ((x + numbers, tenon.float64, [1, 3, 5]), (x * numbers, tenon.float64, [0, 2, 6]),
                                    (i + numbers.astype(np.float32), tenon.float64, [1, 3, 5]),
                                    (b - numbers, tenon.int64, [0, -2, -2]), (x @ np.ones(3), tenon.float64, 3),
                                    (x + numbers.astype(np.float32), tenon.float32, [1, 3, 5]),
                                    (x == numbers, tenon.bool, [False] * 3)):
            self.assertIs(type(made), tenon.Tensor)
            self.assertEqual((made.dtype, made.tolist()), (dtype, values))

    def test_gradients_and_arrays_on_the_left_are_no_matter(self):
        x = tenon.arange(3., requires_grad=True)
        (x * np.array([1., 2., 3.])).sum().backward()
        self.assertEqual(x.grad.tolist(), [1, 2, 3])
        self.assertEqual((np.array([1., 2., 3.]) - tenon.ones(3)).tolist(), [0, 1, 2])


if __name__ == "__main__":
    harness.main()
