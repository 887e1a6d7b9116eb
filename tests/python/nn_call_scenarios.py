# SPDX-License-Identifier: MIT
"""How a module is called and how names are looked up on it, where classes and libraries change that. Part of nn_scenarios.py."""

import abc
import copy
import inspect
import pickle
import typing
import weakref

T = typing.TypeVar("T")


def calls(lib, nn, log):
    class Plain(nn.Module):
        def forward(self, x, more=0, *rest, **named):
            return x + more + sum(rest) + sum(named.values())

    m = Plain()
    log.add(m(1), m(1, 2), m(1, more=3), m(1, 2, 3, 4), m(1, b=5), m(x=6), m(*(1, 2), **{"c": 1}))
    log.tries(lambda: m())
    log.tries(lambda: nn.Module()(1))
    log.add(callable(m), inspect.signature(m), inspect.signature(m.__call__), hasattr(nn.Module, "_wrapped_call_impl"))
    log.add(list(inspect.signature(nn.Identity).parameters), inspect.signature(m.forward))
    log.add(m.__call__(1), nn.Module.__call__(m, 2), m._call_impl(3), m._wrapped_call_impl(4))

    m.forward = lambda x: ("own", x)
    log.add(m(1))
    del m.forward
    log.add(m(1))
    m._compiled_call_impl = lambda *args: ("compiled", args)
    log.add(m(1, 2))
    m._compiled_call_impl = None
    m._call_impl = lambda *args: ("patched", args)
    log.add(m(1, 2))
    del m._call_impl
    log.add(m(1, 2))

    class Impl(Plain):
        def _call_impl(self, *args, **kwargs):
            return "impl", super()._call_impl(*args, **kwargs)

    class Call(Plain):
        def __call__(self, *args, **kwargs):
            return "call", super().__call__(*args, **kwargs)

    class Narrow(Plain):
        def __call__(self, x):
            return super().__call__(x)

    log.add(inspect.signature(Narrow()), list(inspect.signature(Narrow).parameters))
    log.add(Impl()(1), Call()(1), nn.Sequential(Impl(), nn.Identity())(1))
    log.tries(lambda: Call()())

    before = nn.Module.__call__
    nn.Module.__call__ = lambda self, *args: ("all", before(self, *args))
    try:
        log.add(m(1), Call()(1), nn.Identity()(2))
    finally:
        nn.Module.__call__ = before
    log.add(m(1), nn.Identity()(2), nn.Module.__call__ is before)
    kept = Plain.forward
    Plain.forward = lambda self, x: ("new", x)
    log.add(m(1))
    Plain.forward = kept
    log.add(m(1))

    class Late(nn.Module):
        def __init__(self):
            pass

        def forward(self, x):
            return x

    log.tries(lambda: Late()(1))
    log.tries(lambda: Late().weight)

    class Raises(nn.Module):
        def forward(self, x):
            raise KeyError(x)

    class Again(nn.Module):
        def forward(self, x):
            return self(x)

    log.tries(lambda: Raises()("lost"))
    try:
        Again()(1)
    except RecursionError:
        log.add("RecursionError")


def calls_with_hooks(lib, nn, log):
    from importlib import import_module

    module = import_module(nn.Module.__module__)

    class Plain(nn.Module):
        def forward(self, x):
            return x + 1

    m = Plain()
    seen = []
    for table, hook in (
        ("_global_forward_hooks", lambda mod, args, out: seen.append(("after", args, out))),
        ("_global_forward_pre_hooks", lambda mod, args: seen.append(("before", args))),
    ):
        getattr(module, table)["mine"] = hook
        m(1)
        del getattr(module, table)["mine"]
        m(2)
    log.add(seen)
    handle = module.register_module_forward_hook(lambda mod, args, out: out * 10)
    log.add(m(1))
    handle.remove()
    log.add(m(1))

    class Hooks(nn.Module):
        def forward(self, x):
            self.handle = self.register_forward_hook(lambda mod, args, out: (mod.handle.remove(), out * 10)[1])
            return x + 1

    h = Hooks()
    log.add(h(1), len(h._forward_hooks), h(1), len(h._forward_hooks))
    m._forward_hooks["mine"] = lambda mod, args, out: out * 100
    log.add(m(1), m._call_impl(1))
    m._forward_hooks = {}
    log.add(m(1))
    m._forward_pre_hooks = {7: lambda mod, args: (args[0] + 1,)}
    log.add(m(1))
    m._forward_pre_hooks.clear()

    class Counted(dict):
        asked = 0

        def __bool__(self):
            Counted.asked += 1
            return False

    m._backward_hooks = Counted()
    log.add(m(1))


def lookups(lib, nn, log):
    p, b = nn.Parameter(lib.zeros(1)), lib.ones(2)

    class Names(nn.Module):
        fixed = "class"

        def __init__(self):
            super().__init__()
            self.p = p
            self.register_parameter("none", None)
            self.register_buffer("b", b)
            self.inner = nn.Identity()

        @property
        def broken(self):
            return self.nothing

    m = Names()
    log.add(m.p is p, m.none, m.b is b, m.inner, m.fixed)
    for name in ("lost", "broken", "__lost__", "P"):
        log.tries(lambda: getattr(m, name))
    log.add(hasattr(m, "p"), hasattr(m, "q"), getattr(m, "q", 4))
    m._parameters["fixed"] = p
    log.add(m.fixed)
    m._parameters["both"] = p
    m._buffers["both"] = b
    m._modules["both"] = m.inner
    log.add(m.both is p)
    del m._parameters["both"]
    log.add(m.both is b)
    del m._buffers["both"]
    log.add(m.both)
    m.__dict__["p"] = "instance"
    log.add(m.p)
    del m.__dict__["p"]
    log.add(m.p is p)
    log.tries(lambda: m.__getattr__("lost"))
    log.tries(lambda: nn.Module.__getattr__(m, "fixed") is p)
    log.tries(lambda: nn.Module.__getattr__(m, "training"))

    class Falls(Names):
        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("inner"), name[1:])

    log.add(Falls().p is p, Falls().xtraining)
    log.tries(lambda: Falls().xlost)

    class All(Names):
        def __getattribute__(self, name):
            if name == "forward":
                return lambda x: ("found", x)
            return super().__getattribute__(name)

    log.add(All()(1), All().p is p)

    class Doubles(dict):
        def __getitem__(self, key):
            return "item", super().__getitem__(key) is p

    m._parameters = Doubles(m._parameters)
    log.add(m.p)
    m._parameters = {"p": p}

    kept = nn.Module.__getattr__
    nn.Module.__getattr__ = lambda self, name: ("patched", name)
    try:
        log.add(nn.Identity().weight)
    finally:
        nn.Module.__getattr__ = kept
    log.tries(lambda: nn.Identity().weight)
    object.__setattr__(m, "around", nn.Identity())
    log.add("around" in m._modules, m.around)


def kinds(lib, nn, log):
    class Abstract(nn.Module, abc.ABC):
        @abc.abstractmethod
        def forward(self, x): ...

    class Concrete(Abstract):
        def forward(self, x):
            return x

    class Typed(nn.Module, typing.Generic[T]):
        def forward(self, x):
            return x

    class Text(nn.Module, str):
        def forward(self, x):
            return self.upper(), x

    class Table(dict, nn.Module):
        def __init__(self):
            nn.Module.__init__(self)

        def forward(self, x):
            return self.get(x), x

    class Slots(nn.Module):
        __slots__ = ("held",)

        def forward(self, x):
            return self.held, x

    class Mixin:
        def __call__(self, *args):
            return "mixin", super().__call__(*args)

    class Mixed(Mixin, Typed):
        pass

    try:
        Abstract()
    except TypeError:
        log.add("abstract")
    log.add(Concrete()(1), Typed[int]()(2), Mixed()(3))
    text, table, slots = Text.__new__(Text, "abc"), Table(), Slots()
    nn.Module.__init__(text)
    table[1] = 2
    slots.held = 5
    log.add(text(1), table(1), slots(1), len(table))
    lin = nn.Linear(2, 2)
    alive = weakref.ref(lin)
    log.add(alive() is lin, nn.Linear.__mro__[1].__name__, type(nn.Module).__name__)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(lin, protocol))
        log.add(protocol, back, lib.equal(back.weight, lin.weight), back(lib.zeros(1, 2)).shape)
    for make in (copy.copy, copy.deepcopy):
        back = make(lin)
        log.add(back, back.weight is lin.weight, back._parameters is lin._parameters, back(lib.zeros(1, 2)).shape)
    lin.__class__ = nn.Identity
    log.add(lin(3), lin.weight.shape)
    del lin, back
    log.add(alive() is None)


def plain_layers(lib, nn, log):
    functional = nn.functional
    lin, act, x = nn.Linear(2, 2), nn.ReLU(), lib.tensor([[-1.0, 2.0]])
    with lib.no_grad():
        lin.weight.copy_(lib.tensor([[1.0, 2.0], [3.0, -4.0]]))
        lin.bias.copy_(lib.tensor([0.5, -0.5]))
    seq = nn.Sequential(lin, act, nn.Sequential(nn.Sequential()))
    log.add(lin(x).tolist(), act(x).tolist(), seq(x).tolist(), seq(input=x).tolist(), lin(x).requires_grad)
    y = x.clone()
    log.add(nn.ReLU(inplace=True)(y) is y, y.tolist())
    for call in (seq, lin, act, lambda: seq(x, x), lambda: lin(None), lambda: act(3), lambda: lin(lib.zeros(3, 3))):
        log.tries(call)

    for name, module in (("linear", lin), ("relu", act)):
        kept = getattr(functional, name)
        setattr(functional, name, lambda *args, **kwargs: ("patched", len(args)))
        log.add(module(x)[0])
        setattr(functional, name, kept)
        log.add(module(x).tolist())
    for module in (lin, act, seq):
        kept = type(module).forward
        type(module).forward = lambda self, input: ("class", type(self).__name__)
        log.add(module(x))
        type(module).forward = kept
        module.forward = lambda input: "instance"
        log.add(module(x))
        del module.forward
        handle = module.register_forward_hook(lambda mod, args, out: "hook")
        log.add(module(x))
        handle.remove()
        log.add(module(x).tolist())

    before, called = nn.Module.__call__, []
    nn.Module.__call__ = lambda self, *args: (called.append(type(self).__name__), before(self, *args))[1]
    try:
        seq(x)
    finally:
        nn.Module.__call__ = before
    seq(x)
    log.add(called)

    class Seen(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.add("saw", func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    log.add(type(lin(x.as_subclass(Seen))).__name__, type(act(x.as_subclass(Seen))).__name__)

    class Changes(nn.Module):
        def forward(self, x):
            seq.add_module(str(len(seq)), nn.Identity())
            return x

    seq.append(Changes())
    seq.append(nn.Identity())
    log.tries(lambda: seq(x))
    seq._modules = {"only": None}
    log.tries(lambda: seq(x))
    del lin.weight
    log.tries(lambda: lin(x))
    lin.weight = lib.ones(2, 2)
    log.add(lin(x).tolist())
    loop = nn.Sequential()
    loop.__dict__["_modules"]["self"] = loop
    try:
        loop(x)
    except RecursionError:
        log.add("RecursionError")


SCENARIOS = [plain_layers, calls, calls_with_hooks, lookups, kinds]
