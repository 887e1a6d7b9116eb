# SPDX-License-Identifier: MIT
"""The operators of torchvision's compiled library, which is code for PyTorch's own runtime: boxes that suppress others,
pooling of regions, convolutions whose points move. Written with operators, so that gradients come with them. Loaded when
torchvision loads its library."""

import tenon
from tenon import _ops_later

__all__ = ["define"]

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
    "roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) "
    "-> (Tensor, Tensor)",
    "ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio) -> (Tensor, Tensor)",
    "ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) "
    "-> (Tensor, Tensor)",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, "
    "SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
    "bool use_mask) -> Tensor",
    "_cuda_version() -> int",
    # Names that torchvision registers shapes for; gradients come from the operators above.
    "_roi_align_backward(Tensor grad) -> Tensor", "_roi_pool_backward(Tensor grad) -> Tensor",
    "_ps_roi_align_backward(Tensor grad) -> Tensor", "_ps_roi_pool_backward(Tensor grad) -> Tensor",
    "_deform_conv2d_backward(Tensor grad) -> Tensor",
)


def nms(dets, scores, iou_threshold):
    """The boxes, best first, that no better one covers by more than the threshold."""
    if dets.dim() != 2 or dets.shape[1] != 4:
        raise RuntimeError("boxes should be a 2d tensor with 4 elements in dimension 1, got %s" % (tuple(dets.shape),))
    with tenon.no_grad():
        order = scores.argsort(descending=True, stable=True)
        x1, y1, x2, y2 = dets[order].unbind(1)
        areas = (x2 - x1) * (y2 - y1)
        alive, kept = tenon.ones(order.shape[0], dtype=tenon.bool), []
        at, n = 0, order.shape[0]
        while at < n:
            kept.append(at)
            width = (tenon.minimum(x2[at], x2[at + 1:]) - tenon.maximum(x1[at], x1[at + 1:])).clamp(min=0)
            height = (tenon.minimum(y2[at], y2[at + 1:]) - tenon.maximum(y1[at], y1[at + 1:])).clamp(min=0)
            both = width * height
            alive[at + 1:] &= ~(both / (areas[at] + areas[at + 1:] - both) > iou_threshold)
            left = alive[at + 1:].nonzero()
            at = n if left.shape[0] == 0 else at + 1 + int(left[0])
        return order[tenon.tensor(kept, dtype=tenon.int64)]


def _weights(start, size, bins, grid, length):
    """(K, bins, length): how much each row of a picture counts for each bin of each region."""
    most = int(grid.max()) if grid.numel() else 1
    bin_size = size / bins
    step = tenon.arange(most, dtype=start.dtype)
    inside = step < grid[:, None]
    at = (start[:, None, None] + tenon.arange(bins, dtype=start.dtype)[None, :, None] * bin_size[:, None, None]
          + ((step + 0.5) * (bin_size / grid)[:, None])[:, None, :])
    good = inside[:, None, :] & (at >= -1) & (at <= length)
    at = at.clamp(min=0)
    low = at.to(tenon.int64)
    last = low >= length - 1
    low = tenon.where(last, tenon.full_like(low, length - 1), low)
    high = tenon.where(last, low, low + 1)
    part = tenon.where(last, tenon.zeros_like(at), at - low)
    share = good.to(start.dtype) / grid[:, None, None]
    out = tenon.zeros((start.shape[0], bins, length), dtype=start.dtype)
    return out.scatter_add(2, low, (1 - part) * share).scatter_add(2, high, part * share)


def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    """The mean of points of each bin of each region. A point lies between four pixels, and what each counts is a product
    of one weight for its row and one for its column: a region is two matrix products."""
    if rois.dim() != 2 or rois.shape[1] != 5:
        raise RuntimeError("rois must have shape as Tensor[K, 5]")
    channels, height, width = input.shape[1:]
    with tenon.no_grad():
        boxes = rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
        x, y, w, h = boxes[:, 0], boxes[:, 1], boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
        if not aligned:
            w, h = w.clamp(min=1), h.clamp(min=1)
        if sampling_ratio > 0:
            rows = columns = tenon.full_like(h, sampling_ratio)
        else:
            rows, columns = (h / pooled_height).ceil().clamp(min=1), (w / pooled_width).ceil().clamp(min=1)
        down, across = _weights(y, h, pooled_height, rows, height), _weights(x, w, pooled_width, columns, width)
        image = rois[:, 0].to(tenon.int64)
    out = []
    for start in range(0, rois.shape[0], 64):  # so many at once that the products in between stay small
        part = slice(start, start + 64)
        made = [None] * image[part].shape[0]
        for number in image[part].unique().tolist():
            which = (image[part] == number).nonzero().reshape(-1)
            lines = (down[part][which].reshape(-1, height) @ input[number].permute(1, 0, 2).reshape(height, -1))
            lines = lines.reshape(which.shape[0], pooled_height * channels, width)
            pooled = lines @ across[part][which].mT
            pooled = pooled.reshape(-1, pooled_height, channels, pooled_width).permute(0, 2, 1, 3)
            for k, one in zip(which.tolist(), pooled.unbind(0)):
                made[k] = one
        out.append(tenon.stack(made))
    return tenon.cat(out) if out else input.new_zeros((0, channels, pooled_height, pooled_width))


def _bounds(start, bins, size, length):
    return [(min(max(start + int(i * size / bins // 1), 0), length),
             min(max(start - int(-(i + 1) * size / bins // 1), 0), length)) for i in range(bins)]


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """The largest value of each bin of each region, and where it is."""
    channels, height, width = input.shape[1:]
    out, where = [], []
    for number, *box in rois.tolist():
        x1, y1, x2, y2 = (int(value * spatial_scale + 0.5) if value >= 0 else -int(-value * spatial_scale + 0.5)
                          for value in box)
        picture = input[int(number)]
        for top, bottom in _bounds(y1, pooled_height, max(y2 - y1 + 1, 1), height):
            for left, right in _bounds(x1, pooled_width, max(x2 - x1 + 1, 1), width):
                if bottom <= top or right <= left:
                    out.append(picture.new_zeros(channels))
                    where.append(tenon.full((channels,), -1, dtype=tenon.int64))
                    continue
                most, at = picture[:, top:bottom, left:right].reshape(channels, -1).max(1)
                out.append(most)
                where.append((at // (right - left) + top) * width + at % (right - left) + left)
    shape = (rois.shape[0], pooled_height, pooled_width, channels)
    if not out:
        return input.new_zeros((0, channels) + shape[1:3]), tenon.zeros((0, channels) + shape[1:3], dtype=tenon.int32)
    return (tenon.stack(out).reshape(shape).permute(0, 3, 1, 2).contiguous(),
            tenon.stack(where).reshape(shape).permute(0, 3, 1, 2).to(tenon.int32).contiguous())


def deform_conv2d(input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
                  offset_groups, use_mask):
    """A convolution each of whose points is read beside its place, by an offset, and counts as a mask says."""
    n, channels, height, width = input.shape
    out_channels, _, kh, kw = weight.shape
    oh = (height + 2 * pad_h - dilation_h * (kh - 1) - 1) // stride_h + 1
    ow = (width + 2 * pad_w - dilation_w * (kw - 1) - 1) // stride_w + 1
    moved = offset.reshape(n, offset_groups, kh * kw, 2, oh, ow)
    options = {"dtype": input.dtype}
    base_y = (tenon.arange(oh, **options) * stride_h - pad_h)[None, :, None] + (
        tenon.arange(kh, **options) * dilation_h).repeat_interleave(kw)[:, None, None]
    base_x = (tenon.arange(ow, **options) * stride_w - pad_w)[None, None, :] + (
        tenon.arange(kw, **options) * dilation_w).repeat(kh)[:, None, None]
    y, x = base_y + moved[:, :, :, 0], base_x + moved[:, :, :, 1]
    inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    pixels = input.reshape(n, offset_groups, channels // offset_groups, height * width)
    top, left = y.detach().floor(), x.detach().floor()
    columns = 0
    for dy in (0, 1):
        for dx in (0, 1):
            row, column = top + dy, left + dx
            good = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            share = (1 - (y - row).abs()) * (1 - (x - column).abs()) * good.to(input.dtype)
            index = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).to(tenon.int64)
            index = index.reshape(n, offset_groups, 1, -1).expand(-1, -1, pixels.shape[2], -1)
            values = pixels.gather(3, index).reshape((n, offset_groups, -1) + tuple(share.shape[2:]))
            columns = columns + values * share.unsqueeze(2)
    if use_mask:
        columns = columns * mask.reshape(n, offset_groups, 1, kh * kw, oh, ow)
    columns = columns.reshape(n, groups, channels // groups * kh * kw, oh * ow)
    made = weight.reshape(groups, out_channels // groups, -1) @ columns
    return made.reshape(n, out_channels, oh, ow) + bias.reshape(1, -1, 1, 1)


def _cuda_version():
    return -1


_KERNELS = {function.__name__: function for function in (nms, roi_align, roi_pool, deform_conv2d, _cuda_version)}


def define():
    """Make the operators, once."""
    _ops_later.define_all("torchvision", ((schema, _KERNELS.get(schema.partition("(")[0])) for schema in _SCHEMAS))
