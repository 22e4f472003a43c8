"""The contract of a target: what an export is given, what it prepares, writes and runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from n2d2py.errors import ErrorList, InternalError, N2D2Error
from n2d2py.exports.stimuli import StoredStimuli
from n2d2py.exports.writer import Manifest
from n2d2py.graph import Node, QuantGraph
from n2d2py.graph.inputs import InputContract
from n2d2py.ini.schema import Schema
from n2d2py.memory.constants import Constant
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.postprocessing import files_of, with_files
from n2d2py.quant.options import IntegerKinds
from n2d2py.runtime.runner import Runner

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class ScoredOutput:
    """Scoring of an output of the network against the labels of the stimuli.

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
    """Kernel of a layer, for the report.

    Attributes:
        layer: its name.
        kernel: the implementation; "portable" for the one that runs everywhere, "none" for a layer without code.
        sets: the instruction sets that it is for; elsewhere the portable one runs. Empty for every one.
        reason: why this one: what the layer has, or what ruled out the better ones.
        tiles: whether it works in tiles whose size can be chosen.
        weight_bits: bits that a weight takes where several are packed into a byte; 0 for whole bytes.
        weight_bytes: bytes of the weights unchanged packed.
        prepacked_bytes: of static memory that they take where they are unpacked once, at most over `sets`.
    """

    layer: str
    kernel: str
    sets: tuple[str, ...] = ()
    reason: str = ""
    tiles: bool = False
    weight_bits: int = 0
    weight_bytes: int = 0
    prepacked_bytes: int = 0


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
        contract: images that the network takes, and names of its classes.
        post: post-processing of the outputs (`-post`); None without one.
        app: the application around the network (`-app`); None without one.
    """

    graph: QuantGraph
    stimuli: StoredStimuli = StoredStimuli()
    targets: tuple[ScoredOutput, ...] = ()
    problem: MemoryProblem | None = None
    plan: MemoryPlan | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    layer_parameters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    contract: InputContract = InputContract()
    post: str | None = None
    app: str | None = None

    @property
    def memory_plan(self) -> MemoryPlan:
        """`plan`, of a target that needs one."""
        if self.plan is None:
            raise InternalError("the export was asked for without a memory plan")
        return self.plan


@dataclass(frozen=True)
class QuantDefaults(IntegerKinds):
    """Defaults of the integers of a target, and its limits.

    Attributes:
        unsigned: whether tensors without negative values may be unsigned, and others have a zero point; False: all are
            signed and symmetric.
        per_output: whether weights may have a scale for each output channel; False: one scale for each layer.
        rescaling: mode of the rescaling, as in `-act-rescaling-mode`; "" for that of the tool.
        own_rescaling: whether sums become integers by an arithmetic of the runtime, whatever `-act-rescaling-mode`.
        input_bits, output_bits: width of the network's inputs and outputs; 0: the tool chooses.
        mixed: whether single tensors may have 16 bits in an 8-bit network, for less rounding.
        reduce_range: whether weights are kept so small that 8-bit products fit 16 bits.
        softmax_rows: whether a Softmax over channels may become one of rows of an array, in integers.
        last_softmax: whether a Softmax at an output stays in the network of integers; False: it is dropped.
        integer_layers: the layers that sum integers, each of which rounds what it reads, while all others compute in floating point
            (quant/types/float_regions.py); None: all that have an integer form compute in integers.
    """

    unsigned: bool = True
    per_output: bool = True
    rescaling: str = ""
    own_rescaling: bool = False
    input_bits: int = 0
    output_bits: int = 0
    mixed: bool = True
    reduce_range: bool = False
    softmax_rows: bool = True
    last_softmax: bool = True
    integer_layers: Callable[[Node], bool] | None = None

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The options of the command line that ask for what the target never has, or always."""
        return (
            *(("act-rescaling-mode",) if self.own_rescaling else ()),
            *(() if self.unsigned else ("no-unsigned", "no-zero-points")),
            *(() if self.mixed else ("mixed-precision", "no-mixed-precision")),
            *(() if self.per_output else ("act-rescale-per-output",)),
            *(("wt-reduce-range",) if self.reduce_range else ()),
        )


@dataclass(frozen=True)
class Prepared(Generic[ResultT]):
    """Answer of a target to a request: a result that can be written, or all reasons why there is none.

    Attributes:
        problems: one error for each layer, type or parameter that the target cannot take.
        content: what the target's `write` prints; its type is the target's own.
    """

    request: ExportRequest
    problems: Sequence[N2D2Error] = ()
    content: ResultT | None = None

    @classmethod
    def of(cls, request: ExportRequest, make: Callable[[], ResultT]) -> Prepared[ResultT]:
        """Result of `make`, or its errors."""
        try:
            return cls(request, (), make())
        except ErrorList as problems:
            return cls(request, problems.errors)
        except N2D2Error as problem:
            return cls(request, [problem])

    def check(self) -> None:
        """Raise the problems, all together."""
        ErrorList.raise_if(list(self.problems))

    @property
    def result(self) -> ResultT:
        """The content.

        Raises:
            ErrorList: the problems, all together.
        """
        self.check()
        if self.content is None:
            raise InternalError("an export was prepared with neither a result nor a problem")
        return self.content


class Target(Generic[ResultT]):
    """All that the tool knows of a target; one folder holds the class and what it uses.

    `prepare` does the work and finds all problems; `write` prints what it made.

    Attributes:
        name: as in `-export NAME` and in the folder's name.
        aliases: names of N2D2's exports that are this one; they are taken with a notice.
        stands_in_for: names of N2D2's exports that there are none of; the error names this one as the nearest.
        parameters: the export parameters that it reads. Others that are given are warned of.
        layer_parameters: the parameters of single layers that it reads, besides those of the precision.
        quantization: what its integers are like.
        in_floats: whether it takes networks in floating point, whatever its parameters.
        needs_plan: whether requests must come with `problem` and `plan`.
        adds_residuals: whether its convolutions can do a sum too (`QuantNode.residual`).
        keeps_states: whether its networks keep states between calls.
        converts_inputs: whether its exports contain the conversion of `InputContract.source`.
        post_processes: whether its exports contain the post-processing of -post.
        has_apps: whether its exports contain the application of -app.
        codes: its own errors and warnings by code, each with its meaning and the general remedy; for its page.
        runner: runs a written export for `-test` and `-compare`; None for a target that cannot run on this machine.
    """

    name: str = ""
    aliases: tuple[str, ...] = ()
    stands_in_for: tuple[str, ...] = ()
    parameters: Schema = Schema("export parameters", ())
    layer_parameters: Schema = Schema("export parameters of a layer", ())
    quantization: QuantDefaults = QuantDefaults()
    in_floats: bool = True
    needs_plan: bool = True
    adds_residuals: bool = False
    keeps_states: bool = False
    converts_inputs: bool = False
    post_processes: bool = False
    has_apps: bool = False
    codes: Mapping[str, tuple[str, str]] = MappingProxyType({})
    runner: type[Runner] | None = None

    def overruled(self, parameters: Mapping[str, Any], bits: int) -> dict[str, str]:
        """Of the parameters that it reads, those that others, or the precision `bits` (-nbbits), leave without effect, each with the
        reason."""
        return {}

    def quantization_with(self, parameters: Mapping[str, Any]) -> QuantDefaults:
        """`quantization` under these parameters."""
        return self.quantization

    def as_computed(self, graph: QuantGraph, parameters: Mapping[str, Any]) -> QuantGraph:
        """The typed network with the arithmetic of what runs the export, where that is not the tool's own: its simulator, scores and
        comparisons then show what users of the export get. Tensors keep their names, shapes and scales."""
        return graph

    def scratch_needs(self, graph: QuantGraph, plan: MemoryPlan, parameters: Mapping[str, Any]) -> Mapping[str, ScratchNeed]:
        """Scratch of its kernels, by layer, in a plan of the tensors."""
        return {}

    def constant_needs(self, graph: QuantGraph, plan: MemoryPlan, parameters: Mapping[str, Any]) -> Sequence[Constant] | None:
        """The constants of a planned network, which the memories of `Memories` hold; None if the export does not place them."""
        return None

    def prepare(self, request: ExportRequest) -> Prepared[ResultT]:
        """Does all work that can fail because of the network or the parameters; writes nothing.

        Raises:
            InternalError: for a request that makes no sense, such as one without a memory plan that the target needs.
        """
        raise NotImplementedError

    def details(self, prepared: Prepared[ResultT]) -> dict[str, Any]:
        """Details of this export for readers of the manifest and the runner; plain JSON values."""
        return {}

    def constant_bytes(self, prepared: Prepared[ResultT]) -> dict[str, int]:
        """Bytes of the constants of each layer, by its name."""
        return {
            node.name: sum(int(np.asarray(array).nbytes) for array in node.params.values())
            for node in prepared.request.graph.nodes
        }

    def manifest(self, prepared: Prepared[ResultT]) -> Manifest:
        """The manifest of the export, for ExportFolder."""
        request = prepared.request
        details = {**self.details(prepared), "contract": request.contract.fields()}
        if request.post and self.post_processes:
            details["post"] = with_files(request.post, {key: f"{key}.npy" for key in files_of(request.post)})
        return Manifest(self.name, request.graph.name, request.options, request.parameters, request.hashes, details)

    def write(self, prepared: Prepared[ResultT], folder: Path) -> list[KernelChoice] | None:
        """Write the project into an existing folder, without its manifest.

        Returns what runs each layer, for the report; None where there is no choice.

        Raises:
            ErrorList: the problems of what was prepared; nothing is written.
        """
        raise NotImplementedError

    def reduced_range_gain(self, prepared: Prepared[ResultT]) -> float:
        """Estimate how many times faster `-wt-reduce-range` makes the export on this machine; 1 where it changes nothing."""
        return 1.0

    def check_tunable(self, parameters: Mapping[str, Any]) -> None:
        """Raise E808 where `-tune` has nothing to measure."""
        what = f"-tune is not supported by {self.name}, which has no tiles"
        raise N2D2Error("E808", what, remedy="remove -tune, or tune an export for one instruction set")

    def tune(
        self, prepared: Prepared[ResultT], folder: Path, kernels: Sequence[KernelChoice], rounds: int, command: str
    ) -> ExportRequest:
        """The request with the best of what `-tune` measures of the export in `folder`."""
        raise NotImplementedError


def graph_ports(graph: QuantGraph) -> list[tuple[str, str]]:
    """("input" or "output", name) of every input and output of a network."""
    return [("input", name) for name in graph.inputs] + [("output", name) for name in graph.outputs]


def no_layers(graph: QuantGraph) -> N2D2Error:
    """E704, for a network of which nothing is left to export."""
    return N2D2Error(
        "E704", f"the model '{graph.name}' has no layer to export", remedy="connect an output to an input through a layer"
    )
