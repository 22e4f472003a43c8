"""Declarations that most operators need in their files."""

from n2d2py.contracts.operator import Op, OpNode, WeightedOp, register
from n2d2py.contracts.reference import NoOnnxForm, OnnxWriter, onnx_emitter
from n2d2py.contracts.windows import Pads, output_extent, pad

__all__ = ["NoOnnxForm", "OnnxWriter", "Op", "OpNode", "Pads", "WeightedOp", "onnx_emitter", "output_extent", "pad", "register"]
