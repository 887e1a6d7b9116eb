# SPDX-License-Identifier: MIT
"""Models from the network. Tenon loads what is in a local folder, and downloads nothing."""

import os
import sys

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_dir = None


def get_dir():
    """Where downloads would lie: $TORCH_HOME/hub, or ~/.cache/torch/hub."""
    if _dir is not None:
        return _dir
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d):
    global _dir
    _dir = os.path.expanduser(d)


def _no_network(what):
    raise RuntimeError("Tenon does not use the network: %s; fetch it by other means and load it from its file" % what)


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
    """What lies in the cache under the name of the URL's last part; nothing is downloaded."""
    import tenon
    name = file_name or os.path.basename(url.split("?")[0])
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), name)
    if not os.path.exists(path):
        _no_network("cannot download %s to %s" % (url, path))
    return tenon.load(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    _no_network("cannot download %s" % url)
