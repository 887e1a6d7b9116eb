# SPDX-License-Identifier: MIT
"""Every name and every method of a tensor that at least three of twelve public PyTorch projects use is there.

golden/torch_names.txt has them: `name torch.cat` or `method view`. A method may also be one of a module, an optimizer, a
loader or a storage: the projects' sources do not say whose it is.
"""

import importlib
import math
import os
import subprocess
import sys
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

    def test_no_function_hides_a_module(self):
        # In a process of its own: a module that was imported is an attribute of the package from then on.
        code = ("import pkgutil, types, tenon\n"
                "names = [m.name for m in pkgutil.iter_modules(tenon.__path__) if m.name[0] != '_']\n"
                "print([n for n in names if not isinstance(getattr(tenon, n), types.ModuleType)])\n"
                "with tenon.random.fork_rng(): tenon.random.manual_seed(0)\n")
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual((run.stdout.strip(), run.stderr), ("[]", ""))

    def test_modules_that_the_package_itself_imports(self):
        self.assertEqual(resolve("torch.math.pi"), math.pi)
        self.assertIs(resolve("torch.os.path"), os.path)


if __name__ == "__main__":
    harness.main()
