# SPDX-License-Identifier: MIT
"""cuSPARSELt: not used."""


def is_available():
    return False


def version():
    return None
