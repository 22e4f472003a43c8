"""[section] Type=Activation: an activation, and with several inputs their concatenation."""

from __future__ import annotations

from dataclasses import replace

from n2d2py.frontend.ini.contract import LayerContext, LayerType
from n2d2py.frontend.ini.keys import ACTIVATED, CONFIGURATION, NB_OUTPUTS, read_activation
from n2d2py.graph.shapes import channels
from n2d2py.operators.activation import Activation
from n2d2py.operators.identity import Identity

__all__ = ["LAYER_TYPE"]

_TANH = replace(next(key for key in ACTIVATED.keys if key.name == "ActivationFunction"), default="Tanh")
_SCHEMA = ACTIVATED.extended(
    NB_OUTPUTS, _TANH, name="Activation", doc="Activation function (Tanh by default); several inputs are concatenated."
)


def _build(context: LayerContext) -> None:
    tensor = context.joined()
    count = channels(context.graph.shape(tensor))
    if context.values["NbOutputs"] != count:
        raise context.fail(
            "E216",
            f"NbOutputs={context.values['NbOutputs']}, but the input has {count} channels",
            f"set NbOutputs to {count}",
            "NbOutputs",
        )
    function = read_activation(context.values)
    context.add(Identity() if function is None else Activation(function), [tensor])


LAYER_TYPE = LayerType("Activation", _SCHEMA, CONFIGURATION, _build)
