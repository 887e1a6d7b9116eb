# SPDX-License-Identifier: MIT
"""Extensions written in C++ against PyTorch's headers. Tenon has none of these headers: what would compile one says so,
with an error that scripts with a Python path beside it already catch; what only asks is answered."""

import os
import shutil

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension", "get_compiler_abi_compatibility_and_version",
           "get_default_build_root", "include_paths", "is_ninja_available", "library_paths", "load", "load_inline",
           "verify_ninja_availability"]

CUDA_HOME = None
CUDNN_HOME = None
ROCM_HOME = None
SYCL_HOME = None
IS_HIP_EXTENSION = False
IS_WINDOWS = False
IS_MACOS = False
IS_LINUX = True
_TEXT = ("Tenon cannot build %r: C++ extensions are compiled against PyTorch's headers. A kernel in C can be registered with "
         "tenon.library or through tenon/dispatch.h")


def load(name, sources=None, *args, **options):
    raise RuntimeError(_TEXT % (name,))


def load_inline(name, cpp_sources=None, *args, **options):
    raise RuntimeError(_TEXT % (name,))


def CppExtension(name, sources, *args, **options):
    raise RuntimeError(_TEXT % (name,))


def CUDAExtension(name, sources, *args, **options):
    raise RuntimeError(_TEXT % (name,))


def SyclExtension(name, sources, *args, **options):
    raise RuntimeError(_TEXT % (name,))


class BuildExtension:
    """setuptools' build_ext for such extensions."""

    def __init__(self, *args, **options):
        raise RuntimeError(_TEXT % ("build_ext",))

    @classmethod
    def with_options(cls, **options):
        return cls


def include_paths(device_type="cpu"):
    """No headers."""
    return []


def library_paths(device_type="cpu"):
    """No libraries."""
    return []


def is_ninja_available():
    return shutil.which("ninja") is not None


def verify_ninja_availability():
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def get_default_build_root():
    """Where PyTorch keeps what it built."""
    return os.path.realpath(os.path.join(os.path.expanduser("~"), ".cache", "torch_extensions"))


def get_compiler_abi_compatibility_and_version(compiler):
    raise RuntimeError(_TEXT % ("",))
