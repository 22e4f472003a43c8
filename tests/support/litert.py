"""LiteRT's reference kernels as a referee of imported .tflite files, layer by layer."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from n2d2py.graph import QuantGraph, Shape
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.quant.simulator import quantize_inputs, run_node, simulate
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.quantize import quantize_stage


def imported(path: Path, target: str = "CPP") -> QuantGraph:
    """Our integers of a quantized file."""
    path, options = read_command([str(path), "-export", target, "-nbbits", "8", "-db-export", "0"])
    network = load_network(path, options)
    return quantize_stage(calibrate_stage(network, options.calibration), options.quantization).graph


def channels_first(values: np.ndarray) -> np.ndarray:
    return values.transpose(0, 3, 1, 2) if values.ndim == 4 else values


class Reference:
    """The file in LiteRT's interpreter with its reference kernels, or those of another resolver, all tensors kept."""

    def __init__(self, path: Path, resolver: str = "BUILTIN_REF"):
        from ai_edge_litert import interpreter as litert

        quiet = os.dup(2)
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, 2)
            self.interpreter = litert.Interpreter(
                model_path=str(path),
                experimental_preserve_all_tensors=True,
                experimental_op_resolver_type=litert.OpResolverType[resolver],
            )
            self.interpreter.allocate_tensors()
        finally:
            os.dup2(quiet, 2)
            os.close(quiet)
            os.close(null)
        self.inputs = self.interpreter.get_input_details()
        self.outputs = self.interpreter.get_output_details()
        self.tensors = {one["name"]: one for one in self.interpreter.get_tensor_details() if one["name"]}

    def run(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Every tensor for real inputs (N, C, H, W), by name: integers minus their zero points, real numbers as they are."""
        parts = [self._one(sample) for sample in x]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _one(self, sample: np.ndarray) -> dict[str, np.ndarray]:
        port = self.inputs[0]
        given = sample[None].transpose(0, 2, 3, 1) if sample.ndim == 3 and len(port["shape"]) == 4 else sample[None]
        given = given.reshape(port["shape"])
        if port["dtype"] != np.float32:
            scale, zero = port["quantization"]
            info = np.iinfo(port["dtype"])
            given = np.clip(np.rint(given / np.float32(scale)) + zero, info.min, info.max)
        self.interpreter.set_tensor(port["index"], given.astype(port["dtype"]))
        self.interpreter.invoke()
        found = {}
        for name, one in self.tensors.items():
            try:
                values = self.interpreter.get_tensor(one["index"])
            except ValueError:
                continue
            if values.dtype in (np.int8, np.uint8, np.int16) and one["quantization"][0]:
                values = values.astype(np.int64) - one["quantization"][1]
            elif values.dtype != np.float32:
                continue
            if values.ndim:
                found[name] = channels_first(values)
        return found


@dataclass
class Agreement:
    """What of a network agrees: steps apart by layer (each fed the reference's integers), of its outputs, top-1."""

    layers: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    same: int = 0
    elements: int = 0
    outputs: int = 0
    top: int = 0
    stimuli: int = 0


def agreement(
    path: Path,
    x: np.ndarray | None,
    batch: int = 8,
    target: str = "CPP",
    inputs_of: Callable[[Shape, int, int], np.ndarray] | None = None,
) -> Agreement:
    """Compares our integers of a file with the reference's for real inputs (N, C, H, W), or for what `inputs_of` makes of the shape and the
    limits of an input."""
    graph, reference, result = imported(path, target), Reference(path), Agreement()
    if x is None:
        assert inputs_of is not None
        kind = graph.type(graph.inputs[0])
        made = inputs_of(graph.shape(graph.inputs[0])[1:], kind.qmin, kind.qmax)
        x = ((made - kind.zero_point) * np.float32(kind.scale)).astype(np.float32)
    carriers = _carriers(graph, reference)
    for start in range(0, len(x), batch):
        part = x[start : start + batch]
        expected, inputs = reference.run(part), quantize_inputs(graph, [part])
        _layers(graph, carriers, expected, inputs, result)
        stored = simulate(graph, inputs)
        name, port = graph.outputs[0], reference.outputs[0]["name"]
        kind, wanted = graph.type(name), expected[port]
        found = (stored[name].astype(np.int64) - kind.zero_point).reshape(wanted.shape)
        if carriers.get(name) == port and wanted.dtype == np.int64:
            result.outputs = max(result.outputs, int(np.abs(found - wanted).max()))
        best = wanted.reshape(len(part), -1)
        # a tie of the reference's coarse probabilities has several best ones
        chosen = found.reshape(len(part), -1).argmax(axis=1)
        result.top += int((best[np.arange(len(part)), chosen] == best.max(axis=1)).sum())
        result.stimuli += len(part)
    return result


def _carriers(graph: QuantGraph, reference: Reference) -> dict[str, str]:
    """Our tensor -> the file's of the same scale."""
    found = {}
    for name, one in reference.tensors.items():
        ours = name
        while ours in graph.aliases and ours not in graph.tensors:
            ours = graph.aliases[ours]
        if ours not in graph.tensors:
            continue
        if len(one["shape"]) != len(graph.shape(ours)) and sum(size > 1 for size in graph.shape(ours)) > 1:
            continue  # the order of its elements is another one
        if np.isclose(one["quantization"][0], graph.type(ours).scale, rtol=1e-6, atol=0):
            found[ours] = name
    return found


def _layers(
    graph: QuantGraph, carriers: dict[str, str], expected: dict[str, np.ndarray], inputs: list[np.ndarray], result: Agreement
) -> None:
    values = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        (found,) = run_node(graph, node, [values[name] for name in node.inputs])
        name, kind = node.output, graph.type(node.output)
        values[name] = found
        wanted = expected.get(carriers.get(name, ""))
        if wanted is None or wanted.dtype != np.int64 or wanted.size != found.size:  # a pad may be of another layer here
            continue
        apart = np.abs(found.astype(np.int64).reshape(-1) - kind.zero_point - wanted.reshape(-1))
        result.kinds[name] = node.op.kind
        result.layers[name] = max(result.layers.get(name, 0), int(apart.max(initial=0)))
        result.same += int((apart == 0).sum())
        result.elements += apart.size
        before = result.counts.get(name, (0, 0))
        result.counts[name] = (before[0] + int((apart != 0).sum()), before[1] + apart.size)
        values[name] = (wanted + kind.zero_point).reshape(found.shape).astype(kind.dtype)
