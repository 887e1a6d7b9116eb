# SPDX-License-Identifier: MIT
"""What calls with generated arguments showed once to differ from PyTorch, one function a promise: layers, losses, linear algebra,
optimizers, schedules and the helpers of nn.utils. golden/make_generated.py keeps what PyTorch logs, test_generated.py compares."""

import warnings

from corner_kit import Log

SCENARIOS = {}


def scenario(fn):
    assert fn.__name__ not in SCENARIOS, fn.__name__
    SCENARIOS[fn.__name__] = fn
    return fn


def run(lib, name):
    log = Log()
    lib.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SCENARIOS[name](lib, log)
    for w in caught:
        message = str(w.message).split("\n")[0].split(" (Triggered internally")[0]
        log.append(f"warned {w.category.__name__}: {message}".replace("tenon", "torch"))
    return list(log)


def wave(lib, *sizes, by=0.7):
    """Numbers that look like any, the same in both libraries."""
    count = 1
    for s in sizes:
        count *= s
    at = lib.arange(float(count))
    return (at * by + at * at * 0.13).sin().reshape(sizes)


# ---- operators ----


@scenario
def gradients_of_real_numbers_in_complex_ones_warn_nobody(lib, log):
    x = wave(lib, 4, 6).requires_grad_()
    makes = (lambda: x.to(lib.complex64), lambda: lib.fft.fft(x), lambda: lib.fft.ifft(x, n=8), lambda: lib.fft.fft2(x),
             lambda: lib.fft.irfft(x), lambda: lib.zeros(4, 6, dtype=lib.complex64).copy_(x))
    for make in makes:
        x.grad = None
        (make() * (2 + 1j)).abs().sum().backward()
        log.add(x.grad.dtype, x.grad[1])


@scenario
def the_largest_difference_has_the_gradient_of_the_distance(lib, log):
    x = wave(lib, 4, 3).requires_grad_()
    (lib.nn.functional.pdist(x, p=float("inf")) * lib.arange(1.0, 7.0)).sum().backward()
    log.add(x.grad)
    y = wave(lib, 5, 3, by=0.3)
    x.grad = None
    (lib.cdist(x, y, p=float("inf")) * wave(lib, 4, 5)).sum().backward()
    log.add(x.grad)


@scenario
def eigenvalues_of_real_matrices_are_real_or_pairs(lib, log):
    for m in ([[1.0, 2, 0], [-3, 1, 0.5], [0.3, 0.2, 4]], [[0.0, -1], [1, 0]], [[2.0, 1], [0, 2]], [[1.0, 2], [3, 4]],
              [[0.0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 2], [0, 0, -2, 0]]):
        a = lib.tensor(m, dtype=lib.float64)
        values, vectors = lib.linalg.eig(a)
        ordered = sorted((round(v.real, 5), round(v.imag, 5)) for v in values.tolist())
        log.add(ordered, [v.imag > 0 for v in values.tolist()], [v.imag == 0 for v in values.tolist()])
        for i, v in enumerate(values.tolist()):
            if v.imag > 0:
                log.add(values[i + 1] == values[i].conj(), lib.equal(vectors[:, i + 1], vectors[:, i].conj().resolve_conj()))
            elif v.imag == 0:
                log.add(vectors[:, i].imag.abs().max() == 0)
        log.add(lib.allclose(a.to(values.dtype) @ vectors, vectors * values, atol=1e-7))


@scenario
def the_lower_triangle_is_the_matrix_where_it_is_said_to_be_hermitian(lib, log):
    a = lib.tensor([[1.0, 9, 7], [2, 1, 5], [0.5, 0.25, 4]], dtype=lib.float64)
    log.add(lib.linalg.pinv(a, hermitian=True), lib.linalg.pinv(a, 1e-6, hermitian=True))
    log.add(lib.linalg.pinv(a, rtol=lib.tensor(1e-6, dtype=lib.float64), hermitian=True))
    b = lib.tensor([[1.0, 5], [1, 1]])
    log.add(lib.linalg.matrix_rank(b), lib.linalg.matrix_rank(b, hermitian=True), lib.linalg.matrix_rank(b, 0.1, hermitian=True))
    log.add(lib.linalg.matrix_rank(b, atol=lib.tensor(0.1), hermitian=True))
    s = lib.tensor([[2.0, 1], [1, 3]], dtype=lib.float64, requires_grad=True)
    (lib.linalg.pinv(s, hermitian=True) * wave(lib, 2, 2)).sum().backward()
    log.add(s.grad)


@scenario
def shapes_at_the_edge_of_linear_algebra(lib, log):
    log.add(lib.linalg.vander(lib.tensor(3.0), N=3))
    log.tries(lib.linalg.vander, lib.tensor(3.0))
    q = lib.linalg.householder_product(lib.full((3, 2), float("nan")).requires_grad_(), lib.zeros(0))
    log.add(q, q.requires_grad)
    for dims in ((0,), (0, 1, 2)):
        log.tries(lib.linalg.matrix_norm, lib.ones(2, 3, 4), "nuc", dim=dims)
        log.tries(lib.linalg.matrix_norm, lib.ones(2, 3, 4), 2, dim=dims)


@scenario
def batch_norm_of_nothing_asks_for_nothing(lib, log):
    f = lib.nn.functional
    log.add(f.batch_norm(lib.ones(0), lib.ones(0), lib.ones(0), training=True).shape)
    norm = lib.nn.BatchNorm1d(4, dtype=lib.float64)
    y = norm(lib.ones(0, 4, 7))
    log.add(y.shape, y.dtype)


@scenario
def a_size_by_a_factor_is_one_for_areas_too(lib, log):
    x = wave(lib, 1, 2, 4)
    for again in (None, False, True):
        log.add(lib.nn.functional.interpolate(x, scale_factor=1.7, mode="area", recompute_scale_factor=again))


@scenario
def weights_of_classes_are_measured_before_targets_are_typed(lib, log):
    log.tries(lib.nn.functional.multi_margin_loss, lib.ones(5, 4), lib.ones(5), weight=lib.ones(5))


# ---- optimizers and schedules ----


def one_step(lib, name, p=None, **options):
    p = lib.nn.Parameter(lib.ones(2) if p is None else p)
    o = getattr(lib.optim, name)([p], **options)
    p.grad = lib.ones_like(p)
    o.step()
    return p.detach()


@scenario
def forms_of_a_step_that_the_cpu_has_not_are_refused(lib, log):
    for name in ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"):
        for options in ({"capturable": True}, {"capturable": True, "foreach": True}, {"foreach": True, "differentiable": True},
                        {"capturable": True, "foreach": True, "differentiable": True}, {"foreach": True}):
            log.tries(one_step, lib, name, **options)
    log.tries(one_step, lib, "Adam", capturable=True, fused=True)


@scenario
def options_that_are_tensors_are_looked_at_first(lib, log):
    log.tries(one_step, lib, "Adam", betas=(lib.tensor(0.9), 0.99))
    log.tries(one_step, lib, "AdamW", betas=(0.9, lib.tensor(0.99)))
    log.tries(one_step, lib, "SparseAdam", lr=lib.tensor([0.1, 0.2]))


@scenario
def sparse_adam_moves_a_number(lib, log):
    p = lib.nn.Parameter(lib.tensor(2.0))
    o = lib.optim.SparseAdam([p], lr=0.1)
    for _ in range(3):
        p.grad = (p.detach() * 2).to_sparse()
        o.step()
        log.add(p, o.state[p]["step"], o.state[p]["exp_avg"], o.state[p]["exp_avg_sq"])


@scenario
def cycles_that_go_on_leave_the_groups_as_they_are(lib, log):
    o = lib.optim.SGD([lib.nn.Parameter(lib.ones(2))], lr=0.1, momentum=0.9)
    o.param_groups[0]["initial_lr"] = 0.1
    s = lib.optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=3, last_epoch=3)
    log.add(sorted(o.param_groups[0]))
    for _ in range(3):
        o.step()
        s.step()
        log.add(o.param_groups[0]["lr"], o.param_groups[0]["momentum"])
    log.tries(lib.optim.lr_scheduler.OneCycleLR, o, 0.1, total_steps=14, last_epoch=3)
    step = lib.optim.lr_scheduler.StepLR(o, 1)
    log.tries(lib.optim.lr_scheduler.SequentialLR, o, [step, 3], [2])
    log.tries(lib.optim.lr_scheduler.ChainedScheduler, [step, 3])


# ---- nn.utils and their kin ----


@scenario
def sequences_without_padding_are_their_own(lib, log):
    rnn = lib.nn.utils.rnn
    padded = rnn.pad_sequence([wave(lib, 3, 2), wave(lib, 1, 2), wave(lib, 2, 2)])
    parts = rnn.unpad_sequence(padded, lib.tensor([3, 1, 2]))
    log.add(parts, [p.stride() for p in parts])
    log.tries(rnn.pad_sequence, [lib.ones(2, 3), lib.ones(2, 4)])


@scenario
def orthogonal_without_a_base(lib, log):
    for kind in ("matrix_exp", "cayley", "householder", None):
        for sizes in ((4, 4), (5, 3), (3, 5)):
            m = lib.nn.Linear(sizes[1], sizes[0])
            with lib.no_grad():
                m.weight.copy_(wave(lib, *sizes))
            lib.nn.utils.parametrizations.orthogonal(m, orthogonal_map=kind, use_trivialization=False)
            log.add(kind or "usual", list(m.state_dict()), m.weight)
            start = lib.linalg.qr(wave(lib, max(sizes), min(sizes), by=1.3))[0]
            start = start.mT if sizes[0] < sizes[1] else start

            def put():
                m.weight = start
                return lib.allclose(m.weight, start, atol=1e-5)

            log.tries(put)


@scenario
def masks_and_dictionaries_that_do_not_fit(lib, log):
    m = lib.nn.Linear(3, 2)
    log.tries(lib.nn.utils.prune.custom_from_mask, m, "weight", lib.ones(3))
    log.tries(lib.func.functional_call, m, ({"weight": 1, "bias": 2}, {"weight": 1, "bias": 2}), lib.ones(1, 3))
    log.tries(lib.utils.checkpoint.checkpoint_sequential, [m], 2, lib.ones(1, 3), use_reentrant=False)


# ---- distributions ----


@scenario
def gradients_at_the_edge_of_a_support_are_not_lost(lib, log):
    d = lib.distributions
    for name, value in (("Gamma", 0.0), ("Beta", 0.0), ("Beta", 1.0)):
        a, b = lib.tensor([0.6, 2.0], requires_grad=True), lib.tensor([1.5, 0.7], requires_grad=True)
        y = getattr(d, name)(a, b, validate_args=False).log_prob(lib.tensor(value))
        log.add(y, *lib.autograd.grad(lib.where(lib.isfinite(y), y, lib.zeros_like(y)).sum(), (a, b)))
    x, y = lib.tensor([0.0, 2.0, 1.0], requires_grad=True), lib.tensor([0.0, 0.0, 0.5])
    for f in (lib.xlogy, lib.special.xlog1py):
        out = f(x, y if f is lib.xlogy else y - 1)
        log.add(out, *lib.autograd.grad(out, x, lib.tensor([1.0, 0.0, 3.0])))


@scenario
def parameters_are_refused_in_the_words_of_what_they_are_made_of(lib, log):
    d, bad, good = lib.distributions, lib.tensor([-1.0, 2.0]), lib.tensor([3.0, 2.0])
    log.tries(d.Beta, bad, good)
    log.tries(d.Beta, good, bad)
    log.tries(d.StudentT, bad)
    log.tries(d.StudentT, good, scale=bad)
    log.tries(d.FisherSnedecor, good, bad)
    log.tries(d.LKJCholesky, 3, -1.0)
    log.tries(d.Wishart, bad, lib.eye(2).expand(2, 2, 2))
    log.tries(d.LowRankMultivariateNormal, lib.zeros(2, 3), lib.zeros(3, 3, 1), lib.ones(3, 3))
    log.tries(d.MultivariateNormal, lib.zeros(2, 3), lib.eye(3).expand(3, 3, 3))
    log.tries(d.Binomial, lib.ones(2), lib.full((3,), 0.5))
    log.tries(d.NegativeBinomial, lib.ones(2), lib.full((3,), 0.5))
    log.tries(d.GeneralizedPareto(good, good, lib.tensor([0.1, 0.2])).cdf, lib.tensor(0.5))


@scenario
def distributions_say_what_they_are_made_of(lib, log):
    d = lib.distributions
    log.add(d.Wishart(lib.tensor(3.0), lib.eye(2)).arg_constraints["df"], d.GeneralizedPareto(0.0, 1.0, 0.7).variance)
    log.add(hasattr(d.Geometric(0.5), "_param"), d.Binomial(lib.zeros(0), lib.zeros(0)).sample().shape)
    low = lib.tensor([0.0, 1.0], requires_grad=True)
    log.add(d.Uniform(low, lib.tensor([2.0, 3.0])).support)
    draws = d.Binomial(1000, lib.tensor([0.2, 0.5])).sample((200,)).mean(0)
    log.add((draws - lib.tensor([200.0, 500.0])).abs().max() < 10)


@scenario
def shapes_that_are_broadcast(lib, log):
    a = lib.ones(2, 3)
    b, c = lib.broadcast_tensors(a, lib.ones(3))
    log.add(b is a, c.shape, c.stride())
    for shapes in (((2,), (3,)), ((2, 3), (4, 1, 5), (1,)), ((4, 3), 3, (2,)), ((-1,), (2,)), ((2,), (-1,)), ((1, 2), (2, 2), (3, 2)),
                   ((2,), None), (2.5,), (3, (1,)), ()):
        log.tries(lib.broadcast_shapes, *shapes)


# ---- amp, data, testing ----


@scenario
def linear_algebra_and_transforms_under_autocast_are_float32(lib, log):
    s, h = lib.tensor([[2.0, 0.5], [0.5, 1.0]]).bfloat16(), lib.tensor([[0.5, -0.25], [0.125, 0.75]]).bfloat16()
    g = lib.linalg
    calls = (lambda: lib.polar(h, h), lambda: lib.linalg.cholesky(s), lambda: lib.cholesky_inverse(s), lambda: lib.inverse(s),
             lambda: lib.cholesky_solve(h, s), lambda: lib.pinverse(h), lambda: lib.fft.fft(h), lambda: lib.fft.irfft(h),
             lambda: lib.fft.fft2(h), lambda: lib.fft.rfftn(h), lambda: g.cond(s), lambda: g.solve(s, h), lambda: g.svdvals(h),
             lambda: g.eigvals(s), lambda: g.eigvalsh(s), lambda: g.inv(s), lambda: g.qr(s)[0], lambda: g.svd(h)[1],
             lambda: g.eigh(s)[0], lambda: g.lstsq(s, h)[0], lambda: lib.geqrf(s)[0], lambda: g.vecdot(h, h.float()),
             lambda: g.householder_product(s, h[0]), lambda: g.matrix_rank(s), lambda: g.cholesky_ex(s)[0],
             lambda: lib.nn.functional.soft_margin_loss(h, h))
    for call in calls:
        with lib.autocast("cpu"):
            log.add(call().dtype)


@scenario
def autocast_by_other_names_and_for_other_devices(lib, log):
    with lib.cpu.amp.autocast():
        log.add((lib.ones(2, 2) @ lib.ones(2, 2)).dtype)
    log.add(lib.cpu.amp.GradScaler(init_scale=4.0).get_scale())
    with lib.cuda.amp.autocast():
        log.add((lib.ones(2, 2) @ lib.ones(2, 2)).dtype)
    for device in ("mps", "xpu", "hpu", "xla", "mtia"):
        for options in ({}, {"dtype": lib.float32}, {"enabled": False}):
            region = lib.autocast(device, **options)
            with region:
                log.add(device, region._enabled, region.fast_dtype, (lib.ones(2, 2) @ lib.ones(2, 2)).dtype)


@scenario
def comparisons_of_sparse_tensors_name_what_differs(lib, log):
    t, close = lib.tensor, lib.testing.assert_close

    def lines(*args, **options):
        try:
            close(*args, **options)
        except AssertionError as e:
            log.add(str(e).replace("\n", " | "))

    lines(t([1.0, 0, 3]).to_sparse(), t([2.0, 0, 3]).to_sparse())
    lines(t([1.0, 0, 3]).to_sparse(), t([2.0, 1, 3]).to_sparse())
    lines(t([1.0, 0]).to_sparse(), t([0.0, 1]).to_sparse())
    lines(None, t(1.0))
    log.tries(lib.testing.make_tensor, 3, dtype=lib.float32, device="cpu", low=5, high=1)


@scenario
def a_limit_of_time_needs_workers(lib, log):
    data = lib.utils.data
    log.tries(lambda: list(data.DataLoader([1, 2], timeout=5)))
    log.add(data.ConcatDataset([range(3), range(2)]).cummulative_sizes)


@scenario
def layers_at_their_edges(lib, log):
    f = lib.nn.functional
    log.add(f.feature_alpha_dropout(lib.ones(3), training=False))
    log.tries(f.feature_alpha_dropout, lib.ones(3), training=True)
    log.tries(f.local_response_norm, lib.ones(2, 3), 2)
    x = lib.ones(2, 2, requires_grad=True)
    log.tries(f.soft_margin_loss, x, lib.ones(2, 2, requires_grad=True))
    with lib.no_grad():
        log.tries(f.soft_margin_loss, x, lib.ones(2, 2, requires_grad=True))


@scenario
def a_number_in_a_tensor_is_not_a_dimension(lib, log):
    t = lib.tensor
    for a, b in ((t(3), t(6)), (t([1, 2]), t(1)), (t([1, 5]), t(0)), (t(3.0), t(0))):
        log.add(lib.max(a, b), lib.min(a, b), a.max(b), a.min(b))
    log.add(*lib.max(t([[1, 2], [3, 0]]), dim=t(1)))


@scenario
def differences_of_no_order_and_slopes_along_one_dimension_twice(lib, log):
    a = wave(lib, 2, 3)
    log.add(lib.diff(a, 0, 0, lib.ones(1, 3)), lib.diff(a, n=0, append=lib.ones(2, 2)))
    for dims in ((1, 1), (1, -1), (0, 0)):
        log.tries(lib.gradient, a, dim=dims)


@scenario
def results_keep_channels_last_where_pytorch_keeps_them(lib, log):
    bn = lib.nn.functional.batch_norm
    for sizes in ((2, 5, 6, 3), (2, 5, 6, 1), (2, 1, 1, 3), (1, 5, 6, 3)):
        x = wave(lib, *sizes).permute(0, 3, 1, 2)
        c = sizes[3]
        log.add(bn(x, lib.zeros(c), lib.ones(c)).stride(), bn(x, None, None, training=True).stride() if sizes[1] > 1 else None)
    images = (wave(lib, 6, 6, 6, 3).permute(3, 0, 1, 2), wave(lib, 6, 6, 6, 6).permute(3, 0, 1, 2)[::2], wave(lib, 6, 6, 6, 1).permute(3, 0, 1, 2),
              wave(lib, 2, 6, 6, 6, 3).permute(0, 4, 1, 2, 3), wave(lib, 3, 6, 6, 6))
    for x in images:
        for dtype in (lib.float32, lib.bfloat16):
            found, at = lib.nn.functional.max_pool3d(x.to(dtype), 2, return_indices=True)
            back = lib.ops.aten.max_pool3d_with_indices_backward
            grad = back(found, x.to(dtype), [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False, at)
            log.add(found.stride(), at.stride(), grad.stride(), found.float().sum(), grad.float().reshape(-1)[:9])


@scenario
def frames_of_a_signal_begin_where_the_window_does(lib, log):
    x = wave(lib, 2, 40)
    for n, length in ((16, 12), (16, 16), (15, 11)):
        for align in (True, False, None):
            found = lib.stft(x, n, 4, length, window=lib.ones(length), center=False, return_complex=True, align_to_window=align)
            log.add(found.shape, lib.view_as_real(found[:, :, 0]))
    for align in (True, False):
        log.tries(lib.stft, x, 16, 4, 12, window=lib.ones(12), return_complex=True, align_to_window=align)
    log.tries(lib.stft, x[:, :12], 16, 4, 10, window=lib.ones(10), center=False, return_complex=True, align_to_window=True)


@scenario
def refusals_name_what_pytorch_names(lib, log):
    v, m = wave(lib, 4), wave(lib, 3, 3)
    log.tries(lib.linalg.multi_dot, [m, v, m])
    log.tries(lib.linalg.multi_dot, [m, wave(lib, 3, 3, 3), m])
    log.tries(lib.linalg.multi_dot, [m, v, wave(lib, 3, 3, 3)])
    for order in ("fro", "nuc", "foo"):
        log.tries(lib.linalg.norm, v, order)
        log.tries(lib.linalg.norm, m, order, 0)
        log.tries(lib.linalg.norm, wave(lib, 2, 2, 2), order, (0, 1, 2))
        log.tries(lib.linalg.matrix_norm, v, order)
    log.tries(lib.linalg.norm, wave(lib, 2, 2, 2), 2, (0, 1, 2))
    for step in (0, -1):
        log.tries(lib.ops.aten.unfold_backward, wave(lib, 4, 2), [5], 0, 2, step)
    f, at = lib.nn.functional, lib.tensor([0, 9])
    for mode in ("sum", "mean", "max"):
        for weight, pad in ((wave(lib, 4, 3), None), (wave(lib, 3, 4).t(), None), (wave(lib, 4, 3), 1), (wave(lib, 4, 3).double(), None)):
            log.tries(f.embedding_bag, at, weight, lib.tensor([0]), mode=mode, padding_idx=pad)
    log.tries(lib.embedding_renorm_, wave(lib, 4, 3), at, 1.0, 2.0)
    whole = lib.tensor([1, 2, 3], dtype=lib.uint8)
    for low, high in ((0.0, 300.0), (-1.0, 3.0), (0.0, 30.0), (30.0, 3.0)):
        log.tries(lib.histogram, whole, 4, range=(low, high))
    log.tries(lib.histogram, whole, 4)
    log.tries(lib.histogram, whole, 0)
    log.tries(lib.histogram, whole, whole)
    log.tries(lib.histc, whole, 4, 0, 300)
    log.tries(lib.histc, whole, 4, 0, 30)


@scenario
def bags_leave_their_padding_out(lib, log):
    at, start = lib.tensor([0, 1, 2, 1, 1, 3]), lib.tensor([0, 3, 3, 4])
    for mode in ("sum", "mean", "max"):
        for pad in (1, -4, None):
            w = wave(lib, 4, 3).requires_grad_()
            found = lib.nn.functional.embedding_bag(at, w, start, mode=mode, padding_idx=pad)
            (found * wave(lib, 4, 3)).sum().backward()
            log.add(found, w.grad)


@scenario
def each_driver_of_lstsq_counts_singular_values_in_its_way(lib, log):
    for sizes in ((5, 3), (3, 5), (2, 5, 3)):
        a, b = wave(lib, *sizes).double(), wave(lib, *sizes[:-1], 2, by=0.3).double()
        for rcond in (None, 1e-3, 0.3, 0.5, 0.7, 1.0, 1.5, 0.0, -1.0):
            for driver in ("gelsd", "gelss", "gels"):
                found = lib.linalg.lstsq(a, b, rcond=rcond, driver=driver)
                log.add(driver, rcond, found.solution.float(), found.residuals.float(), found.rank, found.singular_values.float())
