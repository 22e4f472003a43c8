"""[section] Type=Normalize."""

from __future__ import annotations

from n2d2py.frontend.ini.contract import LayerContext, LayerType
from n2d2py.frontend.ini.inputs import require_channels
from n2d2py.frontend.ini.keys import CONFIGURATION, LAYER, NB_OUTPUTS
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.normalize import Normalize

__all__ = ["LAYER_TYPES"]

_NORMALIZE = LAYER.extended(
    NB_OUTPUTS,
    Key("Norm", Kind.ENUM, doc="the norm that becomes 1", choices=("L1", "L2")),
    name="Normalize",
    doc="Each position divided by its norm over the channels; floating point only.",
)


def _normalize(context: LayerContext) -> None:
    tensor = context.joined()
    require_channels(context, tensor)
    context.add(Normalize(context.values["Norm"]), [tensor])


LAYER_TYPES = (LayerType("Normalize", _NORMALIZE, CONFIGURATION, _normalize),)
