# SPDX-License-Identifier: MIT
"""Schedules of rates: the same rates and texts as PyTorch's (golden/make_optim.py), and what they promise."""

import copy
import json
import os
import unittest
import warnings

import harness
import tenon
from tenon import optim
from tenon.optim import lr_scheduler, swa_utils

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "golden", "lr.json"), encoding="utf-8") as file:
    GOLDEN = json.load(file)


def two_groups():
    params = [tenon.nn.Parameter(tenon.ones(1)), tenon.nn.Parameter(tenon.ones(1))]
    return optim.SGD([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.3}], lr=0.1, momentum=0.9)


def make(text, optimizer):
    return eval(text, {"L": lr_scheduler, "S": swa_utils, "o": optimizer})


class Schedules(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)

    def walk(self, case, reload_at=None):
        optimizer = two_groups()
        schedule = make(case["text"], optimizer)
        for i, wanted in enumerate(case["rows"]):
            for group, (rate, momentum) in zip(optimizer.param_groups, wanted):
                self.assertAlmostEqual(group["lr"], rate, delta=1e-12)
                self.assertAlmostEqual(group["momentum"], momentum, delta=1e-12)
            optimizer.step()
            if case["epochs"] and i % 3 == 2:
                schedule.step(i)
            else:
                schedule.step()
            if i == reload_at:
                states = copy.deepcopy(schedule.state_dict()), copy.deepcopy(optimizer.state_dict())
                optimizer = two_groups()
                schedule = make(case["text"], optimizer)
                schedule.load_state_dict(states[0])
                optimizer.load_state_dict(states[1])
        for found, wanted in zip(schedule.get_last_lr(), case["last"]):
            self.assertAlmostEqual(found, wanted, delta=1e-12)
        return schedule

    def test_rates_are_the_references(self):
        for case in GOLDEN["schedules"]:
            with self.subTest(case["text"], epochs=case["epochs"]):
                schedule = self.walk(case)
                self.assertEqual(sorted(schedule.state_dict()), case["keys"])

    def test_rates_go_on_after_a_reload(self):
        for case in GOLDEN["schedules"]:
            with self.subTest(case["text"], epochs=case["epochs"]):
                self.walk(case, reload_at=8)

    def test_plateaus_are_found_where_the_reference_finds_them(self):
        for case in GOLDEN["plateau"]:
            with self.subTest(**case["options"]):
                optimizer = two_groups()
                schedule = lr_scheduler.ReduceLROnPlateau(optimizer, **case["options"])
                for metric, wanted in zip(case["metrics"], case["rates"]):
                    schedule.step(tenon.tensor(metric, dtype=tenon.float64))
                    for group, rate in zip(optimizer.param_groups, wanted):
                        self.assertAlmostEqual(group["lr"], rate, delta=1e-12)

    def test_mistakes_are_told_in_the_references_words(self):
        for case in GOLDEN["mistakes"]:
            with self.subTest(case["text"]):
                with self.assertRaises(ValueError) as caught:
                    make(case["text"], two_groups())
                self.assertEqual(str(caught.exception), case["message"])
        with self.assertRaisesRegex(TypeError, "int is not an Optimizer"):
            lr_scheduler.StepLR(5, 3)
        with self.assertRaisesRegex(KeyError, "initial_lr"):
            lr_scheduler.StepLR(two_groups(), 3, last_epoch=2)


class Warnings(unittest.TestCase):
    def seen(self, call):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        return [str(one.message) for one in found]

    def test_a_schedule_that_is_stepped_first_warns(self):
        schedule = lr_scheduler.StepLR(two_groups(), 3)
        self.assertIn("Detected call of `lr_scheduler.step()` before `optimizer.step()`", self.seen(schedule.step)[0])

    def test_a_schedule_that_is_stepped_second_does_not(self):
        optimizer = two_groups()
        schedule = lr_scheduler.StepLR(optimizer, 3)
        optimizer.step()
        self.assertEqual(self.seen(schedule.step), [])

    def test_get_lr_by_hand_warns(self):
        schedule = lr_scheduler.StepLR(two_groups(), 3)
        self.assertIn("please use `get_last_lr()`", self.seen(schedule.get_lr)[0])

    def test_a_rate_that_is_a_tensor_keeps_its_identity(self):
        p = tenon.nn.Parameter(tenon.ones(1))
        rate = tenon.tensor(0.5)
        optimizer = optim.SGD([p], lr=rate)
        schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
        optimizer.step()
        schedule.step()
        self.assertIs(optimizer.param_groups[0]["lr"], rate)
        self.assertEqual(rate.item(), 0.25)


class Parts(unittest.TestCase):
    def test_a_chain_in_a_sequence(self):
        optimizer = optim.SGD([tenon.nn.Parameter(tenon.ones(1))], lr=1.0)
        chain = lr_scheduler.ChainedScheduler([lr_scheduler.ExponentialLR(optimizer, 0.9), lr_scheduler.ConstantLR(optimizer, 0.1, 2)])
        schedule = lr_scheduler.SequentialLR(optimizer, [chain, lr_scheduler.ExponentialLR(optimizer, 0.5)], milestones=[3])
        rates = []
        for _ in range(6):
            rates.append(round(optimizer.param_groups[0]["lr"], 5))
            optimizer.step()
            schedule.step()
        self.assertEqual(rates, [0.09, 0.081, 0.729, 1.0, 0.5, 0.25])  # PyTorch's

    def test_a_factor_that_is_no_function(self):
        optimizer = optim.SGD([tenon.nn.Parameter(tenon.ones(1))], lr=1.0)
        for wrong in (0.5, [0.5]):
            with self.assertRaisesRegex(TypeError, "lr_lambda should be a function, but got float"):
                lr_scheduler.MultiplicativeLR(optimizer, wrong)


if __name__ == "__main__":
    harness.main()
