"""Execution of float networks on batches: ONNX Runtime if every layer has an ONNX form, else NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from n2d2py import log
from n2d2py.concurrency import cores
from n2d2py.contracts.reference import NoOnnxForm, OnnxWriter
from n2d2py.errors import Location, N2D2Error
from n2d2py.graph import Graph, each_call, named_inputs
from n2d2py.operators.quantize import is_quantized
from n2d2py.reference.executor import run_graph

if TYPE_CHECKING:
    import onnx

Batch = np.ndarray | Mapping[str, np.ndarray]
"""A batch of the only input (several side by side as vectors: graph/inputs.py), or one for each input by name."""


MOST_ELEMENTS = 16_000_000
"""Elements of all tensors that a batch may hold at once (64 MB of float32)."""


class FloatEngine:
    """The floating-point reference of a Graph; thread-safe.

    The samples of a network with states are consecutive calls, the first one after a reset.

    Attributes:
        taps: the tensors that `run` returns in addition to the outputs.
        backend: "onnxruntime" or "numpy".
    """

    def __init__(self, graph: Graph, taps: Iterable[str] = (), *, threads: int = 2, dtype: type[np.floating] = np.float32):
        """Prepare the graph; `dtype` float64 computes in double precision, always with NumPy."""
        self.graph = graph
        self.taps = tuple(dict.fromkeys(taps))
        self._dtype = dtype
        self._wanted = tuple(dict.fromkeys([*graph.outputs, *self.taps]))
        self._session = _graph_session(graph, self.taps, threads) if dtype is np.float32 else None
        self.backend = "numpy" if self._session is None else "onnxruntime"

    @classmethod
    def for_batches(cls, graph: Graph, taps: Iterable[str]) -> tuple[FloatEngine, bool]:
        """Return an engine for many batches, and True if threads may run several at once: not where one sample has too many
        elements."""
        several = graph.element_count <= MOST_ELEMENTS
        return cls(graph, taps=taps, threads=1 if several else cores()), several

    def run(self, batch: Batch) -> dict[str, np.ndarray]:
        """Return the values (n, ...) by tensor name of the outputs, taps and initial states for a batch (n, C, H, W)."""
        graph = self.graph
        if not isinstance(batch, Mapping):
            batch = named_inputs(graph, batch)
        if graph.states and any(name not in batch for name in graph.inputs):
            first = {name: np.zeros(graph.shape(name), self._dtype) for name in graph.state_inputs}
            return each_call(graph, batch, first, self._once)
        return self._once(batch)

    def _once(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        types = {name: np.dtype(self.graph.kind(name) or self._dtype) for name in self.graph.inputs}
        inputs = {name: np.ascontiguousarray(batch[name], kind) for name, kind in types.items()}
        if self._session is None:
            return run_graph(self.graph, inputs, self.taps)
        computed = [name for name in self._wanted if name not in inputs]
        values = dict(zip(computed, self._session.run(computed, inputs), strict=True)) if computed else {}
        return {name: inputs[name] if name in inputs else values[name] for name in self._wanted}


def open_session(model: str | bytes, path: str | Path, threads: int = 0) -> Any:
    """Return an ONNX Runtime session of a model (path or bytes); `path` is its origin, `threads` 0 is the runtime's default.

    Raises:
        N2D2Error: E320 ONNX Runtime is missing, E321 it refuses the model.
    """
    runtime = _runtime()
    if runtime is None:
        raise N2D2Error("E320", "onnxruntime is not installed", where=Location(str(path)), remedy="pip install 'n2d2py[onnx]'")
    try:
        return runtime.InferenceSession(model, _options(runtime, threads), providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has no common base class for its errors
        what = f"ONNX Runtime cannot run this file ({_first_line(error)})"
        raise N2D2Error("E321", what, where=Location(str(path)), remedy="check it with onnx.checker") from None


_EXACT_PRODUCTS = ("session.x64quantprecision", "1")
"""Session entry that avoids saturation of two added 8-bit products on x86 machines without VNNI
(https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html)."""


def _runtime() -> Any:
    try:
        import onnx  # noqa: F401  the graph is written in its format
        import onnxruntime
    except ImportError:
        return None
    return onnxruntime


def _options(runtime: Any, threads: int) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # a block for all tensors, next to those of the first run
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry(*_EXACT_PRODUCTS)
    return options


def _graph_session(graph: Graph, taps: Iterable[str], threads: int) -> Any:
    """Return a session of the graph, or None if NumPy must run it."""
    runtime = _runtime()
    if runtime is None:
        log.notice(
            "onnxruntime is not installed: the float reference runs in NumPy, which is slower; pip install 'n2d2py[onnx]'"
        )
        return None
    try:
        model = to_onnx(graph, taps)
    except NoOnnxForm as reason:
        log.detail("NumPy computes the float reference: %s", reason)
        return None
    options = _options(runtime, threads)
    if is_quantized(graph):  # fused integer kernels round differently
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Pad fusion creates pools that the runtime refuses if a pad is as wide as the window
    try:
        return runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=["Pad_Fusion"]
        )
    except Exception as error:  # ONNX Runtime has no common base class for its errors
        log.detail("NumPy computes the float reference: ONNX Runtime refuses it (%s)", _first_line(error))
        return None


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:160]


OPSET = 17
IR_VERSION = 8


def to_onnx(graph: Graph, taps: Iterable[str] = ()) -> onnx.ModelProto:
    """Return an ONNX model with the same inputs and outputs; `taps` names tensors that become outputs too.

    Raises:
        NoOnnxForm: a layer cannot be written.
    """
    from onnx import helper  # late: NumPy runs INI files where it is not installed

    writer = OnnxWriter(graph)
    for node in graph.nodes:
        writer.write(node)
    outputs = [name for name in dict.fromkeys([*graph.outputs, *taps]) if name not in graph.inputs]
    inputs, results = ([_value(graph, name) for name in names] for names in (graph.inputs, outputs))
    proto = helper.make_graph(writer.nodes, graph.name or "network", inputs, results, writer.initializers)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=IR_VERSION, producer_name="n2d2py")


def _value(graph: Graph, name: str) -> onnx.ValueInfoProto:
    from onnx import TensorProto, helper

    kind = graph.kind(name)
    element = TensorProto.FLOAT if not kind else helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return helper.make_tensor_value_info(name, element, ["N", *graph.shape(name)[1:]])
