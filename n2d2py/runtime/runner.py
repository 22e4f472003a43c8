"""Running a written export on this machine: the contract of what a target brings for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from n2d2py.graph import QuantGraph
from n2d2py.runtime.base import Network

# ---- latency -------------------------------------------------------------------------------------
_ROW = re.compile(r"(?P<title>\S.*?) +(?P<kind>\S+) +(?P<median>[\d.]+) +[\d.]+% +(?P<least>[\d.]+)(?P<rest>(?: +[\d.]+%?)*)")


@dataclass(frozen=True)
class LayerTime:
    """Microseconds of one layer: median and least of all inferences.

    Attributes:
        limit: least time that the machine would need for its products or its bytes, over the time that it took, in
            percent; None where the machine's limit is not known.
    """

    layer: str
    median_us: float
    least_us: float
    limit: float | None = None


@dataclass(frozen=True)
class Latency:
    """Microseconds of one inference, and of its layers in the order in which they run.

    Attributes:
        inferences: how many were timed.
        source: what measured, where; for people.
    """

    median_us: float
    least_us: float
    threads: int
    inferences: int
    source: str
    layers: tuple[LayerTime, ...] = ()

    @property
    def bound(self) -> float | None:
        """Share of the machine's limit that the layers reach together, in percent; None where it is not known."""
        known = [layer for layer in self.layers if layer.limit is not None]
        took = sum(layer.least_us for layer in known)
        return sum(layer.least_us * (layer.limit or 0.0) for layer in known) / took if took > 0 else None


def read_profile(text: str) -> tuple[LayerTime, ...]:
    """Return the layers that `run_export -profile` printed."""
    layers = []
    for row in filter(None, (_ROW.fullmatch(line.strip()) for line in text.splitlines()[1:])):
        last = row["rest"].rpartition(" ")[2]
        limit = float(last[:-1]) if last.endswith("%") else None
        layers.append(LayerTime(row["title"], float(row["median"]), float(row["least"]), limit))
    return tuple(layers)


AT_MOST = ", at most"
"""Suffix of the name of a size that is a bound."""


STEP_SLACK = 1.5 / 255
"""Share of a layer's range by which another runtime's 8-bit integers may differ: it rounds elsewhere, so by a step."""
REAL_SLACK = 1e-4
"""Share of a layer's range by which another runtime's floating point may differ."""


class Runner:
    """``with target.runner(folder, details) as project:`` a written export, ready to run in a separate place.

    The export in `folder` stays as written; what the run needs besides is removed at the end.

    Attributes:
        label: row label of its scores.
        remedy: what to do about what is missing, as in "install g++ and make".
        slack: share of a layer's range by which its values may differ from Python's; 0 for an export that computes in
            Python's own arithmetic. With slack, layers give real values by tensor.
    """

    label: str = ""
    remedy: str = ""
    slack: float = 0.0

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        """`details`: facts of the export that are for its manifest."""
        raise NotImplementedError

    @classmethod
    def missing(cls, parameters: Mapping[str, Any]) -> str:
        """Return the tools that this machine lacks to run an export with such export parameters, as in "no C++ compiler or
        make"; empty if it has all."""
        return ""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        return None

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        """Return the stored outputs (count, C, H, W) by tensor over the `count` stimuli of the export."""
        raise NotImplementedError

    def sizes(self) -> dict[str, int]:
        """Return the bytes of what was built, by what they are for, such as "arena", "stack", "constants"; empty where not
        known.

        A name ends with `AT_MOST` where the size is a bound: of the stack, where the compiler wrote no calls (or a compiler
        cache lost them).
        """
        return {}

    def instructions(self) -> tuple[str, int, bool] | None:
        """Return a processor, its instructions per inference, and whether every input takes as many; None if not counted."""
        return None

    def conversion_cost(self, inferences: int) -> str:
        """Return the instructions, or the time of `inferences`, of converting a frame or a sound; empty if not measured."""
        return ""

    def built_with(self) -> str:
        """Name of the compiler, such as the first line of `g++ --version`; empty without one."""
        return ""

    def latency(self, inferences: int) -> Latency | None:
        """Return the time of an inference over as many; None if the time on this target says nothing about the network."""
        return None

    def network(self) -> Network:
        """Return the export as a network on stored values; its `stored_layers` may leave out layers that the target merged."""
        raise NotImplementedError


class PackageRunner(Runner):
    """Runs an export in a package of another project.

    The details have `integers`, whether the network computes in integers, and `file`, the name of the model in the folder.
    The runner is its own network: `stored_layers` returns real values (N, C, ...) by tensor, for the stored inputs.

    Attributes:
        module: what is imported of the package.
    """

    module: str = ""
    slack: float = STEP_SLACK

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        self._folder, self._details = folder, details
        if not details["integers"]:
            self.slack = REAL_SLACK

    @classmethod
    def missing(cls, parameters: Mapping[str, Any]) -> str:
        return "" if find_spec(cls.module) else f"no {cls.module.replace('_', '-')}"

    def network(self) -> Any:
        return self

    def sizes(self) -> dict[str, int]:
        return {"model": (self._folder / self._details["file"]).stat().st_size}


def stack_samples(samples: Iterable[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the values of each tensor over all samples, (N, ...)."""
    values: dict[str, list[np.ndarray]] = {}
    for sample in samples:
        for name, array in sample.items():
            values.setdefault(name, []).append(array)
    return {name: np.stack(arrays) for name, arrays in values.items()}
