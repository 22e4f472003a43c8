"""Running an ONNX export in ONNX Runtime, with the kernels that its users get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.exports.stimuli import array_files
from n2d2py.graph import QuantGraph
from n2d2py.reference.engine import EXACT_PRODUCTS
from n2d2py.runtime.runner import Runner

_BATCH = 25
_ONE_STEP = 1.5 / 255
"""Real numbers are rounded in other places than the tool's integers: a layer may be off by a step of 8 bits."""
_REAL = 1e-4


class OnnxRunner(Runner):
    """The model in ONNX Runtime, optimized as it comes."""

    label = "ONNX Runtime"
    remedy = "pip install onnxruntime"
    slack = _ONE_STEP

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        self._folder, self._details = folder, details
        if not details["integers"]:
            self.slack = _REAL

    @classmethod
    def missing(cls, details: Mapping[str, Any]) -> str:
        """What this machine lacks."""
        try:
            import onnxruntime  # noqa: F401
        except ImportError:
            return "no onnxruntime"
        return ""

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        """Stored outputs in the types of `graph`."""
        names = array_files(len(graph.inputs))
        inputs = [np.load(self._folder / name, allow_pickle=False)[:count] for name in names]
        session = _session(str(self._folder / self._details["file"]))
        found: list[list[np.ndarray]] = []
        starts = range(0, count, _BATCH)
        for start in log.progress(starts, "running the model", total=len(starts), unit="batch"):
            batch = [x[start : start + _BATCH] for x in inputs]
            found.append(_run(session, graph, batch, list(graph.outputs), self._details["integer_io"]))
        joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
        return {
            name: _stored(values, graph.type(name)).reshape(count, *graph.shape(name)[1:])
            for name, values in zip(graph.outputs, joined, strict=True)
        }

    def network(self) -> Any:
        """What -compare asks for the layers."""
        return _Layers(self._folder, self._details)

    def sizes(self) -> dict[str, int]:
        """Bytes of the file."""
        return {"model": (self._folder / self._details["file"]).stat().st_size}


class _Layers:
    """The model with every tensor as an output."""

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        import onnx

        self._details = details
        model = onnx.load(folder / details["file"])
        known = {value.name for value in model.graph.output}
        self._taps = {
            tensor: stored for tensor, stored in details["tensors"].items() if stored not in {i.name for i in model.graph.input}
        }
        for name in dict.fromkeys(self._taps.values()):
            if name not in known:
                model.graph.output.append(onnx.ValueInfoProto(name=name))
        self._session = _session(model.SerializeToString())

    def layers(self, *inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Real results by tensor, (N, ...), for stored inputs."""
        types = {name: NumType(**kind) for name, kind in self._details["types"].items()}
        names = list(dict.fromkeys(self._taps.values()))
        feed = {
            name: x if self._details["integer_io"] else types[name].dequantize(x)
            for name, x in zip(self._details["inputs"], inputs, strict=True)
        }
        found = dict(zip(names, self._session.run(names, feed), strict=True))
        return {
            tensor: types[tensor].dequantize(values) if (values := found[stored]).dtype.kind in "iu" else values
            for tensor, stored in self._taps.items()
        }


def _session(model: str | bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry(*EXACT_PRODUCTS)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _run(session: Any, graph: QuantGraph, batch: Sequence[np.ndarray], names: list[str], integers: bool) -> list[np.ndarray]:
    feed = {name: x if integers else graph.type(name).dequantize(x) for name, x in zip(graph.inputs, batch, strict=True)}
    return session.run(names, feed)


def _stored(values: np.ndarray, kind: NumType) -> np.ndarray:
    return kind.quantize(values) if values.dtype.kind == "f" else np.clip(values, kind.qmin, kind.qmax).astype(kind.dtype)
