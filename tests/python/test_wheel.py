# SPDX-License-Identifier: MIT
"""The wheel: what pip gets. It is made of this build's extension, unpacked, and imported from there."""

import base64
import csv
import hashlib
import io
import os
import posixpath
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

import harness
import tenon

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import wheel_backend  # noqa: E402


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        built = os.path.join(os.path.dirname(os.path.abspath(tenon.__file__)), wheel_backend.EXTENSION)
        plain = wheel_backend.build_extension
        wheel_backend.build_extension = lambda: built
        try:
            cls.name = wheel_backend.build_wheel(cls.folder.name)
        finally:
            wheel_backend.build_extension = plain
        cls.path = os.path.join(cls.folder.name, cls.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_one_wheel_serves_every_python_from_3_11(self):
        self.assertRegex(self.name, r"^tenon-[0-9.]+-cp311-abi3-linux_\w+\.whl$")

    def test_the_record_names_every_file_with_its_digest(self):
        with zipfile.ZipFile(self.path) as wheel:
            info = "tenon-%s.dist-info/" % wheel_backend.version()
            rows = list(csv.reader(io.StringIO(wheel.read(info + "RECORD").decode())))
            self.assertEqual(sorted(row[0] for row in rows), sorted(wheel.namelist()))
            for name, digest, size in rows:
                if digest:
                    data = wheel.read(name)
                    found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual((digest, int(size)), ("sha256=" + found, len(data)))
            self.assertIn("Name: tenon", wheel.read(info + "METADATA").decode())

    def test_the_guides_are_inside_where_their_links_find_each_other(self):
        with zipfile.ZipFile(self.path) as wheel:
            names = wheel.namelist()
            self.assertIn("tenon/docs/differences.md", names)
            for name in names:
                if not name.endswith(".md"):
                    continue
                for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", wheel.read(name).decode()):
                    if "user/" in link or "/" not in link or link.endswith("differences.md"):
                        self.assertIn(posixpath.normpath(posixpath.join(posixpath.dirname(name), link)), names, name)

    def test_it_runs_from_where_it_is_unpacked(self):
        with tempfile.TemporaryDirectory() as place:
            with zipfile.ZipFile(self.path) as wheel:
                wheel.extractall(place)
            environment = {**os.environ, "PYTHONPATH": place}
            done = subprocess.run(
                [sys.executable, "-c", "import tenon, tenon.nn; print(tenon.__file__); "
                 "print(tenon.nn.Linear(2, 3)(tenon.ones(1, 2)).shape == (1, 3))"],
                capture_output=True, text=True, timeout=1000, env=environment, cwd=place)
            self.assertEqual(done.stdout.splitlines(),
                             [os.path.join(place, "tenon", "__init__.py"), "True"], done.stderr)


if __name__ == "__main__":
    harness.main()
