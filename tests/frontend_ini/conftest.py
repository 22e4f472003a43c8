"""Builds the float graph of an INI text, without data, and runs it on given inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.errors import error_of

from n2d2py import log
from n2d2py.contracts.ini.weights import WeightStore
from n2d2py.frontend.ini.network import build_graph
from n2d2py.frontend.ini.targets import read_targets
from n2d2py.graph import Graph
from n2d2py.ini import Document, load_document
from n2d2py.reference.executor import run_graph
from n2d2py.targets.target import ScoreTarget


@dataclass
class BuildMetrics:
    """A network whose input "sp" has shape (1, C, H, W)."""

    document: Document
    graph: Graph
    targets: list[ScoreTarget]

    def run(self, x: np.ndarray, *layers: str) -> list[np.ndarray]:
        """The values of layers for the input x (n, C, H, W), computed in double precision."""
        values = run_graph(self.graph, {"sp": np.asarray(x, np.float64)}, layers)
        return [values[name] for name in layers]

    def dims(self, layer: str) -> list[int]:
        """Output dimensions X Y C of a layer."""
        c, h, w = (*self.graph.shape(layer)[1:], 1, 1)[:3]
        return [w, h, c]

    def params(self, layer: str) -> dict[str, np.ndarray]:
        return self.graph.node(layer).params


@pytest.fixture(autouse=True)
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    log.setup()
    return tmp_path


@pytest.fixture
def build() -> Callable[..., BuildMetrics]:
    """build(text, (C, H, W), weights=..., seed=...): the network of the text after an [sp] section."""

    def make(
        text: str,
        shape: tuple[int, ...] = (3, 8, 10),
        *,
        weights: Path | str | None = None,
        seed: int = 1,
        ignore_missing: bool = False,
    ) -> BuildMetrics:
        Path("net.ini").write_text("[sp]\n" + text)
        document = load_document(Path("net.ini"))
        store = WeightStore(None if weights is None else Path(weights), ignore_missing=ignore_missing)
        graph = build_graph(document, (1, *shape), store, seed)
        graph.verify()
        return BuildMetrics(document, graph, read_targets(document, graph))

    return make


@pytest.fixture
def refusal(build: Callable[..., BuildMetrics]) -> Callable[..., str]:
    """The errors, one per line, that building a text gives."""

    def lines(text: str, *arguments, **options) -> str:
        return "\n".join(one.line() for one in error_of(build, text, *arguments, **options).errors)

    return lines


def image(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.fixture
def stimulus() -> np.ndarray:
    """Two stimuli for the default shape (3, 8, 10)."""
    return image(2, 3, 8, 10)
