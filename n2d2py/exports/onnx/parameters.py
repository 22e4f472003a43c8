"""The export parameters of ONNX."""

from dataclasses import dataclass

from n2d2py.ini import ExportParameters, Kind, parameter

_TEXTS = """
Opset: Version of the ONNX operator set, 13 to 23. 0: 17, or 21 if 4-bit or 16-bit integers are stored.
IntegerIO: 1: inputs and outputs are the quantized integers. 0: they are float and quantized in the model.
ExactRange: 1: limit int8 to -127 to 127 with a Clip (QCDQ) of each tensor. 0: -128 to 127, as in QuantizeLinear.
    Pre-quantized models keep their range.
Int4Weights: 1: store weights of up to 4 bits as INT4. 0: store them as INT8, which more runtimes support.
"""


@dataclass(frozen=True)
class OnnxParameters(ExportParameters, texts=_TEXTS):
    """The export parameters of ONNX."""

    opset: int = parameter("Opset", Kind.UINT, 0, maximum=23)
    integer_io: bool = parameter("IntegerIO", Kind.BOOL, False)
    exact_range: bool = parameter("ExactRange", Kind.BOOL, False)
    int4_weights: bool = parameter("Int4Weights", Kind.BOOL, False)
