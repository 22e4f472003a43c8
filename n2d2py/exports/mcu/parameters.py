"""The export parameters of CPP_MCU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from n2d2py.exports.cpp.parameters import PARAMETERS as CPP_PARAMETERS
from n2d2py.exports.mcu.boards import CORES, DEFAULT_CORE
from n2d2py.ini.schema import Key, Kind, Schema

_DEFAULTS = {"BufferAlignment": 4}
"""What is better for a microcontroller where CPP has another default."""
_OTHERWISE: dict[str, dict[str, Any]] = {
    "WeightsFormat": {
        "choices": ("auto", "text", "string"),
        "doc": "how weights are written: numbers (text), string literals that compile faster (string), or by size",
    }
}
"""What else is said of a parameter."""
_WITHOUT = ("OpenMP", "RuntimeDispatch", "FuseResidualAdd", "PrepackWeights", "Winograd", "WeightsFile")
"""What there is no use for."""

PARAMETERS = Schema(
    "export parameters of CPP_MCU",
    tuple(
        replace(key, default=_DEFAULTS.get(key.name, key.default), **_OTHERWISE.get(key.name, {}))
        for key in CPP_PARAMETERS.keys
        if key.name not in _WITHOUT
    ),
).extended(
    Key(
        "Core",
        Kind.ENUM,
        DEFAULT_CORE,
        "the core that -test and -compare run the export on, in QEMU, and the default of make's TARGET; the export is for all",
        tuple(core.name for core in CORES),
    ),
    Key("TestVectors", Kind.UINT, 3, "inputs in test/vectors, each with the results of all layers", minimum=1, maximum=999),
    Key(
        "SpeedForFlash",
        Kind.BOOL,
        False,
        "convolutions of 3 x 3 with stride 1 by Winograd on cortex-m4, m7 and m33, where that takes fewer instructions: the same results; "
        "their weights take 3.6 times the flash, and the stack grows",
    ),
    Key(
        "SingleFile",
        Kind.BOOL,
        False,
        "also writes src/<namespace>.hpp: interface, kernels, constants and network in one C++11 file, for any project; and what makes the "
        "folder a library of Arduino and a CMSIS pack",
    ),
    name="export parameters of CPP_MCU",
)
