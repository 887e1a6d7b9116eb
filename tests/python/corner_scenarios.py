# SPDX-License-Identifier: MIT
"""The numeric corners, one function each, for PyTorch (golden/make_corners.py) and for Tenon (test_numeric_corners.py). What each
file has is listed at its top: corner by corner, with the name of its test."""

import corners_index_cases
import corners_number_cases
import corners_softmax_cases
from corner_kit import CORNERS, run  # noqa: F401

FILES = (corners_softmax_cases, corners_number_cases, corners_index_cases)


def listed():
    """The names of tests in the lists at the top of the files."""
    names = []
    for file in FILES:
        for line in file.__doc__.splitlines()[2:]:
            words = line.split()
            if words and "_" in words[-1] and len(line) > 56 and line[55] == " ":
                names.append(words[-1])
    return names
