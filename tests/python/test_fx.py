# SPDX-License-Identifier: MIT
"""tenon.fx: what a module does as a graph, the code written from it, and changes of it. The code that is expected is the
text that PyTorch 2.11 writes for the same modules, with the name of the package changed."""

import copy
import math
import operator
import pickle
import unittest

import harness
import tenon
from tenon import fx, nn
from tenon.fx.passes.shape_prop import ShapeProp


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.p = nn.Linear(3, 4), nn.Parameter(tenon.ones(4))
        self.seq = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x, y=None, *, k=2):
        a = self.l(x) + self.p
        b = tenon.cat([a, a], dim=1)[:, :4].relu()
        c = self.seq(b)
        q, r = tenon.chunk(c, 2, 1)
        b += 1
        x.sum()
        return {"a": nn.functional.relu(c, inplace=False), "b": (c.view(x.shape[0], -1), 2.5, -x, 3 - q, abs(r))}


CODE = '''


def forward(self, x, y = None, k = 2):
    l = self.l(x)
    p = self.p
    add = l + p;  l = p = None
    cat = tenon.cat([add, add], dim = 1);  add = None
    getitem = cat[(slice(None, None, None), slice(None, 4, None))];  cat = None
    relu = getitem.relu();  getitem = None
    seq_0 = getattr(self.seq, "0")(relu)
    seq_1 = getattr(self.seq, "1")(seq_0);  seq_0 = None
    chunk = tenon.chunk(seq_1, 2, 1)
    getitem_1 = chunk[0]
    getitem_2 = chunk[1];  chunk = None
    add_1 = relu + 1;  relu = add_1 = None
    sum_1 = x.sum();  sum_1 = None
    relu_1 = tenon.nn.functional.relu(seq_1, inplace = False)
    getattr_1 = x.shape
    getitem_3 = getattr_1[0];  getattr_1 = None
    view = seq_1.view(getitem_3, -1);  seq_1 = getitem_3 = None
    neg = -x;  x = None
    sub = 3 - getitem_1;  getitem_1 = None
    abs_1 = _operator_abs(getitem_2);  getitem_2 = None
    return {'a': relu_1, 'b': (view, 2.5, neg, sub, abs_1)}
    '''


def pool(x):
    return x.mean() if x.dim() > 1 else x


fx.wrap("pool")
fx.wrap("max")


@fx.wrap
def counted(x):
    return len(x)


def packed(x, *args, **more):
    return x + args[0] + more["a"]


class Trace(unittest.TestCase):
    def setUp(self):
        tenon.manual_seed(1)
        self.net, self.x = Net(), tenon.randn(5, 3)

    def same(self, module):
        mine, theirs = module(self.x), self.net(self.x)
        self.assertTrue(tenon.equal(mine["a"], theirs["a"]))
        for a, b in zip(mine["b"], theirs["b"]):
            self.assertTrue(tenon.equal(a, b) if isinstance(a, tenon.Tensor) else a == b)

    def test_the_code_is_torchs(self):
        traced = fx.symbolic_trace(self.net)
        self.assertEqual(traced.code, CODE)
        self.same(traced)

    def test_the_graph_prints_as_torchs(self):
        lines = str(fx.symbolic_trace(self.net).graph).split("\n")
        self.assertEqual(lines[:7], [
            "graph():", "    %x : [num_users=4] = placeholder[target=x]",
            "    %y : [num_users=0] = placeholder[target=y](default=None)",
            "    %k : [num_users=0] = placeholder[target=k](default=2)",
            "    %l : [num_users=1] = call_module[target=l](args = (%x,), kwargs = {})",
            "    %p : [num_users=1] = get_attr[target=p]",
            "    %add : [num_users=1] = call_function[target=operator.add](args = (%l, %p), kwargs = {})"])
        self.assertEqual(lines[-1], "    return {'a': relu_1, 'b': (view, 2.5, neg, sub, abs_1)}")

    def test_copies_run(self):
        traced = fx.symbolic_trace(self.net)
        for made in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), fx.Transformer(traced).transform()):
            self.assertEqual(made.code, CODE)
            self.same(made)
        self.assertIsNot(copy.deepcopy(traced).l.weight, traced.l.weight)
        self.assertIs(traced.l.weight, self.net.l.weight)
        self.same(lambda x: fx.Interpreter(traced).run(x))

    def test_gradients_reach_the_parameters(self):
        fx.symbolic_trace(self.net)(self.x)["a"].sum().backward()
        self.assertIsNotNone(self.net.p.grad)

    def test_nodes_are_replaced_and_dead_ones_go(self):
        traced = fx.symbolic_trace(self.net)
        graph = traced.graph
        for node in graph.nodes:
            if node.op == "call_method" and node.target == "relu":
                with graph.inserting_after(node):
                    new = graph.call_function(tenon.sigmoid, (node.args[0],))
                node.replace_all_uses_with(new)
                graph.erase_node(node)
        graph.lint()
        before = len(graph.nodes)
        self.assertTrue(graph.eliminate_dead_code())
        self.assertEqual(len(graph.nodes), before - 2)
        traced.recompile()
        self.assertIn("sigmoid = tenon.sigmoid(getitem);  getitem = None", traced.code)
        self.assertNotIn("sum_1", traced.code)
        used = next(n for n in graph.nodes if n.name == "seq_1")
        with self.assertRaisesRegex(RuntimeError, "Tried to erase Node seq_1 but it still had"):
            graph.erase_node(used)

    def test_a_pattern_is_replaced_everywhere(self):
        def whole(x, a, b):
            return x + tenon.max(tenon.cat([a, b]).sum()) + tenon.max(tenon.cat([a, b]).sum())

        traced = fx.symbolic_trace(whole)
        found = fx.replace_pattern(traced, lambda a, b: tenon.cat([a, b]).sum(), lambda a, b: tenon.stack([a, b]))
        self.assertEqual((len(found), traced.code.count("stack("), traced.code.count("cat(")), (2, 2, 0))
        one, two = tenon.tensor([1.0, 2.0]), tenon.tensor([5.0, 3.0])
        self.assertEqual(traced(one, one, two).tolist(), [11.0, 12.0])

    def test_shapes_are_written_into_nodes(self):
        traced = fx.symbolic_trace(self.net)
        ShapeProp(traced).propagate(self.x)
        shapes = {n.name: tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes
                  if hasattr(n.meta.get("tensor_meta"), "shape")}
        self.assertEqual((shapes["cat"], shapes["seq_1"], shapes["sum_1"]), ((5, 8), (5, 2), ()))

    def test_wrapped_functions_are_one_node(self):
        traced = fx.symbolic_trace(lambda x: pool(x) * math.sqrt(x.shape[1]))
        self.assertEqual([n.target for n in traced.graph.nodes if n.op == "call_function"],
                         [pool, getattr, operator.getitem, math.sqrt, operator.mul])
        self.assertAlmostEqual(traced(tenon.ones(2, 9)).item(), 3.0)
        self.assertIs(math.sqrt, __import__("math").sqrt)
        self.assertEqual(math.sqrt(4.0), 2.0)

    def test_a_place_for_new_nodes_holds_without_a_block(self):
        graph = fx.Graph()
        x = graph.placeholder("x")
        last = graph.call_function(operator.neg, (x,))
        graph.output(last)
        graph.inserting_after(x)
        first = graph.call_function(operator.pos, (x,))
        graph.inserting_after(first)
        with graph.inserting_before(x):
            graph.placeholder("y")
        graph.call_function(operator.abs, (first,))
        self.assertEqual([n.name for n in graph.nodes], ["y", "x", "pos", "abs_1", "neg", "output"])

    def test_functions_of_math_in_other_files_are_one_node(self):
        import types
        other = types.ModuleType("other")
        exec("from math import sqrt\ndef forward(self, x):\n    return x * sqrt(x.shape[1])", other.__dict__)
        inner = type("Inner", (nn.Module,), {"forward": other.forward})()
        traced = fx.symbolic_trace(nn.Sequential(inner))
        self.assertEqual([n.target for n in traced.graph.nodes if n.op == "call_function"],
                         [getattr, operator.getitem, math.sqrt, operator.mul])
        self.assertIs(other.sqrt, math.sqrt)
        self.assertEqual(traced(tenon.ones(1, 4)).tolist(), [[2.0] * 4])

    def test_a_tracer_with_a_trace_of_its_own(self):
        import tenon.fx._symbolic_trace as st

        class Outside(nn.Module):
            def __call__(self, x):
                return super().__call__(x)

            def forward(self, x):
                raise AssertionError("traced through")

        class Tracer(fx.Tracer):
            def is_leaf_module(self, module, *args):
                return not isinstance(module, nn.Sequential)

            @st.compatibility(is_backward_compatible=True)
            def trace(self, root, concrete_args=None):
                self.root, self.graph = root, fx.Graph(tracer_cls=type(self))
                self.submodule_paths = {module: name for name, module in root.named_modules()}
                self.tensor_attrs = {v: k for k, v in root.__dict__.items() if isinstance(v, (tenon.Tensor, st.ScriptObject))}
                fn = type(root).forward
                self_assert = isinstance(fn, st.FunctionType)
                fn, args = self.create_args_for_root(fn, True, concrete_args)
                cache = {}

                @st.functools.wraps(st._orig_module_getattr)
                def take(module, name):
                    return self.getattr(name, st._orig_module_getattr(module, name), cache)

                @st.functools.wraps(st._orig_module_call)
                def call(module, *args, **kwargs):
                    return self.call_module(module, lambda *a, **k: st._orig_module_call(module, *a, **k), args, kwargs)

                with st._Patcher() as patcher:
                    patcher.patch_method(nn.Module, "__getattr__", take, deduplicate=False)
                    patcher.patch_method(nn.Module, "__call__", call, deduplicate=False)
                    patcher.patch_method(Outside, "__call__", call, deduplicate=False)
                    st._patch_wrapped_functions(patcher)
                    st._autowrap_check(patcher, type(root).forward.__globals__, self._autowrap_function_ids)
                    for module in self._autowrap_search:
                        st._autowrap_check(patcher, module.__dict__, self._autowrap_function_ids)
                    self.create_node("output", "output", (self.create_arg(fn(*args)),), {})
                assert self_assert and "__call__" in vars(Outside) and nn.Module.__call__ is st._orig_module_call
                return self.graph

        class Root(nn.Module):
            def __init__(self):
                super().__init__()
                self.outside, self.seq, self.shift = Outside(), nn.Sequential(nn.ReLU()), tenon.ones(2)

            def forward(self, x):
                return self.seq(self.outside(x)) + self.shift

        graph = Tracer().trace(Root())
        self.assertEqual([(n.op, str(n.target)) for n in graph.nodes][:4],
                         [("placeholder", "x"), ("call_module", "outside"), ("call_module", "seq.0"), ("get_attr", "shift")])

    def test_wrapped_functions_stay_one_node_when_a_graph_is_traced_again(self):
        first = fx.symbolic_trace(lambda x: max(x) + counted(x))
        self.assertEqual(first.code.split("def ")[0].replace("tenon.", "torch."), """
torch.fx._symbolic_trace.wrap("max")
torch.fx._symbolic_trace.wrap("__main___counted")

""")
        self.assertEqual(first(tenon.ones(3)), 4)
        again = fx.symbolic_trace(first)
        self.assertEqual(again.code, first.code)
        self.assertEqual(again(tenon.ones(4)), 5)

    def test_norms_are_fused_into_convolutions_and_dropouts_go(self):
        from tenon.fx.experimental.optimization import fuse, remove_dropout
        inner = nn.Sequential(nn.Conv2d(2, 3, 1, bias=False), nn.BatchNorm2d(3), nn.ReLU())
        model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5), inner, nn.BatchNorm2d(3)).eval()
        with tenon.no_grad():
            for number, t in enumerate([*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]):
                t.copy_(tenon.cos(tenon.arange(t.numel()) + number).view_as(t).abs() + 0.1)
        x = tenon.arange(25.0).view(1, 1, 5, 5)
        fused = fuse(model)
        tenon.testing.assert_close(fused(x), model(x))
        self.assertEqual([type(m).__name__ for m in fused.modules() if isinstance(m, nn.BatchNorm2d)], ["BatchNorm2d"])
        self.assertEqual(sum(isinstance(m, nn.BatchNorm2d) for m in model.modules()), 3)
        self.assertEqual([n.target for n in remove_dropout(model).graph.nodes if n.op == "call_module" and n.target == "2"], [])
        tenon.testing.assert_close(remove_dropout(model)(x), model(x))

    def test_a_graph_for_one_value_refuses_others(self):
        def f(x, flag, n=None, mode="a"):
            return x + 1 if flag else x

        made = fx.symbolic_trace(f, concrete_args={"flag": True, "n": None, "mode": "a"})
        self.assertEqual(made(tenon.ones(1), True).tolist(), [2.0])
        for args, name, value in (((False,), "flag", True), ((True, 3), "n", None), ((True, None, "b"), "mode", "a")):
            with self.assertRaisesRegex(AssertionError, "^%s has been specialized to have value %s but got another value$"
                                        % (name, value)):
                made(tenon.ones(1), *args)
        with self.assertRaisesRegex(TypeError, "missing 1 required positional argument: 'flag_1'"):
            made(tenon.ones(1))

    def test_packed_arguments_are_inputs(self):
        traced = fx.symbolic_trace(packed)
        self.assertIn("def forward(self, x, *args, **more):", traced.code)
        self.assertEqual(traced(1, 2, a=3), 6)

    def test_what_needs_a_value_raises(self):
        for function, words in ((lambda x: x if x.sum() > 0 else -x, "cannot be used as inputs to control flow"),
                                (lambda x: [i for i in x], "Proxy object cannot be iterated")):
            with self.assertRaisesRegex(fx.proxy.TraceError, words):
                fx.symbolic_trace(function)
        with self.assertRaisesRegex(RuntimeError, "'len' is not supported in symbolic tracing by default"):
            fx.symbolic_trace(lambda x: len(x))
        self.same(self.net)

    def test_a_graph_made_by_hand_runs(self):
        graph = fx.Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_module("act", (graph.call_function(tenon.neg, (x,)),)))
        module = fx.GraphModule({"act": nn.ReLU()}, graph)
        self.assertEqual(module(tenon.tensor([1.0, -2.0])).tolist(), [0.0, 2.0])
        self.assertTrue(module.add_submodule("more.inner", nn.Tanh()) and module.delete_submodule("more.inner"))
        module.delete_all_unused_submodules()
        self.assertEqual([name for name, _ in module.named_modules()], ["", "act"])


class Pickled(unittest.TestCase):
    def test_functions_of_operators_are_found_by_name(self):
        for function in (tenon.cat, tenon.relu, nn.functional.gelu, tenon.linalg.norm, tenon.fft.fft, nn.functional.silu):
            self.assertIs(pickle.loads(pickle.dumps(function)), function)
        self.assertEqual((tenon.relu.__module__, tenon.relu.__name__), ("tenon", "relu"))

    def test_the_text_of_a_graph_goes_with_its_module(self):
        import gc
        import linecache
        module = fx.symbolic_trace(lambda x: x + 1)
        file = type(module).forward.__code__.co_filename
        self.assertIn("return add", "".join(linecache.getlines(file)))
        del module
        gc.collect()
        self.assertEqual(linecache.getlines(file), [])


if __name__ == "__main__":
    harness.main()
