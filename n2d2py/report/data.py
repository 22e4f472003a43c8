"""Data of a report: plain references to the results of the stages; RAM and flash of an export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from n2d2py.arithmetic.histogram import Histogram
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.exports import KernelChoice
from n2d2py.graph import Graph, InputContract, QuantGraph
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.quant.observe.compare import LayerComparison
from n2d2py.quant.observe.corrections import BiasCorrections
from n2d2py.quant.observe.worst import StimulusComparison
from n2d2py.quant.search.sensitivity import LayerLoss
from n2d2py.report.bits import BitSearch
from n2d2py.report.pipeline import PipelineData
from n2d2py.runtime import AT_MOST, Latency
from n2d2py.targets import Score


@dataclass(frozen=True)
class Footprint:
    """Bytes of the memory of an inference and of what is stored; None for what is not known.

    Attributes:
        arena: of the activations, as planned.
        stack: deepest stack of an inference.
        constants: weights, biases, tables.
        code: of the network, its read-only and initialized data included.
        source: who says so, for people.
        stack_bound: whether `stack` is a bound only.
        unpacked: of packed weights that are unpacked once, into static memory; None for an export without.
    """

    arena: int | None = None
    stack: int | None = None
    constants: int | None = None
    code: int | None = None
    source: str = ""
    stack_bound: bool = False
    unpacked: int | None = None

    @staticmethod
    def of_build(sizes: Mapping[str, int], compiler: str) -> Footprint:
        """From the sections of a build, named as `make size` names them."""
        code = [size for name, size in sizes.items() if name.startswith("code")]
        return Footprint(
            sizes.get("arena"),
            sizes.get("stack", sizes.get(f"stack{AT_MOST}")),
            sizes.get("constants"),
            sum(code) if code else None,
            f"linker and compiler, {compiler}" if compiler else "linker and compiler",
            f"stack{AT_MOST}" in sizes,
            sizes.get("weights, unpacked"),
        )

    @property
    def ram(self) -> int | None:
        """arena + stack, and unpacked weights; None where one is not known."""
        return None if self.arena is None or self.stack is None else self.arena + self.stack + (self.unpacked or 0)

    def ram_parts(self, at_most: str = "stack <=") -> dict[str, int | None]:
        """Return the parts of `ram`, as reports name them; `at_most`: a stack that is a bound only."""
        weights = {} if self.unpacked is None else {"weights": self.unpacked}
        return {"arena": self.arena, **weights, at_most if self.stack_bound else "stack": self.stack}

    @property
    def flash(self) -> int | None:
        """code + constants; None where one is not known."""
        return None if self.code is None or self.constants is None else self.code + self.constants

    def line(self) -> str:
        """Both on a line: "ROM 79.0 KiB (code 16.8 + data 62.2), RAM 48.8 KiB (arena 4.8 + stack 44.0)"."""
        flash = _sum("ROM", self.flash, {"code": self.code, "data": self.constants})
        ram = _sum("RAM", self.ram, self.ram_parts())
        return ", ".join(text for text in (flash, ram) if text)


def _sum(name: str, total: int | None, parts: Mapping[str, int | None]) -> str:
    """Return a figure and what it is made of, in one unit; without a total its parts alone, "" for nothing."""
    known = {part: size for part, size in parts.items() if size is not None}
    largest = max((total or 0, *known.values()))
    unit, size = next((unit for unit in (("MiB", 2**20), ("KiB", 2**10)) if largest >= unit[1]), ("B", 1))

    def short(value: int) -> str:
        return f"{value / size:.2f}" if unit == "MiB" else f"{value / size:.1f}" if unit == "KiB" else str(value)

    terms = " + ".join(f"{part} {short(value)}" for part, value in known.items())
    if total is None:
        return f"{name} {terms} {unit}" if terms else ""
    return f"{name} {short(total)} {unit} ({terms})"


@dataclass(frozen=True)
class InputImage:
    """A sample as the network reads it: its bytes (H, W) or (H, W, 3) and its least and largest real value."""

    name: str
    image: np.ndarray
    low: float
    high: float


@dataclass(frozen=True)
class ReportData:
    """Equal data give equal files. Only `built` depends on the machine's compiler, and `latency` on its time.

    Attributes:
        graph: the fused float network; holds the real weights.
        qgraph: the typed network that is exported.
        options: of the run by name, in the order to show.
        quant: options of the quantization; None for a float export.
        histograms, thresholds, rules: of the calibrated tensors, as `TensorTypes` has them.
        problem, plan: the static memory; both None when the target places memory itself.
        scores: labels are "float", "simulated", "compiled". The first score of a label is the one in the summary.
        comparisons: float against integers, layer by layer.
        fusion, warnings, pipeline: what each rewrite did, warnings of the run, steps of the data pipeline; a line each.
        stimuli: the compared stimuli whose outputs the integers hold worst, the worst first.
        kernels: kernel of each layer, by its name; empty for a target without a choice.
        calibrated: the typed network before a rewrite made `qgraph` of it; None where none did.
        built: bytes of the built export.
        latency, instructions: of the built export, as `Runner` measures them.
        losses: cost of each layer in integers, the worst first, over `losses_stimuli`.
        search: choice of bits under a budget.
        images: image bytes (H, W) or (H, W, 3) of misclassified stimuli, by their number.
        biases: results of the corrections of biases; None where none should be made.
        inputs: some calibration samples as the network reads them, of images.
        contract: images that the network takes, and names of its classes.
        estimate: figures of the target's compiler by name; the first entry says whose, and of what.
        stages: the pipeline of the export with samples; None where it is the network alone.
        command: the command line that gives these results again.
    """

    network: str
    graph: Graph
    qgraph: QuantGraph
    options: Mapping[str, object] = field(default_factory=dict)
    quant: QuantOptions | None = None
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    problem: MemoryProblem | None = None
    plan: MemoryPlan | None = None
    scores: Sequence[tuple[str, Score]] = ()
    comparisons: Sequence[LayerComparison] = ()
    fusion: Sequence[str] = ()
    warnings: Sequence[str] = ()
    pipeline: Sequence[str] = ()
    stimuli: Sequence[StimulusComparison] = ()
    kernels: Mapping[str, KernelChoice] = field(default_factory=dict)
    calibrated: QuantGraph | None = None
    built: Footprint | None = None
    latency: Latency | None = None
    instructions: tuple[str, int, bool] | None = None
    losses: Sequence[LayerLoss] = ()
    losses_stimuli: int = 0
    search: BitSearch | None = None
    images: Mapping[int, np.ndarray] = field(default_factory=dict)
    command: str = ""
    biases: BiasCorrections | None = None
    inputs: Sequence[InputImage] = ()
    contract: InputContract = InputContract()
    estimate: Mapping[str, str] = field(default_factory=dict)
    stages: PipelineData | None = None

    @property
    def typed(self) -> QuantGraph:
        """The network whose tensors were calibrated."""
        return self.calibrated or self.qgraph

    def score(self, label: str) -> Score | None:
        """Return the first score of that label."""
        return next((score for name, score in self.scores if name == label), None)

    def layer_of(self, tensor: str) -> str:
        """Return the name to show for a tensor: its layer's, or its own for inputs and layers of several outputs."""
        producer = next((node for node in self.typed.nodes if tensor in node.outputs), None)
        return producer.name if producer is not None and len(producer.outputs) == 1 else tensor
