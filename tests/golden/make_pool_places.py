#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pooling by places: unpooling, and windows at random places: data/pool_places.txt."""

import torch

from literal import Writer

CLOSE = "rtol=1e-6 atol=1e-6"


def unpooling(w):
    w.comment("unpooling")
    w.tensor("x", torch.arange(1.0, 13.0).reshape(1, 3, 2, 2))
    w.tensor("at", torch.tensor([[[[0, 2], [7, 8]], [[1, 3], [4, 5]], [[8, 6], [0, 2]]]]))
    w.tensor("far", torch.tensor([[[[0, 2], [9, 8]], [[1, 3], [4, 5]], [[8, 6], [0, 2]]]]))
    w.tensor("low", torch.tensor([[[[0, 2], [-1, 8]], [[1, 3], [4, 5]], [[8, 6], [0, 2]]]]))
    w.tensor("deep", torch.tensor([[[[[0, 2], [7, 17]]], [[[1, 3], [4, 16]]]]]))
    w.case("max_unpool2d", "$x, $at, [3,3]")
    w.case("max_unpool2d", "$x, $at, [4,5]")
    w.case("max_unpool2d.out", "$x, $at, [3,3], out=f32[0]")
    w.grad("max_unpool2d", "$x.grad, $at, [3,3]")
    w.case("max_unpool2d", "$x, $far, [3,3]", "cpu")
    w.case("max_unpool2d", "$x, $low, [3,3]", "cpu")
    w.case("max_unpool3d", "f64[1,2,1,2,2], $deep, [2,3,3], [1,1,1], [0,0,0]")
    w.grad("max_unpool3d", "f64[1,2,1,2,2].grad, $deep, [2,3,3], [1,1,1], [0,0,0]")


def random_places(w):
    w.comment("windows at random places")
    torch.manual_seed(4)
    w.tensor("two", torch.rand(2, 3, 2))
    w.tensor("two64", torch.rand(2, 3, 2, dtype=torch.float64))
    w.tensor("three", torch.rand(2, 2, 3))
    w.tensor("three64", torch.rand(2, 2, 3, dtype=torch.float64))
    w.tensor("nan", torch.tensor([[[1.0, 2, float("nan"), 3], [float("nan"), 5, 5, 1], [1, 1, 1, 1], [1, 1, 1, 1]]]))
    w.tensor("one", torch.rand(1, 1, 2))
    for args in ("f32[2,3,7,6], [2,2], [3,4], $two", "f64[2,3,7,6].t, [3,2], [5,5], $two64", "f32[3,7,6], [2,2], [6,1], $two", "$nan, [2,2], [2,2], $one", "f32[2,3,7,6].cl, [1,2], [7,3], $two"):
        w.case("fractional_max_pool2d", args)
    w.grad("fractional_max_pool2d", "f64[2,3,7,6].grad, [3,2], [5,5], $two64", CLOSE)
    for args in ("f32[2,2,4,5,6], [2,2,2], [2,3,4], $three", "f64[2,2,4,5,6], [1,2,3], [3,3,3], $three64"):
        w.case("fractional_max_pool3d", args)
    w.grad("fractional_max_pool3d", "f64[2,2,4,5,6].grad, [1,2,3], [3,3,3], $three64", CLOSE)
    w.grad("fractional_max_pool2d", "f64[2,3,7,6].grad, [3,2], [5,5], $two64.grad")
    w.grad("fractional_max_pool3d", "f64[2,2,4,5,6], [1,2,3], [3,3,3], $three64.grad")
    for args in ("f32[2,3,7,6], [2,2], [7,4], $two", "f32[2,3,7,6], [2,2], [3,6], $two", "f32[3,7,6], [2,2], [3,3], $three"):
        w.case("fractional_max_pool2d", args)


if __name__ == "__main__":
    with Writer("pool_places") as writer:
        unpooling(writer)
        random_places(writer)
