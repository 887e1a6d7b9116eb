# SPDX-License-Identifier: MIT
"""Counting floating-point operations: those of matrix products, convolutions and attention, by module."""
import functools
from collections import defaultdict
from math import prod

import tenon
from tenon.utils._python_dispatch import TorchDispatchMode
from tenon.utils._pytree import tree_map
from tenon.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = tenon.ops.aten
flop_registry = {}


def _shape_of(x):
    return x.shape if isinstance(x, tenon.Tensor) else x


def shape_wrapper(f):
    """Give a formula shapes in the place of tensors."""
    @functools.wraps(f)
    def of_shapes(*args, out_val=None, **kwargs):
        args, kwargs, out = tree_map(_shape_of, (args, kwargs, out_val))
        return f(*args, out_shape=out, **kwargs)
    return of_shapes


def register_flop_formula(targets, get_raw=False):
    """A decorator: the formula of operators, of shapes, or with ``get_raw`` of tensors and ``out_val``."""
    def remember(fn):
        formula = fn if get_raw else shape_wrapper(fn)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, (tenon._ops.OpOverloadPacket, tenon._ops.OpOverload)):
                raise ValueError("register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                                 "torch.ops.mylib.foo) or OpOverload, got %s which is of type %s" % (target, type(target)))
            packet = getattr(target, "overloadpacket", target)
            if packet in flop_registry:
                raise RuntimeError("duplicate registrations for %s" % packet)
            flop_registry[packet] = formula
        return fn
    return remember


def _packets(*names):
    return [getattr(aten, name) for name in names if hasattr(aten, name)]


@register_flop_formula(aten.mm)
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs):
    return a_shape[0] * a_shape[1] * 2 * b_shape[1]


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs):
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape, b_shape, out_shape=None, **kwargs):
    return prod(a_shape) * 2 * b_shape[2]


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs):
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape, w_shape, out_shape, transposed=False):
    """Each weight meets each place of the result, or of the input where that is the smaller one."""
    return 2 * x_shape[0] * prod((x_shape if transposed else out_shape)[2:]) * prod(w_shape)


@register_flop_formula(_packets("convolution", "_convolution"))
def conv_flop(x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, *args, out_shape=None, **kwargs):
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(grad_out_shape, x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, _output_padding,
                       _groups, output_mask, out_shape, **kwargs):
    """Either gradient takes as many as the convolution itself."""
    once = conv_flop_count(x_shape, w_shape, grad_out_shape, transposed)
    return once * (bool(output_mask[0]) + bool(output_mask[1]))


def sdpa_flop_count(query_shape, key_shape, value_shape):
    """Two products: of queries and keys, and of weights and values."""
    batch, queries, width = prod(query_shape[:-2]), query_shape[-2], query_shape[-1]
    keys, out_width = key_shape[-2], value_shape[-1]
    return 2 * batch * queries * keys * (width + out_width)


def sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape):
    """Weights again, and the gradients of weights, values, queries and keys."""
    batch, queries, width = prod(query_shape[:-2]), query_shape[-2], query_shape[-1]
    keys, out_width = key_shape[-2], value_shape[-1]
    return 2 * batch * queries * keys * (3 * width + 2 * out_width)


@register_flop_formula(_packets("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
                                "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention"))
def sdpa_flop(query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs):
    return sdpa_flop_count(query_shape, key_shape, value_shape)


@register_flop_formula(_packets("_scaled_dot_product_flash_attention_for_cpu_backward",
                                "_scaled_dot_product_flash_attention_backward",
                                "_scaled_dot_product_efficient_attention_backward",
                                "_scaled_dot_product_cudnn_attention_backward"))
def sdpa_backward_flop(grad_out_shape, query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs):
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


# ---- text ----

suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number):
    """The unit that leaves a number with up to seven digits in all."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number, suffix):
    index = suffixes.index(suffix)
    value = "%.3f" % (number / 1000 ** index)
    return (value if index else str(number)) + suffix


def convert_to_percent_str(number, whole):
    return "%.2f%%" % (100 * number / whole) if whole else "0%"


def _table(rows, header):
    widths = [max([len(row[i]) for row in rows] + [len(header[i]) + 2]) for i in range(3)]

    def line(row):
        return "  ".join([row[0].ljust(widths[0])] + [row[i].rjust(widths[i]) for i in (1, 2)])
    return "\n".join([line(header), "  ".join("-" * w for w in widths)] + [line(row) for row in rows])


class FlopCounterMode(TorchDispatchMode):
    """``with FlopCounterMode() as counter: …; counter.get_total_flops()``; the table is printed unless told not to."""

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        super().__init__()
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self.flop_registry = dict(flop_registry)
        for op, formula in (custom_mapping or {}).items():
            self.flop_registry[op] = formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self):
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """{module: {operator: count}}"""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth=None):
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows, subsumed = [], False

        def rows_of(name, level):
            count = sum(self.flop_counts[name].values())
            nonlocal subsumed
            subsumed = subsumed or count >= total > 0 and name != "Global"
            made = [(" " * level + name, count)]
            made += [(" " * level + "- " + str(op), n) for op, n in self.flop_counts[name].items()]
            return [(text, convert_num_with_suffix(n, unit), convert_to_percent_str(n, total)) for text, n in made]

        unit = get_suffix_str(total)
        for name in sorted(self.flop_counts):
            if name != "Global" and name.count(".") + 1 <= depth:
                rows += rows_of(name, 0)
        if "Global" in self.flop_counts and not subsumed:
            rows = rows_of("Global", 0) + [(" " + text, n, part) for text, n, part in rows]
        if not rows:
            rows = [("Global", "0", "0%")]
        return _table(rows, ("Module", "FLOP", "% Total"))

    def __enter__(self):
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        return super().__enter__()

    def __exit__(self, *args):
        super().__exit__(*args)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        formula = self.flop_registry.get(func.overloadpacket)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for name in set(self.mod_tracker.parents):
                self.flop_counts[name][func.overloadpacket] += count
        return out
