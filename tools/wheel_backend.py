# SPDX-License-Identifier: MIT
"""Builds the wheel: a PEP 517 backend in plain Python, named in pyproject.toml.

The extension is built with CMake in build-wheel/ (or the folder that TENON_WHEEL_BUILD names), without tests, and holds
the library. It uses CPython's limited API, so that one wheel serves Python 3.11 and all later ones.
"""

import base64
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXTENSION = "_C.abi3.so"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files give the same wheel


def version():
    """The version that the C header names."""
    with open(os.path.join(ROOT, "include", "tenon", "base.h"), encoding="utf-8") as file:
        return re.search(r'^#define TN_VERSION_STRING "([^"]+)"', file.read(), re.MULTILINE).group(1)


def tag():
    return "cp311-abi3-%s_%s" % (platform.system().lower(), platform.machine())


def project():
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        return tomllib.load(file)["project"]


def metadata():
    """The text of METADATA."""
    about = project()
    lines = ["Metadata-Version: 2.1", "Name: " + about["name"], "Version: " + version(),
             "Summary: " + about["description"], "License: MIT", "Requires-Python: " + about["requires-python"],
             "Description-Content-Type: text/markdown"]
    lines += ["Classifier: " + one for one in about["classifiers"]]
    for extra, needs in about.get("optional-dependencies", {}).items():
        lines.append("Provides-Extra: " + extra)
        lines += ["Requires-Dist: %s; extra == '%s'" % (need, extra) for need in needs]
    with open(os.path.join(ROOT, about["readme"]), encoding="utf-8") as file:
        return "\n".join(lines) + "\n\n" + file.read()


def wheel_text():
    return "Wheel-Version: 1.0\nGenerator: tenon wheel_backend\nRoot-Is-Purelib: false\nTag: %s\n" % tag()


def run(*command):
    """A command whose output is seen, as pip shows it with -v or when it fails."""
    sys.stdout.flush()
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        raise SystemExit("building Tenon needs %s (Debian: build-essential cmake ninja-build python3-dev)"
                         % command[0]) from None
    except subprocess.CalledProcessError as error:
        raise SystemExit("`%s` failed with status %d" % (" ".join(command), error.returncode)) from None


def build_extension():
    """Build tenon._C and return its path."""
    folder = os.path.abspath(os.environ.get("TENON_WHEEL_BUILD") or os.path.join(ROOT, "build-wheel"))
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    jobs = os.environ.get("JOBS") or str(os.cpu_count() or 1)
    run("cmake", "-S", ROOT, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DTN_TESTS=OFF",
        "-DTN_WITH_PYTHON=ON", "-DTN_WERROR=OFF", "-DPython3_EXECUTABLE=" + sys.executable, "--log-level=WARNING",
        *os.environ.get("CMAKE_ARGS", "").split())
    run("cmake", "--build", folder, "-j", jobs, "--target", "tn_python")
    return os.path.join(folder, "python", "tenon", EXTENSION)


def sources():
    """(path in the package, path on disk) of its Python files."""
    top = os.path.join(ROOT, "python")
    for folder, folders, names in os.walk(os.path.join(top, "tenon")):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith((".py", ".pyi")) or name == "py.typed":
                path = os.path.join(folder, name)
                yield os.path.relpath(path, top), path


def guides():
    """The same of the guides, which messages name."""
    top = os.path.join(ROOT, "docs")
    paths = [os.path.join(top, "differences.md")]
    paths += [os.path.join(top, "user", name) for name in sorted(os.listdir(os.path.join(top, "user")))]
    return [("tenon/docs/" + os.path.relpath(path, top), path) for path in paths]


class Wheel:
    """A wheel that is being written, with the record of what is in it."""

    def __init__(self, path):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, EPOCH)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.file.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d" % (name, digest, len(data)))

    def close(self, info):
        rows = self.record + [info + "/RECORD,,"]
        self.file.writestr(zipfile.ZipInfo(info + "/RECORD", EPOCH), "\n".join(rows) + "\n")
        self.file.close()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write_wheel(folder, files):
    """A wheel of (name, data, mode), and its name."""
    info = "tenon-%s.dist-info" % version()
    name = "tenon-%s-%s.whl" % (version(), tag())
    wheel = Wheel(os.path.join(folder, name))
    for path, data, mode in files:
        wheel.add(path, data, mode)
    wheel.add(info + "/METADATA", metadata().encode())
    wheel.add(info + "/WHEEL", wheel_text().encode())
    wheel.add(info + "/LICENSE", read(os.path.join(ROOT, "LICENSE")))
    wheel.close(info)
    return name


# What PEP 517 and PEP 660 ask for.


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_editable = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = "tenon-%s.dist-info" % version()
    os.makedirs(os.path.join(metadata_directory, info), exist_ok=True)
    for name, text in (("METADATA", metadata()), ("WHEEL", wheel_text())):
        with open(os.path.join(metadata_directory, info, name), "w", encoding="utf-8") as file:
            file.write(text)
    return info


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = [(name, read(path), 0o644) for name, path in [*sources(), *guides()]]
    extension = build_extension()
    files.append(("tenon/" + EXTENSION, read(extension), 0o755))
    files.append(("tenon/_C.pyi", read(os.path.join(os.path.dirname(extension), "_C.pyi")), 0o644))
    return write_wheel(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package stays where it is built: its Python files there are links to the sources."""
    package = os.path.dirname(os.path.dirname(build_extension()))
    return write_wheel(wheel_directory, [("tenon.pth", (package + "\n").encode(), 0o644)])


def build_sdist(sdist_directory, config_settings=None):
    """All files that git knows, or would know."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], check=True,
                           capture_output=True).stdout.decode().split("\0")
    base = "tenon-%s" % version()
    path = base + ".tar.gz"
    with tarfile.open(os.path.join(sdist_directory, path), "w:gz", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo(base + "/PKG-INFO")
        text = metadata().encode()
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
        for name in sorted(filter(None, names)):
            full = os.path.join(ROOT, name)
            if os.path.isfile(full):
                tar.add(full, base + "/" + name, recursive=False)
    return path
