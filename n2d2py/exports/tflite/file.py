"""Tensors, buffers and operators of a .tflite file, by the schema of the package ai-edge-litert."""

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

_VERSIONS = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "TRANSPOSE_CONV": 3, "FULLY_CONNECTED": 4}
_VERSIONS |= {"DEPTH_TO_SPACE": 1, "HARD_SWISH": 1, "RESHAPE": 1}
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


def as_int8(values: np.ndarray, kind: NumType) -> np.ndarray:
    """Return stored values of an 8-bit type as int8."""
    return (values.astype(np.int16) - (0 if kind.signed else 128)).astype(np.int8)


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
        kind = getattr(self.schema.TensorType, np.dtype(dtype).name.upper())
        tensor = self._table("Tensor", name=name, shape=np.array(shape, np.int32), type=kind)
        if grid is not None:
            scale = np.atleast_1d(np.asarray(grid[0], np.float32))
            fields = {"scale": scale, "zeroPoint": np.full(scale.shape, grid[1], np.int64), "quantizedDimension": axis}
            tensor.quantization = self._table("QuantizationParameters", **fields)
        if values is not None:
            data = np.frombuffer(np.ascontiguousarray(values, dtype).tobytes(), np.uint8)
            tensor.buffer = len(self._buffers)
            self._buffers.append(self._table("Buffer", data=data))
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
        ports = {"inputs": np.array(inputs, np.int32), "outputs": np.array([output], np.int32)}
        operator = self._table("Operator", opcodeIndex=self.codes.index(code), **ports)
        if options is None:
            name = f"{_OPTIONS.get(code) or camel_case(code)}Options"
            options = name if hasattr(self.schema.BuiltinOptions, name) else ""
        if options:
            operator.builtinOptionsType = getattr(self.schema.BuiltinOptions, options)
            operator.builtinOptions = self._table(options, **fields)
        self._operators.append(operator)

    def to_bytes(self, name: str, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> bytes:
        """Return the bytes of the file; inputs and outputs are named as in the network, also in the signature."""
        indexes = {key: np.array(list(ports.values()), np.int32) for key, ports in (("inputs", inputs), ("outputs", outputs))}
        graph = self._table("SubGraph", name=name, tensors=self._tensors, operators=self._operators, **indexes)
        named = {key: self._ports(ports) for key, ports in (("inputs", inputs), ("outputs", outputs))}
        signature = self._table("SignatureDef", signatureKey=SIGNATURE, subgraphIndex=0, **named)
        codes = []
        for code in self.codes:
            number = getattr(self.schema.BuiltinOperator, code)
            numbers = {"builtinCode": number, "deprecatedBuiltinCode": min(number, 127), "version": self._used[code]}
            codes.append(self._table("OperatorCode", **numbers))
        parts = {"subgraphs": [graph], "buffers": self._buffers, "operatorCodes": codes, "signatureDefs": [signature]}
        return packed(self._table("Model", version=3, description="n2d2py", **parts))

    def _ports(self, ports: Mapping[str, int]) -> list[Any]:
        return [self._table("TensorMap", name=name, tensorIndex=index) for name, index in ports.items()]

    def _table(self, kind: str, **fields: Any) -> Any:
        """Return a table of the schema with these fields."""
        table = getattr(self.schema, f"{kind}T")()
        vars(table).update(fields)
        return table


def packed(model: Any) -> bytes:
    """Return the bytes of a file from its table."""
    import flatbuffers

    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
