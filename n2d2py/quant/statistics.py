"""Calibration statistics of a float network's tensors: collection, merging, files."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from n2d2py.arithmetic.histogram import Histogram
from n2d2py.concurrency import ordered_map
from n2d2py.errors import Location, N2D2Error
from n2d2py.files import read_npz
from n2d2py.graph import Graph, Node, named_inputs
from n2d2py.operators import ArrayRecurrent, ElemWise, Softmax
from n2d2py.quant.types.choose import calibrated_tensors
from n2d2py.quant.types.recurrent_states import changed_inputs, observe_states, observed_names, states_after
from n2d2py.reference.engine import MOST_ELEMENTS, FloatEngine

_NEGLIGIBLE = 24.0
"""Scores this far below the largest of their row count as nothing: 65,535 of them are a tenth of a 16-bit step."""
_WITHOUT_DIGITS = -(2.0**26)
"""Below it, float32 has steps of 8: a row of such scores is masked as a whole."""


@dataclass
class Statistics:
    """Histograms by tensor over `stimuli` samples; `key` identifies network and pipeline.

    `data` is the SHA-256 of the values, independent of batch boundaries. `factors` (C by tensor) are the channel scales applied
    before (n2d2py/quant/correct/channels.py), `inputs` the float inputs (n2d2py/quant/types/float_inputs.py).
    """

    histograms: dict[str, Histogram] = field(default_factory=dict)
    stimuli: int = 0
    key: str = ""
    data: str = ""
    factors: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)

    def merge(self, other: Statistics) -> None:
        """Add the counts of another part of the data."""
        for name, histogram in other.histograms.items():
            self.histograms.setdefault(name, Histogram()).merge(histogram)
        self.stimuli += other.stimuli

    def save(self, path: Path) -> None:
        """Write an .npz with deterministic bytes."""
        arrays = {
            "key": np.array(self.key),
            "data": np.array(self.data),
            "stimuli": np.array(self.stimuli),
            "names": np.array(list(self.histograms)),
            "scaled": np.array(list(self.factors), np.str_),
            "float_inputs": np.array(list(self.inputs), np.str_),
        }
        for role, arrays_by_name in (("factors", self.factors), ("inputs", self.inputs)):
            arrays.update({f"{role}.{index}": array for index, array in enumerate(arrays_by_name.values())})
        for index, histogram in enumerate(self.histograms.values()):
            arrays.update({f"{index}.{part}": array for part, array in histogram.to_arrays().items()})
        np.savez_compressed(path, **arrays)

    @staticmethod
    def load(path: Path, key: str) -> Statistics:
        """Return the statistics that `save` wrote. Raises N2D2Error (E501 missing, E502 unreadable, E503 of another
        network)."""
        if not path.is_file():
            what = "-calib-reload finds no statistics of a previous calibration"
            raise N2D2Error("E501", what, where=Location(str(path)), remedy="calibrate without -calib-reload first")
        try:
            stored = read_npz(path)
            result = Statistics(stimuli=int(stored["stimuli"]), key=str(stored["key"]), data=str(stored["data"]))
            result.factors = {str(name): stored[f"factors.{index}"] for index, name in enumerate(stored["scaled"])}
            result.inputs = {str(name): stored[f"inputs.{index}"] for index, name in enumerate(stored["float_inputs"])}
            for index, name in enumerate(stored["names"]):
                parts = {part: stored[f"{index}.{part}"] for part in ("numbers", "counts", "positive", "negative", "peaks")}
                result.histograms[str(name)] = Histogram.from_arrays(parts)
        except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            what = f"the statistics are not readable ({error})"
            raise N2D2Error("E502", what, where=Location(str(path)), remedy="calibrate without -calib-reload") from None
        if result.key != key:
            raise _other_data(path, "another network, other kinds of data or another pipeline")
        return result

    def check_data(self, path: Path, batches: Iterable[np.ndarray]) -> None:
        """Compare the calibration samples, in order, with those that were collected. Raises N2D2Error (E503 if they differ)."""
        digest = hashlib.sha256()
        for x in batches:
            digest.update(np.ascontiguousarray(x).data)
        if digest.hexdigest() != self.data:
            raise _other_data(path, "other stimuli")


def _other_data(path: Path, what: str) -> N2D2Error:
    remedy = "give the model and data of that calibration, or calibrate without -calib-reload"
    return N2D2Error("E503", f"the statistics belong to {what}", where=Location(str(path)), remedy=remedy)


def network_key(graph: Graph, *parts: str) -> str:
    """Return the SHA-256 of a graph's structure and parameters and of further texts."""
    digest = hashlib.sha256(repr(graph.dump()).encode())
    for node in graph.nodes:
        for role, array in sorted(node.params.items()):
            digest.update(role.encode() + np.ascontiguousarray(array).tobytes())
    for part in parts:
        digest.update(b"\0" + part.encode(errors="surrogateescape"))
    return digest.hexdigest()


def batch_size(graph: Graph) -> int:
    """Return the number of samples that fit through the network at once within the memory limit."""
    return max(1, min(64, MOST_ELEMENTS // max(graph.element_count, 1)))


def assumed_statistics(graph: Graph, multiples: Sequence[float], values: np.ndarray) -> Statistics:
    """Return statistics without samples, in which calibrated tensors hold `values` times each of `multiples` in turn."""
    wanted = calibrated_tensors(graph)
    names = [*wanted, *(name for node in _observed_layers(graph, wanted) for name in observed_names(node))]
    result = Statistics()
    for place, name in enumerate(names):
        result.histograms[name] = _histogram(values * multiples[place % len(multiples)], name)
    return result


def _observed_layers(graph: Graph, wanted: Collection[str]) -> list[Node]:
    return [
        node
        for node in graph.nodes
        if isinstance(node.op, ArrayRecurrent) and node.output in wanted and (node.op.cell == "LSTM" or node.op.given)
    ]


def _states_of_later_calls(graph: Graph, recurrent: Sequence[Node], values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return results of later calls for states that are zero in all samples, if arithmetic modifies them before their layer."""
    results = {}
    for node in recurrent:
        wanted = {
            name: index for name, index in changed_inputs(graph, node).items() if name in values and not values[name].any()
        }
        if wanted:
            states = states_after(node, [values[name] for name in node.inputs])
            results |= {
                name: states[index - 1].reshape(values[name].shape).astype(np.float32) for name, index in wanted.items()
            }
    return results


class _ScoreFloors:
    """Lower limits of attention scores: the tensors that only softmaxes consume, directly, through copies, or as terms of sums.

    A mask that is computed at run time pushes scores far below the others of their row: it adds -10000 or the lowest float, or puts
    minus infinity. A range that holds these would leave no steps to the others. Constant masks are part of the Softmax already
    (passes/masked_softmax.py). `taps`: the tensors whose values `of` needs.
    """

    def __init__(self, graph: Graph):
        self._readers: dict[str, list[Node]] = {}
        self.taps: set[str] = set()
        for name in reversed([*graph.inputs, *(name for node in graph.nodes for name in node.outputs)]):
            readers = graph.consumers(name)
            if readers and name not in graph.outputs and all(map(self._leads_to_softmax, readers)):
                self._readers[name] = readers
                self.taps.update(name for node in readers if not node.op.moves_values for name in node.inputs)

    def _leads_to_softmax(self, node: Node) -> bool:
        op = node.op
        is_sum = isinstance(op, ElemWise) and op.is_plain_sum and min(op.weights, default=1) > 0
        sums = is_sum and node.activation is None and len(set(node.inputs)) == len(node.inputs)
        return _is_softmax(node) or ((sums or op.moves_values) and node.output in self._readers)

    def of(self, values: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Return, by tensor, the limit below which scores have no effect on a batch."""
        floors: dict[str, float] = {}
        for name, readers in self._readers.items():
            floors[name] = min(self._floor(node, name, floors, values) for node in readers)
        return floors

    def _floor(self, node: Node, name: str, floors: Mapping[str, float], values: Mapping[str, np.ndarray]) -> float:
        if _is_softmax(node):
            return _least_maximum(node, values[name]) - _NEGLIGIBLE
        others = [] if node.op.moves_values else [float(values[other].max()) for other in node.inputs if other != name]
        return floors[node.output] - sum(others)


def _is_softmax(node: Node) -> bool:
    return type(node.op) is Softmax and not node.op.log


def _least_maximum(node: Node[Softmax], scores: np.ndarray) -> float:
    """Return the least of the largest scores of the rows that are not masked as a whole; minus infinity without such a row."""
    largest = node.op.to_rows(scores).max(-1)
    counted = largest[largest > _WITHOUT_DIGITS]
    return float(counted.min()) if counted.size else -np.inf


def collect(graph: Graph, batches: Iterable[np.ndarray], key: str = "") -> Statistics:
    """Return histograms of the calibrated tensors of a fused float graph over batches (n, C, H, W).

    Batches run on all cores; the result does not depend on the number of threads. Raises N2D2Error (E504 a tensor that is not
    finite, E508 no samples).
    """
    digest, result, wanted, floors = hashlib.sha256(), Statistics(key=key), calibrated_tensors(graph), _ScoreFloors(graph)
    recurrent = _observed_layers(graph, wanted)
    outputs = [name for name in graph.outputs if name not in wanted and not graph.kind(name)]
    taps = [*wanted, *(name for node in recurrent for name in node.inputs), *floors.taps]
    engine, several = FloatEngine.for_batches(graph, taps)

    def digested() -> Iterator[np.ndarray]:
        for batch in batches:
            digest.update(np.ascontiguousarray(batch).data)
            yield batch

    def measure(batch: np.ndarray) -> Statistics:
        values = engine.run(batch)
        later = _states_of_later_calls(graph, recurrent, values)
        again = engine.run({**named_inputs(graph, batch), **later}) if later else {}
        part = Statistics(stimuli=len(batch))
        states = [observe_states(node, [values[name] for name in node.inputs]) for node in recurrent]
        spoiled = next((name for name in outputs if np.isnan(values[name]).any()), None)
        if spoiled is not None:
            raise _not_finite(spoiled)
        limits = floors.of(values)
        for name in wanted:
            scores = values.pop(name)
            part.histograms[name] = _histogram(np.maximum(scores, limits[name]) if name in limits else scores, name)
            if name in again:
                part.histograms[name].merge(_histogram(again.pop(name), name))
        part.histograms |= {name: _histogram(reached, name) for one in states for name, reached in one.items()}
        return part

    for part in ordered_map(measure, digested(), several):
        if result.stimuli:
            result.merge(part)
        else:  # a copy of all histograms is much for a deep network
            result.histograms, result.stimuli = part.histograms, part.stimuli
    result.data = digest.hexdigest()
    if not result.stimuli:
        raise N2D2Error("E508", "the calibration set is empty", remedy="correct the database, or give -calib-data")
    return result


def _histogram(values: np.ndarray, name: str) -> Histogram:
    histogram = Histogram()
    try:
        histogram.add(values)
    except ValueError:
        raise _not_finite(name) from None
    return histogram


def _not_finite(name: str) -> N2D2Error:
    what = f"tensor '{name}' contains NaN or infinity during calibration"
    return N2D2Error("E504", what, remedy="check the weights and the input range")
