"""What the rewrites make of small networks: the layers afterwards, line by line, and what the report says; the results stay."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass

import numpy as np
import pytest
from support.pass_layers import TANH, Make, affine, behind, chain, clamp, constant, conv, dense, layer, normal, product

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.index_select import ArrayIndexSelect
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.norm import ArrayNorm, ArraySoftmax
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.concat import Concat
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip, Erf, Logistic, Softplus, Sqrt, Tanh
from n2d2py.operators.identity import Identity
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.padding import Padding
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Quantize
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.softmax import Softmax
from n2d2py.operators.transpose import Transpose
from n2d2py.passes import FuseReport, Pass
from n2d2py.passes.array_elemwise import ArrayElemWise
from n2d2py.passes.array_sums import ArraySums
from n2d2py.passes.conv_to_fc import ConvToFc
from n2d2py.passes.fuse_activation import FuseActivation, RemoveUnlimited, SplitActivation
from n2d2py.passes.fuse_affine import FuseAffine, FuseAffineForward
from n2d2py.passes.fuse_batchnorm import BatchNormToAffine, FuseBatchNorm
from n2d2py.passes.fuse_gate import FuseGate
from n2d2py.passes.fuse_norm import FuseNorm, FuseNormForward
from n2d2py.passes.fuse_padding import FusePadding
from n2d2py.passes.gains import GainsOfChannels, GainsOfRows, RemoveGain, WeighSums
from n2d2py.passes.grouped_matmul import GroupedMatMul
from n2d2py.passes.left_matmul import LeftMatMul
from n2d2py.passes.lift_channels import LiftChannels, MergeTake
from n2d2py.passes.magnitude import FuseMagnitude
from n2d2py.passes.masked_softmax import MaskedSoftmax, RemoveNanGuard
from n2d2py.passes.matmul_to_conv import MatMulToConv
from n2d2py.passes.move_transpose import MoveTranspose, TransposeIntoFc
from n2d2py.passes.outer_product import OuterProduct
from n2d2py.passes.pooled_arrays import PooledArrays
from n2d2py.passes.product_views import ProductOperand, ProductResult
from n2d2py.passes.quantized import ClipBeforeQuantize, HoistQuantize, MergeQuantize
from n2d2py.passes.remove_identity import RemoveIdentity
from n2d2py.passes.remove_layout import MergeTranspose, RemoveReshape
from n2d2py.passes.softmax_rows import NormalizeRows, SoftmaxRows
from n2d2py.passes.softplus_tail import RemoveSoftplusTail
from n2d2py.reference.executor import run_graph


def inner(value) -> str:
    """A value of an operator."""
    return spelled(value) if is_dataclass(value) else f"{value}"


def spelled(op) -> str:
    """An operator and what of it is not by default."""
    given = []
    for each in fields(op):
        value = getattr(op, each.name)
        if each.default is MISSING and each.default_factory is MISSING:
            given.append(inner(value))
        elif value != (each.default if each.default is not MISSING else each.default_factory()):
            given.append(f"{each.name}={inner(value)}")
    return f"{type(op).__name__}({', '.join(given)})"


def line(node: Node) -> str:
    """A layer in words: with a star where it is a helper, and the layers that were merged."""
    ends = f"{' '.join(node.inputs)} -> {' '.join(node.outputs)}"
    merged = f" ({', '.join(node.source)})" if node.source != [node.name] else ""
    name = f"{node.name}{'*' if node.helper else ''}{merged}"
    return f"{name}: {spelled(node.op)} {ends}{f', then {spelled(node.activation)}' if node.activation else ''}"


CASES: dict[str, tuple[tuple[int, ...], Pass, Make]] = {}


def case(name: str, shape: tuple[int, ...], rewrite: Pass, make: Make) -> None:
    assert name not in CASES
    CASES[name] = shape, rewrite, make


IMAGE = (2, 3, 4)
# Activations
for at, target in enumerate(
    (
        conv,
        lambda b, name, x: b.layer(name, Deconv(), x, {"weights": b.array(4, 2, 1, 1), "bias": b.array(4)}),
        dense,
        affine,
        normal,
        layer(ElemWise("Sum", (0.5,))),
        layer(Pool("Average", (2, 2))),
    )
):
    case(
        f"clamp behind {('conv', 'deconv', 'fc', 'affine', 'batchnorm', 'sum', 'mean')[at]}",
        IMAGE,
        FuseActivation(),
        clamp(Clip(0.0), target),
    )
case(
    "clamp through what moves values",
    IMAGE,
    FuseActivation(),
    clamp(Clip(-0.5, 0.5), conv, layer(Pool("Max", (2, 1))), layer(Transpose((0, 2, 3, 1))), layer(Reshape((32,)))),
)
case(
    "clamp behind a layer with a lower clamp",
    IMAGE,
    FuseActivation(),
    clamp(Clip(0.25, 0.5), lambda b, name, x: conv(b, name, x, activation=Clip(0.0, 0.125))),
)
case("clamp that carries a higher clamp", IMAGE, FuseActivation(), clamp(Clip(0.0, 0.125), conv, activation=Clip(0.25, 0.5)))
case(
    "clamp behind a lower clamp",
    IMAGE,
    FuseActivation(),
    clamp(Clip(0.25, 0.5), layer(TANH), layer(Activation(Clip(0.0, 0.125)))),
)
case("no limits behind a function", IMAGE, RemoveUnlimited(), clamp(Clip(), layer(TANH)))
case(
    "function of a convolution",
    IMAGE,
    SplitActivation(),
    chain(lambda b, name, x: conv(b, name, x, activation=Tanh()), layer(Reshape((48,)), Clip(0.0))),
)
case(
    "function of the last layer",
    IMAGE,
    SplitActivation(),
    chain(layer(TANH), lambda b, name, x: conv(b, name, x, activation=Tanh())),
)
# What passes its input on
case("identity behind the layer that makes an output", IMAGE, RemoveIdentity(), chain(conv, layer(Identity())))
case(
    "identity of a tensor that others read",
    IMAGE,
    RemoveIdentity(),
    lambda b: [b.layer("n", Identity(), conv(b, "c")), b.layer("o", TANH, "c")],
)
case("identity inside", IMAGE, RemoveIdentity(), chain(conv, layer(Identity()), layer(TANH)))
case("identity of an input", IMAGE, RemoveIdentity(), chain(layer(Identity()), layer(TANH)))
# Gains
case("batchnorm behind a convolution", IMAGE, FuseBatchNorm(), chain(conv, lambda b, name, x: normal(b, name, x, Clip(0.0))))
case(
    "batchnorm behind a pool",
    IMAGE,
    BatchNormToAffine(),
    chain(layer(Pool("Max", (2, 2))), lambda b, name, x: normal(b, name, x, Tanh())),
)
case("gain behind a gain", IMAGE, FuseAffine(), chain(affine, lambda b, name, x: affine(b, name, x, Clip(0.0))))
case("gain behind a vector", IMAGE, FuseAffine(), chain(dense, affine))
case(
    "gain of 1",
    IMAGE,
    FuseAffine(),
    chain(
        layer(TANH),
        layer(Affine(), None, lambda b: {"weights": np.ones(2, np.float32), "bias": np.zeros(2, np.float32)}),
        layer(TANH),
    ),
)
case("gain before two layers", IMAGE, FuseAffineForward(), lambda b: [conv(b, "c", affine(b, "n")), dense(b, "d", "n")])
case("gain before groups", IMAGE, FuseAffineForward(), lambda b: [conv(b, "c", affine(b, "n"), (2, 3), groups=2)])
case(
    "zeros before a convolution and a mean",
    IMAGE,
    FusePadding(),
    lambda b: [
        conv(b, "c", b.layer("n", Padding((1, 0, 2, 3))), (2, 3), pads=(0, 1, 0, 0)),
        b.layer("p", Pool("Average", (2, 2)), "n"),
    ],
)
case(
    "zeros before a mean without pads",
    IMAGE,
    FusePadding(),
    chain(layer(Padding((1, 2, 0, 0))), layer(Pool("Average", (2, 3), (1, 2), (0, 0, 0, 0), False))),
)
case(
    "window over a whole input",
    IMAGE,
    ConvToFc(),
    chain(lambda b, name, x: conv(b, name, x, (3, 4), activation=Clip(0.0)), layer(Reshape((4,)))),
)
# Layouts
case("view of a view", IMAGE, RemoveReshape(), chain(layer(Reshape((4, 6))), layer(Reshape((24,)))))
case(
    "view of a view that others read",
    IMAGE,
    RemoveReshape(),
    lambda b: [b.layer("n", Reshape((24,)), b.layer("c", Reshape((4, 6)))), b.layer("o", TANH, "c")],
)
case(
    "view of a view that is an output",
    IMAGE,
    RemoveReshape(),
    chain(layer(Reshape((4, 6))), layer(Reshape((24,))), also=("l0",)),
)
case("view of one shape", IMAGE, RemoveReshape(), chain(layer(TANH), layer(Reshape(IMAGE)), layer(TANH)))
case("view before vectors", IMAGE, RemoveReshape(), chain(layer(TANH), layer(Reshape((24,))), dense))
case(
    "view of one pixel inside",
    IMAGE,
    RemoveReshape(),
    chain(layer(Pool("Average", (3, 4))), layer(Reshape((2,))), layer(TANH), dense),
)
case("turn of nothing", IMAGE, MergeTranspose(), chain(layer(TANH), layer(Transpose((0, 1, 2, 3))), layer(TANH)))
case("turn of a turn", IMAGE, MergeTranspose(), chain(layer(Transpose((0, 2, 3, 1))), layer(Transpose((0, 1, 3, 2)))))
case(
    "turn of a turn that others read",
    IMAGE,
    MergeTranspose(),
    lambda b: [b.layer("n", Transpose((0, 1, 3, 2)), b.layer("c", Transpose((0, 2, 3, 1)))), b.layer("o", TANH, "c")],
)
case(
    "turn of a turn that is an output",
    IMAGE,
    MergeTranspose(),
    chain(layer(Transpose((0, 2, 3, 1))), layer(Transpose((0, 1, 3, 2))), also=("l0",)),
)
case("turn of an axis of length 1", (3, 1, 4), MergeTranspose(), chain(layer(TANH), layer(Transpose((0, 2, 1, 3)))))
case(
    "turns around functions",
    IMAGE,
    MoveTranspose(),
    chain(
        layer(Transpose((0, 2, 3, 1))),
        layer(TANH, Clip(0.0)),
        layer(Affine(), None, lambda b: {"weights": np.full(3, 2, np.float32), "bias": np.full(3, -0.5, np.float32)}),
        layer(Transpose((0, 2, 1, 3))),
    ),
)
case(
    "turns around a factor of one channel",
    (3, 1, 4),
    MoveTranspose(),
    chain(
        layer(Transpose((0, 2, 3, 1))),
        layer(Affine(), None, lambda b: {"weights": np.full(1, 2, np.float32), "bias": np.full(1, -0.5, np.float32)}),
        layer(Transpose((0, 3, 1, 2))),
    ),
)
case(
    "turn before vectors",
    IMAGE,
    TransposeIntoFc(),
    lambda b: [
        dense(b, "d", b.layer("r", Reshape((24,)), b.layer("n", Transpose((0, 2, 3, 1)), b.layer("c", TANH)))),
        dense(b, "e", "n", 2),
    ],
)
case(
    "take of a take",
    (5, 3, 4),
    MergeTake(),
    chain(layer(IndexSelect(((4, 2, 0), None, (3, 1)))), layer(IndexSelect(((1, 0, 0, 2), (2, 0), None))), layer(TANH)),
)
case(
    "channels taken from a flat image",
    (5, 3, 4),
    LiftChannels(),
    lambda b: [
        b.layer("n", ArrayIndexSelect(60, (tuple(range(24, 48)),)), b.layer("r", Reshape((60,)), conv(b, "c", outputs=5)))
    ],
)
case(
    "flat images joined",
    IMAGE,
    LiftChannels(),
    lambda b: [
        b.layer(
            "n",
            Concat(),
            [b.layer("r", Reshape((24,)), b.layer("c", TANH)), b.layer("s", Reshape((24,)), "x")],
            activation=Clip(0.0),
        )
    ],
)
case("function of a flat image", IMAGE, LiftChannels(), chain(layer(Reshape((24,))), layer(TANH)))
# Arrays
LINES = (24,)
case(
    "norm with a gain and a shift of lines",
    LINES,
    FuseNorm(),
    lambda b: [
        constant(b, "s", "Add", (4, 6), (1, 6), constant(b, "m", "Mul", (4, 6), (1, 6), b.layer("n", ArrayNorm(4, 6, 0.5))), 0)
    ],
)
case(
    "norm of single elements",
    LINES,
    FuseNorm(),
    lambda b: [constant(b, "m", "Add", (24,), (1,), b.layer("n", ArrayNorm(24, 1, 0.5)))],
)
case(
    "norm of lines of two axes",
    LINES,
    FuseNorm(),
    lambda b: [constant(b, "m", "Mul", (2, 3, 4), (1, 3, 1), b.layer("n", ArrayNorm(2, 12, 0.5)))],
)
case("products of rows", LINES, MatMulToConv(), chain(lambda b, name, x: product(b, name, (4, 6), (6, 5))))
case(
    "products of rows with bias and gains",
    LINES,
    MatMulToConv(),
    lambda b: [
        constant(b, "g", "Mul", (4, 5), (1, 5), constant(b, "s", "Add", (4, 5), (1, 5), product(b, "n", (4, 6), (6, 5))), 0)
    ],
)
case(
    "product of a row with gains",
    LINES,
    MatMulToConv(),
    lambda b: [constant(b, "g", "Mul", (1, 5), (1, 5), product(b, "n", (1, 24), (24, 5)))],
)
case(
    "products divided by a number",
    LINES,
    MatMulToConv(),
    lambda b: [constant(b, "g", "Div", (4, 5), (1, 1), product(b, "n", (4, 6), (6, 5)))],
)
case(
    "products less a number",
    LINES,
    MatMulToConv(),
    lambda b: [constant(b, "g", "Sub", (4, 5), (1, 1), product(b, "n", (4, 6), (6, 5)))],
)
case("products of groups", LINES, GroupedMatMul(), chain(lambda b, name, x: product(b, name, (2, 3, 4), (2, 4, 5))))
case("products of groups of a row", LINES, GroupedMatMul(), chain(lambda b, name, x: product(b, name, (2, 1, 12), (2, 12, 5))))
case(
    "products from the left",
    LINES,
    LeftMatMul(),
    lambda b: [b.layer("n", ArrayMatMul((1, 5, 3), (2, 3, 4), (-1, 0)), "x", {"operand0": b.array(15)})],
)
case(
    "product of a column from the left",
    LINES,
    LeftMatMul(),
    lambda b: [b.layer("n", ArrayMatMul((5, 24), (24, 1), (-1, 0)), "x", {"operand0": b.array(120)})],
)
for function, slots in (("Add", (0, 1)), ("Sub", (0, 1)), ("Sub", (1, 0)), ("Add", (1, 0))):
    case(
        f"{function} of two arrays {slots}",
        LINES,
        ArraySums(),
        lambda b, function=function, slots=slots: [
            b.layer("n", ArrayMap(function, (4, 6), ((4, 6), (4, 6)), slots), ["x", b.layer("c", TANH)])
        ],
    )
case(
    "constants before a norm",
    LINES,
    ArraySums(),
    lambda b: [b.layer("o", ArrayNorm(4, 6, 0.5), constant(b, "n", "Add", (4, 6), (4, 6), "x", 0))],
)
case(
    "product of two arrays",
    LINES,
    ArrayElemWise(),
    lambda b: [b.layer("n", ArrayMap("Mul", (4, 6), ((4, 6), (4, 6)), (1, 0)), ["x", b.layer("c", TANH)])],
)
for function in ("Mul", "Add", "Sub"):
    case(
        f"{function} of an array and a row",
        LINES,
        ArrayElemWise(),
        lambda b, function=function: [
            b.layer("n", ArrayMap(function, (4, 6), ((1, 6), (4, 6)), (1, 0)), ["x", dense(b, "c", "x", 6)])
        ],
    )
case(
    "product of an array and a column of each part",
    LINES,
    ArrayElemWise(),
    lambda b: [b.layer("n", ArrayMap("Mul", (2, 3, 4), ((2, 3, 4), (2, 1, 4)), (0, 1)), ["x", dense(b, "c", "x", 8)])],
)
case(
    "product of a column and a row",
    LINES,
    OuterProduct(),
    lambda b: [
        b.layer("n", ArrayMap("Mul", (2, 4, 3), ((2, 1, 3), (2, 4, 1)), (1, 0)), [dense(b, "c", "x", 8), dense(b, "d", "x", 6)])
    ],
)
for function in ("Mean", "Sum", "Max"):
    case(
        f"{function} of columns",
        LINES,
        PooledArrays(),
        lambda b, function=function: [b.layer("n", ArrayReduce(function, (2, 3, 4), (1,)), b.layer("c", TANH))],
    )
case("mean of axes apart", LINES, PooledArrays(), lambda b: [b.layer("n", ArrayReduce("Mean", (2, 3, 4), (0, 2)))])
case("gains of rows", LINES, GainsOfRows(), lambda b: [constant(b, "n", "Mul", (4, 6), (1, 6), "x")])
case("gains of one row", LINES, GainsOfRows(), lambda b: [constant(b, "n", "Div", (1, 24), (1, 24), "x")])
case("gain of numbers", LINES, GainsOfRows(), lambda b: [constant(b, "n", "Sub", (4, 6), (1, 1), "x", 0)])
case("gains of channels", LINES, GainsOfChannels(), lambda b: [constant(b, "n", "Mul", (2, 3, 4), (2, 1, 1), "x")])
case("gains of channels of lines", LINES, GainsOfChannels(), lambda b: [constant(b, "n", "Add", (4, 6), (4, 1), "x")])
case("gains of elements", LINES, GainsOfChannels(), lambda b: [constant(b, "n", "Sub", (4, 6), (4, 6), "x")])
case(
    "gains of 1",
    LINES,
    RemoveGain(),
    lambda b: [b.layer("o", TANH, constant(b, "n", "Mul", (4, 6), (1, 6), "x", values=np.ones(6, np.float32)))],
)
case(
    "factor of a sum",
    LINES,
    WeighSums(),
    lambda b: [
        b.layer(
            "o",
            ElemWise("Sum", (0.5, 2.0), (0.25, -1.0)),
            [constant(b, "n", "Mul", (4, 6), (1, 1), "x", values=np.float32([3])), "x"],
        ),
        b.layer("e", ElemWise("Sum"), ["x", "n"]),
    ],
)
case("softmax of an image", IMAGE, SoftmaxRows(), behind(Softmax(), conv))
case("softmax of groups of a vector", LINES, SoftmaxRows(), behind(Softmax(6), layer(TANH)))
case("unit length of an image", IMAGE, NormalizeRows(), behind(Normalize("L2"), conv))
case("unit length of a vector", LINES, NormalizeRows(), behind(Normalize("L2"), reader=None))
case(
    "magnitude",
    LINES,
    FuseMagnitude(),
    lambda b: [
        b.layer(
            "n",
            Activation(Sqrt()),
            b.layer(
                "s",
                ElemWise("Sum", (4.0, 1.0)),
                [b.layer("a", ElemWise("Prod"), ["x", "x"]), b.layer("q", ElemWise("Prod"), [b.layer("c", TANH)] * 2)],
            ),
        )
    ],
)
case(
    "magnitude without weights",
    LINES,
    FuseMagnitude(),
    lambda b: [
        b.layer(
            "n",
            Activation(Sqrt()),
            b.layer(
                "s",
                ElemWise("Sum"),
                [b.layer("a", ElemWise("Prod"), ["x", "x"]), b.layer("q", ElemWise("Prod"), [b.layer("c", TANH)] * 2)],
            ),
        )
    ],
)
MASK = np.where(np.tril(np.ones((3, 3), bool)), 0, -1e4).astype(np.float32)
HALF = np.where(np.tril(np.ones((3, 3), bool)), 0.5, -1e4).astype(np.float32)
case(
    "mask of lines",
    (18,),
    MaskedSoftmax(),
    lambda b: [b.layer("o", ArraySoftmax(6, 3, 1), constant(b, "n", "Add", (2, 3, 3), (1, 3, 3), "x", values=MASK.ravel()))],
)
case(
    "mask with a rest",
    (18,),
    MaskedSoftmax(),
    lambda b: [b.layer("o", ArraySoftmax(6, 3, 1), constant(b, "n", "Add", (2, 3, 3), (1, 3, 3), "x", 0, values=HALF.ravel()))],
)
case(
    "guard behind a softmax",
    (18,),
    RemoveNanGuard(),
    lambda b: [
        b.layer(
            "n",
            ArrayMap("Where", (6, 3), ((6, 3), (1, 1), (6, 3)), (0, -1, 1)),
            [b.layer("q", ArrayMap("IsNaN", (6, 3), ((6, 3),), (0,), "bool"), b.layer("s", ArraySoftmax(6, 3, 1))), "s"],
            {"operand1": np.zeros(1, np.float32)},
        )
    ],
)
HEADS = ArrayMatMul((2, 3, 4), (2, 4, 3))
TURN = ArrayIndexSelect(24, ((0, 12), (0, 1, 2), (0, 3, 6, 9)))
case(
    "product of a turned operand",
    LINES,
    ProductOperand(),
    lambda b: [b.layer("n", HEADS, [b.layer("t", TURN), b.layer("c", TANH)])],
)
case(
    "product of a scaled operand",
    LINES,
    ProductOperand(),
    lambda b: [
        b.layer("n", HEADS, ["x", constant(b, "m", "Mul", (2, 12), (1, 1), b.layer("c", TANH), values=np.float32([0.75]))])
    ],
)
case(
    "product that is turned",
    LINES,
    ProductResult(),
    lambda b: [
        b.layer("t", ArrayIndexSelect(18, ((0, 3, 6), (0, 9), (0, 1, 2))), b.layer("n", HEADS, ["x", b.layer("c", TANH)]))
    ],
)
case(
    "product that is divided",
    LINES,
    ProductResult(),
    lambda b: [constant(b, "m", "Div", (18,), (1,), b.layer("n", HEADS, ["x", b.layer("c", TANH)]), values=np.float32([4]))],
)
case(
    "forwarded gains of a norm",
    LINES,
    FuseNormForward(),
    lambda b: [
        dense(b, "d", b.layer("n", ArrayNorm(4, 6, 0.5), "x", {"gain": b.array(6, low=0.75), "shift": b.array(6)})),
        dense(b, "e", "n", 2),
    ],
)

# Roundings
WIDE, NARROW = Quantize(NumType(8, scale=1 / 64)), Quantize(NumType(8, scale=1 / 64, least=-8, most=7))
case(
    "rounding of rounded values",
    IMAGE,
    MergeQuantize(),
    chain(layer(WIDE), layer(Pool("Max", (2, 2))), layer(WIDE), layer(TANH)),
)
case("rounding to fewer integers", IMAGE, MergeQuantize(), chain(layer(TANH), layer(WIDE), layer(NARROW), layer(TANH)))
case(
    "rounding to fewer integers below",
    IMAGE,
    MergeQuantize(),
    chain(layer(TANH), layer(WIDE), layer(Quantize(NumType(8, scale=1 / 64, least=-9))), layer(TANH)),
)
case(
    "equal roundings of one tensor",
    IMAGE,
    MergeQuantize(),
    lambda b: [
        b.layer(
            "y", ElemWise("Sum"), [b.layer("q", WIDE, b.layer("a", TANH)), b.layer("r", NARROW, "a"), b.layer("s", WIDE, "a")]
        )
    ],
)
case("rounding of a turn", IMAGE, HoistQuantize(), chain(layer(TANH), layer(Transpose((0, 2, 3, 1))), layer(WIDE), layer(TANH)))
case(
    "rounding of joined images",
    IMAGE,
    HoistQuantize(),
    lambda b: [b.layer("n", WIDE, b.layer("j", Concat(), ["x", b.layer("a", TANH), "x"]))],
)
case(
    "clamp between roundings",
    IMAGE,
    ClipBeforeQuantize(),
    chain(layer(TANH), layer(WIDE), layer(Activation(Clip(0.0, 0.5))), layer(WIDE)),
)


# Functions of several layers
def tail(op, least: float, *views: str) -> Make:
    """Where(x > least, x, softplus(x)) of an image, or of its views."""

    def make(b) -> list[str]:
        flat = b.layer("f", Reshape((24,)))
        b.layer("c", ArrayMap("Greater", (24,), ((24,), (1,)), (0, -1), "bool"), flat, {"operand1": np.float32([least])})
        soft = b.layer("p", op, "x" if views else flat)
        soft = b.layer("v", Reshape((24,)), soft) if views else soft
        return [b.layer("o", TANH, b.layer("n", ArrayMap("Where", (24,), ((24,),) * 3, (0, 1, 2)), ["c", flat, soft]))]

    return make


case("softplus and its tail", IMAGE, RemoveSoftplusTail(), tail(Activation(Softplus()), 15.0))
case("softplus of an image and its tail", IMAGE, RemoveSoftplusTail(), tail(Activation(Softplus()), 20.0, "views"))
case("softplus of an array and its tail", IMAGE, RemoveSoftplusTail(), tail(ArrayMap("Softplus", (24,), ((24,),)), 20.0))


def gate(factor: float | None = None) -> Make:
    """x (1 + erf(x / sqrt(2))), times a factor."""

    def make(b) -> list[str]:
        root = constant(b, "r", "Div", (24,), (1,), "x", values=np.float32([2**0.5]))
        one = constant(b, "p", "Add", (24,), (1,), b.layer("e", Activation(Erf()), root), values=np.float32([1]))
        found = b.layer("n", ArrayMap("Mul", (24,), ((24,), (24,)), (1, 0)), [one, "x"])
        return [constant(b, "m", "Mul", (24,), (1,), found, values=np.float32([factor])) if factor else found]

    return make


case("halved gate by an error function", LINES, FuseGate(), gate(0.5))
case(
    "gate by a sigmoid",
    LINES,
    FuseGate(),
    lambda b: [b.layer("n", ArrayMap("Mul", (24,), ((24,), (24,)), (0, 1)), ["x", b.layer("g", Activation(Logistic()))])],
)


# Layers behind a product that are no part of it
def behind_product(function: str, dims, shape, at: int = 1, values=None, activation=None) -> Make:
    return lambda b: [
        constant(b, "g", function, dims, shape, product(b, "n", (4, 6), (6, 5)), at, values, activation=activation)
    ]


for name, made in {
    "constants of another width": behind_product("Add", (2, 10), (1, 10)),
    "a number for each line": behind_product("Add", (4, 5), (4, 1)),
    "constants of elements": behind_product("Mul", (4, 5), (4, 5)),
    "constants less them": behind_product("Sub", (4, 5), (1, 5), 0),
    "a gain with a clamp": behind_product("Mul", (4, 5), (1, 5), activation=Clip(0.0)),
    "a bias with a clamp": behind_product("Add", (4, 5), (1, 5), activation=Clip(0.0)),
    "a number of another width": behind_product("Mul", (2, 10), (1, 1)),
}.items():
    case(f"products of rows and {name}", LINES, MatMulToConv(), made)
case(
    "products of rows and a gain, then a bias",
    LINES,
    MatMulToConv(),
    lambda b: [
        constant(b, "s", "Add", (4, 5), (1, 5), constant(b, "g", "Mul", (4, 5), (1, 5), product(b, "n", (4, 6), (6, 5))))
    ],
)
case(
    "products of rows that are an output",
    LINES,
    MatMulToConv(),
    lambda b: [constant(b, "s", "Add", (4, 5), (1, 5), product(b, "n", (4, 6), (6, 5))), "n"],
)

AFTER: dict[str, tuple[str, str]] = {
    "clamp behind conv": (
        "fuse-activation, n: Clip merged into l0",
        """
        l0 (l0, n): Conv() x -> n, then Clip(low=0.0)
        outputs n
        known: l0 as n
        """,
    ),
    "clamp behind deconv": (
        "fuse-activation, n: Clip merged into l0",
        """
        l0 (l0, n): Deconv() x -> n, then Clip(low=0.0)
        outputs n
        known: l0 as n
        """,
    ),
    "clamp behind fc": (
        "fuse-activation, n: Clip merged into l0",
        """
        l0 (l0, n): Fc() x -> n, then Clip(low=0.0)
        outputs n
        known: l0 as n
        """,
    ),
    "clamp behind affine": (
        "fuse-activation, n: Clip merged into l0",
        """
        l0 (l0, n): Affine() x -> n, then Clip(low=0.0)
        outputs n
        known: l0 as n
        """,
    ),
    "clamp behind batchnorm": (
        "fuse-activation, n: Clip merged into l0",
        """
        l0 (l0, n): BatchNorm() x -> n, then Clip(low=0.0)
        outputs n
        known: l0 as n
        """,
    ),
    "clamp behind sum": (
        "fuse-activation, n: Clip merged into l0",
        """
        l0 (l0, n): ElemWise(Sum, weights=(0.5,)) x -> n, then Clip(low=0.0)
        outputs n
        known: l0 as n
        """,
    ),
    "clamp behind mean": (
        "fuse-activation, n: Clip merged into l0",
        """
        l0 (l0, n): Pool(Average, (2, 2)) x -> n, then Clip(low=0.0)
        outputs n
        known: l0 as n
        """,
    ),
    "clamp through what moves values": (
        "fuse-activation, n: Clip merged into l0",
        """
        l0: Conv() x -> l0, then Clip(low=-0.5, high=0.5)
        l1: Pool(Max, (2, 1)) l0 -> l1
        l2: Transpose((0, 2, 3, 1)) l1 -> l2
        l3 (l3, n): Reshape((32,)) l2 -> n
        outputs n
        known: l3 as n
        """,
    ),
    "clamp behind a layer with a lower clamp": (
        "fuse-activation, n: Clip merged into l0",
        """
        l0 (l0, n): Conv() x -> n, then Clip(low=0.25, high=0.25)
        outputs n
        known: l0 as n
        """,
    ),
    "clamp that carries a higher clamp": (
        "fuse-activation, n: Clip merged into l0",
        """
        l0 (l0, n): Conv() x -> n, then Clip(low=0.25, high=0.25)
        outputs n
        known: l0 as n
        """,
    ),
    "clamp behind a lower clamp": (
        "fuse-activation, n: Clip merged into l1",
        """
        l0: Activation(Tanh()) x -> l0
        l1 (l1, n): Activation(Clip(low=0.25, high=0.25)) l0 -> n
        outputs n
        known: l1 as n
        """,
    ),
    "no limits behind a function": (
        "remove-unlimited, n: activation without effect removed",
        """
        l0 (l0, n): Activation(Tanh()) x -> n
        outputs n
        known: l0 as n
        """,
    ),
    "function of a convolution": (
        "split-activation, l0: Tanh made the layer l0_activation",
        """
        l0: Conv() x -> l0_linear
        l0_activation: Activation(Tanh()) l0_linear -> l0
        l1: Reshape((48,)) l0 -> l1, then Clip(low=0.0)
        outputs l1
        """,
    ),
    "function of the last layer": (
        "split-activation, l1: Tanh made the layer l1_activation",
        """
        l0: Activation(Tanh()) x -> l0
        l1: Conv() l0 -> l1_linear
        l1_activation: Activation(Tanh()) l1_linear -> l1
        outputs l1
        """,
    ),
    "identity behind the layer that makes an output": (
        "remove-identity, l1: Identity removed",
        """
        l0 (l0, l1): Conv() x -> l1
        outputs l1
        known: l0 as l1
        """,
    ),
    "identity of a tensor that others read": (
        "remove-identity, n: Identity removed",
        """
        c: Conv() x -> c
        o: Activation(Tanh()) c -> o
        outputs c o
        known: n as c
        """,
    ),
    "identity inside": (
        "remove-identity, l1: Identity removed",
        """
        l0: Conv() x -> l0
        l2: Activation(Tanh()) l0 -> l2
        outputs l2
        known: l1 as l0
        """,
    ),
    "identity of an input": (
        "remove-identity, l0: Identity removed",
        """
        l1: Activation(Tanh()) x -> l1
        outputs l1
        known: l0 as x
        """,
    ),
    "batchnorm behind a convolution": (
        "fuse-batchnorm, l1: BatchNorm merged into l0",
        """
        l0 (l0, l1): Conv() x -> l1, then Clip(low=0.0)
        outputs l1
        known: l0 as l1
        """,
    ),
    "batchnorm behind a pool": (
        "batchnorm-to-affine, l1: BatchNorm turned into a gain and a shift per channel",
        """
        l0: Pool(Max, (2, 2)) x -> l0
        l1: Affine() l0 -> l1, then Tanh()
        outputs l1
        """,
    ),
    "gain behind a gain": (
        "fuse-affine, l1: gain and shift merged into l0",
        """
        l0 (l0, l1): Affine() x -> l1, then Clip(low=0.0)
        outputs l1
        known: l0 as l1
        """,
    ),
    "gain behind a vector": (
        "fuse-affine, l1: gain and shift merged into l0",
        """
        l0 (l0, l1): Fc() x -> l1
        outputs l1
        known: l0 as l1
        """,
    ),
    "gain of 1": (
        "fuse-affine, l1: Affine that changes nothing removed",
        """
        l0: Activation(Tanh()) x -> l0
        l2: Activation(Tanh()) l0 -> l2
        outputs l2
        known: l1 as l0
        """,
    ),
    "gain before two layers": (
        "fuse-affine-forward, n: gain and shift merged into c, d",
        """
        c: Conv() x -> c
        d: Fc() x -> d
        outputs c d
        known: n as x
        """,
    ),
    "gain before groups": (
        "fuse-affine-forward, n: gain and shift merged into c",
        """
        c: Conv(groups=2) x -> c
        outputs c
        known: n as x
        """,
    ),
    "zeros before a convolution and a mean": (
        "fuse-padding, n: padding merged into c, p",
        """
        c: Conv(pads=(1, 1, 2, 3)) x -> c
        p: Pool(Average, (2, 2), pads=(1, 0, 2, 3)) x -> p
        outputs c p
        known: n as x
        """,
    ),
    "zeros before a mean without pads": (
        "fuse-padding, l0: padding merged into l1",
        """
        l1: Pool(Average, (2, 3), stride=(1, 2), pads=(1, 2, 0, 0)) x -> l1
        outputs l1
        known: l0 as x
        """,
    ),
    "window over a whole input": (
        "conv-to-fc, l0: Conv and l1 turned into Fc",
        """
        l0 (l0, l1): Fc() x -> l1, then Clip(low=0.0)
        outputs l1
        known: l0 as l1
        """,
    ),
    "view of a view": (
        "remove-reshape, l1: merged with the Reshape l0",
        """
        l1: Reshape((24,)) x -> l1
        outputs l1
        known: l0 as l1
        """,
    ),
    "view of a view that others read": (
        "remove-reshape, n: merged with the Reshape c",
        """
        c: Reshape((4, 6)) x -> c
        n: Reshape((24,)) x -> n
        o: Activation(Tanh()) c -> o
        outputs n o
        """,
    ),
    "view of a view that is an output": (
        "remove-reshape, l1: merged with the Reshape l0",
        """
        l0: Reshape((4, 6)) x -> l0
        l1: Reshape((24,)) x -> l1
        outputs l1 l0
        """,
    ),
    "view of one shape": (
        "remove-reshape, l1: Reshape removed",
        """
        l0: Activation(Tanh()) x -> l0
        l2: Activation(Tanh()) l0 -> l2
        outputs l2
        known: l1 as l0
        """,
    ),
    "view before vectors": (
        "remove-reshape, l1: Reshape removed",
        """
        l0: Activation(Tanh()) x -> l0
        l2: Fc() l0 -> l2
        outputs l2
        known: l1 as l0
        """,
    ),
    "view of one pixel inside": (
        "remove-reshape, l1: Reshape removed",
        """
        l0: Pool(Average, (3, 4)) x -> l0
        l2: Activation(Tanh()) l0 -> l2
        l3: Fc() l2 -> l3
        outputs l3
        known: l1 as l0
        """,
    ),
    "turn of nothing": (
        "remove-transpose, l1: Transpose that moves nothing removed",
        """
        l0: Activation(Tanh()) x -> l0
        l2: Activation(Tanh()) l0 -> l2
        outputs l2
        known: l1 as l0
        """,
    ),
    "turn of a turn": (
        "remove-transpose, l1: merged with the Transpose l0",
        """
        l1: Transpose((0, 2, 1, 3)) x -> l1
        outputs l1
        known: l0 as x
        """,
    ),
    "turn of a turn that others read": (
        "remove-transpose, n: merged with the Transpose c",
        """
        c: Transpose((0, 2, 3, 1)) x -> c
        n: Transpose((0, 2, 1, 3)) x -> n
        o: Activation(Tanh()) c -> o
        outputs n o
        """,
    ),
    "turn of a turn that is an output": (
        "remove-transpose, l1: merged with the Transpose l0",
        """
        l0: Transpose((0, 2, 3, 1)) x -> l0
        l1: Transpose((0, 2, 1, 3)) x -> l1
        outputs l1 l0
        """,
    ),
    "turn of an axis of length 1": (
        "remove-transpose, l1: Transpose of axes of size 1 turned into a Reshape",
        """
        l0: Activation(Tanh()) x -> l0
        l1: Reshape((1, 3, 4)) l0 -> l1
        outputs l1
        """,
    ),
    "turns around a factor of one channel": (
        "move-transpose, l0: merged with the Transpose l2",
        """
        l1: Affine() x -> l1
        l2: Transpose((0, 1, 2, 3)) l1 -> l2
        outputs l2
        known: l0 as x
        """,
    ),
    "turns around functions": (
        "move-transpose, l0: merged with the Transpose l3",
        """
        l1: Activation(Tanh()) x -> l1, then Clip(low=0.0)
        l2: Affine() l1 -> l2
        l3: Transpose((0, 3, 2, 1)) l2 -> l3
        outputs l3
        known: l0 as x
        """,
    ),
    "turn before vectors": (
        "transpose-into-fc, n: merged into the weights of e, d",
        """
        c: Activation(Tanh()) x -> c
        d: Fc() c -> d
        e: Fc() c -> e
        outputs d e
        known: n as c, r as c
        """,
    ),
    "take of a take": (
        "merge-take, l1: merged with the IndexSelect l0",
        """
        l1: IndexSelect(((2, 4, 4, 0), (2, 0), (3, 1))) x -> l1
        l2: Activation(Tanh()) l1 -> l2
        outputs l2
        """,
    ),
    "channels taken from a flat image": (
        "lift-channels, n: made IndexSelect of images",
        """
        c: Conv() x -> c
        n_channels (n_channels, n): IndexSelect(((2, 3), None, None)) c -> n_channels
        n: Reshape((24,)) n_channels -> n
        outputs n
        """,
    ),
    "flat images joined": (
        "lift-channels, n: made Concat of images",
        """
        c: Activation(Tanh()) x -> c
        n_channels (n_channels, n): Concat() c x -> n_channels, then Clip(low=0.0)
        n: Reshape((48,)) n_channels -> n
        outputs n
        """,
    ),
    "function of a flat image": (
        "lift-channels, l1: made Activation of images",
        """
        l1_channels (l1_channels, l1): Activation(Tanh()) x -> l1_channels
        l1: Reshape((24,)) l1_channels -> l1
        outputs l1
        """,
    ),
    "norm with a gain and a shift of lines": (
        "fuse-norm, n: it does what m did; fuse-norm, n: it does what s did",
        """
        n (n, m, s): ArrayNorm(4, 6, 0.5) x -> s
        outputs s
        known: n as m, m as s
        """,
    ),
    "norm of single elements": (
        "fuse-norm, n: it does what m did",
        """
        n (n, m): ArrayNorm(24, 1, 0.5) x -> m
        outputs m
        known: n as m
        """,
    ),
    "norm of lines of two axes": (
        "fuse-norm, n: it does what m did",
        """
        n (n, m): ArrayNorm(2, 12, 0.5) x -> m
        outputs m
        known: n as m
        """,
    ),
    "products of rows": (
        "matmul-to-conv, l0: product of 4 rows turned into a Conv of 1x1",
        """
        l0_rows*: FromChannelsLast(6) x -> l0_rows
        l0: Conv() l0_rows -> l0_pixels
        l0_pixels_view*: ToChannelsLast() l0_pixels -> l0
        outputs l0
        """,
    ),
    "products of rows with bias and gains": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1, with s as bias, times the gains of g",
        """
        g_rows*: FromChannelsLast(6) x -> g_rows
        n (n, s, g): Conv() g_rows -> g_pixels
        g_pixels_view*: ToChannelsLast() g_pixels -> g
        outputs g
        known: n as s, s as g
        """,
    ),
    "product of a row with gains": (
        "matmul-to-conv, n: product of a row turned into an Fc, times the gains of g",
        """
        n (n, g): Fc() x -> g
        outputs g
        known: n as g
        """,
    ),
    "products divided by a number": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1, times the gains of g",
        """
        g_rows*: FromChannelsLast(6) x -> g_rows
        n (n, g): Conv() g_rows -> g_pixels
        g_pixels_view*: ToChannelsLast() g_pixels -> g
        outputs g
        known: n as g
        """,
    ),
    "products less a number": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1, with g as bias",
        """
        g_rows*: FromChannelsLast(6) x -> g_rows
        n (n, g): Conv() g_rows -> g_pixels
        g_pixels_view*: ToChannelsLast() g_pixels -> g
        outputs g
        known: n as g
        """,
    ),
    "products of groups": (
        "grouped-matmul, l0: products of 2 matrices with 3 rows each turned into a Conv of as many groups",
        """
        l0_operand_image*: FromChannelsLast(4) x -> l0_operand_image
        l0_operand_lines*: Reshape((4, 2, 3)) l0_operand_image -> l0_operand_lines
        l0_operand_turned*: Transpose((0, 1, 3, 2)) l0_operand_lines -> l0_operand_turned
        l0_operand_rows*: ToChannelsLast() l0_operand_turned -> l0_operand_rows
        l0_rows*: FromChannelsLast(8) l0_operand_rows -> l0_rows
        l0: Conv(groups=2) l0_rows -> l0_pixels
        l0_product*: ToChannelsLast() l0_pixels -> l0_product
        l0_back_image*: FromChannelsLast(5) l0_product -> l0_back_image
        l0_back_lines*: Reshape((5, 3, 2)) l0_back_image -> l0_back_lines
        l0_back_turned*: Transpose((0, 1, 3, 2)) l0_back_lines -> l0_back_turned
        l0_view*: ToChannelsLast() l0_back_turned -> l0
        outputs l0
        """,
    ),
    "products of groups of a row": (
        "grouped-matmul, l0: products of 2 matrices turned into a Conv of as many groups",
        """
        l0_rows*: FromChannelsLast(24) x -> l0_rows
        l0: Conv(groups=2) l0_rows -> l0_pixels
        l0_view*: ToChannelsLast() l0_pixels -> l0
        outputs l0
        """,
    ),
    "products from the left": (
        "left-matmul, n: its matrix of 5 x 3 multiplies from the right",
        """
        n_operand_image*: FromChannelsLast(4) x -> n_operand_image
        n_operand_lines*: Reshape((4, 2, 3)) n_operand_image -> n_operand_lines
        n_operand_turned*: Transpose((0, 3, 2, 1)) n_operand_lines -> n_operand_turned
        n_operand_rows*: ToChannelsLast() n_operand_turned -> n_operand_rows
        n: ArrayMatMul((8, 3), (3, 5), slots=(0, -1)) n_operand_rows -> n_product
        n_product_image*: FromChannelsLast(5) n_product -> n_product_image
        n_product_lines*: Reshape((5, 2, 4)) n_product_image -> n_product_lines
        n_product_turned*: Transpose((0, 3, 2, 1)) n_product_lines -> n_product_turned
        n_view*: ToChannelsLast() n_product_turned -> n
        outputs n
        """,
    ),
    "product of a column from the left": (
        "left-matmul, n: its matrix of 5 x 24 multiplies from the right",
        """
        n: ArrayMatMul((1, 24), (24, 5), slots=(0, -1)) x -> n
        outputs n
        """,
    ),
    "Add of two arrays (0, 1)": (
        "array-sums, n: it is ElemWise",
        """
        c: Activation(Tanh()) x -> c
        n: ElemWise(Sum) x c -> n
        outputs n
        """,
    ),
    "Sub of two arrays (0, 1)": (
        "array-sums, n: it is ElemWise",
        """
        c: Activation(Tanh()) x -> c
        n: ElemWise(Sum, weights=(1.0, -1.0)) x c -> n
        outputs n
        """,
    ),
    "Sub of two arrays (1, 0)": (
        "array-sums, n: it is ElemWise",
        """
        c: Activation(Tanh()) x -> c
        n: ElemWise(Sum, weights=(-1.0, 1.0)) x c -> n
        outputs n
        """,
    ),
    "Add of two arrays (1, 0)": (
        "array-sums, n: it is ElemWise",
        """
        c: Activation(Tanh()) x -> c
        n: ElemWise(Sum) x c -> n
        outputs n
        """,
    ),
    "constants before a norm": (
        "array-sums, n: it is AddConstants",
        """
        n: AddConstants() x -> n
        o: ArrayNorm(4, 6, 0.5) n -> o
        outputs o
        """,
    ),
    "product of two arrays": (
        "array-elemwise, n: it is ElemWise",
        """
        c: Activation(Tanh()) x -> c
        n: ElemWise(Prod) c x -> n
        outputs n
        """,
    ),
    "Mul of an array and a row": (
        "array-elemwise, n: it is ElemWise of images",
        """
        c: Fc() x -> c
        n_operand0_rows*: FromChannelsLast(6) c -> n_operand0_rows
        n_operand1_rows*: FromChannelsLast(6) x -> n_operand1_rows
        n: ElemWise(Prod) n_operand0_rows n_operand1_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        outputs n
        """,
    ),
    "Add of an array and a row": (
        "array-elemwise, n: it is ElemWise of images",
        """
        c: Fc() x -> c
        n_operand0_rows*: FromChannelsLast(6) c -> n_operand0_rows
        n_operand1_rows*: FromChannelsLast(6) x -> n_operand1_rows
        n: ElemWise(Sum) n_operand0_rows n_operand1_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        outputs n
        """,
    ),
    "Sub of an array and a row": (
        "array-elemwise, n: it is ElemWise of images",
        """
        c: Fc() x -> c
        n_operand0_rows*: FromChannelsLast(6) c -> n_operand0_rows
        n_operand1_rows*: FromChannelsLast(6) x -> n_operand1_rows
        n: ElemWise(Sum, weights=(1.0, -1.0)) n_operand0_rows n_operand1_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        outputs n
        """,
    ),
    "product of an array and a column of each part": (
        "array-elemwise, n: it is ElemWise of images",
        """
        c: Fc() x -> c
        n_operand0_rows*: FromChannelsLast(4) x -> n_operand0_rows
        n_operand0_image*: Reshape((4, 2, 3)) n_operand0_rows -> n_operand0_image
        n_operand1_rows*: FromChannelsLast(4) c -> n_operand1_rows
        n_operand1_image*: Reshape((4, 2, 1)) n_operand1_rows -> n_operand1_image
        n: ElemWise(Prod) n_operand0_image n_operand1_image -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        outputs n
        """,
    ),
    "product of a column and a row": (
        "outer-product, n: it is a product of 4 by 3",
        """
        c: Fc() x -> c
        d: Fc() x -> d
        n: ArrayMatMul((2, 4, 1), (2, 1, 3)) c d -> n
        outputs n
        """,
    ),
    "Mean of columns": (
        "pooled-arrays, n: Mean of 3 rows turned into a Pool",
        """
        c: Activation(Tanh()) x -> c
        n_rows*: FromChannelsLast(4) c -> n_rows
        n: Pool(Average, (1, 3), stride=(1, 3)) n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        outputs n
        """,
    ),
    "Sum of columns": (
        "pooled-arrays, n: Sum of 3 rows turned into a Pool",
        """
        c: Activation(Tanh()) x -> c
        n_rows*: FromChannelsLast(4) c -> n_rows
        n: Pool(Average, (1, 3), stride=(1, 3)) n_rows -> n_pixels
        n_sum*: Affine() n_pixels -> n_sum
        n_sum_view*: ToChannelsLast() n_sum -> n
        outputs n
        """,
    ),
    "Max of columns": (
        "pooled-arrays, n: Max of 3 rows turned into a Pool",
        """
        c: Activation(Tanh()) x -> c
        n_rows*: FromChannelsLast(4) c -> n_rows
        n: Pool(Max, (1, 3), stride=(1, 3)) n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        outputs n
        """,
    ),
    "mean of axes apart": (
        "pooled-arrays, n: Mean of 8 rows turned into a Pool",
        """
        n_order*: ArrayIndexSelect(24, ((0, 12), (0, 1, 2, 3), (0, 4, 8))) x -> n_order
        n_rows*: FromChannelsLast(3) n_order -> n_rows
        n: Pool(Average, (1, 8), stride=(1, 8)) n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        outputs n
        """,
    ),
    "gains of rows": (
        "gains-of-rows, n: it is Affine of 4 rows",
        """
        n_rows*: FromChannelsLast(6) x -> n_rows
        n: Affine() n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        outputs n
        """,
    ),
    "gains of one row": (
        "gains-of-rows, n: it is Affine",
        """
        n: Affine() x -> n
        outputs n
        """,
    ),
    "gain of numbers": (
        "gains-of-rows, n: it is Affine of 4 rows",
        """
        n_rows*: FromChannelsLast(6) x -> n_rows
        n: Affine() n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        outputs n
        """,
    ),
    "gains of channels": (
        "gains-of-channels, n: gains of 2 channels",
        """
        n_channels*: Reshape((2, 3, 4)) x -> n_channels
        n_scaled (n_scaled, n): Affine() n_channels -> n_scaled
        n: Reshape((24,)) n_scaled -> n
        outputs n
        """,
    ),
    "gains of channels of lines": (
        "gains-of-channels, n: gains of 4 channels",
        """
        n_channels*: Reshape((4, 1, 6)) x -> n_channels
        n_scaled (n_scaled, n): Affine() n_channels -> n_scaled
        n: Reshape((24,)) n_scaled -> n
        outputs n
        """,
    ),
    "gains of elements": (
        "gains-of-channels, n: gains of 24 elements",
        """
        n: Affine() x -> n
        outputs n
        """,
    ),
    "gains of 1": (
        "remove-gain, n: it changes nothing",
        """
        n: Identity() x -> n
        o: Activation(Tanh()) n -> o
        outputs o
        """,
    ),
    "factor of a sum": (
        "weigh-sums, n: the factor 3 is a weight of o, e",
        """
        o: ElemWise(Sum, weights=(1.5, 2.0), shifts=(0.25, -1.0)) x x -> o
        e: ElemWise(Sum, weights=(1.0, 3.0), shifts=(0.0, 0.0)) x x -> e
        outputs o e
        known: n as x
        """,
    ),
    "softmax of an image": (
        "softmax-rows, n: it is ArraySoftmax of rows",
        """
        c: Conv() x -> c
        n_rows*: ToChannelsLast() c -> n_rows
        n_shares (n_shares, n): ArraySoftmax(12, 4, 1) n_rows -> n_shares
        n_line*: FromChannelsLast(4) n_shares -> n_line
        n: Reshape((4, 3, 4)) n_line -> n
        o: Activation(Tanh()) n -> o
        outputs o
        """,
    ),
    "softmax of groups of a vector": (
        "softmax-rows, n: it is ArraySoftmax of rows",
        """
        c: Activation(Tanh()) x -> c
        n: ArraySoftmax(4, 6, 1) c -> n
        o: Activation(Tanh()) n -> o
        outputs o
        """,
    ),
    "unit length of an image": (
        "normalize-rows, n: it is ArrayNorm of rows",
        """
        c: Conv() x -> c
        n_rows*: ToChannelsLast() c -> n_rows
        n_unit (n_unit, n): ArrayNorm(12, 4, 2.5e-25, centred=False) n_rows -> n_unit
        n_line*: FromChannelsLast(4) n_unit -> n_line
        n: Reshape((4, 3, 4)) n_line -> n
        o: Activation(Tanh()) n -> o
        outputs o
        """,
    ),
    "unit length of a vector": (
        "normalize-rows, n: it is ArrayNorm of rows",
        """
        n: ArrayNorm(1, 24, 4.1666666666666663e-26, centred=False) x -> n
        outputs n
        """,
    ),
    "magnitude": (
        "fuse-magnitude, n: the magnitude of what was squared",
        """
        c: Activation(Tanh()) x -> c
        n: ElemWise(EuclideanSum, weights=(2.0, 1.0)) x c -> n
        outputs n
        """,
    ),
    "magnitude without weights": (
        "fuse-magnitude, n: the magnitude of what was squared",
        """
        c: Activation(Tanh()) x -> c
        n: ElemWise(EuclideanSum) x c -> n
        outputs n
        """,
    ),
    "mask of lines": (
        "masked-softmax, n: a mask of 3 lines, of which 67% counts",
        """
        o: ArrayMaskedSoftmax(6, 3, 1) x -> o
        outputs o
        known: n as x
        """,
    ),
    "mask with a rest": (
        "masked-softmax, n: a mask of 3 lines, of which 67% counts",
        """
        n: ArrayMap(Add, (2, 3, 3), ((2, 3, 3), (2, 3, 3)), slots=(0, -1)) x -> n
        o: ArrayMaskedSoftmax(6, 3, 1) n -> o
        outputs o
        """,
    ),
    "guard behind a softmax": (
        "remove-nan-guard, n: a softmax of numbers is a number",
        """
        s: ArraySoftmax(6, 3, 1) x -> s
        q: ArrayMap(IsNaN, (6, 3), ((6, 3),), result=bool) s -> q
        n: Identity() s -> n
        outputs n
        """,
    ),
    "product of a turned operand": (
        "product-operand, n: it takes in the order of t",
        """
        c: Activation(Tanh()) x -> c
        n: ArrayMatMul((2, 3, 4), (2, 4, 3), views=((24, 0, 12, 1, 3), (24, 0, 12, 3, 1), (18, 0, 9, 3, 1))) x c -> n
        outputs n
        """,
    ),
    "product of a scaled operand": (
        "product-operand, n: it takes in the factor of m",
        """
        c: Activation(Tanh()) x -> c
        n: ArrayMatMul((2, 3, 4), (2, 4, 3), scale=0.75, views=((24, 0, 12, 4, 1), (24, 0, 12, 3, 1), (18, 0, 9, 3, 1))) x c -> n
        outputs n
        """,
    ),
    "product that is turned": (
        "product-result, n: it does what t did",
        """
        c: Activation(Tanh()) x -> c
        n (n, t): ArrayMatMul((2, 3, 4), (2, 4, 3), views=((24, 0, 12, 4, 1), (24, 0, 12, 3, 1), (18, 0, 3, 6, 1))) x c -> t
        outputs t
        known: n as t
        """,
    ),
    "product that is divided": (
        "product-result, n: it does what m did",
        """
        c: Activation(Tanh()) x -> c
        n (n, m): ArrayMatMul((2, 3, 4), (2, 4, 3), scale=0.25) x c -> m
        outputs m
        known: n as m
        """,
    ),
    "forwarded gains of a norm": (
        "fuse-norm-forward, n: gain and shift merged into d, e",
        """
        n: ArrayNorm(4, 6, 0.5) x -> n
        d: Fc() n -> d
        e: Fc() n -> e
        outputs d e
        """,
    ),
    "rounding of rounded values": (
        "merge-quantize, l2: rounding of integers of the same type removed",
        """
        l0: Quantize(NumType(8, scale=0.015625)) x -> l0
        l1: Pool(Max, (2, 2)) l0 -> l1
        l3: Activation(Tanh()) l1 -> l3
        outputs l3
        known: l2 as l1
        """,
    ),
    "rounding to fewer integers": (
        "merge-quantize, l2: merged with l1, which keeps more of the same integers",
        """
        l0: Activation(Tanh()) x -> l0
        l2: Quantize(NumType(8, scale=0.015625, least=-8, most=7)) l0 -> l2
        l3: Activation(Tanh()) l2 -> l3
        outputs l3
        known: l1 as l0
        """,
    ),
    "rounding to fewer integers below": (
        "merge-quantize, l2: merged with l1, which keeps more of the same integers",
        """
        l0: Activation(Tanh()) x -> l0
        l2: Quantize(NumType(8, scale=0.015625, least=-9)) l0 -> l2
        l3: Activation(Tanh()) l2 -> l3
        outputs l3
        known: l1 as l0
        """,
    ),
    "equal roundings of one tensor": (
        "merge-quantize, q: merged with s",
        """
        a: Activation(Tanh()) x -> a
        q: Quantize(NumType(8, scale=0.015625)) a -> q
        r: Quantize(NumType(8, scale=0.015625, least=-8, most=7)) a -> r
        y: ElemWise(Sum) q r q -> y
        outputs y
        known: s as q
        """,
    ),
    "rounding of a turn": (
        "hoist-quantize, l2: moved before l1",
        """
        l0: Activation(Tanh()) x -> l0
        l0_quantized: Quantize(NumType(8, scale=0.015625)) l0 -> l0_quantized
        l1 (l1, l2): Transpose((0, 2, 3, 1)) l0_quantized -> l2
        l3: Activation(Tanh()) l2 -> l3
        outputs l3
        known: l1 as l2
        """,
    ),
    "rounding of joined images": (
        "hoist-quantize, n: moved before j",
        """
        a: Activation(Tanh()) x -> a
        x_quantized: Quantize(NumType(8, scale=0.015625)) x -> x_quantized
        a_quantized: Quantize(NumType(8, scale=0.015625)) a -> a_quantized
        j (j, n): Concat() x_quantized a_quantized x_quantized -> n
        outputs n
        known: j as n
        """,
    ),
    "clamp between roundings": (
        "clip-before-quantize, l2: moved before l1",
        """
        l0: Activation(Tanh()) x -> l0
        l2: Activation(Clip(low=0.0, high=0.5)) l0 -> l2
        l3: Quantize(NumType(8, scale=0.015625)) l2 -> l3
        outputs l3
        known: l1 as l0
        """,
    ),
    "softplus and its tail": (
        "remove-softplus-tail, n: a softplus is linear there",
        """
        f: Reshape((24,)) x -> f
        p: Activation(Softplus()) f -> p
        n: Identity() p -> n
        o: Activation(Tanh()) n -> o
        outputs o
        """,
    ),
    "softplus of an image and its tail": (
        "remove-softplus-tail, n: a softplus is linear there",
        """
        p: Activation(Softplus()) x -> p
        v: Reshape((24,)) p -> v
        n: Identity() v -> n
        o: Activation(Tanh()) n -> o
        outputs o
        """,
    ),
    "softplus of an array and its tail": (
        "remove-softplus-tail, n: a softplus is linear there",
        """
        f: Reshape((24,)) x -> f
        p: ArrayMap(Softplus, (24,), ((24,),)) f -> p
        n: Identity() p -> n
        o: Activation(Tanh()) n -> o
        outputs o
        """,
    ),
    "halved gate by an error function": (
        "fuse-gate, n: it and the layers before it are Gelu",
        """
        r: ArrayMap(Div, (24,), ((24,), (1,)), slots=(0, -1)) x -> r
        e: Activation(Erf()) r -> e
        p: ArrayMap(Add, (24,), ((24,), (1,)), slots=(0, -1)) e -> p
        n (n, m): Activation(Gelu()) x -> m
        outputs m
        known: n as m
        """,
    ),
    "gate by a sigmoid": (
        "fuse-gate, n: it and the layers before it are Swish",
        """
        g: Activation(Logistic()) x -> g
        n: Activation(Swish()) x -> n
        outputs n
        """,
    ),
    "products of rows and constants of another width": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1",
        """
        n_rows*: FromChannelsLast(6) x -> n_rows
        n: Conv() n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        g: ArrayMap(Add, (2, 10), ((2, 10), (1, 10)), slots=(0, -1)) n -> g
        outputs g
        """,
    ),
    "products of rows and a number for each line": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1",
        """
        n_rows*: FromChannelsLast(6) x -> n_rows
        n: Conv() n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        g: ArrayMap(Add, (4, 5), ((4, 5), (4, 1)), slots=(0, -1)) n -> g
        outputs g
        """,
    ),
    "products of rows and constants of elements": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1",
        """
        n_rows*: FromChannelsLast(6) x -> n_rows
        n: Conv() n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        g: ArrayMap(Mul, (4, 5), ((4, 5), (4, 5)), slots=(0, -1)) n -> g
        outputs g
        """,
    ),
    "products of rows and constants less them": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1",
        """
        n_rows*: FromChannelsLast(6) x -> n_rows
        n: Conv() n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        g: ArrayMap(Sub, (4, 5), ((1, 5), (4, 5)), slots=(-1, 0)) n -> g
        outputs g
        """,
    ),
    "products of rows and a gain with a clamp": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1",
        """
        n_rows*: FromChannelsLast(6) x -> n_rows
        n: Conv() n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        g: ArrayMap(Mul, (4, 5), ((4, 5), (1, 5)), slots=(0, -1)) n -> g, then Clip(low=0.0)
        outputs g
        """,
    ),
    "products of rows and a bias with a clamp": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1",
        """
        n_rows*: FromChannelsLast(6) x -> n_rows
        n: Conv() n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        g: ArrayMap(Add, (4, 5), ((4, 5), (1, 5)), slots=(0, -1)) n -> g, then Clip(low=0.0)
        outputs g
        """,
    ),
    "products of rows and a number of another width": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1",
        """
        n_rows*: FromChannelsLast(6) x -> n_rows
        n: Conv() n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        g: ArrayMap(Mul, (2, 10), ((2, 10), (1, 1)), slots=(0, -1)) n -> g
        outputs g
        """,
    ),
    "products of rows and a gain, then a bias": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1, times the gains of g",
        """
        g_rows*: FromChannelsLast(6) x -> g_rows
        n (n, g): Conv() g_rows -> g_pixels
        g_pixels_view*: ToChannelsLast() g_pixels -> g
        s: ArrayMap(Add, (4, 5), ((4, 5), (1, 5)), slots=(0, -1)) g -> s
        outputs s
        known: n as g
        """,
    ),
    "products of rows that are an output": (
        "matmul-to-conv, n: product of 4 rows turned into a Conv of 1x1",
        """
        n_rows*: FromChannelsLast(6) x -> n_rows
        n: Conv() n_rows -> n_pixels
        n_pixels_view*: ToChannelsLast() n_pixels -> n
        s: ArrayMap(Add, (4, 5), ((4, 5), (1, 5)), slots=(0, -1)) n -> s
        outputs s n
        """,
    ),
}


def rewritten(name: str, build) -> tuple[Graph, Graph, FuseReport]:
    """The network before and after the rewrite."""
    shape, rewrite, make = CASES[name]
    b = build(*shape)
    before = b.done(*make(b))
    after, report = before.copy(), FuseReport()
    rewrite.run(after, report)
    return before, after, report


def graph_lines(graph: Graph) -> list[str]:
    """The layers of a network in order, its outputs, and the names by which tensors are known besides."""
    also = ", ".join(f"{old} as {new}" for old, new in graph.aliases.items())
    return [*map(line, graph.nodes), f"outputs {' '.join(graph.outputs)}", *([f"known: {also}"] if also else [])]


@pytest.mark.parametrize("name", CASES)
def test_the_layers_afterwards(name, build):
    _, after, report = rewritten(name, build)
    done, layers = AFTER[name]
    assert [f"{entry.rewrite}, {entry.layer}: {entry.text}" for entry in report.done] == done.split("; ")
    assert graph_lines(after) == [each.strip() for each in layers.strip().splitlines()]


@pytest.mark.parametrize("name", CASES)
def test_the_results_stay(name, build):
    before, after, _ = rewritten(name, build)
    after.verify()
    x = {"x": np.abs(np.random.default_rng(1).normal(size=(3, *CASES[name][0])))}
    for want, found in zip(run_graph(before, x).values(), run_graph(after, x).values(), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)
