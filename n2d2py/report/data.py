"""Data of a report: plain references to the results of the stages."""

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
from n2d2py.report.footprint import Footprint
from n2d2py.report.pipeline import PipelineData
from n2d2py.runtime import Latency
from n2d2py.targets import Score


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
        network: name of the network.
        graph: the fused float network; holds the real weights.
        qgraph: the typed network that is exported.
        options: options of the run by name, in the order to show.
        quant: options of the quantization; None for a float export.
        histograms: of the calibrated tensors; empty without calibration.
        thresholds, rules: as `TensorTypes` has them.
        problem, plan: the static memory; both None when the target places memory itself.
        scores: (label, score) pairs; labels "float", "simulated", "compiled". The first score of a
            label is the one in the summary.
        comparisons: float against integers, layer by layer; empty when not asked for.
        fusion: what each rewrite did, a line each.
        warnings: the warnings of the run, a line each.
        pipeline: the steps of the data pipeline, a line each.
        stimuli: the compared stimuli whose outputs the integers hold worst, the worst first.
        kernels: kernel of each layer, by its name; empty for a target without a choice.
        calibrated: the typed network before a rewrite made `qgraph` of it; None where none did.
        built: bytes of the built export; None where it was not built.
        latency: its time; None where it was not timed.
        instructions: as `Runner.instructions`; None where they were not counted.
        losses: cost of each layer in integers, the worst first, over `losses_stimuli`.
        search: choice of bits under a budget; None without.
        images: image bytes (H, W) or (H, W, 3) of misclassified stimuli, by their number.
        biases: results of the corrections of biases; None where none should be made.
        inputs: some calibration samples as the network reads them; empty unless these are images.
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
