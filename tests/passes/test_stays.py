"""Layers beside which a rewrite would change the results, or the outputs of the network: it leaves them."""

from math import prod

from support import ops
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import Clip, LeakyRectifier, Tanh
from n2d2py.contracts.operator import Op
from n2d2py.passes.fuse_into import fuse_activation, fuse_affine, fuse_batch_norm, fuse_padding
from n2d2py.passes.gains import merge_gains
from n2d2py.passes.layout import drop_softmax, merge_transpose, remove_identity, remove_reshape, transpose_into_fc
from n2d2py.passes.lift_channels import lift_channels
from n2d2py.passes.quantized import clip_before_quantize, hoist_quantize

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
    "a window of padding": (IMAGE, [("r", RELU, "x"), ("p", ops.Padding((2, 0, 0, 0)), "r"), ("m", ops.Pool("Max", (2, 2)), "p")], "m", fuse_padding),
    "a crop": (IMAGE, [("p", ops.Padding((-1, 0, 1, 0)), "x"), ("c", ops.Conv(), "p")], "c", fuse_padding),
    "padding that is an output": (IMAGE, [("p", ops.Padding((1, 0, 1, 0)), "x"), ("c", ops.Conv(), "p")], "c p", fuse_padding),
    "padding with two readers": (IMAGE, [("p", ops.Padding((1, 0, 1, 0)), "x"), ("c", ops.Conv(), "p"), ("t", TANH, "p")], "c t", fuse_padding),
    "no clamp": (IMAGE, [CONV, ("t", ops.Activation(LeakyRectifier(0.1)), "c")], "t", fuse_activation),
    "what a clamp reads is an output": (IMAGE, [CONV, ("t", RELU, "c")], "t c", fuse_activation),
    "a clamp behind a function": (IMAGE, [(*CONV, Tanh()), ("t", RELU, "c")], "t", fuse_activation),
    "a clamp of an input": ((4,), [("r", RELU, "x")], "r", fuse_activation),
    "a norm behind a clamp": (IMAGE, [(*CONV, Clip(0)), BEHIND], "n", fuse_batch_norm),
    "a norm beside another reader": (IMAGE, [CONV, BEHIND, ("t", TANH, "c")], "n t", fuse_batch_norm),
    "a norm of an output": (IMAGE, [CONV, BEHIND], "n c", fuse_batch_norm),
    "gains before a pool": (IMAGE, [("a", ops.Affine(), "x"), ("p", ops.Pool("Max", (2, 2)), "a")], "p", merge_gains),
    "gains before a function": (IMAGE, [("a", ops.Affine(), "x", Tanh()), ("c", ops.Conv(), "a")], "c", merge_gains),
    "gains of an input": (IMAGE, [("a", ops.Affine(), "x"), ("c", ops.Conv(), "a")], "c", fuse_affine),
    "an input as it is": ((4,), [("i", ops.Identity(), "x")], "i", remove_identity),
    "the shape of an output": ((4, 3, 3), [("p", ops.Pool("Average", (3, 3)), "x"), ("r", ops.Reshape((4,)), "p")], "r", remove_reshape),
    "a shape that a reader keeps": ((4, 3, 3), [("r", ops.Reshape((12, 3)), "x"), ("t", TANH, "r")], "t", remove_reshape),
    "a shape that a reader needs": ((4, 9), [("r", ops.Reshape((4, 3, 3)), "x"), ("c", ops.Conv(), "r")], "c", remove_reshape),
    "a transposition": ((4, 3, 2), [TURNED], "t", merge_transpose),
    "a transposition of an output": ((4, 3, 2), [TURNED], "t", transpose_into_fc),
    "a transposition before a clamp": ((4, 3, 2), [TURNED, ("r", ops.Reshape((24,)), "t", Clip(0.0)), ("f", ops.Fc(), "r")], "f", transpose_into_fc),
    "a transposition with two readers": ((4, 3, 2), [*FLAT, ("y", TANH, "r")], "f y", transpose_into_fc),
    "a transposition that is an output": ((4, 3, 2), FLAT, "f r", transpose_into_fc),
    "a moved value with two readers": ((3, 4, 4), POOLED, "q t", hoist_quantize),
    "integers that are read without a clamp": ((3, 4, 4), CLAMPED, "r t", clip_before_quantize),
    "scores that a function reads": ((8,), [*SCORES, ("y", TANH, "s")], "y", drop_softmax),
    "scores that a layer reads": ((8,), [*SCORES, ("y", ops.Fc(), "s")], "y", drop_softmax),
    "parts of channels": ((4, 2, 2), [("flat", ops.Reshape((16,)), "x"), ("s", ops.IndexSelect((tuple(range(2, 10)),)), "flat")], "s", lift_channels),
    "images of two sizes": ((4, 2, 2), [*SIZES, ("joined", ops.Concat(), "f1 f2")], "joined", lift_channels),
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
