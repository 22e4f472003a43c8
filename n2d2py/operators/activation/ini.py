"""[section] Type=Activation: an activation, and with several inputs their concatenation."""

from __future__ import annotations

from dataclasses import replace

from n2d2py.frontend.ini.contract import LayerContext, ini
from n2d2py.frontend.ini.inputs import WINDOW_KEYS, require_channels
from n2d2py.frontend.ini.keys import ACTIVATED, CONFIGURATION, LAYER, NB_OUTPUTS, read_activation
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Clip, FunctionRow, Step
from n2d2py.operators.identity import Identity

_TANH = replace(next(key for key in ACTIVATED.keys if key.name == "ActivationFunction"), default="Tanh")
_SCHEMA = ACTIVATED.extended(
    NB_OUTPUTS, _TANH, name="Activation", doc="Activation function (default: Tanh). Several inputs are concatenated."
)


@ini("Activation", _SCHEMA)
def _build(context: LayerContext) -> None:
    tensor = context.joined()
    require_channels(context, tensor)
    function = read_activation(context.values)
    context.add(Identity() if function is None else Activation(function), [tensor])


OPERATIONS = ("Binary", "BinaryInverted", "Truncate", "ToZero", "ToZeroInverted")

_THRESHOLD = LAYER.extended(
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key("Threshold", Kind.FLOAT, doc="Threshold. Values above it are high."),
    name="Threshold",
    doc="Apply a threshold.",
)

_THRESHOLD_CONFIG = CONFIGURATION.extended(
    Key("Operation", Kind.ENUM, "Binary", "Result for high and low values.", OPERATIONS),
    Key("MaxValue", Kind.FLOAT, 1.0, "Result for high values (BinaryInverted: for low values)."),
    name="Threshold configuration",
)


def threshold_function(operation: str, threshold: float, maximum: float) -> FunctionRow:
    """The function of a Threshold layer or transformation."""
    if operation == "Truncate":
        return Clip(high=threshold)
    below, above = {
        "Binary": (0.0, maximum),
        "BinaryInverted": (maximum, 0.0),
        "ToZero": (0.0, None),
        "ToZeroInverted": (None, 0.0),
    }[operation]
    return Step(threshold, below, above)


@ini("Threshold", _THRESHOLD, _THRESHOLD_CONFIG)
def _threshold(context: LayerContext) -> None:
    values, tensor = context.values, context.joined()
    require_channels(context, tensor)
    context.add(Activation(threshold_function(values["Operation"], values["Threshold"], values["MaxValue"])), [tensor])
