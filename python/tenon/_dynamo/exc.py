# SPDX-License-Identifier: MIT
"""Exceptions of TorchDynamo, for those who catch them. BackendCompilerFailed is raised."""


class TorchDynamoException(RuntimeError):
    pass


class InternalTorchDynamoError(TorchDynamoException):
    pass


class Unsupported(TorchDynamoException):
    pass


class UserError(Unsupported):
    pass


class TorchRuntimeError(TorchDynamoException):
    pass


class BackendCompilerFailed(TorchDynamoException):
    pass


class RecompileError(TorchDynamoException):
    pass


class FailOnRecompileLimitHit(TorchDynamoException):
    pass


class RecompileLimitExceeded(Unsupported):
    pass


class InvalidBackend(TorchDynamoException):
    pass


class ResetRequired(TorchDynamoException):
    pass


class SkipFrame(TorchDynamoException):
    pass
