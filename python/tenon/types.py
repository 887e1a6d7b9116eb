# SPDX-License-Identifier: MIT
"""Names of types for annotations."""

from builtins import bool as _bool, bytes as _bytes, float as _float, int as _int, str as _str
from typing import Any, List, Sequence, Tuple, Union

import tenon
from tenon import Size, Tensor, device as _device, dtype as _dtype  # noqa: F401

Number = Union[_int, _float, _bool]
_Number = (_int, _float, _bool)
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_TensorOrTensorsOrGradEdge = Union[Tensor, Sequence[Tensor]]
_size = Union[Size, List[_int], Tuple[_int, ...]]
_layout = type(tenon.strided)
Device = Union[_device, _str, _int, None]
FileLike = Union[_str, _bytes, Any]
Storage = Any
IntLikeType = _int
FloatLikeType = _float
BoolLikeType = _bool

__all__ = ["Any", "BoolLikeType", "Device", "FileLike", "FloatLikeType", "IntLikeType", "List", "Number", "Sequence",
           "Size", "Storage", "Tensor", "Tuple", "Union"]
_dispatchkey = _str
