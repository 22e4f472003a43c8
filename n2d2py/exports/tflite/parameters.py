"""The export parameters of TFLite."""

from __future__ import annotations

from n2d2py.ini.schema import Key, Kind, Schema

PARAMETERS = Schema(
    "export parameters of TFLite",
    (
        Key(
            "IntegerIO",
            Kind.BOOL,
            False,
            "1: inputs and outputs are the quantized integers. 0: they are float and quantized in the model.",
        ),
        Key(
            "Kernels",
            Kind.ENUM,
            "XNNPACK",
            "LiteRT kernels whose arithmetic is simulated, and that -test and -compare run. Reference: the reference "
            "kernels, which TFLite Micro also uses.",
            ("XNNPACK", "Reference"),
        ),
        Key(
            "ModelArray",
            Kind.BOOL,
            True,
            "Also write the file as a C array, with the list of operators for the TFLite Micro resolver.",
        ),
    ),
)
