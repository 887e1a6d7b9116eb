# SPDX-License-Identifier: MIT
"""Run PyTorch programs on Tenon: in this process, every `import torch` gives Tenon.

  python3 -m tenon.as_torch script.py args…      as python3 script.py args…
  python3 -m tenon.as_torch -m module args…      as python3 -m module args…
  python3 -m tenon.as_torch -c 'code' args…      as python3 -c 'code' args…
  python3 -m tenon.as_torch - args… <<EOF        as python3 - args… <<EOF

or, in a session: `import tenon.as_torch; tenon.as_torch.install()`.

A module has one object under both names: `torch.nn is tenon.nn`. A name that Tenon does not have raises the exception
that Python raises for any missing name, and its text says where the list of what is covered stands.
"""

import os
import sys

COVERAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "docs", "user", "torch-coverage.md")
VERSION = "2.11.0+tenon"

_Function = type(lambda: None)
_HINT = "Tenon does not have it; %s lists what is covered" % COVERAGE


def _ours(name):
    """torch.nn -> tenon.nn"""
    return "tenon._functorch.make_functional" if name == "functorch" else "tenon" + name[len("torch"):]


def _called_by_find_spec():
    """Whether somebody only asks, through importlib.util.find_spec, if a module exists."""
    frame = sys._getframe(2)
    for _ in range(6):
        if frame is None:
            return False
        if frame.f_globals.get("__name__") == "importlib.util":
            return True
        frame = frame.f_back
    return False


class _Loader:
    """Gives the module of ours, and leaves it as it was made."""

    def __init__(self, name):
        self.name = name

    def create_module(self, spec):
        import importlib
        module = importlib.import_module(_ours(self.name))
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.own_spec

    def is_package(self, name):
        return hasattr(sys.modules[_ours(name)], "__path__")

    def get_code(self, name):
        """For `python3 -m torch.something`."""
        spec = _spec_of(_ours(name))
        return spec.loader.get_code(spec.name)


def _spec_of(name):
    """The spec of one of our modules, without importing it; its parents are imported. None where there is none."""
    import importlib.util
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    except ValueError:  # a module that has no spec, as __main__ may have none
        return getattr(sys.modules.get(name), "__spec__", None)


class _Finder:
    """Finds torch and what is in it. Stands first in sys.meta_path, so that an installed PyTorch is not seen."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "multiprocessing.spawn":
            return _with(name, path, _install_in_children)
        if name == "multiprocessing.forkserver":
            return _with(name, path, _install_in_servers)
        if name.startswith("tenon.") and not name.startswith("tenon._C"):
            return _with(name, path, _as_torchs)
        if name.startswith("functorch."):  # an installed PyTorch has parts of it: they are for that PyTorch
            raise ModuleNotFoundError("No module named %r: %s" % (name, _HINT), name=name)
        if name not in ("torch", "functorch") and not name.startswith("torch."):
            return None
        from importlib.machinery import ModuleSpec
        found = _spec_of(_ours(name))
        if found is None:
            if _called_by_find_spec():
                return None
            raise ModuleNotFoundError("No module named %r: %s" % (name, _HINT), name=name)
        spec = ModuleSpec(name, _Loader(name), origin=found.origin,
                          is_package=found.submodule_search_locations is not None)
        if found.submodule_search_locations is not None:
            spec.submodule_search_locations = list(found.submodule_search_locations)
        return spec

    @classmethod
    def find_distributions(cls, context=None):
        """importlib.metadata.version("torch") is asked by packages that build on torch."""
        if getattr(context, "name", None) not in (None, "torch"):
            return
        from importlib.metadata import Distribution

        class Torch(Distribution):
            def read_text(self, filename):
                return "Metadata-Version: 2.1\nName: torch\nVersion: %s\n" % VERSION if filename == "METADATA" else None

            def locate_file(self, path):
                import pathlib
                return pathlib.Path(__file__).parent.parent / path

        yield Torch()


def _with(name, path, then):
    """The spec of a module as Python finds it; `then` is called with the module once it is loaded."""
    from importlib.machinery import PathFinder
    spec = PathFinder.find_spec(name, path)
    if spec is None or spec.loader is None:
        return spec
    plain = spec.loader.exec_module

    def exec_module(module):
        plain(module)
        then(module)

    spec.loader.exec_module = exec_module
    return spec


_IN_A_CHILD = "import tenon.as_torch; tenon.as_torch.install(); "


def _install_in_children(spawn):
    """Let a process that multiprocessing.spawn starts know torch too."""
    command_line = spawn.get_command_line

    def get_command_line(**arguments):
        words = command_line(**arguments)
        if "-c" in words:
            at = words.index("-c") + 1
            words[at] = _IN_A_CHILD + words[at]
        return words

    spawn.get_command_line = get_command_line


def _install_in_servers(forkserver):
    """Let the process that others are forked from know torch too."""
    util = forkserver.util

    class Util:  # what forkserver.py sees as util: only the start of a program is another
        def __getattr__(self, name):
            return getattr(util, name)

        def spawnv_passfds(self, path, words, *rest):
            words = list(words)
            if "-c" in words:
                at = words.index("-c") + 1
                words[at] = _IN_A_CHILD + words[at]
            return util.spawnv_passfds(path, words, *rest)

    forkserver.util = Util()


def _as_torchs(module):
    """Let a module of ours look like torch's: what it defines says that it was defined there, where it is found, too, and
    names that are missing are explained."""
    name = "torch" + module.__name__[len("tenon"):]
    if name != "torch":  # which programs look for to see whether they imported it
        sys.modules.setdefault(name, module)
    for value in list(module.__dict__.values()):
        home = value.__module__ if isinstance(value, (type, _Function)) else None
        if isinstance(home, str) and (home == "tenon" or home.startswith("tenon.")):
            try:
                value.__module__ = "torch" + home[len("tenon"):]
            except (AttributeError, TypeError):
                pass  # a class written in C
    _explain_missing_names(module, name)


def _explain_missing_names(module, name):
    """Let `module.missing` and `from module import missing` say where the list of covered names stands."""
    own = module.__dict__.get("__getattr__")
    if getattr(own, "explains", False):
        return

    def __getattr__(attribute):
        if own is not None:
            try:
                return own(attribute)
            except AttributeError:
                pass
        if attribute.startswith("__"):
            raise AttributeError("module %r has no attribute %r" % (name, attribute))
        if _is_from_import(sys._getframe(1)):
            inner = sys.modules.get("%s.%s" % (module.__name__, attribute))
            if inner is not None:
                return inner
            raise ImportError("cannot import name %r from %r: %s" % (attribute, name, _HINT), name=name)
        raise AttributeError("module %r has no attribute %r: %s" % (name, attribute, _HINT), name=attribute, obj=module)

    __getattr__.explains = True
    module.__getattr__ = __getattr__


def _is_from_import(frame):
    """Whether the frame is at the second half of `from module import name`, where only an ImportError is passed on."""
    from opcode import opmap
    code, at = frame.f_code.co_code, frame.f_lasti
    return 0 <= at < len(code) and code[at] == opmap["IMPORT_FROM"]


def is_installed():
    """Whether `import torch` gives Tenon."""
    return _Finder in sys.meta_path


def install():
    """From now on `import torch` gives Tenon in this process. Twice is as good as once."""
    if is_installed():
        return
    import tenon
    present = sys.modules.get("torch")
    if present is not None and present is not tenon:
        raise ImportError("PyTorch is imported already: call tenon.as_torch.install() before the first `import torch`")
    from tenon.torch_version import TorchVersion
    tenon.__version__ = TorchVersion(VERSION)
    tenon._C._set_module_name("torch")  # dtypes and sizes print as torch's
    tenon.torch = tenon
    for inner in ("_functorch", "_profiler"):  # modules in a module that is no package: found when they are there
        sys.modules["torch._C." + inner] = getattr(tenon._C, inner)
    sys.meta_path.insert(0, _Finder)
    tenon._fork.names.append("torch")
    for name, module in list(sys.modules.items()):
        if name == "tenon" or (name.startswith("tenon.") and not name.startswith("tenon._C")):
            _as_torchs(module)
    tenon.__name__ = "torch"
    if "multiprocessing.spawn" in sys.modules:
        _install_in_children(sys.modules["multiprocessing.spawn"])
    if "multiprocessing.forkserver" in sys.modules:
        _install_in_servers(sys.modules["multiprocessing.forkserver"])


def _hide_our_frames():
    """A traceback begins in the script, as if Python itself had run it."""
    plain = sys.excepthook

    def hook(kind, value, traceback):
        inside = traceback
        while inside is not None and inside.tb_frame.f_code.co_filename != __file__:
            inside = inside.tb_next
        while inside is not None and inside.tb_frame.f_code.co_filename == __file__:
            inside = inside.tb_next
        while inside is not None and "runpy" in inside.tb_frame.f_code.co_filename:
            inside = inside.tb_next
        if inside is None and not isinstance(value, SyntaxError):
            inside = traceback
        last, frame = inside, inside  # what failed to import failed in the script, not in the finder
        while frame is not None:
            if frame.tb_frame.f_code.co_filename != __file__:
                last = frame
            frame = frame.tb_next
        if last is not None:
            last.tb_next = None
        plain(kind, value.with_traceback(inside), inside)

    if plain is sys.__excepthook__:
        sys.excepthook = hook


def _run_script(path):
    import os
    import runpy
    full = os.path.abspath(path)
    if os.path.isdir(full) or full.endswith((".zip", ".pyz", ".pyc")):
        if os.path.isdir(full) and not sys.flags.safe_path and sys.path:
            sys.path.pop(0)  # run_path puts the folder there
        runpy.run_path(full, run_name="__main__")
        return
    try:
        with open(full, "rb") as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write("%s: can't open file %r: [Errno %d] %s\n"
                         % (sys.executable, full, error.errno, error.strerror))
        raise SystemExit(2) from None
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(full)
    from importlib.machinery import SourceFileLoader
    namespace = _fresh_main(__file__=full, __cached__=None, __loader__=SourceFileLoader("__main__", full))
    exec(compile(source, full, "exec", dont_inherit=True), namespace)


def _fresh_main(**names):
    """The namespace of a new __main__."""
    import builtins
    from types import ModuleType
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __spec__=None, __package__=None, __doc__=None, **names)
    sys.modules["__main__"] = main
    return main.__dict__


def _only_in(traceback, file):
    """Whether all frames of a traceback are of one file: that of runpy, where there is no such module to run."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename == file:
        traceback = traceback.tb_next
    return traceback is None


def main(arguments):
    """What `python3 -m tenon.as_torch` does with its arguments."""
    if not arguments or arguments[0] in ("-h", "--help"):
        stream = sys.stdout if arguments else sys.stderr
        stream.write("usage: python3 -m tenon.as_torch [-m module | -c code | script.py | -] [argument]…\n\n"
                     "Runs a PyTorch program on Tenon: in it, `import torch` is Tenon.\n")
        return 0 if arguments else 2
    kind, rest = (arguments[0], arguments[1:]) if arguments[0] in ("-m", "-c") else (None, arguments)
    if kind is not None and not rest:
        sys.stderr.write("Argument expected for the %s option\n" % kind)
        return 2
    install()
    _hide_our_frames()
    if kind == "-m":
        import runpy
        sys.argv = rest
        try:
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        except ImportError as error:
            if not _only_in(error.__traceback__.tb_next, runpy.run_module.__code__.co_filename):
                raise
            sys.stderr.write("%s: %s\n" % (sys.executable, error))
            return 1
    elif kind == "-c":
        sys.argv = ["-c"] + rest[1:]
        exec(compile(rest[0], "<string>", "exec", dont_inherit=True), _fresh_main())
    elif rest[0] == "-":
        sys.argv = rest
        exec(compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True), _fresh_main())
    else:
        sys.argv = rest
        _run_script(rest[0])
    return 0


if __name__ == "__main__":
    # The module that scripts can import is the one to install; this one is __main__, which the script replaces.
    import tenon.as_torch
    sys.exit(tenon.as_torch.main(sys.argv[1:]))
