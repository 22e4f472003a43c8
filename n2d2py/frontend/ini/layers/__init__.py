"""The layer types of the INI, one module each."""

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
from n2d2py.frontend.ini.registry import register_layer

for _module in (conv, deconv, fc, pool, unpool, batchnorm, elemwise, activation, dropout, softmax, padding, resize):
    register_layer(_module.LAYER_TYPE)
for _type in (*normalizations.LAYER_TYPES, *layout.LAYER_TYPES, *values.LAYER_TYPES, *outlined.LAYER_TYPES):
    register_layer(_type)
