"""The keys that choose the precision of one layer: in its section of the INI, or of the export parameters."""

from __future__ import annotations

from n2d2py.ini.schema import Key, Kind

PRECISION_KEYS = (
    Key(
        "QuantBits",
        Kind.ENUM,
        None,
        "width of the integers that the layer reads and writes in an integer export, instead of that of -nbbits",
        ("8", "16"),
    ),
    Key(
        "QuantWeightBits",
        Kind.ENUM,
        None,
        "width of its weights, instead of that of -wt-bits or -nbbits; fewer than 8 for convolutions and fully connected layers",
        ("2", "3", "4", "5", "6", "7", "8", "16"),
    ),
    Key("Quantize", Kind.BOOL, None, "0: the layer stays in floating point in an integer export"),
)
"""Absent keys mean what the rest of the network does."""
