# SPDX-License-Identifier: MIT
"""Modules that were scripted or traced: the module itself, of a class that can also be saved to a file.

A scripted module shares the attributes of the module that it was made of. A file holds the module, pickled; it is read
by the machine that runs no code, which makes objects of module classes alone: those of the package, and those that the
program has defined or imported already. A class that a function defines cannot be found by its name; such classes are
known from the moment a module of them is scripted.
"""

import sys

import tenon

__all__ = ["is_scripted", "load", "save", "scripted"]

_KIND = "tenon_script_module"
_classes = {}
_local = {}  # full name -> the class that a function defined last by that name


class Scripted:
    """What a scripted module has besides."""

    @property
    def original_name(self):
        return type(self).__mro__[1].__name__

    @property
    def code(self):
        """The source of its forward method."""
        import inspect
        import textwrap
        return textwrap.dedent(inspect.getsource(type(self).__mro__[1].forward))

    @property
    def graph(self):
        """For those who look whether there is one; nothing was recorded."""
        return tenon._C.Graph()

    def save(self, f, **options):
        save(self, f, **options)

    def save_to_buffer(self, **options):
        import io
        file = io.BytesIO()
        save(self, file, **options)
        return file.getvalue()

    def __reduce_ex__(self, protocol):
        return scripted, (plain(self),)

    def __deepcopy__(self, memo):
        import copy
        return scripted(copy.deepcopy(plain(self), memo))

    def __copy__(self):
        import copy
        return scripted(copy.copy(plain(self)))


class LocalModule(tenon.nn.Module):
    """In a file: a module of a class that a function defined, with the name of the class and the attributes."""


def _full_name(cls):
    return "%s.%s" % (cls.__module__, cls.__qualname__)


def _is_local(cls):
    return "<locals>" in cls.__qualname__ and not issubclass(cls, Scripted)


def _with_parts(module, cls, convert, attributes=None):
    """A module of another class with the same attributes, whose submodules are converted too."""
    new = object.__new__(cls)
    new.__dict__ = dict(module.__dict__ if attributes is None else attributes)
    new.__dict__["_modules"] = {name: part if part is None else convert(part)
                                for name, part in new.__dict__["_modules"].items()}
    return new


def _without_local_classes(module):
    """The module as a file holds it."""
    module = plain(module)
    if not any(_is_local(type(plain(part))) for part in module.modules()):
        return module
    made = _with_parts(module, LocalModule if _is_local(type(module)) else type(module), _without_local_classes)
    if _is_local(type(module)):
        made.__dict__["_local_class"] = _full_name(type(module))
    return made


def _with_local_classes(module):
    """The module of what a file holds."""
    if not any(isinstance(part, LocalModule) for part in module.modules()):
        return module
    if not isinstance(module, LocalModule):
        return _with_parts(module, type(module), _with_local_classes)
    attributes = dict(module.__dict__)
    name = attributes.pop("_local_class", None)
    if name not in _local:
        raise RuntimeError("the file names %s, a class that a function of this program defines: script a module of it "
                           "before the file is loaded, or define the class outside of functions" % name)
    return _with_parts(module, _local[name], _with_local_classes, attributes)


def is_scripted(obj):
    return isinstance(obj, Scripted)


def scripted(module):
    """The module as a scripted one, with the same attributes."""
    if isinstance(module, Scripted):
        return module
    for part in module.modules():
        if _is_local(type(part)):
            _local[_full_name(type(part))] = type(part)
    cls = type(module)
    made = _classes.get(cls)
    if made is None:
        made = _classes[cls] = type(cls.__name__, (cls, Scripted), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    new = object.__new__(made)
    new.__dict__ = module.__dict__
    return new


def plain(module):
    """The module that a scripted one was made of."""
    if not isinstance(module, Scripted):
        return module
    cls = type(module).__mro__[1]
    new = object.__new__(cls)
    new.__dict__ = module.__dict__
    return new


def save(m, f, _extra_files=None):
    """Write a module to a file that `load` reads."""
    if not isinstance(m, tenon.nn.Module):
        raise RuntimeError("only modules can be saved: a function has no state, and its code is in the program")
    files = {name: data if isinstance(data, bytes) else str(data).encode() for name, data in (_extra_files or {}).items()}
    tenon.save({_KIND: 1, "module": _without_local_classes(m), "files": files}, f)


def _class(name):
    """A class of modules by its full name: of the package, or of a module that the program has loaded."""
    module, _, attribute = name.rpartition(".")
    if module == "torch" or module.startswith("torch."):
        module = "tenon" + module[5:]
        if module.startswith(("tenon.nn.", "tenon.ao.")) and module not in sys.modules:
            try:
                __import__(module)
            except ImportError:
                return None
    found = sys.modules.get(module)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, tenon.nn.Module) else None


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """The module of a file that `save` wrote."""
    import zipfile
    from tenon import serialization
    start = None if isinstance(f, (str, bytes)) or hasattr(f, "__fspath__") else f.tell()
    if not zipfile.is_zipfile(f):
        raise RuntimeError("the file is no archive of a scripted module")
    if start is not None:
        f.seek(start)
    with zipfile.ZipFile(f) as archive:
        if any(name.endswith("/constants.pkl") for name in archive.namelist()):
            raise RuntimeError("Tenon reads no TorchScript archives that PyTorch wrote: load a state_dict with load instead")
    if start is not None:
        f.seek(start)
    allowed = []
    for name in serialization.get_unsafe_globals_in_checkpoint(f):
        cls = _class(name)
        if cls is None:
            raise RuntimeError("the file names %s, which is no class of modules that this program has: import it first, "
                               "or allow it with torch.serialization.add_safe_globals" % name)
        allowed.append((cls, name))
    if start is not None:
        f.seek(start)
    with serialization.safe_globals(allowed):
        found = serialization.load(f, map_location=map_location, weights_only=True)
    if not isinstance(found, dict) or found.get(_KIND) != 1 or not isinstance(found.get("module"), tenon.nn.Module):
        raise RuntimeError("the file is no archive of a scripted module")
    for name in _extra_files or {}:
        if name in found["files"]:
            _extra_files[name] = found["files"][name]
    return scripted(_with_local_classes(found["module"]))
