# SPDX-License-Identifier: MIT
"""What is compared between the libraries in `nn`: layers and functions as text, run the same way on either library.

A case is an expression: a layer (`Linear(3, 4)`), which is called with the inputs, or a call of a function (`F.relu(x[0])`). Inputs
are described by text: `f2,3` is a float tensor of that shape, `p` has values in (0, 1), `i5<7` integers below 7, `b` booleans,
`s` the signs 1 and -1, `z` zeros. All values come from formulas, so that no random generator needs to agree.
"""

import math
import warnings

import numpy as np


def _values(shape, seed):
    n = math.prod(shape)
    k = np.arange(n, dtype=np.float64)
    return (np.sin(k * 12.9898 + seed * 78.233) * 43758.5453 % 1.0).reshape(shape)


def array(spec, seed):
    """The NumPy array that an input's text describes."""
    kind, rest = spec[0], spec[1:]
    rest, _, below = rest.partition("<")
    shape = tuple(int(s) for s in rest.split(",") if s)
    u = _values(shape, seed)
    if kind == "f":
        return ((u - 0.5) * 4).astype(np.float32)
    if kind == "p":
        return (u * 0.9 + 0.05).astype(np.float32)
    if kind == "i":
        return np.floor(u * int(below)).astype(np.int64)
    if kind == "b":
        return u > 0.6
    if kind == "s":
        return np.where(u > 0.5, 1.0, -1.0).astype(np.float32)
    if kind == "z":
        return np.zeros(shape, dtype=np.float32)
    raise ValueError(spec)


def tensor(lib, a):
    """An array as a tensor of either library."""
    kinds = {"f": lib.float32, "i": lib.int64, "b": lib.bool}
    return lib.tensor(a.tolist(), dtype=kinds[a.dtype.kind]).reshape(a.shape)


def plain(text):
    """A text with the library's own name made the common one."""
    return text.replace("tenon", "torch")


def numbers(value):
    """A tensor as an array of float64 or int64."""
    kind = np.int64 if not (value.is_floating_point() or value.is_complex()) else np.float64
    return np.array(value.detach().tolist(), dtype=kind).reshape(tuple(value.shape))


def tensors_in(lib, value):
    if isinstance(value, lib.Tensor):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from tensors_in(lib, v)
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from tensors_in(lib, v)


def fill(lib, module):
    """Give every parameter values from a formula, by its place."""
    with lib.no_grad():
        for i, p in enumerate(module.parameters()):
            if type(p).__name__.startswith("Uninit"):
                continue
            p.copy_(tensor(lib, ((_values(tuple(p.shape), i + 100) - 0.5)).astype(np.float32)))


def run(lib, nn, expr, inputs="", call=None, train=True):
    """What a case gives: {"repr", "state", "out<i>", "grad<i>", "param:<name>"} or {"error"}."""
    x = [tensor(lib, array(s, i + 1)) for i, s in enumerate(inputs.split(";"))] if inputs else []
    for t, s in zip(x, inputs.split(";")):
        t.requires_grad_(s[0] in "fpz")
    F = nn.functional
    space = {"nn": nn, "F": F, "x": x, "lib": lib, "torch": lib, "math": math, "fill": lambda m: fill(lib, m)}
    got = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if expr.startswith("F.") or expr.startswith("nn."):
                out = eval(expr, space)
                module = None
            else:
                module = eval("nn." + expr, space)
                got["repr"] = plain(repr(module))
                fill(lib, module)
                module.train(train)
                space["m"] = module
                out = eval(call or "m(*x)", space)
                if module.__class__.__name__ not in ("MaxUnpool1d",):
                    got["state"] = [[k, list(v.shape)] for k, v in module.state_dict().items()]
            found = list(tensors_in(lib, out))
            total = None
            for i, t in enumerate(found):
                got[f"out{i}"] = numbers(t)
                if t.requires_grad:
                    weight = tensor(lib, array("f" + ",".join(map(str, t.shape)), 50 + i))
                    term = (t * weight).sum()
                    total = term if total is None else total + term
            if total is not None:
                total.backward()
                for i, t in enumerate(x):
                    if t.requires_grad and t.grad is not None:
                        got[f"grad{i}"] = numbers(t.grad)
                if module is not None:
                    for name, p in module.named_parameters():
                        if p.grad is not None:
                            got["param:" + name] = numbers(p.grad)
                    for name, b in module.named_buffers():
                        got["buffer:" + name] = numbers(b)
        except Exception as e:
            got = {"error": plain(f"{type(e).__name__}: {e}")}
    return got


CASES = []


def case(exprs, inputs="", call=None, train=True):
    for expr in exprs.strip().split("\n"):
        CASES.append((expr.strip(), inputs, call, train))


# ---- activations
case(
    """Threshold(0.1, 20)
ReLU()
Hardtanh()
Hardtanh(-0.5, 0.5)
ReLU6()
Sigmoid()
Hardsigmoid()
Tanh()
SiLU()
Mish()
Hardswish()
ELU()
ELU(0.5)
CELU(1.3)
SELU()
GLU()
GLU(0)
GELU()
GELU('tanh')
Hardshrink()
Hardshrink(0.2)
LeakyReLU()
LeakyReLU(0.3)
LogSigmoid()
Softplus()
Softplus(2.0, 1.0)
Softshrink()
Softshrink(0.2)
PReLU()
PReLU(4)
Softsign()
Tanhshrink()
Softmin(1)
Softmax(1)
Softmax(-1)
Softmax()
LogSoftmax(0)
LogSoftmax()
Identity()
Identity(3, foo=1)""",
    "f2,4",
)
case("RReLU()\nRReLU(0.1, 0.3)\nDropout(0.3)\nAlphaDropout(0.2)\nDropout1d()\nFeatureAlphaDropout()", "f2,3,4", train=False)
case("Dropout2d(0.3)\nDropout3d(0.3)\nDropout(1.0)", "f2,3,4,4", train=False)
case("ReLU(inplace=True)\nELU(inplace=True)\nHardtanh(inplace=True)\nSiLU(inplace=True)\nMish(inplace=True)", "f2,4", "m(x[0] * 1)")
case("LeakyReLU(inplace=True)\nSELU(inplace=True)\nCELU(inplace=True)\nReLU6(True)\nHardswish(True)\nThreshold(0, 1, True)", "f2,4", "m(x[0] * 1)")
case("Softmax2d()", "f2,3,4,4")
case("Softmax2d()", "f2,3")
# ---- linear and shape
case("Linear(3, 4)\nLinear(3, 4, bias=False)", "f2,3")
case("Linear(3, 4)", "f2,5,3")
case("Linear(3, 4)", "f3")
case("Linear(3, 4)", "f2,4")
case("Bilinear(3, 4, 2)\nBilinear(3, 4, 2, bias=False)", "f5,3;f5,4")
case("Flatten()\nFlatten(0)\nFlatten(2, -1)", "f2,3,4")
case("Unflatten(1, (2, 2))\nUnflatten(1, [2, -1])", "f3,4")
case("Unflatten(1, 4)\nUnflatten(1.0, (2, 2))\nUnflatten(1, (2, 2.0))", "f3,4")
case("Embedding(7, 3)\nEmbedding(7, 3, padding_idx=2)\nEmbedding(7, 3, padding_idx=-1)\nEmbedding(7, 3, scale_grad_by_freq=True)", "i2,4<7")
case("Embedding(7, 3, max_norm=0.5)", "i2,4<7")
case("Embedding(7, 3, padding_idx=9)\nEmbedding(7, 3, padding_idx=-9)", "i2,4<7")
case("Embedding(3, 3)", "i2,4<7")
case("EmbeddingBag(7, 3)\nEmbeddingBag(7, 3, mode='sum')\nEmbeddingBag(7, 3, mode='max')\nEmbeddingBag(7, 3, padding_idx=1)", "i2,4<7")
case("EmbeddingBag(7, 3, mode='sum', padding_idx=1)\nEmbeddingBag(7, 3, mode='max', padding_idx=2)", "i2,4<7")
case("EmbeddingBag(7, 3, mode='sum')\nEmbeddingBag(7, 3)", "i6<7", "m(x[0], torch.tensor([0, 2, 2, 5]))")
case("EmbeddingBag(7, 3, mode='sum', include_last_offset=True)", "i6<7", "m(x[0], torch.tensor([0, 2, 6]))")
case("EmbeddingBag(7, 3, mode='sum')", "i2,3<7;f2,3", "m(x[0], per_sample_weights=x[1])")
case("EmbeddingBag(7, 3)", "i2,3<7;f2,3", "m(x[0], per_sample_weights=x[1])")
case("EmbeddingBag(7, 3)", "i6<7")
# ---- convolutions
case("Conv1d(3, 4, 3)\nConv1d(3, 6, 3, stride=2, padding=1, groups=3)\nConv1d(3, 4, 3, padding='same', dilation=2)", "f2,3,9")
case("Conv1d(3, 4, 2, padding='same')\nConv1d(3, 4, 3, padding='valid')\nConv1d(3, 4, 3, padding=2, padding_mode='circular')", "f2,3,9")
case("Conv1d(3, 4, 3, bias=False, padding=2, padding_mode='reflect')\nConv1d(3, 4, 4, padding='same', padding_mode='replicate')", "f2,3,9")
case("Conv1d(3, 4, 3)", "f3,9")
case("Conv2d(3, 4, 3)\nConv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))\nConv2d(3, 3, 3, groups=3, bias=False)", "f2,3,7,6")
case("Conv2d(3, 4, 3, padding=1, padding_mode='reflect')\nConv2d(3, 4, (3, 2), padding=(1, 2), padding_mode='circular')", "f2,3,7,6")
case("Conv2d(3, 4, (3, 4), padding='same', padding_mode='reflect')\nConv2d(3, 4, 3, padding='same')", "f2,3,7,6")
case("Conv2d(3, 4, 3)", "f3,7,6")
case("Conv3d(2, 3, 2)\nConv3d(2, 4, (2, 3, 1), stride=(1, 2, 1), padding=(1, 0, 0), groups=2)", "f1,2,4,5,3")
case("Conv3d(2, 3, 3, padding=1, padding_mode='replicate')", "f1,2,4,5,3")
case("ConvTranspose1d(3, 4, 3)\nConvTranspose1d(3, 6, 3, stride=2, padding=1, output_padding=1, groups=3)", "f2,3,5")
case("ConvTranspose1d(3, 4, 3, stride=2)", "f2,3,5", "m(x[0], output_size=[12])")
case("ConvTranspose1d(3, 4, 3, stride=2)", "f2,3,5", "m(x[0], output_size=[14])")
case("ConvTranspose1d(3, 4, 3, stride=2)", "f2,3,5", "m(x[0], output_size=[2, 3, 4, 5])")
case("ConvTranspose2d(3, 4, 3)\nConvTranspose2d(3, 4, (3, 2), stride=2, padding=(1, 0), dilation=(1, 2), bias=False)", "f2,3,4,3")
case("ConvTranspose3d(2, 3, 2, stride=2)", "f1,2,2,3,2")
case("Conv2d(3, 4, 3, groups=2)\nConv2d(4, 3, 3, groups=2)\nConv2d(3, 4, 3, groups=0)\nConv2d(3, 4, 3, stride=2, padding='same')")
case("ConvTranspose2d(3, 4, 3, padding_mode='reflect')")
case("Conv2d(3, 4, 3)", "f2,5,7,6")
case("Unfold(2)\nUnfold((2, 3), dilation=1, padding=1, stride=2)", "f2,3,4,6")
case("Fold((4, 5), 2)", "f2,12,12")
# ---- normalizations
NORM1 = "BatchNorm1d(3)\nBatchNorm1d(3, affine=False)\nBatchNorm1d(3, track_running_stats=False)\nBatchNorm1d(3, momentum=None)\nBatchNorm1d(3, eps=0.1, momentum=0.5)"
case(NORM1, "f4,3")
case(NORM1, "f4,3,5")
case(NORM1, "f4,3", train=False)
case("BatchNorm1d(3)", "f4,3,2,2")
case("BatchNorm1d(3)", "f1,3")
case("BatchNorm2d(3)\nSyncBatchNorm(3)", "f4,3,2,2", train=False)
case("BatchNorm2d(3)", "f4,3,2,2")
case("BatchNorm2d(3)", "f4,3")
case("BatchNorm3d(3)", "f2,3,2,2,2")
case("InstanceNorm1d(3)\nInstanceNorm1d(3, affine=True)\nInstanceNorm1d(3, affine=True, track_running_stats=True)\nInstanceNorm1d(4)\nInstanceNorm1d(4, affine=True)", "f4,3,5")
case("InstanceNorm1d(3)", "f3,5")
case("InstanceNorm2d(3)\nInstanceNorm2d(3, track_running_stats=True)", "f2,3,4,4")
case("InstanceNorm2d(3, track_running_stats=True)", "f2,3,4,4", train=False)
case("InstanceNorm3d(3)", "f2,3,2,2,2")
case("InstanceNorm2d(3)", "f2,3")
case("LayerNorm(4)\nLayerNorm(4, elementwise_affine=False)\nLayerNorm(4, bias=False)\nLayerNorm([3, 4], eps=0.1)\nRMSNorm(4)\nRMSNorm((3, 4), eps=1e-3)\nRMSNorm(4, elementwise_affine=False)", "f2,3,4")
case("LayerNorm(5)", "f2,3,4")
case("GroupNorm(2, 4)\nGroupNorm(4, 4, affine=False)\nGroupNorm(1, 4, eps=0.1)\nGroupNorm(3, 4)", "f2,4,3")
case("LocalResponseNorm(2)\nLocalResponseNorm(3, 0.5, 0.6, 2.0)", "f2,4,3")
case("LocalResponseNorm(3)", "f2,4,3,3")
case("CrossMapLRN2d(5, 0.5, 0.6, 2)", "f2,3,3,3", "m(x[0].detach())")
# ---- pooling
case("MaxPool1d(2)\nMaxPool1d(3, stride=2, padding=1)\nMaxPool1d(3, ceil_mode=True)\nMaxPool1d(2, return_indices=True)\nMaxPool1d(2, dilation=2)", "f2,3,8")
case("MaxPool2d(2)\nMaxPool2d((3, 2), stride=(2, 1), padding=(1, 0))\nMaxPool2d(3, return_indices=True, ceil_mode=True)", "f2,3,7,6")
case("MaxPool3d(2)\nMaxPool3d(2, return_indices=True)", "f1,2,4,4,4")
case("AvgPool1d(2)\nAvgPool1d(3, 2, 1, ceil_mode=True, count_include_pad=False)", "f2,3,8")
case("AvgPool2d(2)\nAvgPool2d((3, 2), stride=2, padding=(1, 0), count_include_pad=False)\nAvgPool2d(2, divisor_override=3)", "f2,3,7,6")
case("AvgPool3d(2)\nAvgPool3d(2, stride=1, divisor_override=5)", "f1,2,4,4,4")
case("AdaptiveAvgPool1d(3)\nAdaptiveMaxPool1d(3)\nAdaptiveMaxPool1d(3, return_indices=True)", "f2,3,8")
case("AdaptiveAvgPool2d(3)\nAdaptiveAvgPool2d((None, 2))\nAdaptiveAvgPool2d((1, 1))\nAdaptiveMaxPool2d((3, 2))\nAdaptiveMaxPool2d((None, 4), return_indices=True)", "f2,3,7,6")
case("AdaptiveAvgPool3d(2)\nAdaptiveAvgPool3d((2, None, 1))\nAdaptiveMaxPool3d(2)", "f1,2,4,3,4")
case("AdaptiveAvgPool2d(3)", "f3,7")
case("LPPool1d(2, 3)\nLPPool1d(3.0, 2, stride=1)", "p2,3,8")
case("LPPool2d(2, 3)\nLPPool2d(2, (2, 3), stride=2, ceil_mode=True)", "p2,3,7,6")
case("LPPool3d(2, 2)", "p1,2,4,4,4")
case("MaxUnpool1d(2)", "f2,3,8", "m(*F.max_pool1d(x[0], 2, return_indices=True))")
case("MaxUnpool2d(2)", "f2,3,6,4", "m(*F.max_pool2d(x[0], 2, return_indices=True))")
case("MaxUnpool2d(2)", "f2,3,7,5", "m(*F.max_pool2d(x[0], 2, return_indices=True), output_size=(7, 5))")
case("MaxUnpool2d(2)", "f2,3,7,5", "m(*F.max_pool2d(x[0], 2, return_indices=True), output_size=(9, 5))")
case("MaxUnpool3d(2)", "f1,2,4,4,4", "m(*F.max_pool3d(x[0], 2, return_indices=True))")
case("FractionalMaxPool2d(2, output_size=3, _random_samples=torch.tensor([[[0.3, 0.7], [0.1, 0.9]]]))", "f1,2,7,6")
case("FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True, _random_samples=torch.tensor([[[0.3, 0.7], [0.1, 0.9]]]))", "f1,2,8,6")
case("FractionalMaxPool3d(2, output_size=(2, 3, 2), _random_samples=torch.tensor([[[0.3, 0.7, 0.5]]]))", "f1,1,5,6,4")
case("FractionalMaxPool2d(2)\nFractionalMaxPool2d(2, output_size=2, output_ratio=0.5)\nFractionalMaxPool2d(2, output_ratio=1.5)")
# ---- padding and resizing
for n, shape in ((1, "f2,3,5"), (2, "f2,3,5,4"), (3, "f1,2,4,4,3")):
    case(f"CircularPad{n}d(1)\nReflectionPad{n}d(2)\nReplicationPad{n}d(2)\nZeroPad{n}d(1)\nConstantPad{n}d(1, 3.5)", shape)
    pads = tuple(range(1, 2 * n + 1)) if n == 1 else (1, 2, 0, 1) if n == 2 else (1, 0, 2, 1, 0, 1)
    case(f"CircularPad{n}d({pads})\nReplicationPad{n}d({pads})\nZeroPad{n}d({pads})\nConstantPad{n}d({pads}, 2)", shape)
case("CircularPad1d(1)", "f5")
case("ReflectionPad1d(9)", "f2,3,5")
case("Upsample(scale_factor=2)\nUpsample(size=7, mode='linear')\nUpsample(scale_factor=1.5, mode='linear', align_corners=True)\nUpsample(scale_factor=2, mode='bilinear')", "f2,3,5")
case("Upsample(scale_factor=(2, 1.5))\nUpsample(size=(7, 6), mode='bilinear')\nUpsample(scale_factor=2, mode='bicubic')\nUpsamplingNearest2d(scale_factor=2)\nUpsamplingBilinear2d(size=(6, 7))", "f2,3,4,5")
case("Upsample(scale_factor=2, mode='trilinear')\nUpsample(size=(3, 4, 5))\nUpsample(size=3, mode='area')", "f1,2,2,3,2")
case("PixelShuffle(2)", "f2,8,3,2")
case("PixelUnshuffle(2)", "f2,3,4,6")
case("ChannelShuffle(2)", "f2,4,3,2")
# ---- losses
for red in ("mean", "sum", "none"):
    case(f"L1Loss(reduction='{red}')\nMSELoss(reduction='{red}')\nSmoothL1Loss(reduction='{red}')\nSmoothL1Loss(reduction='{red}', beta=0.3)\nHuberLoss(reduction='{red}', delta=0.5)\nPoissonNLLLoss(reduction='{red}')", "f3,4;f3,4")
    case(f"SoftMarginLoss(reduction='{red}')\nHingeEmbeddingLoss(reduction='{red}')\nHingeEmbeddingLoss(0.3, reduction='{red}')", "f3,4;s3,4")
    case(f"BCELoss(reduction='{red}')\nBCELoss(torch.tensor([0.5, 1.0, 2.0, 0.1]), reduction='{red}')\nPoissonNLLLoss(log_input=False, full=True, reduction='{red}')\nKLDivLoss(reduction='{red}')", "p3,4;p3,4")
    case(f"BCEWithLogitsLoss(reduction='{red}')\nBCEWithLogitsLoss(pos_weight=torch.tensor([0.5, 1.0, 2.0, 0.1]), reduction='{red}')\nMultiLabelSoftMarginLoss(reduction='{red}')\nKLDivLoss(reduction='{red}', log_target=True)", "f3,4;p3,4")
    case(f"CrossEntropyLoss(reduction='{red}')\nCrossEntropyLoss(label_smoothing=0.2, reduction='{red}')\nCrossEntropyLoss(torch.tensor([0.5, 1.0, 2.0, 0.1]), reduction='{red}')\nCrossEntropyLoss(ignore_index=1, reduction='{red}')\nNLLLoss(reduction='{red}')\nNLLLoss(torch.tensor([0.5, 1.0, 2.0, 0.1]), ignore_index=2, reduction='{red}')\nMultiMarginLoss(reduction='{red}')\nMultiMarginLoss(2, 0.5, torch.tensor([0.5, 1.0, 2.0, 0.1]), reduction='{red}')", "f5,4;i5<4")
    case(f"CrossEntropyLoss(reduction='{red}')", "f5,4;p5,4")
    case(f"CrossEntropyLoss(reduction='{red}')\nNLLLoss(reduction='{red}')", "f2,4,3;i2,3<4")
    case(f"NLLLoss(reduction='{red}')\nCrossEntropyLoss(label_smoothing=0.1, reduction='{red}')", "f2,4,3,2;i2,3,2<4")
    case(f"MultiLabelMarginLoss(reduction='{red}')", "f2,4", "m(x[0], torch.tensor([[3, 0, -1, 1], [1, -1, 2, 0]]))")
    case(f"CosineEmbeddingLoss(reduction='{red}')\nCosineEmbeddingLoss(0.2, reduction='{red}')", "f4,3;f4,3;s4")
    case(f"MarginRankingLoss(reduction='{red}')\nMarginRankingLoss(0.4, reduction='{red}')", "f4;f4;s4")
    case(f"TripletMarginLoss(reduction='{red}')\nTripletMarginLoss(0.5, p=1.0, swap=True, reduction='{red}')\nTripletMarginWithDistanceLoss(reduction='{red}')\nTripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1), swap=True, margin=0.3, reduction='{red}')", "f4,3;f4,3;f4,3")
    case(f"GaussianNLLLoss(reduction='{red}')\nGaussianNLLLoss(full=True, reduction='{red}')", "f4,3;f4,3;p4,3")
    case(f"GaussianNLLLoss(reduction='{red}')", "f4,3;f4,3;p4,1")
    case(f"CTCLoss(reduction='{red}')\nCTCLoss(blank=2, reduction='{red}', zero_infinity=True)", "f6,2,4;i2,3<1", "m(F.log_softmax(x[0], -1), torch.tensor([[1, 3, 3], [3, 1, 0]]), torch.tensor([6, 5]), torch.tensor([3, 2]))")
case("CTCLoss()", "f6,2,4", "m(F.log_softmax(x[0], -1), torch.tensor([1, 3, 3, 3, 1]), (6, 5), (3, 2))")
case("CTCLoss(reduction='none')", "f3,2,4", "m(F.log_softmax(x[0].detach(), -1), torch.tensor([1, 1, 1, 3, 1]), (3, 3), (3, 2))")
case("KLDivLoss(reduction='batchmean')", "f3,4;p3,4")
case("CrossEntropyLoss()", "f4;i<4")
case("MSELoss()", "f3,4;f4")
case("MSELoss(size_average=False)\nMSELoss(reduce=False)\nMSELoss(reduction='x')\nL1Loss(reduction='x')\nBCELoss()\nBCEWithLogitsLoss()\nPoissonNLLLoss(reduction='x')", "p3,4;p3,5")
case("MSELoss(reduction='x')", "p3,4;p3,4")
case("CrossEntropyLoss()\nNLLLoss()", "f5,4;i6<4")
case("CrossEntropyLoss()", "f5,3;i5<9")
case("TripletMarginLoss(0.0)\nTripletMarginWithDistanceLoss(margin=-1.0)\nMultiMarginLoss(p=3)\nMultiMarginLoss(weight=torch.ones(2, 2))")
case("GaussianNLLLoss()", "f4,3;f4,3;p2")
case("AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0)\nAdaptiveLogSoftmaxWithLoss(8, 12, [4], head_bias=True)", "f5,8;i5<12")
case("AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0)", "f5,8", "(m.log_prob(x[0]), m.predict(x[0]))")
case("AdaptiveLogSoftmaxWithLoss(8, 12, [])\nAdaptiveLogSoftmaxWithLoss(8, 12, [7, 3])\nAdaptiveLogSoftmaxWithLoss(8, 12, [12])")
case("CosineSimilarity()\nCosineSimilarity(dim=0, eps=1e-3)\nPairwiseDistance()\nPairwiseDistance(p=1, keepdim=True)", "f3,4;f3,4")
# ---- recurrent
for kind in ("RNN", "GRU", "LSTM"):
    case(f"{kind}(3, 4)\n{kind}(3, 4, num_layers=2, bidirectional=True)\n{kind}(3, 4, bias=False)\n{kind}(3, 4, 2, dropout=0.5)", "f5,2,3", train=False)
    case(f"{kind}(3, 4, batch_first=True)", "f2,5,3")
    case(f"{kind}(3, 4)", "f5,3")
    case(f"{kind}(3, 4)", "f5,2,7")
    case(f"{kind}(3, 4)", "f5")
    case(f"{kind}(3, 4, bidirectional=True)", "f5,3,3", "m(nn.utils.rnn.pack_padded_sequence(x[0], [5, 3, 2]))")
    case(f"{kind}(3, 4)", "f5,3,3", "[(nn.utils.rnn.pad_packed_sequence(o, total_length=6), h) for o, h in [m(nn.utils.rnn.pack_padded_sequence(x[0], torch.tensor([2, 5, 3]), enforce_sorted=False))]]")
    case(f"{kind}Cell(3, 4)\n{kind}Cell(3, 4, bias=False)", "f2,3")
    case(f"{kind}Cell(3, 4)", "f3")
    case(f"{kind}Cell(3, 4)", "f2,2,3")
    case(f"{kind}(3, 0)\n{kind}(0, 3)\n{kind}(3, 4, dropout=1.5)\n{kind}(3, 4, num_layers=0)\n{kind}(3, 4.0)\n{kind}(3, 4, bias=1)")
case("RNN(3, 4, nonlinearity='relu')\nRNN(3, 4, 1, 'relu')\nRNN(3, 4, nonlinearity='x')\nRNN(3, 4, proj_size=2)\nGRU(3, 4, proj_size=2)\nLSTM(3, 4, proj_size=5)", "f5,2,3")
case("RNN(3, 4)\nGRU(3, 4)", "f5,2,3;f1,2,4")
case("RNN(3, 4)\nGRU(3, 4)", "f5,2,3;f1,3,4")
case("RNN(3, 4)\nGRU(3, 4)", "f5,2,3;f1,4")
case("LSTM(3, 4)\nLSTM(3, 4, proj_size=2)", "f5,2,3;f1,2,4;f1,2,4", "m(x[0], (x[1], x[2]))")
case("LSTM(3, 4, proj_size=2, num_layers=2, bidirectional=True, batch_first=True)", "f2,5,3")
case("LSTM(3, 4)", "f5,3;f1,2,4;f1,2,4", "m(x[0], (x[1], x[2]))")
case("RNNCell(3, 4, nonlinearity='relu')\nRNNCell(3, 4, nonlinearity='x')", "f2,3;f2,4")
case("LSTMCell(3, 4)", "f2,3;f2,4;f2,4", "m(x[0], (x[1], x[2]))")
# ---- attention and transformers
MHA = "MultiheadAttention(8, 2)\nMultiheadAttention(8, 4, bias=False)\nMultiheadAttention(8, 2, add_bias_kv=True)\nMultiheadAttention(8, 2, add_zero_attn=True)\nMultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)"
case(MHA, "f3,2,8;f5,2,8;f5,2,8")
case(MHA, "f3,2,8", "m(x[0], x[0], x[0], need_weights=False)")
case(MHA, "f3,2,8", "m(x[0], x[0], x[0], average_attn_weights=False, attn_mask=torch.ones(3, 3).triu(1).bool())", False)
case(MHA, "f3,2,8;f5,2,8", "m(x[0], x[1], x[1], key_padding_mask=torch.tensor([[False] * 5, [False, False, False, True, True]]))")
case(MHA, "f3,2,8;f5,2,8", "m(x[0], x[1], x[1], need_weights=False, attn_mask=torch.ones(3, 5).triu(2).bool(), key_padding_mask=torch.tensor([[False] * 5, [False, False, False, True, True]]))")
case("MultiheadAttention(8, 2, kdim=6, vdim=4)\nMultiheadAttention(8, 2, kdim=6, vdim=4, bias=False)", "f3,2,8;f5,2,6;f5,2,4")
case("MultiheadAttention(8, 2, batch_first=True)", "f2,3,8;f2,5,8;f2,5,8")
case("MultiheadAttention(8, 2, batch_first=True)", "f2,3,8", "m(x[0], x[0], x[0], attn_mask=torch.zeros(4, 3, 3), need_weights=False)", False)
case("MultiheadAttention(8, 2)", "f3,8;f5,8;f5,8")
case("MultiheadAttention(8, 2)", "f3,8", "m(x[0], x[0], x[0], attn_mask=nn.Transformer.generate_square_subsequent_mask(3), is_causal=True, need_weights=False)")
case("MultiheadAttention(8, 3)\nMultiheadAttention(0, 3)")
case("MultiheadAttention(8, 2)", "f3,2,8", "m(x[0], x[0], x[0], is_causal=True)")
case("MultiheadAttention(8, 2)", "f3,2,8", "m(x[0], x[0], x[0], attn_mask=torch.zeros(4, 4))")
case("MultiheadAttention(8, 2)", "f3,2,8", "m(x[0], x[0], x[0], key_padding_mask=torch.zeros(2, 4).bool())")
case("MultiheadAttention(8, 2)", "f3,2,8;f3,8", "m(x[0], x[1], x[1])")
case("MultiheadAttention(8, 2)", "f3,2,7", "m(x[0], x[0], x[0])")
ENC = "TransformerEncoderLayer(8, 2, 12, 0.0)\nTransformerEncoderLayer(8, 2, 12, 0.0, 'gelu', norm_first=True)\nTransformerEncoderLayer(8, 2, 12, 0.0, nn.SiLU(), bias=False)"
case(ENC, "f3,2,8")
case(ENC, "f3,2,8", "m(x[0], nn.Transformer.generate_square_subsequent_mask(3), is_causal=True)")
case("TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True)", "f2,3,8", "m(x[0], src_key_padding_mask=torch.tensor([[False] * 3, [False, False, True]]))", False)
case("TransformerEncoderLayer(8, 2, 12, 0.0, 'tanh')")
case("TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.0), 2)\nTransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.0), 2, nn.LayerNorm(8))", "f3,2,8")
case("TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True), 2, nn.LayerNorm(8))\nTransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True), 1)", "f2,3,8", "[m(x[0].detach(), src_key_padding_mask=torch.tensor([[False] * 3, [False, False, True]])) for _ in [m.requires_grad_(False)]]", False)
case("TransformerDecoderLayer(8, 2, 12, 0.0)\nTransformerDecoderLayer(8, 2, 12, 0.0, 'gelu', norm_first=True)\nTransformerDecoder(nn.TransformerDecoderLayer(8, 2, 12, 0.0), 2, nn.LayerNorm(8))", "f3,2,8;f5,2,8")
case("TransformerDecoderLayer(8, 2, 12, 0.0, batch_first=True)", "f2,3,8;f2,5,8", "m(*x, tgt_mask=nn.Transformer.generate_square_subsequent_mask(3), memory_key_padding_mask=torch.tensor([[False] * 5, [False] * 4 + [True]]).float().masked_fill(torch.tensor([[False] * 5, [False] * 4 + [True]]), float('-inf')))")
case("Transformer(8, 2, 1, 1, 12, 0.0)\nTransformer(8, 2, 2, 1, 12, 0.0, batch_first=True, norm_first=True)", "f3,3,8;f4,3,8", "m(x[0], x[1] if not m.batch_first else x[1][:3])")
case("Transformer(8, 2, 1, 1, 12, 0.0)", "f3,2,8;f4,3,8")
case("Transformer(8, 2, 1, 1, 12, 0.0)", "f3,2,6;f4,2,6")
# ---- containers
case("Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))\nSequential()", "f2,3")
case("ModuleList([nn.Linear(3, 3) for _ in range(3)])\nModuleList()\nModuleList([nn.Linear(3, 3), nn.ReLU(), nn.ReLU()])", "f2,3", "[l(x[0]) for l in m]")
case("ModuleDict({'a': nn.Linear(3, 2), 'b': nn.ReLU()})", "f2,3", "[m[k](x[0]) for k in m]")
case("ParameterList([torch.ones(2, 3), nn.Parameter(torch.zeros(3))])\nParameterList()", "f2,3", "[x[0] + p for p in m]")
case("ParameterDict({'b': torch.ones(2, 3), 'a': nn.Parameter(torch.zeros(3))})", "f2,3", "[x[0] + p for p in m.values()]")
case("ParameterList([1, 'a', torch.ones(2)])", "", "list(m)")
case("LazyLinear(4)\nLazyLinear(4, bias=False)", "f2,3", "[m(x[0]) for _ in [m(x[0].detach()) * 0, fill(m)]][:1]")
case("LazyConv2d(4, 3)\nLazyConvTranspose2d(4, 3)\nLazyBatchNorm2d()\nLazyInstanceNorm2d()", "f2,3,5,5", "[tuple(m(x[0].detach()).shape), m][1:0]")
case("LazyConv1d(4, 3)\nLazyConvTranspose1d(4, 3)\nLazyBatchNorm1d()\nLazyInstanceNorm1d()", "f2,3,5", "[tuple(m(x[0].detach()).shape), m][1:0]")
# ---- functions that no layer covers
case("F.relu(x[0])\nF.relu6(x[0])\nF.hardtanh(x[0], 1.0, -1.0)\nF.glu(x[0], 1)\nF.softmax(x[0], -1, dtype=torch.float64)\nF.log_softmax(x[0], 1, dtype=torch.float64)\nF.softmin(x[0], 0)\nF.tanh(x[0])\nF.sigmoid(x[0])\nF.logsigmoid(x[0])\nF.softplus(x[0], beta=2)\nF.gelu(x[0], approximate='tanh')\nF.gelu(x[0], approximate='x')\nF.normalize(x[0])\nF.normalize(x[0], p=1, dim=0)\nF.rrelu(x[0], 0.1, 0.2)\nF.threshold(x[0], 0.5, 1.0)\nF.pad(x[0], (1, 2))\nF.pad(x[0], (1, 2, 0, 1), value=3)\nF.pad(x[0], (1, 2), mode='x')\nF.pad(x[0], (-1, 1))\nF.dropout(x[0], 0.5, training=False)\nF.dropout(x[0], 1.5)\nF.dropout(x[0], 1.0)\nF.layer_norm(x[0], (4,))\nF.rms_norm(x[0], (4,))\nF.pdist(x[0])\nF.one_hot(torch.tensor([0, 2, 1]))\nF.one_hot(torch.tensor([0, 2, 1]), 5)", "f3,4")
case("F.linear(x[0], x[1])\nF.linear(x[0], x[1], x[1][:, 0])\nF.cosine_similarity(x[0], x[1][:1])\nF.pairwise_distance(x[0], x[1][:3])\nF.smooth_l1_loss(x[0], x[1][:3], beta=0.0)\nF.mse_loss(x[0], x[1][:3], weight=x[1][:3].abs())\nF.l1_loss(x[0], x[1][:3], weight=x[1][:3].abs(), reduction='sum')\nF.huber_loss(x[0], x[1][:3], weight=x[1][:3].abs(), reduction='none')\nF.mse_loss(x[0], x[1][:3], weight=x[1])", "f3,4;f5,4")
case("F.interpolate(x[0], scale_factor=2)\nF.interpolate(x[0], size=(3, 8), mode='nearest-exact')\nF.interpolate(x[0], size=6, mode='bilinear', align_corners=True)\nF.interpolate(x[0], scale_factor=0.5, mode='area')\nF.interpolate(x[0], scale_factor=(1.3, 1.7), mode='bilinear', recompute_scale_factor=True)\nF.interpolate(x[0], scale_factor=(1.3, 1.7), mode='bicubic', align_corners=True)\nF.interpolate(x[0])\nF.interpolate(x[0], size=3, scale_factor=2)\nF.interpolate(x[0], size=(3,))\nF.interpolate(x[0], scale_factor=(2, 2, 2))\nF.interpolate(x[0], size=3, align_corners=True)\nF.interpolate(x[0], size=3, mode='linear')\nF.interpolate(x[0], size=3, mode='trilinear')\nF.interpolate(x[0], size=3, mode='x')\nF.interpolate(x[0], size=(3, 2.5))\nF.interpolate(x[0], size=3, recompute_scale_factor=True)\nF.upsample(x[0], size=3)\nF.upsample_bilinear(x[0], size=3)\nF.avg_pool2d(x[0], 2)\nF.avg_pool2d(x[0], kernel_size=(2, 1), stride=1, padding=(1, 0), ceil_mode=True)\nF.max_pool2d(x[0], kernel_size=2, stride=1)\nF.max_pool2d(x[0], 2, return_indices=True)\nF.adaptive_max_pool2d(x[0], 2, True)\nF.lp_pool2d(x[0].abs(), 2, 2)\nF.unfold(x[0], 2, padding=1)\nF.channel_shuffle(x[0], 1)\nF.pad(x[0], (1, 1, 2, 0), mode='reflect')\nF.pad(x[0], (1, 1, 2, 0), mode='circular')\nF.pad(x[0], (1, 1, 2, 0), mode='replicate')\nF.batch_norm(x[0], None, None, training=True)\nF.batch_norm(x[0], None, None, training=True, eps=0)\nF.instance_norm(x[0])\nF.group_norm(x[0], 3)\nF.local_response_norm(x[0], 2)\nF.affine_grid(torch.tensor([[[1.0, 0.2, 0.1], [0.0, 0.9, 0.3]]]), (1, 3, 4, 5), align_corners=False)\nF.affine_grid(torch.ones(1, 2, 2), (1, 3, 4, 5))\nF.affine_grid(torch.ones(1, 2, 3), (1, 3, 4))", "f2,3,4,5")
case("F.grid_sample(x[0], x[1] / 2, align_corners=False)\nF.grid_sample(x[0], x[1] / 2, mode='nearest', align_corners=True)\nF.grid_sample(x[0], x[1], padding_mode='border', align_corners=False)\nF.grid_sample(x[0], x[1], mode='bicubic', padding_mode='reflection', align_corners=True)\nF.grid_sample(x[0], x[1], mode='x')\nF.grid_sample(x[0], x[1], padding_mode='x')", "f2,3,4,5;f2,3,3,2")
case("F.conv1d(x[0], x[1])\nF.conv1d(x[0], x[1], padding='same')\nF.conv1d(x[0], x[1], stride=2, padding=1)\nF.conv_transpose1d(x[0], x[1].transpose(0, 1))\nF.conv_tbc(x[0].permute(2, 0, 1).contiguous(), x[1].permute(2, 1, 0).contiguous(), x[1][:, 0, 0], 1)\nnn.grad.conv1d_input(x[0].shape, x[1].detach(), torch.ones(2, 4, 4))\nnn.grad.conv1d_weight(x[0].detach(), x[1].shape, torch.ones(2, 4, 4))", "f2,3,6;f4,3,3")
case("F.bilinear(x[0], x[1], x[2])", "f5,3;f5,4;f2,3,4")
case("F.scaled_dot_product_attention(*x)\nF.scaled_dot_product_attention(*x, is_causal=True)\nF.scaled_dot_product_attention(*x, scale=0.3)", "f2,2,3,4;f2,2,3,4;f2,2,3,4")
case("F.embedding(x[0], x[1])\nF.embedding(x[0], x[1], padding_idx=-2)\nF.embedding(x[0], x[1], padding_idx=8)\nF.embedding(x[0], x[1], padding_idx=-8)\nF.embedding_bag(x[0], x[1], mode='max')\nF.embedding_bag(x[0], x[1], mode='x')\nF.embedding_bag(x[0], x[1], mode='max', sparse=True)", "i2,3<5;f5,3")
case("F.triplet_margin_with_distance_loss(*x)\nF.triplet_margin_loss(*x, margin=0)\nF.triplet_margin_with_distance_loss(*x, margin=0)", "f3,4;f3,4;f3,4")
case("nn.utils.rnn.pad_sequence([x[0], x[0][:2]])\nnn.utils.rnn.pad_sequence([x[0], x[0][:2]], batch_first=True, padding_value=2.0, padding_side='left')\nnn.utils.rnn.pad_sequence(3)\nnn.utils.rnn.pack_sequence([x[0], x[0][:2]])\nnn.utils.rnn.pack_sequence([x[0][:2], x[0]])\nnn.utils.rnn.pack_sequence([x[0][:2], x[0]], enforce_sorted=False)\nnn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence([x[0][:2], x[0]], enforce_sorted=False))\nnn.utils.rnn.unpad_sequence(nn.utils.rnn.pad_sequence([x[0], x[0][:2]]), torch.tensor([4, 2]))\nnn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_sequence([x[0], x[0][:2]]), total_length=3)\nnn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))", "f4,3")
case("nn.attention.flex_attention.flex_attention(*[t.detach() for t in x], score_mod=lambda s, b, h, q, k: s + (q - k) * 0.1)\nnn.attention.flex_attention.flex_attention(*[t.detach() for t in x], block_mask=nn.attention.flex_attention.create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 3, 3, device='cpu'))\nnn.attention.flex_attention.create_mask(lambda b, h, q, k: q >= k, 2, 1, 3, 4, device='cpu')", "f2,2,3,4;f2,2,3,4;f2,2,3,4")
