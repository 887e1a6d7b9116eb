# SPDX-License-Identifier: MIT
"""torch.cuda.sparse.FloatTensor and its like: types that no tensor here has."""

from tenon.cuda import _LEGACY, _LegacyTensor


def __getattr__(name):
    if name in _LEGACY:
        value = globals()[name] = _LegacyTensor("sparse." + name)
        return value
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
