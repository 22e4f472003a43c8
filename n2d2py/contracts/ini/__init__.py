"""Contract of INI sections: how they become layers."""

from n2d2py.contracts.ini.keys import ACTIVATED, CONFIGURATION, LAYER, NB_OUTPUTS, WINDOW_KEYS, read_activation
from n2d2py.contracts.ini.layers import LayerContext, ini
from n2d2py.contracts.ini.quantizers import GRIDS, refuse_binary_lsq, require_positive
from n2d2py.contracts.ini.trained import has_quantized_training, refuse_quantized_training
from n2d2py.contracts.ini.weights import WeightStore, open_weights
