# SPDX-License-Identifier: MIT
"""Checkpoints as folders of safetensors files, as the Hugging Face libraries lay them out."""

import json
import os

import tenon

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_INDEX = "model.safetensors.index.json"


class HuggingFaceStorageWriter:
    """Writes a dict of tensors to a folder; which file a tensor goes to may be given, as a number from 1 on."""

    def __init__(self, path, fqn_to_index_mapping=None, thread_count=1, save_distributed=False,
                 enable_consolidation=False, thread_count_consolidation=1, **options):
        self.path, self.fqn_to_index_mapping = os.fspath(path), fqn_to_index_mapping

    def _write(self, state_dict):
        places = self.fqn_to_index_mapping or {}
        files = {}
        for name, value in state_dict.items():
            if not isinstance(value, tenon.Tensor):
                raise ValueError("%r is no tensor: safetensors files hold tensors alone" % name)
            files.setdefault(places.get(name, 1), {})[name] = value.detach().contiguous()
        last = max(files, default=1)
        names = {number: "model-%05d-of-%05d.safetensors" % (number, last) for number in files}
        for number, tensors in files.items():
            tenon.safetensors.save_file(tensors, os.path.join(self.path, names[number]))
        total = sum(t.numel() * t.element_size() for tensors in files.values() for t in tensors.values())
        where = {name: names[number] for number, tensors in files.items() for name in tensors}
        with open(os.path.join(self.path, _INDEX), "w", encoding="utf-8") as file:
            json.dump({"metadata": {"total_size": total}, "weight_map": where}, file, indent=2)


class HuggingFaceStorageReader:
    """Reads all safetensors files of a folder."""

    def __init__(self, path, thread_count=1, **options):
        self.path = os.fspath(path)

    def _read(self):
        found = {}
        for name in sorted(os.listdir(self.path)):
            if name.endswith(".safetensors"):
                found.update(tenon.safetensors.load_file(os.path.join(self.path, name)))
        if not found:
            raise FileNotFoundError("no safetensors files in %s" % self.path)
        return found
