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
        "doc": "Storage of weights. text: numbers. string: string literals, which compile faster. auto: chosen by size.",
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
        "Core on which -test and -compare run the export in QEMU, and default of TARGET in the Makefile. The export runs on "
        "all cores.",
        tuple(core.name for core in CORES),
    ),
    Key(
        "TestVectors",
        Kind.UINT,
        3,
        "Number of inputs in test/vectors, each with the results of all layers.",
        minimum=1,
        maximum=999,
    ),
    Key(
        "SpeedForFlash",
        Kind.BOOL,
        False,
        "Use Winograd for 3x3 convolutions with stride 1 on cortex-m4, m7 and m33 where it takes fewer instructions. Results "
        "stay exact. Transformed weights take 3.6 times the flash, and the stack grows.",
    ),
    Key(
        "SingleFile",
        Kind.BOOL,
        False,
        "Also write src/<namespace>.hpp with interface, kernels, constants and network in one C++11 file, and the files of "
        "an Arduino library and a CMSIS pack.",
    ),
    name="export parameters of CPP_MCU",
)
