"""The export parameters of NCNN."""

from __future__ import annotations

from n2d2py.ini.schema import Key, Kind, Schema

PARAMETERS = Schema(
    "export parameters of NCNN",
    (
        Key(
            "Fp16Storage",
            Kind.BOOL,
            False,
            "Store real weights of convolutions and fully connected layers as float16. Always on with -nbbits -16.",
        ),
        Key(
            "RoundBlobs",
            Kind.BOOL,
            False,
            "For pre-quantized models: round the inputs of float layers to the integers of their tensors. Each rounding "
            "takes three layers.",
        ),
        Key("ModelArray", Kind.BOOL, True, "Also write the files as C arrays, for ncnn without a file system."),
    ),
)
