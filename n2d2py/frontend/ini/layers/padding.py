"""[section] Type=Padding."""

from __future__ import annotations

from n2d2py.frontend.ini.contract import LayerContext, LayerType
from n2d2py.frontend.ini.keys import CONFIGURATION, LAYER, NB_OUTPUTS
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.padding import Padding

__all__ = ["LAYER_TYPE"]

_SIDES = ("Top", "Left", "Bottom", "Right")
_SCHEMA = LAYER.extended(
    NB_OUTPUTS,
    *(Key(f"{side}Padding", Kind.INT, doc=f"{side.lower()} zeros; negative crops") for side in _SIDES),
    name="Padding",
    doc="Zeros around the image, or a crop.",
)


def _build(context: LayerContext) -> None:
    context.add(Padding(tuple(context.values[f"{side}Padding"] for side in _SIDES)), [context.joined()])


LAYER_TYPE = LayerType("Padding", _SCHEMA, CONFIGURATION, _build)
