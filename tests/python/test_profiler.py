# SPDX-License-Identifier: MIT
"""The profiler: what was called, how often, for how long; ranges, schedules, traces."""

import json
import os
import tempfile
import unittest

import harness
import tenon
from tenon.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


class Profiler(unittest.TestCase):
    def test_calls_are_counted_and_ranges_contain_them(self):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            with record_function("part"):
                for _ in range(3):
                    tenon.matmul(tenon.ones(8, 8), tenon.ones(8, 8)).relu()
        by_name = {event.key: event for event in prof.key_averages()}
        self.assertEqual(by_name["aten::matmul"].count, 3)
        self.assertEqual(by_name["aten::relu"].count, 3)
        self.assertGreaterEqual(by_name["part"].cpu_time_total, by_name["aten::matmul"].cpu_time_total)
        table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)
        self.assertIn("Self CPU time total:", table)
        self.assertIn("aten::matmul", table)

    def test_nothing_is_measured_outside(self):
        with profile() as prof:
            pass
        tenon.ones(2).relu()
        self.assertEqual([event.key for event in prof.events() if event.key.startswith("aten")], [])

    def test_values_and_gradients_are_unchanged(self):
        x = tenon.ones(3, requires_grad=True)
        with profile():
            (x * 2).sum().backward()
        self.assertEqual(x.grad.tolist(), [2.0, 2.0, 2.0])

    def test_an_exception_leaves_the_profiler_usable(self):
        with self.assertRaises(RuntimeError):
            with profile():
                tenon.ones(2) @ tenon.ones(3)
        with profile() as prof:
            tenon.ones(2).exp()
        self.assertIn("aten::exp", [event.key for event in prof.events()])

    def test_a_schedule_chooses_steps(self):
        plan = schedule(wait=1, warmup=1, active=2, repeat=1)
        self.assertEqual([plan(i) for i in range(5)],
                         [ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD,
                          ProfilerAction.RECORD_AND_SAVE, ProfilerAction.NONE])
        ready = []
        with profile(schedule=plan, on_trace_ready=lambda p: ready.append(len(p.events()))) as prof:
            for _ in range(6):
                tenon.ones(2).exp()
                prof.step()
        self.assertEqual(len(ready), 1)
        self.assertEqual(len([e for e in prof.events() if e.key == "aten::exp"]), 2)

    def test_a_trace_is_json(self):
        with profile() as prof:
            tenon.ones(2).exp()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            prof.export_chrome_trace(path)
            with open(path, encoding="utf-8") as file:
                names = {event["name"] for event in json.load(file)["traceEvents"]}
        self.assertIn("aten::exp", names)


if __name__ == "__main__":
    harness.main()
