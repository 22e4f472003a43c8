"""Networks of kinds that deployed models have, in the spelling of several exporters: random weights, small sizes."""

from __future__ import annotations

import numpy as np
import onnx

from support.onnx_models import shapes, text_model

__all__ = ["UNSEEN", "build"]


def build(name: str) -> onnx.ModelProto:
    """The network called `name`."""
    signature, body, constants, opset = UNSEEN[name]
    model = text_model(signature, body, constants, opset=opset, seed=len(name), fan_in=True)
    onnx.checker.check_model(model)
    return model


def _i(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _f(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


_GRID = np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(1, 1, 4, 4, 2).astype(np.float32)
_ANCHORS = np.array([[10, 13], [16, 30]], np.float32).reshape(1, 2, 1, 1, 2)

UNSEEN = {
    "deeplab": (
        "float[1,3,24,24] image => float[1,5,24,24] classes",
        """
        s = Conv<strides=[2,2], pads=[1,1,1,1]>(image, w1, b1)
        r1 = Relu(s)
        a = Conv(r1, w2, b2)
        ar = Relu(a)
        d1 = Conv<dilations=[2,2], pads=[2,2,2,2]>(r1, w3, b2)
        d1r = Relu(d1)
        d2 = Conv<dilations=[4,4], pads=[4,4,4,4]>(r1, w4, b2)
        d2r = Relu(d2)
        g = GlobalAveragePool(r1)
        gc = Conv(g, w2, b2)
        gr = Relu(gc)
        up = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(gr, , , size12)
        cat = Concat<axis=1>(ar, d1r, d2r, up)
        p = Conv(cat, w5, b2)
        pr = Relu(p)
        h = Conv(pr, w6, b6)
        classes = Resize<mode="linear", coordinate_transformation_mode="align_corners">(h, , , size24)""",
        shapes("w1=8x3x3x3 b1=8 w2=6x8x1x1 b2=6 w3=6x8x3x3 w4=6x8x3x3 w5=6x24x1x1 w6=5x6x1x1 b6=5")
        | {"size12": _i(1, 6, 12, 12), "size24": _i(1, 5, 24, 24)},
        17,
    ),
    "segmentation_labels": (
        "float[1,3,16,16] image => int64[1,1,16,16] labels",
        """
        c = Conv<strides=[2,2], pads=[1,1,1,1]>(image, w1)
        cl = LeakyRelu<alpha=0.1>(c)
        h = Conv(cl, w2)
        up = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(h, , scales)
        p = Softmax<axis=1>(up)
        labels = ArgMax<axis=1>(p)""",
        {"w1": (8, 3, 3, 3), "w2": (4, 8, 1, 1), "scales": _f(1, 1, 2, 2)},
        17,
    ),
    "unet": (
        "float[1,1,16,16] image => float[1,2,16,16] mask",
        """
        e1 = Conv<pads=[1,1,1,1]>(image, w1)
        e1r = Relu(e1)
        p1 = MaxPool<kernel_shape=[2,2], strides=[2,2]>(e1r)
        e2 = Conv<pads=[1,1,1,1]>(p1, w2)
        e2r = Relu(e2)
        u = ConvTranspose<strides=[2,2], kernel_shape=[2,2]>(e2r, w3)
        cat = Concat<axis=1>(u, e1r)
        d = Conv<pads=[1,1,1,1]>(cat, w4)
        dn = InstanceNormalization(d, s4, b4)
        dr = Relu(dn)
        o = Conv(dr, w5)
        mask = Sigmoid(o)""",
        shapes("w1=6x1x3x3 w2=10x6x3x3 w3=10x6x2x2 w4=6x12x3x3 w5=2x6x1x1")
        | {"s4": _f(1, 0.5, 2, 1, 1.5, 1), "b4": _f(0, 1, 0, 0.1, 0, 0)},
        17,
    ),
    "pose": (
        "float[1,3,16,16] image => float[1,4,16,16] heatmaps, float[1,8,16,16] offsets",
        """
        c = Conv<strides=[4,4], pads=[1,1,1,1]>(image, w1)
        h = HardSwish(c)
        u1 = ConvTranspose<strides=[2,2], pads=[1,1,1,1], kernel_shape=[4,4]>(h, w2)
        r1 = Relu(u1)
        u2 = ConvTranspose<strides=[2,2], pads=[1,1,1,1], kernel_shape=[4,4]>(r1, w3)
        r2 = Relu(u2)
        heatmaps = Conv(r2, w4)
        offsets = Conv(r2, w5)""",
        {"w1": (12, 3, 3, 3), "w2": (12, 8, 4, 4), "w3": (8, 6, 4, 4), "w4": (4, 6, 1, 1), "w5": (8, 6, 1, 1)},
        17,
    ),
    "yolo": (
        "float[1,3,16,16] image => float[1,32,7] boxes",
        """
        c = Conv<strides=[2,2], pads=[1,1,1,1]>(image, w1)
        s = Sigmoid(c)
        m = Mul(c, s)
        d = Conv<strides=[2,2], pads=[1,1,1,1]>(m, w2)
        ds = Sigmoid(d)
        dm = Mul(d, ds)
        h = Conv(dm, w3, b3)
        v = Reshape(h, five)
        t = Transpose<perm=[0,1,3,4,2]>(v)
        a = Sigmoid(t)
        xy, wh, conf = Split<axis=4>(a, parts)
        xy2 = Mul(xy, two)
        xy3 = Add(xy2, grid)
        xy4 = Mul(xy3, stride)
        wh2 = Mul(wh, two)
        wh3 = Pow(wh2, two)
        wh4 = Mul(wh3, anchors)
        y = Concat<axis=4>(xy4, wh4, conf)
        boxes = Reshape(y, flat)""",
        shapes("w1=8x3x3x3 w2=10x8x3x3 w3=14x10x1x1 b3=14")
        | {
            "five": _i(1, 2, 7, 4, 4),
            "parts": _i(2, 2, 3),
            "two": _f(2).reshape(()),
            "grid": _GRID - 0.5,
            "stride": _f(4).reshape(()),
            "anchors": _ANCHORS,
            "flat": _i(1, -1, 7),
        },
        17,
    ),
    "ssd": (
        "float[1,3,20,20] image => float[1,258,4] boxes, float[1,258,3] scores",
        """
        f1 = Conv<strides=[2,2], pads=[1,1,1,1]>(image, w1)
        r1 = Clip(f1, zero, six)
        f2 = Conv<strides=[2,2], pads=[1,1,1,1]>(r1, w2)
        r2 = Clip(f2, zero, six)
        l1 = Conv(r1, wl1)
        l1t = Transpose<perm=[0,2,3,1]>(l1)
        l1f = Reshape(l1t, four)
        l2 = Conv(r2, wl2)
        l2t = Transpose<perm=[0,2,3,1]>(l2)
        l2f = Reshape(l2t, four)
        rows = Concat<axis=1>(l1f, l2f, prior)
        centre = Slice(rows, from0, to2, last)
        size = Slice(rows, from2, to4, last)
        sizes = Exp(size)
        half = Mul(sizes, point5)
        low = Sub(centre, half)
        high = Add(centre, half)
        boxes = Concat<axis=2>(low, high)
        c1 = Conv(r1, wc1)
        c1t = Transpose<perm=[0,2,3,1]>(c1)
        c1f = Reshape(c1t, three)
        c2 = Conv(r2, wc2)
        c2t = Transpose<perm=[0,2,3,1]>(c2)
        c2f = Reshape(c2t, three)
        extra = Slice(c1f, from0, to8, middle)
        logits = Concat<axis=1>(c1f, c2f, extra)
        scores = Softmax<axis=2>(logits)""",
        shapes("w1=8x3x3x3 w2=12x8x3x3 wl1=8x8x1x1 wl2=8x12x1x1 wc1=6x8x1x1 wc2=6x12x1x1")
        | {
            "zero": _f(0).reshape(()),
            "six": _f(6).reshape(()),
            "four": _i(1, -1, 4),
            "three": _i(1, -1, 3),
            "prior": np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 8, 4),
            "from0": _i(0),
            "from2": _i(2),
            "to2": _i(2),
            "to4": _i(4),
            "to8": _i(8),
            "last": _i(2),
            "middle": _i(1),
            "point5": _f(0.5).reshape(()),
        },
        17,
    ),
    "detections": (
        "float[1,3,20,20] image => float[1,6,4] boxes, float[1,6] scores, int64[1,6] classes",
        """
        c = Conv<strides=[2,2], pads=[1,1,1,1]>(image, w1)
        r = Relu(c)
        s = Conv(r, w2)
        p = Sigmoid(s)
        v = Reshape(p, flat)
        scores, at = TopK<axis=-1>(v, k)
        classes = Div(at, cells)
        cell = Mod(at, cells)
        b = Conv(r, w3)
        e = Softplus(b)
        rows = Reshape(e, four)
        t = Transpose<perm=[0,2,1]>(rows)
        d = Unsqueeze(cell, last)
        wide = Expand(d, sizes)
        boxes = GatherElements<axis=1>(t, wide)""",
        shapes("w1=8x3x3x3 w2=5x8x1x1 w3=4x8x1x1")
        | {"flat": _i(1, -1), "four": _i(1, 4, -1), "k": _i(6), "cells": _i(100), "last": _i(2), "sizes": _i(1, 6, 4)},
        17,
    ),
    "angles": (
        "float[1,3,12,12] image => float[1,6,6,6] y",
        """
        c = Conv<strides=[2,2], pads=[1,1,1,1]>(image, w1)
        s = Sin(c)
        a = Conv(s, w2)
        t = Atan(a)
        h = Sinh(t)
        y = Add(h, t)""",
        {"w1": (8, 3, 3, 3), "w2": (6, 8, 1, 1)},
        17,
    ),
    "person": (
        "float[1,24,24,1] image => float[1,2] person",
        """
        t = Transpose<perm=[0,3,1,2]>(image)
        c = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(t, w1)
        b = BatchNormalization(c, s1, b1, m1, v1)
        r = Clip(b, zero, six)
        d = Conv<auto_pad="SAME_UPPER", group=8>(r, w2)
        dr = Clip(d, zero, six)
        p = Conv(dr, w3)
        pa = Add(p, b3)
        pr = Clip(pa, zero, six)
        m = ReduceMean<axes=[2,3], keepdims=0>(pr)
        g = MatMul(m, w4)
        l = Add(g, b4)
        person = Softmax<axis=-1>(l)""",
        shapes("w1=8x1x3x3 w2=8x1x3x3 w3=16x8x1x1 b3=1x16x1x1 w4=16x2 b4=2")
        | {
            "s1": np.linspace(0.5, 1.5, 8, dtype=np.float32),
            "b1": np.linspace(-1, 1, 8, dtype=np.float32),
            "m1": np.linspace(-0.2, 0.2, 8, dtype=np.float32),
            "v1": np.linspace(0.5, 2, 8, dtype=np.float32),
            "zero": _f(0).reshape(()),
            "six": _f(6).reshape(()),
        },
        13,
    ),
    "shuffle": (
        "float[1,8,8,8] x => float[1,8,8,8] y",
        """
        c = Conv<group=2>(x, w1)
        r = Relu(c)
        v = Reshape(r, five)
        t = Transpose<perm=[0,2,1,3,4]>(v)
        f = Reshape(t, four)
        d = Conv<group=8, pads=[1,1,1,1]>(f, w2)
        y = Add(d, x)""",
        {"w1": (8, 4, 1, 1), "w2": (8, 1, 3, 3), "five": _i(1, 2, 4, 8, 8), "four": _i(1, 8, 8, 8)},
        17,
    ),
    "shuffle_units": (
        "float[1,8,6,6] x => float[1,8,6,6] y",
        """
        a, b = Split<axis=1, num_outputs=2>(x)
        c = Conv(b, w1)
        r = Relu(c)
        d = Conv<group=4, pads=[1,1,1,1]>(r, w2)
        j = Concat<axis=1>(a, d)
        v = Reshape(j, five)
        t = Transpose<perm=[0,2,1,3,4]>(v)
        f = Reshape(t, four)
        e, g = Split<axis=1, num_outputs=2>(f)
        h = Conv(g, w1)
        i = Relu(h)
        k = Concat<axis=1>(e, i)
        u = Reshape(k, five)
        o = Transpose<perm=[0,2,1,3,4]>(u)
        y = Reshape(o, four)""",
        {"w1": (4, 4, 1, 1), "w2": (4, 1, 3, 3), "five": _i(1, 2, 4, 6, 6), "four": _i(1, 8, 6, 6)},
        18,
    ),
    "attention": (
        "float[1,3,8,8] image => float[1,4] y",
        """
        c = Conv<strides=[2,2], kernel_shape=[2,2]>(image, w1)
        v = Reshape(c, tokens)
        t = Transpose<perm=[0,2,1]>(v)
        n = LayerNormalization<axis=-1>(t, s, b)
        q = MatMul(n, wq)
        k = MatMul(n, wk)
        u = MatMul(n, wv)
        kt = Transpose<perm=[0,2,1]>(k)
        a = MatMul(q, kt)
        as = Mul(a, scale)
        p = Softmax<axis=-1>(as)
        o = MatMul(p, u)
        r = Add(o, t)
        g = Gelu(r)
        m = ReduceMean<keepdims=0>(g, ax)
        y = Gemm(m, w4, b4)""",
        shapes("w1=8x3x2x2 wq=8x8 wk=8x8 wv=8x8 w4=8x4 b4=4")
        | {
            "tokens": _i(1, 8, 16),
            "s": np.linspace(0.5, 1.5, 8, dtype=np.float32),
            "b": np.linspace(-1, 1, 8, dtype=np.float32),
            "scale": _f(0.35).reshape(()),
            "ax": _i(1),
        },
        20,
    ),
    "dynamic": (
        "float[1,3,9,7] image => float[1,5] y",
        """
        q, s, z = DynamicQuantizeLinear(image)
        p = ConvInteger<pads=[1,1,1,1], strides=[2,2]>(q, w1, z, none)
        f = Cast<to=1>(p)
        t = Mul(s, s1)
        m = Mul(f, t)
        a = Add(m, b1)
        r = Relu(a)
        v = Flatten(r)
        q2, s2, z2 = DynamicQuantizeLinear(v)
        p2 = MatMulInteger(q2, w2, z2, zeros)
        f2 = Cast<to=1>(p2)
        t2 = Mul(s2, s3)
        y = Mul(f2, t2)""",
        {
            "w1": np.random.default_rng(1).integers(-63, 64, (4, 3, 3, 3)).astype(np.int8),
            "none": np.int8(0),
            "s1": _f(0.013).reshape(()),
            "b1": (1, 4, 1, 1),
            "s3": np.linspace(0.01, 0.02, 5, dtype=np.float32),
            "w2": np.random.default_rng(2).integers(-63, 64, (80, 5)).astype(np.int8),
            "zeros": np.zeros(5, np.int8),
        },
        17,
    ),
    "two_inputs": (
        "float[1,3,8,8] left, float[1,3,8,8] right => float[1,4,8,8] sum, float[1,4] mean",
        """
        a = Conv<pads=[1,1,1,1]>(left, w)
        b = Conv<pads=[1,1,1,1]>(right, w)
        s = Add(a, b)
        sum = Relu(s)
        g = GlobalMaxPool(sum)
        mean = Flatten(g)""",
        {"w": (4, 3, 3, 3)},
        17,
    ),
}
"""Name -> (inputs => outputs, nodes, constants by value or by shape, opset)."""
