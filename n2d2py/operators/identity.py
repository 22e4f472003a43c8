"""Layers without effect at inference."""

from __future__ import annotations

import numpy as np

from n2d2py.contracts.cpp import copy, cpp
from n2d2py.contracts.ini import NB_OUTPUTS, WINDOW_KEYS, LayerContext, ini
from n2d2py.contracts.operator import Op, register
from n2d2py.contracts.quant.forming import Moving, MovingAnyIntegers
from n2d2py.contracts.quant.quantizer import quantizer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Node
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import memory_access, same_order


@register
class Identity(Op):
    """y = x."""

    moves_values = True

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0]]


@register
class Dropout(Identity):
    """y = x at inference; `ratio` is the fraction of values dropped in training."""

    ratio: float = 0.5


_RATIO = Key("Dropout", Kind.FLOAT, 0.5, "Fraction of values dropped in training.")


@ini("Dropout", NB_OUTPUTS, *WINDOW_KEYS, _RATIO, config=(_RATIO,), doc="Dropout layer. Removed at inference.")
def _from_ini(context: LayerContext) -> None:
    context.add(Dropout(ratio=context.values["Dropout"]), [context.concat_inputs()])


@ini(
    "TargetBias",
    NB_OUTPUTS,
    Key("Bias", Kind.FLOAT, doc="Margin: added in training to the output of the right class where that is above -Bias."),
    doc="Additive margin of a loss (AM-Softmax). A section [<layer>.Target] names the right class. Removed at inference.",
)
def _target_bias_from_ini(context: LayerContext) -> None:
    context.add(Identity(), [context.concat_inputs()])


@onnx_emitter("Identity", "Dropout")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Identity", node.inputs, output)


memory_access("Identity", "Dropout")(same_order)


quantizer("Identity")(MovingAnyIntegers)
quantizer("Dropout")(Moving)


cpp("Identity", "Dropout")(copy)
