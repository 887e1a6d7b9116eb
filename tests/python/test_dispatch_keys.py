# SPDX-License-Identifier: MIT
"""Dispatch keys from Python: sets, the thread's sets, redispatching, and questions about kernels. The texts are those of
PyTorch 2.11."""
import unittest

import harness
import tenon
from tenon import _C

Key, Set = _C.DispatchKey, _C.DispatchKeySet


class Sets(unittest.TestCase):
    def test_keys_have_names(self):
        self.assertEqual((str(Key.CPU), Key.CPU.name, Key.AutogradMeta.name), ("DispatchKey.CPU", "CPU", "AutogradMeta"))
        self.assertIs(_C._dispatch_key_parse("PythonTLSSnapshot"), Key.PythonTLSSnapshot)
        with self.assertRaisesRegex(RuntimeError, "could not parse dispatch key: Nope"):
            _C._dispatch_key_parse("Nope")
        self.assertIs(tenon.DispatchKey, Key)

    def test_sets_are_put_together(self):
        cpu = Set(Key.CPU)
        both = cpu | Set(Key.AutogradCPU)
        self.assertEqual(repr(both), "DispatchKeySet(CPU, AutogradCPU)")
        self.assertEqual(both - Set(Key.AutogradCPU), cpu)
        self.assertEqual((cpu.has(Key.CPU), cpu.has(Key.Meta), cpu.raw_repr()), (True, False, 65537))
        self.assertIs(both.highestPriorityTypeId(), Key.AutogradCPU)
        self.assertEqual(cpu.add(Key.AutogradCPU), both)
        self.assertEqual(Set.from_raw_repr(65537), cpu)

    def test_tensors_have_keys(self):
        self.assertEqual(repr(_C._dispatch_keys(tenon.ones(1, device="meta"))),
                         "DispatchKeySet(Meta, ADInplaceOrView, AutogradMeta)")
        self.assertTrue(_C._dispatch_keyset_full_after(Key.AutogradCPU).has(Key.CPU))
        self.assertFalse(_C._dispatch_keyset_full_after(Key.AutogradCPU).has(Key.AutogradCPU))


class Thread(unittest.TestCase):
    def test_guards_change_the_sets_inside(self):
        before = _C._thread_keys()
        x = tenon.ones(2, requires_grad=True)
        with _C._AutoDispatchBelowAutograd():
            self.assertFalse((x * 2).requires_grad)
        with _C._ExcludeDispatchKeyGuard(Set(Key.AutogradCPU)):
            self.assertTrue(_C._dispatch_tls_is_dispatch_key_excluded(Key.AutogradCPU))
            self.assertFalse((x * 2).requires_grad)
        with self.assertRaises(KeyError), _C._IncludeDispatchKeyGuard(Key.PythonTLSSnapshot):
            self.assertTrue(_C._dispatch_tls_local_include_set().has(Key.PythonTLSSnapshot))
            raise KeyError
        self.assertEqual(_C._thread_keys(), before)


class Operators(unittest.TestCase):
    def test_kernels_are_found(self):
        add, matmul = tenon.ops.aten.add.Tensor, tenon.ops.aten.matmul.default
        self.assertTrue(add.has_kernel_for_dispatch_key(Key.CPU))
        self.assertFalse(add.has_kernel_for_dispatch_key("CompositeImplicitAutograd"))
        self.assertTrue(_C._dispatch_has_kernel_for_dispatch_key("aten::matmul", "CompositeImplicitAutograd"))
        self.assertTrue(_C._dispatch_has_computed_kernel_for_dispatch_key("aten::matmul", "CPU"))
        self.assertTrue(add.has_kernel_for_any_dispatch_key(_C._dispatch_keys(tenon.ones(1))))
        self.assertFalse(_C._dispatch_has_kernel("aten::nope"))
        with self.assertRaisesRegex(RuntimeError, "operator aten::nope does not exist"):
            _C._dispatch_has_kernel_for_dispatch_key("aten::nope", "CPU")
        self.assertEqual((matmul._can_decompose(), add._can_decompose()), (True, False))
        self.assertIs(add.decompose(tenon.ones(1), tenon.ones(1)), NotImplemented)
        self.assertEqual(matmul.decompose(tenon.ones(2, 2), tenon.ones(2, 2)).tolist(), [[2, 2], [2, 2]])
        self.assertIn("CPU: ", _C._dispatch_dump_table("aten::add.Tensor"))
        _C._dispatch_check_all_invariants()

    def test_a_redispatch_starts_where_it_is_told(self):
        x = tenon.ones(2, requires_grad=True)
        add = tenon.ops.aten.add.Tensor
        self.assertFalse(add.redispatch(Set(Key.CPU), x, x).requires_grad)
        self.assertTrue(add.redispatch(_C._dispatch_keys(x), x, x).requires_grad)
        self.assertEqual(add.redispatch(Set(Key.CPU), x, x, alpha=3).tolist(), [4, 4])
        self.assertEqual(add.redispatch(Set(Key.Meta), x.to("meta"), x.to("meta")).shape, (2,))

    def test_a_kernel_can_be_given_its_keys(self):
        lib = tenon.library.Library("keys_given", "FRAGMENT")
        lib.define("f(Tensor x, int n=2) -> Tensor")
        lib.impl("f", lambda x, n=2: x * n, "CPU")
        seen = []

        def above(keys, x, n=2):
            seen.append(keys.highestPriorityTypeId())
            below = keys & _C._dispatch_keyset_full_after(Key.AutogradCPU)
            return tenon.ops.keys_given.f.default.redispatch(below, x, n)
        lib.impl("f", above, "AutogradCPU", with_keyset=True)
        self.assertEqual(tenon.ops.keys_given.f(tenon.ones(2), 3).tolist(), [3, 3])
        self.assertEqual(seen, [Key.AutogradCPU])
        lib._destroy()

    def test_a_kernel_goes_on_below_itself_and_not_to_itself(self):
        lib = tenon.library.Library("keys_test", "FRAGMENT")
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CPU")
        seen = []

        def above(x):
            seen.append("AutogradCPU")
            return tenon.ops.keys_test.twice.default.redispatch(_C._dispatch_keys(x) & keys[0], x)
        lib.impl("twice", above, Key.AutogradCPU)
        keys = [_C._dispatch_keyset_full_after(Key.AutogradCPU)]
        self.assertEqual(tenon.ops.keys_test.twice(tenon.ones(2)).tolist(), [2, 2])
        self.assertEqual(seen, ["AutogradCPU"])
        keys[0] = _C._dispatch_keyset_full()
        with self.assertRaisesRegex(RuntimeError, "redispatch does not lower the key"):
            tenon.ops.keys_test.twice(tenon.ones(2))
        lib._destroy()


if __name__ == "__main__":
    harness.main()
