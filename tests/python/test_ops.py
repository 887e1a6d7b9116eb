# SPDX-License-Identifier: MIT
"""tenon.ops: operators by name. The texts are PyTorch 2.11's."""

import copy
import pickle
import unittest

import harness
import tenon

aten = tenon.ops.aten


class Ops(unittest.TestCase):
    def setUp(self):
        self.a = tenon.tensor([[1., 2.], [3., 4.]])

    def test_an_operator_casts_what_its_function_refuses(self):
        self.assertEqual(aten.topk.default(self.a, True)[0].tolist(), [[2], [4]])
        self.assertEqual(aten.sum.dim_IntList(self.a, [True], 1).tolist(), [[3], [7]])
        self.assertEqual(aten.sum.dim_IntList(self.a, [0], dtype=7).dtype, tenon.float64)
        self.assertEqual(aten.clone.default(self.a, memory_format=0).tolist(), self.a.tolist())
        with self.assertRaisesRegex(TypeError, r"topk\(\): argument 'k' \(position 2\) must be int, not bool"):
            tenon.topk(self.a, True)
        with self.assertRaisesRegex(RuntimeError, "Expected a value of type 'int' for argument 'k' but instead found type 'float'"):
            aten.topk.default(self.a, 1.5)
        with self.assertRaisesRegex(RuntimeError, "Expected a value of type 'bool' for argument 'keepdim' but instead found type 'str'"):
            aten.sum.dim_IntList(self.a, [0], "yes")

    def test_names_print_as_torchs(self):
        self.assertEqual(repr(aten.mm), "<OpOverloadPacket(op='aten.mm')>")
        self.assertEqual(repr(aten.add.Tensor), "<OpOverload(op='aten.add', overload='Tensor')>")
        self.assertEqual(str(aten.add.Tensor), "aten.add.Tensor")
        self.assertEqual(aten.mm.default.name(), "aten::mm")
        self.assertEqual(aten.mm.default.namespace, "aten")
        self.assertEqual((aten.add.Tensor.__name__, aten.add.__name__), ("add.Tensor", "add"))
        self.assertIs(aten.mm.default.overloadpacket, aten.mm)
        self.assertIs(aten.mm.default, aten.mm.default)
        self.assertIs(copy.deepcopy(aten.mm.default), aten.mm.default)
        self.assertIs(pickle.loads(pickle.dumps(aten.mm.default)), aten.mm.default)
        self.assertEqual(aten.add.overloads()[:2], ["Tensor", "Scalar"])
        self.assertIn("core", [tag.name for tag in aten.mm.default.tags])

    def test_schemas_say_what_arguments_are(self):
        schema = aten.sum.dim_IntList._schema
        self.assertEqual(str(aten.add.Tensor._schema),
                         "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
        self.assertEqual([(a.name, str(a.type), a.default_value, a.kwarg_only, a.alias_info) for a in
                          schema.arguments],
                         [("self", "Tensor", None, False, None), ("dim", "Optional[List[int]]", None, False, None),
                          ("keepdim", "bool", False, False, None), ("dtype", "Optional[int]", None, True, None)])
        self.assertTrue(aten.add_.Tensor._schema.is_mutable)
        self.assertFalse(aten.add.Tensor._schema.is_mutable)
        self.assertTrue(aten.view.default.is_view)
        self.assertEqual(aten.view.default._schema.returns[0].alias_info.before_set, {"a"})

    def test_every_schema_is_read_and_written_back(self):
        names = tenon._C._operator_names("aten::")
        self.assertGreater(len(names), 1000)
        for name in names:
            op = tenon._ops._overload(name)
            self.assertEqual(op.name(), name)
            self.assertEqual(len(op._names), len(op._schema.arguments))

    def test_calls_give_what_the_functions_give(self):
        a = self.a
        self.assertTrue(tenon.equal(aten.mm.default(a, a), a @ a))
        self.assertTrue(tenon.equal(aten.mm.default(a, mat2=a), a @ a))
        self.assertTrue(tenon.equal(aten.mm(a, a), a @ a))
        self.assertTrue(tenon.equal(aten.add(a, 2), a + 2))
        self.assertTrue(tenon.equal(aten.add.Tensor(a, 2), a + 2))
        self.assertTrue(tenon.equal(aten.add(a, a, alpha=2), 3 * a))
        self.assertTrue(tenon.equal(aten.sum.dim_IntList(a, [0], True), a.sum(0, keepdim=True)))
        self.assertEqual([type(aten.split.Tensor(a, 1)), len(aten.split.Tensor(a, 1))], [list, 2])
        self.assertEqual(type(aten.max.dim(a, 0)), tuple)
        self.assertEqual(aten.zeros.default([2], dtype=tenon.int64).dtype, tenon.int64)
        x = a.clone().requires_grad_()
        aten.mul.Tensor(x, x).sum().backward()
        self.assertTrue(tenon.equal(x.grad, 2 * a))

    def test_missing_names_and_wrong_arguments_raise_in_torchs_words(self):
        a = self.a
        for call, kind, text in (
                (lambda: aten.nosuch, AttributeError, "'_OpNamespace' 'aten' object has no attribute 'nosuch'"),
                (lambda: aten.add.nosuch, AttributeError,
                 "The underlying op of 'aten.add' has no overload name 'nosuch'"),
                (lambda: aten.mm.default(a), RuntimeError,
                 "aten::mm() is missing value for argument 'mat2'. Declaration: aten::mm(Tensor self, Tensor mat2) "
                 "-> Tensor"),
                (lambda: aten.mm.default(a, a, a), RuntimeError,
                 "aten::mm() expected at most 2 argument(s) but received 3 argument(s). Declaration: "
                 "aten::mm(Tensor self, Tensor mat2) -> Tensor"),
                (lambda: aten.mm.default(a, 3), RuntimeError,
                 "aten::mm() Expected a value of type 'Tensor' for argument 'mat2' but instead found type 'int'.\n"
                 "Position: 1\nValue: 3\nDeclaration: aten::mm(Tensor self, Tensor mat2) -> Tensor\n"
                 "Cast error details: Unable to cast 3 to Tensor")):
            with self.assertRaises(kind) as caught:
                call()
            self.assertEqual(str(caught.exception), text)
        with self.assertRaisesRegex(RuntimeError, "^Overloaded torch operator invoked from Python failed to match "
                                                  "any schema:\naten::add\\(\\) Expected a value of type 'Tensor'"):
            aten.add(a, "x")

    def test_classes_that_override_functions_see_the_operator(self):
        seen = []

        class Seen(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})

        aten.mm.default(self.a.as_subclass(Seen), self.a)
        self.assertEqual(seen, [aten.mm.default])


class Storages(unittest.TestCase):
    def test_operators_take_storages(self):
        bytes_of = tenon.arange(10.0).untyped_storage()
        set_ = tenon.ops.aten.set_
        self.assertEqual(set_(tenon.empty(0), bytes_of).tolist(), list(range(10)))
        self.assertEqual(set_.source_Storage(tenon.empty(0), bytes_of).tolist(), list(range(10)))
        self.assertEqual(set_(tenon.empty(0), bytes_of, 1, [2, 2], [3, 1]).tolist(), [[1, 2], [4, 5]])
        self.assertEqual(set_.source_Storage_storage_offset(tenon.empty(0), bytes_of, 1, [2, 2]).tolist(), [[1, 2], [3, 4]])
        with self.assertRaisesRegex(RuntimeError, "Expected a value of type 'Storage' for argument 'source'"):
            set_.source_Storage(tenon.empty(0), 5)


if __name__ == "__main__":
    harness.main()
