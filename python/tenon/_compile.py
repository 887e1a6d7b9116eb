# SPDX-License-Identifier: MIT
"""tenon.compile: the function runs as it is written, or as a backend that is a function says.

The arguments are checked as PyTorch checks them. A module is wrapped as PyTorch wraps it, so that the names in its
state_dict begin with `_orig_mod.` and checkpoints can be exchanged.
"""

import functools

import tenon

_BACKENDS = ("aot_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner", "aot_ts", "cudagraphs", "eager",
             "eager_debug", "eager_noexcept", "inductor", "invoke_subgraph", "openxla", "openxla_eval", "pre_dispatch_eager", "ts",
             "tvm")
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


class OptimizedModule(tenon.nn.Module):
    """A module that calls another one, and has its attributes."""

    _own = ("_orig_mod", "forward", "training", "_torchdynamo_orig_callable")

    def __init__(self, module, run=None):
        super().__init__()
        self._modules["_orig_mod"] = module
        self.__dict__["_run"] = run

    def forward(self, *args, **kwargs):
        return (self.__dict__["_run"] or self._modules["_orig_mod"])(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if name in self._own or name.startswith("_") or "_modules" not in self.__dict__ \
                or "_orig_mod" not in self.__dict__["_modules"]:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    @property
    def training(self):
        return self._orig_mod.training if "_orig_mod" in self.__dict__.get("_modules", ()) else True

    @training.setter
    def training(self, value):
        if "_orig_mod" in self.__dict__.get("_modules", ()):
            self._orig_mod.training = value

    def __len__(self):
        return len(self._orig_mod)

    def __getitem__(self, index):
        return self._orig_mod[index]

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(dir(self._orig_mod)))


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):
    """The function, or a module that calls the given one; without a model, a decorator."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError("Unrecognized mode=%s, should be one of: %s" % (mode, ", ".join(_MODES)))
    if model is None:
        return lambda given: compile(given, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
                                     options=options, disable=disable)
    if not callable(model):
        raise AssertionError("A callable function is expected, but %s is provided." % type(model))
    if disable:
        return model
    if isinstance(backend, str) and backend not in _BACKENDS:
        raise tenon._dynamo.exc.InvalidBackend("Invalid backend: %r, see `torch._dynamo.list_backends()` for available backends."
                                               % backend)
    if isinstance(model, OptimizedModule):
        return model
    if isinstance(model, type):
        return model
    called = model
    if callable(backend):
        from tenon._dynamo.capture import Captured
        told = {} if mode in (None, "default") else {"mode": mode}
        called = Captured(model, backend, told if not options else {**told, "options": options})
    if isinstance(model, tenon.nn.Module):
        return OptimizedModule(model, called if called is not model else None)

    @functools.wraps(model)
    def run(*args, **kwargs):
        return called(*args, **kwargs)

    run._torchdynamo_orig_callable = model
    return run
