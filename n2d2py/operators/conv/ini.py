"""[section] Type=Conv."""

from __future__ import annotations

from n2d2py.frontend.ini.contract import LayerContext, ini
from n2d2py.frontend.ini.convolution import CONVOLUTION, CONVOLUTION_CONFIG, read_geometry, read_parameters
from n2d2py.frontend.ini.keys import read_activation, read_window, window_keys
from n2d2py.operators.conv import Conv

_SCHEMA = CONVOLUTION.extended(
    *window_keys("SubSample", 1), name="Conv", doc="Convolution. A single value in KernelDims makes it one-dimensional."
)
_CONFIG = CONVOLUTION_CONFIG.extended(name="Conv configuration")


@ini("Conv", _SCHEMA, _CONFIG)
def _build(context: LayerContext) -> None:
    geometry = read_geometry(context)
    # every n-th output of a convolution of stride s is a convolution of stride s * n
    subsample = read_window(context.values, "SubSample", 1, line=1 if geometry.line else None)
    stride = (geometry.stride[0] * subsample[0], geometry.stride[1] * subsample[1])
    params, groups = read_parameters(context, geometry.kernel)
    context.add(
        Conv(stride, geometry.pads, geometry.dilation, groups), [context.joined()], params, read_activation(context.values)
    )
