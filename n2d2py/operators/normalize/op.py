"""Normalization along rows of a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic.attention import normalized
from n2d2py.arithmetic.functions import lane_sum
from n2d2py.errors import N2D2Error
from n2d2py.frontend.ini.contract import LayerContext, ini
from n2d2py.frontend.ini.inputs import require_channels
from n2d2py.frontend.ini.keys import LAYER, NB_OUTPUTS
from n2d2py.graph import Node
from n2d2py.graph.forms import Normalized
from n2d2py.graph.shapes import Shape, axis_along, elements, in_memory_order, of_memory_order
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import memory_access, rows
from n2d2py.operators.arrays.emitting import emit_constant, emit_flat, emit_reshape
from n2d2py.operators.base import Op, register
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter

SMALLEST_NORM = 1e-12
"""Smallest divisor; rows of zeros stay zero."""


@register
@dataclass(frozen=True)
class Normalize(Op):
    """(x - mean) / (norm + added) of each row of `size` contiguous elements; mean 0 without `centred`.

    Images are channels-last in memory, which makes the channels of a position a row. The norm of the differences d is
    sqrt(mean(d^2) + epsilon) or, with `power` 1, mean(|d|); with `summed`, the sum replaces the mean. `part`: "" for the
    result, "mean" or "inverse" for only the mean or the inverse divisor of each row, (1, rows). Parameters "gain" and "shift"
    (size), both or neither, multiply and add to the result, each step rounded to the type of x.
    """

    size: int
    epsilon: float
    centred: bool = True
    part: str = ""
    added: float = 0.0
    power: int = 2
    summed: bool = False
    kind: ClassVar[str] = "Normalize"
    same_bits: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        count = elements(inputs[0])
        if count % self.size:
            raise N2D2Error(
                "E208",
                f"{self.kind} '{node.name}' requires rows of {self.size} elements, but its input has {count} elements",
                where=node.location,
                remedy="correct the layer before it",
            )
        return [(inputs[0][0], count // self.size) if self.part else inputs[0]]

    def channel_numbers(self, shape: Shape) -> np.ndarray:
        """Return the index in its row of each element of a tensor of `shape`."""
        return of_memory_order(np.tile(np.arange(self.size), elements(shape) // self.size)[None], shape)

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return 2 * elements(inputs[0])

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = in_memory_order(inputs[0]).reshape(len(inputs[0]), -1, self.size)
        mean = lane_sum(x) / self.size if self.centred else np.zeros(x.shape[:2])
        # differences are rounded to the type of x, which makes their squares exact in float64
        away = (x.astype(np.float64) - mean[..., None]).astype(x.dtype).astype(np.float64)
        size = lane_sum(np.square(away) if self.power == 2 else np.abs(away)) / (1 if self.summed else self.size)
        inverse = 1.0 / ((np.sqrt(size + self.epsilon) if self.power == 2 else size) + self.added)
        if self.part:
            return [(mean if self.part == "mean" else inverse).astype(x.dtype)]
        result = (away * inverse[..., None]).astype(x.dtype)
        if "gain" in node.params:
            result = result * node.params["gain"].astype(x.dtype) + node.params["shift"].astype(x.dtype)
        return [of_memory_order(result, inputs[0].shape)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Compute as specified in `arithmetic/attention.py`."""
        form, kind = node.form_as(Normalized), graph.type(node.inputs[0])
        away = in_memory_order(inputs[0]).reshape(len(inputs[0]), -1, self.size).astype(np.int64) - kind.zero_point
        rows = normalized(away, self.centred, int(form.epsilon[0]), int(form.fraction[0]))
        acc = rows * form.gains.astype(np.int64) + form.offsets.astype(np.int64)
        return [of_memory_order(node.requantize(acc, graph.type(node.output)), inputs[0].shape)]


def lp_normalize(size: int, power: int = 2) -> Normalize:
    """Return the operator that scales rows of `size` elements to an L1 or L2 norm of 1."""
    epsilon, added = (0.0, SMALLEST_NORM) if power == 1 else (SMALLEST_NORM**2, 0.0)
    return Normalize(size, epsilon, False, added=added, power=power, summed=True)


memory_access("Normalize")(rows)


# ---- INI files ---------------------------------------------------------------------------------
SMALLEST_SQUARE = 1e-6
"""N2D2 adds it to a sum of squares before the root."""
_SCHEMA = LAYER.extended(
    NB_OUTPUTS,
    Key("Norm", Kind.ENUM, doc="Norm that becomes 1.", choices=("L1", "L2")),
    name="Normalize",
    doc="Divide each position by its norm over the channels. L1: floating point only.",
)


@ini("Normalize", _SCHEMA)
def _from_ini(context: LayerContext) -> None:
    tensor = context.concat_inputs()
    size, is_l1 = require_channels(context, tensor), context.values["Norm"] == "L1"
    context.add(lp_normalize(size, 1) if is_l1 else Normalize(size, SMALLEST_SQUARE, False, summed=True), [tensor])


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("Normalize")
def _norm(writer: OnnxWriter, node: Node, output: str) -> None:
    op, emit, shape = node.op, writer.emit, writer.graph.shape(node.output)
    if op.part:
        raise NoOnnxForm(f"the {op.part} of a normalisation has no ONNX form")
    channels = axis_along(shape, op.size, 1) == 1
    x = node.inputs[0] if channels else emit_reshape(writer, node.inputs[0], (-1, op.size))
    axis, rank = (1, len(shape)) if channels else (2, 3)
    affine = [node.params[role] for role in ("gain", "shift") if role in node.params]
    if op.centred and not op.added and op.power == 2 and not op.summed and axis == rank - 1:
        affine = [emit_constant(writer, values, "") for values in affine or [np.ones(op.size)]]
        made = emit("LayerNormalization", [x, *affine], axis=-1, epsilon=op.epsilon)
    else:
        away = emit("Sub", [x, emit("ReduceMean", [x], axes=[axis])]) if op.centred else x
        if op.summed:
            divisor = emit("ReduceL1" if op.power == 1 else "ReduceSumSquare", [away], axes=[axis])
        else:
            powers = emit("Abs", [away]) if op.power == 1 else emit("Mul", [away, away])
            divisor = emit("ReduceMean", [powers], axes=[axis])
        if op.power == 2:
            divisor = emit("Sqrt", [emit("Add", [divisor, writer.constant(op.epsilon)])])
        if op.added:
            divisor = emit("Add", [divisor, writer.constant(op.added)])
        made, placed = emit("Div", [away, divisor]), (-1, *(1,) * (rank - axis - 1))
        for function, values in zip(("Mul", "Add"), affine, strict=False):
            if function == "Mul" or values.any():
                made = emit(function, [made, emit_constant(writer, values.reshape(placed), "")])
    if not channels:
        emit_flat(writer, made, output)
    else:
        writer.nodes[-1].output[0] = output
