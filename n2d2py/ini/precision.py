"""Keys of the precision of one layer, in its section of the INI or of the export parameters."""

from __future__ import annotations

from n2d2py.ini.schema import Key, Kind, keys

_TEXTS = """
QuantBits: Bit width of the integers that the layer reads and writes. Overrides -nbbits.
QuantWeightBits: Bit width of the weights. Overrides -wt-bits and -nbbits. Less than 8 for convolutions and fully connected
    layers only.
"""
PRECISION_KEYS = keys(
    _TEXTS,
    Key("QuantBits", Kind.ENUM, None, choices=("8", "16")),
    Key("QuantWeightBits", Kind.ENUM, None, choices=("2", "3", "4", "5", "6", "7", "8", "16")),
    Key("Quantize", Kind.BOOL, None, "0: compute the layer in floating point in an integer export."),
)
"""Missing keys follow the rest of the network."""
