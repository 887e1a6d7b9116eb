# SPDX-License-Identifier: MIT
"""Operators of an ONNX version, which packages that define exporters import. Tenon writes no ONNX: asking for one says so."""

from tenon.onnx._refuse import refuse_all

__getattr__ = refuse_all(__name__)
