"""The export parameters of TFLite."""

from __future__ import annotations

from n2d2py.ini.schema import Key, Kind, Schema

PARAMETERS = Schema(
    "export parameters of TFLite",
    (
        Key(
            "IntegerIO", Kind.BOOL, False, "inputs and outputs are the stored integers; 0: real numbers, quantized in the model"
        ),
        Key(
            "Kernels",
            Kind.ENUM,
            "XNNPACK",
            "kernels of LiteRT whose arithmetic is simulated, and which -test and -compare run; Reference: the reference kernels, which "
            "TFLite Micro has too",
            ("XNNPACK", "Reference"),
        ),
        Key("ModelArray", Kind.BOOL, True, "the file as an array of C too, and the operators that TFLite Micro must resolve"),
    ),
)
