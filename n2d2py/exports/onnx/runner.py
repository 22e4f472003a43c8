"""Running an ONNX export in ONNX Runtime, with the kernels that its users get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.exports.stimuli import read_arrays
from n2d2py.graph import QuantGraph
from n2d2py.reference.engine import open_session
from n2d2py.runtime.runner import PackageRunner

_BATCH = 25


class OnnxRunner(PackageRunner):
    """The model in ONNX Runtime, optimized as it comes."""

    label = "ONNX Runtime"
    remedy = "pip install 'n2d2py[onnx]'"
    module = "onnxruntime"

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        """Stored outputs in the types of `graph`."""
        inputs = read_arrays(self._folder, len(graph.inputs), count)
        path = self._folder / self._details["file"]
        session = open_session(str(path), path)
        found: list[list[np.ndarray]] = []
        starts = range(0, count, _BATCH)
        for start in log.progress(starts, "running the model", total=len(starts), unit="batch"):
            batch = [x[start : start + _BATCH] for x in inputs]
            found.append(session.run(list(graph.outputs), _fed(self._details, batch)))
        joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
        return {
            name: _stored(values, graph.type(name)).reshape(count, *graph.shape(name)[1:])
            for name, values in zip(graph.outputs, joined, strict=True)
        }

    def network(self) -> Any:
        """Results of layers for -compare."""
        return _Layers(self._folder, self._details)


class _Layers:
    """The model with every tensor as an output."""

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        import onnx

        self._details = details
        model = onnx.load(folder / details["file"])
        known, inputs = ({value.name for value in ports} for ports in (model.graph.output, model.graph.input))
        self._taps = {tensor: stored for tensor, stored in details["tensors"].items() if stored not in inputs}
        for name in dict.fromkeys(self._taps.values()):
            if name not in known:
                model.graph.output.append(onnx.ValueInfoProto(name=name))
        self._session = open_session(model.SerializeToString(), folder / details["file"])

    def stored_layers(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Real results by tensor, (N, ...), for stored inputs."""
        types = {name: NumType(**kind) for name, kind in self._details["types"].items()}
        names = list(dict.fromkeys(self._taps.values()))
        found = dict(zip(names, self._session.run(names, _fed(self._details, inputs)), strict=True))
        return {
            tensor: types[tensor].dequantize(values) if (values := found[stored]).dtype.kind in "iu" else values
            for tensor, stored in self._taps.items()
        }


def _fed(details: Mapping[str, Any], inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs of the model for stored values."""
    return {
        name: x if details["integer_io"] else NumType(**details["types"][name]).dequantize(x)
        for name, x in zip(details["inputs"], inputs, strict=True)
    }


def _stored(values: np.ndarray, kind: NumType) -> np.ndarray:
    return kind.quantize(values) if values.dtype.kind == "f" else np.clip(values, kind.qmin, kind.qmax).astype(kind.dtype)
