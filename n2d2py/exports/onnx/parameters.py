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
            "version of the ONNX operators, 13 to 23; 0: 17, or 21 where integers of 4 or 16 bits are stored",
            maximum=23,
        ),
        Key(
            "IntegerIO", Kind.BOOL, False, "inputs and outputs are the stored integers; 0: real numbers, quantized in the model"
        ),
        Key(
            "ExactRange",
            Kind.BOOL,
            False,
            "signed bytes are -127 to 127, by a Clip of the integers (QCDQ) for each tensor; 0: -128 to 127, as QuantizeLinear "
            "cuts them; networks that come quantized keep their range",
        ),
        Key(
            "Int4Weights",
            Kind.BOOL,
            False,
            "weights of at most 4 bits are stored as INT4; 0: as INT8, which more runtimes read",
        ),
    ),
)
