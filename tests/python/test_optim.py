# SPDX-License-Identifier: MIT
"""Optimizers: the same numbers, states, options and texts as PyTorch's (golden/make_optim.py), and what they promise."""

import copy
import json
import os
import pickle
import unittest
import warnings

import harness
import tenon
from tenon import optim

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "golden", "optim.json"), encoding="utf-8") as file:
    GOLDEN = json.load(file)


def parameter(values, dtype=None):
    return tenon.nn.Parameter(tenon.tensor(values, dtype=dtype))


def options_of(case):
    return {key: tuple(value) if isinstance(value, list) else value for key, value in case["options"].items()}


def plain(value):
    """As it comes back from JSON: tuples are lists."""
    return json.loads(json.dumps(value))


class Golden(unittest.TestCase):
    def close(self, found, wanted, tolerance):
        found = tenon.as_tensor(found, dtype=tenon.float64)
        wanted = tenon.tensor(wanted, dtype=tenon.float64)
        self.assertEqual(found.shape, wanted.shape)
        worst = (found - wanted).abs().max().item() if found.numel() else 0.0
        self.assertLessEqual(worst, tolerance * max(1.0, wanted.abs().max().item() if wanted.numel() else 1.0))

    def run_case(self, case, **more):
        params = [parameter(values) for values in case["start"]]
        optimizer = getattr(optim, case["name"])(params, **{**options_of(case), **more})
        for grads in case["grads"]:
            for p, grad in zip(params, grads):
                p.grad = tenon.tensor(grad)
            optimizer.step()
        return params, optimizer

    def test_steps_give_the_numbers_of_the_reference(self):
        for case in GOLDEN["cases"]:
            with self.subTest(case["name"], **case["options"]):
                # Muon computes in bfloat16, where one rounding more or less shows.
                tolerance = 2e-3 if case["name"] == "Muon" else 3e-6
                params, optimizer = self.run_case(case)
                for p, wanted in zip(params, case["end"]):
                    self.close(p.detach(), wanted, tolerance)
                state = optimizer.state_dict()["state"]
                for i, wanted in enumerate(case["state"]):
                    found = state.get(i, {})
                    self.assertEqual(list(found), list(wanted))
                    for key in wanted:
                        self.close(found[key], wanted[key], tolerance)

    def test_groups_stand_apart_in_the_text_and_a_rate_is_a_number(self):
        rate = tenon.tensor(0.5)
        parameters = [tenon.nn.Parameter(tenon.zeros(1)) for _ in range(2)]
        text = repr(tenon.optim.SGD([{"params": parameters[:1]}, {"params": parameters[1:], "lr": rate}], lr=0.25))
        self.assertIn("    weight_decay: 0\n\nParameter Group 1\n", text)
        self.assertIn("    lr: 0.5\n", text)

    def test_the_state_of_lbfgs_has_the_references_order(self):
        p = tenon.nn.Parameter(tenon.tensor([1.0, 2.0]))
        optimizer = tenon.optim.LBFGS([p], max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = (p ** 2).sum() + (p ** 4).sum()
            loss.backward()
            return loss
        for _ in range(2):
            optimizer.step(closure)
            self.assertEqual(list(optimizer.state_dict()["state"][0]),
                             ["func_evals", "n_iter", "al", "d", "t", "old_dirs", "old_stps", "ro", "H_diag",
                              "prev_flat_grad", "prev_loss"])

    def test_options_and_repr_are_the_references(self):
        for case in GOLDEN["cases"]:
            with self.subTest(case["name"], **case["options"]):
                optimizer = getattr(optim, case["name"])([parameter(values) for values in case["start"]],
                                                         **options_of(case))
                group = optimizer.state_dict()["param_groups"][0]
                self.assertEqual(plain({key: value for key, value in group.items() if key != "params"}), case["group"])
                self.assertEqual(list(group), list(case["group"]) + ["params"])
                self.assertEqual(repr(optimizer), case["repr"])

    def test_fused_steps_equal_separate_operators(self):
        for case in GOLDEN["cases"]:
            if case["name"] in ("SGD", "Adam", "AdamW") and not case["options"].get("fused") \
                    and not case["options"].get("foreach"):
                with self.subTest(case["name"], **case["options"]):
                    fused, _ = self.run_case(case)
                    separate, _ = self.run_case(case, fused=False)
                    for one, other in zip(fused, separate):
                        self.close(one.detach(), other.tolist(), 1e-6)

    def test_lbfgs_walks_the_references_path(self):
        for case in GOLDEN["lbfgs"]:
            with self.subTest(case["search"]):
                a, y = (tenon.tensor(case[key], dtype=tenon.float64) for key in "ay")
                w = parameter([0.0] * 10, tenon.float64)
                optimizer = optim.LBFGS([w], lr=0.5, history_size=5, line_search_fn=case["search"], max_iter=8)

                def closure():
                    optimizer.zero_grad()
                    loss = ((tenon.sin(a @ w) - y) ** 2).mean() + (w ** 4).sum()
                    loss.backward()
                    return loss

                losses = [optimizer.step(closure).item() for _ in range(4)]
                self.close(losses, case["losses"], 1e-10)
                self.close(w.detach(), case["w"], 1e-7)
                state = optimizer.state_dict()["state"][0]
                self.assertEqual((state["func_evals"], state["n_iter"]), (case["func_evals"], case["n_iter"]))

    def test_a_checkpoint_of_the_reference_loads(self):
        state = tenon.load(os.path.join(HERE, "golden", "adamw.pt"))
        params = [parameter(values) for values in GOLDEN["cases"][0]["start"]]
        optimizer = optim.AdamW(params)
        optimizer.load_state_dict(state)
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.01)
        self.assertEqual(optimizer.state[params[0]]["step"].item(), 1.0)
        self.assertEqual(optimizer.state[params[0]]["exp_avg"].shape, params[0].shape)
        for p in params:
            p.grad = tenon.ones_like(p)
        optimizer.step()
        self.assertEqual(optimizer.state[params[0]]["step"].item(), 2.0)


class Base(unittest.TestCase):
    def two(self):
        return parameter([1.0, 2.0]), parameter([3.0])

    def test_groups_have_their_own_options(self):
        a, b = self.two()
        optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
        a.grad, b.grad = tenon.ones(2), tenon.ones(1)
        optimizer.step()
        self.assertEqual([round(x, 6) for x in a.tolist()], [0.9, 1.9])
        self.assertEqual(b.tolist(), [2.5])
        optimizer.add_param_group({"params": [parameter([0.0])]})
        self.assertEqual(optimizer.param_groups[2]["lr"], 0.1)

    def test_names_of_parameters_are_kept(self):
        a, b = self.two()
        optimizer = optim.SGD([("a", a), ("b", b)], lr=0.1)
        self.assertEqual(optimizer.state_dict()["param_groups"][0]["param_names"], ["a", "b"])

    def test_bad_input_is_refused_in_the_references_words(self):
        a, b = self.two()
        outside = tenon.ones(2, requires_grad=True) * 2
        for call, kind, text in (
                (lambda: optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
                (lambda: optim.SGD(a), TypeError, "params argument given to the optimizer should be an iterable of "
                                                  "Tensors or dicts, but got"),
                (lambda: optim.SGD([1]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
                (lambda: optim.SGD([outside]), ValueError, "can't optimize a non-leaf Tensor"),
                (lambda: optim.SGD([a], lr=-1), ValueError, "Invalid learning rate: -1"),
                (lambda: optim.SGD([a], momentum=-1), ValueError, "Invalid momentum value: -1"),
                (lambda: optim.SGD([a], nesterov=True), ValueError,
                 "Nesterov momentum requires a momentum and zero dampening"),
                (lambda: optim.Adam([a], eps=-1), ValueError, "Invalid epsilon value: -1"),
                (lambda: optim.Adam([a], betas=(1, 0)), ValueError, "Invalid beta parameter at index 0: 1"),
                (lambda: optim.Adam([a], fused=True, foreach=True), RuntimeError,
                 "`fused` and `foreach` cannot be `True` together."),
                (lambda: optim.SGD([{"params": [a]}, {"params": [a]}]), ValueError,
                 "some parameters appear in more than one parameter group"),
                (lambda: optim.SGD([{"params": {a, b}}]), TypeError,
                 "optimizer parameters need to be organized in ordered collections"),
                (lambda: optim.LBFGS([{"params": [a]}, {"params": [b]}]), ValueError,
                 "LBFGS doesn't support per-parameter options (parameter groups)"),
                (lambda: optim.Muon([a]), ValueError, "Muon only supports 2D parameters whereas we found a parameter "
                                                      "with size: "),
                (lambda: optim.SGD([a]).load_state_dict({"param_groups": [], "state": {}}), ValueError,
                 "loaded state dict has a different number of parameter groups")):
            with self.assertRaises(kind) as caught:
                call()
            self.assertIn(text, str(caught.exception))

    def test_a_parameter_twice_in_a_group_is_warned_of(self):
        a, _ = self.two()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            optim.SGD([a, a], lr=0.1)
        self.assertIn("duplicate parameters", str(seen[0].message))

    def test_zero_grad_forgets_or_fills(self):
        a, _ = self.two()
        optimizer = optim.SGD([a], lr=0.1)
        a.grad = tenon.ones(2)
        kept = a.grad
        optimizer.zero_grad(set_to_none=False)
        self.assertIs(a.grad, kept)
        self.assertEqual(kept.tolist(), [0.0, 0.0])
        optimizer.zero_grad()
        self.assertIsNone(a.grad)

    def test_a_closure_runs_with_gradients_on_and_its_loss_is_returned(self):
        a, _ = self.two()
        optimizer = optim.Adam([a], lr=0.1)

        def closure():
            optimizer.zero_grad()
            self.assertTrue(tenon.is_grad_enabled())
            loss = (a * a).sum()
            loss.backward()
            return loss

        with tenon.no_grad():
            self.assertEqual(optimizer.step(closure).item(), 5.0)
            self.assertFalse(tenon.is_grad_enabled())

    def test_hooks_run_around_a_step(self):
        a, _ = self.two()
        optimizer = optim.SGD([a], lr=0.1)
        seen = []
        before = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("pre" if args == (o,) else args))
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("post"))
        whole = optim.optimizer.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("global"))
        optimizer.step()
        self.assertEqual(seen, ["global", "pre", "post"])
        before.remove()
        whole.remove()
        optimizer.step()
        self.assertEqual(seen[3:], ["post"])
        optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
        self.assertEqual(optimizer.state_dict()["more"], 1)

    def test_a_hooks_handle_is_the_one_of_modules(self):
        optimizer = optim.SGD([tenon.ones(1, requires_grad=True)], lr=1)
        with optimizer.register_step_pre_hook(lambda *a: None) as handle:
            self.assertIsInstance(handle, tenon.utils.hooks.RemovableHandle)
            self.assertIn(handle.id, optimizer._optimizer_step_pre_hooks)
        self.assertEqual(len(optimizer._optimizer_step_pre_hooks), 0)

    def test_hooks_run_around_the_step_of_a_users_class(self):
        class Plain(optim.Optimizer):
            def step(self, closure=None):
                return "stepped"

        a, _ = self.two()
        optimizer = Plain([a], {})
        seen = []
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(1))
        self.assertEqual(optimizer.step(), "stepped")
        self.assertEqual(seen, [1])

    def test_state_survives_copies_and_pickles(self):
        a, _ = self.two()
        optimizer = optim.Adam([a], lr=0.1)
        a.grad = tenon.ones(2)
        optimizer.step()
        for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
            p = other.param_groups[0]["params"][0]
            self.assertEqual(p.tolist(), a.tolist())
            p.grad = tenon.ones(2)
            other.step()
            self.assertEqual(other.state[p]["step"].item(), 2.0)
        self.assertEqual(optimizer.state[a]["step"].item(), 1.0)

    def test_a_rate_may_be_a_tensor(self):
        for kind in (optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop):
            a, b = self.two()
            b = parameter([1.0, 2.0])
            one, other = kind([a], lr=tenon.tensor(0.5)), kind([b], lr=0.5)
            for p, optimizer in ((a, one), (b, other)):
                p.grad = tenon.tensor([1.0, -2.0])
                optimizer.step()
            self.assertEqual(a.tolist(), b.tolist())

    def test_parameters_of_several_dtypes_and_layouts_are_stepped(self):
        made = [parameter([[1.0, 2.0], [3.0, 4.0]], dtype) for dtype in (tenon.float32, tenon.float64)]
        made.append(tenon.nn.Parameter(tenon.tensor([[1.0, 3.0], [2.0, 4.0]]).t()))
        optimizer = optim.AdamW(made, lr=0.1)
        for p in made:
            p.grad = tenon.ones_like(p)
        optimizer.step()
        for p in made[1:]:
            self.assertLess((p.detach().double() - made[0].detach().double()).abs().max().item(), 1e-6)

    def test_gradients_of_inference_mode_are_taken(self):
        for kind in (optim.SGD, optim.Adam, optim.AdamW):
            steps = []
            for mode in (tenon.inference_mode, tenon.enable_grad):
                p = tenon.nn.Parameter(tenon.ones(3))
                optimizer = kind([p], lr=0.1)
                loss = (p * 2).sum()
                with mode():
                    loss.backward()
                optimizer.step()
                steps.append(p.tolist())
            self.assertEqual(steps[0], steps[1], kind)

    def test_gradients_through_differentiable_steps_are_right(self):
        """Central differences say what they are; PyTorch's SGD loses the part through its first momentum buffer."""
        def after_steps(start, kind, options):
            p = start.clone()
            optimizer = kind([p], lr=0.1, differentiable=True, **options)
            for _ in range(3):
                p.grad = p.clone() * p.clone() * start + p.clone()
                optimizer.step()
            return (p ** 2).sum()

        start = tenon.tensor([0.5, -1.0, 2.0], dtype=tenon.float64, requires_grad=True)
        for kind, options in ((optim.SGD, {}), (optim.SGD, {"momentum": 0.9}),
                              (optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), (optim.Adam, {}),
                              (optim.AdamW, {}), (optim.RMSprop, {"momentum": 0.5}), (optim.Adagrad, {})):
            gradient, = tenon.autograd.grad(after_steps(start, kind, options), start)
            steps = tenon.eye(3, dtype=tenon.float64) * 1e-6
            ends = [[after_steps((start + sign * step).detach().requires_grad_(), kind, options).item() for sign in (1, -1)]
                    for step in steps]
            expected = tenon.tensor([(up - down) / 2e-6 for up, down in ends], dtype=tenon.float64)
            tenon.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-7)

    def test_a_differentiable_step_has_a_gradient(self):
        start = tenon.tensor([1.0, 2.0], requires_grad=True)
        p = start.clone()
        lr = tenon.tensor(0.1, requires_grad=True)
        optimizer = optim.SGD([p], lr=lr, differentiable=True)
        p.grad = tenon.tensor([1.0, 3.0])
        optimizer.step()
        p.sum().backward()
        self.assertEqual(lr.grad.item(), -4.0)
        self.assertEqual(start.grad.tolist(), [1.0, 1.0])

    def test_models_learn(self):
        for kind in (optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.NAdam, optim.RAdam):
            tenon.manual_seed(0)
            layer = tenon.nn.Linear(4, 1)
            x = tenon.randn(32, 4)
            y = x @ tenon.tensor([[1.0], [-2.0], [0.5], [3.0]]) + 1
            optimizer = kind(layer.parameters(), lr=0.1)
            first = None
            for _ in range(60):
                optimizer.zero_grad()
                loss = ((layer(x) - y) ** 2).mean()
                loss.backward()
                optimizer.step()
                first = first or loss.item()
            self.assertLess(loss.item(), first / 2, kind)


class AtOnce(unittest.TestCase):
    """Steps that are done in one call of C are those that Python does group by group."""

    KINDS = (
        (optim.SGD, {"lr": 0.1}),
        (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
        (optim.SGD, {"lr": 1, "momentum": 0.5, "dampening": 0.2, "maximize": True}),
        (optim.Adam, {"lr": 0.1, "weight_decay": 0.1}),
        (optim.Adam, {"lr": 0.1, "amsgrad": True, "maximize": True, "eps": 1}),
        (optim.AdamW, {"lr": 0.1, "fused": True, "betas": (0.5, 0.25)}),
    )

    def make(self, kind, options):
        params = [tenon.nn.Parameter(tenon.arange(float(n)) + n) for n in (1, 3, 5)] + [tenon.ones(2, requires_grad=True)]
        groups = [{"params": params[:2]}, {"params": params[2:], "lr": 0.01}]
        return kind(groups, **options), params

    def at_once(self, optimizer):
        """Whether C does a step of it at once."""
        return tenon._C._step_at_once(optimizer, optim.optimizer.Algorithm.step)

    def give(self, params, round):
        for i, p in enumerate(params):
            p.grad = tenon.full_like(p, 0.5 * i + round) if (i + round) % 3 else None

    def test_numbers_and_states_are_those_of_separate_groups(self):
        for kind, options in self.KINDS:
            (one, ours), (other, theirs) = self.make(kind, options), self.make(kind, options)
            other.register_step_pre_hook(lambda *a: None)  # keeps it out of C
            for round in range(5):
                self.give(ours, round)
                self.give(theirs, round)
                self.assertIsNone(one.step())
                other.step()
            for a, b in zip(ours, theirs):
                self.assertTrue(tenon.equal(a, b), (kind, options))
                for name, value in other.state.get(b, {}).items():
                    self.assertTrue(tenon.equal(one.state[a][name], value), (kind, options, name))
            self.assertEqual(len(one.state), len(other.state))
            self.give(ours, 4)
            self.assertFalse(self.at_once(other))
            self.assertTrue(self.at_once(one), (kind, options))
            self.assertTrue(tenon.is_grad_enabled())

    def test_what_needs_python_is_left_to_it(self):
        def ready(kind=optim.SGD, **options):
            optimizer, params = self.make(kind, dict(lr=0.1, **options))
            for round in (1, 2):
                self.give(params, round)
                optimizer.step()
            before = [p.detach().clone() for p in params]
            return optimizer, params, before

        def left(optimizer, params, before):
            self.assertFalse(self.at_once(optimizer))
            self.assertTrue(all(tenon.equal(p, b) for p, b in zip(params, before)))

        for name, value in (("fused", False), ("foreach", True), ("differentiable", True)):
            made = ready()
            made[0].param_groups[1][name] = value
            left(*made)
        made = ready(optim.Adam)
        made[0].param_groups[1]["lr"] = tenon.tensor(0.5)
        left(*made)
        made = ready(optim.Adam)
        del made[0].state[made[1][2]]
        left(*made)
        made = ready()
        made[0].grad_scale = tenon.tensor(2.0)
        left(*made)
        for table in (optim.optimizer._global_pre_hooks, optim.optimizer._global_post_hooks):
            made = ready()
            table[-1] = lambda *a: None
            left(*made)
            del table[-1]

        class Mine(optim.SGD):
            def _update_all(self, *args):
                seen.append(self)

        seen = []
        mine = Mine(made[1], lr=0.1)
        mine.step()
        self.assertEqual(seen, [mine])
        mode_seen = []

        class Mode(tenon.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                mode_seen.append(func.__name__)
                return func(*args, **(kwargs or {}))

        made = ready()
        with Mode():
            made[0].step()
        self.assertIn("_fused_sgd_", mode_seen)

    def test_a_step_function_of_the_users_is_called(self):
        kept = optim.SGD.step
        calls = []
        optim.SGD.step = lambda self, closure=None: calls.append(closure)
        try:
            optimizer, _ = self.make(optim.SGD, {"lr": 0.1})
            optimizer.step()
        finally:
            optim.SGD.step = kept
        self.assertEqual(calls, [None])
        self.assertEqual(self.make(optim.SGD, {"lr": 0.1})[0].step(lambda: 7), 7)

    def test_a_state_that_does_not_fit_is_refused(self):
        optimizer, params = self.make(optim.SGD, {"lr": 0.1, "momentum": 0.9})
        for round in (1, 2):
            self.give(params, round)
            optimizer.step()
        self.give(params, 1)
        optimizer.state[params[0]]["momentum_buffer"] = tenon.zeros(7)
        before = [p.detach().clone() for p in params]
        with self.assertRaises(RuntimeError):
            optimizer.step()
        self.assertTrue(tenon.is_grad_enabled())
        self.assertTrue(all(tenon.equal(p, b) for p, b in zip(params, before)))


class Averages(unittest.TestCase):
    def test_averaged_models_follow_their_rule(self):
        for rule, wanted in ((None, 2.0), (optim.swa_utils.get_ema_multi_avg_fn(0.5), 2.25)):
            model = tenon.nn.Linear(1, 1, bias=False)
            average = optim.swa_utils.AveragedModel(model, multi_avg_fn=rule)
            for value in (1.0, 2.0, 3.0):
                with tenon.no_grad():
                    model.weight.fill_(value)
                average.update_parameters(model)
            self.assertAlmostEqual(average.module.weight.item(), wanted, places=6)
            self.assertEqual(average.n_averaged.item(), 3)
            self.assertEqual(list(average.state_dict()), ["n_averaged", "module.weight"])

    def test_update_bn_computes_statistics_anew(self):
        model = tenon.nn.Sequential(tenon.nn.BatchNorm1d(2))
        batches = [tenon.tensor([[1.0, 2.0], [3.0, 4.0]]), tenon.tensor([[5.0, 6.0], [7.0, 8.0]])]
        optim.swa_utils.update_bn(batches, model)
        self.assertEqual(model[0].running_mean.tolist(), [4.0, 5.0])
        self.assertEqual(model[0].momentum, 0.1)


class OverLists(unittest.TestCase):
    """A step over lists of tensors is that of the optimizer."""

    def steps(self, make, run):
        numbers = tenon.arange(1., 7.).reshape(2, 3)
        p, q = numbers.clone().requires_grad_(), numbers.clone().requires_grad_()
        optimizer = make([p])
        for _ in range(3):
            p.grad, grad = (p.detach() - 2).sin(), (q.detach() - 2).sin()
            optimizer.step()
            with tenon.no_grad():
                run(q, grad)
        self.assertEqual(q.tolist(), p.tolist())

    def test_adam(self):
        from tenon.optim import _functional
        from tenon.optim.adam import adam
        from tenon.optim.adamw import adamw
        self.assertIs(_functional.adam, adam)
        options = dict(amsgrad=True, beta1=.9, beta2=.99, lr=.1, weight_decay=.1, eps=1e-8, maximize=False)
        for cls, function in ((tenon.optim.Adam, adam), (tenon.optim.AdamW, adamw)):
            for foreach in (None, True):
                state = [[tenon.zeros(2, 3)] for _ in range(3)]
                count = tenon.tensor(0.)
                self.steps(lambda ps: cls(ps, .1, (.9, .99), weight_decay=.1, amsgrad=True, foreach=foreach),
                           lambda q, grad: function([q], [grad], *state, [count], foreach, **options))
                self.assertEqual(count.item(), 3)
        with self.assertRaisesRegex(RuntimeError, "must contain a list of singleton tensors"):
            adam([], [], [], [], [], [1], **options)

    def test_sgd(self):
        from tenon.optim.sgd import sgd
        for momentum in (0, .9):
            buffers = [None]
            self.steps(lambda ps: tenon.optim.SGD(ps, .1, momentum, weight_decay=.1),
                       lambda q, grad: sgd([q], [grad], buffers, weight_decay=.1, momentum=momentum, lr=.1, dampening=0,
                                           nesterov=False, maximize=False))
            self.assertEqual(buffers[0] is None, momentum == 0)


class Differentiable(unittest.TestCase):
    """Gradients of steps with respect to their options: the numbers are PyTorch's."""

    def slopes(self, kind, **options):
        d = tenon.float64
        made = {name: tenon.tensor(value, dtype=d, requires_grad=True) for name, value in options.items()}
        given = dict(made)
        if "beta1" in given:
            given["betas"] = (given.pop("beta1"), given.pop("beta2"))
        p = tenon.tensor([1.0, 2.0, 3.0], dtype=d, requires_grad=True).clone()
        optimizer = kind([p], differentiable=True, **given)
        for _ in range(3):
            grad, = tenon.autograd.grad((p.sum() - 2) ** 2, p, create_graph=True)
            p.grad = grad.clone()
            optimizer.step()
        return [round(g.item(), 4) for g in tenon.autograd.grad((p ** 2).sum(), list(made.values()))]

    def test_options(self):
        optim = tenon.optim
        self.assertEqual(self.slopes(optim.SGD, lr=0.1, weight_decay=0.9), [-17.2841, -1.2059])
        self.assertEqual(self.slopes(optim.AdamW, lr=0.1, weight_decay=0.9), [-57.4183, -4.1865])
        self.assertEqual(self.slopes(optim.AdamW, lr=0.1, beta1=0.8, beta2=0.9), [-30.9038, -0.0934, 0.084])
        self.assertEqual(self.slopes(optim.Adam, lr=0.1, weight_decay=0.9, beta1=0.8, beta2=0.9),
                         [-30.3785, -0.0011, -0.0831, 0.0748])

    def test_the_product_of_nadam(self):
        d = tenon.float64
        grad = tenon.tensor([0.3, -0.5], dtype=d)

        def step(start, product):
            p = start.clone()
            optimizer = tenon.optim.NAdam([p], lr=0.9, differentiable=True)
            optimizer.state[p].update(step=tenon.tensor(10.0), exp_avg=tenon.tensor([0.2, 0.1], dtype=d),
                                      exp_avg_sq=tenon.tensor([0.4, 0.3], dtype=d), mu_product=product.clone())
            p.grad = grad.clone()
            optimizer.step()
            return p

        inputs = (tenon.tensor([1.0, 2.0], dtype=d, requires_grad=True), tenon.tensor(0.7, dtype=d, requires_grad=True))
        self.assertTrue(tenon.autograd.gradcheck(step, inputs))

    def test_gradcheck_of_a_function_that_runs_backward(self):
        def slope(x):
            w = x * 1
            return tenon.autograd.grad((w ** 3).sum(), w, create_graph=True)[0]

        x = tenon.tensor([1.0, 2.0], dtype=tenon.float64, requires_grad=True)
        for fast in (False, True):
            self.assertTrue(tenon.autograd.gradcheck(slope, (x,), fast_mode=fast))


if __name__ == "__main__":
    harness.main()
