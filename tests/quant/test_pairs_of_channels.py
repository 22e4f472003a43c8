"""Which tensors between two layers are scaled channel by channel: one case for each thing that a pair must be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from n2d2py.graph import Graph, Node, Precision
from n2d2py.graph.precision import TargetForm
from n2d2py.operators.conv import Conv
from n2d2py.operators.convert import Convert
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import ChannelClip, Clip, Logistic
from n2d2py.operators.identity import Identity
from n2d2py.operators.pool import Pool
from n2d2py.quant.channels import channel_factors, scale_channels
from n2d2py.quant.equalize import equalize
from n2d2py.reference.executor import run_graph

CHANNELS, PADS = 4, (1, 1, 1, 1)


@dataclass(frozen=True)
class Pair:
    """x - a - b: `first` and `second`: kinds of the layers; `between`: what stands between; `also`: who else reads a's tensor."""

    first: str = "conv"
    second: str = "conv"
    activation: object = Clip(0.0)
    between: str = ""
    also: str = ""
    precision: Precision | None = None
    dead: bool = False

    def graph(self) -> Graph:
        rng, graph = np.random.default_rng(5), Graph("net")
        graph.add_input("x", (1, 3, 4, 4))
        self._add(graph, rng, "a", self.first, "x", self.activation)
        params = graph.node("a").params
        size = (-1,) + (1,) * (params["weights"].ndim - 1)
        wide = np.repeat(np.array([8.0, 1.0, 0.1, 0.3], np.float32), len(params["weights"]) // CHANNELS)
        params["weights"] = params["weights"] * wide.reshape(size) * (not self.dead)
        params["bias"] = params["bias"] * wide * (not self.dead)
        source = "a"
        if self.between:
            op = {"convert": Convert(True), "same": Identity(), "pool": Pool("Max", (2, 2), (2, 2))}[self.between]
            graph.add(Node("m", op, ["a"], ["m"]))
            source = "m"
        self._add(graph, rng, "b", self.second, source, None)
        if self.also == "layer":
            self._add(graph, rng, "c", "conv", "a", None)
        graph.outputs = [node.output for node in graph.nodes if not graph.consumers(node.output)]
        if self.also == "output":
            graph.outputs.append("a")
        if self.precision is not None:
            graph.precisions["a"] = self.precision
        graph.verify()
        return graph

    def _add(self, graph: Graph, rng: np.random.Generator, name: str, kind: str, source: str, activation) -> None:
        channels = graph.shape(source)[1]
        size = int(np.prod(graph.shape(source)[1:]))
        op, shape = {
            "conv": (Conv(pads=PADS), (CHANNELS, channels, 3, 3)),
            "depthwise": (Conv(pads=PADS, groups=channels), (channels, 1, 3, 3)),
            "wide depthwise": (Conv(pads=PADS, groups=channels), (2 * channels, 1, 3, 3)),
            "groups": (Conv(pads=PADS, groups=2), (CHANNELS, channels // 2, 3, 3)),
            "fc": (Fc(), (CHANNELS, size)),
            "pool": (Pool("Max", (2, 2), (2, 2)), ()),
        }[kind]
        values = {}
        if shape:
            values = {
                "weights": rng.normal(size=shape).astype(np.float32),
                "bias": rng.uniform(0.5, 1, shape[0]).astype(np.float32),
            }
        graph.add(Node(name, op, [source], [name], values, activation))


SUMS = Precision(target=TargetForm.SUMS)
CASES: dict[str, tuple[Pair, bool, bool]] = {
    # scaled by the ranges of its activations, by those of its weights
    "convolutions": (Pair(), True, True),
    "a depthwise reader": (Pair(second="depthwise"), True, True),
    "a depthwise reader with two outputs each": (Pair(second="wide depthwise"), False, False),
    "a reader of groups": (Pair(second="groups"), False, False),
    "a fully connected reader": (Pair(second="fc"), True, True),
    "fully connected layers": (Pair("fc", "fc"), True, True),
    "a reader without weights": (Pair(second="pool"), False, False),
    "a limit": (Pair(activation=Clip(0.0, 6.0)), True, False),
    "a limit of a fully connected layer": (Pair("fc", "fc", Clip(0.0, 6.0)), False, False),
    "another lower limit": (Pair(activation=Clip(-1.0)), False, False),
    "no activation": (Pair(activation=None), False, True),
    "another activation": (Pair(activation=Logistic()), False, False),
    "two readers": (Pair(also="layer"), False, False),
    "an output": (Pair(also="output"), False, False),
    "real numbers": (Pair(precision=Precision(quantize=False)), False, True),
    "integers by order": (Pair(precision=Precision(quantize=True)), True, True),
    "something between": (Pair(between="same"), False, False),
    "channels without values": (Pair(dead=True), False, True),
    "sums that are rounded behind": (Pair(between="convert", precision=SUMS), True, False),
    "sums with a limit": (Pair(activation=Clip(0.0, 6.0), between="convert", precision=SUMS), False, False),
    "sums with two readers": (Pair(between="convert", precision=SUMS, also="layer"), False, False),
    "sums that something else reads": (Pair(precision=SUMS), False, True),
    "sums that a pool reads": (Pair(between="pool", precision=SUMS), False, False),
}


@pytest.fixture(scope="module")
def batches() -> list[np.ndarray]:
    return list(np.random.default_rng(2).normal(size=(3, 8, 3, 4, 4)).astype(np.float32))


@pytest.mark.parametrize("case", CASES)
def test_which_tensors_have_factors(case, batches):
    pair, wanted, _ = CASES[case]
    graph = pair.graph()
    factors = channel_factors(graph, batches)
    assert (list(factors) == ["a"]) == wanted and len(factors) == wanted
    scaled = scale_channels(graph, factors)
    before, after = (run_graph(each, {"x": np.concatenate(batches)}) for each in (graph, scaled))
    for name in set(graph.outputs) - {"a"}:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-4, atol=1e-3)
    if wanted:
        assert factors["a"].shape == (CHANNELS,) and factors["a"].min() == 1.0 < factors["a"].max()
        largest = run_graph(scaled, {"x": np.concatenate(batches)}, ["a"])["a"].reshape(24, CHANNELS, -1).max(axis=(0, 2))
        assert largest.max() / largest.min() < 40
    limits = scaled.node("a").activation
    if pair.activation == Clip(0.0, 6.0) and wanted:
        assert limits == ChannelClip(0.0, tuple(float(each) for each in 6.0 * factors["a"]))
    else:
        assert limits == pair.activation


def test_without_stimuli_nothing_is_scaled():
    assert channel_factors(Pair().graph(), []) == {}


@pytest.mark.parametrize("case", CASES)
def test_which_weights_are_equalized(case, batches):
    pair, _, wanted = CASES[case]
    graph = pair.graph()
    equal = equalize(graph)
    before, after = (graph.node("a").params["weights"], equal.node("a").params["weights"])
    assert np.array_equal(before, after) != (wanted and not pair.dead)
    values = [run_graph(each, {"x": batches[0]}) for each in (graph, equal)]
    for name in set(graph.outputs) - {"a"}:
        np.testing.assert_allclose(values[1][name], values[0][name], rtol=1e-3, atol=1e-3)
    if wanted and not pair.dead:
        rows = np.abs(after.reshape(len(after), -1)).max(axis=1)
        read = np.abs(equal.node("b").params["weights"])
        if pair.second == "fc":
            read = read.reshape(len(read), CHANNELS, -1).max(axis=(0, 2))
        else:
            read = read.reshape(CHANNELS, -1).max(axis=1) if "depthwise" in pair.second else read.max(axis=(0, 2, 3))
        np.testing.assert_allclose(rows, read, rtol=1e-2)
