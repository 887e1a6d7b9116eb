# SPDX-License-Identifier: MIT
"""NNPACK: not used."""


def is_available():
    return False


def set_flags(_enabled):
    return (False,)
