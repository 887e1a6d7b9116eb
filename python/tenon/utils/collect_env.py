# SPDX-License-Identifier: MIT
"""What a report of a problem should say about the machine.

The functions that take `run_lambda` call it with a command (a line for the shell, or a list of
words) and get its exit status, what it printed and what it complained of, as `run` gives them.
What is not found is None.
"""

import platform
import sys

import tenon

_PACKAGES = ("tenon", "torch", "numpy", "mypy", "flake8", "onnx", "optree", "triton")


def run(command):
    """(exit status, output, errors) of a command, the texts without white space around them."""
    import subprocess

    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, shell=isinstance(command, str), check=False)
    return (done.returncode, done.stdout.decode(errors="replace").strip(),
            done.stderr.decode(errors="replace").strip())


def run_and_read_all(run_lambda, command):
    """What the command printed; None when it failed."""
    status, out, _ = run_lambda(command)
    return None if status != 0 else out


def run_and_return_first_line(run_lambda, command):
    """The first line that the command printed; None when it failed."""
    out = run_and_read_all(run_lambda, command)
    return None if out is None else out.split("\n")[0]


def run_and_parse_first_match(run_lambda, command, regex):
    """The first group of the first match in what the command printed."""
    import re

    found = re.search(regex, run_and_read_all(run_lambda, command) or "")
    return found.group(1) if found else None


def get_platform():
    return {"cygwin": "win32"}.get(sys.platform, sys.platform)


def get_python_platform():
    return platform.platform()


def get_libc_version():
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_os(run_lambda):
    """The distribution's name and the machine's kind, as in 'Debian GNU/Linux 12 (x86_64)'."""
    name = run_and_parse_first_match(run_lambda, "cat /etc/*-release", 'PRETTY_NAME="(.*)"')
    return "%s (%s)" % (name or platform.system(), platform.machine())


def get_gcc_version(run_lambda):
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda):
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda):
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_cpu_info(run_lambda):
    """Lines 'name: value' about the processor."""
    status, out, complaint = run_lambda("lscpu")
    return out if status == 0 else complaint


def get_nvidia_driver_version(run_lambda):
    return run_and_parse_first_match(run_lambda, "nvidia-smi", r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda):
    """A line for each GPU that the driver sees."""
    return run_and_read_all(run_lambda, "nvidia-smi -L")


def get_running_cuda_version(run_lambda):
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_cudnn_version(run_lambda):
    return None


def get_pip_packages(run_lambda, patterns=None):
    """('pip3', lines 'name==version') of the packages whose names contain one of `patterns`."""
    patterns = _PACKAGES if patterns is None else patterns
    out = run_and_read_all(run_lambda, [sys.executable, "-mpip", "list", "--format=freeze"]) or ""
    lines = [line for line in out.splitlines() if any(p in line for p in patterns)]
    return "pip3", "\n".join(lines)


def get_env_info():
    """What is known, by torch's names of its fields."""
    from types import SimpleNamespace

    gpu = tenon.cuda.is_available()
    return SimpleNamespace(
        torch_version=tenon.__version__, is_debug_build="False", cuda_compiled_version="N/A",
        gcc_version=get_gcc_version(run), clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run), os=get_os(run), libc_version=get_libc_version(),
        python_version=sys.version.replace("\n", " "), python_platform=get_python_platform(),
        is_cuda_available=str(gpu), cuda_runtime_version=get_running_cuda_version(run),
        nvidia_driver_version=get_nvidia_driver_version(run), nvidia_gpu_models=get_gpu_info(run),
        cudnn_version=get_cudnn_version(run), cpu_info=get_cpu_info(run),
        pip_version="pip3", pip_packages=get_pip_packages(run)[1])


def get_pretty_env_info():
    """Lines of text."""
    from tenon.backends.cpu import get_cpu_capability
    return "\n".join((
        "Tenon version: %s" % tenon.__version__,
        "Python version: %s" % sys.version.replace("\n", " "),
        "Python platform: %s" % platform.platform(),
        "OS: %s %s" % (platform.system(), platform.release()),
        "CPU: %s, %s" % (platform.machine(), get_cpu_capability()),
        "Threads: %d" % tenon.get_num_threads(),
        "CUDA available: %s" % tenon.cuda.is_available(),
    ))


def main():
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
