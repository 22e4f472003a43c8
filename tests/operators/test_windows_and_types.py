"""Windows of channels at the ends of an image, and conversions of types, against their definitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.graph import Node
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.lrn import LRN
from n2d2py.operators.pool.op import Pool


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
