# SPDX-License-Identifier: MIT
"""Every name and every method of a tensor that at least three of twelve public PyTorch projects use is there.

golden/torch_names.txt has them: `name torch.cat` or `method view`. A method may also be one of a module, an optimizer, a
loader or a storage: the projects' sources do not say whose it is.
"""

import importlib
import os
import unittest

import harness
import tenon
import tenon.as_torch

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "golden", "torch_names.txt"), encoding="utf-8") as file:
    NAMES = [line.split() for line in file if line.strip()]


def resolve(path):
    """The object that a script gets, importing modules on the way where attributes end."""
    words = path.split(".")
    found, at = importlib.import_module(words[0]), words[0]
    for word in words[1:]:
        at += "." + word
        try:
            found = getattr(found, word)
        except AttributeError:
            found = importlib.import_module(at)
    return found


class Names(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        tenon.as_torch.install()

    def test_every_name_is_there(self):
        missing = []
        for kind, name in NAMES:
            if kind == "name":
                try:
                    resolve(name)
                except (AttributeError, ImportError) as error:
                    missing.append("%s (%s)" % (name, error))
        self.assertEqual(missing, [])

    def test_every_method_is_there(self):
        owners = (tenon.Tensor, tenon.nn.Module, tenon.Generator, str, dict, list)
        missing = [name for kind, name in NAMES
                   if kind == "method" and not any(hasattr(owner, name) for owner in owners)]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    harness.main()
