"""[section] Type=Dropout."""

from __future__ import annotations

from n2d2py.frontend.ini.contract import LayerContext, LayerType
from n2d2py.frontend.ini.inputs import WINDOW_KEYS
from n2d2py.frontend.ini.keys import CONFIGURATION, LAYER, NB_OUTPUTS
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.identity import Dropout

__all__ = ["LAYER_TYPE"]

_SHARE = Key("Dropout", Kind.FLOAT, 0.5, "share of values dropped in training")
_SCHEMA = LAYER.extended(NB_OUTPUTS, *WINDOW_KEYS, _SHARE, name="Dropout", doc="Nothing at inference; removed.")
_CONFIG = CONFIGURATION.extended(_SHARE, name="Dropout configuration")


def _build(context: LayerContext) -> None:
    context.add(Dropout(ratio=context.values["Dropout"]), [context.joined()])


LAYER_TYPE = LayerType("Dropout", _SCHEMA, _CONFIG, _build)
