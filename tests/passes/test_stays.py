"""Layers beside which a rewrite would change the results, or the outputs of the network: it leaves them."""

from math import prod

from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import Clip, LeakyRectifier, Tanh
from n2d2py.contracts.operator import Op
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv, Fc
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.padding import Padding
from n2d2py.operators.pointwise import Activation, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Quantize
from n2d2py.operators.reshape import Identity, Reshape, Transpose
from n2d2py.operators.softmax import Softmax
from n2d2py.passes.fuse_activation import FuseActivation
from n2d2py.passes.fuse_batchnorm import FuseAffine, FuseBatchNorm
from n2d2py.passes.fuse_padding import FusePadding
from n2d2py.passes.gains import MergeGains
from n2d2py.passes.layout import DropSoftmax, MergeTranspose, RemoveIdentity, RemoveReshape, TransposeIntoFc
from n2d2py.passes.lift_channels import LiftChannels
from n2d2py.passes.quantized import ClipBeforeQuantize, HoistQuantize

IMAGE = (4, 6, 6)
RELU, TANH, STEPS = Activation(Clip(0)), Activation(Tanh()), Quantize(NumType(8, scale=0.125))
CONV, BEHIND, TURNED = ("c", Conv(), "x"), ("n", BatchNorm(), "c"), ("t", Transpose((0, 2, 3, 1)), "x")
POOLED = [("a", TANH, "x"), ("m", Pool("Max", (2, 2)), "a"), ("q", STEPS, "m"), ("t", TANH, "m")]
CLAMPED = [("a", TANH, "x"), ("q", STEPS, "a"), ("c", Activation(Clip(0.0, 0.5)), "q"), ("r", STEPS, "c"), ("t", TANH, "q")]
SCORES = [("f", Fc(), "x"), ("s", Softmax(), "f")]
FLAT = [TURNED, ("r", Reshape((24,)), "t"), ("f", Fc(), "r")]
SIZES = [("wide", Reshape((2, 4, 2)), "x"), ("one", RELU, "wide"), ("f1", Reshape((16,)), "one"), ("f2", Reshape((16,)), "x")]
CASES = {
    "a window of padding": (IMAGE, [("r", RELU, "x"), ("p", Padding((2, 0, 0, 0)), "r"), ("m", Pool("Max", (2, 2)), "p")], "m", FusePadding()),
    "a crop": (IMAGE, [("p", Padding((-1, 0, 1, 0)), "x"), ("c", Conv(), "p")], "c", FusePadding()),
    "padding that is an output": (IMAGE, [("p", Padding((1, 0, 1, 0)), "x"), ("c", Conv(), "p")], "c p", FusePadding()),
    "padding with two readers": (IMAGE, [("p", Padding((1, 0, 1, 0)), "x"), ("c", Conv(), "p"), ("t", TANH, "p")], "c t", FusePadding()),
    "no clamp": (IMAGE, [CONV, ("t", Activation(LeakyRectifier(0.1)), "c")], "t", FuseActivation()),
    "what a clamp reads is an output": (IMAGE, [CONV, ("t", RELU, "c")], "t c", FuseActivation()),
    "a clamp behind a function": (IMAGE, [(*CONV, Tanh()), ("t", RELU, "c")], "t", FuseActivation()),
    "a clamp of an input": ((4,), [("r", RELU, "x")], "r", FuseActivation()),
    "a norm behind a clamp": (IMAGE, [(*CONV, Clip(0)), BEHIND], "n", FuseBatchNorm()),
    "a norm beside another reader": (IMAGE, [CONV, BEHIND, ("t", TANH, "c")], "n t", FuseBatchNorm()),
    "a norm of an output": (IMAGE, [CONV, BEHIND], "n c", FuseBatchNorm()),
    "gains before a pool": (IMAGE, [("a", Affine(), "x"), ("p", Pool("Max", (2, 2)), "a")], "p", MergeGains(arrays=False)),
    "gains before a function": (IMAGE, [("a", Affine(), "x", Tanh()), ("c", Conv(), "a")], "c", MergeGains(arrays=False)),
    "gains of an input": (IMAGE, [("a", Affine(), "x"), ("c", Conv(), "a")], "c", FuseAffine()),
    "an input as it is": ((4,), [("i", Identity(), "x")], "i", RemoveIdentity()),
    "the shape of an output": ((4, 3, 3), [("p", Pool("Average", (3, 3)), "x"), ("r", Reshape((4,)), "p")], "r", RemoveReshape()),
    "a shape that a reader keeps": ((4, 3, 3), [("r", Reshape((12, 3)), "x"), ("t", TANH, "r")], "t", RemoveReshape()),
    "a shape that a reader needs": ((4, 9), [("r", Reshape((4, 3, 3)), "x"), ("c", Conv(), "r")], "c", RemoveReshape()),
    "a transposition": ((4, 3, 2), [TURNED], "t", MergeTranspose()),
    "a transposition of an output": ((4, 3, 2), [TURNED], "t", TransposeIntoFc()),
    "a transposition before a clamp": ((4, 3, 2), [TURNED, ("r", Reshape((24,)), "t", Clip(0.0)), ("f", Fc(), "r")], "f", TransposeIntoFc()),
    "a transposition with two readers": ((4, 3, 2), [*FLAT, ("y", TANH, "r")], "f y", TransposeIntoFc()),
    "a transposition that is an output": ((4, 3, 2), FLAT, "f r", TransposeIntoFc()),
    "a moved value with two readers": ((3, 4, 4), POOLED, "q t", HoistQuantize()),
    "integers that are read without a clamp": ((3, 4, 4), CLAMPED, "r t", ClipBeforeQuantize()),
    "scores that a function reads": ((8,), [*SCORES, ("y", TANH, "s")], "y", DropSoftmax()),
    "scores that a layer reads": ((8,), [*SCORES, ("y", Fc(), "s")], "y", DropSoftmax()),
    "parts of channels": ((4, 2, 2), [("flat", Reshape((16,)), "x"), ("s", IndexSelect((tuple(range(2, 10)),)), "flat")], "s", LiftChannels()),
    "images of two sizes": ((4, 2, 2), [*SIZES, ("joined", Concat(), "f1 f2")], "joined", LiftChannels()),
}  # fmt: skip
"""Shape of the input, layers (name, operator, what they read, activation), outputs, rewrite."""


def parameters(b, op: Op, shape: tuple[int, ...]) -> dict:
    if isinstance(op, Conv):
        return {"weights": b.array(4, shape[1], 3, 3), "bias": b.array(4)}
    if isinstance(op, Fc):
        return {"weights": b.array(5, prod(shape)), "bias": b.array(5)}
    if isinstance(op, BatchNorm):
        return {role: b.array(shape[1], low=0.1) for role in ("scale", "bias", "mean", "variance")}
    return {"weights": b.array(shape[1]), "bias": b.array(shape[1])} if isinstance(op, Affine) else {}


@every("case", CASES)
def test_what_stays(build, run, case):
    shape, layers, outputs, rewrite = CASES[case]
    b = build(*shape)
    for name, op, inputs, *activation in layers:
        params = parameters(b, op, b.graph.shape(inputs.split()[0]))
        b.layer(name, op, inputs.split(), params, *activation)
    after, report = run(b.done(*outputs.split()), rewrite)
    assert report.refused and not report.done and [node.name for node in after.nodes] == [name for name, *_ in layers]
