"""The layer types of the INI, one module each."""

from n2d2py.frontend.ini.contract import LAYER_TYPES
from n2d2py.frontend.ini.layers import (
    activation,
    batchnorm,
    conv,
    deconv,
    dropout,
    elemwise,
    fc,
    layout,
    normalizations,
    outlined,
    padding,
    pool,
    resize,
    softmax,
    unpool,
    values,
)

for _module in (conv, deconv, fc, pool, unpool, batchnorm, elemwise, activation, dropout, softmax, padding, resize):
    LAYER_TYPES.add(_module.LAYER_TYPE.name, _module.LAYER_TYPE)
for _type in (*normalizations.LAYER_TYPES, *layout.LAYER_TYPES, *values.LAYER_TYPES, *outlined.LAYER_TYPES):
    LAYER_TYPES.add(_type.name, _type)
