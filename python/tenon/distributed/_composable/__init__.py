# SPDX-License-Identifier: MIT
"""The older path of wrapping a module for several processes."""
