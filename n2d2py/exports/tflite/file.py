"""Tensors, buffers and operators of a .tflite file, by the schema of the package ai-edge-litert."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from n2d2py.arithmetic import NumType
from n2d2py.errors import N2D2Error

SIGNATURE = "serving_default"
"""The signature name of TensorFlow's exports."""
Grid = tuple[np.ndarray | np.float32, int] | None
"""Scale and zero point of int8; None for real numbers."""

_VERSIONS = {
    "CONV_2D": 3,
    "DEPTHWISE_CONV_2D": 3,
    "DEPTH_TO_SPACE": 1,
    "FULLY_CONNECTED": 4,
    "RESHAPE": 1,
    "TRANSPOSE_CONV": 3,
    "HARD_SWISH": 1,
}
"""Operator versions with 8-bit integers and per-channel scales (op_version.cc of LiteRT); 2 for others."""
_REAL_VERSIONS = {"TRANSPOSE_CONV": 3, "GATHER": 2, "STRIDED_SLICE": 2}
"""Operator versions for float, and here a bias; 1 for others."""
_CAMEL_CASE = {"BATCH_MATMUL": "BatchMatMul", "PADV2": "PadV2"}
_POOL, _ORDER = "Pool2D", "MaximumMinimum"
_OPTIONS = {"AVERAGE_POOL_2D": _POOL, "MAX_POOL_2D": _POOL, "MAXIMUM": _ORDER, "MINIMUM": _ORDER, "MEAN": "Reducer"}
"""Operators whose option table does not follow from their name."""


def camel_case(code: str) -> str:
    """Return the name of an operator as in TFLite's option tables and in TFLite Micro's resolver: CONV_2D is Conv2D."""
    parts = (part if part[0].isdigit() else part.capitalize() for part in code.split("_"))
    return _CAMEL_CASE.get(code) or "".join(parts)


def need_schema() -> Any:
    """Return the module of the schema. Raise E721 if the package is missing."""
    try:
        return import_module("ai_edge_litert.schema_py_generated")
    except ImportError:
        what = "the package ai-edge-litert, which provides the schema of .tflite files, is not installed"
        raise N2D2Error("E721", what, remedy="pip install n2d2py[litert]") from None


PROBABILITIES = (np.float32(1 / 256), -128)
"""Scale and zero point that SOFTMAX and LOGISTIC require of int8 results."""
SIGNED_UNITS = (np.float32(1 / 128), 0)
"""Scale and zero point that TANH requires of int8 results."""


def int8_grid(kind: NumType) -> tuple[np.float32, int]:
    """Return (scale, zero point) of int8 for an 8-bit type; unsigned integers are shifted by -128. Real numbers are Softmax
    probabilities."""
    if kind.is_float:
        return PROBABILITIES
    return np.float32(kind.scale), kind.zero_point - (0 if kind.signed else 128)


class ModelFile:
    """A model under construction; tensors are identified by their index.

    Attributes:
        codes: the operators, in the order of first use.
        versions: version of each integer operator with all written features; 2 without an entry.
    """

    def __init__(self, schema: Any):
        self.schema = schema
        self.codes: list[str] = []
        self.versions = dict(_VERSIONS)
        self._used: dict[str, int] = {}
        self._operators: list[Any] = []
        self._tensors: list[Any] = []
        self._buffers: list[Any] = [schema.BufferT()]

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        grid: Grid = None,
        values: np.ndarray | None = None,
        axis: int = 0,
    ) -> int:
        """Add a tensor in the file's order of axes; `grid`: scale (one, or one for each index of `axis`) and zero point."""
        tensor = self.schema.TensorT()
        tensor.name, tensor.shape = name, np.array(shape, np.int32)
        tensor.type = getattr(self.schema.TensorType, np.dtype(dtype).name.upper())
        if grid is not None:
            numbers = self.schema.QuantizationParametersT()
            numbers.scale = np.atleast_1d(np.asarray(grid[0], np.float32))
            numbers.zeroPoint = np.full(numbers.scale.shape, grid[1], np.int64)
            numbers.quantizedDimension = axis
            tensor.quantization = numbers
        if values is not None:
            buffer = self.schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(values, dtype).tobytes(), np.uint8)
            tensor.buffer = len(self._buffers)
            self._buffers.append(buffer)
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def constant(self, name: str, values: np.ndarray) -> int:
        """Add an int32 constant without scale."""
        return self.tensor(name, values.shape, np.int32, values=values)

    def operator(self, code: str, inputs: list[int], output: int, options: str | None = None, **fields: Any) -> None:
        """Add an operator; `options`: the name of its option table, "" for none; by default that of its code."""
        if code not in self.codes:
            self.codes.append(code)
        others = (self.schema.TensorType.FLOAT32, self.schema.TensorType.INT32)
        integers = any(self._tensors[one].type not in others for one in [*inputs, output] if one >= 0)
        version = self.versions.get(code, 2) if integers else _REAL_VERSIONS.get(code, 1)
        self._used[code] = max(version, self._used.get(code, 1))
        operator = self.schema.OperatorT()
        operator.opcodeIndex = self.codes.index(code)
        operator.inputs, operator.outputs = np.array(inputs, np.int32), np.array([output], np.int32)
        if options is None:
            name = f"{_OPTIONS.get(code) or camel_case(code)}Options"
            options = name if hasattr(self.schema.BuiltinOptions, name) else ""
        if options:
            operator.builtinOptionsType = getattr(self.schema.BuiltinOptions, options)
            operator.builtinOptions = getattr(self.schema, options + "T")()
            for key, value in fields.items():
                setattr(operator.builtinOptions, key, value)
        self._operators.append(operator)

    def to_bytes(self, name: str, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> bytes:
        """Return the bytes of the file; inputs and outputs are named as in the network, also in the signature."""
        import flatbuffers

        schema = self.schema
        model, graph = schema.ModelT(), schema.SubGraphT()
        graph.name, graph.tensors, graph.operators = name, self._tensors, self._operators
        graph.inputs, graph.outputs = (np.array(list(ports.values()), np.int32) for ports in (inputs, outputs))
        model.version, model.subgraphs, model.buffers, model.operatorCodes = 3, [graph], self._buffers, []
        model.description, model.signatureDefs = "n2d2py", [self._signature(inputs, outputs)]
        for code in self.codes:
            entry = schema.OperatorCodeT()
            number = getattr(schema.BuiltinOperator, code)
            entry.builtinCode, entry.deprecatedBuiltinCode = number, min(number, 127)
            entry.version = self._used[code]
            model.operatorCodes.append(entry)
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def _signature(self, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> Any:
        signature = self.schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = SIGNATURE, 0
        signature.inputs = [self._port(*port) for port in inputs.items()]
        signature.outputs = [self._port(*port) for port in outputs.items()]
        return signature

    def _port(self, name: str, index: int) -> Any:
        port = self.schema.TensorMapT()
        port.name, port.tensorIndex = name, index
        return port
