"""Small ONNX models that come quantized, written node by node, and their integers on ONNX Runtime."""

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from support.onnx_models import ModelBuilder, runtime_outputs

MICROSOFT = "com.microsoft"


class Model(ModelBuilder):
    """A model of one input x, a batch of `shape`, and of `outputs`."""

    def __init__(self, shape: tuple[int, ...], seed: int = 0, opset: int = 17):
        super().__init__(seed, opset)
        self.shape, self.outputs = shape, []
        self.dtype: DTypeLike = np.float32

    def inputs(self, count: int) -> np.ndarray:
        """Random numbers; integers below 256 of another type."""
        if self.dtype != np.float32:
            return self.rng.integers(0, 256, (count, *self.shape), self.dtype)
        return self.rng.normal(size=(count, *self.shape)).astype(np.float32)

    def step(self, scale: float, zero: int, dtype: DTypeLike = np.int8) -> tuple[str, str]:
        return self.constant(np.float32(scale)), self.constant(np.array(zero, dtype))

    def quantize(self, x: str, scale: float, zero: int = 0, dtype: DTypeLike = np.int8) -> str:
        return self.add("QuantizeLinear", x, *self.step(scale, zero, dtype))

    def rounded(self, x: str, scale: float, zero: int = 0, dtype: DTypeLike = np.int8) -> str:
        """QuantizeLinear, DequantizeLinear."""
        scale, zero = self.step(scale, zero, dtype)
        return self.add("DequantizeLinear", self.add("QuantizeLinear", x, scale, zero), scale, zero)

    def weights(self, shape, scale, dtype=np.int8, zero: int | None = None, axis: int = 0) -> str:
        """A DequantizeLinear of random integers; `scale` one number, or one for each index of the axis."""
        limits = np.iinfo(dtype)
        stored = self.constant(self.rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype))
        extra = [] if zero is None else [self.constant(np.array(zero, dtype))]
        extra = [self.constant(np.full(np.shape(scale), zero or 0, dtype))] if np.ndim(scale) else extra
        return self.add("DequantizeLinear", stored, self.constant(np.asarray(scale, np.float32)), *extra, axis=axis)

    def bias(self, count: int, scale) -> str:
        values = self.constant(self.rng.integers(-4000, 4000, count).astype(np.int32))
        return self.add("DequantizeLinear", values, self.constant(np.asarray(scale, np.float32)), axis=0)

    def built(self) -> onnx.ModelProto:
        """The model."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        return self.proto({"x": ["N", *self.shape]}, *self.outputs, kind=kind)


def reference(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    """The outputs on ONNX Runtime without graph optimizations."""
    return runtime_outputs(model, x, optimize=False)


def exact(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """The first output by onnx's reference evaluator, everything in float64."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for tensor in wide.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    return ReferenceEvaluator(wide).run(None, {"x": x.astype(np.float64)})[0]
