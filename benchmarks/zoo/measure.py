"""What becomes of one ONNX file: import, floating point beside ONNX Runtime, integers in Python and in C++."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from common import export_words, session
from static_quantization import write_static
from support.onnx_models import original_engine

import n2d2py
from n2d2py import log
from n2d2py.cli import main
from n2d2py.contracts.operator import Op
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, QuantGraph
from n2d2py.operators.quantize import Convert
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph
from n2d2py.stages.fuse import fuse_stage

CALIBRATED, COMPARED = 8, 4
"""Stimuli for calibration; stimuli, other ones, on which integers are compared with floating point."""


@dataclass
class Row:
    """The findings on one file; errors of outputs are relative to the largest magnitude of the output.

    Attributes:
        nodes: nodes of the file.
        refused: lines of the refusal, one for each kind of node.
        python, engine, compiled: largest float32 error of NumPy, of the float engine and of the compiled export.
        spread: of ONNX Runtime on the same file without its optimizations, which is what the order of its sums decides.
        islands, layers: layers of the integer network in floating point, and all of them, conversions left out.
        identical: whether every layer of the compiled integer export is Python's, bit for bit.
        cosine, correlation: of the integer outputs with the float ones (the worst output), and of what differs from
            stimulus to stimulus.
        wide, theirs: the correlation with 16 bits, and that of ONNX Runtime's static quantization (QDQ, int8, MinMax, a
            weight scale for each channel) from the same stimuli.
        failure: an error of a later step.
    """

    network: str
    exporter: str
    nodes: int = 0
    refused: list[str] = field(default_factory=list)
    python: float | None = None
    engine: float | None = None
    spread: float | None = None
    compiled: float | None = None
    islands: list[str] = field(default_factory=list)
    layers: int = 0
    identical: bool | None = None
    first_difference: str = ""
    cosine: float | None = None
    correlation: float | None = None
    wide: float | None = None
    theirs: float | None = None
    failure: str = ""
    seconds: float = 0.0


def images(count: int, size: int, seed: int) -> np.ndarray:
    """Smooth patches under noise (count, 3, size, size), of many brightnesses, around 0."""
    random = np.random.default_rng(seed)
    coarse = random.normal(size=(count, 3, 4, 4)).repeat(size // 4, 2).repeat(size // 4, 3)
    fine = random.normal(size=(count, 3, size, size), scale=0.4)
    return (coarse * random.uniform(0.4, 1.2, (count, 1, 1, 1)) + fine).astype(np.float32)


def measure(path: Path, network: str, exporter: str, size: int, steps: str) -> Row:
    """`steps`: letters of "p" NumPy, "f" the compiled float export, "i" integers in Python, "c" the compiled ones, "w" 16
    bits in Python, "q" ONNX Runtime's quantization."""
    import onnx

    row, start = Row(network, exporter), time.perf_counter()
    row.nodes = len(onnx.load(str(path)).graph.node)
    log.setup(quiet=True)
    try:
        graph = import_onnx(path)
        x = images(COMPARED, size, 1)
        want = list(original_engine(path).run(x[:1]).values())
        row.engine, row.spread = _error(FloatEngine(graph).run(x[:1]), want), _error(_plainly(path, x[:1]), want)
        if "p" in steps:
            row.python = _error(run_graph(graph, {graph.inputs[0]: x[:1]}), want)
        with tempfile.TemporaryDirectory() as folder:
            if "f" in steps:
                row.compiled = _compiled(path, Path(folder), x[:1], want)
            if "i" in steps:
                _integers(path, Path(folder), x, row, "c" in steps)
            if "w" in steps:
                row.wide = _correlation(*_typed(path, Path(folder), x, 16)[:2])
            if "q" in steps:
                row.theirs = _theirs(path, Path(folder), x)
    except ErrorList as errors:
        row.refused = [error.line() for error in errors.errors]
    except N2D2Error as error:
        row.refused = [error.line()]
    except Exception as error:  # whatever goes wrong is a finding
        row.failure = f"{type(error).__name__}: {str(error)[:300]}"
    row.seconds = time.perf_counter() - start
    return row


def _error(found: dict[str, np.ndarray], want: list[np.ndarray]) -> float:
    return max(
        float(np.abs(y.reshape(z.shape).astype(np.float64) - z).max() / max(np.abs(z).max(), 1e-30))
        for y, z in zip(found.values(), want, strict=True)
    )


def _plainly(path: Path, x: np.ndarray) -> dict[str, np.ndarray]:
    run = session(path, threads=2)
    return {str(index): y for index, y in enumerate(run.run(None, {run.get_inputs()[0].name: x}))}


def run_tool(words: list[str]) -> None:
    """Runs the tool quietly. Raises RuntimeError with the end of what it printed when it fails."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = main(words)
    if status:
        raise RuntimeError(f"n2d2py {' '.join(words[1:])}: {printed.getvalue()[-300:]}")


def export_calibrated(path: Path, folder: Path, size: int, bits: int, stored: int) -> list[str]:
    """Exports a file in integers with `stored` stimuli; returns the words of the command."""
    data = folder / "data.npy"
    np.save(data, images(CALIBRATED, size, 2))
    options = f"-nbbits {bits} -calib {CALIBRATED} -calib-data {data} -db-export {stored}"
    words = export_words(path, folder, options)
    run_tool(words)
    return words


def _compiled(path: Path, folder: Path, x: np.ndarray, want: list[np.ndarray]) -> float:
    run_tool(export_words(path, folder, "-nbbits -32 -db-export 0"))
    network = n2d2py.load_export(folder / "export_CPP_float32")
    return _error(_named(network(x)), want)


def _named(found: np.ndarray | tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    return {str(i): y for i, y in enumerate(found if isinstance(found, tuple) else (found,))}


def _typed(path: Path, folder: Path, x: np.ndarray, bits: int) -> tuple[list[np.ndarray], list[np.ndarray], n2d2py.Simulator]:
    """(outputs in floating point, outputs of the integers, the integers) of an export of `bits` bits into `folder`."""
    words = export_calibrated(path, folder, x.shape[-1], bits, 0)
    fused: Graph = fuse_stage(load_network(*read_command(words)), integer=True)[0].graph
    simulator = n2d2py.load_simulator(folder / f"export_CPP_int{bits}")
    return _lines(FloatEngine(fused).run(x)), _lines(_named(simulator(x))), simulator


def _lines(found: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [y.reshape(len(y), -1).astype(np.float64) for y in found.values()]


def _correlation(real: list[np.ndarray], got: list[np.ndarray]) -> float:
    return min(_cosine(y - y.mean(0), z - z.mean(0)) for y, z in zip(real, got, strict=True))


def _theirs(path: Path, folder: Path, x: np.ndarray) -> float:
    made = folder / "quantized.onnx"
    static_twin(path, made, x.shape[-1])
    return _correlation(_lines(original_engine(path).run(x)), _lines(original_engine(made).run(x)))


def static_twin(path: Path, made: Path, size: int) -> None:
    """Writes what onnxruntime.quantization makes of `path` with the stimuli of the calibration."""
    write_static(path, made, images(CALIBRATED, size, 2), activations="QInt8")


def _integers(path: Path, folder: Path, x: np.ndarray, row: Row, with_cpp: bool) -> None:
    real, got, simulator = _typed(path, folder, x, 8)
    typed: QuantGraph = simulator.graph
    own = [node for node in typed.nodes if not isinstance(node.op, Convert)]
    row.layers = len(own)
    row.islands = sorted({_label(node.op) for node in own if typed.type(node.output).is_float})
    row.cosine, row.correlation = min(_cosine(y, z) for y, z in zip(real, got, strict=True)), _correlation(real, got)
    if with_cpp:
        row.first_difference = first_difference(folder / "export_CPP_int8", simulator, x[:2])
        row.identical = not row.first_difference


def first_difference(built: Path, simulator: n2d2py.Simulator, x: np.ndarray) -> str:
    """The first layer whose compiled integers are not Python's; empty where all are."""
    compiled = n2d2py.load_export(built).layers(x)
    for name, y in simulator.layers(x).items():
        found = compiled.get(name)
        if found is not None and not np.array_equal(y.reshape(found.shape), found, equal_nan=y.dtype.kind == "f"):
            return name
    return ""


def _label(op: Op) -> str:
    """Such as ArrayMap Add."""
    function = getattr(op, "function", "")
    return f"{op.kind} {getattr(function, 'kind', function)}".strip()


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float((a * b).sum() / size) if size else float(np.array_equal(a, b))
