# SPDX-License-Identifier: MIT
"""MIOpen: not used."""

immediate = False
