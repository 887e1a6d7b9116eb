# SPDX-License-Identifier: MIT
"""Hooks of leaves and nodes that lead back to them are garbage when nothing else leads there, and never before."""
import functools
import gc
import threading
import unittest
import weakref

import harness
import tenon


class Thing:
    pass


def leaf(n=3):
    return tenon.ones(n, requires_grad=True)


class Garbage(unittest.TestCase):
    def goes(self, make):
        """Whether what ``make`` ties to its argument is collected."""
        thing = Thing()
        known = weakref.ref(thing)
        kept = make(thing)
        del thing
        gc.collect()
        gc.collect()
        return known() is None, kept

    def test_a_hook_that_holds_its_leaf_goes(self):
        def tie(thing):
            t = leaf()
            t.register_hook(lambda g: (thing, t) and None)
        self.assertTrue(self.goes(tie)[0])

    def test_one_that_runs_after_accumulating_goes(self):
        def tie(thing):
            t = leaf()
            t.register_post_accumulate_grad_hook(lambda p: (thing, t) and None)
            (t * 2).sum().backward()
        self.assertTrue(self.goes(tie)[0])

    def test_a_hook_of_a_parameter_that_holds_the_module_goes(self):
        def tie(thing):
            m = tenon.nn.Linear(2, 2)
            m.thing = thing
            m.weight.register_hook(lambda g: m and None)
            m(tenon.ones(1, 2)).sum().backward()
        self.assertTrue(self.goes(tie)[0])

    def test_a_hook_of_a_subclass_goes(self):
        class Sub(tenon.Tensor):
            pass

        def tie(thing):
            t = tenon.ones(2).as_subclass(Sub).requires_grad_()
            t.thing = thing
            t.register_hook(lambda g: t and None)
        self.assertTrue(self.goes(tie)[0])

    def test_a_hook_without_anything_to_clear_goes(self):
        def tie(thing):
            t = leaf()
            t.thing = thing
            t.register_hook(t.mul)
            t.register_hook(functools.partial(tenon.Tensor.add, t))
        self.assertTrue(self.goes(tie)[0])

    def test_a_handle_in_the_circle_or_outside_of_it_does_not_matter(self):
        def tie(thing):
            t = leaf()
            thing.t, thing.handle = t, t.register_hook(lambda g: thing and None)
        self.assertTrue(self.goes(tie)[0])

        def keep(thing):
            t = leaf()
            return t.register_hook(lambda g: (thing, t) and None)
        gone, handle = self.goes(keep)
        self.assertTrue(gone)
        handle.remove()

    def test_hooks_that_hold_the_result_or_the_node_that_they_are_of_go(self):
        def of_result(thing):
            y = leaf() * 2
            y.register_hook(lambda g: (thing, y) and None)

        def of_its_node(thing):
            y = leaf() * 2
            y.grad_fn.register_hook(lambda i, o: (thing, y) and None)

        def by_the_node(thing):
            node = (leaf() * 2).grad_fn
            node.register_prehook(lambda o: (thing, node) and None)
            node.register_hook(lambda i, o: (thing, node) and None)

        def of_an_accumulator(thing):
            node = tenon.autograd.graph.get_gradient_edge(leaf()).node
            node.register_hook(lambda i, o: (thing, node) and None)
        for tie in (of_result, of_its_node, by_the_node, of_an_accumulator):
            with self.subTest(tie.__name__):
                self.assertTrue(self.goes(tie)[0])

    def test_hooks_of_a_node_that_a_graph_leads_to_stay(self):
        seen = []

        def tie(thing):
            y = leaf() * 2
            node = y.grad_fn
            node.register_hook(lambda i, o: seen.append((type(thing), type(node).__name__)))
            return y.sum()
        gone, z = self.goes(tie)
        self.assertFalse(gone)
        z.backward()
        self.assertEqual(seen, [(Thing, "MulBackward0")])

    def test_what_a_graph_leads_to_stays(self):
        seen = []

        def tie(thing):
            t = leaf()
            t.register_hook(lambda g: seen.append((type(thing), t.tolist())))
            return (t * 2).sum()
        gone, y = self.goes(tie)
        self.assertFalse(gone)
        y.backward()
        self.assertEqual(seen, [(Thing, [1.0, 1.0, 1.0])])

    def test_what_is_used_stays_while_others_compute_and_collect(self):
        """A collection looks twice at a leaf that another thread puts into graphs without the lock."""
        n, wrong, done = 20000, [], threading.Event()

        def compute():
            try:
                for _ in range(40):
                    t, calls = leaf(n), []
                    t.register_hook(lambda g: calls.append(t.shape[0]))
                    for _ in range(3):
                        (t * t).sum().backward()
                    if calls != [n] * 3:
                        wrong.append(calls)
            except Exception as e:
                wrong.append(e)
            finally:
                done.set()
        thread = threading.Thread(target=compute)
        thread.start()
        while not done.is_set():
            gc.collect(0)
            gc.collect()
        thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    harness.main()
