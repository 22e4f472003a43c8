"""[section] Type=Softmax."""

from __future__ import annotations

from n2d2py.frontend.ini.contract import LayerContext, LayerType
from n2d2py.frontend.ini.inputs import WINDOW_KEYS
from n2d2py.frontend.ini.keys import CONFIGURATION, LAYER, NB_OUTPUTS
from n2d2py.graph.shapes import channels
from n2d2py.ini.ignored import TRAINING
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.softmax import Softmax

__all__ = ["LAYER_TYPE"]

_SCHEMA = LAYER.extended(
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key("WithLoss", Kind.BOOL, False, "training", ignored=TRAINING),
    Key("GroupSize", Kind.UINT, 0, "channels normalised together; 0 for all"),
    name="Softmax",
    doc="Softmax over the channels of each position.",
)


def _build(context: LayerContext) -> None:
    tensor = context.joined()
    count, size = channels(context.graph.shape(tensor)), context.values["GroupSize"]
    if context.values["NbOutputs"] != count:
        raise context.fail(
            "E216",
            f"NbOutputs={context.values['NbOutputs']}, but the input has {count} channels",
            f"set NbOutputs to {count}",
            "NbOutputs",
        )
    if size and count % size:
        raise context.fail(
            "E218",
            f"GroupSize={size} does not divide the {count} channels",
            "choose a divisor of the number of channels",
            "GroupSize",
        )
    context.add(Softmax(0 if size == count else size), [tensor])


LAYER_TYPE = LayerType("Softmax", _SCHEMA, CONFIGURATION, _build)
