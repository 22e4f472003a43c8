"""Networks beside those that rewrites take: each differs in one condition, and stays; the report says why in a whole sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.pass_layers import TANH, Make, affine, chain, clamp, constant, conv, dense, layer, normal, product

from n2d2py.arithmetic import NumType
from n2d2py.graph import Precision
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.index_select import ArrayIndexSelect
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.norm import ArrayNorm, ArraySoftmax
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.concat import Concat
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
from n2d2py.passes import Pass
from n2d2py.passes.added_constants import AddedConstants
from n2d2py.passes.array_elemwise import ArrayElemWise
from n2d2py.passes.array_sums import ArraySums
from n2d2py.passes.conv_to_fc import ConvToFc
from n2d2py.passes.drop_softmax import DropSoftmax
from n2d2py.passes.fuse_activation import FuseActivation, RemoveUnlimited, SplitActivation
from n2d2py.passes.fuse_affine import FuseAffine, FuseAffineForward
from n2d2py.passes.fuse_batchnorm import FuseBatchNorm
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
from n2d2py.passes.remove_layout import MergeTranspose, RemoveReshape
from n2d2py.passes.softmax_rows import NormalizeRows, SoftmaxRows
from n2d2py.passes.softplus_tail import RemoveSoftplusTail

FILE = "it computes in integers of the file"
FLOATS = "it is to stay in floating point"
ROUNDING = Quantize(NumType(8, scale=1 / 64))
RELU = Clip(0.0)
IMAGE, LINES = (2, 3, 4), (24,)
CASES: dict[str, tuple[tuple[int, ...], Pass, Make, str | None]] = {}


def case(name: str, shape: tuple[int, ...], rewrite: Pass, make: Make, wanted: str | None) -> None:
    """`wanted`: what the rewrite says of the layer `n`; None where it is of another kind."""
    assert name not in CASES, name
    CASES[name] = shape, rewrite, make, wanted


def rounded(make: Make) -> Make:
    """The same in a network that comes quantized."""
    return lambda b: [*make(b), b.layer("rounded", ROUNDING)]


def floating(make: Make, name: str = "n") -> Make:
    """The same where a layer is asked to stay in floating point."""

    def made(b) -> list[str]:
        ends = make(b)
        b.graph.precisions[name] = Precision(quantize=False)
        return ends

    return made


def before_sine(make: Make) -> Make:
    """The same in front of a layer that has no integers."""
    return lambda b: [b.layer("sine", NO_INTEGERS, name) for name in make(b)]


NO_INTEGERS = ArrayReduce("LogSumExp", (4, 6), (1,))


def one(op, inputs="x", activation=None, params=None) -> Make:
    """A layer `n`, with a function behind it."""
    return lambda b: [b.layer("o", TANH, b.layer("n", op, inputs, params(b) if callable(params) else params, activation))]


def with_tanh(op, activation=None) -> Make:
    """A layer `n` of the input and its tanh."""
    return lambda b: [b.layer("o", TANH, b.layer("n", op, ["x", b.layer("c", TANH)], None, activation))]


# Activations
for name, mover in (("maximum", Pool("Max", (1, 2))), ("view", Reshape((48,))), ("turn", Transpose((0, 2, 3, 1)))):
    case(
        f"clamp behind a {name} with a function",
        IMAGE,
        FuseActivation(),
        chain(conv, layer(mover, Tanh()), lambda b, _, x: b.layer("n", Activation(RELU), x)),
        f"l1 of type {type(mover).__name__} cannot take it",
    )
case(
    "clamp behind an identity",
    IMAGE,
    FuseActivation(),
    clamp(RELU, conv, layer(Identity())),
    "l1 of type Identity cannot take it",
)
case(
    "clamp behind a clamp with a function",
    IMAGE,
    FuseActivation(),
    clamp(RELU, layer(Activation(RELU), Tanh())),
    "l0 of type Activation cannot take it",
)
case(
    "clamp behind a function of a sum",
    IMAGE,
    FuseActivation(),
    clamp(RELU, layer(ElemWise("Sum"), Tanh())),
    "l0 of type ElemWise cannot take it",
)
case("clamp with a function", IMAGE, FuseActivation(), clamp(RELU, conv, activation=Tanh()), "it carries the activation Tanh")
case("function", IMAGE, FuseActivation(), one(TANH), "Tanh is not a clamp")
case("clamp of an input", IMAGE, FuseActivation(), clamp(RELU), "it reads a network input")
case(
    "clamp of an output",
    IMAGE,
    FuseActivation(),
    lambda b: [b.layer("n", Activation(RELU), conv(b, "c")), "c"],
    "the output of c is also used elsewhere",
)
case(
    "clamp behind a view of an output",
    IMAGE,
    FuseActivation(),
    lambda b: [b.layer("n", Activation(RELU), b.layer("r", Reshape((48,)), conv(b, "c"))), "c"],
    "the output of c is also used elsewhere",
)
NO_LIMITS = "it carries an activation or joins a network output and an input or another output"
case("no limits with an activation inside", IMAGE, RemoveUnlimited(), one(Activation(Clip()), activation=RELU), NO_LIMITS)
case("no limits from end to end", IMAGE, RemoveUnlimited(), clamp(Clip()), NO_LIMITS)
case("a limit above", IMAGE, RemoveUnlimited(), one(Activation(Clip(high=9.0))), None)
case("layer without activation", IMAGE, SplitActivation(), one(Identity()), None)
# Gains
for at, rewrite in enumerate((FuseBatchNorm(), FuseAffine())):
    end = (normal, affine)[at]
    case(f"{rewrite.name} of an input", IMAGE, rewrite, lambda b, end=end: [end(b, "n", "x")], "its input is a network input")
    case(
        f"{rewrite.name} behind a function",
        IMAGE,
        rewrite,
        lambda b, end=end: [end(b, "n", b.layer("c", TANH))],
        "it follows c of type Activation",
    )
    case(
        f"{rewrite.name} behind a clamp",
        IMAGE,
        rewrite,
        lambda b, end=end: [end(b, "n", conv(b, "c", activation=RELU))],
        "c has the activation Clip",
    )
    case(
        f"{rewrite.name} of an output",
        IMAGE,
        rewrite,
        lambda b, end=end: [end(b, "n", conv(b, "c")), "c"],
        "the output of c is a network output",
    )
    case(
        f"{rewrite.name} of a tensor read twice",
        IMAGE,
        rewrite,
        lambda b, end=end: [end(b, "n", conv(b, "c")), b.layer("o", TANH, "c")],
        "the output of c has 2 consumers",
    )
    case(f"{rewrite.name}: another layer", IMAGE, rewrite, one(TANH), None)
case(
    "batchnorm behind a gain", IMAGE, FuseBatchNorm(), lambda b: [normal(b, "n", affine(b, "c"))], "it follows c of type Affine"
)
FORWARD = FuseAffineForward()
case("gain with a clamp", IMAGE, FORWARD, lambda b: [conv(b, "c", affine(b, "n", "x", RELU))], "it has the activation Clip")
case("gain of an output", IMAGE, FORWARD, lambda b: [conv(b, "c", affine(b, "n")), "n"], "it is a network output")
case("gain that nothing reads", IMAGE, FORWARD, lambda b: [(affine(b, "n"), b.layer("o", TANH))[1]], "nothing reads it")
case(
    "gain before a function",
    IMAGE,
    FORWARD,
    lambda b: [conv(b, "c", affine(b, "n")), b.layer("o", TANH, "n")],
    "it feeds o of type Activation",
)
case(
    "shift before one pad",
    IMAGE,
    FORWARD,
    lambda b: [conv(b, "c", affine(b, "n"), (2, 2), pads=(0, 0, 1, 0))],
    "c pads with zeros, which the shift would change",
)
PADDING = FusePadding()
case("crop", IMAGE, PADDING, chain(lambda b, _, x: b.layer("n", Padding((2, 1, -1, 3)), x), conv), "it crops")
case(
    "zeros with a clamp",
    IMAGE,
    PADDING,
    chain(lambda b, _, x: b.layer("n", Padding((1, 0, 0, 0)), x, None, RELU), conv),
    "it carries an activation",
)
case(
    "zeros of an output",
    IMAGE,
    PADDING,
    lambda b: [conv(b, "c", b.layer("n", Padding((1, 0, 0, 0)))), "n"],
    "it is a network output",
)
case(
    "zeros that nothing reads",
    IMAGE,
    PADDING,
    lambda b: [(b.layer("n", Padding((1, 0, 0, 0))), b.layer("o", TANH))[1]],
    "nothing reads it",
)
case(
    "zeros before a convolution and a function",
    IMAGE,
    PADDING,
    lambda b: [conv(b, "c", b.layer("n", Padding((1, 0, 0, 0)))), b.layer("o", TANH, "n")],
    "it feeds o of type Activation",
)
case(
    "zeros before a convolution that crops",
    IMAGE,
    PADDING,
    lambda b: [conv(b, "c", b.layer("n", Padding((1, 0, 0, 0))), (2, 2), pads=(0, 0, 0, -1))],
    "c crops",
)
case(
    "zeros before a mean of what is inside with a pad",
    IMAGE,
    PADDING,
    lambda b: [b.layer("c", Pool("Average", (2, 2), (1, 1), (0, 0, 0, 1), False), b.layer("n", Padding((1, 0, 0, 0))))],
    "c averages without its own pads, but counts these zeros",
)
case(
    "zeros before a maximum",
    IMAGE,
    PADDING,
    lambda b: [b.layer("c", Pool("Max", (2, 2)), b.layer("n", Padding((1, 0, 0, 0))))],
    "a padded zero can be the maximum in c, as its input may be negative",
)
case(
    "a window of zeros alone",
    IMAGE,
    PADDING,
    lambda b: [b.layer("c", Pool("Max", (2, 2)), b.layer("n", Padding((0, 0, 0, 2)), b.layer("r", Activation(RELU))))],
    "a window of c would hold padding only",
)
case(
    "smaller window",
    IMAGE,
    ConvToFc(),
    lambda b: [b.layer("r", Reshape((4,)), conv(b, "n", "x", (3, 2), stride=(1, 3)))],
    "its window of 2x3 is not its whole input of 4x3",
)
case(
    "window of the whole input with a pad",
    IMAGE,
    ConvToFc(),
    lambda b: [b.layer("r", Reshape((4,)), conv(b, "n", "x", (3, 4), stride=(9, 9), pads=(0, 0, 0, 1)))],
    "its window of 4x3 is not its whole input of 4x3",
)
case(
    "window with groups",
    IMAGE,
    ConvToFc(),
    lambda b: [b.layer("r", Reshape((4,)), conv(b, "n", "x", (3, 4), 2))],
    "it has groups",
)
case(
    "window and a clamp of the view",
    IMAGE,
    ConvToFc(),
    lambda b: [b.layer("r", Reshape((4,)), conv(b, "n", "x", (3, 4)), None, RELU)],
    "r carries an activation",
)
case("window without a view", IMAGE, ConvToFc(), lambda b: [conv(b, "n", "x", (3, 4))], None)
case("window and a function", IMAGE, ConvToFc(), lambda b: [b.layer("o", TANH, conv(b, "n", "x", (3, 4)))], None)
# Softmax
case(
    "softmax of an output that is read",
    IMAGE,
    DropSoftmax(),
    lambda b: [b.layer("o", TANH, b.layer("n", Softmax(), conv(b, "c"))), "n"],
    "it is not at the end of the network",
)
case(
    "softmax of a rounding that is read",
    IMAGE,
    DropSoftmax(),
    lambda b: [b.layer("o", TANH, b.layer("q", ROUNDING, b.layer("n", Softmax(), conv(b, "c")))), "q"],
    "it is not at the end of the network",
)
case("softmax before a function", IMAGE, DropSoftmax(), one(Softmax()), "it is not at the end of the network")
case(
    "softmax with a clamp",
    IMAGE,
    DropSoftmax(),
    lambda b: [b.layer("n", Softmax(), conv(b, "c"), None, RELU)],
    "it carries an activation",
)
case(
    "softmax of an input",
    IMAGE,
    DropSoftmax(),
    lambda b: [b.layer("n", Softmax())],
    "it reads a network input, or another output",
)
case(
    "softmax of an output",
    IMAGE,
    DropSoftmax(),
    lambda b: [b.layer("n", Softmax(), conv(b, "c")), "c"],
    "it reads a network input, or another output",
)
case("softmax of rows in floating point", IMAGE, SoftmaxRows(), floating(one(Softmax())), None)
case("softmax of rows with a clamp", IMAGE, SoftmaxRows(), one(Softmax(), activation=RELU), None)
case("logarithm of a softmax of rows", IMAGE, SoftmaxRows(), one(Softmax(log=True)), None)
case(
    "unit length of a file",
    IMAGE,
    NormalizeRows(),
    rounded(one(Normalize("L2"))),
    "the file has integers, and computes it in floating point",
)
case("unit length in floating point", IMAGE, NormalizeRows(), floating(one(Normalize("L2"))), None)
case("unit length with a clamp", IMAGE, NormalizeRows(), one(Normalize("L2"), activation=RELU), None)
case("sum of 1", IMAGE, NormalizeRows(), one(Normalize("L1")), None)
# Layouts
ENDS = "it joins a network output and an input or another output"
case("view with a clamp", IMAGE, RemoveReshape(), one(Reshape((24,)), activation=RELU), "it carries an activation")
case("view from end to end", IMAGE, RemoveReshape(), lambda b: [b.layer("n", Reshape(IMAGE))], ENDS)
case(
    "view before a vector and an output",
    IMAGE,
    RemoveReshape(),
    lambda b: [dense(b, "d", b.layer("n", Reshape((24,)), b.layer("c", TANH))), "n"],
    "it changes 2x3x4 to 24, which its readers tell apart",
)
case(
    "view before a vector and a function",
    IMAGE,
    RemoveReshape(),
    lambda b: [dense(b, "d", b.layer("n", Reshape((24,)), b.layer("c", TANH))), b.layer("o", TANH, "n")],
    "it changes 2x3x4 to 24, which its readers tell apart",
)
case(
    "view of a column",
    (2, 1, 4),
    RemoveReshape(),
    one(Reshape((2, 4, 1))),
    "it changes 2x1x4 to 2x4x1, which its readers tell apart",
)
case("view of one pixel that leaves", (2, 1, 1), RemoveReshape(), one(Reshape((2,))), "the output o would change its shape")
case("turn with a clamp", IMAGE, MergeTranspose(), one(Transpose((0, 2, 3, 1)), activation=RELU), "it carries an activation")
case("turn", IMAGE, MergeTranspose(), one(Transpose((0, 2, 3, 1))), "it changes the order of the elements")
case(
    "turn of a turn with a clamp",
    IMAGE,
    MergeTranspose(),
    lambda b: [b.layer("n", Transpose((0, 3, 1, 2)), b.layer("c", Transpose((0, 2, 3, 1)), "x", None, RELU))],
    "it changes the order of the elements",
)
case("turn and a function", IMAGE, MoveTranspose(), one(Transpose((0, 2, 3, 1))), None)
case(
    "turn and a turn",
    IMAGE,
    MoveTranspose(),
    lambda b: [b.layer("t", Transpose((0, 2, 3, 1)), b.layer("n", Transpose((0, 2, 3, 1))))],
    None,
)
case(
    "turn with a clamp before a function and a turn",
    IMAGE,
    MoveTranspose(),
    lambda b: [
        b.layer("t", Transpose((0, 2, 3, 1)), b.layer("o", TANH, b.layer("n", Transpose((0, 2, 3, 1)), "x", None, RELU)))
    ],
    None,
)
case(
    "turn, gains that differ, turn",
    IMAGE,
    MoveTranspose(),
    lambda b: [b.layer("t", Transpose((0, 2, 3, 1)), affine(b, "o", b.layer("n", Transpose((0, 2, 3, 1)))))],
    None,
)
for at, what in enumerate(("weights", "bias")):
    case(
        f"turn, {what} that differ, turn",
        IMAGE,
        MoveTranspose(),
        lambda b, at=at: [
            b.layer(
                "t",
                Transpose((0, 2, 3, 1)),
                b.layer(
                    "o",
                    Affine(),
                    b.layer("n", Transpose((0, 2, 3, 1))),
                    {("weights", "bias")[at]: np.float32([1, 1, 2]), ("bias", "weights")[at]: np.ones(3, np.float32)},
                ),
            )
        ],
        None,
    )
case(
    "turn, function that others read, turn",
    IMAGE,
    MoveTranspose(),
    lambda b: [
        b.layer("t", Transpose((0, 2, 3, 1)), b.layer("o", TANH, b.layer("n", Transpose((0, 2, 3, 1))))),
        b.layer("p", TANH, "o"),
    ],
    None,
)
case(
    "turn that is an output, function, turn",
    IMAGE,
    MoveTranspose(),
    lambda b: [b.layer("t", Transpose((0, 2, 3, 1)), b.layer("o", TANH, b.layer("n", Transpose((0, 2, 3, 1))))), "n"],
    None,
)
INTO = TransposeIntoFc()
case(
    "turn that is an output before a vector",
    IMAGE,
    INTO,
    lambda b: [dense(b, "d", b.layer("n", Transpose((0, 2, 3, 1)))), "n"],
    "n is a network output",
)
case(
    "turn before a view that is an output",
    IMAGE,
    INTO,
    lambda b: [dense(b, "d", b.layer("r", Reshape((24,)), b.layer("n", Transpose((0, 2, 3, 1))))), "r"],
    "r is a network output",
)
case(
    "turn before a view with a clamp",
    IMAGE,
    INTO,
    lambda b: [dense(b, "d", b.layer("r", Reshape((24,)), b.layer("n", Transpose((0, 2, 3, 1))), None, RELU))],
    "it feeds r of type Reshape",
)
case(
    "turn before a vector and a function",
    IMAGE,
    INTO,
    lambda b: [dense(b, "d", b.layer("n", Transpose((0, 2, 3, 1)))), b.layer("o", TANH, "n")],
    "it feeds o of type Activation",
)
case(
    "turn with a clamp before a vector",
    IMAGE,
    INTO,
    lambda b: [dense(b, "d", b.layer("n", Transpose((0, 2, 3, 1)), "x", None, RELU))],
    None,
)
case(
    "take of a take with a clamp",
    (5, 3, 4),
    MergeTake(),
    lambda b: [
        b.layer("n", IndexSelect(((1, 0), None, None)), b.layer("c", IndexSelect(((4, 2, 0), None, None)), "x", None, RELU))
    ],
    None,
)
case(
    "take of a function",
    (5, 3, 4),
    MergeTake(),
    lambda b: [b.layer("n", IndexSelect(((1, 0), None, None)), b.layer("c", TANH))],
    None,
)
case("take of an input", (5, 3, 4), MergeTake(), lambda b: [b.layer("n", IndexSelect(((1, 0), None, None)))], None)


def flat(b, name: str = "r", source: str = "x", activation=None) -> str:
    shape = b.graph.shape(source)[1:]
    return b.layer(name, Reshape((int(np.prod(shape)),)), source, None, activation)


def taken(*positions: int, fill: bool = False) -> Make:
    return lambda b: [b.layer("n", ArrayIndexSelect(24, (positions,)), flat(b))]


LIFT = LiftChannels()
case("half a channel", IMAGE, LIFT, taken(*range(6)), "it takes no whole channels")
case("a channel that begins late", IMAGE, LIFT, taken(*range(1, 13)), "it takes no whole channels")
case("a channel turned", IMAGE, LIFT, taken(*range(11, -1, -1)), "it takes no whole channels")
case("a channel with a pixel twice", IMAGE, LIFT, taken(*range(11), 10), "it takes no whole channels")
case("a channel that is filled", IMAGE, LIFT, taken(-1, *range(1, 12)), "it takes no whole channels")
case(
    "images of two sizes",
    IMAGE,
    LIFT,
    lambda b: [b.layer("n", Concat(), [flat(b), flat(b, "s", b.layer("p", Pool("Max", (2, 2))))])],
    "its images differ in size",
)
case("an image and a vector", IMAGE, LIFT, lambda b: [b.layer("n", Concat(), [flat(b), dense(b, "d", "x")])], None)
case("an image whose view has a clamp", IMAGE, LIFT, lambda b: [b.layer("n", TANH, flat(b, activation=RELU))], None)
case("images of one pixel", (5, 1, 1), LIFT, lambda b: [b.layer("n", TANH, flat(b))], None)
case("a function with a function", IMAGE, LIFT, lambda b: [b.layer("n", ElemWise("Sum"), flat(b), None, Tanh())], None)
case("a gain", IMAGE, LIFT, lambda b: [affine(b, "n", flat(b))], None)
case("a view of a vector", (24,), LIFT, lambda b: [b.layer("n", TANH, b.layer("r", Reshape((24,))))], None)
case("a view in two axes", IMAGE, LIFT, lambda b: [b.layer("n", TANH, b.layer("r", Reshape((6, 4))))], None)


# Norms
def norm(b, name: str = "n", outer: int = 4, inner: int = 6, activation=None, **options) -> str:
    return b.layer(name, ArrayNorm(outer, inner, 0.5, **options), "x", None, activation)


def norm_and(
    function="Mul", shape=(1, 6), *, at: int = 1, dims=(4, 6), values=None, activation=None, result="", **options
) -> Make:
    return lambda b: [
        b.layer(
            "o",
            TANH,
            constant(
                b,
                "m",
                function,
                dims,
                shape,
                norm(b, **options),
                at,
                values,
                activation=activation,
                **({"result": result} if result else {}),
            ),
        )
    ]


NORM = FuseNorm()
case("norm and a gain with a clamp", LINES, NORM, norm_and(activation=RELU), None)
case(
    "norm with a clamp and a gain",
    LINES,
    NORM,
    lambda b: [constant(b, "m", "Mul", (4, 6), (1, 6), norm(b, activation=RELU))],
    None,
)
case("norm and a difference", LINES, NORM, norm_and("Sub"), None)
case("norm and a gain of each line", LINES, NORM, norm_and(shape=(4, 1)), None)
case("norm and a gain of each element", LINES, NORM, norm_and(shape=(4, 6)), None)
case("norm and integers", LINES, NORM, norm_and(values=np.arange(6)), None)
case("norm and a gain for other lines", LINES, NORM, norm_and(shape=(1, 8), dims=(3, 8)), None)
case(
    "norm and a gain that repeats it",
    LINES,
    NORM,
    lambda b: [b.layer("m", ArrayMap("Mul", (3, 4, 6), ((3, 1, 6), (1, 4, 6)), (-1, 0)), norm(b), {"operand0": b.array(18)})],
    None,
)
case(
    "norm times itself", LINES, NORM, lambda b: [b.layer("m", ArrayMap("Mul", (4, 6), ((4, 6), (4, 6)), (0, 0)), norm(b))], None
)
case("norm that nothing reads", LINES, NORM, lambda b: [norm(b)], None)
case("means of a norm and a gain", LINES, NORM, lambda b: [constant(b, "m", "Mul", (1, 4), (1, 4), norm(b, part="mean"))], None)


def forwarded(end: Callable, gain: Any = 1.5, shift: Any = 0.25, activation=None) -> Make:
    def make(b) -> list[str]:
        params = {"gain": np.full(6, gain, np.float32), "shift": np.full(6, shift, np.float32)}
        b.layer("n", ArrayNorm(4, 6, 0.5), "x", params, activation)
        return end(b)

    return make


ON = FuseNormForward()
case(
    "norm with a clamp before weights",
    LINES,
    ON,
    forwarded(lambda b: [dense(b, "d", "n")], activation=RELU),
    "it has the activation Clip",
)
case("norm of a file before weights", LINES, ON, rounded(forwarded(lambda b: [dense(b, "d", "n")])), None)
case("norm without gains before weights", LINES, ON, lambda b: [dense(b, "d", norm(b))], None)
case("norm that nothing reads with gains", LINES, ON, forwarded(lambda b: [b.layer("o", TANH)]), "nothing reads it")
case(
    "norm before a view with a clamp",
    LINES,
    ON,
    forwarded(lambda b: [dense(b, "d", b.layer("r", Reshape((6, 4)), "n", None, RELU))]),
    "it feeds r of type Reshape",
)
case(
    "gains that differ by more than 2",
    LINES,
    ON,
    forwarded(lambda b: [dense(b, "d", "n")], [1, -2.125, 1, 1, 1, 1]),
    "its gains differ by more than a factor of 2",
)
case(
    "a gain of 0",
    LINES,
    ON,
    forwarded(lambda b: [dense(b, "d", "n")], [1, 0, 1, 1, 1, 1]),
    "its gains differ by more than a factor of 2",
)
case(
    "a gain without end",
    LINES,
    ON,
    forwarded(lambda b: [dense(b, "d", "n")], [np.inf] * 6),
    "its gains differ by more than a factor of 2",
)
case(
    "norm before one pad",
    LINES,
    ON,
    forwarded(
        lambda b: [
            conv(
                b,
                "c",
                b.layer("r", Reshape((6, 2, 2)), b.layer("t", ArrayIndexSelect(24, ((0, 1, 2, 3, 4, 5), (0, 6, 12, 18))), "n")),
                (2, 2),
                pads=(0, 0, 1, 0),
            )
        ],
        shift=[0, 0, 0, 0, 0, 0.5],
    ),
    "c pads with zeros, which the shift would change",
)
case(
    "norm before channels of several elements",
    LINES,
    ON,
    forwarded(lambda b: [conv(b, "c", b.layer("r", Reshape((6, 2, 2)), "n"))]),
    "a channel of c has several elements of a line",
)


# Products
def matrices(left, right, slots=(0, -1), activation=None, result: str = "") -> Make:
    def make(b) -> list[str]:
        at = slots.index(-1)
        params = {f"operand{at}": b.array(int(np.prod((left, right)[at])))}
        return [b.layer("n", ArrayMatMul(left, right, slots, result), "x", params, activation)]

    return make


for rewrite, left, right, slots in (
    (MatMulToConv(), (4, 6), (6, 5), (0, -1)),
    (GroupedMatMul(), (2, 3, 4), (2, 4, 5), (0, -1)),
    (LeftMatMul(), (5, 4), (4, 6), (-1, 0)),
):
    case(f"{rewrite.name} of a file", LINES, rewrite, rounded(matrices(left, right, slots)), FILE)
    case(f"{rewrite.name} with a clamp", LINES, rewrite, matrices(left, right, slots, RELU), None)
case("one matrix for groups", LINES, GroupedMatMul(), matrices((2, 3, 4), (1, 4, 5)), None)
case(
    "groups inside",
    LINES,
    GroupedMatMul(),
    matrices((2, 2, 1, 6), (1, 2, 6, 5)),
    "its matrices do not belong to the outermost groups of its rows",
)
case("matrices of groups", LINES, MatMulToConv(), matrices((2, 3, 4), (2, 4, 5)), None)
case(
    "matrices of groups from the left",
    LINES,
    LeftMatMul(),
    matrices((2, 5, 3), (2, 3, 4), (-1, 0)),
    "it has a matrix for each of several products",
)
# Sums and products of arrays
BOTH = ((4, 6), (4, 6))
for rewrite, function in ((ArraySums(), "Add"), (ArraySums(), "Sub"), (ArrayElemWise(), "Mul")):
    case(
        f"{rewrite.name} {function} of a file",
        LINES,
        rewrite,
        rounded(with_tanh(ArrayMap(function, (4, 6), BOTH, (0, 1)))),
        FILE,
    )
    case(
        f"{rewrite.name} {function} with a clamp",
        LINES,
        rewrite,
        with_tanh(ArrayMap(function, (4, 6), BOTH, (0, 1)), RELU),
        None,
    )
    case(f"{rewrite.name} {function} of one array", LINES, rewrite, one(ArrayMap(function, (4, 6), BOTH, (0, 0))), None)
case("quotient of two arrays", LINES, ArraySums(), with_tanh(ArrayMap("Div", (4, 6), BOTH, (0, 1))), None)
case("greater of two arrays", LINES, ArrayElemWise(), with_tanh(ArrayMap("Max", (4, 6), BOTH, (0, 1))), None)
case("sum of two arrays of one shape", LINES, ArrayElemWise(), with_tanh(ArrayMap("Add", (4, 6), BOTH, (0, 1))), None)
case(
    "sum with a row that repeats",
    LINES,
    ArraySums(),
    lambda b: [b.layer("n", ArrayMap("Add", (4, 6), ((4, 6), (1, 6)), (0, 1)), ["x", dense(b, "c", "x", 6)])],
    "one of its operands is repeated",
)
case(
    "sum with a first row that repeats",
    LINES,
    ArraySums(),
    lambda b: [b.layer("n", ArrayMap("Sub", (4, 6), ((1, 6), (4, 6)), (1, 0)), ["x", dense(b, "c", "x", 6)])],
    "one of its operands is repeated",
)
case("product in floating point", LINES, ArrayElemWise(), floating(with_tanh(ArrayMap("Mul", (4, 6), BOTH, (0, 1)))), FLOATS)
case(
    "product before a sine",
    LINES,
    ArrayElemWise(),
    lambda b: [b.layer("s", NO_INTEGERS, b.layer("n", ArrayMap("Mul", (4, 6), BOTH, (0, 1)), ["x", b.layer("c", TANH)]))],
    "it feeds s, which has no integers",
)
for function, at, wanted in (("Sub", 0, None), ("Sub", 1, None), ("Mul", 1, None)):
    case(
        f"constants before a norm: {function} {at}",
        LINES,
        ArraySums(),
        lambda b, function=function, at=at: [
            b.layer("o", ArrayNorm(4, 6, 0.5), constant(b, "n", function, (4, 6), (4, 6), "x", at))
        ],
        wanted,
    )
case(
    "constants of a row before a norm",
    LINES,
    ArraySums(),
    lambda b: [b.layer("o", ArrayNorm(4, 6, 0.5), constant(b, "n", "Add", (4, 6), (1, 6), "x"))],
    None,
)
case(
    "constants before a norm of a file",
    LINES,
    ArraySums(),
    rounded(lambda b: [b.layer("o", ArrayNorm(4, 6, 0.5), constant(b, "n", "Add", (4, 6), (4, 6), "x"))]),
    FILE,
)
OUTER = ArrayMap("Mul", (2, 4, 3), ((2, 4, 1), (2, 1, 3)), (0, 1))


def outer(op=OUTER, activation=None) -> Make:
    return lambda b: [
        b.layer(
            "o",
            TANH,
            b.layer(
                "n",
                op,
                [dense(b, "c", "x", int(np.prod(op.shapes[0]))), dense(b, "d", "x", int(np.prod(op.shapes[1])))],
                None,
                activation,
            ),
        )
    ]


case("outer product with a clamp", LINES, OuterProduct(), outer(activation=RELU), None)
case(
    "outer sum",
    LINES,
    OuterProduct(),
    outer(ArrayMap("Add", *[getattr(OUTER, name) for name in ("dims", "shapes", "slots")])),
    None,
)
case(
    "outer product of one array in all parts",
    LINES,
    OuterProduct(),
    outer(ArrayMap("Mul", (2, 4, 3), ((1, 4, 1), (2, 1, 3)), (0, 1))),
    None,
)
case("product of a row and an array", LINES, OuterProduct(), outer(ArrayMap("Mul", (4, 3), ((4, 3), (1, 3)), (0, 1))), None)
case("product of a number and an array", LINES, OuterProduct(), outer(ArrayMap("Mul", (4, 3), ((4, 3), (1, 1)), (0, 1))), None)
case("outer product of a file", LINES, OuterProduct(), rounded(outer()), FILE)
case("outer product in floating point", LINES, OuterProduct(), floating(outer()), FLOATS)
# Reductions
MEAN = ArrayReduce("Mean", (2, 3, 4), (1,))
case("mean with a clamp", LINES, PooledArrays(), one(MEAN, activation=RELU), None)
case("mean of single elements", LINES, PooledArrays(), one(ArrayReduce("Mean", (6, 1, 4), (1,))), None)
case("product of elements", LINES, PooledArrays(), one(ArrayReduce("Prod", (2, 3, 4), (1,))), None)
case("mean of a file", LINES, PooledArrays(), rounded(one(MEAN)), FILE)
case("mean in floating point", LINES, PooledArrays(), floating(one(MEAN)), FLOATS)
case(
    "mean before what has no integers",
    LINES,
    PooledArrays(),
    lambda b: [b.layer("s", ArrayReduce("LogSumExp", (2, 4), (1,)), b.layer("n", MEAN))],
    "it feeds s, which has no integers",
)
case(
    "mean behind what has no integers",
    LINES,
    PooledArrays(),
    lambda b: [b.layer("n", ArrayReduce("Mean", (2, 2), (1,)), b.layer("s", ArrayReduce("LogSumExp", (4, 6), (1,))))],
    "it follows s, which has no integers",
)


# Gains of arrays
def gain(function: str, shape, *, dims=(4, 6), at: int = 1, values=None, activation=None) -> Make:
    return lambda b: [b.layer("o", TANH, constant(b, "n", function, dims, shape, "x", at, values, activation=activation))]


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


ROWS, CHANNELS = GainsOfRows(), GainsOfChannels()
case("gains of rows of a file", LINES, ROWS, rounded(gain("Mul", (1, 6))), FILE)
case("gains of rows in floating point", LINES, ROWS, floating(gain("Mul", (1, 6))), FLOATS)
case("gains of rows with a clamp", LINES, ROWS, gain("Mul", (1, 6), activation=RELU), None)
case("gains of rows without end", LINES, ROWS, gain("Mul", (1, 6), values=numbers(1, 2, 3, 4, 5, np.inf)), None)
case("shifts of rows without end", LINES, ROWS, gain("Add", (1, 6), values=numbers(1, 2, 3, 4, 5, -np.inf)), None)
case("power of rows", LINES, ROWS, gain("Pow", (1, 6)), None)
case("gains of lines", LINES, ROWS, gain("Mul", (4, 1)), None)
case("shifts of several axes", LINES, ROWS, gain("Add", (1, 3, 4), dims=(2, 3, 4)), None)
case("gains of a number as channels", LINES, CHANNELS, gain("Mul", (1, 1)), None)
case("gains of rows as channels", LINES, CHANNELS, gain("Mul", (1, 6)), None)
case("gains of axes apart", LINES, CHANNELS, gain("Mul", (2, 1, 4), dims=(2, 3, 4)), None)
case("gains of channels of a file", LINES, CHANNELS, rounded(gain("Mul", (4, 1))), FILE)
case("gains of 1 but one", LINES, RemoveGain(), gain("Mul", (1, 6), values=numbers(1, 1, 1, 1, 1, 2)), None)
case("gains of 2", LINES, RemoveGain(), gain("Mul", (1, 6), values=numbers(2, 2, 2, 2, 2, 2)), None)
case("gains of 0", LINES, RemoveGain(), gain("Mul", (1, 6), values=numbers(0, 0, 0, 0, 0, 0)), None)
case("shifts of 0 but one", LINES, RemoveGain(), gain("Add", (1, 6), values=numbers(0, 0, 0, 0, 0, 1)), None)
case("gains of 1 of a file", LINES, RemoveGain(), rounded(gain("Mul", (1, 6), values=numbers(1, 1, 1, 1, 1, 1))), None)


def weighed(function="Mul", value=3.0, *, also=None, operation="Sum", activation=None) -> Make:
    def make(b) -> list[str]:
        constant(b, "n", function, (4, 6), (1, 1), "x", 1, numbers(value), activation=activation)
        ends = [b.layer("e", ElemWise(operation), ["n", "x"])]
        return [*ends, *(["n"] if also == "output" else [b.layer("o", also, "n")] if also else [])]

    return make


SUMS = WeighSums()
case("shift of a sum", LINES, SUMS, weighed("Add"), None)
case("factor of 0 of a sum", LINES, SUMS, weighed(value=0.0), None)
case("endless factor of a sum", LINES, SUMS, weighed(value=np.inf), None)
case("factor of a product", LINES, SUMS, weighed(operation="Prod"), None)
case("factor of a sum and a function", LINES, SUMS, weighed(also=TANH), None)
case("factor of a sum and an output", LINES, SUMS, weighed(also="output"), None)
case("factor with a clamp", LINES, SUMS, weighed(activation=RELU), None)
case("factor that nothing reads", LINES, SUMS, lambda b: [constant(b, "n", "Mul", (4, 6), (1, 1), "x")], None)
case("factor of a sum of a file", LINES, SUMS, rounded(weighed()), FILE)
case("factor of a sum in floating point", LINES, SUMS, floating(weighed()), FLOATS)


def added(shape, *, dims=(2, 3, 4), function="Add", at=1, values=None, behind=TANH, activation=None) -> Make:
    return lambda b: [b.layer("o", behind, constant(b, "n", function, dims, shape, "x", at, values, activation=activation))]


PLUS = AddedConstants()
case("constants of a file", LINES, PLUS, rounded(added((1, 3, 4))), FILE)
case("constants in floating point", LINES, PLUS, floating(added((1, 3, 4))), FLOATS)
case("constants with a clamp", LINES, PLUS, added((1, 3, 4), activation=RELU), None)
case("constants less an array", LINES, PLUS, added((1, 3, 4), function="Sub", at=0), None)
case("factors of an array", LINES, PLUS, added((1, 3, 4), function="Mul"), None)
case("a number added", LINES, PLUS, added((1, 1, 1)), None)
case("constants of the first axes", LINES, PLUS, added((2, 3, 1)), None)
case("endless constants", LINES, PLUS, added((1, 1, 4), values=numbers(1, 2, 3, -np.inf)), None)
case("integer constants", LINES, PLUS, added((1, 1, 4), values=np.arange(4)), None)
case(
    "a mask",
    LINES,
    PLUS,
    added((1, 3, 4), values=np.array([0, 128.5] * 6, np.float32), behind=ArraySoftmax(6, 4, 1)),
    "its constants are a mask",
)
case(
    "a mask below",
    LINES,
    PLUS,
    added((1, 3, 4), values=np.array([0, -129] * 6, np.float32), behind=ArraySoftmax(6, 4, 1)),
    "its constants are a mask",
)
# Masks
MASK = np.array([[0, -100, -100], [0, 0, -100], [0, 0, 0]], np.float32)


def masked(values=MASK, *, softmax=None, also: bool = False, function="Add", activation=None, behind=None) -> Make:
    def make(b) -> list[str]:
        constant(b, "n", function, (2, 3, 3), (1, 3, 3), "x", 1, np.asarray(values, np.float32).ravel(), activation=activation)
        b.layer("s", softmax or ArraySoftmax(6, 3, 1), "n", None, behind)
        return [b.layer("o", TANH, "s"), *(["n"] if also else [])]

    return make


def changed(at: tuple[int, int], value: float, values=MASK) -> np.ndarray:
    other = np.array(values)
    other[at] = value
    return other


MASKS, SCORES = MaskedSoftmax(), (18,)
case("mask with a clamp", SCORES, MASKS, masked(activation=RELU), None)
case("mask before a softmax with a clamp", SCORES, MASKS, masked(behind=RELU), None)
case("mask before a softmax of columns", SCORES, MASKS, masked(softmax=ArraySoftmax(2, 3, 3)), None)
case("mask before the logarithm of a softmax", SCORES, MASKS, masked(softmax=ArraySoftmax(6, 3, 1, True)), None)
case("mask that is an output", SCORES, MASKS, masked(also=True), None)
case("mask taken away", SCORES, MASKS, masked(function="Sub"), None)
case("mask of a file", SCORES, MASKS, rounded(masked()), FLOATS)
case("mask before a softmax in floating point", SCORES, MASKS, floating(masked(), "s"), FLOATS)
case("mask of zeros", SCORES, MASKS, masked(np.zeros((3, 3))), None)
case("mask with what is no number", SCORES, MASKS, masked(changed((2, 1), np.nan)), None)
case("mask with an endless score", SCORES, MASKS, masked(changed((2, 1), np.inf)), None)
case("line without any score", SCORES, MASKS, masked(np.where(MASK[::-1] == 0, -np.inf, 0)), None)
case("mask by 63.5", SCORES, MASKS, masked(np.where(MASK < 0, -63.5, 0)), None)
case("rest that lies high", SCORES, MASKS, masked(np.where(MASK < 0, -10, 60)), None)


# Guards
def guarded(
    *, slots=(0, -1, 1), test="IsNaN", value=None, behind=None, function="Where", dims=(6, 3), activation=None, mask=None
) -> Make:
    def make(b) -> list[str]:
        scores = "x"
        if mask is not None:
            scores = constant(b, "m", "Add", (6, 3), (6, 3), "x", 1, np.asarray(mask, np.float32).ravel())
        b.layer("s", value or ArraySoftmax(6, 3, 1), scores)
        b.layer("q", ArrayMap(test, (6, 3), ((6, 3),), (0,), "bool"), behind(b) if behind else "s")
        shapes = tuple((1, 1) if slot < 0 else (6, 3) for slot in slots)
        params = {f"operand{slots.index(-1)}": np.zeros(1, np.float32)}
        return [b.layer("o", TANH, b.layer("n", ArrayMap(function, dims, shapes, slots), ["q", "s"], params, activation))]

    return make


GUARD = RemoveNanGuard()
case("guard with a clamp", SCORES, GUARD, guarded(activation=RELU), None)
case("guard that keeps what is no number", SCORES, GUARD, guarded(slots=(0, 1, -1)), None)
case("guard against endless numbers", SCORES, GUARD, guarded(test="IsPosInf"), None)
case("guard of another tensor", SCORES, GUARD, guarded(behind=lambda b: "x"), None)
case("guard behind a function", SCORES, GUARD, guarded(value=TANH), None)
EMPTY = "a line of its softmax may be without any element that counts"
case(
    "guard of a line without scores",
    SCORES,
    GUARD,
    guarded(mask=np.where(np.arange(6)[:, None] == 2, -np.inf, np.zeros((6, 3)))),
    EMPTY,
)
case(
    "guard that repeats",
    SCORES,
    GUARD,
    lambda b: [
        b.layer(
            "n",
            ArrayMap("Where", (2, 6, 3), ((1, 6, 3), (2, 1, 1), (1, 6, 3)), (0, -1, 1)),
            [b.layer("q", ArrayMap("IsNaN", (6, 3), ((6, 3),), (0,), "bool"), b.layer("s", ArraySoftmax(6, 3, 1))), "s"],
            {"operand1": np.zeros(2, np.float32)},
        )
    ],
    EMPTY,
)
# Products of two activations
HEADS = ArrayMatMul((2, 3, 4), (2, 4, 3))
OPERAND, RESULT = ProductOperand(), ProductResult()


def moved(offsets, activation=None) -> Make:
    return lambda b: [
        b.layer("n", HEADS, [b.layer("t", ArrayIndexSelect(24, offsets), "x", None, activation), b.layer("c", TANH)])
    ]


case("operand that is turned in a circle", LINES, OPERAND, moved((tuple((7 * at) % 24 for at in range(24)),)), None)
case("operand that is turned round", LINES, OPERAND, moved((tuple(range(23, -1, -1)),)), None)
case("operand that is filled", LINES, OPERAND, moved(((0, 12), (0, 1, 2), (0, 3, 6, -99))), None)
case("operand that is moved with a clamp", LINES, OPERAND, moved(((0, 12), (0, 1, 2), (0, 3, 6, 9)), RELU), None)
for name, function, value in (("shifted", "Add", 2.0), ("turned by a sign", "Mul", -2.0), ("times 0", "Mul", 0.0)):
    case(
        f"operand that is {name}",
        LINES,
        OPERAND,
        lambda b, function=function, value=value: [
            b.layer("n", HEADS, [constant(b, "m", function, (24,), (1,), "x", 1, numbers(value)), b.layer("c", TANH)])
        ],
        None,
    )
    case(
        f"result that is {name}",
        LINES,
        RESULT,
        lambda b, function=function, value=value: [
            constant(b, "m", function, (18,), (1,), b.layer("n", HEADS, ["x", b.layer("c", TANH)]), 1, numbers(value))
        ],
        None,
    )
case("product of a constant", LINES, OPERAND, lambda b: [product(b, "n", (4, 6), (6, 5))], None)
case(
    "product of one tensor",
    LINES,
    OPERAND,
    lambda b: [b.layer("n", ArrayMatMul((4, 6), (6, 4), (0, 0)), constant(b, "m", "Mul", (24,), (1,), "x"))],
    None,
)


def turned(offsets, activation=None, own=None, also: bool = False) -> Make:
    return lambda b: [
        b.layer(
            "t", ArrayIndexSelect(18, offsets), b.layer("n", HEADS, ["x", b.layer("c", TANH)], None, own), None, activation
        ),
        *(["n"] if also else []),
    ]


SIDE = ((0, 3, 6), (0, 9), (0, 1, 2))
case("result with a clamp that is turned", LINES, RESULT, turned(SIDE, own=RELU), None)
case("result that is turned with a clamp", LINES, RESULT, turned(SIDE, RELU), None)
case("result that is an output and turned", LINES, RESULT, turned(SIDE, also=True), None)
case("result of which a part is taken", LINES, RESULT, turned(((0, 3, 6), (0, 9), (0, 1))), None)
case("result of which an element is taken twice", LINES, RESULT, turned(((0, 3, 6), (0, 9), (0, 1, 1))), None)
case("result that is turned in a circle", LINES, RESULT, turned((tuple((7 * at) % 18 for at in range(18)),)), None)
case(
    "result that a function reads",
    LINES,
    RESULT,
    lambda b: [b.layer("o", TANH, b.layer("n", HEADS, ["x", b.layer("c", TANH)]))],
    None,
)


# Magnitudes
def magnitude(
    operation="Sum", weights=(), shifts=(), square="Prod", activations=(None, None, None), function=None, other="x"
) -> Make:
    def make(b) -> list[str]:
        b.layer("c", TANH)
        b.layer("a", ElemWise(square), ["x", other], None, activations[0])
        b.layer("q", ElemWise("Prod"), ["c", "c"])
        b.layer("s", ElemWise(operation, weights, shifts), ["a", "q"], None, activations[1])
        return [b.layer("o", TANH, b.layer("n", function or Activation(Sqrt()), "s", None, activations[2]))]

    return make


ROOT = FuseMagnitude()
AWAY = "its sum has a shift, or takes a square away"
case("root of a square taken away", LINES, ROOT, magnitude(weights=(1.0, -1.0)), AWAY)
case("root of squares and a shift", LINES, ROOT, magnitude(weights=(1.0, 1.0), shifts=(0.0, 0.5)), AWAY)
case("root of a product", LINES, ROOT, magnitude(other="c"), None)
case("root of a sum of sums", LINES, ROOT, magnitude(square="Sum"), None)
case("root of the greater of two squares", LINES, ROOT, magnitude("Max"), None)
for at, what in enumerate(("a clamped square", "a clamped sum", "squares with a clamp")):
    case(f"root of {what}", LINES, ROOT, magnitude(activations=tuple(RELU if at == i else None for i in range(3))), None)
case("tanh of a sum of squares", LINES, ROOT, magnitude(function=TANH), None)
case("root of an input", LINES, ROOT, one(Activation(Sqrt())), None)
case(
    "root of one square",
    LINES,
    ROOT,
    lambda b: [b.layer("n", Activation(Sqrt()), b.layer("s", ElemWise("Sum"), [b.layer("a", ElemWise("Prod"), ["x", "x"])]))],
    None,
)
case(
    "root of cubes",
    LINES,
    ROOT,
    lambda b: [
        b.layer(
            "n",
            Activation(Sqrt()),
            b.layer(
                "s", ElemWise("Sum"), [b.layer("a", ElemWise("Prod"), ["x"] * 3), b.layer("q", ElemWise("Prod"), ["x"] * 3)]
            ),
        )
    ],
    None,
)
case(
    "root of a sum with an input",
    LINES,
    ROOT,
    lambda b: [
        b.layer("n", Activation(Sqrt()), b.layer("s", ElemWise("Sum"), [b.layer("a", ElemWise("Prod"), ["x", "x"]), "x"]))
    ],
    None,
)


# Softplus
def tail(
    function="Where",
    least=20.0,
    compare="Greater",
    slots=(0, 1, 2),
    activations=(None, None, None),
    own=None,
    shape=(1,),
    left=None,
    value=None,
) -> Make:
    def make(b) -> list[str]:
        size = int(np.prod(shape))
        limits = np.full(size, 30, np.float32)
        limits[0] = least
        params = {"operand1": limits}
        b.layer("c", ArrayMap(compare, (24,), ((24,), shape), (0, -1), "bool"), left or "x", params, activations[0])
        b.layer("p", own or Activation(Softplus()), value or "x", None, activations[1])
        return [
            b.layer(
                "o", TANH, b.layer("n", ArrayMap(function, (24,), ((24,),) * 3, slots), ["c", "x", "p"], None, activations[2])
            )
        ]

    return make


TAIL = RemoveSoftplusTail()
case("low threshold", LINES, TAIL, tail(least=14.5), "the threshold is below 15")
case("one low threshold of several", LINES, TAIL, tail(least=14.5, shape=(24,)), "the threshold is below 15")
case("tail with a clamp", LINES, TAIL, tail(activations=(None, None, RELU)), None)
case("tail of a clamped softplus", LINES, TAIL, tail(activations=(None, RELU, None)), None)
case("tail below", LINES, TAIL, tail(compare="Less"), None)
case("tail the other way round", LINES, TAIL, tail(slots=(0, 2, 1)), None)
case("tail of a tanh", LINES, TAIL, tail(own=TANH), None)
case("tail of another layer's argument", LINES, TAIL, lambda b: [b.layer("t", TANH), *tail(left="t")(b)], None)
case("tail of another softplus", LINES, TAIL, lambda b: [b.layer("t", TANH), *tail(value="t")(b)], None)


# Gates
def gate(op=None, activation=None, function=None, gate_activation=None) -> Make:
    return lambda b: [
        b.layer(
            "o",
            TANH,
            b.layer(
                "n",
                op or ArrayMap("Mul", (24,), ((24,), (24,)), (0, 1)),
                ["x", b.layer("g", function or ArrayMap("Sigmoid", (24,), ((24,),)), "x", None, gate_activation)],
                None,
                activation,
            ),
        )
    ]


case("gate with a clamp", LINES, FuseGate(), gate(activation=RELU), None)
case("sum with a gate", LINES, FuseGate(), gate(ArrayMap("Add", (24,), ((24,), (24,)), (0, 1))), None)
case("gate by another function", LINES, FuseGate(), gate(function=ArrayMap("Tan", (24,), ((24,),))), None)


# Roundings
WIDE, NARROW = Quantize(NumType(8, scale=1 / 64)), Quantize(NumType(8, scale=1 / 64, least=-8, most=7))


def roundings(*ops, also: tuple[str, ...] = (), activations: tuple = ()) -> Make:
    """Layers one behind the other, the last called `n`, and one of tanh behind it."""

    def make(b) -> list[str]:
        source = b.layer("a", TANH)
        for at, op in enumerate(ops):
            name = "n" if at == len(ops) - 1 else f"l{at}"
            source = b.layer(name, op, source, None, activations[at] if activations else None)
        return [b.layer("o", TANH, "n"), *also]

    return make


MERGE, HOIST, CLIP = MergeQuantize(), HoistQuantize(), ClipBeforeQuantize()
case(
    "rounding that joins two outputs",
    IMAGE,
    MERGE,
    lambda b: [b.layer("n", WIDE, b.layer("q", WIDE, b.layer("a", TANH))), "q"],
    ENDS,
)
case("rounding with a clamp", IMAGE, MERGE, roundings(WIDE, WIDE, activations=(None, RELU)), None)
case("rounding of a clamped rounding", IMAGE, MERGE, roundings(WIDE, WIDE, activations=(RELU, None)), None)
case("rounding to more integers", IMAGE, MERGE, roundings(NARROW, WIDE), None)
case(
    "rounding to more integers below",
    IMAGE,
    MERGE,
    roundings(Quantize(NumType(8, scale=1 / 64, least=-8, most=9)), Quantize(NumType(8, scale=1 / 64, least=-9, most=8))),
    None,
)
case(
    "rounding to more integers above",
    IMAGE,
    MERGE,
    roundings(Quantize(NumType(8, scale=1 / 64, least=-9, most=8)), Quantize(NumType(8, scale=1 / 64, least=-8, most=9))),
    None,
)
case(
    "rounding to fewer integers of another scale",
    IMAGE,
    MERGE,
    roundings(WIDE, Quantize(NumType(8, scale=1 / 32, least=-8, most=7))),
    None,
)
case("rounding to fewer integers of what is an output", IMAGE, MERGE, roundings(WIDE, NARROW, also=("l0",)), None)
case(
    "rounding to fewer integers of what others read",
    IMAGE,
    MERGE,
    lambda b: [*roundings(WIDE, NARROW)(b), b.layer("p", TANH, "l0")],
    None,
)
case("rounding to fewer integers of a clamped rounding", IMAGE, MERGE, roundings(WIDE, NARROW, activations=(RELU, None)), None)
case(
    "rounding behind an equal one of the same tensor",
    IMAGE,
    MERGE,
    lambda b: [b.layer("e", ElemWise("Sum"), [b.layer("q", WIDE, b.layer("a", TANH)), b.layer("n", WIDE, "a")])],
    None,
)
case(
    "rounding beside another one",
    IMAGE,
    MERGE,
    lambda b: [b.layer("e", ElemWise("Sum"), [b.layer("n", WIDE, b.layer("a", TANH)), b.layer("q", NARROW, "a")])],
    None,
)
case(
    "rounding beside an equal one with a clamp",
    IMAGE,
    MERGE,
    lambda b: [b.layer("e", ElemWise("Sum"), [b.layer("n", WIDE, b.layer("a", TANH)), b.layer("q", WIDE, "a", None, RELU)])],
    None,
)
case(
    "rounding of an output beside an equal one",
    IMAGE,
    MERGE,
    lambda b: [b.layer("e", ElemWise("Sum"), [b.layer("n", WIDE, b.layer("a", TANH)), b.layer("q", WIDE, "a")]), "q"],
    None,
)
POOL = Pool("Max", (2, 2))
case("rounding of an input", IMAGE, HOIST, lambda b: [b.layer("o", TANH, b.layer("n", WIDE))], None)
case("rounding of moved values that are an output", IMAGE, HOIST, roundings(POOL, WIDE, also=("l0",)), None)
case("rounding of moved values with a function", IMAGE, HOIST, roundings(POOL, WIDE, activations=(Tanh(), None)), None)
case("rounding of moved values that are rounded", IMAGE, HOIST, roundings(NARROW, POOL, WIDE), None)
case(
    "rounding of a sum",
    IMAGE,
    HOIST,
    lambda b: [b.layer("o", TANH, b.layer("n", WIDE, b.layer("e", ElemWise("Sum"), ["x", b.layer("a", TANH)])))],
    None,
)
case("rounding of a mean", IMAGE, HOIST, roundings(Pool("Average", (2, 2)), WIDE), None)
case(
    "rounding of joined roundings",
    IMAGE,
    HOIST,
    lambda b: [
        b.layer(
            "o",
            TANH,
            b.layer("n", NARROW, b.layer("e", Concat(), [b.layer("q", WIDE, b.layer("a", TANH)), b.layer("r", WIDE, "x")])),
        )
    ],
    None,
)
case(
    "rounding of moved values that others read",
    IMAGE,
    HOIST,
    lambda b: [*roundings(POOL, WIDE)(b), b.layer("p", TANH, "l0")],
    "the output of l0 is read in other ways too",
)


def clamped(first=WIDE, function=None, last=WIDE, source="a", activation=None, also=()) -> Make:
    def make(b) -> list[str]:
        b.layer("a", TANH)
        b.layer("n", Activation(function or Clip(0.0, 0.5)), b.layer("q", first, source), None, activation)
        return [b.layer("o", TANH, b.layer("r", last, "n")), *(["a"] if source == "x" else []), *also]

    return make


case("clamp of a rounded input", IMAGE, CLIP, clamped(source="x"), None)
case("clamp of a rounding that is an output", IMAGE, CLIP, clamped(also=("q",)), "what it clamps is also used without")
case("clamp between roundings that is an output", IMAGE, CLIP, clamped(also=("n",)), None)
case("clamp between unequal roundings", IMAGE, CLIP, clamped(last=NARROW), None)
case("function between roundings", IMAGE, CLIP, clamped(function=Tanh()), None)
case("clamp with a function between roundings", IMAGE, CLIP, clamped(activation=Tanh()), None)
case("clamp between functions", IMAGE, CLIP, clamped(first=TANH, last=TANH), None)
case("clamp of an input alone", IMAGE, CLIP, lambda b: [b.layer("n", Activation(Clip(0.0, 0.5)))], None)


def erf_gate(behind=None) -> Make:
    """x (1 + erf(x / sqrt(2))), which is twice a GELU, and a layer behind it."""

    def make(b) -> list[str]:
        root = constant(b, "r", "Div", (24,), (1,), "x", values=numbers(2**0.5))
        added = constant(b, "p", "Add", (24,), (1,), b.layer("e", Activation(Erf()), root), values=numbers(1))
        b.layer("n", ArrayMap("Mul", (24,), ((24,), (24,)), (1, 0)), [added, "x"])
        return [b.layer("o", TANH, behind(b))] if behind else ["n"]

    return make


TWICE = "it is 2 times Gelu"
case("twice a GELU", LINES, FuseGate(), erf_gate(), TWICE)
case("twice a GELU before a function", LINES, FuseGate(), erf_gate(lambda b: b.layer("t", TANH, "n")), TWICE)
case(
    "twice a GELU and a half",
    LINES,
    FuseGate(),
    erf_gate(lambda b: constant(b, "m", "Add", (24,), (1,), "n", values=numbers(0.5))),
    TWICE,
)
case(
    "0.98 of a GELU",
    LINES,
    FuseGate(),
    erf_gate(lambda b: constant(b, "m", "Mul", (24,), (1,), "n", values=numbers(0.49))),
    TWICE,
)
case(
    "half of twice a GELU for each element",
    LINES,
    FuseGate(),
    erf_gate(lambda b: constant(b, "m", "Mul", (24,), (24,), "n", values=np.full(24, 0.5, np.float32))),
    TWICE,
)
case(
    "halved twice a GELU that is an output",
    LINES,
    FuseGate(),
    lambda b: [*erf_gate(lambda b: constant(b, "m", "Mul", (24,), (1,), "n", values=numbers(0.5)))(b), "n"],
    TWICE,
)
case(
    "gate of which parts repeat",
    LINES,
    FuseGate(),
    lambda b: [
        b.layer(
            "o",
            TANH,
            b.layer(
                "n",
                ArrayMap("Mul", (2, 24), ((1, 24), (2, 24)), (0, 1)),
                ["x", b.layer("g", ArrayIndexSelect(24, ((0, 0), tuple(range(24)))), b.layer("s", Activation(Logistic())))],
            ),
        )
    ],
    None,
)
case("gate of one input", LINES, FuseGate(), one(ArrayMap("Mul", (24,), ((24,), (24,)), (0, 0))), None)
for name, of in (("the function", 1), ("the view", 2), ("the argument", 0)):
    case(
        f"tail of which {name} is clamped",
        IMAGE,
        TAIL,
        lambda b, of=of: [
            b.layer(
                "o",
                TANH,
                b.layer(
                    "n",
                    ArrayMap("Where", (24,), ((24,),) * 3, (0, 1, 2)),
                    [
                        b.layer(
                            "c",
                            ArrayMap("Greater", (24,), ((24,), (1,)), (0, -1), "bool"),
                            b.layer("f", Reshape((24,)), "x", None, RELU if of == 0 else None),
                            {"operand1": numbers(20)},
                        ),
                        b.layer("h", Reshape((24,))),
                        b.layer(
                            "v",
                            Reshape((24,)),
                            b.layer("p", Activation(Softplus()), "x", None, RELU if of == 1 else None),
                            None,
                            RELU if of == 2 else None,
                        ),
                    ],
                ),
            )
        ],
        None,
    )
case(
    "tail with a threshold that is not a constant",
    LINES,
    TAIL,
    lambda b: [
        b.layer(
            "o",
            TANH,
            b.layer(
                "n",
                ArrayMap("Where", (24,), ((24,),) * 3, (0, 1, 2)),
                [
                    b.layer("c", ArrayMap("Greater", (24,), ((24,), (24,)), (0, 1), "bool"), ["x", b.layer("t", TANH)]),
                    "x",
                    b.layer("p", Activation(Softplus())),
                ],
            ),
        )
    ],
    None,
)
case(
    "tail that is repeated",
    LINES,
    TAIL,
    lambda b: [
        b.layer(
            "o",
            TANH,
            b.layer(
                "n",
                ArrayMap("Where", (2, 24), ((2, 24), (1, 24), (1, 24)), (0, 1, 2)),
                [
                    b.layer(
                        "c",
                        ArrayMap("Greater", (2, 24), ((1, 24), (2, 1)), (0, -1), "bool"),
                        "x",
                        {"operand1": numbers(20, 30)},
                    ),
                    "x",
                    b.layer("p", Activation(Softplus())),
                ],
            ),
        )
    ],
    None,
)
case(
    "tail of a condition that is an input",
    LINES,
    TAIL,
    lambda b: [
        b.layer(
            "o",
            TANH,
            b.layer("n", ArrayMap("Where", (24,), ((24,),) * 3, (0, 1, 2)), ["x", "x", b.layer("p", Activation(Softplus()))]),
        )
    ],
    None,
)
case(
    "tail of a condition that is a function",
    LINES,
    TAIL,
    lambda b: [
        b.layer(
            "o",
            TANH,
            b.layer(
                "n",
                ArrayMap("Where", (24,), ((24,),) * 3, (0, 1, 2)),
                [b.layer("c", TANH), "x", b.layer("p", Activation(Softplus()))],
            ),
        )
    ],
    None,
)
case(
    "tail of the input",
    LINES,
    TAIL,
    lambda b: [
        b.layer(
            "o",
            TANH,
            b.layer(
                "n",
                ArrayMap("Where", (24,), ((24,),) * 3, (0, 1, 2)),
                [
                    b.layer("c", ArrayMap("Greater", (24,), ((24,), (1,)), (0, -1), "bool"), "x", {"operand1": numbers(20)}),
                    "x",
                    "x",
                ],
            ),
        )
    ],
    None,
)
case("tail of a sigmoid", LINES, TAIL, tail(own=Activation(Logistic())), None)
case("function beside the softplus of an array", LINES, TAIL, tail(own=ArrayMap("Exp", (24,), ((24,),))), None)


# Integers of the file: their arithmetic is that of their type
def whole(b, name: str = "i", size: int = 24, source: str = "x") -> str:
    """Integers of 32 bits."""
    return b.layer(name, ArrayMap("Cast", (size,), ((size,),), (0,), "int32"), source)


def of_integers(op, operands: int = 2, params=None) -> Make:
    """A layer `n` of one or two arrays of integers, and what casts it back."""

    def make(b) -> list[str]:
        b.layer("n", op, [whole(b, f"i{at}") for at in range(operands)], params(b) if params else None)
        size = b.graph.shape("n")[1]
        return [b.layer("o", ArrayMap("Cast", (size,), ((size,),)), "n")]

    return make


def integer_constant(function: str, shape, dims=(4, 6)) -> Make:
    return of_integers(
        ArrayMap(function, dims, (dims, shape), (0, -1), "int32"),
        1,
        lambda b: {"operand1": np.arange(1, 1 + np.prod(shape), dtype=np.int32)},
    )


for function, rewrite in (("Add", ArraySums()), ("Sub", ArraySums()), ("Mul", ArrayElemWise()), ("Mul", FuseGate())):
    case(
        f"{rewrite.name}: {function} of integers",
        LINES,
        rewrite,
        of_integers(ArrayMap(function, (24,), ((24,), (24,)), (0, 1), "int32")),
        None,
    )
case(
    "outer product of integers",
    LINES,
    OuterProduct(),
    lambda b: [
        b.layer(
            "o",
            ArrayMap("Cast", (24,), ((24,),)),
            b.layer(
                "n",
                ArrayMap("Mul", (2, 4, 3), ((2, 4, 1), (2, 1, 3)), (0, 1), "int32"),
                [whole(b, "i", 8, dense(b, "c", "x", 8)), whole(b, "j", 6, dense(b, "d", "x", 6))],
            ),
        )
    ],
    None,
)
case("mean of integers", LINES, PooledArrays(), of_integers(ArrayReduce("Mean", (2, 3, 4), (1,), result="int32"), 1), None)
case("gains of rows of integers", LINES, ROWS, integer_constant("Mul", (1, 6)), None)
case("gains of channels of integers", LINES, CHANNELS, integer_constant("Mul", (4, 1)), None)
case("constants added to integers", LINES, PLUS, integer_constant("Add", (1, 6)), None)
case("factor of integers", LINES, SUMS, integer_constant("Mul", (1, 1)), None)
PRODUCTS = ArrayMatMul((2, 3, 4), (2, 4, 3), (0, 1), "int32")
case(
    "product of turned integers",
    LINES,
    OPERAND,
    lambda b: [
        b.layer(
            "o",
            ArrayMap("Cast", (18,), ((18,),)),
            b.layer("n", PRODUCTS, [b.layer("t", ArrayIndexSelect(24, ((0, 12), (0, 1, 2), (0, 3, 6, 9))), whole(b)), "i"]),
        )
    ],
    None,
)
case(
    "product of integers that is turned",
    LINES,
    RESULT,
    lambda b: [
        b.layer(
            "o",
            ArrayMap("Cast", (18,), ((18,),)),
            b.layer("t", ArrayIndexSelect(18, SIDE), b.layer("n", PRODUCTS, [whole(b), "i"])),
        )
    ],
    None,
)
for rewrite, left, right, slots in (
    (MatMulToConv(), (4, 6), (6, 5), (0, -1)),
    (GroupedMatMul(), (2, 3, 4), (2, 4, 5), (0, -1)),
    (LeftMatMul(), (5, 4), (4, 6), (-1, 0)),
):
    at = slots.index(-1)
    case(
        f"{rewrite.name} of integers",
        LINES,
        rewrite,
        of_integers(
            ArrayMatMul(left, right, slots, "int32"),
            1,
            lambda b, at=at, dims=(left, right)[at]: {f"operand{at}": np.arange(np.prod(dims), dtype=np.int32)},
        ),
        None,
    )


@pytest.mark.parametrize("name", CASES)
def test_what_stays(name, build):
    shape, rewrite, make, wanted = CASES[name]
    b = build(*shape)
    graph = b.done(*make(b))
    match = rewrite.match(graph, graph.node("n"))
    assert (match if match is None else match.reason) == wanted
    assert match is None or match.found is None
