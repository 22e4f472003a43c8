"""[section] Type=LRN and Type=Normalize: normalisations over channels, in floating point."""

from __future__ import annotations

from n2d2py.frontend.ini.common import CONFIGURATION, LAYER, NB_OUTPUTS
from n2d2py.frontend.ini.inputs import require_channels
from n2d2py.frontend.ini.registry import LayerContext, LayerType
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.lrn import LRN, SMALLEST_K, window_within
from n2d2py.operators.normalize import Normalize

__all__ = ["LAYER_TYPES"]

_LRN_CONFIG = CONFIGURATION.extended(
    Key("N", Kind.UINT, 5, "channels of the window", minimum=1),
    Key("Alpha", Kind.FLOAT, 1e-4, "factor of the sum of squares, not divided by N", minimum=0),
    Key("Beta", Kind.FLOAT, 0.75, "exponent"),
    Key("K", Kind.FLOAT, 2.0, "added to the sum", minimum=SMALLEST_K),
    name="LRN configuration",
)
_NORMALIZE = LAYER.extended(
    NB_OUTPUTS,
    Key("Norm", Kind.ENUM, doc="the norm that becomes 1", choices=("L1", "L2")),
    name="Normalize",
    doc="Each position divided by its norm over the channels; floating point only.",
)


def _lrn(context: LayerContext) -> None:
    values, tensor = context.values, context.joined()
    size = window_within(values["N"], require_channels(context, tensor))
    context.add(LRN(size, values["Alpha"], values["Beta"], values["K"]), [tensor])


def _normalize(context: LayerContext) -> None:
    tensor = context.joined()
    require_channels(context, tensor)
    context.add(Normalize(context.values["Norm"]), [tensor])


LAYER_TYPES = (
    LayerType(
        "LRN",
        LAYER.extended(
            NB_OUTPUTS,
            name="LRN",
            doc="Local response normalisation: x / (K + Alpha * sum "
            "of x^2)^Beta over N neighbouring channels; floating point only.",
        ),
        _LRN_CONFIG,
        _lrn,
    ),
    LayerType("Normalize", _NORMALIZE, CONFIGURATION, _normalize),
)
