# SPDX-License-Identifier: MIT
"""Checkpoints in a folder. One process writes one file, __0_0.distcp, in the format of tenon.save; folders that
PyTorch wrote have another format and are refused."""

import os

import tenon

__all__ = ["FileSystemReader", "FileSystemWriter", "load", "load_state_dict", "save", "save_state_dict"]

_NAME = "__0_0.distcp"


class FileSystemWriter:
    """Where to write."""

    def __init__(self, path, **options):
        self.path = os.fspath(path)


class FileSystemReader:
    """Where to read from."""

    def __init__(self, path, **options):
        self.path = os.fspath(path)


def _path(checkpoint_id, other):
    if checkpoint_id is not None:
        return os.fspath(checkpoint_id)
    if other is None:
        raise ValueError("a checkpoint needs a checkpoint_id or a storage")
    return other.path


def save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, no_dist=False):
    """Write the dict."""
    path = _path(checkpoint_id, storage_writer)
    os.makedirs(path, exist_ok=True)
    if hasattr(storage_writer, "_write"):
        storage_writer._write(state_dict)
        return
    made = {key: value.state_dict() if hasattr(value, "state_dict") else value for key, value in state_dict.items()}
    tenon.save(made, os.path.join(path, _NAME))


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Read into the tensors and objects that the dict holds."""
    path = _path(checkpoint_id, storage_reader)
    partial = getattr(planner, "allow_partial_load", False)
    if hasattr(storage_reader, "_read"):
        _fill(state_dict, storage_reader._read(), "", partial)
        return
    if os.path.exists(os.path.join(path, ".metadata")):
        raise RuntimeError("%s was written by PyTorch's distributed checkpoint, which Tenon does not read; convert it "
                           "with torch.distributed.checkpoint.format_utils.dcp_to_torch_save" % path)
    _fill(state_dict, tenon.load(os.path.join(path, _NAME)), "", partial)


def _fill(into, found, prefix, partial):
    for key in list(into):
        if key not in found and partial:
            continue
        if key not in found:
            raise RuntimeError("Missing key in checkpoint state_dict: %s%s." % (prefix, key))
        value, new = into[key], found[key]
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(new)
        elif isinstance(value, tenon.Tensor):
            with tenon.no_grad():
                value.copy_(new)
        elif isinstance(value, dict):
            _fill(value, new, "%s%s." % (prefix, key), partial)
        else:
            into[key] = new


def save_state_dict(state_dict, storage_writer, *args, **options):
    """The older name of save."""
    save(state_dict, storage_writer=storage_writer)


def load_state_dict(state_dict, storage_reader, *args, **options):
    """The older name of load."""
    load(state_dict, storage_reader=storage_reader)
