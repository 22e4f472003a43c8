"""The contract of an export, what it is given, and the registry of all exports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from n2d2py.errors import ErrorList, InternalError, N2D2Error, nearest
from n2d2py.export.stimuli import Stimuli
from n2d2py.export.writer import Manifest
from n2d2py.graph import QuantGraph
from n2d2py.graph.inputs import Pixels
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem

__all__ = ["GROUP", "ExportRequest", "Exporter", "KernelChoice", "Target", "exporter", "exporters", "register"]

GROUP = "n2d2py.exports"
_BUILT_IN = {"CPP": "n2d2py.export.cpp.exporter", "NVDLA": "n2d2py.export.nvdla"}
"""Module of each export of this package; importing it registers the export."""


@dataclass(frozen=True)
class Target:
    """How an output of the network is scored against the labels of the stimuli.

    Attributes:
        output: tensor name of the output.
        top_n: a label is found when it is among the `top_n` largest channels.
        threshold: for an output of one channel: the real value above which the label is 1.
    """

    output: str
    top_n: int = 1
    threshold: float = 0.5


@dataclass(frozen=True)
class KernelChoice:
    """What runs a layer, for the report.

    Attributes:
        layer: its name.
        kernel: the implementation; "portable" for the one that runs everywhere, "none" for a layer without code.
        sets: the instruction sets that it is for; elsewhere the portable one runs. Empty for every one.
        reason: why this one: what the layer has, or what ruled out the better ones.
        tiles: whether it works in tiles whose size can be chosen.
    """

    layer: str
    kernel: str
    sets: tuple[str, ...] = ()
    reason: str = ""
    tiles: bool = False


@dataclass(frozen=True)
class ExportRequest:
    """Everything an export may use; plain data that no export changes.

    Attributes:
        graph: the typed network.
        stimuli: what the project is tested with; may hold none.
        targets: the scored outputs, in the order of the labels of the stimuli.
        problem, plan: the static memory, in HWC; None for targets that place memory themselves.
        parameters: export parameters by name (`-export-parameters`); absent ones have their default.
        layer_parameters: raw parameters of single layers, by layer name.
        options: the options of the run that shape the export, for the manifest and the README.
        hashes: digest by name of each input of the run (network, weights, data), for the manifest.
        pixels: how a picture of bytes becomes the input, where the data are such pictures and that is known.
    """

    graph: QuantGraph
    stimuli: Stimuli = Stimuli()
    targets: tuple[Target, ...] = ()
    problem: MemoryProblem | None = None
    plan: MemoryPlan | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    layer_parameters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    pixels: Pixels | None = None

    @property
    def memory_plan(self) -> MemoryPlan:
        """`plan`, of a target that needs one."""
        if self.plan is None:
            raise InternalError("an export without its memory plan")
        return self.plan


class Exporter:
    """Writes a network for one target.

    Attributes:
        name: as in `-export NAME` and in the folder's name.
        needs_plan: whether requests must come with `problem` and `plan`.
        adds_residuals: whether its convolutions can do the sums that a plan gives them (`Plane.sum`).
        parameters, layer_parameters: names of the export parameters that it reads, and of those of single layers besides
            the precision; None for an export that does not say. Others that are given are warned of.
    """

    name: str = ""
    needs_plan: bool = True
    adds_residuals: bool = False
    parameters: Collection[str] | None = None
    layer_parameters: Collection[str] | None = None

    def problems(self, request: ExportRequest) -> list[N2D2Error]:
        """One error for each layer, type or parameter that this target cannot take; writes nothing."""
        raise NotImplementedError

    def check(self, request: ExportRequest) -> None:
        """Raises the problems of the request, all together; an InternalError without a needed plan."""
        if self.needs_plan and request.plan is None:
            raise InternalError(f"the {self.name} export was asked for without a memory plan")
        ErrorList.raise_if(self.problems(request))

    def overruled(self, parameters: Mapping[str, Any]) -> dict[str, str]:
        """Of the parameters that it reads, those that others leave without effect, each with the reason."""
        return {}

    def details(self, request: ExportRequest) -> dict[str, Any]:
        """What readers of the manifest need to know of this target; plain JSON values."""
        return {}

    def manifest(self, request: ExportRequest) -> Manifest:
        """The manifest of the export of `request`, for ExportFolder."""
        return Manifest(
            self.name, request.graph.name, request.options, request.parameters, request.hashes, self.details(request)
        )

    def write(self, request: ExportRequest, folder: Path) -> list[KernelChoice] | None:
        """Writes the project of a checked request into an existing folder, without its manifest.

        Returns what runs each layer, for the report; None where there is no choice.
        """
        raise NotImplementedError


_exporters: dict[str, Exporter] = {}


def register(new: Exporter) -> None:
    """Makes an export known under its name; raises InternalError when the name is taken."""
    if new.name in _exporters:
        raise InternalError(f"the export {new.name} is registered twice")
    _exporters[new.name] = new


def exporters() -> tuple[str, ...]:
    """The names of all exports: those of this package, then those of installed plugins, sorted."""
    return (*_BUILT_IN, *sorted({*_exporters, *_plugins()} - set(_BUILT_IN)))


def exporter(name: str) -> Exporter:
    """The export of that name.

    Raises:
        N2D2Error: E700 for an unknown name, with the known ones; E714 when two plugins claim the name
            or its plugin cannot be loaded.
    """
    if name in _exporters:
        return _exporters[name]
    if name in _BUILT_IN:
        import_module(_BUILT_IN[name])
        return _exporters[name]
    plugins = _plugins()
    if name not in plugins:
        close = nearest(name, exporters())
        raise N2D2Error(
            "E700",
            f"the export '{name}' is unknown",
            where="-export",
            remedy=(f"did you mean {close}? " if close else "") + f"known: {', '.join(exporters())}",
        )
    if len(plugins[name]) > 1:
        raise N2D2Error(
            "E714",
            f"the export '{name}' is provided by {' and '.join(sorted(plugins[name]))}",
            remedy="uninstall one of the packages",
        )
    _exporters[name] = _load(name, plugins[name][0])
    return _exporters[name]


def _plugins() -> dict[str, list[str]]:
    """Entry point values ("module:object") by export name; names of this package are not theirs to take."""
    found: dict[str, list[str]] = {}
    for entry in entry_points(group=GROUP):
        if entry.name not in _BUILT_IN and entry.value not in found.get(entry.name, []):
            found.setdefault(entry.name, []).append(entry.value)
    return found


def _load(name: str, value: str) -> Exporter:
    (entry,) = {e.value: e for e in entry_points(group=GROUP) if e.name == name and e.value == value}.values()
    try:
        loaded = entry.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        raise N2D2Error(
            "E714",
            f"the plugin {value} of the export '{name}' cannot be loaded: {type(error).__name__}: {error}",
            remedy="repair or uninstall its package",
        ) from error
    made = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(made, Exporter) or made.name != name:
        raise N2D2Error(
            "E714", f"the plugin {value} is not an Exporter named '{name}'", remedy="repair or uninstall its package"
        )
    return made
