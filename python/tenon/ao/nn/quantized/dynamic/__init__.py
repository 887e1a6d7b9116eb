# SPDX-License-Identifier: MIT
"""What quantize_dynamic makes of a linear layer: its weights have 8 bits, or 16, and its input is quantized in each call."""

import tenon
from tenon import nn

__all__ = ["Linear"]

_MOST = 127  # the largest number of an input: one bit less than there is, so that sums of products fit
_EXACT = 1024  # products of so many numbers add up exactly in float32


def _input_parameters(low, high):
    """Scale and zero point of numbers between these, of which 0 is one."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / _MOST
    if scale == 0.0 or 1.0 / scale == float("inf"):
        return 0.1, 0
    from_low, from_high = -low / scale, _MOST - high / scale
    # the one that is off by less when it is rounded
    zero = from_low if abs(low / scale) < _MOST + abs(high / scale) else from_high
    return scale, int(min(max(round(zero), 0), _MOST))


class Linear(nn.Module):
    """A linear layer of quantized weights. In memory they are whole numbers of 8 bits and a scale, or halves."""

    def __init__(self, in_features, out_features, bias_=True, dtype=tenon.qint8):
        super().__init__()
        if dtype not in (tenon.qint8, tenon.float16):
            raise RuntimeError("Unsupported dtype specified for dynamic quantized Linear!")
        self.in_features, self.out_features, self.dtype = in_features, out_features, dtype
        kind = tenon.int8 if dtype is tenon.qint8 else dtype
        self.register_buffer("weight_values", tenon.zeros(out_features, in_features, dtype=kind))
        self.register_buffer("weight_scale", tenon.ones((), dtype=tenon.float64))
        self.register_buffer("weight_zero_point", tenon.zeros((), dtype=tenon.int64))
        self.register_buffer("bias_values", tenon.zeros(out_features) if bias_ else None)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        shown = "in_features=%d, out_features=%d, dtype=%s" % (self.in_features, self.out_features, self.dtype)
        return shown + ", qscheme=%s" % tenon.per_tensor_affine if self.dtype is tenon.qint8 else shown

    def weight(self):
        """The weights as ordinary numbers."""
        if self.dtype is tenon.float16:
            return self.weight_values.float()
        return (self.weight_values.float() - self.weight_zero_point) * self.weight_scale.float()

    def bias(self):
        return self.bias_values

    def set_weight_bias(self, w, b):
        """Take weights and a bias of ordinary numbers; scale and zero point are set before."""
        if self.dtype is tenon.float16:
            self.weight_values = w.detach().clamp(-65504.0, 65504.0).half()
        else:
            whole = (w.detach() * self.weight_scale.float().reciprocal()).round() + self.weight_zero_point
            self.weight_values = whole.clamp(-128, 127).to(tenon.int8)
        self.bias_values = None if b is None else b.detach().clone()

    def forward(self, x):
        if x.dtype is not tenon.float32:
            raise RuntimeError("expected scalar type Float but found %s" % x.type().rsplit(".", 1)[-1][:-6])
        if self.dtype is tenon.float16 or x.numel() == 0:
            return nn.functional.linear(x, self.weight(), self.bias_values)
        low, high = x.detach().aminmax()
        scale, zero = _input_parameters(low.item(), high.item())
        kind = tenon.float32 if self.in_features <= _EXACT else tenon.float64
        with tenon.no_grad():
            given = ((x * (1.0 / scale)).round() + zero).clamp(0, _MOST) - zero
            weights = self.weight_values.to(kind) - self.weight_zero_point
            made = (given.to(kind) @ weights.mT).to(tenon.float32) * (scale * self.weight_scale.item())
            return made if self.bias_values is None else made + self.bias_values

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a linear one, whose `qconfig` says how weights are observed."""
        from tenon.ao.quantization import default_dynamic_qconfig
        if not isinstance(mod, nn.Linear):
            raise AssertionError("nn.quantized.dynamic.Linear.from_float only works for nn.Linear, but got %s" % type(mod))
        config = getattr(mod, "qconfig", None) or default_dynamic_qconfig
        observer = config.weight()
        observer(mod.weight.detach())
        made = cls(mod.in_features, mod.out_features, mod.bias is not None, observer.dtype)
        if made.dtype is tenon.qint8:
            scale, zero = observer.calculate_qparams()
            made.weight_scale.fill_(scale.item())
            made.weight_zero_point.fill_(zero.item())
        made.set_weight_bias(mod.weight.float(), mod.bias)
        return made.train(mod.training)
