# SPDX-License-Identifier: MIT
"""Models and weights from elsewhere. Weights are fetched by their URL and kept; programs (hubconf.py) are loaded from
local folders alone, for they would be run."""

import os
import re
import sys
from urllib.parse import urlparse  # noqa: F401  (PyTorch has it here, and packages take it from here)

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the hash in a file's name: resnet18-5c106cde.pth
MASTER_BRANCH, READ_DATA_CHUNK, VAR_DEPENDENCY = "master", 128 * 1024, "dependencies"
ENV_TORCH_HOME, ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR = "TORCH_HOME", "XDG_CACHE_HOME", "~/.cache"

_dir = None


def _get_torch_home():
    """$TORCH_HOME, or ~/.cache/torch: torchvision and torchaudio ask too."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(home)


def get_dir():
    """Where downloads lie: $TORCH_HOME/hub, or ~/.cache/torch/hub."""
    return os.path.join(_get_torch_home(), "hub") if _dir is None else _dir


def set_dir(d):
    global _dir
    _dir = os.path.expanduser(d)


def _no_network(what):
    raise RuntimeError("Tenon fetches no programs: %s; clone it, and load it with source='local'" % what)


def _config(folder):
    """The hubconf.py of a folder, as a module."""
    import importlib.util
    path = os.path.join(folder, "hubconf.py")
    if not os.path.exists(path):
        raise FileNotFoundError(path)
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def load(repo_or_dir, model, *args, source="github", trust_repo=None, force_reload=False, verbose=True,
         skip_validation=False, **kwargs):
    """Call the entry point `model` of the hubconf.py in a folder; source must be "local"."""
    if source not in ("github", "local"):
        raise ValueError('Unknown source: "%s". Allowed values: "github" | "local".' % source)
    if source == "github":
        _no_network("cannot download %s" % repo_or_dir)
    entry = getattr(_config(repo_or_dir), model, None)
    if not callable(entry):
        raise RuntimeError("Cannot find callable %s in hubconf" % model)
    return entry(*args, **kwargs)


def list(github, force_reload=False, skip_validation=False, trust_repo=None, verbose=True):
    """The entry points of a folder's hubconf.py."""
    if not os.path.isdir(github):
        _no_network("cannot download %s" % github)
    module = _config(github)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo=None):
    """The documentation of an entry point."""
    if not os.path.isdir(github):
        _no_network("cannot download %s" % github)
    return getattr(_config(github), model).__doc__


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None,
                             weights_only=True):
    """What lies under the URL, or in the cache under the name of its last part."""
    import tenon
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write('Downloading: "%s" to %s\n' % (url, path))
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress=progress)
    return tenon.load(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Fetch a file. It stands at ``dst`` when all of it has come and its SHA-256 begins with ``hash_prefix``; what was
    there before stays otherwise."""
    import hashlib
    import uuid
    from urllib.request import Request, urlopen
    dst = os.path.expanduser(dst)
    answer = urlopen(Request(url, headers={"User-Agent": "torch.hub"}))
    length = answer.headers.get("Content-Length")
    length = int(length) if length is not None and length.isdigit() and int(length) > 0 else None
    part = "%s.%s.partial" % (dst, uuid.uuid4().hex)
    try:
        seen, total = hashlib.sha256(), 0
        bar = __getattr__("tqdm")(total=length, disable=not progress, unit="B", unit_scale=True, unit_divisor=1024)
        with answer, open(part, "xb") as file, bar:
            while block := answer.read(READ_DATA_CHUNK):
                file.write(block)
                seen.update(block)
                total += len(block)
                bar.update(len(block))
        if length is not None and total != length:
            raise RuntimeError("%s ended after %d bytes of %d" % (url, total, length))
        digest = seen.hexdigest()
        if hash_prefix is not None and digest[:len(hash_prefix)] != hash_prefix:
            raise RuntimeError('invalid hash value (expected "%s", got "%s")' % (hash_prefix, digest))
        os.replace(part, dst)
    finally:
        if os.path.exists(part):
            os.remove(part)


def __getattr__(name):
    """`tqdm`, as torch.hub has it: the package's, and where that is not installed one that passes everything on."""
    if name != "tqdm":
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = _Bar
    globals()["tqdm"] = tqdm
    return tqdm


class _Bar:
    """What scripts call of tqdm, without a picture."""

    def __init__(self, iterable=None, total=None, disable=None, unit=None, **kwargs):
        self.iterable, self.total, self.disable, self.unit, self.n = iterable, total, disable, unit, 0

    def __iter__(self):
        return iter(self.iterable)

    def update(self, n=1):
        self.n += n

    def set_description(self, *args, **kwargs):
        pass

    def write(self, text):
        print(text)

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None
