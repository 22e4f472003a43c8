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
            "real weights of convolutions and fully connected layers are stored in half precision; with -nbbits -16 they always are",
        ),
        Key(
            "RoundBlobs",
            Kind.BOOL,
            False,
            "of networks that come quantized: blobs that layers in floating point read are rounded to the integers of their tensors, at the "
            "price of three layers for each",
        ),
        Key("ModelArray", Kind.BOOL, True, "the files as arrays of C too, for ncnn without a file system"),
    ),
)
