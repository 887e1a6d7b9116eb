# SPDX-License-Identifier: MIT
"""ONNX: Tenon writes none, and says so."""

__all__ = ["OperatorExportTypes", "TrainingMode", "dynamo_export", "export", "is_in_onnx_export"]


class OnnxExporterError(RuntimeError):
    """Export failed."""


class TrainingMode:
    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes:
    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


def is_in_onnx_export():
    return False


def export(model=None, args=(), f=None, **options):
    raise OnnxExporterError("Tenon writes no ONNX files: save the state_dict, and export it with PyTorch")


def dynamo_export(model, *args, **options):
    export(model)


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Nothing is exported, so nothing is registered."""
