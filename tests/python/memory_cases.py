# SPDX-License-Identifier: MIT
"""The pieces of Python of which test_memory.py fails each allocation: one for each part of the extension.

A case is a function that makes what the piece works on, and gives the piece and a check: after the piece, and with
whether it failed, is everything as it must be? The piece gives something that can be compared."""

CASES = {}
EXACT = set()  # those in which all that allocates is the extension: of these nothing may leak either


def case(function):
    CASES[function.__name__] = function
    return function


def exact(function):
    EXACT.add(function.__name__)
    return function


def _nothing(failed):
    return True


def _same(read):
    before = read()
    return lambda failed: read() == before


def _numbers(*tensors):
    return _same(lambda: [t.tolist() for t in tensors])


# ---- calls: fit.c, match.c, bind.c, operator.c, method.c, opcall.c, scalar.c, types.c ----

@case
@exact
def operators(tenon):
    x, y = tenon.ones(3, 4), tenon.full((3, 4), 2.0)

    def piece():
        z = tenon.add(x, y, alpha=3) * 2 + 1 - y / x
        return (z @ y.t()).sum().item(), (-z)[0, 0].item(), bool((z > 1).all())
    return piece, _numbers(x, y)


@case
def long_lists(tenon):
    x = tenon.ones(1)
    sizes = [1] * 60
    many = [tenon.full((2,), float(i)) for i in range(40)]
    return lambda: (x.expand(sizes).dim(), tenon.cat(many).sum().item(), len(tenon.stack(many).unbind())), _numbers(x)


@case
@exact
def named_results(tenon):
    x = tenon.tensor([[3.0, 1.0, 2.0]])

    def piece():
        values, indices = tenon.sort(x)
        top = x.max(1)
        return values.tolist(), indices.tolist(), top.values.tolist(), tuple(tenon.ones(2).shape)
    return piece, _numbers(x)


@case
@exact
def out_and_keywords(tenon):
    x, out = tenon.ones(4), tenon.zeros(4)

    def piece():
        tenon.add(input=x, other=x, out=out)
        return out.tolist(), x.sum(axis=0, keepdims=True).tolist(), tenon.zeros(2, dtype=tenon.float64, device="cpu").dtype
    return piece, _numbers(x)


@case
def wrong_calls(tenon):
    x = tenon.ones(2, 3)

    def piece():
        said = []
        for call in (lambda: x + "a", lambda: tenon.mm(x, x), lambda: tenon.zeros(2, dtype="no"), lambda: x[5],
                     lambda: x.view(7)):
            try:
                call()
            except (MemoryError, tenon.OutOfMemoryError):
                raise
            except Exception as error:
                said.append(type(error))  # CPython may have had no memory for the text
        return said
    return piece, _numbers(x)


@case
@exact
def operators_by_name(tenon):
    x = tenon.ones(2)
    return lambda: (tenon.ops.aten.add.Tensor(x, x).tolist(), tenon.ops.aten.sum(x).item()), _numbers(x)


# ---- tensors: index.c, data.c, buffer.c, dlpack.c, values.c, construct.c, storage.c, property.c ----

@case
@exact
def indexing(tenon):
    x = tenon.arange(24.0).view(2, 3, 4)
    rows = tenon.tensor([1, 0])

    def piece():
        return (x[0, 1:, ::2].tolist(), x[..., None, -1].tolist(), x[rows, [0, 2]].tolist(), x[x > 20].tolist(),
                x[:, rows][1].tolist())
    return piece, _numbers(x)


@case
@exact
def index_assignment(tenon):
    x = tenon.zeros(3, 4)

    def piece():
        x[0] = 1
        x[1, ::2] = tenon.tensor([2.0, 3.0])
        x[[2], [1]] = 5
        x[x == 0] = 7
        x.zero_()
        return x.tolist()
    return piece, _nothing


@case
def data(tenon):
    def piece():
        x = tenon.tensor([[1, 2.5], [True, 4]])
        y = tenon.as_tensor(x, dtype=tenon.float64)
        z = tenon.tensor([tenon.ones(()), x[0, 0]])
        return x.tolist(), y.numpy().tolist(), z.shape, tenon.tensor(3 + 4j).item(), [e.item() for e in tenon.ones(2)], len(x)
    return piece, _nothing


@case
def foreign_memory(tenon):
    import numpy
    a = numpy.arange(6.0).reshape(2, 3)

    def piece():
        x = tenon.from_numpy(a)
        y = tenon.from_dlpack(x)
        z = tenon.frombuffer(a, dtype=tenon.float64)
        w = numpy.from_dlpack(x)
        return x.sum().item(), y.tolist(), z.tolist(), w.tolist(), memoryview(x.numpy()).nbytes
    return piece, _same(a.tolist)


@case
def properties(tenon):
    x = tenon.ones(2, 3)

    def piece():
        return (x.shape, x.T.shape, x.mT.stride(), x.device, x.dtype, x.is_leaf, x.data.tolist(), x.storage_offset(),
                x.untyped_storage().nbytes(), x._version, x.view(6)._base is x, x.itemsize, str(x.layout))
    return piece, _numbers(x)


@case
def texts(tenon):
    x = tenon.linspace(0, 1, 6, dtype=tenon.float64).view(2, 3)
    return lambda: (repr(x), str(x.dtype), "%s" % x.device, repr(tenon.finfo(tenon.float32)), format(x[0, 0], ".2f")), \
        _numbers(x)


@case
def copies(tenon):
    import copy
    import pickle
    x = tenon.ones(2, 3)
    p = tenon.nn.Parameter(tenon.zeros(2))

    def piece():
        return (pickle.loads(pickle.dumps(x)).tolist(), copy.deepcopy(p).requires_grad, copy.copy(x).tolist(),
                x.clone().tolist(), x.to(tenon.int64).tolist())
    return piece, _numbers(x)


@case
def files(tenon):
    import io
    state = {"w": tenon.ones(3), "n": 4}

    def piece():
        file = io.BytesIO()
        tenon.save(state, file)
        file.seek(0)
        back = tenon.load(file)
        return back["w"].tolist(), back["n"]
    return piece, _same(state["w"].tolist)


@case
@exact
def generators(tenon):
    g = tenon.Generator()

    def piece():
        g.manual_seed(3)
        a = tenon.rand(3, generator=g)
        g.set_state(g.get_state())
        return a.tolist(), tenon.Generator().initial_seed()
    return piece, _nothing


# ---- gradients: autograd.c, node.c, hooks.c, held.c, saved_tensor.c, function*.c, anomaly.c, guard.c, forward_ad.c ----

@case
@exact
def backward(tenon):
    w = tenon.ones(3, requires_grad=True)

    def piece():
        w.grad = None
        (w * 2).sum().backward()
        y = (w * w).sum()
        g, = tenon.autograd.grad(y, w, create_graph=True)
        return w.grad.tolist(), g.tolist(), y.grad_fn.name(), y.grad_fn.next_functions[0][0].name(), g.requires_grad
    return piece, _numbers(w)


@case
def hooks(tenon):
    w = tenon.ones(3, requires_grad=True)

    def piece():
        w.grad = None
        seen = []
        with_hook = w * 2
        handles = [with_hook.register_hook(lambda g: seen.append(1) or g * 3),
                   with_hook.grad_fn.register_hook(lambda i, o: seen.append(2)),
                   w.register_post_accumulate_grad_hook(lambda p: seen.append(3))]
        try:
            with_hook.sum().backward()
        finally:
            for handle in handles:
                handle.remove()
        return w.grad.tolist(), seen
    return piece, _numbers(w)


@case
@exact
def functions(tenon):
    class Twice(tenon.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x)
            ctx.n = n
            return x * n

        @staticmethod
        def backward(ctx, g):
            ctx.saved_tensors
            return g * ctx.n, None
    w = tenon.ones(3, requires_grad=True)

    def piece():
        w.grad = None
        Twice.apply(w, 2).sum().backward()
        return w.grad.tolist()
    return piece, _numbers(w)


@case
def saved_tensors_hooks(tenon):
    w = tenon.ones(3, requires_grad=True)

    def piece():
        w.grad = None
        with tenon.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), tenon.from_numpy):
            y = (w * 2).exp()
        y.sum().backward()
        return w.grad.tolist()
    return piece, _numbers(w)


@case
def modes_of_gradients(tenon):
    w = tenon.ones(3, requires_grad=True)

    def piece():
        with tenon.no_grad():
            a = (w * 2).requires_grad
        with tenon.inference_mode():
            b = (w * 2).is_inference()
        with tenon.autograd.detect_anomaly(check_nan=False):
            c = (w * 2).grad_fn.name()
        return a, b, c, tenon.is_grad_enabled()
    return piece, _same(lambda: (tenon.is_grad_enabled(), tenon.is_inference_mode_enabled(), tenon.is_anomaly_enabled()))


@case
def forward_gradients(tenon):
    import tenon.autograd.forward_ad as forward_ad
    x, v = tenon.ones(3), tenon.full((3,), 2.0)

    def piece():
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, v)
            return forward_ad.unpack_dual(dual * dual).tangent.tolist()
    return piece, _numbers(x, v)


@case
def checkpoints(tenon):
    from tenon.utils.checkpoint import checkpoint
    w = tenon.ones(3, requires_grad=True)

    def piece():
        w.grad = None
        checkpoint(lambda t: (t * 2).exp(), w, use_reentrant=False).sum().backward()
        return w.grad.tolist()
    return piece, _numbers(w)


@case
def transforms(tenon):
    x = tenon.ones(3)
    return lambda: (tenon.func.vmap(lambda t: t * 2)(x).tolist(), tenon.func.grad(lambda t: (t * t).sum())(x).tolist(),
                    tenon.func.jacrev(lambda t: t * t)(x).tolist()), _numbers(x)


# ---- layers and steps: layer.c, forward.c, step.c, optim.c ----

def _model(tenon):
    tenon.manual_seed(0)
    return tenon.nn.Sequential(tenon.nn.Linear(4, 3), tenon.nn.ReLU(), tenon.nn.Linear(3, 2))


@case
@exact
def layers(tenon):
    model, x = _model(tenon), tenon.ones(2, 4)
    model.eval()

    def piece():
        return model(x).tolist(), model[0].weight.shape, model[0](x).tolist(), model[1](x).tolist()
    return piece, _numbers(x, *model.parameters())


@case
def layers_that_miss_something(tenon):
    model = _model(tenon)
    del model[0]._parameters["bias"]

    def piece():
        said = []
        for call in (lambda: model(tenon.ones(2, 4)), lambda: model.nothing):
            try:
                call()
            except AttributeError:
                said.append(1)
        return said
    return piece, _nothing


def _step(tenon, make, groups=1):
    """A step of which each group is done whole or not at all: what is compared is what it has done, for each group."""
    import copy
    model, x = _model(tenon), tenon.ones(2, 4)
    params = list(model.parameters())
    optimizer = make([{"params": params[i::groups]} for i in range(groups)])
    for _ in range(2):  # the second step finds the state that the first made
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    before = copy.deepcopy(optimizer.state_dict()["state"]), [p.detach().clone() for p in params]
    order = [p for group in optimizer.param_groups for p in group["params"]]

    def values():
        return [[[p.tolist(), {name: value.tolist() for name, value in optimizer.state[p].items() if value is not None}]
                 for p in group["params"]] for group in optimizer.param_groups]

    def restore():
        with tenon.no_grad():
            for p, kept in zip(params, before[1]):
                p.copy_(kept)
            for p, state in zip(order, before[0].values()):
                for name, value in state.items():
                    if value is not None:
                        optimizer.state[p][name].copy_(value)

    untouched = values()
    optimizer.step()
    done = values()
    restore()

    def check(failed):
        now = values()
        restore()
        return all(group in (old, new) if failed else group == new for group, old, new in zip(now, untouched, done))
    return optimizer.step, check


@case
@exact
def step_of_sgd(tenon):
    return _step(tenon, lambda p: tenon.optim.SGD(p, lr=0.1, momentum=0.9))


@case
@exact
def step_of_adam(tenon):
    return _step(tenon, lambda p: tenon.optim.Adam(p, lr=0.1))


@case
@exact
def step_of_adamw_with_three_groups(tenon):
    return _step(tenon, lambda p: tenon.optim.AdamW(p, lr=0.1, amsgrad=True), 3)


# ---- classes and modes: override.c, dispatch.c, modes.c, fake.c, keys.c, library.c, autocast.c, profile.c, device.c ----

@case
def subclasses(tenon):
    class Seen(tenon.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})
    x = tenon.ones(3).as_subclass(Seen)
    return lambda: (type(x + 1) is Seen, (x * 2).tolist(), tenon.cat([x, x]).shape), _nothing


@case
def modes(tenon):
    from tenon.overrides import TorchFunctionMode
    from tenon.utils._python_dispatch import TorchDispatchMode

    class Function(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))
    x = tenon.ones(3)

    def piece():
        with Function():
            a = (x + 1).tolist()
        with Dispatch():
            b = tenon.add(x, x)
        return a, b.tolist(), (x + 1).tolist()
    return piece, _numbers(x)


@case
def fakes(tenon):
    from tenon._subclasses.fake_tensor import FakeTensorMode

    def piece():
        with FakeTensorMode():
            return (tenon.ones(2, 3) @ tenon.ones(3, 4)).shape
    return piece, _nothing


@case
@exact
def autocast(tenon):
    x = tenon.ones(2, 2)

    def piece():
        with tenon.autocast("cpu", dtype=tenon.bfloat16):
            y = x @ x
        return y.dtype, y.tolist()
    return piece, _same(lambda: tenon.is_autocast_enabled("cpu"))


@case
def devices(tenon):
    def piece():
        with tenon.device("meta"):
            a = tenon.ones(2).device
        return a, tenon.ones(2).device, tenon.device("cpu", 0).index, repr(tenon.device("meta"))
    return piece, _same(lambda: str(tenon.get_default_device()))


@case
def library_of_operators(tenon):
    library = tenon.library.Library("memory_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    x = tenon.ones(2)
    return lambda: tenon.ops.memory_test.twice(x).tolist(), _same(lambda: library and x.tolist())


@case
def profiles(tenon):
    x = tenon.ones(3)

    def piece():
        with tenon.autograd.profiler.profile(with_stack=True) as p:
            x + x
        return p.function_events is None  # what there is no memory to note is not noted
    return piece, _nothing


@case
def sparse(tenon):
    s = tenon.tensor([[0.0, 2], [3, 0]]).to_sparse()
    return lambda: ((s @ tenon.ones(2, 1)).tolist(), s.to_dense().tolist()), _nothing
