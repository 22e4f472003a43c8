"""An int8 network of ncnn from a float32 one by the largest magnitudes: what a user of ncnn gets without this tool's calibration.

ncnn2table, which finds scales by KL divergence, ACIQ or EQ, is not part of ncnn's Python package, so none of these is measured here. The
table here is the plain one: 127 / largest |weight| of each output, 127 / largest |value| that a layer read of the stimuli that calibrate.
`benchmarks/runtimes.py` runs it beside the export NCNN.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from n2d2py.exports import ExportRequest, StoredStimuli, find_target
from n2d2py.graph import QuantGraph
from n2d2py_ncnn.file import NcnnLayer, NcnnNetwork, real_numbers, tagged_weights
from n2d2py_ncnn.target import NcnnRunner

QUANTIZED = ("Convolution", "ConvolutionDepthWise", "InnerProduct")
BATCH = 10


def by_largest(typed: QuantGraph, calibration: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    """Outputs (n, ...) for the stimuli x of a float32 network in int8; None for one that ncnn cannot express."""
    target = find_target("NCNN")
    stimuli = StoredStimuli((x.astype(np.float32),), (np.zeros((len(x), 1), np.int32),))
    prepared = target.prepare(ExportRequest(typed, stimuli, parameters={"ModelArray": False}))
    if prepared.problems:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder, details = Path(name), target.details(prepared)
        target.write(prepared, folder)
        largest = _largest(NcnnRunner(folder, details), details, calibration)
        network = prepared.result.network
        made = NcnnNetwork(tuple(_quantized(layer, largest) for layer in network.layers))
        (folder / details["param"]).write_text(made.text(), encoding="utf-8")
        (folder / details["bin"]).write_bytes(made.weights())
        return NcnnRunner(folder, details).outputs(typed, len(x))[typed.outputs[0]]


def _largest(run: NcnnRunner, details: dict, calibration: np.ndarray) -> dict[str, float]:
    """The largest magnitude by blob, and by what splits it."""
    found: dict[str, float] = {details["blobs"][name]: float(np.abs(calibration).max()) for name in details["inputs"]}
    network = run.network()
    for start in range(0, len(calibration), BATCH):
        for name, values in network.stored_layers([calibration[start : start + BATCH].astype(np.float32)]).items():
            blob = details["blobs"][name]
            found[blob] = max(found.get(blob, 0.0), float(np.abs(values).max()))
    return found


def _quantized(layer: NcnnLayer, largest: dict[str, float]) -> NcnnLayer:
    """The layer with int8 weights and scales, if it has such a form."""
    if layer.type not in QUANTIZED:
        return layer
    weights = np.frombuffer(layer.weights[0][4:], "<f4").reshape(int(layer.parameters[0]), -1)  # type: ignore[arg-type]
    if int(layer.parameters.get(7, 1)) not in (1, len(weights)):  # type: ignore[arg-type]
        return layer
    scales = 127 / np.maximum(np.abs(weights).max(axis=1), 1e-12)
    blob = layer.inputs[0].split("_splitncnn_")[0]
    stored = np.clip(np.rint(weights * scales[:, None]), -127, 127).astype(np.int8)
    parts = (tagged_weights(stored, "i1"), layer.weights[1], real_numbers(scales), real_numbers([127 / largest[blob]]))
    return replace(layer, parameters=dict(sorted({**layer.parameters, 8: 1}.items())), weights=parts)
