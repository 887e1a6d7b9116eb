# SPDX-License-Identifier: MIT
"""Operators of an ONNX version, which packages that define exporters import. Tenon writes no ONNX: asking for one says so."""

from tenon.onnx import OnnxExporterError


def __getattr__(name):
    if name[:2] == "__":
        raise AttributeError("module %r has no attribute %r" % (__name__, name))

    def refuse(*args, **kwargs):
        raise OnnxExporterError("Tenon writes no ONNX files: save the state_dict, and export it with PyTorch")

    return refuse
