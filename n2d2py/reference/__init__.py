"""The floating-point reference: a Graph on ONNX Runtime or NumPy, and the user's ONNX file as it is."""

from n2d2py.reference import array_spellings as _arrays  # noqa: F401  (fill the registry)
from n2d2py.reference import resampling as _resampling  # noqa: F401
from n2d2py.reference import spellings as _spellings  # noqa: F401
from n2d2py.reference.engine import FloatEngine, OnnxFileEngine, original_engine
from n2d2py.reference.executor import run_graph
from n2d2py.reference.to_onnx import NoSpelling, register_spelling, to_onnx

__all__ = ["FloatEngine", "NoSpelling", "OnnxFileEngine", "original_engine", "register_spelling", "run_graph", "to_onnx"]
