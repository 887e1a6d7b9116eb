# SPDX-License-Identifier: MIT
"""Corners that programs of many years have run into: undefined gradients, cycles, contexts that outlive their graph. Scenarios of
autograd_scenarios.py."""

import gc
import warnings
import weakref

from autograd_kit import leaf, module, scenario


@scenario
def functions_run_when_nothing_came(torch, log):
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    class Ones(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            log.add(a, b)
            return torch.ones(2, dtype=torch.float64), None

    for materialize in True, False:
        x = leaf(torch, 1, 2)
        Nothing.apply(Ones.apply(x, materialize)[0]).sum().backward()
        log.add(x.grad)
        x = leaf(torch, 1, 2)
        Nothing.apply(Ones.apply(x * 3, materialize)[1]).sum().backward()
        log.add(x.grad)
    x = leaf(torch, 1, 2)
    y = Nothing.apply((x * x).exp())
    y.sum().backward()
    log.add(x.grad)
    log.tries(lambda: torch.autograd.grad(Nothing.apply(x).sum(), x))
    log.tries(lambda: torch.autograd.grad(Nothing.apply(x).sum(), x, allow_unused=True))
    log.tries(lambda: torch.autograd.grad(Nothing.apply(x).sum(), x, materialize_grads=True))


@scenario
def cycles_through_functions_are_collected(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, meta):
            ctx.meta = meta
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    class Meta:
        pass

    x = leaf(torch, 1)
    for kind in "tensor", "list", "run":
        meta = Meta()
        seen = weakref.ref(meta)
        out = F.apply(x, meta)
        meta.out = [out] if kind == "list" else out
        if kind == "run":
            out.sum().backward()
        del meta, out
        gc.collect()
        log.add(kind, seen() is None)
    meta = Meta()
    out = F.apply(x, meta)
    meta.out = out
    del meta
    gc.collect()
    out.sum().backward()
    log.add(x.grad, out.grad_fn.meta.out is out)


@scenario
def contexts_that_outlive_their_graph(torch, log):
    kept = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            kept.append(ctx)
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(torch, 1)
    F.apply(x).sum().backward()
    log.tries(lambda: kept[0].saved_tensors)
    log.tries(lambda: kept[0].needs_input_grad)
    F.apply(x)
    log.tries(lambda: kept[1].saved_tensors)
    log.tries(lambda: kept[1]._raw_saved_tensors)
    y = F.apply(x)
    log.tries(lambda: kept[2].saved_tensors)
    y.sum().backward()
    log.tries(lambda: kept[2].saved_tensors)
    log.tries(lambda: F.apply(x).grad_fn.saved_tensors)


@scenario
def hooks_that_are_added_while_values_are_unpacked(torch, log):
    x = leaf(torch, 1, 2)

    def unpack(t):
        node = torch._C._current_autograd_node()
        log.add(node.name())
        node.register_hook(lambda r, g: log.add("post", r))
        return t

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x * x
    y.sum().backward()


@scenario
def hooks_in_order_for_every_kind_of_pass(torch, log):
    a = leaf(torch, 1)
    order = []

    def note(name):
        return lambda *args: order.append(name)

    b = a.clone()
    accumulator = b.grad_fn.next_functions[0][0]
    b.retain_grad()
    b.grad_fn.register_prehook(note("node"))
    b.register_hook(note("first"))
    a.register_hook(note("leaf"))
    accumulator.register_prehook(note("before"))
    a.register_hook(note("leaf again"))
    accumulator.register_hook(note("after"))
    a.register_post_accumulate_grad_hook(note("accumulated"))
    b.register_hook(note("second"))
    for run in (lambda: b.sum().backward(retain_graph=True), lambda: torch.autograd.grad(b.sum(), a, retain_graph=True),
                lambda: b.sum().backward(inputs=(a,), retain_graph=True), lambda: b.sum().backward(inputs=(b,), retain_graph=True),
                lambda: torch.autograd.grad(b.sum(), b, retain_graph=True)):
        run()
        log.add(order)
        del order[:]


@scenario
def nan_in_a_gradient_that_goes_nowhere(torch, log):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g * float("nan"), g

    x, plain = leaf(torch, 1, 2), torch.ones(2, dtype=torch.float64)
    for args in (plain, x), (x, plain):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.detect_anomaly():
                log.tries(lambda: F.apply(*args).sum().backward())


@scenario
def gradients_that_are_not_kept_are_warned_of(torch, log):
    x = leaf(torch, 1, 2)
    y = x * 2
    for t in x, y, y.detach(), y[0]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            t.grad
        log.add([str(w.message).split(" (Triggered")[0] for w in caught])
    y.retain_grad()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y.grad
    log.add(len(caught))


@scenario
def kept_gradients_of_what_is_written(torch, log):
    a = leaf(torch, 2)
    b = a * 2
    b.retain_grad()
    b *= 2
    b.retain_grad()
    b.sum().backward()
    log.add(b.grad, a.grad)
    for view_first in True, False:
        a = leaf(torch, 1, 2)
        b = a.clone()
        v = b.view(-1)
        (v if view_first else b).retain_grad()
        v *= 2
        (v if view_first else b).sum().backward()
        log.add((v if view_first else b).grad, a.grad)
    a = leaf(torch, 1, 2)
    b = a.clone()
    b.retain_grad()
    c = b * 2
    b += 1
    (c.sum() + b.sum()).backward()
    log.add(b.grad, a.grad)


@scenario
def data_is_replaced(torch, log):
    x = torch.ones(5, requires_grad=True)
    kept = (x * 1).grad_fn.next_functions[0][0]
    x.data = torch.ones(3)
    log.tries(lambda: (x * 2).sum().backward())
    log.add(x.grad, kept.name())
    y = torch.ones(2, requires_grad=True)
    z = (y * y).sum()
    y.data = y.data.double()
    log.tries(lambda: z.backward())
    log.add(y.dtype, y.grad, y.grad.dtype)
    w = torch.ones(2)
    v = w[:1]
    w.data = torch.zeros(2)
    v.add_(1)
    log.add(v, w)


@scenario
def functions_of_functions_of_functions(torch, log):
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return Mul.apply(g, b), Mul.apply(g, a)

    x = leaf(torch, 2, 3)
    y = x
    for _ in range(3):
        y = Mul.apply(y, x)
    for _ in range(5):
        y, = torch.autograd.grad(y.sum(), x, create_graph=True)
        log.add(y)


@scenario
def derivatives_that_only_jump(torch, log):
    f = torch.nn.functional
    for shrink in (f.hardshrink, f.softshrink, f.relu6, f.hardtanh, lambda x: f.rrelu(x, 0.1, 0.1, training=True),
                   lambda x: f.rrelu(x * 1, 0.1, 0.1, training=True, inplace=True)):
        x, w = leaf(torch, -1.0, -0.5, 0.25, 3.0), leaf(torch, 1.0, 2.0, 3.0, 4.0)
        g, = torch.autograd.grad((shrink(x) * w).sum(), x, create_graph=True)
        log.add(g)
        g.pow(2).sum().backward()
        log.add(x.grad, w.grad)
        y, = torch.autograd.grad(shrink(x).sum(), x, create_graph=True)
        y.pow(2).sum().backward()
        log.add(x.grad)


@scenario
def checks_of_gradients_and_their_options(torch, log):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx, t):
            return 3 * t

    class Unsteady(torch.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            Unsteady.calls += 1
            return g * (2 + 1e-9 * Unsteady.calls)

    check, again = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    x, y = leaf(torch, 0.5, -1.0, 2.0), leaf(torch, 1.5, -0.4, 0.9)
    z = torch.complex(x.detach(), y.detach()).requires_grad_()

    def first_line(function, *inputs, **options):
        try:
            log.add(function(*inputs, **options))
        except RuntimeError as error:
            log.add(type(error).__name__, str(error).split("\n")[0])

    for fast in (False, True):
        for function, inputs in ((lambda a, b: (a * b).sin(), (x, y)), (lambda a: a * a * a, z), (lambda a: (a * a).abs(), z),
                                 (lambda a: torch.complex(a, a * a), x), (lambda a, b: (a * b, a.sum()), (x, y)), (torch.view_as_real, z)):
            first_line(check, function, inputs, fast_mode=fast, check_grad_dtypes=True)
            first_line(check, function, inputs, fast_mode=fast, check_forward_ad=True, check_backward_ad=False)
            first_line(check, function, inputs, fast_mode=fast, check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True)
        first_line(again, lambda a, b: (a * b).sin(), (x, y), fast_mode=fast, check_batched_grad=True, check_fwd_over_rev=True)
        first_line(check, Wrong.apply, x, fast_mode=fast)
        first_line(check, Wrong.apply, x, fast_mode=fast, raise_exception=False)
        first_line(check, Wrong.apply, x, fast_mode=fast, check_forward_ad=True, check_backward_ad=False)
        first_line(check, Unsteady.apply, x, fast_mode=fast)
        first_line(check, Unsteady.apply, x, fast_mode=fast, nondet_tol=1e-6)
        first_line(check, lambda a: a.detach() * 2, x, fast_mode=fast)
        first_line(check, lambda a: torch.zeros(2, dtype=torch.float64), x, fast_mode=fast)


@scenario
def a_fast_check_calls_the_function_few_times(torch, log):
    calls = []

    def function(a):
        calls.append(1)
        return a.sin()

    x = torch.linspace(0, 1, 50, dtype=torch.float64, requires_grad=True)
    log.add(torch.autograd.gradcheck(function, x, fast_mode=True), len(calls) < 50)
    calls.clear()
    log.add(torch.autograd.gradcheck(function, x), len(calls) > 100)


# ---- what is there for the second derivative ----


@scenario
def products_of_nothing_can_be_differentiated_again(torch, log):
    for sizes in ((0,), (0, 3), (3, 0), (2, 0, 3)):
        for dim in (0, -1):
            x = torch.zeros(sizes, dtype=torch.float64, requires_grad=True)
            y = x.prod(dim)
            first, = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
            log.add(tuple(first.shape), first.requires_grad)
            log.tries(lambda: tuple(torch.autograd.grad(first.sum(), x)[0].shape))


@scenario
def steps_of_optimizers_can_be_differentiated(torch, log):
    optim = module(torch, "optim")
    for name, options in (("SGD", {}), ("Adam", {}), ("AdamW", {}), ("NAdam", {}), ("RAdam", {}), ("Adamax", {}),
                          ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}), ("Adagrad", {}), ("Adadelta", {}),
                          ("NAdam", {"weight_decay": 0.1, "maximize": True}), ("RMSprop", {})):
        start = leaf(torch, 1, 2)
        p = start.clone()
        p.retain_grad()
        optimizer = getattr(optim, name)([p], lr=0.1, differentiable=True, **options)
        for i in range(8):
            p.grad = start.sin() * (i + 1)
            optimizer.step()
        log.add(name, p, torch.autograd.grad((p ** 3).sum(), start))


# ---- writes of sparse tensors ----


@scenario
def sparse_tensors_are_written_by_the_rules(torch, log):
    def made(requires_grad=False):
        return torch.tensor([[1.0, 0], [0, 2]], dtype=torch.float64).to_sparse().requires_grad_(requires_grad)

    for write in (lambda s: s.mul_(2), lambda s: s.div_(2), lambda s: s.neg_(), lambda s: s.zero_(), lambda s: s.add_(made()),
                  lambda s: s.sub_(made()), lambda s: s.copy_(made()), lambda s: s.__imul__(3)):
        plain, kept = made(), made(True)
        log.add(write(plain) is plain, plain._version, plain.to_dense())
        log.tries(lambda: write(made(True)))
        with torch.no_grad():
            write(kept)
        log.add(kept._version, kept.is_leaf, kept.requires_grad, kept.to_dense())
        torch.sparse.sum(kept * 2).backward()
        log.add(kept.grad is not None)
    for write in (lambda s: s.mul_(2), lambda s: s.neg_(), lambda s: s.zero_(), lambda s: s.add_(made())):
        x = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
        s = x.to_sparse()
        write(s)
        s.to_dense().sum().backward()
        log.add(x.grad, s._version)


@scenario
def rows_of_renorm_without_a_number_keep_their_gradients(torch, log):
    nan = float("nan")
    for p in 1, 2, 3, float("inf"), 0.5:
        x = torch.tensor([[nan, 1.0, 2.0], [3.0, 4.0, 5.0], [0.1, 0.2, 0.1]], dtype=torch.float64, requires_grad=True)
        weight = torch.arange(1.0, 10, dtype=torch.float64).reshape(3, 3)
        y = torch.renorm(x, p, 0, 2.0)
        log.add(y, torch.autograd.grad((y * weight).sum(), x)[0])


@scenario
def a_check_in_one_direction_that_fails_shows_whole_jacobians(torch, log):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y, x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, a, b):
            x, y = ctx.saved_tensors
            return (a * y + b) * torch.tensor([1, 1, 2], dtype=torch.float64), a * x + b

        @staticmethod
        def jvp(ctx, a, b):
            x, y = ctx.saved_tensors
            return a * y + b * x * torch.tensor([1, 1, 2], dtype=torch.float64), a + b

    check = module(torch, "autograd.gradcheck").gradcheck
    inputs = leaf(torch, 0.5, 1.5, 2.5), leaf(torch, 0.3, 0.7, -0.2)
    for options in {}, {"check_forward_ad": True, "check_backward_ad": False}:
        try:
            log.add(check(Wrong.apply, inputs, fast_mode=True, check_undefined_grad=False, **options))
        except RuntimeError as error:
            lines = str(error).split("\n")
            log.add(type(error).__name__, lines[0], lines[1].partition(":")[0], lines[2].partition(":")[0])
            for line in lines[3:]:
                if "e-" not in line and not line.startswith("The max"):
                    log.add(line.replace(", grad_fn=<CopySlices>", "").rstrip())
