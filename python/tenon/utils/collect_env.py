# SPDX-License-Identifier: MIT
"""What a report of a problem should say about the machine."""

import platform
import sys

import tenon


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
