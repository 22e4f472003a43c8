"""The export parameters of ONNX."""

from __future__ import annotations

from n2d2py.ini.schema import Key, Kind, Schema

PARAMETERS = Schema(
    "export parameters of ONNX",
    (
        Key(
            "Opset",
            Kind.UINT,
            0,
            "Version of the ONNX operator set, 13 to 23. 0: 17, or 21 if 4-bit or 16-bit integers are stored.",
            maximum=23,
        ),
        Key(
            "IntegerIO",
            Kind.BOOL,
            False,
            "1: inputs and outputs are the quantized integers. 0: they are float and quantized in the model.",
        ),
        Key(
            "ExactRange",
            Kind.BOOL,
            False,
            "1: limit int8 to -127 to 127 with a Clip (QCDQ) of each tensor. 0: -128 to 127, as in QuantizeLinear. "
            "Pre-quantized models keep their range.",
        ),
        Key(
            "Int4Weights",
            Kind.BOOL,
            False,
            "1: store weights of up to 4 bits as INT4. 0: store them as INT8, which more runtimes support.",
        ),
    ),
)
