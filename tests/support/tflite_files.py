"""Files of TFLite built operator by operator, and their results."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.exports.tflite.file import ModelFile, need_schema
from n2d2py.frontend.models import load_model, load_tflite
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph
from support.litert import Reference, channels_first
from support.onnx_models import runtime_session

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


_FIRST_VERSIONS = {
    "BROADCAST_TO": 2,
    "LOGICAL_NOT": 1,
    "LOGICAL_AND": 1,
    "LOGICAL_OR": 1,
    "CAST": 1,
    "SELECT": 1,
    "SELECT_V2": 1,
    "REDUCE_ANY": 1,
    "REDUCE_ALL": 1,
    **dict.fromkeys(("RFFT2D", "COMPLEX_ABS", "REAL", "IMAG"), 1),
}
"""The version of operators, where it is another one than that of a file of integers, or of real numbers."""


def written(m: Small, folder: Path, outputs: int | Sequence[int], others: Mapping[str, int] | None = None) -> Path:
    """The file, whose inputs are x and `others`."""
    m.file._used.update({code: version for code, version in _FIRST_VERSIONS.items() if code in m.file.codes})
    outputs = [outputs] if isinstance(outputs, int) else outputs
    path = folder / "m.tflite"
    ends = {f"output_{number}": index for number, index in enumerate(outputs)}
    path.write_bytes(m.file.to_bytes("main", {"x": m.x, **(others or {})}, ends))
    return path


def kinds(path: Path) -> list[str]:
    """The operators of the translation."""
    return [node.op_type for node in load_tflite(path).proto.graph.node]


def refusal(path: Path) -> str:
    """Why the only operator that is not translated is not, empty where the file is taken."""
    try:
        load_tflite(path)
    except N2D2Error as error:
        (one,) = error.errors
        assert one.line().startswith("N2D2-E310"), one.line()
        return one.line().split(" cannot be imported: ")[-1].split("; replace the operator")[0]
    return ""


def translated(path: Path, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of the translation for arrays in the order of the file, their own order N, C, H, W."""
    proto = load_tflite(path).proto
    session = runtime_session(proto)
    fed = {port.name: channels_first(values) for port, values in zip(session.get_inputs(), given, strict=True)}
    found = session.run(None, fed)
    for port, values in zip(proto.graph.output, found, strict=True):
        assert tuple(size.dim_value for size in port.type.tensor_type.shape.dim) == values.shape
    return found


def litert(path: Path, given: Sequence[np.ndarray], real: bool = False) -> list[np.ndarray]:
    """The outputs of the file for its real inputs, in the order of the translation; `real`: also of operators that the
    reference kernels lack."""
    reference = Reference(path, "BUILTIN_WITHOUT_DEFAULT_DELEGATES" if real else "BUILTIN_REF")
    interpreter = reference.interpreter
    for port, values in zip(reference.inputs, given, strict=True):
        stored = values
        scale, zero = port["quantization"]
        if scale and port["dtype"] != np.float32:
            info = np.iinfo(port["dtype"])
            stored = np.clip(np.rint(values / np.float32(scale)) + zero, info.min, info.max).astype(port["dtype"])
        interpreter.set_tensor(port["index"], stored)
    interpreter.invoke()
    return [channels_first(interpreter.get_tensor(port["index"])) for port in reference.outputs]


def network_outputs(path: Path, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of the imported network. An input that only a Transpose to channels first reads is taken behind it."""
    graph = import_onnx(load_model(path))
    feeds = {}
    for name, values in zip(graph.inputs, given, strict=True):
        shape, first = graph.shape(name)[1:], channels_first(values)
        again = channels_first(first)
        feeds[name] = (again if again.shape[1:] == shape else first).reshape(-1, *shape)
    return list(run_graph(graph, feeds).values())


def compare(
    path: Path, given: Sequence[np.ndarray], tolerance: float = 2e-5, step: int = 0, real: bool = False, network: bool = True
) -> list[np.ndarray]:
    """The translation and, with `network`, the imported network give what LiteRT gives; integers `step` apart at most."""
    found, wanted = translated(path, given), litert(path, given, real)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
        if theirs.dtype == np.float32:
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
        else:
            assert np.abs(mine.astype(np.int64) - theirs.astype(np.int64)).max() <= step
    if network:
        for mine, theirs in zip(network_outputs(path, given), wanted, strict=True):
            np.testing.assert_allclose(mine.reshape(-1), theirs.reshape(-1), rtol=tolerance, atol=tolerance)
    return found
