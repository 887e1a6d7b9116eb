# SPDX-License-Identifier: MIT
"""A setting that scripts touch."""

fill_uninitialized_memory = True
