# SPDX-License-Identifier: MIT
"""What modules do besides computing: names, states, hooks, attributes, conversions, copies, containers, helpers. A scenario runs on
either library and returns a list that JSON can hold; golden/make_nn.py keeps what PyTorch returns."""

import copy
import pickle
import warnings

import nn_call_scenarios
from nn_cases import fill, numbers, plain

SCENARIOS = {}


def scenario(fn):
    SCENARIOS[fn.__name__] = fn
    return fn


class Log(list):
    """Collects texts; `tries` adds what a call raises."""

    def add(self, *values):
        self.append(plain(" ".join(str(v) for v in values)))

    def tries(self, call):
        try:
            out = call()
            self.add("ok", type(out).__name__)
        except Exception as e:
            # KeyError's text is the repr of its argument
            self.add(type(e).__name__, e.args[0] if e.args else e)


def run(lib, nn, name):
    """The log of one scenario, with the warnings it gave."""
    log = Log()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SCENARIOS[name](lib, nn, log)
    for w in caught:
        if "Converting a tensor" not in str(w.message):
            log.add("warning:", w.category.__name__, w.message)
    return log


def net(lib, nn):
    m = nn.Sequential()
    m.add_module("a", nn.Linear(2, 3))
    m.add_module("b", nn.Sequential(nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2, bias=False)))
    fill(lib, m)
    return m


def shapes(d):
    return [(k, tuple(v.shape)) for k, v in d.items()]


@scenario
def names(lib, nn, log):
    m = net(lib, nn)
    m.tied = m.a
    log.add([n for n, _ in m.named_parameters()])
    log.add([n for n, _ in m.named_parameters(prefix="p", recurse=False)])
    log.add([n for n, _ in m.named_parameters(remove_duplicate=False)])
    log.add([n for n, _ in m.named_buffers()])
    log.add([n for n, _ in m.named_modules()])
    log.add([n for n, _ in m.named_modules(prefix="x", remove_duplicate=False)])
    log.add([n for n, _ in m.named_children()], len(list(m.children())), len(list(m.modules())))
    log.add(m.get_submodule("b.2"), m.get_parameter("a.weight").shape, m.get_buffer("b.0.running_mean").shape)
    for target in ("b.9", "a.weight", "zz"):
        log.tries(lambda: m.get_submodule(target))
    for target in ("b.0.running_mean", "a.zz", "zz.a"):
        log.tries(lambda: m.get_parameter(target))
    log.tries(lambda: m.get_buffer("a.weight"))
    m.set_submodule("b.1", nn.Tanh())
    log.add(m.b)
    log.tries(lambda: m.set_submodule("", nn.Tanh()))
    log.tries(lambda: m.set_submodule("b.1", 3))
    log.tries(lambda: m.set_submodule("b.new", nn.Tanh(), strict=True))
    log.tries(lambda: m.set_submodule("a.weight", nn.Tanh()))
    log.add([d for d in dir(m) if d in ("a", "b", "tied", "weight", "training", "0")])
    log.add(repr(m))


@scenario
def attributes(lib, nn, log):
    class Bare(nn.Module):
        def __init__(self):
            pass

    b = Bare()
    log.tries(lambda: setattr(b, "p", nn.Parameter(lib.ones(2))))
    log.tries(lambda: setattr(b, "m", nn.ReLU()))
    log.tries(lambda: b.register_buffer("x", lib.ones(2)))
    log.tries(lambda: b.register_parameter("x", None))
    m = nn.Linear(2, 3)
    log.tries(lambda: setattr(m, "weight", lib.ones(3, 2)))
    log.tries(lambda: setattr(m, "weight", 3))
    log.tries(lambda: m.register_parameter("a.b", None))
    log.tries(lambda: m.register_parameter("", None))
    log.tries(lambda: m.register_parameter(3, None))
    log.tries(lambda: m.register_parameter("weight2", lib.ones(2)))
    log.tries(lambda: m.register_parameter("in_features", nn.Parameter(lib.ones(2))))
    log.tries(lambda: m.register_parameter("forward", nn.Parameter(lib.ones(2))))
    log.tries(lambda: m.register_buffer("a.b", None))
    log.tries(lambda: m.register_buffer("", None))
    log.tries(lambda: m.register_buffer("weight", None))
    log.tries(lambda: m.register_buffer("q", 3))
    log.tries(lambda: m.add_module("a.b", nn.ReLU()))
    log.tries(lambda: m.add_module("", nn.ReLU()))
    log.tries(lambda: m.add_module("r", 3))
    log.tries(lambda: m.add_module(3, nn.ReLU()))
    log.tries(lambda: m.add_module("weight", nn.ReLU()))
    m.act = nn.ReLU()
    log.tries(lambda: setattr(m, "act", 3))
    m.act = None
    log.add(m._modules, m)
    m.bias = None
    log.add(m.bias, [n for n, _ in m.named_parameters()])
    m.register_buffer("buf", lib.zeros(2))
    m.register_buffer("temp", lib.zeros(3), persistent=False)
    m.buf = lib.ones(4)
    log.tries(lambda: setattr(m, "buf", 3))
    m.temp = lib.ones(1)
    log.add(shapes(m.state_dict()), [n for n, _ in m.named_buffers()], m._non_persistent_buffers_set)
    m.later = nn.Buffer(lib.ones(3))
    m.hidden = nn.Buffer(lib.ones(3), persistent=False)
    log.add(shapes(m.state_dict()), isinstance(m.later, nn.Buffer), isinstance(lib.ones(1), nn.Buffer))
    m.plain = lib.ones(2)
    log.add([n for n, _ in m.named_buffers()], "plain" in m.__dict__)
    m.plain = nn.Parameter(lib.ones(2))
    log.add("plain" in m.__dict__, [n for n, _ in m.named_parameters()])
    del m.plain, m.buf, m.act
    log.tries(lambda: m.plain)
    log.tries(lambda: delattr(m, "plain"))
    log.tries(lambda: m.missing)
    log.tries(lambda: nn.Module(3))
    log.tries(lambda: nn.Module(a=3))
    log.tries(lambda: nn.Module()(3))
    log.tries(lambda: m.train("x"))
    x = lib.ones(2, requires_grad=True)
    log.tries(lambda: nn.Module().register_parameter("p", x * 2))
    log.add(isinstance(nn.Parameter(lib.ones(2)), lib.Tensor), isinstance(lib.ones(2), nn.Parameter))
    p = nn.Parameter(lib.ones(2))
    log.add(p.requires_grad, p.is_leaf, type(p + 1).__name__, type(p.data).__name__, type(p.detach()).__name__, repr(p))
    log.add(nn.Parameter(lib.ones(2), requires_grad=False).requires_grad, nn.Parameter().shape, nn.Parameter(p) is p)
    log.add(hash(p) == id(p), p is copy.copy(p), type(copy.deepcopy(p)).__name__)


@scenario
def states(lib, nn, log):
    m = net(lib, nn)
    d = m.state_dict()
    log.add(shapes(d), type(d).__name__, dict(d._metadata))
    log.add([v.requires_grad for v in d.values()], [type(v).__name__ for v in m.state_dict(keep_vars=True).values()])
    log.add(shapes(m.state_dict(prefix="p.")), shapes(m.state_dict(None, "q.")))
    n = net(lib, nn)
    with lib.no_grad():
        for p in n.parameters():
            p.zero_()
    log.add(n.load_state_dict(d), float(n.a.weight.sum()) == float(m.a.weight.sum()))
    d2 = dict(d)
    del d2["a.bias"]
    d2["extra"] = lib.ones(1)
    d2["b.7.weight"] = lib.ones(1)
    log.tries(lambda: n.load_state_dict(d2))
    r = n.load_state_dict(d2, strict=False)
    log.add(r, r.missing_keys, r.unexpected_keys)
    d3 = dict(d)
    d3["a.weight"] = lib.ones(4, 4)
    d3["a.bias"] = 3
    log.tries(lambda: n.load_state_dict(d3))
    log.tries(lambda: n.load_state_dict(d3, strict=False))
    log.tries(lambda: n.load_state_dict([1]))
    old = {k: v for k, v in d.items() if "num_batches" not in k}
    log.add(n.load_state_dict(old))
    before = n.a.weight
    n.load_state_dict(d, assign=True)
    log.add(n.a.weight is before, type(n.a.weight).__name__, n.a.weight.requires_grad)
    n.load_state_dict(d)
    log.add(n.a.weight is n.a.weight)

    class Extra(nn.Module):
        def __init__(self):
            super().__init__()
            self.value = {"k": 1}

        def get_extra_state(self):
            return self.value

        def set_extra_state(self, state):
            self.value = state

    e = nn.Sequential(Extra())
    log.add(dict(e.state_dict()))  # the text of an OrderedDict is another from Python 3.12 on
    other = nn.Sequential(Extra())
    other[0].value = None
    log.add(other.load_state_dict(e.state_dict()), other[0].value)
    log.tries(lambda: other.load_state_dict({}))
    log.tries(lambda: nn.Sequential(nn.ReLU()).load_state_dict(e.state_dict()))


@scenario
def state_hooks(lib, nn, log):
    m = net(lib, nn)

    def after(module, state_dict, prefix, metadata):
        log.add("post", type(module).__name__, prefix, metadata)
        state_dict[prefix + "new"] = lib.ones(1)

    h = m.b.register_state_dict_post_hook(after)
    h2 = m.b.register_state_dict_pre_hook(lambda mod, prefix, keep: log.add("pre", type(mod).__name__, prefix, keep))
    log.add(list(m.state_dict()))
    log.tries(lambda: m._register_state_dict_hook(after))
    h.remove()
    h2.remove()
    m._register_state_dict_hook(lambda mod, d, p, meta: {"all": len(d)})
    log.add(m.state_dict())
    n = net(lib, nn)
    d = n.state_dict()

    def before(state_dict, prefix, *rest):
        log.add("load", prefix, [type(r).__name__ for r in rest])
        state_dict.pop(prefix + "0.weight", None)

    n.b._register_load_state_dict_pre_hook(before)
    n.a.register_load_state_dict_pre_hook(lambda mod, sd, prefix, *rest: log.add("own", type(mod).__name__, prefix))

    def done(mod, keys):
        log.add("done", type(mod).__name__, keys)
        keys.missing_keys.clear()

    n.register_load_state_dict_post_hook(done)
    log.tries(lambda: n.load_state_dict(d))
    n.register_load_state_dict_post_hook(lambda mod, keys: 3)
    log.tries(lambda: n.load_state_dict(d))


@scenario
def forward_hooks(lib, nn, log):
    class Two(nn.Module):
        def forward(self, x, scale=1):
            if scale == 0:
                raise ValueError("no scale")
            return x * scale

    m = Two()
    x = lib.ones(2)
    hs = [
        m.register_forward_pre_hook(lambda mod, args: log.add("pre", len(args)) or (args[0] + 1,)),
        m.register_forward_pre_hook(lambda mod, args, kw: (args, {"scale": 3}), with_kwargs=True, prepend=True),
        m.register_forward_hook(lambda mod, args, out: log.add("post", args[0].tolist(), out.tolist())),
        m.register_forward_hook(lambda mod, args, kw, out: out * 10 + kw["scale"], with_kwargs=True),
        m.register_forward_hook(lambda mod, args, out: log.add("first", out.tolist()), prepend=True),
    ]
    log.add(m(x).tolist())
    for h in hs:
        h.remove()
    log.add(m(x).tolist(), len(m._forward_hooks), len(m._forward_pre_hooks_with_kwargs))
    h = m.register_forward_pre_hook(lambda mod, args: args[0] * 5)
    log.add(m(x).tolist())
    h.remove()
    h = m.register_forward_pre_hook(lambda mod, args, kw: 3, with_kwargs=True)
    log.tries(lambda: m(x))
    h.remove()
    h = m.register_forward_hook(lambda mod, args, out: log.add("always", out), always_call=True)
    log.tries(lambda: m(x, scale=0))
    h.remove()
    with m.register_forward_hook(lambda mod, args, out: out * 0):
        log.add(m(x).tolist())
    log.add(m(x).tolist())
    mods = nn.modules.module
    hs = [
        mods.register_module_forward_pre_hook(lambda mod, args: log.add("gpre", type(mod).__name__)),
        mods.register_module_forward_hook(lambda mod, args, out: log.add("gpost", type(mod).__name__)),
        mods.register_module_parameter_registration_hook(lambda mod, name, p: log.add("param", name)),
        mods.register_module_buffer_registration_hook(lambda mod, name, p: log.add("buffer", name)),
        mods.register_module_module_registration_hook(lambda mod, name, p: log.add("module", name)),
    ]
    nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))(lib.ones(3, 2))
    for h in hs:
        h.remove()
    nn.Sequential(nn.Linear(2, 1))(lib.ones(3, 2))


def gradlist(grads):
    return [None if g is None else [round(v, 4) + 0.0 for v in g.flatten().tolist()] for g in grads]


@scenario
def backward_hooks(lib, nn, log):
    m = net(lib, nn)
    hs = [
        m.a.register_full_backward_hook(lambda mod, gi, go: log.add("full", type(mod).__name__, gradlist(gi), gradlist(go))),
        m.a.register_full_backward_pre_hook(lambda mod, go: log.add("pre", gradlist(go)) or (go[0] * 2,)),
        m.b[2].register_full_backward_hook(lambda mod, gi, go: (gi[0] * 3,)),
    ]
    x = lib.tensor([[1.0, 2.0], [0.5, -1.0], [3.0, 1.0]], requires_grad=True)
    (m(x) * lib.tensor([1.0, 0.3])).sum().backward()
    log.add(gradlist([x.grad, m.a.weight.grad, m.b[2].weight.grad]))
    for h in hs:
        h.remove()
    lin = nn.Linear(2, 2)
    fill(lib, lin)
    lin.register_full_backward_hook(lambda mod, gi, go: log.add("no input", gradlist(gi), gradlist(go)))
    lin(lib.ones(1, 2)).sum().backward()
    log.add(gradlist([lin.weight.grad]))
    log.tries(lambda: lin.register_backward_hook(lambda mod, gi, go: None))
    two = nn.Linear(2, 2)
    two.register_full_backward_hook(lambda mod, gi, go: (None, None))
    log.tries(lambda: two(x).sum().backward())
    h = nn.modules.module.register_module_full_backward_hook(lambda mod, gi, go: log.add("global", type(mod).__name__))
    net(lib, nn)(x).sum().backward()
    h.remove()
    act = nn.Tanh()
    act.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 0,))
    y = lib.ones(2, requires_grad=True)
    act(y).sum().backward()
    log.add(y.grad.tolist())


@scenario
def conversions(lib, nn, log):
    m = net(lib, nn)
    p = m.a.weight
    m.double()
    log.add(m.cpu().a.weight is p, m.to("cpu").a.weight is p, m.to(lib.float64).a.weight is p)
    log.add(m.a.weight is p, p.dtype, m.b[0].running_mean.dtype, m.b[0].num_batches_tracked.dtype)
    m.half()
    log.add(p.dtype)
    m.bfloat16()
    log.add(p.dtype)
    m.float()
    m.to(lib.float64)
    log.add(p.dtype)
    m.to("cpu", lib.float32)
    m.to(lib.ones(1, dtype=lib.float64))
    log.add(p.dtype, p.requires_grad, p.is_leaf)
    m.to(device="cpu", dtype=lib.float32, non_blocking=True)
    log.add(p.dtype)
    log.tries(lambda: m.to(lib.int32))
    m.type(lib.float64)
    log.add(p.dtype)
    m.float()
    m(lib.ones(3, 2)).sum().backward()
    g = p.grad
    m.double()
    log.add(p.grad is g, p.grad.dtype)
    m.zero_grad(set_to_none=False)
    log.add(float(p.grad.abs().sum()))
    m.zero_grad()
    log.add(p.grad)
    m.requires_grad_(False)
    log.add([q.requires_grad for q in m.parameters()])
    m.eval()
    log.add([x.training for x in m.modules()])
    m.b.train()
    log.add([x.training for x in m.modules()])
    log.add(m.apply(lambda mod: log.add(type(mod).__name__)) is m)
    with lib.device("meta"):
        log.add(nn.Linear(2, 3).weight.device)
    meta = nn.Linear(2, 3, device="meta")
    log.add(meta.weight.is_meta, meta.weight.shape)
    log.tries(lambda: meta.to("cpu"))
    meta.to_empty(device="cpu")
    log.add(meta.weight.is_meta, meta.weight.requires_grad, type(meta.weight).__name__)
    s = nn.utils.skip_init(nn.Linear, 2, 3)
    log.add(s.weight.shape, s.weight.is_meta)
    log.add(nn.Linear(2, 3, dtype=lib.float64).weight.dtype, m.cpu() is m)
    m.to(memory_format=lib.channels_last)


@scenario
def copies(lib, nn, log):
    m = net(lib, nn)
    m.tied = m.a
    c = copy.deepcopy(m)
    log.add(c.tied is c.a, c.a.weight is m.a.weight, shapes(c.state_dict()), c.a.weight.requires_grad)
    s = copy.copy(m)
    log.add(s.a is m.a)
    log.add(shapes(pickle.loads(pickle.dumps(nn.Linear(2, 3))).state_dict()))
    r = pickle.loads(pickle.dumps(nn.LSTM(2, 3)))
    log.add(len(r._flat_weights), r._flat_weights[0] is r.weight_ih_l0, r)
    d = copy.deepcopy(nn.GRU(2, 3))
    log.add(d._flat_weights[1] is d.weight_hh_l0)
    for cls in (nn.MaxPool2d(2), nn.ZeroPad2d(1), nn.ELU(), nn.LazyLinear(3), nn.CrossEntropyLoss()):
        log.add(pickle.loads(pickle.dumps(cls)))
    p = pickle.loads(pickle.dumps(nn.Parameter(lib.ones(2))))
    log.add(type(p).__name__, p.requires_grad, p.tolist())


@scenario
def containers(lib, nn, log):
    s = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    log.add(s[0], s[-1], s[:2], len(s), [type(x).__name__ for x in s])
    s[1] = nn.Tanh()
    s.append(nn.ReLU())
    s.insert(1, nn.Sigmoid())
    s.extend([nn.Identity()])
    log.add(s)
    del s[0]
    log.add(s, s.pop(-1), len(s))
    del s[0:2]
    log.add(s, s + nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU()) * 2)
    s += nn.Sequential(nn.Tanh())
    s *= 2
    log.add(s)
    for bad in (lambda: s[99], lambda: s + 1, lambda: s * 1.5, lambda: s * 0, lambda: s.insert(0, 1), lambda: s.insert(99, nn.ReLU())):
        log.tries(bad)
    from collections import OrderedDict

    log.add(nn.Sequential(OrderedDict([("x", nn.ReLU()), ("y", nn.Tanh())]))[0:1])
    m = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)])
    log.add(m, m[1:3], m[-1], len(m))
    m.insert(1, nn.Tanh())
    m += [nn.Tanh()]
    m[0] = nn.ReLU()
    log.add(m, m + nn.ModuleList([nn.ReLU()]), m.pop(0), len(m))
    del m[0], m[1:3]
    log.add(m)
    for bad in (lambda: m[9], lambda: m.extend(3), lambda: m.append(3), lambda: m(1)):
        log.tries(bad)
    d = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    d.update([("c", nn.Linear(1, 1))])
    d["d"] = nn.Identity()
    log.add(d, list(d), list(d.keys()), len(d), "a" in d, d.pop("a"), list(d.items())[0][0], list(d.values())[0])
    del d["b"]
    d.clear()
    log.add(d, len(d))
    for bad in (lambda: d.update(3), lambda: d.update([3]), lambda: d.update([(1, 2, 3)]), lambda: d["q"], lambda: nn.ModuleDict([("x", 3)])):
        log.tries(bad)
    p = nn.ParameterList([nn.Parameter(lib.ones(2)), lib.zeros(3)])
    p.append(nn.Parameter(lib.ones(1)))
    p.extend([lib.ones(4)])
    p[0] = lib.zeros(5)
    log.add(p, len(p), [type(x).__name__ for x in p], p[1:3], shapes(p.state_dict()), p[-1].shape)
    for bad in (lambda: p[9], lambda: p.extend(3), lambda: p.extend(lib.ones(2)), lambda: p(1)):
        log.tries(bad)
    q = nn.ParameterDict({"b": lib.ones(2), "a": nn.Parameter(lib.zeros(3))})
    q["c"] = 3
    log.add(q, list(q), len(q), "a" in q, shapes(q.state_dict()), q.get("zz", 7), q.setdefault("e", lib.ones(1)).shape)
    log.add(list(reversed(q)), q.pop("c"), q.popitem()[0], list(q.copy().keys()), list((q | {"n": lib.ones(1)}).keys()))
    q |= {"z": lib.ones(2)}
    del q["a"]
    log.add(q, [k for k, _ in q.items()], q.fromkeys(["u"], 1)["u"])
    for bad in (lambda: q["zz"], lambda: q.update(3), lambda: q.__setitem__(3, 4), lambda: q(1)):
        log.tries(bad)


@scenario
def lazy(lib, nn, log):
    m = nn.LazyLinear(4)
    log.add(m, m.weight, type(m).__name__, list(m.state_dict()))
    log.tries(lambda: m.weight.shape)
    m(lib.ones(2, 3))
    log.add(m, m.weight.shape, type(m).__name__, type(m.weight).__name__, len(m._forward_pre_hooks))
    n = nn.LazyConv2d(4, 3)
    n.load_state_dict(nn.Conv2d(2, 4, 3).state_dict())
    log.add(n.weight.shape)
    log.tries(lambda: n(lib.ones(3)))
    b = nn.LazyBatchNorm1d()
    b(lib.ones(2, 3))
    log.add(b, b.running_mean.shape, type(b.running_mean).__name__)
    log.add(nn.parameter.is_lazy(nn.LazyLinear(3).weight), nn.parameter.is_lazy(m.weight))
    seq = nn.Sequential(nn.LazyLinear(3), nn.LazyLinear(2))
    log.add(seq(lib.ones(1, 5)).shape, seq)


@scenario
def clipping(lib, nn, log):
    m = net(lib, nn)
    (m(lib.tensor([[1.0, 2.0], [0.5, -1.0], [3.0, 1.0]])) * lib.tensor([1.0, 0.3])).sum().backward()
    grads = [p.grad.clone() for p in m.parameters()]

    def restore():
        for p, g in zip(m.parameters(), grads):
            p.grad = g.clone()

    for kind in (2.0, 1.0, float("inf"), 3.0):
        restore()
        log.add(kind, round(float(nn.utils.clip_grad_norm_(m.parameters(), 0.5, norm_type=kind)), 4))
        log.add(gradlist(p.grad for p in m.parameters()))
    restore()
    log.add(round(float(nn.utils.get_total_norm(grads)), 4), round(float(nn.utils.get_total_norm(grads, foreach=False)), 4))
    nn.utils.clip_grad_value_(m.parameters(), 0.1)
    log.add(gradlist(p.grad for p in m.parameters()))
    log.add(float(nn.utils.clip_grad_norm_([], 1.0)), float(nn.utils.clip_grad_norm_(m.a.weight, 100.0)) > 0)
    nn.utils.clip_grad_norm_((p for p in []), 1.0)
    m.a.weight.grad.fill_(float("nan"))
    log.tries(lambda: nn.utils.clip_grad_norm_(m.parameters(), 1.0, error_if_nonfinite=True))
    v = nn.utils.parameters_to_vector(m.parameters())
    log.add(v.shape, v.requires_grad)
    nn.utils.vector_to_parameters(v.detach() * 0 + 2, m.parameters())
    log.add(m.a.weight.tolist(), type(m.a.weight).__name__)
    log.tries(lambda: nn.utils.vector_to_parameters(3, m.parameters()))


@scenario
def parametrized(lib, nn, log):
    P = nn.utils.parametrize

    class Double(nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    m = nn.Linear(2, 2)
    fill(lib, m)
    before = m.weight.tolist()
    P.register_parametrization(m, "weight", Double())
    log.add(m, type(m).__name__, m.weight.tolist() == before, shapes(m.state_dict()), P.is_parametrized(m, "weight"))
    m.weight = lib.ones(2, 2)
    log.add(m.parametrizations.weight.original.tolist(), P.type_before_parametrizations(m).__name__)
    with P.cached():
        log.add(m.weight is m.weight)
    log.add(m.weight is m.weight)
    m(lib.ones(1, 2)).sum().backward()
    log.add(m.parametrizations.weight.original.grad.tolist())
    log.add(shapes(copy.deepcopy(m).state_dict()))
    P.remove_parametrizations(m, "weight")
    log.add(m, type(m).__name__, m.weight.tolist(), type(m.weight).__name__, shapes(m.state_dict()))
    log.tries(lambda: P.register_parametrization(m, "zz", Double()))
    log.tries(lambda: P.remove_parametrizations(m, "weight"))
    w = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
    fill(lib, w)
    log.add(w, shapes(w.state_dict()), [[round(v, 4) for v in r] for r in w.weight.tolist()])
    o = nn.utils.weight_norm(nn.Linear(2, 3))
    fill(lib, o)
    o(lib.ones(1, 2))
    log.add(o, shapes(o.state_dict()), [[round(v, 4) for v in r] for r in o.weight.tolist()])
    nn.utils.remove_weight_norm(o)
    log.add(shapes(o.state_dict()))
    log.tries(lambda: nn.utils.remove_weight_norm(o))
    for make in (nn.utils.parametrizations.spectral_norm, nn.utils.spectral_norm):
        s = nn.Linear(3, 2)
        fill(lib, s)
        s = make(s, n_power_iterations=60)
        y = s(lib.tensor([[1.0, 2.0, 3.0]]))
        log.add([[round(v, 3) for v in r] for r in y.tolist()], shapes(s.state_dict()))
    nn.utils.remove_spectral_norm(s)
    log.add(shapes(s.state_dict()))


@scenario
def pruning(lib, nn, log):
    prune = nn.utils.prune
    m = nn.Linear(4, 3)
    fill(lib, m)
    prune.l1_unstructured(m, "weight", amount=0.3)
    log.add(shapes(m.state_dict()), m.weight_mask.tolist(), prune.is_pruned(m))
    prune.ln_structured(m, "weight", amount=1, n=2, dim=0)
    log.add(m.weight_mask.tolist())
    m(lib.ones(1, 4)).sum().backward()
    log.add(m.weight_orig.grad.tolist())
    prune.remove(m, "weight")
    log.add(shapes(m.state_dict()), (m.weight == 0).tolist(), prune.is_pruned(m))
    n = net(lib, nn)
    prune.global_unstructured([(n.a, "weight"), (n.b[2], "weight")], pruning_method=prune.L1Unstructured, amount=0.5)
    log.add(n.a.weight_mask.tolist(), n.b[2].weight_mask.tolist())
    log.tries(lambda: prune.l1_unstructured(m, "weight", amount=2.5))
    log.tries(lambda: prune.remove(m, "weight"))


@scenario
def fused(lib, nn, log):
    conv, bn = nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)
    fill(lib, conv)
    fill(lib, bn)
    x = lib.ones(1, 2, 3, 3) * 0.5
    bn.running_mean.fill_(0.3)
    log.tries(lambda: nn.utils.fuse_conv_bn_eval(conv, bn))
    conv.eval(), bn.eval()
    f = nn.utils.fuse_conv_bn_eval(conv, bn)
    log.add(bool((f(x) - bn(conv(x))).abs().max() < 1e-5), f)
    lin, b1 = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval()
    f = nn.utils.fuse_linear_bn_eval(lin, b1)
    log.add(bool((f(lib.ones(1, 2)) - b1(lin(lib.ones(1, 2)))).abs().max() < 1e-5))


@scenario
def stateless(lib, nn, log):
    call = nn.utils.stateless._functional_call
    m = net(lib, nn).eval()
    x = lib.ones(1, 2)
    zeros = {k: lib.zeros_like(v) for k, v in m.named_parameters()}
    log.add(call(m, zeros, x).tolist(), float(m.a.weight.abs().sum()) > 0)
    w = lib.ones(3, 2, requires_grad=True)
    call(m, {"a.weight": w}, (x,)).sum().backward()
    log.add(w.grad is not None, m.a.weight.grad)
    m.tied = m.a
    log.tries(lambda: call(m, {"a.weight": w, "tied.weight": w * 2}, (x,)))
    log.tries(lambda: call(m, {"zz": w}, (x,)))
    log.tries(lambda: call(m, {"a.weight": w}, (x,), strict=True))


@scenario
def initial_values(lib, nn, log):
    init = nn.init
    for f in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        log.add(f, round(init.calculate_gain(f), 6))
    log.add(round(init.calculate_gain("leaky_relu", 0.2), 6))
    log.tries(lambda: init.calculate_gain("x"))
    log.tries(lambda: init.calculate_gain("leaky_relu", True))
    t = lib.empty(3, 4)
    log.add(init.constant_(t, 2.0) is t, t.tolist(), init.ones_(t).sum().item(), init.zeros_(t).sum().item(), init.eye_(t).tolist())
    log.add(init.dirac_(lib.empty(4, 2, 3)).tolist(), init.dirac_(lib.empty(4, 2, 3, 3), 2).sum().item())
    log.add(init._calculate_fan_in_and_fan_out(lib.empty(3, 4, 2, 2)))
    big = lib.empty(60, 50)
    for f, low, high in (
        (lambda: init.uniform_(big, 1, 2), 1, 2),
        (lambda: init.xavier_uniform_(big), -((6 / 110) ** 0.5), (6 / 110) ** 0.5),
        (lambda: init.kaiming_uniform_(big), -((6 / 50) ** 0.5), (6 / 50) ** 0.5),
        (lambda: init.kaiming_uniform_(big, mode="fan_out", nonlinearity="relu"), -((6 / 60) ** 0.5), (6 / 60) ** 0.5),
        (lambda: init.trunc_normal_(big, std=2.0, a=-1.0, b=1.5), -1.0, 1.5),
    ):
        f()
        width = high - low
        log.add(bool(big.min() >= low), bool(big.max() <= high), bool(big.min() < low + width / 20), bool(big.max() > high - width / 20))
    for f, std in (
        (lambda: init.normal_(big, 0, 3.0), 3.0),
        (lambda: init.xavier_normal_(big, 2.0), 2 * (2 / 110) ** 0.5),
        (lambda: init.kaiming_normal_(big, a=0.5), (2 / 1.25) ** 0.5 / 50**0.5),
    ):
        f()
        log.add(abs(float(big.std()) / std - 1) < 0.05, abs(float(big.mean())) < std / 10)
    init.sparse_(big, 0.25)
    log.add([int(v) for v in (big == 0).sum(0).unique()] if hasattr(lib, "unique") else [15])
    log.tries(lambda: init.xavier_uniform_(lib.empty(3)))
    log.tries(lambda: init.eye_(lib.empty(3)))
    log.tries(lambda: init.dirac_(lib.empty(3, 3)))
    log.tries(lambda: init.orthogonal_(lib.empty(3)))
    log.tries(lambda: init.sparse_(lib.empty(3), 0.5))
    log.tries(lambda: init.kaiming_uniform_(lib.empty(3, 3), mode="x"))
    log.add(init.uniform(lib.empty(2)).shape)
    p = nn.Parameter(lib.empty(3, 3))
    init.normal_(p)
    log.add(p.requires_grad, p.is_leaf)
    m = nn.Linear(50, 60)
    log.add(bool(m.weight.abs().max() <= 50**-0.5), bool(m.bias.abs().max() <= 50**-0.5))
    e = nn.Embedding(50, 60, padding_idx=3)
    log.add(e.weight[3].tolist() == [0.0] * 60, abs(e.weight.std().item() - 1) < 0.05)


@scenario
def orthogonal(lib, nn, log):
    for shape in ((4, 6), (6, 4), (5, 5), (4, 2, 3)):
        w = nn.init.orthogonal_(lib.empty(*shape), gain=2.0).flatten(1)
        small = w @ w.t() if w.size(0) <= w.size(1) else w.t() @ w
        log.add(bool((small - 4 * lib.eye(small.size(0))).abs().max() < 1e-5))
    for shape, kind in (((4, 4), None), ((3, 5), None), ((5, 3), "householder"), ((4, 4), "matrix_exp"), ((4, 4), "cayley"), ((5, 3), "cayley")):
        m = nn.utils.parametrizations.orthogonal(nn.Linear(*shape), orthogonal_map=kind)
        w = m.weight
        small = w @ w.t() if w.size(0) <= w.size(1) else w.t() @ w
        log.add(bool((small - lib.eye(small.size(0))).abs().max() < 1e-5), shapes(m.state_dict()))
        with lib.no_grad():
            m.parametrizations.weight.original.add_(0.1)
        w = m.weight
        small = w @ w.t() if w.size(0) <= w.size(1) else w.t() @ w
        if kind in ("cayley", "matrix_exp"):
            log.add(bool((small - lib.eye(small.size(0))).abs().max() < 1e-5))
        m(lib.ones(1, shape[0])).sum().backward()
        log.add(m.parametrizations.weight.original.grad is not None)
    log.tries(lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="x"))
    log.tries(lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), "bias"))


@scenario
def pretrained(lib, nn, log):
    w = lib.ones(4, 2)
    e = nn.Embedding.from_pretrained(w)
    log.add(e, e.weight.requires_grad, e.weight.data_ptr() == w.data_ptr())
    e = nn.Embedding.from_pretrained(w, freeze=False, padding_idx=1)
    log.add(e, e.weight.requires_grad, e.weight.tolist())
    log.add(nn.EmbeddingBag.from_pretrained(w, mode="sum"))
    log.tries(lambda: nn.Embedding.from_pretrained(lib.ones(2)))
    log.tries(lambda: nn.Embedding(3, 2, _weight=w))
    log.add(nn.Embedding(3, 2, 1, 2.0, 3.0, True, True), nn.EmbeddingBag(3, 2, 1.0, 1.0, True))


@scenario
def wrappers(lib, nn, log):
    m = nn.DataParallel(nn.Linear(2, 3))
    fill(lib, m)
    log.add(m, shapes(m.state_dict()), m(lib.ones(1, 2)).shape)
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        log.add(nn.functional.scaled_dot_product_attention(*[lib.ones(1, 2, 3, 4)] * 3).shape)
    with nn.attention.sdpa_kernel([nn.attention.SDPBackend.FLASH_ATTENTION, nn.attention.SDPBackend.MATH]):
        log.add(len(nn.attention._cur_sdpa_kernel_backends()))
    log.add(nn.modules.utils._pair(3), nn.modules.utils._triple([1, 2, 3]), nn.modules.utils._reverse_repeat_tuple((1, 2), 2))
    d = {"module.a": 1, "b": 2}
    nn.modules.utils.consume_prefix_in_state_dict_if_present(d, "module.")
    log.add(d)
    log.add(nn.factory_kwargs({"device": "cpu"}))
    log.tries(lambda: nn.factory_kwargs({"x": 1}))
    s = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3), nn.ReLU()))
    log.add(s)
    m = nn.Linear(2, 2)
    m.compile(backend="eager")
    log.add(m(lib.ones(1, 2)).shape)


for fn in nn_call_scenarios.SCENARIOS:
    scenario(fn)
NAMES = sorted(SCENARIOS)
