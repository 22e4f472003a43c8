"""Running a written export on this machine: the contract of what a target brings for it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from n2d2py.graph import QuantGraph
from n2d2py.runtime.base import Network
from n2d2py.runtime.latency import Latency

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
        """Tools that this machine lacks to run an export with such export parameters, as in "no C++ compiler or make"; empty when nothing."""
        return ""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        return None

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        """Stored outputs (count, C, H, W) by tensor over the `count` stimuli of the export."""
        raise NotImplementedError

    def sizes(self) -> dict[str, int]:
        """Bytes of what was built, by what they are for, such as "arena", "stack", "constants"; empty where not known.

        A name ends with `AT_MOST` where the size is a bound: of the stack, where the compiler wrote no calls (or a compiler
        cache lost them).
        """
        return {}

    def instructions(self) -> tuple[str, int, bool] | None:
        """A processor, the instructions that one inference takes on it, and whether every input takes as many; None if not counted."""
        return None

    def conversion_cost(self, inferences: int) -> str:
        """Instructions, or the time where `inferences` are timed, of the conversion of a frame or a sound; empty where not measured."""
        return ""

    def built_with(self) -> str:
        """Name of the compiler, such as the first line of `g++ --version`; empty without one."""
        return ""

    def latency(self, inferences: int) -> Latency | None:
        """The time of an inference over as many; None for a target whose time says nothing about the network."""
        return None

    def network(self) -> Network:
        """The export as a network on stored values; its `stored_layers` may leave out layers that the target merged."""
        raise NotImplementedError


class PackageRunner(Runner):
    """Runs an export in a package of another project.

    The details have `integers`, whether the network computes in integers, and `file`, the name of the model in the folder.

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

    def sizes(self) -> dict[str, int]:
        return {"model": (self._folder / self._details["file"]).stat().st_size}
