# SPDX-License-Identifier: MIT
"""torch.export's names. A program that is exported keeps the module, which runs as it is written."""

import tenon

__all__ = ["Dim", "ExportedProgram", "export", "export_for_training", "load", "save"]


def Dim(name, *, min=None, max=None):
    """A size that may change. All may."""
    return _Dim(name, min, max)


class _Dim:
    def __init__(self, name, least, most):
        self.__name__, self.min, self.max = name, least, most

    AUTO = DYNAMIC = STATIC = None


Dim.AUTO = Dim.DYNAMIC = Dim.STATIC = None


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


def save(ep, f, **options):
    raise RuntimeError("Tenon writes no .pt2 files: save ep.state_dict with tenon.save")


def load(f, **options):
    raise RuntimeError("Tenon reads no .pt2 files")
