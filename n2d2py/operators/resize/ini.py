"""[section] Type=Resize."""

from __future__ import annotations

from n2d2py.frontend.ini.contract import LayerContext, ini
from n2d2py.frontend.ini.inputs import as_images, require_channels
from n2d2py.frontend.ini.keys import CONFIGURATION, LAYER, NB_OUTPUTS
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.resize import Resize

_SCHEMA = LAYER.extended(
    NB_OUTPUTS,
    Key("OutputWidth", Kind.UINT, doc="Width of the result.", minimum=1),
    Key("OutputHeight", Kind.UINT, doc="Height of the result.", minimum=1),
    Key(
        "Mode",
        Kind.ENUM,
        doc="NearestNeighbor. Bilinear: half-pixel centers, as OpenCV. BilinearTF: as TensorFlow 1.",
        choices=("Bilinear", "BilinearTF", "NearestNeighbor"),
    ),
    name="Resize",
    doc="Resize feature maps.",
)
_CONFIG = CONFIGURATION.extended(
    Key(
        "AlignCorners",
        Kind.BOOL,
        True,
        "BilinearTF. 1: align the corners of input and output. 0: align the top left edges of their first pixels.",
    ),
    name="Resize configuration",
)


@ini("Resize", _SCHEMA, _CONFIG)
def _build(context: LayerContext) -> None:
    values = context.values
    as_images(context)
    size = (values["OutputHeight"], values["OutputWidth"])
    tensor = context.concat_inputs()
    require_channels(context, tensor)
    if values["Mode"] == "NearestNeighbor":
        op = Resize(size)
    elif values["Mode"] == "Bilinear":
        op = Resize(size, "Bilinear", "HalfPixel")
    else:
        op = Resize(size, "Bilinear", "AlignCorners" if values["AlignCorners"] else "Asymmetric")
    context.add(op, [tensor])
