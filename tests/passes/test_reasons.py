"""What each rewrite says of a layer: that it takes it, that it is of another kind, or why it leaves it; taken ones keep the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.norm import ArrayNorm
from n2d2py.operators.conv import Conv
from n2d2py.operators.depth_to_space import SpaceToDepth
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Clip, Tanh
from n2d2py.operators.identity import Identity
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.padding import Padding
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.resize import Resize
from n2d2py.operators.softmax import Softmax
from n2d2py.operators.transpose import Transpose
from n2d2py.passes.array_sums import ArraySums
from n2d2py.passes.base import FuseReport
from n2d2py.passes.conv_to_fc import ConvToFc
from n2d2py.passes.drop_softmax import DropSoftmax
from n2d2py.passes.fuse_activation import FuseActivation, RemoveUnlimited, SplitActivation
from n2d2py.passes.fuse_affine import FuseAffine, FuseAffineForward
from n2d2py.passes.fuse_norm import FuseNorm
from n2d2py.passes.fuse_padding import FusePadding
from n2d2py.passes.grouped_matmul import GroupedMatMul
from n2d2py.passes.left_matmul import LeftMatMul
from n2d2py.passes.matmul_to_conv import MatMulToConv
from n2d2py.passes.remove_identity import RemoveIdentity
from n2d2py.passes.remove_layout import MergeTranspose, RemoveReshape
from n2d2py.passes.softmax_rows import NormalizeRows, SoftmaxRows
from n2d2py.reference.executor import run_graph

RELU, TANH = Clip(0.0), Tanh()


def conv(b, name: str, source: str, size: int = 1, groups: int = 1, activation: Any = None, **options) -> str:
    channels = b.graph.shape(source)[1]
    params = {"weights": b.array(4, channels // groups, size, size), "bias": b.array(4)}
    return b.layer(name, Conv(groups=groups, **options), source, params, activation)


def affine(b, name: str, source: str, gain: float = 2.0, shift: float = 0.5, activation: Any = None) -> str:
    count = b.graph.shape(source)[1]
    params = {"weights": np.full(count, gain, np.float32), "bias": np.full(count, shift, np.float32)}
    return b.layer(name, Affine(), source, params, activation)


def dense(b, name: str, source: str) -> str:
    return b.layer(name, Fc(), source, {"weights": b.array(3, int(np.prod(b.graph.shape(source)[1:]))), "bias": b.array(3)})


def _to_fc(size: int = 4, groups: int = 1, dims=(4,), activation: Any = None, twice: bool = False, **options):
    def make(b) -> list[str]:
        conv(b, "n", "x", size, groups, **options)
        ends = [b.layer("r", Reshape(dims), "n", activation=activation)]
        return [*ends, b.layer("o", Activation(TANH), "n")] if twice else ends

    return make


def _softmax(*, group: int = 0, behind: bool = False, activation: Any = None, source: str = "c", also: bool = False):
    def make(b) -> list[str]:
        conv(b, "c", "x", activation=TANH)
        end = b.layer("n", Softmax(group), source, activation=activation)
        end = b.layer("o", Activation(TANH), end) if behind else end
        return [end, "c"] if also or source == "x" else [end]

    return make


def _gain(gain: float, shift: float, *, activation: Any = None, before: Any = "x", joins: bool = False):
    def make(b) -> list[str]:
        if before != "x":
            before(b, "c", "x")
        affine(b, "n", "x" if before == "x" else "c", gain, shift, activation)
        return ["n"] if joins else [b.layer("o", Activation(TANH), "n")]

    return make


def _forward(*, readers=(), shift: float = 0.5, activation: Any = None, output: bool = False, scales: bool = False, also=None):
    def make(b) -> list[str]:
        others = [also(b, "other", "x")] if also is not None else []
        affine(b, "n", "x", 2.0, shift, activation)
        ends = [reader(b, f"r{at}", "n") for at, reader in enumerate(readers)]
        if scales:
            b.graph.node("r0").params["weight_scales"] = np.ones(4, np.float32)
        return [*others, *ends, *(["n"] if output or not ends + others else [])]

    return make


def _padded(reader, *, pads=(1, 0, 2, 1), activation: Any = None, output: bool = False, nonnegative: bool = False, also=None):
    def make(b) -> list[str]:
        others = [also(b, "other", "x")] if also is not None else []
        source = b.layer("a", Activation(RELU)) if nonnegative else "x"
        b.layer("n", Padding(pads), source, activation=activation)
        ends = [reader(b, "r", "n")] if reader is not None else []
        return [*others, *ends, *(["n"] if output or not ends + others else [])]

    return make


def pool(mode: str, kernel: int = 2, pads=(0, 0, 0, 0), count: bool = True, stride: int = 1):
    return lambda b, name, source: b.layer(name, Pool(mode, (kernel, kernel), (stride, stride), pads, count), source)


def single(op, *, source=None, activation: Any = None, behind=None, also=()):
    """One layer `n` behind a layer `c`, or the input."""

    def make(b) -> list[str]:
        first = source(b, "c", "x") if source is not None else "x"
        b.layer("n", op, first, activation=activation)
        end = behind(b, "o", "n") if behind is not None else "n"
        return [end, *also]

    return make


def two(b, name: str, source: str) -> str:
    """A vector of two elements."""
    return b.layer(name, Fc(), source, {"weights": b.array(2, 32), "bias": b.array(2)})


def tanh(b, name: str, source: str) -> str:
    return b.layer(name, Activation(TANH), source)


def _matmul(left, right, slots=(0, -1), *, result: str = "", activation: Any = None):
    def make(b) -> list[str]:
        constant = slots.index(-1) if -1 in slots else None
        params = {} if constant is None else {f"operand{constant}": b.array(int(np.prod((left, right)[constant])))}
        inputs = ["f"] if constant is not None else ["f", "f"]
        size = int(np.prod((left, right)[1 - (constant if constant is not None else 1)]))
        b.layer("v", Reshape((32,)), "x")
        b.layer("f", Activation(TANH), "v" if size == 32 else "x")
        return [b.layer("n", ArrayMatMul(left, right, slots, result), inputs, params, activation)]

    return make


def _sum(function="Add", slots=(0, 1), shapes=((2, 4, 4), (2, 4, 4)), activation: Any = None, result: str = ""):
    def make(b) -> list[str]:
        b.layer("f", Reshape((32,)), "x")
        b.layer("g", Activation(TANH), "f")
        if shapes[1] != (2, 4, 4):
            b.layer("h", Pool("Average", (4, 4)), "x")
            b.layer("g2", Reshape((2,)), "h")
        second = "g" if shapes[1] == (2, 4, 4) else "g2"
        b.layer("n", ArrayMap(function, (2, 4, 4), shapes, slots, result), ["f", second], activation=activation)
        return [b.layer("o", Activation(TANH), "n")]

    return make


def _sum_of_constants(function="Add", slots=(0, -1), values: Any = None, shape=(4, 8), reader: Any = None):
    """A sum of four lines of eight elements and constants, and what reads it: a normalisation unless another is given."""

    def make(b) -> list[str]:
        b.layer("f", Reshape((32,)), "x")
        constants = b.array(int(np.prod(shape))) if values is None else values
        shapes = tuple(shape if slot < 0 else (4, 8) for slot in slots)
        b.layer("n", ArrayMap(function, (4, 8), shapes, slots), "f", {f"operand{slots.index(-1)}": constants})
        return [b.layer("o", reader or ArrayNorm(4, 8, 1e-5), "n")]

    return make


def _norm(function="Mul", shape=(4, 8), *, values=None, slots=(0, -1), twice=False, also=False, activation=None, **options):
    """A norm of four lines of eight elements, and a layer `m` of constants behind it."""

    def make(b) -> list[str]:
        b.layer("v", Reshape((32,)), "x")
        b.layer("n", ArrayNorm(4, 8, 1e-5, **options), "v", activation=activation)
        shapes = tuple(shape if slot < 0 else (4, 8) for slot in slots)
        constant = b.array(int(np.prod(shape))) if values is None else values
        b.layer("m", ArrayMap(function, (4, 8), shapes, slots), "n", {f"operand{slots.index(-1)}": constant})
        return ["m", *([b.layer("o", Activation(TANH), "n")] if twice else []), *(["n"] if also else [])]

    return make


Found = bool | str | None
"""True: taken; None: of another kind; else the reason, or its end."""
CASES: dict[str, tuple[Any, Callable, Found]] = {
    "whole window": (ConvToFc(), _to_fc(), True),
    "smaller window": (ConvToFc(), _to_fc(3, pads=(0, 0, -1, -1)), "its window of 3x3 is not its whole input of 4x4"),
    "padded window": (ConvToFc(), _to_fc(4, stride=(9, 9), pads=(1, 0, 0, 0)), "its window of 4x4 is not its whole input of 4x4"),
    "groups": (ConvToFc(), _to_fc(groups=2), "it has groups"),
    "activation of the view": (ConvToFc(), _to_fc(activation=RELU), "r carries an activation"),
    "another view": (ConvToFc(), _to_fc(dims=(4, 1)), None),
    "two readers": (ConvToFc(), _to_fc(twice=True), None),
    "last softmax": (DropSoftmax(), _softmax(), True),
    "all channels as a group": (DropSoftmax(), _softmax(group=4), True),
    "groups of channels": (DropSoftmax(), _softmax(group=2), True),
    "softmax that is to stay": (DropSoftmax(every=False), _softmax(), None),
    "inner softmax": (DropSoftmax(), _softmax(behind=True), "it is not at the end of the network"),
    "softmax with activation": (DropSoftmax(), _softmax(activation=RELU), "it carries an activation"),
    "softmax of an input": (DropSoftmax(), _softmax(source="x"), "it reads a network input, or another output"),
    "softmax of an output": (DropSoftmax(), _softmax(also=True), "it reads a network input, or another output"),
    "gain behind a convolution": (FuseAffine(), _gain(2, 1, before=conv), True),
    "gain behind a gain": (FuseAffine(), _gain(2, 1, before=affine), True),
    "gain of 1": (FuseAffine(), _gain(1, 0), True),
    "gain of 1 with an activation": (FuseAffine(), _gain(1, 0, activation=RELU), "its input is a network input"),
    "gain of 1 with a shift": (FuseAffine(), _gain(1, 0.5), "its input is a network input"),
    "gain of 2": (FuseAffine(), _gain(2, 0), "its input is a network input"),
    "gain of 1 from end to end": (FuseAffine(), _gain(1, 0, joins=True), "its input is a network input"),
    "gain behind a function": (FuseAffine(), _gain(2, 1, before=tanh), "it follows c of type Activation"),
    "gain behind an activation": (
        FuseAffine(),
        _gain(2, 1, before=lambda b, name, x: conv(b, name, x, activation=RELU)),
        "c has the activation Clip",
    ),
    "gain before a convolution": (FuseAffineForward(), _forward(readers=(conv,)), True),
    "gain before two layers": (FuseAffineForward(), _forward(readers=(conv, dense)), True),
    "gain that nothing reads": (FuseAffineForward(), _forward(also=tanh), "nothing reads it"),
    "gain with an activation": (FuseAffineForward(), _forward(readers=(conv,), activation=RELU), "it has the activation Clip"),
    "gain that is an output": (FuseAffineForward(), _forward(readers=(conv,), output=True), "it is a network output"),
    "gain before a function": (FuseAffineForward(), _forward(readers=(conv, tanh)), "it feeds r1 of type Activation"),
    "gain before integers": (
        FuseAffineForward(),
        _forward(readers=(conv,), scales=True),
        "the weights of r0 are integers, which a gain of its inputs would change",
    ),
    "shift before pads": (
        FuseAffineForward(),
        _forward(readers=(lambda b, name, x: conv(b, name, x, 3, pads=(0, 0, 0, 1)),)),
        "r0 pads with zeros, which the shift would change",
    ),
    "gain before pads": (
        FuseAffineForward(),
        _forward(readers=(lambda b, name, x: conv(b, name, x, 3, pads=(1, 1, 1, 1)),), shift=0.0),
        True,
    ),
    "zeros before a convolution": (FusePadding(), _padded(lambda b, name, x: conv(b, name, x, 3)), True),
    "crop": (FusePadding(), _padded(conv, pads=(1, -1, 0, 0)), "it crops"),
    "zeros on one side": (FusePadding(), _padded(conv, pads=(0, 0, 0, 1)), True),
    "zeros that nothing reads": (FusePadding(), _padded(None, also=tanh), "nothing reads it"),
    "zeros with an activation": (FusePadding(), _padded(conv, activation=RELU), "it carries an activation"),
    "zeros that are an output": (FusePadding(), _padded(conv, output=True), "it is a network output"),
    "zeros before a function": (FusePadding(), _padded(tanh), "it feeds r of type Activation"),
    "zeros before a crop": (FusePadding(), _padded(lambda b, name, x: conv(b, name, x, 2, pads=(-1, 0, 0, 0))), "r crops"),
    "zeros before a mean": (FusePadding(), _padded(pool("Average")), True),
    "zeros before a mean with pads": (FusePadding(), _padded(pool("Average", pads=(1, 0, 0, 0))), True),
    "zeros before a mean of what is inside": (FusePadding(), _padded(pool("Average", count=False)), True),
    "zeros before such a mean with pads": (
        FusePadding(),
        _padded(pool("Average", pads=(1, 0, 0, 0), count=False)),
        "r averages without its own pads, but counts these zeros",
    ),
    "zeros before a maximum": (
        FusePadding(),
        _padded(pool("Max")),
        "a padded zero can be the maximum in r, as its input may be negative",
    ),
    "zeros before a maximum of no negative values": (
        FusePadding(),
        _padded(pool("Max"), pads=(1, 0, 1, 1), nonnegative=True),
        True,
    ),
    "windows of zeros": (FusePadding(), _padded(pool("Max"), nonnegative=True), "a window of r would hold padding only"),
    "identity": (RemoveIdentity(), single(Identity(), behind=tanh), True),
    "identity with an activation": (RemoveIdentity(), single(Identity(), activation=RELU), "it carries an activation"),
    "identity from end to end": (RemoveIdentity(), single(Identity()), "it joins a network output and an input or another output"),
    "identity of another output": (RemoveIdentity(), single(Identity(), source=conv, also=("c",)), "or another output"),
    "identity that is an output": (RemoveIdentity(), single(Identity(), source=conv), True),
    "view of the same shape": (RemoveReshape(), single(Reshape((2, 4, 4)), behind=tanh), True),
    "view with an activation": (RemoveReshape(), single(Reshape((32,)), activation=RELU), "it carries an activation"),
    "view from end to end": (RemoveReshape(), single(Reshape((32,))), "it joins a network output"),
    "view of a view": (
        RemoveReshape(),
        single(Reshape((32,)), source=lambda b, name, x: b.layer(name, Reshape((4, 8)), x)),
        True,
    ),
    "view of a view with an activation": (
        RemoveReshape(),
        single(Reshape((32,)), source=lambda b, name, x: b.layer(name, Reshape((4, 8)), x, activation=RELU)),
        "it changes 4x8 to 32, which its readers tell apart",
    ),
    "view before a dense layer": (RemoveReshape(), single(Reshape((32,)), source=tanh, behind=dense), True),
    "view before a dense layer and an output": (
        RemoveReshape(),
        single(Reshape((32,)), source=tanh, behind=dense, also=("n",)),
        "it changes 2x4x4 to 32, which its readers tell apart",
    ),
    "view before a function": (RemoveReshape(), single(Reshape((32,)), source=tanh, behind=tanh), "which its readers tell apart"),
    "view of one position": (
        RemoveReshape(),
        single(Reshape((2,)), source=pool("Average", 4), behind=lambda b, name, x: b.layer("o", Softmax(), x)),
        "the output o would change its shape",
    ),
    "view of one position before a dense layer": (RemoveReshape(), single(Reshape((2,)), source=pool("Average", 4), behind=dense), True),
    "view that a convolution needs": (
        RemoveReshape(),
        single(Reshape((2, 1, 1)), source=two, behind=conv),
        "a layer behind it needs this shape",
    ),
    **{
        f"view that {behind.kind} needs": (
            RemoveReshape(),
            single(Reshape((2, 1, 1)), source=two, behind=lambda b, name, x, behind=behind: b.layer(name, behind, x)),
            "a layer behind it needs this shape",
        )
        for behind in (
            IndexSelect(((1, 0), (0, 0), (0,))),
            Transpose((0, 3, 1, 2)),
            Padding((0, 1, 1, 0)),
            Pool("Max", (1, 1)),
            Resize((2, 3)),
            SpaceToDepth(1),
        )
    },
    "turn of nothing": (MergeTranspose(), single(Transpose((0, 1, 2, 3)), behind=tanh), True),
    "turn with an activation": (MergeTranspose(), single(Transpose((0, 1, 3, 2)), activation=RELU), "it carries an activation"),
    "turn": (MergeTranspose(), single(Transpose((0, 1, 3, 2))), "it changes the order of the elements"),
    "turn of a turn": (
        MergeTranspose(),
        single(Transpose((0, 1, 3, 2)), source=lambda b, name, x: b.layer(name, Transpose((0, 3, 1, 2)), x)),
        True,
    ),
    "turn of axes of length 1": (MergeTranspose(), single(Transpose((0, 2, 1, 3)), source=pool("Average", 4), behind=tanh), True),
    "clamp behind a convolution": (FuseActivation(), single(Activation(RELU), source=conv), True),
    "clamp behind a mean": (FuseActivation(), single(Activation(RELU), source=pool("Average")), True),
    "clamp behind a maximum of an input": (FuseActivation(), single(Activation(RELU), source=pool("Max")), "it reads a network input"),
    "function": (FuseActivation(), single(Activation(TANH), source=conv), "Tanh is not a clamp"),
    "clamp of an input": (FuseActivation(), single(Activation(RELU)), "it reads a network input"),
    "clamp of what is used elsewhere": (
        FuseActivation(),
        single(Activation(RELU), source=conv, also=("c",)),
        "the output of c is also used elsewhere",
    ),
    "clamp behind a function": (FuseActivation(), single(Activation(RELU), source=tanh), "c of type Activation cannot take it"),
    "clamp behind a clamp": (
        FuseActivation(),
        single(Activation(RELU), source=lambda b, name, x: b.layer(name, Activation(Clip(-1.0, 0.5)), x)),
        True,
    ),
    "clamp with a clamp": (FuseActivation(), single(Activation(RELU), source=conv, activation=Clip(0.25, 0.5)), True),
    "clamp with a function": (
        FuseActivation(),
        single(Activation(RELU), source=conv, activation=TANH),
        "it carries the activation Tanh",
    ),
    "no limits": (RemoveUnlimited(), single(Activation(Clip()), behind=tanh), True),
    "one limit": (RemoveUnlimited(), single(Activation(Clip(-9.0)), behind=tanh), None),
    "no limits with an activation": (RemoveUnlimited(), single(Activation(Clip()), activation=RELU), "it carries an activation or"),
    "no limits from end to end": (RemoveUnlimited(), single(Activation(Clip())), "it carries an activation or"),
    "layer with a function": (SplitActivation(), single(Identity(), activation=TANH), True),
    "layer with a clamp": (SplitActivation(), single(Identity(), activation=RELU), None),
    "inner softmax of rows": (SoftmaxRows(), single(Softmax(), behind=tanh), True),
    "softmax of rows that leaves": (SoftmaxRows(), single(Softmax()), True),
    "logarithm of a softmax": (SoftmaxRows(), single(Softmax(log=True), behind=tanh), None),
    "softmax of rows with an activation": (SoftmaxRows(), single(Softmax(), activation=RELU, behind=tanh), None),
    "unit length": (NormalizeRows(), single(Normalize("L2")), True),
    "sum of 1": (NormalizeRows(), single(Normalize("L1")), None),
    "unit length with an activation": (NormalizeRows(), single(Normalize("L2"), activation=RELU), None),
    "product": (MatMulToConv(), _matmul((8, 4), (4, 3)), True),
    "product of one row": (MatMulToConv(), _matmul((1, 32), (32, 3)), True),
    "product of two tensors": (MatMulToConv(), _matmul((4, 8), (8, 4), (0, 1)), None),
    "product with an activation": (MatMulToConv(), _matmul((8, 4), (4, 3), activation=RELU), None),
    "several products": (MatMulToConv(), _matmul((2, 4, 4), (2, 4, 3)), None),
    "a matrix for each group": (GroupedMatMul(), _matmul((2, 4, 4), (2, 4, 3)), True),
    "one matrix for all groups": (GroupedMatMul(), _matmul((2, 4, 4), (1, 4, 3)), None),
    "groups of two tensors": (GroupedMatMul(), _matmul((2, 4, 4), (2, 4, 4), (0, 1)), None),
    "groups with an activation": (GroupedMatMul(), _matmul((2, 4, 4), (2, 4, 3), activation=RELU), None),
    "inner groups": (
        GroupedMatMul(),
        _matmul((2, 2, 2, 4), (1, 2, 4, 3)),
        "its matrices do not belong to the outermost groups of its rows",
    ),
    "product from the left": (LeftMatMul(), _matmul((3, 4), (4, 8), (-1, 0)), True),
    "product of one column": (LeftMatMul(), _matmul((3, 32), (32, 1), (-1, 0)), True),
    "several columns": (LeftMatMul(), _matmul((1, 3, 4), (8, 4, 1), (-1, 0)), True),
    "several products from the left": (LeftMatMul(), _matmul((2, 3, 4), (2, 4, 4), (-1, 0)), "a matrix for each of several products"),
    "product from the right": (LeftMatMul(), _matmul((8, 4), (4, 3)), None),
    "product from the left with an activation": (LeftMatMul(), _matmul((3, 4), (4, 8), (-1, 0), activation=RELU), None),
    "sum": (ArraySums(), _sum(), True),
    "difference": (ArraySums(), _sum("Sub"), True),
    "turned difference": (ArraySums(), _sum("Sub", (1, 0)), True),
    "product of elements": (ArraySums(), _sum("Mul"), None),
    "sum with an activation": (ArraySums(), _sum(activation=RELU), None),
    "sum of constants": (ArraySums(), _sum_of_constants(), True),
    "sum of constants before": (ArraySums(), _sum_of_constants(slots=(-1, 0)), True),
    "difference of constants": (ArraySums(), _sum_of_constants("Sub"), None),
    "sum of constants that no normalisation reads": (ArraySums(), _sum_of_constants(reader=Activation(TANH)), None),
    "sum of constants of a line": (ArraySums(), _sum_of_constants(shape=(1, 8)), None),
    "sum of integer constants": (ArraySums(), _sum_of_constants(values=np.arange(32)), None),
    "sum of endless constants": (ArraySums(), _sum_of_constants(values=np.full(32, np.inf, np.float32)), None),
    "sum of what is repeated": (ArraySums(), _sum(shapes=((2, 4, 4), (2, 1, 1))), "one of its operands is repeated"),
    "norm and gains": (FuseNorm(), _norm(shape=(1, 8)), True),
    "norm and turned shifts": (FuseNorm(), _norm("Add", (1, 8), slots=(-1, 0)), True),
    "norm and a gain for all": (FuseNorm(), _norm(shape=(1, 1)), True),
    "norm and gains of lines": (FuseNorm(), _norm(shape=(4, 1)), None),
    "norm and gains of elements": (FuseNorm(), _norm(shape=(4, 8)), None),
    "norm and a difference": (FuseNorm(), _norm("Sub", (1, 8)), None),
    "norm that is read twice": (FuseNorm(), _norm(shape=(1, 8), twice=True), None),
    "norm that is an output": (FuseNorm(), _norm(shape=(1, 8), also=True), None),
    "norm with an activation": (FuseNorm(), _norm(shape=(1, 8), activation=RELU), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_a_rewrite_says(name, build):
    rewrite, make, wanted = CASES[name]
    b = build(2, 4, 4)
    graph = b.done(*make(b))
    match = rewrite.match(graph, graph.node("n"))
    if wanted is None:
        assert match is None
    elif wanted is True:
        assert match is not None and match.reason is None and match.found, "what the rewrite needs"
        after, report = graph.copy(), FuseReport()
        assert rewrite.run(after, report) and "n" in {entry.layer for entry in report.done}
        assert all(entry.text for entry in report.done)
        after.verify()
        if isinstance(rewrite, DropSoftmax):
            return
        x = {"x": np.random.default_rng(1).normal(size=(3, 2, 4, 4))}
        for before, now in zip(run_graph(graph, x).values(), run_graph(after, x).values(), strict=True):
            np.testing.assert_allclose(now, before, rtol=1e-6, atol=1e-6)
    else:
        assert match is not None and match.reason is not None and wanted in match.reason
