# SPDX-License-Identifier: MIT
"""What this processor can do."""


def get_cpu_capability():
    """The widest vectors that this processor has, in PyTorch's words."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = next((line.split() for line in file if line.startswith("flags")), [])
    except OSError:
        flags = []
    if "avx512f" in flags and "avx512vl" in flags:
        return "AVX512"
    return "AVX2" if "avx2" in flags else "DEFAULT"
