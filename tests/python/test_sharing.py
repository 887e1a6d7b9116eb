# SPDX-License-Identifier: MIT
"""Memory that processes share: what one writes, the other sees, however the other was started."""

import unittest

import harness
import tenon
from tenon import multiprocessing


def train(model, batch):
    """Writes the parameters and buffers of a module and a tensor in place."""
    with tenon.no_grad():
        for t in model.state_dict().values():
            t.fill_(7)
    batch.add_(1)


def answer(take, give):
    t = take.get()
    give.put((t.is_shared(), t.tolist()))
    t.mul_(10)
    give.put(None)
    take.get()


class Sharing(unittest.TestCase):
    def test_a_shared_module_is_trained_by_another_process(self):
        for method in ("spawn", "fork"):
            with self.subTest(method):
                model = tenon.nn.Sequential(tenon.nn.Linear(2, 3), tenon.nn.BatchNorm1d(3)).share_memory()
                self.assertTrue(all(t.is_shared() for t in model.state_dict().values()))
                batch = tenon.zeros(4).share_memory_()
                p = multiprocessing.get_context(method).Process(target=train, args=(model, batch))
                p.start()
                p.join(600)
                self.assertEqual(p.exitcode, 0)
                self.assertTrue(all((t == 7).all() for t in model.state_dict().values()))
                self.assertEqual(batch.tolist(), [1, 1, 1, 1])

    def test_a_tensor_given_to_a_new_process_becomes_shared(self):
        batch = tenon.zeros(2)
        p = multiprocessing.get_context("spawn").Process(target=train, args=(tenon.nn.Identity(), batch))
        p.start()
        p.join(600)
        self.assertEqual(p.exitcode, 0)
        self.assertTrue(batch.is_shared())
        self.assertEqual(batch.tolist(), [1, 1])

    def test_a_queue_carries_shared_memory_and_copies_of_other_tensors(self):
        context = multiprocessing.get_context("spawn")
        for shared in (True, False):
            with self.subTest(shared=shared):
                give, take = context.Queue(), context.Queue()
                p = context.Process(target=answer, args=(give, take))
                p.start()
                whole = tenon.arange(6.0)
                t = (whole.share_memory_() if shared else whole)[1:4]
                give.put(t)
                self.assertEqual(take.get(timeout=600), (shared, [1, 2, 3]))
                self.assertIsNone(take.get(timeout=600))
                give.put(None)
                p.join(600)
                self.assertEqual(p.exitcode, 0)
                self.assertEqual(t.tolist(), [10, 20, 30] if shared else [1, 2, 3])

    def test_what_has_a_history_does_not_travel(self):
        from multiprocessing.reduction import ForkingPickler
        x = tenon.ones(2, requires_grad=True)
        self.assertTrue(ForkingPickler.loads(ForkingPickler.dumps(x)).requires_grad)
        with self.assertRaisesRegex(RuntimeError, "Cowardly refusing to serialize non-leaf tensor which requires_grad"):
            ForkingPickler.dumps(x * 2)


if __name__ == "__main__":
    harness.main()
