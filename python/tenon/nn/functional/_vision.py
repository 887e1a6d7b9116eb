# SPDX-License-Identifier: MIT
"""Resizing, sampling at a grid, padding, and cutting images into patches."""

import math
import warnings

import tenon
from tenon.nn.functional._shared import op, overridable
from tenon.nn.functional._pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from tenon.nn.modules.utils import _pair

_nn = tenon._C._nn

pixel_shuffle = op("pixel_shuffle")
pixel_unshuffle = op("pixel_unshuffle")
channel_shuffle = op("channel_shuffle")
native_channel_shuffle = op("native_channel_shuffle", channel_shuffle)

# (dimensions of the input, mode) -> (operator, whether it takes align_corners)
_RESIZE = {
    (3, "nearest"): ("upsample_nearest1d", False),
    (4, "nearest"): ("upsample_nearest2d", False),
    (5, "nearest"): ("upsample_nearest3d", False),
    (3, "nearest-exact"): ("_upsample_nearest_exact1d", False),
    (4, "nearest-exact"): ("_upsample_nearest_exact2d", False),
    (5, "nearest-exact"): ("_upsample_nearest_exact3d", False),
    (3, "linear"): ("upsample_linear1d", True),
    (4, "bilinear"): ("upsample_bilinear2d", True),
    (5, "trilinear"): ("upsample_trilinear3d", True),
    (4, "bicubic"): ("upsample_bicubic2d", True),
}
_NEEDS = {"linear": 3, "bilinear": 4, "trilinear": 5}
_ALIGNED = ("linear", "bilinear", "bicubic", "trilinear")


def _sizes_of(input, dim, size, scale_factor):
    """(output sizes or None, scale factors or None), one for each spatial dimension."""
    given = list(input.shape[2:])
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return [size] * dim, None
        if len(size) != dim:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{given} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and output "
                "size in (o1, o2, ...,oK) format."
            )
        if not all(isinstance(x, int) or hasattr(x, "__index__") for x in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with "
                f"types {[type(x) for x in size]}"
            )
        return list(size), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if not isinstance(scale_factor, (list, tuple)):
        return None, [float(scale_factor)] * dim
    if len(scale_factor) != dim:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{given} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
            "and scale_factor in (s1, s2, ...,sK) format."
        )
    return None, [float(s) for s in scale_factor]


@overridable
def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resize the spatial dimensions of (N, C, *) to `size` or by `scale_factor`, with the method `mode`."""
    if mode in _ALIGNED:
        align_corners = False if align_corners is None else align_corners
    elif align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    dim = input.dim() - 2
    output_size, scales = _sizes_of(input, dim, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if output_size is None and (recompute_scale_factor or mode == "area"):
        output_size = [math.floor(float(input.size(i + 2)) * s) for i, s in enumerate(scales)]
        scales = None
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if mode == "area" and input.dim() in (3, 4, 5):
        pool = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[input.dim() - 3]
        return pool(input, output_size)
    if antialias:
        run = op(f"_upsample_{mode}2d_aa")
        if run is None:
            raise NotImplementedError(f"interpolate: antialias with mode '{mode}' is not implemented")
        return run(input, output_size, align_corners, scales)
    found = _RESIZE.get((input.dim(), mode))
    if found is not None:
        run = getattr(_nn, found[0])
        return run(input, output_size, align_corners, scales) if found[1] else run(input, output_size, scales)
    if input.dim() in (3, 4, 5) and mode in _NEEDS:
        raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_NEEDS[mode]}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear | "
        f"bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
    )


def _deprecated(name):
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The old name of `interpolate`."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` with mode 'nearest'."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` with mode 'bilinear' and aligned corners."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_GRID_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_GRID_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def _warn_align():
    warnings.warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
        stacklevel=4,
    )


@overridable
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Values of (N, C, H, W) at the places `grid` (N, H', W', 2), which run from -1 to 1: (N, C, H', W')."""
    if mode not in _GRID_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _GRID_PADDING:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        _warn_align()
        align_corners = False
    return tenon.grid_sampler(input, grid, _GRID_MODES[mode], _GRID_PADDING[padding_mode], align_corners)


@overridable
def affine_grid(theta, size, align_corners=None):
    """The grid for `grid_sample` that maps an image of `size` by the affine matrices `theta` (N, 2, 3) or (N, 3, 4)."""
    if align_corners is None:
        _warn_align()
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    n = len(size) - 2
    if theta.dim() != 3 or theta.shape[-2] != n or theta.shape[-1] != n + 1:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
        )
    if align_corners and min(size[-n:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an "
            "intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=3,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return tenon.affine_grid_generator(theta, size, align_corners)


@overridable
def pad(input, pad, mode="constant", value=None):
    """Pad by pairs (before, after) from the last dimension on: 'constant', 'reflect', 'replicate' or 'circular'."""
    return _nn.pad(input, pad, mode, value)


@overridable
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The patches of (N, C, H, W) as columns: (N, C * kernel, L)."""
    return _nn.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


@overridable
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns of patches (N, C * kernel, L) summed back into an image of `output_size`."""
    sizes = (_pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
    return _nn.col2im(input, *sizes)
