"""[section] Type=Deconv."""

from __future__ import annotations

from n2d2py.frontend.ini.contract import LayerContext, ini
from n2d2py.frontend.ini.convolution import CONVOLUTION, CONVOLUTION_CONFIG, read_geometry, read_parameters
from n2d2py.frontend.ini.keys import read_activation
from n2d2py.operators.deconv import Deconv

_SCHEMA = CONVOLUTION.extended(
    name="Deconv", doc="Transposed convolution. Its output size is (input - 1) * stride + kernel - 2 * padding along each axis."
)
_CONFIG = CONVOLUTION_CONFIG.extended(name="Deconv configuration")


@ini("Deconv", _SCHEMA, _CONFIG)
def _build(context: LayerContext) -> None:
    geometry = read_geometry(context)
    params, groups = read_parameters(context, geometry.kernel)
    context.add(
        Deconv(geometry.stride, geometry.pads, geometry.dilation, groups),
        [context.joined()],
        params,
        read_activation(context.values),
    )
