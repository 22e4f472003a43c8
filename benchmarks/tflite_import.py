"""Compares networks read from .tflite files with LiteRT's reference kernels, layer by layer, as a Markdown table.

    N2D2_DATA=FOLDER N2D2_MODELS=FOLDER/models python benchmarks/tflite_import.py [-test N] [NET.ini | NET_qdq.onnx ...]

By default all networks of tests/networks and their quantized twins NAME_qdq.onnx. A network in floating point is written by the export TFLite
and quantized by TFLite's own quantizer, ai-edge-quantizer (static_wi8_ai8, on the stimuli of calibration), where that is
installed; a QDQ file is written by the export TFLite. Each of our layers is given the reference's integers.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "benchmarks")]

from accuracy import Case, prepare  # noqa: E402
from exports import machine  # noqa: E402
from litert_quantizer import installed, quantized_file  # noqa: E402
from support.litert import agreement  # noqa: E402

import n2d2py  # noqa: E402
from n2d2py import log  # noqa: E402
from n2d2py.exports import ExportRequest, find_target  # noqa: E402

CALIBRATION = 100


def by_export(path: Path, folder: Path) -> Path | None:
    """The .tflite file that our export writes of a quantized ONNX file; None for one that TFLite cannot express."""
    main = import_module("n2d2py.cli").main
    (folder / "params.ini").write_text("IntegerIO = 1\nModelArray = 0\n")
    words = ["-export-parameters", str(folder / "params.ini"), "-o", str(folder), "-db-export", "0", "-quiet"]
    if main([str(path), "-export", "TFLite", *words]):
        return None
    return next(folder.rglob("*.tflite"))


def row(name: str, kind: str, file: Path, case: Case) -> None:
    """A line of the table."""
    found = agreement(file, case.inputs)
    same = f"{100 * found.same / found.elements:.4f} % | {max(found.layers.values())}"
    print(f"| {name} | {kind} | {found.stimuli} | {same} | {found.outputs} | {found.top} |", flush=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-test", type=int, default=100)
    parser.add_argument("networks", nargs="*", type=Path)
    arguments = parser.parse_args()
    log.setup(quiet=True)
    logging.disable(logging.WARNING)
    print(f"{machine()}, ai-edge-litert's BUILTIN_REF\n")
    print("| network | quantized by | stimuli | layer results identical | largest difference | at the outputs | same top-1 |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for path in arguments.networks or sorted((ROOT / "tests" / "networks").glob("*.ini")):
        case = prepare(path, CALIBRATION, arguments.test)
        if case.model is None:
            continue
        with tempfile.TemporaryDirectory() as name:
            if installed():
                graph = n2d2py.quantize(n2d2py.load(case.model), bits=-32).graph
                target, folder = find_target("TFLite"), Path(name)
                prepared = target.prepare(ExportRequest(graph, parameters={"ModelArray": False}))
                if not prepared.problems:
                    target.write(prepared, folder)
                    file = quantized_file(next(folder.glob("*.tflite")), graph.inputs[0], case.calibration, folder)
                    row(path.stem, "ai-edge-quantizer", file, case)
        for twin in sorted(case.model.parent.glob(f"{case.model.stem}_qdq*.onnx")):
            with tempfile.TemporaryDirectory() as name:
                file = by_export(twin, Path(name))
                if file is not None:
                    row(twin.stem, "its QDQ file", file, case)


if __name__ == "__main__":
    main()
