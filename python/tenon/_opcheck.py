# SPDX-License-Identifier: MIT
"""library.opcheck: whether an operator does what its schema, its gradient and its fake kernel say."""
import tenon
from tenon import _C
from tenon.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = ["OpCheckError", "opcheck"]

_ALL = ("test_schema", "test_autograd_registration", "test_faketensor")
_WHEN_ASKED = ("test_aot_dispatch_static", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """A check failed."""


def _tensors(tree):
    return [t for t in tree_leaves(tree) if isinstance(t, tenon.Tensor)]


def _copies(tree):
    """Inputs of one run's own, with the same strides and wish for gradients."""
    def copy(x):
        if not isinstance(x, tenon.Tensor):
            return x
        made = x.detach().clone()
        return made.requires_grad_() if x.requires_grad else made
    return tree_map(copy, tree)


def _check_schema(op, args, kwargs):
    """What is not written stays as it is, and results are no other names of inputs unless the schema says so."""
    args, kwargs = _copies((args, kwargs))
    schema = op._schema
    given = dict(zip([a.name for a in schema.arguments], args), **kwargs)
    before = {name: [(t, t._version, t.detach().clone()) for t in _tensors(value)] for name, value in given.items()}
    with tenon.no_grad():
        out = op(*args, **kwargs)
    for argument in schema.arguments:
        for t, version, old in before.get(argument.name, ()):
            if not argument.is_write and (t._version != version or not tenon.equal(t.detach().nan_to_num(), old.nan_to_num())):
                raise RuntimeError("Argument %s is not defined as mutable but was mutated" % argument.name)
    if any(r.alias_info is not None for r in schema.returns):
        return
    memory = {t.untyped_storage().data_ptr(): name for name, value in given.items() for t in _tensors(value) if t.numel()}
    for i, t in enumerate(_tensors(out)):
        if t.numel() and t.untyped_storage().data_ptr() in memory:
            raise RuntimeError("Argument %s is not defined to alias output but was aliasing: result %d of %s is in its memory"
                               % (memory[t.untyped_storage().data_ptr()], i, op))


def _check_autograd(op, args, kwargs):
    """A result that requires grad without an autograd kernel: its gradient is that of the kernel's inside, by luck."""
    args, kwargs = _copies((args, kwargs))
    if not any(t.requires_grad for t in _tensors((args, kwargs))):
        return
    if any(_C._dispatch_has_kernel_for_dispatch_key(op.name(), key)
           for key in ("Autograd", "AutogradCPU", "AutogradCUDA", "CompositeImplicitAutograd")):
        return
    if any(t.requires_grad for t in _tensors(op(*args, **kwargs))):
        raise RuntimeError(
            "%s: at least one output of this operator has requires_grad=True but the operator does not have an autograd "
            "kernel defined at an autograd key (e.g. DispatchKey::Autograd). This could mean that you have incorrectly "
            "registered an autograd kernel to a non-Autograd DispatchKey, which may lead to silently incorrect results."
            % op.name())


def _check_fake(op, args, kwargs):
    """The fake kernel gives what the real one does, elements apart."""
    from tenon._subclasses.fake_tensor import FakeTensorMode
    args, kwargs = _copies((args, kwargs))
    mode = FakeTensorMode()
    fake_args, fake_kwargs = tree_map(lambda x: mode.from_tensor(x) if isinstance(x, tenon.Tensor) else x, (args, kwargs))
    with mode:
        fake = op(*fake_args, **fake_kwargs)
    real = op(*args, **kwargs)
    head = "When comparing the output of %s on FakeTensor and concrete Tensors, found mismatched tensor metadata: " % op
    ours, theirs = _tensors(real), _tensors(fake)
    if len(ours) != len(theirs):
        raise RuntimeError(head + "%d tensors and %d" % (len(ours), len(theirs)))
    for a, b in zip(ours, theirs):
        for what, x, y in (("Shapes", a.shape, b.shape), ("Dtypes", a.dtype, b.dtype), ("Devices", a.device, b.device),
                           ("Strides", a.stride(), b.stride())):
            if x != y:
                raise RuntimeError(head + "%s %s and %s are not equal!" % (what, x, y))


def _call_with_gradients(op, leaves, spec, places):
    """A function of the tensors of one call alone: its results, their gradients, and the tensors as the call left them."""
    def call(*tensors):
        given = list(leaves)
        for place, t in zip(places, tensors):
            given[place] = t
        args, kwargs = tree_unflatten(given, spec)
        results = _tensors(op(*args, **kwargs))
        outs, wanted = [t for t in results if t.requires_grad], [t for t in tensors if t.requires_grad]
        grads = []
        if outs and wanted:
            grads = tenon.autograd.grad(outs, wanted, [tenon.ones_like(t) for t in outs], allow_unused=True)
        return results, list(grads), list(tensors)
    return call


def _check_traced(op, args, kwargs, atol, rtol):
    """What is traced from fake tensors, the call and its gradients, gives on real ones what the call gives. The sizes are
    those of the call, also for the dynamic check: a graph for other sizes is traced again."""
    from tenon._subclasses.fake_tensor import FakeTensorMode
    from tenon.fx.experimental.proxy_tensor import make_fx
    leaves, spec = tree_flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, tenon.Tensor)]
    call = _call_with_gradients(op, leaves, spec, places)

    def fresh():
        return _copies([leaves[i] for i in places])

    mode = FakeTensorMode()
    fakes = [mode.from_tensor(t) for t in fresh()]
    with mode:
        graph = make_fx(call)(*fakes)
    state = tenon.get_rng_state()
    expected = call(*fresh())
    tenon.set_rng_state(state)
    found = graph(*fresh())
    for what, ours, theirs in zip(("Outputs", "Gradients", "Inputs after the call"), expected, found):
        def head(text, what=what):
            return "%s of the traced operator are not those of the operator: %s" % (what, text)
        if [t is None for t in ours] != [t is None for t in theirs]:
            raise RuntimeError(head("%d and %d tensors" % (len(theirs), len(ours))))
        for a, b in zip(ours, theirs):
            if a is not None:
                tenon.testing.assert_close(b.detach(), a.detach(), atol=atol, rtol=rtol, equal_nan=True, msg=head)


_CHECKS = {"test_schema": _check_schema, "test_autograd_registration": _check_autograd, "test_faketensor": _check_fake}


def opcheck(op, args, kwargs=None, *, test_utils=_ALL, raise_exception=True, atol=None, rtol=None):
    """Run the checks on one call; gives {check: "SUCCESS" or what was raised}."""
    if isinstance(op, tenon.library.CustomOpDef):
        op = op._opoverload
    if not isinstance(op, tenon._ops.OpOverload):
        raise ValueError("opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, "
                         "got %s" % type(op))
    chosen = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(chosen) <= set(_ALL + _WHEN_ASKED):
        raise ValueError("opcheck(op, ..., test_utils=%s), expected test_utils to be subset of %s but it was not"
                         % (chosen, _ALL + _WHEN_ASKED))
    results = {}
    for name in chosen:
        try:
            if name in _WHEN_ASKED:
                _check_traced(op, args, kwargs or {}, atol, rtol)
            else:
                _CHECKS[name](op, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError("opcheck(op, ...): %s failed with %s (scroll up for stack trace)"
                                   % (name, error)) from error
            results[name] = error
    return results
