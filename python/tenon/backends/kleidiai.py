# SPDX-License-Identifier: MIT
"""KleidiAI: not used."""


def is_available():
    return False
