"""ONNX files: read, checked, folded and turned into a Graph."""

from n2d2py.frontend.onnx import arrays as _arrays  # noqa: F401  (they fill the registry)
from n2d2py.frontend.onnx import converters as _converters  # noqa: F401
from n2d2py.frontend.onnx.attach import attach_onnx
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import MAX_OPSET, MIN_OPSET, OnnxInput, OnnxModel, load_onnx
from n2d2py.frontend.onnx.registry import Unsupported, register_converter, supported_operators

__all__ = [
    "MAX_OPSET",
    "MIN_OPSET",
    "OnnxInput",
    "OnnxModel",
    "Unsupported",
    "attach_onnx",
    "import_onnx",
    "load_onnx",
    "register_converter",
    "supported_operators",
]
