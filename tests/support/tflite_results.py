"""What a .tflite file gives in LiteRT and, translated to ONNX, in ONNX Runtime: two interpreters that others wrote."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.frontend.tflite.model import load_tflite
from support.litert import Reference, channels_first
from support.tflite_files import Small

_FIRST_VERSIONS = {
    "BROADCAST_TO": 2,
    "LOGICAL_NOT": 1,
    "LOGICAL_AND": 1,
    "LOGICAL_OR": 1,
    "CAST": 1,
    "SELECT": 1,
    "SELECT_V2": 1,
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
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    proto = load_tflite(path).proto
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
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


def compare(
    path: Path, given: Sequence[np.ndarray], tolerance: float = 2e-5, step: int = 0, real: bool = False
) -> list[np.ndarray]:
    """Both are the same, in their shapes too; integers `step` apart at most."""
    found, wanted = translated(path, given), litert(path, given, real)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
        if theirs.dtype == np.float32:
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
        else:
            assert np.abs(mine.astype(np.int64) - theirs.astype(np.int64)).max() <= step
    return found
