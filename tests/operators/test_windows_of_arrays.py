"""Convolutions and pools of arrays (`n2d2py.operators.arrays.conv_pool`) whose first axis is no batch, against ONNX Runtime."""

from __future__ import annotations

from support.single_array_nodes import node, weights
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.operators.arrays.conv_pool import ArrayConvPool

CONVOLUTIONS = {
    "lines": node(
        "y = Conv <group = 2, strides = [2], pads = [1, 3], dilations = [2]> (x, w, b)",
        x=(2, 4, 9),
        w=weights(6, 2, 3),
        b=weights(6),
    ),
    "images": node(
        "y = Conv <group = 2, strides = [2, 1], pads = [1, 0, 2, 3], dilations = [1, 2]> (x, w)",
        x=(2, 4, 7, 6),
        w=weights(6, 2, 3, 2),
    ),
    "volumes": node(
        "y = Conv <strides = [1, 2, 3], pads = [0, 1, 0, 1, 2, 1], kernel_shape = [2, 3, 1]> (x, w, b)",
        x=(2, 2, 5, 4, 6),
        w=weights(3, 2, 2, 3, 1),
        b=weights(3),
    ),
    "three groups": node("y = Conv <group = 3> (x, w, b)", x=(3, 3, 5, 4), w=weights(6, 1, 2, 3), b=weights(6)),
    "upper": node('y = Conv <auto_pad = "SAME_UPPER", strides = [2, 3]> (x, w)', x=(2, 3, 7, 8), w=weights(2, 3, 4, 2)),
    "lower": node('y = Conv <auto_pad = "SAME_LOWER", strides = [2, 3]> (x, w)', x=(2, 3, 7, 8), w=weights(2, 3, 4, 2)),
    "upper, dilated": node(
        'y = Conv <auto_pad = "SAME_UPPER", dilations = [1, 2]> (x, w)', reference=True, x=(2, 3, 7, 8), w=weights(2, 3, 2, 2)
    ),
    "lower, dilated": node(
        'y = Conv <auto_pad = "SAME_LOWER", dilations = [3, 1]> (x, w)', reference=True, x=(2, 3, 7, 8), w=weights(2, 3, 2, 2)
    ),
    "upper, strides beyond the windows": node(
        'y = Conv <auto_pad = "SAME_UPPER", strides = [3, 4]> (x, w)', reference=True, x=(2, 3, 8, 9), w=weights(2, 3, 1, 2)
    ),
    "lower, strides beyond the windows": node(
        'y = Conv <auto_pad = "SAME_LOWER", strides = [3, 4]> (x, w)', reference=True, x=(2, 3, 8, 9), w=weights(2, 3, 1, 2)
    ),
    "without pads": node('y = Conv <auto_pad = "VALID", strides = [2, 1]> (x, w)', x=(2, 3, 7, 8), w=weights(2, 3, 4, 2)),
    "pads told": node('y = Conv <auto_pad = "NOTSET", pads = [2, 0, 1, 3]> (x, w)', x=(2, 3, 7, 8), w=weights(2, 3, 4, 2)),
    "stride beyond the window": node("y = Conv <strides = [3, 4]> (x, w)", x=(2, 1, 8, 9), w=weights(2, 1, 2, 1)),
    "last window meets the end": node("y = Conv <strides = [2, 3]> (x, w)", x=(2, 1, 7, 8), w=weights(2, 1, 3, 2)),
    "computed weights": node(
        "y = Conv <pads = [1, 0, 0, 2], strides = [1, 2]> (x, z, b)", x=(2, 4, 5, 6), z=(3, 4, 2, 3), b=weights(3)
    ),
    "computed weights of groups": node("y = Conv <group = 2> (x, z)", x=(2, 4, 5, 6), z=(6, 2, 2, 3)),
    "computed bias": node("y = Conv (x, w, z)", x=(2, 4, 5), w=weights(3, 4, 2), z=(3,)),
    "a constant by computed weights": node(
        "y = Conv <pads = [1, 0, 0, 2]> (c, z)", z=(3, 4, 2, 3), c=weights(2, 4, 5, 6), kinds="ArrayConvPool"
    ),
}
TRANSPOSED = {
    "lines": node(
        "y = ConvTranspose <strides = [3], pads = [1, 2], output_padding = [1]> (x, w, b)",
        x=(2, 4, 5),
        w=weights(4, 3, 4),
        b=weights(3),
    ),
    "images": node(
        "y = ConvTranspose <strides = [2, 3], pads = [1, 0, 2, 1], output_padding = [1, 2]> (x, w)",
        x=(2, 4, 3, 4),
        w=weights(4, 3, 3, 2),
    ),
    "groups": node(
        "y = ConvTranspose <group = 2, strides = [1, 2]> (x, w, b)", x=(2, 4, 3, 4), w=weights(4, 3, 2, 3), b=weights(6)
    ),
    "dilated": node(
        "y = ConvTranspose <dilations = [2, 3], pads = [1, 2, 0, 4], group = 2> (x, w)", x=(2, 4, 3, 4), w=weights(4, 1, 3, 2)
    ),
    "volumes": node(
        "y = ConvTranspose <strides = [1, 2, 3], pads = [0, 1, 1, 1, 0, 2], kernel_shape = [2, 3, 2]> (x, w, b)",
        x=(2, 2, 2, 3, 4),
        w=weights(2, 3, 2, 3, 2),
        b=weights(3),
    ),
    "pads beyond the window": node(
        "y = ConvTranspose <pads = [3, 0, 2, 4], strides = [2, 3]> (x, w)", x=(2, 2, 5, 4), w=weights(2, 3, 2, 3)
    ),
    "pads of the window": node("y = ConvTranspose <pads = [1, 2, 1, 2]> (x, w)", x=(2, 2, 5, 4), w=weights(2, 3, 2, 3)),
    "upper": node(
        'y = ConvTranspose <auto_pad = "SAME_UPPER", strides = [2, 3]> (x, w)', x=(2, 2, 3, 4), w=weights(2, 3, 3, 4)
    ),
    "lower": node(
        'y = ConvTranspose <auto_pad = "SAME_LOWER", strides = [2, 3]> (x, w)', x=(2, 2, 3, 4), w=weights(2, 3, 3, 4)
    ),
    "upper, an odd rest": node(
        'y = ConvTranspose <auto_pad = "SAME_UPPER", strides = [2, 1]> (x, w)', x=(2, 2, 3, 4), w=weights(2, 3, 5, 4)
    ),
    "lower, an odd rest": node(
        'y = ConvTranspose <auto_pad = "SAME_LOWER", strides = [2, 1]> (x, w)', x=(2, 2, 3, 4), w=weights(2, 3, 5, 4)
    ),
    "valid": node('y = ConvTranspose <auto_pad = "VALID", strides = [2, 3]> (x, w)', x=(2, 2, 3, 4), w=weights(2, 3, 3, 4)),
    "pads told": node(
        'y = ConvTranspose <auto_pad = "NOTSET", pads = [1, 0, 2, 1]> (x, w)', x=(2, 2, 3, 4), w=weights(2, 3, 3, 4)
    ),
    "a size": node(
        "y = ConvTranspose <output_shape = [6, 10], strides = [2, 3]> (x, w)", x=(2, 2, 3, 4), w=weights(2, 3, 3, 4)
    ),
    "a size, upper": node(
        'y = ConvTranspose <output_shape = [6, 10], strides = [2, 3], auto_pad = "SAME_UPPER"> (x, w)',
        x=(2, 2, 3, 4),
        w=weights(2, 3, 3, 4),
    ),
    "a size, lower": node(
        'y = ConvTranspose <output_shape = [6, 10], strides = [2, 3], auto_pad = "SAME_LOWER"> (x, w)',
        x=(2, 2, 3, 4),
        w=weights(2, 3, 3, 4),
    ),
    "computed weights": node(
        "y = ConvTranspose <strides = [2, 1], pads = [1, 0, 0, 1], group = 2> (x, z, b)",
        x=(2, 4, 3, 4),
        z=(4, 3, 2, 3),
        b=weights(6),
    ),
    "a constant by computed weights": node(
        "y = ConvTranspose <strides = [2, 3]> (c, z)", z=(2, 3, 3, 2), c=weights(2, 2, 3, 4)
    ),
}
WAYS = {
    "plain": "kernel_shape = [3, 2]",
    "strides": "kernel_shape = [3, 2], strides = [2, 3]",
    "pads": "kernel_shape = [3, 4], pads = [1, 0, 2, 3]",
    "all": "kernel_shape = [3, 4], pads = [2, 1, 0, 3], strides = [3, 2]",
    "upper": 'kernel_shape = [4, 3], auto_pad = "SAME_UPPER", strides = [3, 2]',
    "lower": 'kernel_shape = [4, 3], auto_pad = "SAME_LOWER", strides = [3, 2]',
    "valid": 'kernel_shape = [4, 3], auto_pad = "VALID", strides = [3, 2]',
}
ENDS = {
    "ceil": "kernel_shape = [3, 2], strides = [2, 3], ceil_mode = 1",
    "ceil, pads": "kernel_shape = [3, 4], strides = [3, 2], pads = [1, 2, 1, 1], ceil_mode = 1",
    "ceil, begins in the pads": "kernel_shape = [2, 2], strides = [3, 2], pads = [1, 1, 1, 1], ceil_mode = 1",
    "floor": "kernel_shape = [3, 2], strides = [2, 3], ceil_mode = 0",
}
POOLS = {
    **{
        f"{op}, {name}": node(f"y = {op} <{way}> (x)", 22, x=(2, 3, 8, 7))
        for op in ("MaxPool", "AveragePool", "LpPool")
        for name, way in WAYS.items()
    },
    **{
        f"{op}, {name}": node(f"y = {op} <{way}> (x)", 22, x=(2, 3, 9, 8))
        for op in ("MaxPool", "AveragePool")
        for name, way in ENDS.items()
    },
    **{
        f"counted, {name}": node(f"y = AveragePool <count_include_pad = 1, {WAYS[name]}> (x)", 22, x=(2, 3, 8, 7))
        for name in ("pads", "all", "upper", "lower", "valid")
    },
    **{
        f"p {p}": node(f"y = LpPool <p = {p}, kernel_shape = [2, 3], pads = [1, 0, 0, 2]> (x)", x=(2, 3, 4, 5))
        for p in (1, 2, 3)
    },
    **{
        f"dilated {op}": node(
            f"y = {op} <kernel_shape = [2, 3], dilations = [3, 2], pads = [1, 0, 1, 2]> (x)", 22, x=(2, 3, 7, 8)
        )
        for op in ("MaxPool", "AveragePool", "LpPool")
    },
    "lines": node("y = AveragePool <kernel_shape = [3], pads = [0, 1], strides = [2]> (x)", x=(2, 3, 8)),
    "volumes": node(
        "y = MaxPool <kernel_shape = [3, 1, 2], pads = [1, 0, 0, 2, 0, 1], strides = [2, 3, 1]> (x)", x=(2, 3, 5, 4, 6)
    ),
    "volumes, means": node(
        "y = AveragePool <kernel_shape = [3, 1, 2], pads = [1, 0, 0, 2, 0, 1], strides = [2, 3, 1], count_include_pad = 1> (x)",
        x=(2, 3, 5, 4, 6),
    ),
    "whole, largest": node("y = GlobalMaxPool (x)", x=(2, 3, 4, 5)),
    "whole, mean": node("y = GlobalAveragePool (x)", x=(2, 3, 4, 5, 2)),
    "whole, norm": node("y = GlobalLpPool (x)", 17, x=(2, 3, 4)),
    "whole, cubes": node("y = GlobalLpPool <p = 3> (x)", 17, x=(2, 3, 4, 5)),
    "of a constant": node("m = GlobalMaxPool (c)\n y = Add (m, x)", x=(2, 3, 1), c=weights(2, 3, 4)),
}
POOLS["bytes below 0"] = node("y = MaxPool <kernel_shape = [2, 3], pads = [1, 2, 0, 1]> (x)", x=("int8", 2, 3, 4, 5))
PLACES = {
    f"{name}, order {order}": node(
        f"y, i = MaxPool <storage_order = {order}, {way}> (x)",
        outputs="y i",
        x=(2, 3, 8, 7),
        kinds="ArrayConvPool ArrayConvPool",
    )
    for name, way in {**WAYS, "dilated": "kernel_shape = [2, 3], dilations = [3, 2], pads = [1, 0, 1, 2]"}.items()
    for order in (0, 1)
}


@every("name", CONVOLUTIONS)
def test_convolutions(name):
    CONVOLUTIONS[name].check()


@every("name", TRANSPOSED)
def test_transposed_convolutions(name):
    TRANSPOSED[name].check()


@every("name", POOLS)
def test_pools(name):
    POOLS[name].check()


@every("name", PLACES)
def test_positions_of_the_largest(name):
    PLACES[name].check()


ONE, NOTHING = (1, 1, 1), (0, 0, 0)
MADE = {
    "convolution": (
        node("y = Conv <group = 2, strides = [2, 1], pads = [1, 0, 2, 3]> (x, w)", x=(2, 4, 7, 6), w=weights(6, 2, 3, 2)),
        [ArrayConvPool("Conv", (2, 4, 1, 7, 6), 6, (1, 4, 8), (1, 3, 2), (1, 2, 1), (0, 1, 0), ONE, 2, slots=(0, -1))],
    ),
    "transposed convolution": (
        node("y = ConvTranspose <strides = [2]> (x, w)", x=(2, 4, 3), w=weights(4, 6, 2)),
        [ArrayConvPool("Conv", (2, 4, 1, 1, 7), 6, (1, 1, 6), (1, 1, 2), ONE, NOTHING, ONE, slots=(0, -1))],
    ),
    "mean": (
        node("y = AveragePool <kernel_shape = [3, 2], pads = [0, 1, 2, 0]> (x)", x=(2, 3, 5, 4)),
        [ArrayConvPool("Average", (2, 3, 1, 5, 4), 3, (1, 5, 4), (1, 3, 2), ONE, (0, 0, 1), ONE, slots=(0,))],
    ),
    "mean that counts its pads": (
        node("y = AveragePool <kernel_shape = [3, 2], pads = [0, 1, 2, 0], count_include_pad = 1> (x)", x=(2, 3, 5, 4)),
        [
            ArrayConvPool(
                "Average", (2, 3, 1, 5, 4), 3, (1, 5, 4), (1, 3, 2), ONE, (0, 0, 1), ONE, counted=(0, 2, 0), slots=(0,)
            )
        ],
    ),
    "largest and where": (
        node("y, i = MaxPool <kernel_shape = [2], storage_order = 1> (x)", outputs="y i", x=(2, 3, 5)),
        [
            ArrayConvPool("Max", (2, 3, 1, 1, 5), 3, (1, 1, 4), (1, 1, 2), ONE, NOTHING, ONE, slots=(0,)),
            ArrayConvPool(
                "MaxIndex",
                (2, 3, 1, 1, 5),
                3,
                (1, 1, 4),
                (1, 1, 2),
                ONE,
                NOTHING,
                ONE,
                column_major=True,
                slots=(0,),
                result="int64",
            ),
        ],
    ),
    "where by default": (
        node("y, i = MaxPool <kernel_shape = [2]> (x)", outputs="y i", x=(2, 3, 5)),
        [
            ArrayConvPool("Max", (2, 3, 1, 1, 5), 3, (1, 1, 4), (1, 1, 2), ONE, NOTHING, ONE, slots=(0,)),
            ArrayConvPool("MaxIndex", (2, 3, 1, 1, 5), 3, (1, 1, 4), (1, 1, 2), ONE, NOTHING, ONE, slots=(0,), result="int64"),
        ],
    ),
    "norm": (
        node("y = LpPool <kernel_shape = [2], p = 3> (x)", x=(2, 3, 5)),
        [ArrayConvPool("Lp", (2, 3, 1, 1, 5), 3, (1, 1, 4), (1, 1, 2), ONE, NOTHING, ONE, order=3, slots=(0,))],
    ),
    "the whole": (
        node("y = GlobalAveragePool (x)", x=(2, 3, 4, 5, 6)),
        [ArrayConvPool("Average", (2, 3, 4, 5, 6), 3, ONE, (4, 5, 6), ONE, NOTHING, ONE, slots=(0,))],
    ),
    "norm of the whole": (
        node("y = GlobalLpPool (x)", x=(2, 3, 4)),
        [ArrayConvPool("Lp", (2, 3, 1, 1, 4), 3, ONE, (1, 1, 4), ONE, NOTHING, ONE, slots=(0,))],
    ),
}


@every("name", MADE)
def test_what_a_node_becomes(name):
    """With two axes of length 1 in front of lines, one in front of images."""
    case, wanted = MADE[name]
    graph = import_onnx(case.model()[0])
    assert [layer.op for layer in graph.nodes if isinstance(layer.op, ArrayConvPool)] == wanted
