"""Layers beside which a rewrite would change the results, or the outputs of the network: it leaves them."""

from math import prod

from support import ops
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import Clip, LeakyRectifier, Tanh
from n2d2py.contracts.operator import Op
from n2d2py.passes.fuse_into import FuseActivation, FuseAffine, FuseBatchNorm, FusePadding
from n2d2py.passes.gains import MergeGains
from n2d2py.passes.layout import DropSoftmax, MergeTranspose, RemoveIdentity, RemoveReshape, TransposeIntoFc
from n2d2py.passes.lift_channels import LiftChannels
from n2d2py.passes.quantized import ClipBeforeQuantize, HoistQuantize

IMAGE = (4, 6, 6)
RELU, TANH, STEPS = ops.Activation(Clip(0)), ops.Activation(Tanh()), ops.Quantize(NumType(8, scale=0.125))
CONV, BEHIND, TURNED = ("c", ops.Conv(), "x"), ("n", ops.BatchNorm(), "c"), ("t", ops.Transpose((0, 2, 3, 1)), "x")
POOLED = [("a", TANH, "x"), ("m", ops.Pool("Max", (2, 2)), "a"), ("q", STEPS, "m"), ("t", TANH, "m")]
CLAMPED = [("a", TANH, "x"), ("q", STEPS, "a"), ("c", ops.Activation(Clip(0.0, 0.5)), "q"), ("r", STEPS, "c"), ("t", TANH, "q")]
SCORES = [("f", ops.Fc(), "x"), ("s", ops.Softmax(), "f")]
FLAT = [TURNED, ("r", ops.Reshape((24,)), "t"), ("f", ops.Fc(), "r")]
SIZES = [
    ("wide", ops.Reshape((2, 4, 2)), "x"),
    ("one", RELU, "wide"),
    ("f1", ops.Reshape((16,)), "one"),
    ("f2", ops.Reshape((16,)), "x"),
]
CASES = {
    "a window of padding": (IMAGE, [("r", RELU, "x"), ("p", ops.Padding((2, 0, 0, 0)), "r"), ("m", ops.Pool("Max", (2, 2)), "p")], "m", FusePadding()),
    "a crop": (IMAGE, [("p", ops.Padding((-1, 0, 1, 0)), "x"), ("c", ops.Conv(), "p")], "c", FusePadding()),
    "padding that is an output": (IMAGE, [("p", ops.Padding((1, 0, 1, 0)), "x"), ("c", ops.Conv(), "p")], "c p", FusePadding()),
    "padding with two readers": (IMAGE, [("p", ops.Padding((1, 0, 1, 0)), "x"), ("c", ops.Conv(), "p"), ("t", TANH, "p")], "c t", FusePadding()),
    "no clamp": (IMAGE, [CONV, ("t", ops.Activation(LeakyRectifier(0.1)), "c")], "t", FuseActivation()),
    "what a clamp reads is an output": (IMAGE, [CONV, ("t", RELU, "c")], "t c", FuseActivation()),
    "a clamp behind a function": (IMAGE, [(*CONV, Tanh()), ("t", RELU, "c")], "t", FuseActivation()),
    "a clamp of an input": ((4,), [("r", RELU, "x")], "r", FuseActivation()),
    "a norm behind a clamp": (IMAGE, [(*CONV, Clip(0)), BEHIND], "n", FuseBatchNorm()),
    "a norm beside another reader": (IMAGE, [CONV, BEHIND, ("t", TANH, "c")], "n t", FuseBatchNorm()),
    "a norm of an output": (IMAGE, [CONV, BEHIND], "n c", FuseBatchNorm()),
    "gains before a pool": (IMAGE, [("a", ops.Affine(), "x"), ("p", ops.Pool("Max", (2, 2)), "a")], "p", MergeGains(arrays=False)),
    "gains before a function": (IMAGE, [("a", ops.Affine(), "x", Tanh()), ("c", ops.Conv(), "a")], "c", MergeGains(arrays=False)),
    "gains of an input": (IMAGE, [("a", ops.Affine(), "x"), ("c", ops.Conv(), "a")], "c", FuseAffine()),
    "an input as it is": ((4,), [("i", ops.Identity(), "x")], "i", RemoveIdentity()),
    "the shape of an output": ((4, 3, 3), [("p", ops.Pool("Average", (3, 3)), "x"), ("r", ops.Reshape((4,)), "p")], "r", RemoveReshape()),
    "a shape that a reader keeps": ((4, 3, 3), [("r", ops.Reshape((12, 3)), "x"), ("t", TANH, "r")], "t", RemoveReshape()),
    "a shape that a reader needs": ((4, 9), [("r", ops.Reshape((4, 3, 3)), "x"), ("c", ops.Conv(), "r")], "c", RemoveReshape()),
    "a transposition": ((4, 3, 2), [TURNED], "t", MergeTranspose()),
    "a transposition of an output": ((4, 3, 2), [TURNED], "t", TransposeIntoFc()),
    "a transposition before a clamp": ((4, 3, 2), [TURNED, ("r", ops.Reshape((24,)), "t", Clip(0.0)), ("f", ops.Fc(), "r")], "f", TransposeIntoFc()),
    "a transposition with two readers": ((4, 3, 2), [*FLAT, ("y", TANH, "r")], "f y", TransposeIntoFc()),
    "a transposition that is an output": ((4, 3, 2), FLAT, "f r", TransposeIntoFc()),
    "a moved value with two readers": ((3, 4, 4), POOLED, "q t", HoistQuantize()),
    "integers that are read without a clamp": ((3, 4, 4), CLAMPED, "r t", ClipBeforeQuantize()),
    "scores that a function reads": ((8,), [*SCORES, ("y", TANH, "s")], "y", DropSoftmax()),
    "scores that a layer reads": ((8,), [*SCORES, ("y", ops.Fc(), "s")], "y", DropSoftmax()),
    "parts of channels": ((4, 2, 2), [("flat", ops.Reshape((16,)), "x"), ("s", ops.IndexSelect((tuple(range(2, 10)),)), "flat")], "s", LiftChannels()),
    "images of two sizes": ((4, 2, 2), [*SIZES, ("joined", ops.Concat(), "f1 f2")], "joined", LiftChannels()),
}  # fmt: skip
"""Shape of the input, layers (name, operator, what they read, activation), outputs, rewrite."""


def parameters(b, op: Op, shape: tuple[int, ...]) -> dict:
    if isinstance(op, ops.Conv):
        return {"weights": b.array(4, shape[1], 3, 3), "bias": b.array(4)}
    if isinstance(op, ops.Fc):
        return {"weights": b.array(5, prod(shape)), "bias": b.array(5)}
    if isinstance(op, ops.BatchNorm):
        return {role: b.array(shape[1], low=0.1) for role in ("scale", "bias", "mean", "variance")}
    return {"weights": b.array(shape[1]), "bias": b.array(shape[1])} if isinstance(op, ops.Affine) else {}


@every("case", CASES)
def test_what_stays(build, run, case):
    shape, layers, outputs, rewrite = CASES[case]
    b = build(*shape)
    for name, op, inputs, *activation in layers:
        params = parameters(b, op, b.graph.shape(inputs.split()[0]))
        b.layer(name, op, inputs.split(), params, *activation)
    after, report = run(b.done(*outputs.split()), rewrite)
    assert report.refused and not report.done and [node.name for node in after.nodes] == [name for name, *_ in layers]
