"""Numbers of windows of pools, the order of their sums, means of a file's runtime, and the positions that a choice may take."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.arithmetic import NumType
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.forms import Dequantized, Moved, Rescaled
from n2d2py.graph.quant import QuantTensor
from n2d2py.memory.access import MEMORY_ACCESSES
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.pool import Pool
from n2d2py.operators.pool.integer import mean_rounding
from n2d2py.operators.windows import output_extent, pad


@pytest.mark.parametrize(
    "pool, size, order",
    [
        (Pool("Average", (3, 4)), (3, 4), "lanes"),
        (Pool("Average", (3, 4)), (4, 4), "columns"),
        (Pool("Average", (3, 4)), (3, 5), "columns"),
        (Pool("Average", (3, 4), (2, 1)), (3, 4), "columns"),
        (Pool("Average", (3, 4), (1, 2)), (3, 4), "columns"),
        (Pool("Average", (3, 4), (1, 1), (0, 0, 0, 1)), (3, 4), "columns"),
        (Pool("Average", (2, 2), (3, 2)), (8, 8), "columns"),
        (Pool("Average", (2, 2), (1, 3)), (8, 8), "rows"),
        (Pool("Average", (3, 4), (1, 3)), (3, 4), "rows"),
    ],
)
def test_the_order_of_sums(pool, size, order):
    assert pool.order(size) == order


@pytest.mark.parametrize("count_pad, wanted", [(True, [[6, 6, 6], [6, 6, 6]]), (False, [[1, 2, 1], [3, 6, 3]])])
def test_what_a_mean_divides_by(count_pad, wanted):
    """Windows of 3 x 2 over an image of 3 x 2 with two lines above and a column at each side, strides 2 and 1."""
    pool = Pool("Average", (3, 2), (2, 1), (2, 1, 0, 1), count_pad)
    np.testing.assert_array_equal(pool.window_counts((3, 2)), wanted)
    x = np.arange(6.0).reshape(1, 1, 3, 2)
    around = np.pad(x[0, 0], ((2, 0), (1, 1)))
    sums = [[around[i : i + 3, j : j + 2].sum() for j in range(3)] for i in (0, 2)]
    np.testing.assert_allclose(pool.run([x], None)[0][0, 0], np.array(sums) / np.array(wanted))


def test_the_work_of_means_and_maxima():
    shape = (1, 5, 3, 2)
    assert Pool("Average", (2, 4)).macs([shape], shape, None) == 8 * 5 * 3 * 2
    assert Pool("Max", (2, 4)).macs([shape], shape, None) == 0
    assert Pool("Max", (2, 4)).moves_values and not Pool("Average", (2, 4)).moves_values


LITTLE = 2.0**-8


@pytest.mark.parametrize(
    "ratio, count, added",
    [
        # half of the power above the count, over the mantissa, where the power of the ratio is below that of the count
        (0.75, 1, 0.0),
        (0.75, 2, 2 / 4 / 0.75),
        (0.75, 3, 3 / 4 / 0.75),
        (0.75, 4, 4 / 8 / 0.75),
        (0.5, 2, 1.0),
        (1.0, 2, 0.0),
        (1.0, 4, 4 / 8 / 0.5),
        (1.5, 2, 0.0),
        (1.5, 4, 4 / 8 / 0.75),
        (1.5, 7, 7 / 8 / 0.75),
        (3.0, 7, 0.0),
        (3.0, 9, 9 / 16 / 0.75),
        (0.25, 1, 1 / 2 / 0.5),
    ],
)
def test_what_the_second_rounding_of_a_mean_adds(ratio, count, added):
    assert mean_rounding(ratio, np.array([count])) == pytest.approx([added + LITTLE], abs=1e-12)


@pytest.mark.parametrize(
    "mode, kernel, kind, bound, wanted",
    [
        ("Max", (300, 300), NumType(8), 0, 1),
        ("Max", (2, 2), NumType(16), 0, 2),
        ("Average", (2, 2), NumType(8), 0, 4),
        # 255 x 2896 x 2908 = 2147499840 is beyond 32 bits, 255 x 2896 x 2907 is not
        ("Average", (2896, 2907), NumType(8, False), 0, 4),
        ("Average", (2896, 2908), NumType(8, False), 0, 8),
        # a zero point of 127 makes the least value -255
        ("Average", (2896, 2907), NumType(8, full=True, zero_point=127), 0, 4),
        ("Average", (2896, 2908), NumType(8, full=True, zero_point=127), 0, 8),
        ("Average", (2896, 2908), NumType(8, zero_point=-128), 0, 8),
        ("Average", (2, 2), NumType(8), 2**31 - 1, 4),
        ("Average", (2, 2), NumType(8), 2**31, 8),
        ("Average", (2, 2), NumType(32, is_float=True), 0, 4),
    ],
)
def test_bytes_that_a_pool_keeps_of_a_channel(mode, kernel, kind, bound, wanted):
    graph = QuantGraph("g", 8)
    graph.tensors = {name: QuantTensor(name, (1, 3, 4000, 4000), kind) for name in "xy"}
    node = QuantNode("y", Pool(mode, kernel), ["x"], ["y"], Moved() if mode == "Max" else Rescaled())
    node.bound = bound
    assert MEMORY_ACCESSES["Pool"](node, graph).partial_bytes == wanted


@pytest.mark.parametrize("size, by_lines", [((3, 4), False), ((3, 5), True), ((4, 4), True)])
def test_a_mean_of_a_whole_input_in_real_numbers_has_no_sums_of_lines(size, by_lines):
    graph = QuantGraph("g", 8)
    graph.tensors = {"x": QuantTensor("x", (1, 3, *size), NumType(8)), "y": QuantTensor("y", (1, 3, 1, 1), NumType(8))}
    node = QuantNode("y", Pool("Average", (3, 4)), ["x"], ["y"], Dequantized(np.ones(1, np.float32)))
    assert MEMORY_ACCESSES["Pool"](node, graph).by_lines is by_lines


@pytest.mark.parametrize(
    "indices, shape",
    [
        (((3, 0), None, (5,)), (1, 2, 5, 1)),
        ((None, (0,) * 7, None), (1, 4, 7, 6)),
        (((0,), (4,), (5, 0, 5)), (1, 1, 1, 3)),
        (((4,), None, None), None),
        ((None, (-1,), None), None),
        ((None, None, (6, 0)), None),
        (((), None, None), None),
        (((0,), None), None),
        ((None, None, None, None), None),
    ],
)
def test_the_positions_that_an_input_has(indices, shape):
    op = IndexSelect(indices)
    node = Node("n", op, ["x"], ["n"])
    if shape is None:
        with pytest.raises(N2D2Error, match="IndexSelect 'n'"):
            op.output_shapes([(1, 4, 5, 6)], node)
        return
    assert op.output_shapes([(1, 4, 5, 6)], node) == [shape]
    x = np.arange(120).reshape(1, 4, 5, 6)
    taken = [range(size) if axis is None else axis for axis, size in zip(indices, (4, 5, 6), strict=True)]
    np.testing.assert_array_equal(op.run([x], node)[0][0], x[0][np.ix_(*taken)])


@pytest.mark.parametrize(
    "pads, wanted",
    [
        ((0, 0, 0, 0), [[1, 2, 3], [4, 5, 6]]),
        ((1, 0, 0, 2), [[9, 9, 9, 9, 9], [1, 2, 3, 9, 9], [4, 5, 6, 9, 9]]),
        ((-1, 0, 0, 0), [[4, 5, 6]]),
        ((0, -1, 0, 0), [[2, 3], [5, 6]]),
        ((0, 0, -1, 0), [[1, 2, 3]]),
        ((0, 0, 0, -2), [[1], [4]]),
        ((-1, 1, 1, -1), [[9, 4, 5], [9, 9, 9]]),
    ],
)
def test_pads_add_and_crop(pads, wanted):
    x = np.array([[[[1, 2, 3], [4, 5, 6]]]])
    np.testing.assert_array_equal(pad(x, pads, 9)[0, 0], wanted)


@pytest.mark.parametrize(
    "size, extent, stride, pads, wanted",
    [
        ((7, 10), (3, 2), (1, 1), (0, 0, 0, 0), (5, 9)),
        ((7, 10), (3, 2), (2, 3), (1, 0, 2, 3), (4, 4)),
        ((7, 10), (8, 2), (1, 1), (1, 0, 0, 0), (1, 9)),
        ((7, 10), (7, 10), (5, 5), (0, 0, 0, 0), (1, 1)),
        ((7, 10), (8, 2), (1, 1), (0, 0, 0, 0), "a window of 2x8 does not fit into the padded input of 10x7"),
        ((7, 10), (3, 12), (1, 1), (0, 1, 3, 0), "a window of 12x3 does not fit into the padded input of 11x10"),
        ((7, 10), (3, 10), (1, 1), (0, 0, 0, -1), "a window of 10x3 does not fit into the padded input of 9x7"),
    ],
)
def test_the_positions_of_a_window(size, extent, stride, pads, wanted):
    node = Node("n", Pool("Max", (1, 1)), ["x"], ["n"])
    if isinstance(wanted, str):
        with pytest.raises(N2D2Error, match=f"Pool 'n': {wanted}"):
            output_extent(size, extent, stride, pads, node)
    else:
        assert output_extent(size, extent, stride, pads, node) == wanted


A, B = np.array([[3.0, -2.0, 0.5]]), np.array([[-1.0, 4.0, 2.0]])


@pytest.mark.parametrize(
    "op, wanted",
    [
        (ElemWise("Sum"), [2, 2, 2.5]),
        (ElemWise("Sum", (2.0, -1.0)), [7, -8, -1]),
        (ElemWise("Sum", (), (0.5, 0.25)), [2.75, 2.75, 3.25]),
        (ElemWise("Sum", (2.0, -1.0), (0.0, 1.0)), [8, -7, 0]),
        (ElemWise("AbsSum"), [4, 6, 2.5]),
        (ElemWise("AbsSum", (2.0, -1.0)), [5, 0, -1]),
        (ElemWise("EuclideanSum"), [10**0.5, 20**0.5, 4.25**0.5]),
        (ElemWise("EuclideanSum", (2.0, 1.0), (1.0, 0.0)), [50**0.5, 5, 8**0.5]),
        (ElemWise("Prod"), [-3, -8, 1]),
        (ElemWise("Max"), [3, 4, 2]),
        (ElemWise("Min"), [-1, -2, 0.5]),
    ],
)
def test_two_tensors_combined(op, wanted):
    np.testing.assert_allclose(op.run([A, B], None)[0], [wanted])


@pytest.mark.parametrize(
    "shapes, wanted",
    [
        ([(1, 4, 5, 6), (1, 4, 1, 1)], (1, 4, 5, 6)),
        ([(1, 1, 5, 1), (1, 4, 5, 6), (1, 4, 5, 6)], (1, 4, 5, 6)),
        ([(1, 4, 5, 6), (1, 4, 5)], "its inputs have the shapes 4x5x6 and 4x5"),
        ([(1, 4, 1, 6), (1, 4, 5, 1)], "its inputs have the shapes 4x1x6 and 4x5x1"),
        ([(1, 4, 1), (1, 3, 1), (1, 4, 5)], "its inputs have the shapes 4x1 and 3x1 and 4x5"),
    ],
)
def test_shapes_that_combine(shapes, wanted):
    op = ElemWise("Sum")
    node = Node("n", op, ["x"] * len(shapes), ["n"])
    if isinstance(wanted, str):
        with pytest.raises(N2D2Error, match=f"ElemWise 'n': {wanted};"):
            op.output_shapes(shapes, node)
    else:
        assert op.output_shapes(shapes, node) == [wanted]
        assert op.macs(shapes, wanted, node) == 120 * len(shapes)
