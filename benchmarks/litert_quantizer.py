"""The integers of TFLite's own quantizer, ai-edge-quantizer: int8 activations, int8 weights by output channel, MinMax.

It reads the export TFLite in floating point, calibrates on the same stimuli, and LiteRT runs what it writes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.exports import ExportRequest, find_target
from n2d2py.exports.tflite.file import SIGNATURE
from n2d2py.exports.tflite.target import open_model, real_numbers
from n2d2py.graph import QuantGraph


def installed() -> bool:
    """Whether the quantizer is there."""
    return find_spec("ai_edge_quantizer") is not None


def by_their_quantizer(graph: QuantGraph, stimuli: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    """The real results (N, elements) of the first output for `x`, by the integers of the quantizer; None for a network that TFLite cannot
    express.

    Args:
        graph: the network in floating point.
        stimuli, x: what calibrates and what runs, (N, C, H, W), real numbers.
    """
    with tempfile.TemporaryDirectory() as name:
        path = quantized_file(graph, stimuli, Path(name))
        if path is None:
            return None
        run = open_model(path, "XNNPACK")
        (entry,), (end, *_) = run.get_input_details(), run.get_output_details()
        results = []
        for one in _ordered(x):
            run.set_tensor(entry["index"], _stored(one, entry))
            run.invoke()
            values = run.get_tensor(end["index"])
            values = real_numbers(values, end["quantization"]) if values.dtype == np.int8 else values
            results.append((values.transpose(0, 3, 1, 2) if values.ndim == 4 else values).reshape(1, -1).copy())
    return np.concatenate(results)


def quantized_file(graph: QuantGraph, stimuli: np.ndarray, folder: Path) -> Path | None:
    """The file in `folder` that the quantizer makes of a network in floating point; None for one that TFLite cannot express."""
    target = find_target("TFLite")
    prepared = target.prepare(ExportRequest(graph, parameters={"ModelArray": False}))
    if prepared.problems:
        return None
    target.write(prepared, folder)
    (path,) = folder.glob("*.tflite")
    quantizer, recipe = import_module("ai_edge_quantizer.quantizer"), import_module("ai_edge_quantizer.recipe")
    made = quantizer.Quantizer(path, recipe.static_wi8_ai8())
    feed = {SIGNATURE: [{graph.inputs[0]: one} for one in _ordered(stimuli)]}
    found = made.quantize(made.calibrate(feed, num_threads=1), enable_progress_report=False)
    (folder / "theirs.tflite").write_bytes(bytes(found.quantized_model))
    return folder / "theirs.tflite"


def _ordered(x: np.ndarray) -> Iterator[np.ndarray]:
    """The stimuli one by one, channels last."""
    for one in x.astype(np.float32):
        yield (one.transpose(1, 2, 0) if one.ndim == 3 else one)[None]


def _stored(values: np.ndarray, port: dict[str, Any]) -> np.ndarray:
    """Real numbers in the type of a port."""
    if port["dtype"] == np.float32:
        return values
    scale, zero = port["quantization"]
    return np.clip(np.rint(values / scale) + zero, -128, 127).astype(np.int8)
