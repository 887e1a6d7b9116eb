# SPDX-License-Identifier: MIT
"""The stubs that type checkers read: they are Python, they have every operator, and they take what users write."""

import ast
import inspect
import os
import unittest

import harness
import tenon

FOLDER = os.path.dirname(tenon._C.__file__)


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
        return ast.parse(f.read())


def members(body):
    """{name: [definitions]} of functions, classes and annotated names."""
    found = {}
    for node in body:
        name = node.target.id if isinstance(node, ast.AnnAssign) else getattr(node, "name", None)
        if name:
            found.setdefault(name, []).append(node)
    return found


def parameters(node):
    """[(name, whether it takes the rest of the positional ones)]"""
    plain = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    return [(a.arg, False) for a in plain] + ([(node.args.vararg.arg, True)] if node.args.vararg else [])


def signature(node):
    """`(parameters) -> result`, without the marks of modules."""
    text = "(%s) -> %s" % (ast.unparse(node.args), ast.unparse(node.returns))
    return text.replace("builtins.", "").replace("Optional[", "?[")


FUNCTIONS = members(read("_C.pyi").body)
OTHERS = members(read("_types.pyi").body)
OWN = members(FUNCTIONS["Tensor"][0].body)
COMMON = members(OTHERS["TensorCommon"][0].body)
MAKER = "dtype: ?[dtype]=..., layout: ?[layout]=..., device: ?[DeviceLike]=..., pin_memory: ?[bool]=..., requires_grad: bool=..."

# Forms that ordinary programs use.
OF_FUNCTIONS = {
    "ones": "(*size: int, %s, out: ?[Tensor]=...) -> Tensor" % MAKER,
    "zeros": "(size: Sequence[int], *, %s, out: ?[Tensor]=...) -> Tensor" % MAKER,
    "rand": "(*size: int, %s, out: ?[Tensor]=...) -> Tensor" % MAKER,
    "empty_strided": "(size: Sequence[int], stride: Sequence[int], *, %s) -> Tensor" % MAKER,
    "max": "(input: Tensor, dim: int, keepdim: bool=..., *, out: ?[Sequence[Tensor]]=...) -> _values_indices",
    "min": "(input: Tensor, *, out: ?[Tensor]=...) -> Tensor",
    "mm": "(input: Tensor, mat2: Tensor, *, out: ?[Tensor]=...) -> Tensor",
    "add": "(input: Tensor, other: Tensor, *, alpha: Number=..., out: ?[Tensor]=...) -> Tensor",
    "cat": "(tensors: Sequence[Tensor], dim: int=...) -> Tensor",
    "stack": "(tensors: Sequence[Tensor], dim: int=...) -> Tensor",
    "where": "(condition: Tensor, input: Tensor, other: Tensor, *, out: ?[Tensor]=...) -> Tensor",
    "permute": "(input: Tensor, dims: Sequence[int]) -> Tensor",
    "reshape": "(input: Tensor, shape: Sequence[int]) -> Tensor",
    "equal": "(input: Tensor, other: Tensor) -> bool",
    "split": "(input: Tensor, split_size: int, dim: int=...) -> tuple[Tensor, ...]",
}
OF_TENSORS = {
    "view": "(self, *size: int) -> Tensor",
    "reshape": "(self, *shape: int) -> Tensor",
    "expand": "(self, *size: int, implicit: bool=...) -> Tensor",
    "repeat": "(self, *repeats: int) -> Tensor",
    "permute": "(self, *dims: int) -> Tensor",
    "flip": "(self, *dims: int) -> Tensor",
    "new_zeros": "(self, *size: int, %s) -> Tensor" % MAKER,
    "sum": "(self, dim: ?[Union[int, Sequence[int]]], keepdim: bool=..., *, dtype: ?[dtype]=...) -> Tensor",
    "mul": "(self, other: Number) -> Tensor",
    "topk": "(self, k: int, dim: int=..., largest: bool=..., sorted: bool=...) -> _values_indices",
    "item": "(self) -> Union[int, float]",
    "sort": "(self, dim: int=..., descending: bool=...) -> _values_indices",
    "mT": "(self) -> Tensor",
}
OF_ANY_TENSOR = {
    "shape": "(self) -> Size",
    "dtype": "(self) -> _dtype",
    "T": "(self) -> Tensor",
    "__getitem__": "(self, index: Any) -> Tensor",
    "__radd__": "(self, other: Any) -> Tensor",
    "__iadd__": "(self, other: Any) -> Tensor",
    "__eq__": "(self, other: Any) -> Tensor",
    "__iter__": "(self) -> Iterator[Tensor]",
    "float": "(self, memory_format: _memory_format=...) -> Tensor",
}


class Stubs(unittest.TestCase):
    def test_forms_that_programs_use(self):
        for wanted, found in ((OF_FUNCTIONS, FUNCTIONS), (OF_TENSORS, OWN), (OF_ANY_TENSOR, COMMON)):
            for name, form in wanted.items():
                self.assertIn(form, [signature(node) for node in found[name]], name)

    def test_every_operator_has_one(self):
        functions = [n for n in vars(tenon._C._VariableFunctions) if not n.startswith("_")]
        self.assertGreater(len(functions), 500)
        known = {n for name in FUNCTIONS for n in (name, name.rstrip("_"))} | set(OTHERS) | set(OWN)
        declared = {f.__name__ for f in vars(tenon._C._nn).values() if hasattr(f, "__name__")}
        missing = [n for n in functions if n not in known and n in declared]
        self.assertEqual(missing, [])

    def test_everything_that_tensors_have_has_one(self):
        known = set(OWN) | set(COMMON)
        public = [n for n in dir(tenon.Tensor) if not n.startswith("_") and n not in dir(object)]
        ours = {"constant", "fake_device", "fake_mode"}  # of fake tensors
        self.assertEqual([n for n in public if n not in known and n not in ours], [])

    def test_functions_that_take_more_forms_than_their_operator_are_typed_as_they_are_written(self):
        for name in tenon._WRAPPED:
            self.assertNotIn(name, FUNCTIONS, "the operator's form would hide the function's")
            written = inspect.signature(getattr(tenon, name)).parameters
            typed = [p for node in OTHERS[name] for p in parameters(node)]
            for p in written.values():
                if name != "einsum":  # its `args` have two forms
                    self.assertIn((p.name, p.kind is p.VAR_POSITIONAL), typed, name)
        for name in "norm", "nonzero", "unique_consecutive":
            self.assertNotIn(name, OWN)
            self.assertIn(name, COMMON)

    def test_no_two_forms_are_the_same_and_several_are_overloads(self):
        for found in FUNCTIONS, OWN, COMMON:
            for name, nodes in found.items():
                forms = [signature(n) for n in nodes if isinstance(n, ast.FunctionDef)]
                self.assertEqual(len(forms), len(set(forms)), name)
                if len(forms) > 1:
                    self.assertTrue(all(d.id == "overload" for n in nodes for d in n.decorator_list), name)
                    self.assertTrue(all(n.decorator_list for n in nodes), name)

    def test_named_results_are_those_that_are_given(self):
        x = tenon.tensor([[3., 1.], [2., 4.]])
        for name, result in (("max", x.max(1)), ("sort", x.sort()), ("svd", tenon.svd(x)), ("slogdet", tenon.slogdet(x))):
            nodes = FUNCTIONS[name]
            types = {ast.unparse(n.returns) for n in nodes} - {"Tensor"}
            self.assertEqual(len(types), 1, name)
            for field in members(FUNCTIONS[types.pop()][0].body):
                self.assertTrue(hasattr(result, field), (name, field))

    def test_names_that_are_found_later_may_be_anything(self):
        # Without this a checker takes what __getattr__ gives, a module perhaps, for the type of every name.
        for name in ("", "autograd", "cuda", "fft", "jit", "linalg", "masked", "nn", "nn.attention", "nn.modules", "nn.utils",
                     "optim.optimizer", "special", "storage", "utils.checkpoint"):
            path = os.path.join(os.path.dirname(tenon.__file__), *name.split("."))
            found = [node for node in ast.walk(read(os.path.join(path, "__init__.py") if os.path.isdir(path) else path + ".py"))
                     if getattr(node, "name", None) == "__getattr__"]
            self.assertEqual([node.returns.id.lstrip("_") for node in found], ["Any"], name)

    def test_datasets_are_named_with_what_they_give(self):
        data = tenon.utils.data
        self.assertFalse(tenon.utils.data._of.TYPE_CHECKING)
        for cls in (data.Dataset, data.IterableDataset, data.Subset, data.Sampler, data.DataLoader):
            self.assertIs(cls[int], cls)
            file = inspect.getsourcefile(cls)
            node = [n for n in read(file).body if getattr(n, "name", None) == cls.__name__]
            self.assertIn("T_co", ast.unparse(node[0].bases[0]), cls)

    def test_types_are_shipped(self):
        self.assertTrue(os.path.exists(os.path.join(FOLDER, "py.typed")))


if __name__ == "__main__":
    harness.main()
