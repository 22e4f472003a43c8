"""What each stage makes of a network, as short lines of text: layers, integers, memory and C++ from one file to the export.

A line is kept, and compared with what the same command gives today. It holds nothing that depends on the last bit of a sum of real
numbers: those stand with a few digits, compared with a tolerance, and what `settled` finds to change with such bits is left out.

A fingerprint of an array is its shape, its size (root of the mean square) and its products with two fixed directions, so that a
changed order, sign or value moves it; that of integers has a checksum too, which sees a single step.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import numpy_helper, printer

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.exports import find_target
from n2d2py.graph import Graph, QuantGraph, QuantNode
from n2d2py.memory.files import json_text
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.plan import MemoryPlan
from n2d2py.options import read_command
from n2d2py.passes import FuseReport
from n2d2py.pipeline import load_network
from n2d2py.quant.simulator import simulate
from n2d2py.reference.contract import NoOnnxForm
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph
from n2d2py.reference.to_onnx import to_onnx
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.export import export_request, exported_stimuli, stored_stimuli
from n2d2py.stages.fuse import fuse_stage
from n2d2py.stages.memory import plan_stage
from n2d2py.stages.quantize import QuantizedNetwork, quantize_stage

UNSETTLED = "~"
"""Stands for a part of a line that the last bits of real numbers change."""
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?|-?\d+e[-+]\d+")
_SHORT = 90
"""Characters of what an operator says of itself, above which its checksum stands."""

Record = dict[str, list[str]]
"""Stage -> its lines; the parts of a line are between bars."""


def record(file: Path, words: Iterable[str], plans: Mapping[str, Mapping[str, Any]], noise: int = 0) -> Record:
    """The lines of a network that the command line `file` `words` exports, with its memory by each of the parameters of `plans`.

    With `noise` real numbers change in their last bits, differently for each of its values. A refusal is the line of its error.
    """
    log.setup(quiet=True, verbose=False)
    found: Record = {}
    try:
        for stage, lines in _stages(file, list(words), plans, noise):
            found[stage] = lines
    except N2D2Error as error:
        found["error"] = [one.line().replace(str(file.parent), "") for one in error.errors]
    if warnings := log.warnings_seen():
        found["warnings"] = [one.line().replace(str(file.parent), "") for one in warnings]
    return found


def _stages(file: Path, words: list[str], plans: Mapping[str, Mapping[str, Any]], noise: int):
    path, options = read_command([str(file), *words, "-o", str(file.parent)])
    network = load_network(path, options)
    if noise:
        network = replace(network, graph=shaken_graph(network.graph, noise))
    yield "layers", layers(network.graph)
    integer = options.quantization.integer
    fused, report = fuse_stage(network, integer=integer)
    yield from rewritten(network.graph, fused.graph, report)
    yield "values", _values(network.graph, fused.graph, noise)
    calibrated = calibrate_stage(network, options.calibration) if integer else network
    quantized = quantize_stage(calibrated, options.quantization)
    yield "integers", _integers(quantized.graph, noise)
    target = find_target("CPP")
    said: set[str] = set()
    for name, given in plans.items():
        lines = _planned(quantized, given, target)
        yield name, [line for line in lines if line not in said]
        said.update(lines)


def rewritten(graph: Graph, fused: Graph, report: FuseReport) -> Iterator[tuple[str, list[str]]]:
    """What the rewrites made of a network, and both as ONNX Runtime gets them."""
    texts = [f"{entry.layer}: {entry.text}" for entry in (*report.done, *report.refused)]
    counts = ", ".join(f"{name} {count}" for name, count in report.counts.items())
    yield "passes", [f"{counts or 'none'} | {len(texts)} texts {_sum_of(chr(10).join(texts))}"]
    if (changed := layers(fused)) != layers(graph):
        yield "fused", changed
    yield "onnx", _distinct(_onnx(each) for each in (graph, fused))


def _planned(quantized: QuantizedNetwork, given: Mapping[str, Any], target: Any) -> list[str]:
    """The memory with parameters, and the C++ of its layers."""
    network = replace(quantized.network, params=quantized.network.params.over(dict(given)))
    try:
        memory = plan_stage(quantized.graph, network.params, target.adds_residuals, target.scratch_needs)
    except N2D2Error as error:
        return [one.line() for one in error.errors]
    lines = [_memory(memory.plan, json_text(graph_json(memory.problem)))]
    none, _ = exported_stimuli(None, 0)
    prepared = target.prepare(export_request(network, memory.graph, memory, stored_stimuli(network, memory.graph, none), {}))
    if prepared.problems:
        return [*lines, *(problem.line() for problem in prepared.problems)]
    for layer in prepared.result.layers:
        code = layer.code
        if code is not None:
            made = f"{code.implementation or 'portable'} {_sum_of(code.config + code.statement + code.reason)}"
            arrays = [array.values for array in code.arrays]
            stored = [array for array in arrays if array.dtype.kind != "f"]
            text = b"".join(array.astype("<i8").tobytes() for array in stored)
            real = [fingerprint(array) for array in arrays if array.dtype.kind == "f"]
            names = _sum_of(" ".join(f"{array.name} {array.values.shape}" for array in code.arrays))
            lines.append(" | ".join([f"{layer.node.name}: {made}", f"arrays {names}", _sum_of(text), *real]))
    return lines


def _memory(plan: MemoryPlan, graph: str) -> str:
    placed = ", ".join(f"{name} {plane.offset}" for name, plane in list(plan.planes.items())[:6])
    return (
        f"{plan.arena_bytes} bytes: {placed} | map {_sum_of(json_text(map_json(plan)))} | graph {_sum_of(graph)}"
        f" | {len(plan.schedule)} steps"
    )


def layers(graph: Graph) -> list[str]:
    found = []
    for node in graph.nodes:
        text = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", f"{node.op}{f' then {node.activation}' if node.activation else ''}")
        text = text if len(text) < _SHORT else f"{node.op.kind} {_sum_of(text)}"
        made = ", ".join(f"{name} {'x'.join(map(str, graph.shape(name)[1:]))}{graph.kind(name)}" for name in node.outputs)
        held = [f"{role} {fingerprint(array)}" for role, array in node.params.items() if np.size(array)]
        found.append(" | ".join([f"{made} = {text} ({', '.join(node.inputs)}){node.rounding}", *held]))
    return [*found, f"outputs {', '.join(graph.outputs)}"]


def _onnx(graph: Graph) -> str:
    """The network as ONNX Runtime gets it, or why it does not."""
    try:
        model = to_onnx(graph)
    except NoOnnxForm as reason:
        return str(reason)
    constants = [numpy_helper.to_array(each) for each in model.graph.initializer]
    real = [each.astype(np.float64).reshape(-1) for each in constants if each.dtype.kind == "f" and each.size]
    other = " ".join(f"{each.dtype}{each.shape}{'' if each.dtype.kind == 'f' else each.tolist()}" for each in constants)
    kinds = " ".join(node.op_type for node in model.graph.node)
    text = _sum_of(f"{''.join(map(printer.to_text, model.graph.node))}{other}")
    return " | ".join([kinds, text, *([fingerprint(np.concatenate(real))] if real else [])])


def _values(graph: Graph, fused: Graph, noise: int) -> list[str]:
    """The outputs in real numbers, by NumPy and by ONNX Runtime, before and after the passes."""
    found, given = [], {name: _stimuli(graph.shape(name), noise) for name in graph.inputs}
    ways: list[tuple[Graph, Callable[[], Mapping[str, np.ndarray]]]] = [
        (each, lambda each=each: run_graph(each, given)) for each in (graph, fused)
    ]
    if len(graph.inputs) == 1:
        ways.append((fused, lambda: FloatEngine(fused, threads=1).run(next(iter(given.values())))))
    for each, run in ways:
        values = run()
        found.append(" | ".join(fingerprint(values[name], False) for name in each.outputs))
    return _distinct(found)


def _distinct(lines: Iterable[str]) -> list[str]:
    """The lines that are not as one before them, but for last digits."""
    kept: list[str] = []
    for line in lines:
        parts = line.split(" | ")
        if not any(len(parts) == len(other) and all(map(_alike, other, parts)) for other in (one.split(" | ") for one in kept)):
            kept.append(line)
    return kept


@cache
def _stimuli(shape: tuple[int, ...], noise: int) -> np.ndarray:
    return shaken(np.random.default_rng(3).normal(0.3, 0.8, (4, *shape[1:])).astype(np.float32), noise)


def _integers(graph: QuantGraph, noise: int) -> list[str]:
    given = [graph.type(name).quantize(_stimuli(graph.shape(name), noise)) for name in graph.inputs]
    values = simulate(graph, given, keep=True)
    made = {name: node for node in graph.nodes for name in node.outputs}
    return [
        " | ".join(
            [
                f"{name} {graph.type(name)}"
                if graph.type(name).plain
                else f"{name} {graph.type(name).name} x {graph.type(name).scale:.5e} + {graph.type(name).zero_point}",
                *(_typed(made[name]) if name in made else ()),
                fingerprint(values[name], not graph.type(name).is_float) if name in values else "",
            ]
        )
        for name in graph.tensors
    ]


def _typed(node: QuantNode) -> Iterable[str]:
    yield f"{node.op.kind} {type(node.form).__name__} {node.clamp}"
    yield f"bound {node.bound}{' in bias' * node.zero_in_bias}"
    if node.rescale is not None:
        yield f"{type(node.rescale).__name__} {' '.join(_number_text(value) for _, value in sorted(vars(node.rescale).items()))}"
    for each in fields(node.form):
        value = getattr(node.form, each.name)
        for role, array in value.items() if isinstance(value, dict) else ((each.name, value),):
            yield f"{role} {fingerprint(np.asarray(array))}"


def _number_text(value: Any) -> str:
    return fingerprint(value) if isinstance(value, np.ndarray) else str(value)


def fingerprint(array: np.ndarray, exact: bool = True) -> str:
    """The text of an array that is compared; `exact`: with the checksum of integers."""
    array = np.asarray(array)
    if array.dtype.kind not in "biuf" or not array.size:
        return f"{list(array.shape)} {_sum_of(str(array))}"
    values = array.astype(np.float64).reshape(-1)
    finite = np.where(np.isfinite(values), values, 0.0)
    size = float(np.sqrt(np.mean(finite**2)))
    at = np.arange(values.size)
    ways = [float(np.mean(finite * np.cos(step * at + 0.5)) / size) if size else 0.0 for step in (0.7, 2.3)]
    text = f"{list(array.shape)} {size:.5e} {ways[0]:.4f} {ways[1]:.4f}"
    if not np.isfinite(values).all():
        text += f" {np.count_nonzero(~np.isfinite(values))} not finite"
    if array.dtype.kind == "f" or not exact:
        return text
    shown = "" if array.size > 8 else f" {array.reshape(-1).astype(np.int64).tolist()}"
    return f"<{text}{shown}>#{_sum_of(array.astype('<i8').tobytes())}"


def _sum_of(text: str | bytes) -> str:
    return f"{zlib.crc32(text.encode() if isinstance(text, str) else text):08x}"


def shaken(array: np.ndarray, noise: int) -> np.ndarray:
    """Real numbers that differ in their last bits, by more than sums in another order do; themselves without `noise`."""
    if not noise:
        return array
    return (array * (1 + 1e-6 * np.random.default_rng(noise).uniform(-1, 1, np.shape(array)))).astype(array.dtype)


def shaken_graph(graph: Graph, noise: int) -> Graph:
    """The network with such weights; what is one number or two stays, which rewrites look for."""
    for node in graph.nodes:
        for role, array in node.params.items():
            if array.dtype == np.float32 and len(np.unique(array)) > 2:
                node.params[role] = shaken(array, noise)
    return graph


# Comparing


def differences(kept: Record, found: Record) -> list[str]:
    """What differs, a line each: the stage, the kept part, the found part."""
    wrong = [f"{stage}: {'kept' if stage in kept else 'found'} alone" for stage in sorted(set(kept) ^ set(found))]
    for stage in kept:
        if stage not in found:
            continue
        if len(kept[stage]) != len(found[stage]):
            wrong.append(f"{stage}: {len(kept[stage])} lines kept, {len(found[stage])} found")
        for one, other in zip(kept[stage], found[stage], strict=False):
            pairs = one.split(" | "), other.split(" | ")
            if len(pairs[0]) != len(pairs[1]):
                wrong.append(f"{stage}: {one}  ->  {other}")
                continue
            wrong += [f"{stage}: {pairs[0][0]}: {a}  ->  {b}" for a, b in zip(*pairs, strict=True) if not _alike(a, b)]
    return wrong


def _alike(kept: str, found: str) -> bool:
    """Whether a part is what was kept: of integers the checksum, or where that is unsettled their fingerprint."""
    if kept in (UNSETTLED, found):
        return True
    found = rough(found) if UNSETTLED in kept else short(found) if "<" not in kept else found
    if NUMBER.sub("#", kept) != NUMBER.sub("#", found):
        return False
    pairs = zip(NUMBER.findall(kept), NUMBER.findall(found), strict=True)
    return all(abs(float(a) - float(b)) <= 1e-4 * max(abs(float(a)), abs(float(b))) + 3e-4 * ("e" not in a) for a, b in pairs)


def short(part: str) -> str:
    """A part without the fingerprints of what has a checksum."""
    return re.sub(r"<\[[^>]*>#", "#", part)


def rough(part: str) -> str:
    """A part without the checksums of what has a fingerprint too."""
    return re.sub(r"(<\[[^>]*>)#\w+", rf"\1#{UNSETTLED}", part)


def settled(make: Callable[[int], Record], shakes: int = 5) -> Record:
    """`make(0)`, less what is other in make(1), make(2), ..., whose real numbers differ in their last bits."""
    found, others = make(0), [make(noise) for noise in range(1, shakes + 1)]
    kept: Record = {}
    for stage, lines in found.items():
        split = [[line.split(" | ") for line in each.get(stage, [])] for each in others]
        kept[stage] = []
        for at, line in enumerate(lines):
            parts = line.split(" | ")
            same = all(len(each) == len(lines) and len(each[at]) == len(parts) for each in split)
            chosen = [_settled(part, [each[at][n] for each in split]) if same else UNSETTLED for n, part in enumerate(parts)]
            kept[stage].append(" | ".join(chosen))
    return kept


def _settled(part: str, others: list[str]) -> str:
    """What all have in common."""
    for form in (short, rough):
        if all(_alike(form(part), other) for other in others):
            return form(part)
    return UNSETTLED
