# SPDX-License-Identifier: MIT
"""torch.export's names. A program that is exported keeps the module, which runs as it is written."""

import tenon
from tenon.export.dynamic_shapes import Dim, ShapesCollection, dims

__all__ = ["Dim", "ExportedProgram", "ShapesCollection", "default_decompositions", "dims", "export",
           "export_for_training", "load", "save"]


class ExportedProgram:
    """A module and the arguments that it was exported with."""

    def __init__(self, module, args, kwargs):
        self._module = module
        self.example_inputs = (tuple(args), dict(kwargs or {}))

    def module(self, check_guards=True):
        """Something to call."""
        return self._module

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    @property
    def state_dict(self):
        return self._module.state_dict()

    def parameters(self):
        return self._module.parameters()

    def named_parameters(self):
        return self._module.named_parameters()

    def buffers(self):
        return self._module.buffers()

    def named_buffers(self):
        return self._module.named_buffers()

    @property
    def graph_module(self):
        """The module as a graph of calls (tenon.fx); a module that branches on values has none."""
        return tenon.fx.symbolic_trace(self._module)

    @property
    def graph(self):
        return self.graph_module.graph

    def run_decompositions(self, decomp_table=None, **options):
        """The program: operators are taken apart when they run."""
        return self


def export(mod, args, kwargs=None, *, dynamic_shapes=None, strict=False, preserve_module_call_signature=(), **options):
    """The module, after one call with the arguments given, so that a mistake shows here."""
    if not isinstance(mod, tenon.nn.Module):
        raise ValueError("Expected `mod` to be an instance of `torch.nn.Module`, got %s." % type(mod))
    if not isinstance(args, tuple):
        raise TypeError("Expecting `args` to be a tuple of example positional inputs, got %s" % type(args))
    with tenon.no_grad():
        mod(*args, **(kwargs or {}))
    return ExportedProgram(mod, args, kwargs)


export_for_training = export


def default_decompositions():
    """How operators are taken apart: they are when they run, and the table is empty."""
    return {}


_EXAMPLES = "tenon_example_inputs"


def save(ep, f, *, extra_files=None, **options):
    """Write a program to a file that `load` reads: its module, pickled, and the arguments that it was exported with.
    PyTorch does not read it."""
    import io
    from tenon.jit import _scripted
    if not isinstance(ep, ExportedProgram):
        raise TypeError("The 'ep' parameter must be an instance of 'ExportedProgram', got '%s' instead." % type(ep).__name__)
    examples = io.BytesIO()
    tenon.save(ep.example_inputs, examples)
    _scripted.save(ep._module, f, {**(extra_files or {}), _EXAMPLES: examples.getvalue()})


def load(f, *, extra_files=None, **options):
    """The program of a file that `save` wrote. The class of its module must be one of the package's, or be there."""
    import io
    from tenon.jit import _scripted
    files = {name: "" for name in extra_files or {}}
    files[_EXAMPLES] = b""
    module = _scripted.plain(_scripted.load(f, None, files))
    examples = files.pop(_EXAMPLES)
    args, kwargs = tenon.load(io.BytesIO(examples), weights_only=True) if examples else ((), {})
    if extra_files is not None:
        extra_files.update({k: v.decode() if isinstance(v, bytes) else v for k, v in files.items()})
    return ExportedProgram(module, args, kwargs)
