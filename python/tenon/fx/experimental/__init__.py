# SPDX-License-Identifier: MIT
"""What works on symbolic shapes. Tenon's shapes are numbers, so that each question has its plain answer."""
