# SPDX-License-Identifier: MIT
"""The profiler: what was called, how often, for how long; ranges, schedules, traces."""

import json
import os
import sys
import tempfile
import unittest

import harness
import tenon
from tenon.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler


class Profiler(unittest.TestCase):
    def test_whether_one_records_and_how_to_end_it(self):
        from tenon.profiler.profiler import _default_schedule_fn
        self.assertFalse(tenon.autograd._profiler_enabled())
        with tenon.autograd.profiler.profile(record_shapes=True) as prof:
            self.assertTrue(tenon.autograd._profiler_enabled())
            tenon.ones(2) + 1
            tenon.ones(3) + 1
        for by_shape, rows in ((False, 1), (True, 2)):
            averages = prof.function_events.key_averages(group_by_input_shapes=by_shape)
            self.assertEqual(sum(event.key == "aten::add" for event in averages), rows)
        tenon._C._profiler_start(False, False, False, False)
        tenon.autograd._disable_profiler()
        self.assertFalse(tenon.autograd._profiler_enabled())
        self.assertRaisesRegex(RuntimeError, "not running", tenon.autograd._disable_profiler)
        self.assertIs(_default_schedule_fn(3), ProfilerAction.RECORD)

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

    def test_a_table_is_not_sorted_by_what_events_do_not_have(self):
        with tenon.profiler.profile() as prof:
            tenon.ones(3) + 1
        with self.assertRaisesRegex(AttributeError, "'FunctionEventAvg' object has no attribute 'nonsense'"):
            prof.key_averages().table(sort_by="nonsense")
        self.assertIn("aten::add", prof.key_averages().table(sort_by="cuda_time_total"))

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

    def test_events_have_the_python_functions_around_them(self):
        def here(function):
            return "test_profiler.py(%d): %s" % (function.__code__.co_firstlineno, function.__name__)

        def inner(x):
            return x @ x

        def outer(x):
            with record_function("mine"):
                return inner(x).relu()
        x = tenon.ones(3, 3)
        with profile(with_stack=True) as prof:
            outer(x)
            inner(x)
            with self.assertRaises(RuntimeError):
                inner(tenon.ones(2, 3))
            tenon.ones(2).exp()
        stacks = {}
        for event in prof.events():
            names = [place.rpartition("/")[2] for place in event.stack]
            stacks.setdefault(event.name, []).append([n for n in names if n.startswith("test_profiler.py") and not n.endswith("<module>")])
        test = here(type(self).test_events_have_the_python_functions_around_them)
        self.assertEqual(stacks["aten::mm"][:2], [[here(inner), here(outer), test], [here(inner), test]])
        self.assertEqual(stacks["aten::relu"], [[here(outer), test]])
        self.assertEqual(stacks["mine"], [[here(outer), test]])
        self.assertEqual(stacks["aten::exp"], [[test]])
        relu = next(e for e in prof.events() if e.name == "aten::relu")
        self.assertEqual(relu.cpu_parent.name, "mine")
        rows = [e for e in prof.key_averages(group_by_stack_n=2) if e.key == "aten::mm"]
        self.assertEqual(len(rows), 2)
        self.assertEqual(len({tuple(row.stack) for row in rows}), len(rows))
        self.assertIn("Source Location", prof.key_averages(group_by_stack_n=1).table())
        self.assertNotIn("Source Location", prof.key_averages().table())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stacks.txt")
            prof.export_stacks(path)
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
            for line in lines:
                places, value = line.rsplit(" ", 1)
                self.assertGreater(int(value), 0)
                self.assertIn(test.replace(" ", "_"), places)
            with self.assertRaisesRegex(ValueError, "metric should be one of"):
                prof.export_stacks(path, "time")

    def test_ranges_may_begin_and_end_in_other_functions(self):
        part = record_function("crossing")

        def opens():
            part.__enter__()

        def closes():
            tenon.ones(2).exp()
            part.__exit__(None, None, None)
            tenon.ones(2).sin()
        with profile(with_stack=True) as prof:
            opens()
            tenon.ones(2).neg()
            closes()
            tenon.ones(2).cos()
        parents = {e.name: e.cpu_parent.name if e.cpu_parent else None for e in prof.events()}
        self.assertEqual([parents["aten::" + n] for n in ("neg", "exp", "sin", "cos")],
                         ["crossing", "crossing", None, None])
        self.assertEqual(len([e for e in prof.events() if e.name == "crossing"]), 1)

    def test_a_profile_function_of_the_users_comes_back(self):
        import sys
        import threading

        def mine(frame, event, arg):
            return None
        sys.setprofile(mine)
        try:
            with profile(with_stack=True):
                other = threading.Thread(target=lambda: tenon.ones(2).exp())
                other.start()
                other.join()
            self.assertIs(sys.getprofile(), mine)
        finally:
            sys.setprofile(None)

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


def work():
    x = tenon.ones(8, 8, requires_grad=True)
    with record_function("my range"):
        y = (x @ x).sum()
    y.backward()


class Recording(unittest.TestCase):
    def test_averages_and_table(self):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
            work()
            work()
        averages = {e.key: e for e in prof.key_averages()}
        self.assertEqual(averages["my range"].count, 2)
        self.assertEqual(averages["aten::matmul"].count, 2)
        self.assertIn("MmBackward0", averages)
        self.assertGreater(averages["my range"].cpu_time_total, averages["my range"].self_cpu_time_total)
        text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5)
        for word in ("Name", "Self CPU %", "CPU total", "# of Calls", "Self CPU time total:"):
            self.assertIn(word, text)
        shapes = [e.input_shapes for e in prof.key_averages(group_by_input_shape=True) if e.key == "aten::mm"]
        self.assertEqual(shapes, [[[8, 8], [8, 8]]])

    def test_a_table_is_laid_out_as_pytorchs(self):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_flops=True) as prof:
            with record_function("mine"):
                tenon.nn.Linear(400, 40)(tenon.ones(20, 400)).relu()
        lines = prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=2).split("\n")
        heads = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "CPU Mem", "Self CPU Mem",
                 "# of Calls", "Total KFLOPs"]
        width = max(len(e.key) for e in prof.events()) + 4
        self.assertEqual(lines[0], "-" * width + "  " + "------------  " * 9)
        self.assertEqual(lines[1], "Name".rjust(width) + "  " + "".join(h.rjust(12) + "  " for h in heads))
        self.assertEqual((lines[2], lines[5], len(lines)), (lines[0], lines[0], 8))
        self.assertEqual(lines[7], "")
        # by what they allocated themselves: "mine" made no tensor
        self.assertEqual([line.split()[0] for line in lines[3:5]], ["aten::empty", "aten::ones"])
        self.assertIn("    62.66 KB      62.66 KB  ", lines[3])
        self.assertIn("aten::addmm", prof.key_averages().table())
        addmm = next(e for e in prof.key_averages() if e.key == "aten::addmm")
        self.assertEqual((addmm.self_cpu_memory_usage, addmm.input_shapes, addmm.cpu_time_str[-1]), (3200, "", "s"))
        top = prof.key_averages().table(header="of all", top_level_events_only=True, time_unit="ms").split("\n")
        self.assertEqual(top[:4], ["=" * (len(top[4]) - 2), "of all", "=" * (len(top[4]) - 2),
                                   "This report only display top-level ops statistics"])
        self.assertEqual([line.split()[0] for line in top[7:-3]], ["mine"])
        self.assertRegex(top[-2], r"^Self CPU time total: \d+\.\d{3}ms$")
        self.assertIn("Input Shapes", prof.key_averages(group_by_input_shape=True).table())
        self.assertEqual(prof.key_averages()[:0], [])
        self.assertEqual(tenon.autograd.profiler.EventList().table(), "")

    def test_events_nest(self):
        with tenon.autograd.profiler.profile() as prof:
            work()
        around = next(e for e in prof.function_events if e.name == "my range")
        self.assertTrue(around.is_user_annotation)
        self.assertIn("aten::matmul", [e.name for e in around.cpu_children])
        self.assertGreaterEqual(prof.self_cpu_time_total, 0)

    def test_traces(self):
        with tempfile.TemporaryDirectory() as folder:
            with profile() as prof:
                work()
            for name in ("a.json", "b.trace"):
                path = os.path.join(folder, name)
                prof.export_chrome_trace(path)
                with open(path) as file:
                    trace = json.load(file)
                events = trace["traceEvents"] if isinstance(trace, dict) else trace
                self.assertIn("my range", {e.get("name") for e in events})

    def test_one_at_a_time_and_unfinished(self):
        with tenon.autograd.profiler.profile() as outer:
            with self.assertRaises(RuntimeError):
                with tenon.autograd.profiler.profile():
                    pass
            with self.assertRaisesRegex(RuntimeError, "Profiler didn't finish running"):
                outer.key_averages()

    def test_disabled_and_without_a_recording(self):
        with tenon.autograd.profiler.profile(enabled=False):
            work()
        work()


class Schedules(unittest.TestCase):
    def test_actions(self):
        plan = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
        none, warm, record, save = ProfilerAction
        self.assertEqual([plan(i) for i in range(7)], [none, none, warm, record, save, none, none])

    def test_steps(self):
        ready = []
        with profile(schedule=schedule(wait=1, warmup=0, active=1, repeat=2),
                     on_trace_ready=lambda p: ready.append(sorted(e.key for e in p.key_averages()
                                                                  if e.key.startswith("ProfilerStep")))) as prof:
            for _ in range(6):
                work()
                prof.step()
        self.assertEqual(ready, [["ProfilerStep#1"], ["ProfilerStep#3"]])

    def test_a_folder_of_traces(self):
        with tempfile.TemporaryDirectory() as folder:
            with profile(on_trace_ready=tensorboard_trace_handler(folder, "worker")):
                work()
            (name,) = os.listdir(folder)
            self.assertRegex(name, r"^worker\.\d+\.pt\.trace\.json$")


class Ranges(unittest.TestCase):
    def test_ranges_of_code_that_runs_often(self):
        with tenon.autograd.profiler.profile() as recorded:
            with tenon._C._profiler._RecordFunctionFast("prologue"):
                tenon.ones(2) + 1
        self.assertIn("prologue", {event.name for event in recorded.function_events})


class Torchs(unittest.TestCase):
    """What scripts written for torch look for."""

    def record(self, **options):
        layer = tenon.nn.Linear(20, 30)
        with tenon.profiler.profile(**options) as prof:
            with tenon.profiler.record_function("part"):
                ((layer(tenon.ones(8, 20)) + 1) * 2).sum()
        return prof

    def trace(self, prof):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            prof.export_chrome_trace(path)
            with open(path, encoding="utf-8") as file:
                return json.load(file)

    def test_names_are_those_of_operators_without_their_overloads(self):
        prof = self.record(record_shapes=True)
        keys = {e.key for e in prof.key_averages()}
        self.assertLessEqual({"aten::add", "aten::mul", "aten::sum", "aten::addmm", "part"}, keys)
        self.assertFalse([key for key in keys if "." in key])
        add = [e for e in prof.key_averages(group_by_overload_name=True) if e.key == "aten::add"]
        self.assertEqual([e.overload_name for e in add], ["Tensor"])
        events = [e for e in self.trace(prof)["traceEvents"] if e["ph"] == "X"]
        addmm = next(e for e in events if e["name"] == "aten::addmm")
        self.assertEqual((addmm["cat"], addmm["args"]["Input Dims"]), ("cpu_op", [[30], [8, 20], [20, 30]]))
        self.assertIn("aten::add", [e["name"] for e in events])
        self.assertEqual([e["cat"] for e in events if e["name"] == "part"], ["user_annotation"])

    def test_no_range_without_a_name_is_in_a_trace_with_stacks(self):
        self.assertNotIn("", [e["name"] for e in self.trace(self.record(with_stack=True))["traceEvents"]])

    def test_operations_are_estimated_from_shapes(self):
        flops = {e.key: e.flops for e in self.record(with_flops=True).key_averages()}
        self.assertEqual([flops["aten::" + name] for name in ("addmm", "add", "mul", "sum")], [2 * 8 * 20 * 30, 240, 240, 0])
        self.assertFalse(any(e.flops for e in self.record().key_averages()))

    def test_operations_of_a_convolution_follow_from_its_integers(self):
        # By PyTorch 2.11 of the same calls: stride and padding, groups and dilation, a padding that is a word, no batch.
        image, kernel = tenon.ones(2, 4, 9, 10), tenon.ones(6, 4, 3, 3)
        for wanted, call in ((21600, lambda: tenon.conv2d(image, kernel, stride=2, padding=1)),
                             (13824, lambda: tenon.conv2d(image, tenon.ones(6, 2, 3, 3), None, (2, 1), (1, 0), (2, 1), 2)),
                             (0, lambda: tenon.conv2d(image, kernel, padding="same")),
                             (0, lambda: tenon.conv2d(image[0], kernel))):
            with tenon.profiler.profile(with_flops=True) as prof:
                call()
            self.assertEqual({e.key: e.flops for e in prof.key_averages()}["aten::conv2d"], wanted)
            shapes = next(e.input_shapes for e in prof.events() if e.name == "aten::conv2d")
            self.assertEqual(len(shapes), 2)  # integers are none

    def test_metadata_is_in_the_trace(self):
        prof = self.record()
        prof.add_metadata("who", "me")
        prof.add_metadata_json("sizes", "[1, 2]")
        trace = self.trace(prof)
        self.assertEqual((trace["who"], trace["sizes"]), ("me", [1, 2]))

    def test_what_is_not_there_says_so(self):
        prof = self.record()
        for call in (lambda: prof.toggle_collection_dynamic(False, []), lambda: prof.export_memory_timeline("x.html")):
            with self.assertRaises(NotImplementedError):
                call()
        with self.assertRaisesRegex(NotImplementedError, "counter 'tensor bytes' of export_chrome_trace"):
            prof.export_memory_timeline("x.json")
        trace = self.trace(self.record(profile_memory=True))
        self.assertIn("tensor bytes", [e["name"] for e in trace["traceEvents"] if e["ph"] == "C"])

    def test_ctrl_c_leaves_no_recording_behind(self):
        def call():
            with profile(with_stack=True):
                tenon.ones(2).relu()
            with tenon.autograd.profiler.profile():
                tenon.ones(2).relu()

        times = 0
        for times in harness.interruptions(call):
            with tenon.autograd.profiler.profile() as prof:  # one that was left would be in its way
                tenon.ones(2).relu()
            self.assertIn("aten::relu", [e.name for e in prof.events()])
            self.assertIsNone(sys.getprofile())
        self.assertGreater(times, 20)

    def test_ctrl_c_ends_a_recording_that_somebody_keeps(self):
        kept = None

        def call():
            nonlocal kept
            kept = profile()
            kept.start()
            tenon.ones(2).relu()
            kept.stop()

        for at in harness.interruptions(call):
            if not tenon._C._profiler_running():
                continue
            kept.stop()  # it came before stop() did anything
            self.assertFalse(tenon._C._profiler_running(), at)


if __name__ == "__main__":
    harness.main()
