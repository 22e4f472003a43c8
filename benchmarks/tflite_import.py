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
import tempfile
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from accuracy import Case, prepare
from common import ROOT, header, machine, row
from litert_quantizer import installed, quantized_file
from support.litert import agreement

import n2d2py
from n2d2py import log

CALIBRATION = 100


def by_export(path: Path, folder: Path) -> Path | None:
    """The .tflite file that our export writes of a quantized ONNX file; None for one that TFLite cannot express."""
    main = import_module("n2d2py.cli").main
    (folder / "params.ini").write_text("IntegerIO = 1\nModelArray = 0\n")
    words = ["-export-parameters", str(folder / "params.ini"), "-o", str(folder), "-db-export", "0", "-quiet"]
    if main([str(path), "-export", "TFLite", *words]):
        return None
    return next(folder.rglob("*.tflite"))


def print_row(name: str, kind: str, file: Path, case: Case) -> None:
    """A line of the table."""
    found = agreement(file, case.inputs)
    same = f"{100 * found.same / found.elements:.4f} %"
    row(name, kind, *(f"{one}" for one in (found.stimuli, same, max(found.layers.values()), found.outputs, found.top)))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-test", type=int, default=100)
    parser.add_argument("networks", nargs="*", type=Path)
    arguments = parser.parse_args()
    log.setup(quiet=True)
    logging.disable(logging.WARNING)
    print(f"{machine()}, ai-edge-litert's BUILTIN_REF\n")
    titles = "network|quantized by|stimuli|layer results identical|largest difference|at the outputs|same top-1"
    header(*titles.split("|"), texts=2)
    for path in arguments.networks or sorted((ROOT / "tests" / "networks").glob("*.ini")):
        case = prepare(path, CALIBRATION, arguments.test)
        if case.model is None:
            continue
        with tempfile.TemporaryDirectory() as name:
            if installed():
                graph = n2d2py.quantize(n2d2py.load(case.model), bits=-32).graph
                file = quantized_file(graph, case.calibration, Path(name))
                if file is not None:
                    print_row(path.stem, "ai-edge-quantizer", file, case)
        for twin in sorted(case.model.parent.glob(f"{case.model.stem}_qdq*.onnx")):
            with tempfile.TemporaryDirectory() as name:
                file = by_export(twin, Path(name))
                if file is not None:
                    print_row(twin.stem, "its QDQ file", file, case)


if __name__ == "__main__":
    main()
