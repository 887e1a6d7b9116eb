#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write print.inc: how PyTorch prints a set of tensors: dtype, sizes, strides, bytes or ramp, text.

A long tensor is a ramp: element i of its storage is i * a / b + c, and the row has {a, b, c}.

    python3 make_print.py > print.inc              (made with PyTorch 2.11)
"""
import torch

inf, nan = float("inf"), float("nan")


class Ramp:
    """Elements i * a / b + c, and what is then done with them."""

    def __init__(self, n, a=1, b=1, c=0, dtype=torch.float32, then=lambda x: x):
        self.numbers = (a, b, c)
        x = torch.arange(n, dtype=torch.float64) * a / b + c
        self.tensor = then(x.to(dtype))


def cases():
    t = torch.tensor
    yield t(3.5)
    yield t(3.0)
    yield t(7)
    yield t(True)
    yield t(1e10)
    yield t(-0.0)
    yield t(nan)
    yield t(1 - 2.5j)
    yield t([1.0, 2.0])
    yield t([1.0, -2.0, nan, inf, -inf])
    yield t([1.5, -2.0, nan, inf, -inf])
    yield t([nan, inf])
    yield t([0.0, 0.0])
    yield t([0.0, -0.0, 1e-5])
    yield t([1e-5, 1.0])
    yield t([1e9, 1.0])
    yield t([1e4, 1.0])
    yield t([1001.0, 1.0])
    yield t([1000.0, 1.0])
    yield t([1000.5, 1.0])
    yield t([123456.789])
    yield t([99999999.0, 99999999.0])
    yield t([1e8 + 8])
    yield t([[1, 2], [3, -400]])
    yield t([[True, False], [False, True]])
    yield t([[1.0, 2.0], [3.0, 4.0]])
    yield Ramp(24, then=lambda x: x.reshape(2, 3, 4))
    yield Ramp(24, dtype=torch.int64, then=lambda x: x.reshape(1, 2, 3, 4))
    yield Ramp(12, then=lambda x: x.reshape(3, 4).t())
    yield Ramp(100, dtype=torch.int64)
    yield Ramp(40, b=7)
    yield Ramp(30, a=1000000, then=lambda x: x.reshape(3, 10))
    yield Ramp(1000, dtype=torch.int64)
    yield Ramp(1001, dtype=torch.int64)
    yield Ramp(1100, then=lambda x: x.reshape(11, 100))
    yield Ramp(2400, b=3, then=lambda x: x.reshape(20, 6, 20))
    yield Ramp(3000, dtype=torch.int64, then=lambda x: x.reshape(3, 1000))
    yield torch.zeros(0)
    yield torch.zeros(2, 0)
    yield torch.zeros(0, dtype=torch.int64)
    yield torch.zeros(0, 3, dtype=torch.bool)
    yield t([1, 2, 3], dtype=torch.int32)
    yield t([1, 200], dtype=torch.uint8)
    yield t([-1, 100], dtype=torch.int8)
    yield t([-1, 30000], dtype=torch.int16)
    yield t([1.5, 2.25], dtype=torch.float64)
    yield t([1.0, 2.0], dtype=torch.float16)
    yield t([65504.0, 1e-4], dtype=torch.float16)
    yield t([0.1, 3.0], dtype=torch.bfloat16)
    yield t([1 + 2j, 3 - 4j])
    yield t([1.5 + 2j, -3 - 4.25j, 0])
    yield t([complex(nan, inf), complex(-inf, -1)])
    yield t([1e-6 + 1j, 2 + 1e7j], dtype=torch.complex128)
    yield (torch.arange(30.0) * (1 + 1j)).reshape(5, 6)
    yield Ramp(26, dtype=torch.int32)
    yield Ramp(18, b=2, c=1, dtype=torch.float64)
    yield torch.full((3, 3), 1e-3)
    yield t([2.0 ** 63, -1.0])
    yield t([-9223372036854775808, 9223372036854775807])
    yield torch.ones(2, 2).expand(2, 2, 2)


def row(x):
    ramp = (0, 0, 0)
    data = b""
    if isinstance(x, Ramp):
        ramp, x = x.numbers, x.tensor
    elif x.numel():
        last = sum((s - 1) * t for s, t in zip(x.shape, x.stride()))
        data = bytes(x.untyped_storage())[: x.element_size() * (1 + last)]
    text = repr(x)
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", '\\n"\n "')
    braces = lambda v: "{" + ", ".join(map(str, v or [0])) + "}"
    name = str(x.dtype).removeprefix("torch.")
    array = "(const unsigned char[]){%s}" % ",".join(map(str, data)) if data else "NULL"
    print('{"%s", %d, %s, %s, %s, %s,\n "%s"},' % (name, x.dim(), braces(list(x.shape)),
                                                 braces(list(x.stride())), braces(list(ramp)), array, quoted))


def main():
    print("/* Written by make_print.py with PyTorch %s. */" % torch.__version__.split("+")[0])
    print("/* clang-format off */")
    for x in cases():
        row(x)
    print("/* clang-format on */")


main()
