"""Normalisation of each position to length 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.common import normalisation
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.frontend.ini.contract import LayerContext, ini
from n2d2py.frontend.ini.inputs import require_channels
from n2d2py.frontend.ini.keys import LAYER, NB_OUTPUTS
from n2d2py.graph import Node
from n2d2py.graph.shapes import Shape
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.base import Op, register
from n2d2py.reference.contract import OnnxWriter, onnx_emitter

SMALLEST_NORM = 1e-12
"""What is divided by at least, so that a position of zeros stays zero."""


@register
@dataclass(frozen=True)
class Normalize(Op):
    """y = x / max(norm, 1e-12), norm over the channels of each position: "L1" sum |x|, "L2" sqrt(sum x^2)."""

    norm: str
    kind: ClassVar[str] = "Normalize"
    same_bits: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return 2 * int(np.prod(output))

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].astype(np.float64)
        terms = np.abs(x) if self.norm == "L1" else x * x
        size = np.add.accumulate(terms, axis=1)[:, -1:]
        size = size if self.norm == "L1" else np.sqrt(size)
        return [(x / np.maximum(size, SMALLEST_NORM)).astype(inputs[0].dtype)]


_SCHEMA = LAYER.extended(
    NB_OUTPUTS,
    Key("Norm", Kind.ENUM, doc="Norm that becomes 1.", choices=("L1", "L2")),
    name="Normalize",
    doc="Divide each position by its norm over the channels. Floating point only.",
)


@ini("Normalize", _SCHEMA)
def _from_ini(context: LayerContext) -> None:
    tensor = context.joined()
    require_channels(context, tensor)
    context.add(Normalize(context.values["Norm"]), [tensor])


@onnx_emitter("Normalize")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    x = node.inputs[0]
    norm = writer.emit(f"Reduce{node.op.norm}", [x], axes=[1], keepdims=1)
    writer.emit("Div", [x, writer.emit("Max", [norm, writer.constant(SMALLEST_NORM)])], output)


memory_access("Normalize")(whole)


@cpp("Normalize")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of a normalisation to length 1.

    Raises:
        N2D2Error: E702 in an integer network.
    """
    norm = layer.op.norm
    power = 1 if norm == "L1" else 2
    return normalisation(layer, "normalize", f"{norm} normalisation", {"smallest": SMALLEST_NORM}, {"Power": power})
