#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Indexing with tensors: places, masks, layouts, accumulation, refusals."""

import random

import torch

from literal import DTYPES, Writer

RNG = random.Random(5)
FLOATS = ("f16", "bf16", "f32", "f64")
NO_MASK_ON_META = "meta=The register_meta function for torch.nonzero() raises unimplemented by default"


def ints(w, name, values, dtype=torch.int64):
    w.tensor(name, torch.tensor(values, dtype=dtype))


def where(w, op, arguments):
    """A case that only those who see the values refuse."""
    w.case(op, arguments)
    if "is out of bounds for dimension" in w.lines[-1]:
        w.lines[-1] = w.lines[-1].replace("| IndexError:", "| cpu IndexError:")


def shared(w):
    ints(w, "i3", [2, 0, 2])
    ints(w, "neg", [-1, 0, -3])
    ints(w, "i32", [1, 0, 2, 1], torch.int32)
    ints(w, "i22", [[0, 2], [1, 1]])
    ints(w, "col", [[1], [0]])
    ints(w, "one", 1)
    ints(w, "none", [])
    ints(w, "far", [0, 9])
    ints(w, "low", [0, -9])
    w.view("i22t", "i22", [2, 2], [1, 2])
    w.tensor("m3", torch.tensor([True, False, True]))
    w.tensor("m34", torch.tensor([[True, False, True, False], [False] * 4, [True, True, False, True]]))
    w.tensor("m4", torch.tensor([False, True, True, False]))
    w.tensor("mnone", torch.zeros(3, dtype=torch.bool))
    w.tensor("bytes", torch.tensor([1, 0, 2], dtype=torch.uint8))
    w.tensor("y", torch.arange(3 * 4 * 5 * 2, dtype=torch.float32).reshape(3, 4, 5, 2))
    w.view("p", "y", [5, 3, 2, 4], [2, 40, 1, 10])
    w.view("s", "y", [3, 2, 5, 2], [40, 20, 2, 1])
    w.view("e", "y", [3, 4, 4], [0, 10, 1])


def index(w):
    w.comment("index")
    for a in DTYPES:
        w.case("index.Tensor", a + "[3,4], [$i3]")
        w.case("index.Tensor", a + "[3,4], [None, $i32]")
        w.case("index.Tensor", a + "[3,4], [$i3, $neg]")
        w.case("index.Tensor", a + "[3,4], [$m34]", NO_MASK_ON_META)
    lists = ("[$i3]", "[None, $i3]", "[None, None, $i3]", "[$i3, $neg]", "[None, $i3, $neg]", "[$i3, None, $neg]",
             "[$i22]", "[None, $i22t]", "[$i22, $col]", "[$col, None, $i22t]", "[$one]", "[None, $one, $i3]",
             "[$none]", "[None, $none, $one]", "[$i3, $one, None, $one]", "[$col, $i3]", "[None, $i22t, $col]",
             "[None, None, None, $one]")
    for x in ("$y", "$p", "$s", "$e", "f32[3,9,9,9].strided"):
        for which in lists:
            where(w, "index.Tensor", "%s, %s" % (x, which))
    for which in ("[$m3]", "[$m34]", "[None, $m4]", "[$m3, $m4]", "[$m3, None, $i22]", "[$m34, $one]", "[$mnone]", "[$bytes]",
                  "[$one, $m4]"):
        w.case("index.Tensor", "$y, " + which, NO_MASK_ON_META)
    w.comment("index: refusals")
    for args in ("f32[3,4], [$far]", "f32[3,4], [None, $far]", "f32[3,4], [$low]", "f32[3,4], [$i3, $far]"):
        w.case("index.Tensor", args, "cpu")
    for args in ("f32[3,4], []", "f32[3,4], [f32[2]]", "f32[3,4], [i16[2]]", "f32[3,4], [$i3, $i3, $i3]",
                 "f32[3,4], [$i3, $i32]", "f32[3,4], [$m4]", "f32[3,4], [None, $m3]", "f32[0,4], [$i3]", "f32[], [$one]",
                 "f32[0,4], [$none]", "f32[3,0], [$i3]", "f32[3,4], [bool[3,2]]"):
        w.case("index.Tensor", args)
    w.case("index.Tensor_out", "f32[3,4], [$i3], out=f32[0]", "")
    w.case("index.Tensor_out", "f32[3,4], [None, $i3], out=f32[3,3].t")
    w.case("index.Tensor_out", "f32[3,4], [$i3], out=i64[0]")


def index_put(w):
    w.comment("index_put")
    ints(w, "many", [RNG.randrange(3) for _ in range(40)])
    for a in DTYPES:
        w.case("index_put", a + "[3,4], [$i3], %s[4]" % a)
        w.case("index_put", a + "[3,4], [$many], %s[40,4], True" % a, "rtol=3e-2 atol=1e-1" if "16" in a and "f" in a else "ulp=4")
        w.case("index_put", a + "[3], [$many], %s[40], True" % a, "rtol=3e-2 atol=1e-1" if "16" in a and "f" in a else "ulp=4")
        w.case("index_put_", a + "[3,4].t, [None, $neg], %s[3,3]" % a, "same")
    for x in ("$y", "$p", "$s"):
        for which, value in (("[$one]", "f32[]"), ("[None, $one]", "f32[1,1,1]"), ("[$m3]", "f32[]") if x != "$p" else ("[$one]", "f32[1]"),
                             ("[$one, None, $one]", "f32[]"), ("[None, $one, $one]", "f32[1]")):
            w.case("index_put", "%s, %s, %s" % (x, which, value))
            w.case("index_put", "%s, %s, %s, True" % (x, which, value))
    w.case("index_put", "$y, [$i22, None, $col], f32[2,2,4,2]")
    w.case("index_put", "$y, [$i22, None, $col], f32[4,1], True")
    w.case("index_put", "$y, [None, $i22t], f32[2,1,1]")
    w.case("index_put", "f32[3,4], [$m34], f32[5]")
    w.case("index_put", "f32[3,4], [$m34], f32[1]")
    w.case("index_put", "f32[3,4], [$m3, $m4], f32[2], True")
    w.case("index_put", "f32[3,4], [$mnone], f32[4]")
    w.case("index_put", "f32[3,4], [$none], f32[4]")
    w.case("_index_put_impl_", "f32[3,4], [$i3], f32[4], True, True", "same")
    w.comment("index_put: refusals")
    for args in ("f32[3,4], [$far], f32[]", "f32[3,4], [None, $low], f32[]", "f32[3,4], [$m34], f32[3]"):
        w.case("index_put", args, "cpu")
    for args in ("f32[3,4], [$i3], f32[2]", "f32[3,4], [$i3], f64[4]", "f32[3,4], [$i3], f32[1,3,4]", "f32[3,4], [$i3, $i3, $i3], f32[]",
                 "f32[0,4], [$i3], f32[]", "f32[3,4], [f32[2]], f32[]", "f32[3,4], [$i3, $i32], f32[]", "f32[3,4], [$m4], f32[]"):
        w.case("index_put", args)


def slices(w):
    w.comment("index_select, index_add, take")
    for a in DTYPES:
        w.case("index_select", a + "[3,4], 0, $i3")
        w.case("index_select", a + "[2,3], -1, $i32")
        w.case("index_select", a + "[4].strided, 0, $i3")
        w.case("index_add", a + "[3,4], 0, $i3, %s[3,4]" % a, "ulp=1")
        w.case("index_add", a + "[2,3], 1, $i32, %s[2,4].t, alpha=2" % a, "ulp=1")
        w.case("take", a + "[3,4].t, $i22")
    for x in ("$y", "$s"):
        for d in range(2):
            w.case("index_select", "%s, %d, $one" % (x, d))
        w.case("index_select", "%s, 0, $i3" % x)
        w.case("index_select", "%s, 2, $i32" % x)
    w.case("index_select", "$p, 1, $i3")
    w.case("index_select", "f32[20,30], 1, $i3")
    w.case("index_select", "f32[], 0, i64[1]=0")
    w.case("index_select", "f32[], 0, i64[]=0")
    w.case("index_select", "f32[3,0], 0, $i3")
    w.case("index_select", "f32[3,2], 1, $none")
    w.case("index_add", "f32[3,4], 0, $i3, f32[3,4], alpha=0.5")
    w.case("index_add", "i64[3], 0, $i3, i64[3], alpha=2.7")
    w.case("index_add", "f32[], 0, i64[1]=0, f32[]")
    w.case("index_add", "f32[], 0, i64[]=0, f32[]")
    w.case("index_add_", "f32[3,4].t, 1, i64[2]=2, f32[3,2]", "same")
    w.case("index_add", "f32[2,3,600], 1, $i32, f32[2,4,600]", "ulp=1")
    for args in ("f32[3], 0, i64[1,1]", "f32[3], 0, i16[1]", "f32[], 0, i64[2]=0", "f32[3], 1, $one", "f32[], 0, f32[1]"):
        w.case("index_select", args)
    for args in ("f32[3], 0, $far", "f32[3], 0, i64[1]=-1"):
        w.refuse("index_select", args, "cpu IndexError: index out of range in self")
    for args in ("f32[3,4], 0, $i3, f64[3,4]", "f32[3,4], 0, $i3, f32[2,4]", "f32[3,4], 0, $i3, f32[3,3]", "f32[3,4], 0, f32[3], f32[3,4]",
                 "f32[3,4], 0, $i22, f32[3,4]", "f32[3,4], 0, $i3, f32[]", "f32[3,4], 2, $i3, f32[3,4]", "f32[3,4], 0, $i3, f32[3]"):
        w.case("index_add", args)
    for args in ("f32[3,4], 0, $far, f32[2,4]", "f32[3,4], 0, $low, f32[2,4]"):
        w.case("index_add", args, "cpu")
    w.case("take", "f32[3], $neg")
    w.case("take", "f32[3], $none")
    w.case("take", "f32[0], $i3")
    w.case("take", "f32[0], $none")
    w.case("take", "f32[3], $far", "cpu")


def gathers(w):
    w.comment("gather, scatter")
    ints(w, "g", [[0, 1, 2, 0], [2, 2, 1, 0]])
    ints(w, "g5", [[0, 1], [2, 2], [1, 1], [1, 0], [0, 2]])
    w.view("gt", "g", [4, 2], [1, 4])
    ints(w, "g3", [[[0, 1], [1, 1]], [[1, 0], [0, 0]]])
    for a in DTYPES:
        tol = "rtol=2e-2 atol=1e-2" if a in ("f16", "bf16") else "ulp=2"
        w.case("gather", a + "[3,4], 0, $g")
        w.case("gather", a + "[4,3].t, 1, $gt")
        w.case("scatter.src", a + "[3,4], 0, $g, %s[2,4]" % a)
        w.case("scatter.src", a + "[4,3], 1, $gt, %s[5,4].t" % a)
        w.case("scatter.value", a + "[3,4], 0, $g, 3")
        w.case("scatter_add", a + "[3,4], 0, $g5, %s[5,4]" % a, tol)
        w.case("scatter_add", a + "[3,4].strided, 1, $g, %s[2,4]" % a, tol)
        for how in ("sum", "prod", "mean", "amax", "amin"):
            for include in ("True", "False"):
                if not (a in ("c64", "c128") and how != "sum"):
                    w.case("scatter_reduce.two", a + "[3,4], 0, $g5, %s[5,4], '%s', include_self=%s" % (a, how, include), tol)
    for d in range(3):
        w.case("gather", "f32[2,3,4], %d, $g3" % d)
        w.case("gather", "f32[2,4,3].t, %d, $g3" % (d - 3))
        w.case("scatter.src", "f32[2,3,4], %d, $g3, f32[2,2,2]" % d)
        w.case("scatter_add", "f32[2,4,3].t, %d, $g3, f32[3,3,3]" % d, "ulp=1")
    w.case("gather", "f32[], 0, i64[]=0")
    w.case("gather", "f32[], 0, i64[2]=0")
    w.case("gather", "f32[3], 0, $one")
    w.case("gather", "f32[3,4], 0, i64[0]")
    w.case("gather", "f32[3,4], 0, i64[0,2,0]")
    w.case("scatter.src", "f32[], 0, i64[]=0, f32[]")
    w.case("scatter.src", "f32[3,4], 0, i64[0], f32[2]")
    w.case("scatter_.src", "f32[3,4].t, 0, $g, f32[2,4]", "same")
    w.case("scatter_.value", "f32[3,4].t, 0, $g, 1.5", "same")
    w.case("scatter_add_", "f32[3,4].t, 0, $g, f32[2,4]", "same ulp=1")
    w.case("gather", "f32[3,4], 0, i32[2,4]=1")
    w.tensor("nans", torch.tensor([1.0, float("nan"), 5.0, -1.0]))
    ints(w, "g4", [0, 0, 1, 1])
    for how in ("amax", "amin"):
        w.case("scatter_reduce.two", "f32[2], 0, $g4, $nans, '%s'" % how)
        w.case("scatter_reduce.two", "f32[3], 0, $g4, $nans, '%s', include_self=False" % how)
    w.comment("gather, scatter: refusals")
    for args in ("f32[3,4], 0, $g3", "f32[3,4], 0, i16[2,4]", "f32[3,4], 0, i64[1,9]", "f32[3,4], 2, $g", "f32[3,4], 0, $one"):
        w.case("gather", args)
        w.case("scatter.value", args + ", 1")
    for args in ("f32[3], 0, $far", "f32[3], 0, $low"):
        w.case("gather", args, "cpu")
        w.case("scatter.value", args + ", 1", "cpu")
        w.case("scatter_add", args + ", f32[2]", "cpu")
    for args in ("f32[3,4], 0, $g, f64[2,4]", "f32[3,4], 0, $g, f32[1,4]", "f32[3,4], 0, i64[1,2], f32[1,1]", "f32[3,4], 0, $g, f32[2,4,1]"):
        w.case("scatter.src", args)
        w.case("scatter_add", args)
    w.case("scatter.value", "u8[3], 0, $i3, 300")
    w.case("scatter.value", "f32[3], 0, $i3, 1j")
    w.case("scatter_reduce.two", "f32[3], 0, $i3, f32[3], 'max'")
    w.case("scatter_reduce.two", "f32[3], 0, $i3, f32[3], 'add'")
    w.case("scatter_.src", "f32[3,4].expanded, 0, $g, f32[2,4]")


def masks(w):
    w.comment("masks")
    skip = "cpu"
    for a in DTYPES:
        w.case("masked_select", a + "[3,4], $m34", skip)
        w.case("masked_scatter", a + "[3,4], $m34, %s[9]" % a)
        w.case("nonzero", a + "[3,4].t", skip)
    for args in ("f32[3,4].t, $m4", "f32[4,3].t, $m4", "f32[3,1], $m34", "f32[4], $m34", "f32[], bool[]", "f32[0,4], bool[4]", "f32[3,4], $m3",
                 "f32[3,4], i64[3,4]", "f32[3,4], u8[3,4]"):
        w.case("masked_select", args, skip)
    w.case("masked_select.out", "f32[3,4], $m34, out=f32[0]", skip)
    w.case("masked_select.out", "f32[3,4], $m34, out=f64[0]", skip)
    for args in ("f32[3,4], $m4, f32[20]", "f32[4], $m34, f32[6]", "f32[4,3].t, $m34, f32[2,5].t", "f32[3,4], i64[3,4], f32[12]"):
        w.case("masked_scatter", args)
    w.case("masked_scatter", "f32[3,4], $m34, f32[2]", skip)
    w.case("masked_scatter_", "f32[3,4].strided, $m34, f32[2,5].t", "same")
    for args in ("f32[]", "f32[]=0", "f32[0,3]", "i64[5,4,3]", "bool[7].strided", "bf16[3,4]=-0.0", "c64[2,2]"):
        w.case("nonzero", args, skip)
    w.case("nonzero.out", "f32[3,4], out=i64[12,2].t", skip)
    w.tensor("odd", torch.tensor([0.0, float("nan"), -0.0, 1e-45, float("inf")]))
    w.case("nonzero", "$odd", skip)


def embeddings(w):
    w.comment("embedding")
    ints(w, "tok", [[3, 1, 1], [0, 3, 5]])
    for a in DTYPES:
        w.case("embedding", a + "[6,4], $tok")
    for args in ("f32[4,6].t, $i3", "f32[6,100], $tok", "f32[6,4], $one", "f32[6,4], $none", "f32[6,0], $tok", "f32[6,1], $tok, 3",
                 "f32[6,4].strided, i32[2]=5", "f32[6], $tok", "f32[6,4,1], $tok", "f32[6,4], f32[2]"):
        w.case("embedding", args)
    for args in ("f32[6,4], i64[1]=6", "f32[6,4], i64[1]=-1"):
        w.case("embedding", args, "cpu")
    w.refuse("embedding", "f32[0,4], $one", "cpu IndexError: index out of range in self")
    for a in FLOATS:
        tol = "rtol=2e-2 atol=1e-2" if a in ("f16", "bf16") else "ulp=4"
        w.case("embedding_dense_backward", a + "[2,3,4], $tok, 6, -1, False", tol)
        w.case("embedding_dense_backward", a + "[2,3,4], $tok, 6, 1, False", tol)
        w.case("embedding_dense_backward", a + "[2,3,4], $tok, 6, 3, True", tol)
    for args in ("f32[2,4,3].t, i32[2,4]=2, 3, -1, False", "f32[2,3,300], $tok, 7, -1, False", "f32[0,3], $none, 4, -1, False",
                 "f32[2,3,4], i64[2,3]=3, 6, 3, False", "f32[2,3], f32[2], 4, -1, False", "f32[2,2,3], i64[2]=1, 4, -1, False"):
        w.case("embedding_dense_backward", args, "ulp=2")
    w.refuse("embedding_dense_backward", "f32[2,3], $far, 4, -1, False", "cpu IndexError: index out of range in self")


with Writer("index") as writer:
    for part in (shared, index, index_put, slices, gathers, masks, embeddings):
        part(writer)
