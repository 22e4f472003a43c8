"""Running a written export on this machine, whatever its target: the contract and the registry."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np

from n2d2py.errors import InternalError
from n2d2py.export import Manifest
from n2d2py.graph import QuantGraph
from n2d2py.runtime.base import Network

__all__ = ["Runner", "register_runner", "runner"]

_BUILT_IN = {"CPP": "n2d2py.runtime.compiled", "NVDLA": "n2d2py.runtime.loadable"}
"""Module of the runner of each export of this package; importing it registers the runner."""


class Runner:
    """``with runner("CPP")(folder, manifest) as project:`` a written export, ready to run in a place of its own.

    The export in `folder` stays as written; what the run needs besides is removed at the end.

    Attributes:
        export: name of the export that it runs.
        label: row label of its scores.
        remedy: what to do about what is missing, as in "install g++ and make".
        slack: share of a layer's range by which its values may differ from Python's; 0 for an export that computes in
            Python's own arithmetic. With slack, layers give real values by tensor.
    """

    export: str = ""
    label: str = ""
    remedy: str = ""
    slack: float = 0.0

    def __init__(self, folder: Path, manifest: Manifest):
        raise NotImplementedError

    @classmethod
    def missing(cls) -> str:
        """What this machine lacks to run such exports, as in "no C++ compiler or make"; empty when nothing."""
        return ""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        return None

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        """Stored outputs (count, C, H, W) by tensor over the `count` stimuli of the export."""
        raise NotImplementedError

    def sizes(self) -> dict[str, int]:
        """Bytes of what was built, by what they are for, such as "arena", "stack", "constants"; empty where not known."""
        return {}

    def network(self) -> Network:
        """The export as a network on stored values; its `layers` may leave out layers that the target merged."""
        raise NotImplementedError


RunnerT = TypeVar("RunnerT", bound=Runner)

_runners: dict[str, type[Runner]] = {}


def register_runner(new: type[RunnerT]) -> type[RunnerT]:
    """Class decorator: makes a runner known for its export; raises InternalError when there is one already."""
    if new.export in _runners:
        raise InternalError(f"the export {new.export} has two runners")
    _runners[new.export] = new
    return new


def runner(export: str) -> type[Runner] | None:
    """The runner of an export; None for an export that cannot be run here."""
    if export in _BUILT_IN:
        import_module(_BUILT_IN[export])
    return _runners.get(export)
