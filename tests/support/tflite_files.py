"""Small .tflite files of one operator or a few, written with LiteRT's schema."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.exports.tflite.file import ModelFile, need_schema

IN, OUT = (0.0513, 3), (0.0397, -7)
"""Grids of int8 (scale, zero point)."""


class Small:
    """A file with one input `x`, being made; tensors are known by their index."""

    def __init__(
        self, shape: tuple[int, ...] = (1, 8, 6, 4), grid: tuple[float, int] | None = IN, dtype=np.int8, seed: int = 1
    ):
        self.file = ModelFile(need_schema())
        self.file.versions.update(dict.fromkeys(("RELU_N1_TO_1", "SQUEEZE", "EXPAND_DIMS", "DEPTH_TO_SPACE", "PRELU"), 1))
        self.schema = self.file.schema
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype
        self.x = self.tensor("x", shape, grid, dtype)

    def tensor(self, name: str, shape, grid=None, dtype=np.int8, values=None, axis: int = 0) -> int:
        """A tensor of integers in a grid, or of float32 without."""
        dtype = dtype if grid is not None else (np.float32 if values is None else values.dtype)
        given = None if grid is None else (np.asarray(grid[0], np.float32), grid[1])
        return self.file.tensor(name, tuple(shape), dtype, given, values, axis)

    def constant(self, name: str, values) -> int:
        """A constant of int32."""
        return self.file.constant(name, np.array(values, np.int32))

    def weights(self, shape, outputs: int, axis: int | None, dtype=np.int8, zero: int = 0) -> tuple[int, np.ndarray]:
        """(weights, their scales): by output along `axis`, or one for all; of 8 bits next to activations of 16."""
        dtype = np.int8 if self.dtype == np.int16 else dtype
        scales = self.rng.uniform(0.002, 0.01, outputs if axis is not None else 1).astype(np.float32)
        low, high = (-127, 128) if dtype == np.int8 else (0, 256)
        values = self.rng.integers(low, high, shape).astype(dtype)
        return self.tensor("w", shape, (scales, zero), dtype, values, axis or 0), scales

    def bias(self, scales: np.ndarray, outputs: int, source: float) -> int:
        """A bias in the scale of the sums: int32, int64 next to activations of 16 bits."""
        most, dtype = (3 * 10**5, np.int64) if self.dtype == np.int16 else (3000, np.int32)
        values = self.rng.integers(-most, most, outputs).astype(dtype)
        return self.tensor("b", (outputs,), (scales * np.float32(source), 0), dtype, values)

    def add(
        self, code: str, inputs: list[int], shape, grid=OUT, options: str = "", dtype=np.int8, name: str = "", **fields: Any
    ):
        """An operator with one result; its tensor."""
        made = self.tensor(name or f"t{len(self.file._tensors)}", shape, grid, dtype)
        self.file.operator(code, inputs, made, options, **fields)
        return made

    def write(self, folder: Path, outputs: list[int] | int, name: str = "m.tflite") -> Path:
        """The file."""
        path = folder / name
        outputs = [outputs] if isinstance(outputs, int) else outputs
        ends = {f"output_{number}": index for number, index in enumerate(outputs)}
        path.write_bytes(self.file.to_bytes("main", {"x": self.x}, ends))
        return path


def rewritten(path: Path, change: Callable[[Any, Any], None], to: Path | None = None) -> Path:
    """A file that is changed: `change` takes the schema and the model; written to `to`, or in its place."""
    import flatbuffers

    schema = need_schema()
    model = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    change(schema, model)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    (to or path).write_bytes(bytes(builder.Output()))
    return to or path


def joined(main: Path, others: list[Path], to: Path) -> Path:
    """A file of several graphs: that of `main`, and those of `others`, which it runs, as graphs 1, 2, ..."""

    def join(schema, model) -> None:
        for other in others:
            more = schema.ModelT.InitFromPackedBuf(other.read_bytes(), 0)
            graph = more.subgraphs[0]
            for tensor in graph.tensors:
                tensor.buffer += len(model.buffers)
            for operator in graph.operators:
                operator.opcodeIndex += len(model.operatorCodes)
            model.buffers += more.buffers
            model.operatorCodes += more.operatorCodes
            model.subgraphs.append(graph)

    return rewritten(main, join, to)
