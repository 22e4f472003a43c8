"""Calibration tables in the form of TensorRT's and NVIDIA's compiler: {layer: {scale, min, max, offset}}."""

from __future__ import annotations

import json
from pathlib import Path

from n2d2py.errors import N2D2Error, suggest
from n2d2py.files import read_regular
from n2d2py.graph import QuantGraph
from n2d2py_nvdla.export.hardware import Lowered

_LARGEST = 3.4e38
"""Scales are stored as float32."""


def given_scales(path: str, graph: QuantGraph) -> dict[str, float]:
    """Return the scales by tensor from a table with one entry for each layer or input that is to have another than the
    calibrated one.

    Raises:
        N2D2Error: E718 for a file that is no such table, or names a layer that the network does not have.
    """
    try:
        table = json.loads(read_regular(Path(path)).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise N2D2Error(
            "E718",
            f"the calibration table cannot be read: {getattr(error, 'strerror', None) or error}",
            where=path,
            remedy="give a JSON file of {layer: {scale, min, max, offset}}",
        ) from None
    tensors = {node.name: node.output for node in graph.nodes if len(node.outputs) == 1}
    tensors.update({name: name for name in graph.inputs})
    found = {}
    for layer, entry in table.items() if isinstance(table, dict) else [("", None)]:
        if (
            not isinstance(entry, dict)
            or not isinstance(entry.get("scale"), (int, float))
            or isinstance(entry["scale"], bool)
            or not 0 < entry["scale"] < _LARGEST
            or entry.get("offset", 0) != 0
        ):
            raise N2D2Error(
                "E718",
                f"the entry '{layer}' has no positive scale, or an offset",
                where=path,
                remedy='write {"scale": 0.01, "min": -1.27, "max": 1.27, "offset": 0}',
            )
        if layer not in tensors:
            raise N2D2Error(
                "E718", f"the network has no layer '{layer}'", where=path, remedy=suggest(layer, tensors, "remove the entry")
            )
        found[tensors[layer]] = float(entry["scale"])
    return found


def calibration_json(lowered: Lowered) -> dict[str, dict[str, float]]:
    """Return the table of a compiled int8 network: the integer that stands for 1 at the inputs and after each hardware layer."""
    scales = {name: scale for name, (_, scale) in lowered.inputs.items()}
    scales.update({layer.name: layer.scale for layer in lowered.layers})
    return {name: {"scale": scale, "min": -127 * scale, "max": 127 * scale, "offset": 0} for name, scale in scales.items()}
