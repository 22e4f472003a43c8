"""Windows, unpooling, sums after a pool, constants added and conversions of types, against loops over elements."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.ops import LRN, AddConstants, ArrayMap, Pool, PoolSum, Unpool
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, quantize_layer, refused
from n2d2py.graph import Node, QuantGraph, QuantNode, QuantTensor
from n2d2py.memory.access import MEMORY_ACCESSES, Whole
from n2d2py.operators.arrays.reduce import _mean

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


@every("channels", [1, 2, 3, 5])
@every("size", range(1, 13))
def test_windows_wider_than_the_channels(size, channels):
    """ONNX: of channel c those from c - floor((size - 1) / 2) to c + ceil((size - 1) / 2) that there are."""
    x = np.random.default_rng(size).normal(size=(2, channels, 2, 3))
    op = LRN(size, 0.5, 0.75, 2.0)
    wanted = np.empty_like(x)
    for c in range(channels):
        window = x[:, max(0, c - (size - 1) // 2) : min(channels - 1, c + size // 2) + 1]
        wanted[:, c] = x[:, c] / (2.0 + 0.5 * np.square(window).sum(axis=1)) ** 0.75
    np.testing.assert_allclose(op.run([x], Node("y", op, ["x"], ["y"]))[0], wanted, rtol=1e-12)
    assert op.macs([x.shape], x.shape, Node("y", op, ["x"], ["y"])) == x.size * min(size, channels)


def _cast(result: str) -> tuple[ArrayMap, Node]:
    op = ArrayMap("Cast", (2, 3), ((2, 3),), (0,), result)
    return op, Node("y", op, ["x"], ["y"])


@every(("result", "wanted"), [("int32", [-2, 0, 0, 0, 2, 300]), ("bool", [1, 1, 0, 1, 1, 1]), ("int64", [-2, 0, 0, 0, 2, 300])])
@every("dtype", [np.float32, np.float64])
def test_reals_become_integers_towards_zero(result, wanted, dtype):
    op, node = _cast(result)
    x = np.array([[[-2.75, -0.5, 0, 0.5, 2.75, 300.5]]], dtype).reshape(1, 2, 3)
    (found,) = op.run([x], node)
    assert found.dtype.kind in "ib" and found.reshape(-1).tolist() == wanted


@pytest.mark.parametrize("bits", [32, 64])
def test_integers_become_reals_of_the_network(bits):
    op, node = _cast("")
    graph: Any = SimpleNamespace(type=lambda name: {"y": NumType(bits, is_float=True)}[name])
    for dtype in (np.int8, np.int32, np.bool_):
        (found,) = op.run_integer([np.ones((1, 2, 3), dtype)], node, graph)
        assert found.dtype == NumType(bits, is_float=True).dtype and (found == 1).all()
    x = np.array([[[0.25, 0.5, 1], [-1, -0.5, 2]]], np.float64)
    (found,) = op.run_integer([x], node, graph)
    assert found.dtype == NumType(bits, is_float=True).dtype and np.array_equal(found.reshape(x.shape), x)


@pytest.mark.parametrize(("result", "low", "high"), [("int8", -128, 127), ("uint8", 0, 255), ("int32", -(2**31), 2**31 - 1)])
def test_reals_beyond_an_integer_type_become_its_ends(result, low, high):
    op, node = _cast(result)
    x = np.array([[[-1e20, 1e20, -np.inf], [np.inf, 100.9, -0.5]]], np.float32).reshape(1, 2, 3)
    (found,) = op.run([x], node)
    assert found.reshape(-1).tolist() == [low, high, low, high, 100, 0]


@every("result", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
def test_reals_at_the_ends_of_an_integer_type(result):
    """2^63 is no int64, though the largest one is as near to it as a real number can be."""
    op, node = _cast(result)
    limits = np.iinfo(result)
    low, high = float(limits.min), float(limits.max)
    x = np.array(
        [low, np.nextafter(low, np.inf), np.nextafter(low, -np.inf), high, np.nextafter(high, 0), np.nextafter(high, np.inf)]
    )
    (found,) = op.run([x.reshape(1, 2, 3)], node)
    assert found.reshape(-1).tolist() == [min(max(int(value), limits.min), limits.max) for value in x]


def _summed(values) -> np.float32:
    """One after the other, in float32."""
    total = np.float32(0)
    for value in values:
        total = np.float32(total + value)
    return total


@every("size", [(1, 1), (1, 3), (2, 2), (5, 1), (2, 3), (1, 7), (3, 3), (2, 5), (11, 1), (4, 4), (3, 7), (5, 5)])
def test_real_numbers_of_a_whole_input_are_added_in_four_sums(size):
    """And what is left by fours one by one; the order of any other window is that of its columns, or of its lines."""
    rng = np.random.default_rng(size[0] * size[1])
    x = (rng.normal(size=(1, 1, *size)) * 10.0 ** rng.integers(-3, 4, size)).astype(np.float32)
    flat = x.reshape(-1)
    whole = len(flat) - len(flat) % 4
    a, b, c, d = (_summed(flat[at:whole:4]) for at in range(4))
    wanted = _summed([np.float32(np.float32(a + c) + np.float32(b + d)), *flat[whole:]])
    assert Pool("Average", size)._real_sums(x).reshape(-1).tolist() == [wanted]
    columns = _summed([_summed(x[0, 0, :, at]) for at in range(size[1])])
    assert Pool("Average", size, (2, 2))._real_sums(x).reshape(-1).tolist() == [columns]
    assert Pool("Average", size, (1, 3))._real_sums(x).reshape(-1).tolist() == [_summed(flat)]
    wider = np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 0)), constant_values=1e9)
    assert Pool("Average", size)._real_sums(wider)[0, 0, 0, 0] == columns


def test_means_of_integers_are_cut_off_towards_zero():
    rows = np.array([[a, b, c] for a in range(-4, 5) for b in (-1, 0, 3) for c in (0, 1)], np.int32)
    assert _mean(rows).tolist() == [int(sum(row) / 3) for row in rows.tolist()]
