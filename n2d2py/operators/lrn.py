"""Local response normalization over channels."""

from functools import partial, reduce

import numpy as np

from n2d2py.arithmetic.functions import power
from n2d2py.contracts.cpp import Layer, LayerCode, cpp, epilogue
from n2d2py.contracts.facets import NoOnnxForm, OnnxWriter, Op, onnx_emitter, register
from n2d2py.contracts.ini import NB_OUTPUTS, LayerContext, ini
from n2d2py.graph import Node, Shape, channels
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.arrays.values import Arrays, Unsupported, onnx

SMALLEST_K = 1e-12
"""Below this k, the divisor is the sum of squares, which may be 0."""


def clip_window(size: int, channels: int) -> int:
    """Return the smallest window with the effect of `size` on so many channels."""
    return min(size, 2 * channels - 1)


@register
class LRN(Op):
    """y[c] = x[c] / (k + alpha * sum of x[i]^2)^beta, i from c - (size-1)/2 to c + size/2, within the channels.

    `alpha` is not divided by `size` (ONNX divides it).
    """

    size: int = 5
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 2.0
    same_bits = True

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(np.prod(output)) * min(self.size, output[1])

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].astype(np.float64)
        channels, before = x.shape[1], (self.size - 1) // 2
        squares, sums = x * x, np.zeros_like(x)
        for step in range(max(-before, 1 - channels), min(self.size - before, channels)):
            first, last = max(0, -step), min(channels, channels - step)
            sums[:, first:last] += squares[:, first + step : last + step]
        base = self.k + self.alpha * sums
        return [(x / power(base, np.float64(self.beta))).astype(inputs[0].dtype)]


@onnx("LRN")
def _from_onnx(a: Arrays) -> None:
    x, node = a.image(), a.node
    size, alpha, bias = int(node.attribute("size", 0)), node.attribute("alpha", 1e-4), node.attribute("bias", 1.0)
    beta = node.attribute("beta", 0.75)
    if size < 1:
        raise Unsupported("its size is below 1")
    if alpha < 0 or bias < SMALLEST_K:
        raise Unsupported(f"alpha={alpha:g} and bias={bias:g} allow a division by 0 or less")
    if len(x.dims) < 2:
        raise Unsupported("its input has no channels")
    if x.image is not None:
        a.bind(a.layer(LRN(clip_window(size, x.dims[1]), alpha / size, beta, bias), x, "normed"))
        return
    squares = a.map("Mul", x, x)
    before, channels = (size - 1) // 2, x.dims[1]
    moved = (
        a.select(squares, {1: [c + step if 0 <= c + step < channels else -1 for c in range(channels)]})
        for step in range(max(-before, 1 - channels), min(size - before, channels))
    )
    scaled = a.map("Mul", reduce(partial(a.map, "Add"), moved), a.const(alpha / size, x))
    base = a.map("Add", scaled, a.const(bias, x))
    a.bind(a.map("Div", x, a.map("Pow", base, a.const(beta, x))))


@ini(
    "LRN",
    NB_OUTPUTS,
    config=(
        Key("N", Kind.UINT, 5, "Number of channels in the window.", minimum=1),
        Key("Alpha", Kind.FLOAT, 1e-4, "Factor of the sum of squares. The sum is not divided by N.", minimum=0),
        Key("Beta", Kind.FLOAT, 0.75, "Exponent of the sum."),
        Key("K", Kind.FLOAT, 2.0, "Constant added to the sum.", minimum=SMALLEST_K),
    ),
    doc="Local response normalization: x / (K + Alpha * sum of x^2)^Beta over N neighboring channels. Floating point only.",
)
def _from_ini(context: LayerContext) -> None:
    values, tensor = context.values, context.concat_inputs()
    size = clip_window(values["N"], context.require_channels(tensor))
    context.add(LRN(size, values["Alpha"], values["Beta"], values["K"]), [tensor])


@onnx_emitter("LRN")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if op.size % 2 == 0:
        raise NoOnnxForm(f"the layer {node.name} normalises over an even number of channels")
    shape = writer.graph.shape(node.inputs[0])
    x = node.inputs[0]
    if len(shape) < 4:
        x = writer.emit("Reshape", [x, writer.constant([0, channels(shape), -1, 1])])
    settings = {"size": op.size, "alpha": float(op.alpha * op.size), "beta": float(op.beta), "bias": float(op.k)}
    if len(shape) == 4:
        writer.emit("LRN", [x], output, **settings)
    else:
        writer.emit("Reshape", [writer.emit("LRN", [x], **settings), writer.constant([0, *shape[1:]])], output)


@cpp("LRN")
def _lower(layer: Layer) -> LayerCode:
    if layer.integer:
        raise layer.no_integers("remove the layer, or export with -nbbits -32")
    op = layer.op
    values = layer.requiring_whole_input().constants("parameters", "double", {"alpha": op.alpha, "beta": op.beta, "k": op.k})
    types = {**layer.planes, "Parameters": values, "Epilogue": epilogue(layer)}
    config = layer.config(f"response normalisation over {op.size} channels", types, {"Window": op.size})
    return layer.code("lrn", layer.call("lrn", config))
