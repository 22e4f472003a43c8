"""Unpooling, sums behind a pool and constants added: their integers, and the lines that they read, against loops over elements."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node, QuantGraph, QuantNode, QuantTensor
from n2d2py.memory.access import MEMORY_ACCESSES, Whole
from n2d2py.operators.add_constants import AddConstants
from n2d2py.operators.pool import Pool
from n2d2py.operators.pool_sum import PoolSum
from n2d2py.operators.unpool import Unpool
from n2d2py.quant.contract import LayerTypes, quantize_layer, refused
from n2d2py.quant.options import QuantOptions

WINDOWS = [
    ((2, 2), (2, 2), (0, 0, 0, 0), (6, 8)),
    ((2, 3), (2, 3), (0, 0, 0, 0), (5, 7)),
    ((2, 2), (3, 3), (0, 0, 0, 0), (8, 9)),
    ((3, 2), (3, 2), (1, 0, 1, 1), (7, 7)),
    ((3, 3), (2, 2), (1, 1, 1, 1), (7, 8)),
]


def _shapes(op: Unpool, image: tuple[int, int]) -> tuple[tuple, tuple, tuple]:
    pooled = Pool("Max", op.kernel, op.stride, op.pads).output_shapes([(1, 2, *image)], None)[0]
    return pooled, (1, 2, *image), op.output_shapes([pooled, (1, 2, *image)], Node("y", op, ["x", "z"], ["y"]))[0]


@every(("kernel", "stride", "pads", "image"), WINDOWS)
@every("zero", [0, 5])
def test_integers_go_where_the_maximum_was(kernel, stride, pads, image, zero):
    """The first of equal values counts; other positions hold the zero point; limits cut."""
    op = Unpool(kernel, stride, pads)
    pooled, source, result = _shapes(op, image)
    rng = np.random.default_rng(1)
    x = rng.integers(-20, 21, pooled).astype(np.int8)
    z = rng.integers(-3, 4, source).astype(np.int8)
    graph = QuantGraph("net", 8)
    kind = NumType(8, zero_point=zero)
    graph.tensors = {
        "x": QuantTensor("x", pooled, kind),
        "z": QuantTensor("z", source, NumType(8)),
        "y": QuantTensor("y", result, kind),
    }
    node = QuantNode("y", op, ["x", "z"], ["y"], clamp=(-18, 19))
    wanted = np.zeros(result, np.int64)
    for c, i, j in np.ndindex(*pooled[1:]):
        best, at = -1000, None
        for a, b in np.ndindex(*kernel):
            line, column = i * stride[0] - pads[0] + a, j * stride[1] - pads[1] + b
            if 0 <= line < image[0] and 0 <= column < image[1] and z[0, c, line, column] > best:
                best, at = z[0, c, line, column], (line, column)
        if at is not None and at[0] < result[2] and at[1] < result[3]:
            wanted[0, c, at[0], at[1]] += int(x[0, c, i, j]) - zero
    (found,) = op.run_integer([x, z], node, graph)
    assert found.dtype == np.int8 and np.array_equal(found, np.clip(wanted + zero, -18, 19))
    assert np.array_equal(op.run([x.astype(np.float64) - zero, z.astype(np.float64)], node)[0], wanted)


def test_overlapping_windows_have_no_integers():
    for op, overlap in (
        (Unpool((2, 2), (2, 2)), False),
        (Unpool((2, 2), (2, 1)), True),
        (Unpool((3, 2), (2, 2)), True),
        (Unpool((1, 1), (2, 2)), False),
    ):
        assert (refused(Node("y", op, ["x", "z"], ["y"])) is not None) == overlap == op.overlaps


@every("other", [(1, 2, 3, 4), (1, 2, 1, 1), (1, 1, 3, 4), (1, 1, 1, 1)])
def test_sums_behind_a_pool(other):
    """The second input is repeated along axes of length 1; integers wrap around."""
    op, node = PoolSum((2, 2), (2, 2)), Node("y", PoolSum((2, 2), (2, 2)), ["x", "r"], ["y"])
    rng = np.random.default_rng(2)
    x, r = rng.integers(-9, 9, (1, 2, 6, 8)).astype(np.int32), rng.integers(-9, 9, other).astype(np.int32)
    wanted = x.reshape(1, 2, 3, 2, 4, 2).max(axis=(3, 5)) + r
    assert op.output_shapes([x.shape, other], node) == [(1, 2, 3, 4)] and op.macs([x.shape, other], (1, 2, 3, 4), node) == 24
    assert np.array_equal(op.run_integer([x, r], node, None)[0], wanted) and np.array_equal(op.run([x, r], node)[0], wanted)
    access = MEMORY_ACCESSES.get("PoolSum")(node, None)
    assert isinstance(access, Whole) and access.prefers_caller


@every("other", [(1, 3, 3, 4), (1, 2, 3, 3), (1, 2, 12), (2,)])
def test_sums_behind_a_pool_of_other_shapes(other):
    op = PoolSum((2, 2), (2, 2))
    with pytest.raises(N2D2Error, match="E205: PoolSum"):
        op.output_shapes([(1, 2, 6, 8), other], Node("y", op, ["x", "r"], ["y"]))


@every(("bits", "zero"), [(8, 0), (8, 9), (16, 0)])
@every("scale", [0.0, 0.01, 3.0])
def test_integers_of_added_constants(bits, zero, scale):
    """Within a step of the real sums; constants of 0 cost nothing."""
    rng = np.random.default_rng(3)
    constants = (rng.normal(size=5) * scale).astype(np.float32)
    x, y = NumType(bits, scale=2.0**-5, zero_point=zero), NumType(bits, scale=4 * max(scale, 1) / (2 ** (bits - 1) - 1))
    assert error_of_added(constants, x, y, bits) <= 0.55 + np.abs(constants).max() / (2 ** (bits - 1) - 1) / 2 / y.scale


@every("largest", [0.0, 1e2, 1e4])
def test_one_large_constant_does_not_spoil_the_others(largest):
    """A result of 16 bits in a network of 8 is within two steps, as if its constants had 16 bits."""
    constants = np.append(np.float32(largest), np.random.default_rng(4).normal(size=500)).astype(np.float32)
    step = 2 * max(largest, 4.0) / 32767
    error = error_of_added(constants, NumType(16, scale=2.0**-10), NumType(16, scale=step), 8)
    assert error <= 0.55 + (0.5 if largest else np.abs(constants).max() / 127 / 2 / step)


def error_of_added(constants: np.ndarray, x: NumType, y: NumType, bits: int) -> float:
    """The largest error, in steps of the result, of constants that are added in a network of `bits`."""
    node, size = Node("y", AddConstants(), ["x"], ["y"], {"constants": constants}), 3 * len(constants)
    formed = quantize_layer(node, LayerTypes([x], y, QuantOptions(bits)))
    graph = QuantGraph("net", bits)
    graph.tensors = {"x": QuantTensor("x", (1, size), x), "y": QuantTensor("y", (1, size), y)}
    stored = np.random.default_rng(3).integers(-60, 61, (4, size)).astype(x.dtype)
    (found,) = node.op.run_integer([stored], formed, graph)
    real = (stored.astype(np.float64) - x.zero_point) * x.scale
    assert np.allclose(node.op.run([real], node)[0], real + np.tile(constants, 3))
    assert found.dtype == y.dtype
    return float(np.abs(found - np.clip((real + np.tile(constants, 3)) / y.scale, y.qmin, y.qmax)).max())
