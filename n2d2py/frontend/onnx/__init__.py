"""ONNX files: read, checked, folded and turned into a Graph."""
from n2d2py.frontend.onnx import arrays as _arrays, converters as _converters  # noqa: F401  (they fill the registry)
from n2d2py.frontend.onnx.attach import attach_onnx
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import MAX_OPSET, MIN_OPSET, OnnxInput, OnnxModel, load_onnx
from n2d2py.frontend.onnx.registry import Unsupported, register_converter, supported_operators

__all__ = ["load_onnx", "import_onnx", "attach_onnx", "OnnxModel", "OnnxInput", "MIN_OPSET", "MAX_OPSET",
           "register_converter", "supported_operators", "Unsupported"]
