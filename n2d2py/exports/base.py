"""The contract of a target: its request, preparation, files and runner."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from n2d2py.contracts.quant.options import IntegerKinds
from n2d2py.errors import ErrorList, InternalError, N2D2Error
from n2d2py.exports.stimuli import StoredStimuli
from n2d2py.exports.writer import Manifest
from n2d2py.graph import InputContract, Node, QuantGraph
from n2d2py.ini import ExportParameters, Schema
from n2d2py.memory.constants import Constant
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.postprocessing import files_of, with_files
from n2d2py.runtime.runner import Runner

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class ScoredOutput:
    """Scoring of a network output against the labels of the samples.

    Attributes:
        top_n: a label counts as found if it is among the `top_n` largest channels.
        threshold: for an output of one channel: the real value above which the label is 1.
    """

    output: str
    top_n: int = 1
    threshold: float = 0.5


@dataclass(frozen=True)
class KernelChoice:
    """Kernel of a layer, for the report.

    Attributes:
        kernel: the implementation; "portable" runs everywhere, "none" for a layer without code.
        sets: instruction sets that use it, the portable kernel runs on others; empty for all.
        reason: why it was chosen, or why better ones do not apply.
        weight_bits: bits of a weight if several are packed into a byte; 0 for whole bytes.
        weight_bytes: bytes of the weights without packing.
        prepacked_bytes: static memory of weights that are unpacked once, the maximum over `sets`.
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
    """The input of an export; plain data that no export changes.

    Attributes:
        stimuli: test samples of the project; may be empty.
        targets: the scored outputs, in the order of the labels.
        problem, plan: static memory in HWC; None for targets that place memory themselves.
        parameters: export parameters by name (`-export-parameters`); others have their default.
        layer_parameters: raw parameters of single layers, by layer name.
        options: options of the run that shape the export, for the manifest and the README.
        hashes: digest of each input of the run (network, weights, data) by name, for the manifest.
        contract: images that the network takes, and class names.
        post: post-processing of the outputs (`-post`); None without.
        app: application around the network (`-app`); None without.
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
        """`plan` of a target that requires one."""
        if self.plan is None:
            raise InternalError("the export was asked for without a memory plan")
        return self.plan


@dataclass(frozen=True)
class QuantDefaults(IntegerKinds):
    """Quantization defaults and limits of a target.

    Attributes:
        unsigned: nonnegative tensors may be unsigned, and others may have a zero point; False: all are signed and symmetric.
        per_output: weights may have a scale for each output channel; False: one scale for each layer.
        rescaling: mode of the rescaling, as in `-act-rescaling-mode`; "" for the tool's default.
        own_rescaling: accumulators are requantized by the runtime's arithmetic, whatever `-act-rescaling-mode` says.
        input_bits, output_bits: width of network inputs and outputs; 0: the tool chooses.
        mixed: single tensors may have 16 bits in an 8-bit network.
        reduce_range: weights are limited so that two 8-bit products fit 16 bits.
        softmax_rows: a Softmax over channels may become an integer Softmax over rows.
        last_softmax: a Softmax at an output stays; False: it is dropped.
        integer_layers: the layers that run in integers; each quantizes its input, and all others are float
            (quant/types/float_fallback.py); None: all layers with an integer form.
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
        """Command line options that have no effect on this target."""
        return (
            *(("act-rescaling-mode",) if self.own_rescaling else ()),
            *(() if self.unsigned else ("no-unsigned", "no-zero-points")),
            *(() if self.mixed else ("mixed-precision", "no-mixed-precision")),
            *(() if self.per_output else ("act-rescale-per-output",)),
            *(("wt-reduce-range",) if self.reduce_range else ()),
        )


@dataclass(frozen=True)
class Prepared(Generic[ResultT]):
    """Answer of a target to a request: a result that can be written, or the reasons against it.

    Attributes:
        problems: one error for each layer, type or parameter that the target does not support.
        content: input of the target's `write`; the type is the target's own.
    """

    request: ExportRequest
    problems: Sequence[N2D2Error] = ()
    content: ResultT | None = None

    def check(self) -> None:
        """Raise all problems together."""
        ErrorList.raise_if(list(self.problems))

    @property
    def result(self) -> ResultT:
        """The content. Raise all problems together."""
        self.check()
        if self.content is None:
            raise InternalError("an export was prepared with neither a result nor a problem")
        return self.content


class Target(Generic[ResultT]):
    """Everything about a target. One folder holds the class and its helpers.

    `prepare` does the work and finds all problems; `write` writes its result.

    Attributes:
        name: as in `-export NAME` and in the folder's name.
        aliases: names of this target in N2D2, accepted with a notice.
        stands_in_for: N2D2 exports that do not exist here; the error proposes this target.
        parameters: the schema of its export parameters; unknown ones cause a warning. A target with a `parameter_type` has that
            of this class.
        parameter_type: the class whose attributes are the values of its export parameters.
        layer_parameters: its parameters of single layers, in addition to the precision.
        in_floats: it accepts float networks, whatever its parameters.
        needs_plan: requests must have `problem` and `plan`.
        adds_residuals: its convolutions can add a residual (`QuantNode.residual`).
        keeps_states: its networks keep states between calls.
        converts_inputs: its exports contain the conversion of `InputContract.source`.
        post_processes: its exports contain the post-processing of -post.
        has_apps: its exports contain the application of -app.
        codes: its own errors and warnings by code, each with meaning and general remedy; for its page.
        runner: runs a written export for `-test` and `-compare`; None if it cannot run on this machine.
    """

    name: str = ""
    aliases: tuple[str, ...] = ()
    stands_in_for: tuple[str, ...] = ()
    parameters: Schema = Schema("export parameters", ())
    parameter_type: type[ExportParameters] = ExportParameters
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

    def __init_subclass__(cls) -> None:
        if "parameter_type" in vars(cls):
            cls.parameters = cls.parameter_type.schema(cls.name)

    def overruled(self, parameters: Mapping[str, Any], graph: QuantGraph) -> dict[str, str]:
        """Return its parameters that others, or the network, make ineffective, each with the reason."""
        return {}

    def quantization_with(self, parameters: Mapping[str, Any]) -> QuantDefaults:
        """Return `quantization` under these parameters."""
        return self.quantization

    def as_computed(self, graph: QuantGraph, parameters: Mapping[str, Any]) -> QuantGraph:
        """Return the typed network with the arithmetic of the runtime that runs the export, if it differs from the tool's.

        Simulator, scores and comparisons then show the results of the export. Tensors keep their names, shapes and scales.
        """
        return graph

    def scratch_needs(self, graph: QuantGraph, plan: MemoryPlan, parameters: Mapping[str, Any]) -> Mapping[str, ScratchNeed]:
        """Return the workspaces of its kernels, by layer, for a plan of the tensors."""
        return {}

    def constant_needs(self, graph: QuantGraph, plan: MemoryPlan, parameters: Mapping[str, Any]) -> Sequence[Constant] | None:
        """Return the constants of a planned network for the memories of `Memories`; None if the export does not place them."""
        return None

    def prepare(self, request: ExportRequest) -> Prepared[ResultT]:
        """Do all work that can fail because of the network or the parameters, without writing anything: the result of `make`,
        or its errors; E704 for a network without layers."""
        if not request.graph.nodes:
            return Prepared(request, [no_layers(request.graph)])
        try:
            return Prepared(request, (), self.make(request))
        except ErrorList as problems:
            return Prepared(request, problems.errors)
        except N2D2Error as problem:
            return Prepared(request, [problem])

    def make(self, request: ExportRequest) -> ResultT:
        """Return the content of an export. Raise an error, or an ErrorList, for what the target does not support."""
        raise NotImplementedError

    def details(self, prepared: Prepared[ResultT]) -> dict[str, Any]:
        """Return details of this export for the manifest and the runner, as plain JSON values."""
        return {}

    def constant_bytes(self, prepared: Prepared[ResultT]) -> dict[str, int]:
        """Return the bytes of constants by layer."""
        return {
            node.name: sum(int(np.asarray(array).nbytes) for array in node.params.values())
            for node in prepared.request.graph.nodes
        }

    def manifest(self, prepared: Prepared[ResultT]) -> Manifest:
        """Return the manifest of the export."""
        request = prepared.request
        details = {**self.details(prepared), "contract": request.contract.fields()}
        if request.post and self.post_processes:
            details["post"] = with_files(request.post, {key: f"{key}.npy" for key in files_of(request.post)})
        return Manifest(self.name, request.graph.name, request.options, request.parameters, request.hashes, details)

    def write(self, prepared: Prepared[ResultT], folder: Path) -> list[KernelChoice] | None:
        """Write the project into an existing folder, without its manifest; return the kernel of each layer, None without a
        choice. Raise the problems found by `prepare`; nothing is written then."""
        raise NotImplementedError

    def reduced_range_gain(self, prepared: Prepared[ResultT]) -> float:
        """Estimate how many times faster `-wt-reduce-range` makes the export on this machine; 1 where it changes nothing."""
        return 1.0

    def check_tunable(self, parameters: Mapping[str, Any]) -> None:
        """Raise E808 if `-tune` has nothing to measure."""
        what = f"-tune is not supported by {self.name}, which has no tiles"
        raise N2D2Error("E808", what, remedy="remove -tune, or tune an export for one instruction set")

    def tune(
        self, prepared: Prepared[ResultT], folder: Path, kernels: Sequence[KernelChoice], rounds: int, command: str
    ) -> ExportRequest:
        """Return the request with the best variants that `-tune` measured for the export in `folder`."""
        raise NotImplementedError


def graph_ports(graph: QuantGraph) -> list[tuple[str, str]]:
    """Return ("input" or "output", name) of every network input and output."""
    return [("input", name) for name in graph.inputs] + [("output", name) for name in graph.outputs]


def no_layers(graph: QuantGraph) -> N2D2Error:
    """Return E704, for a network without any layer left to export."""
    what = f"the model '{graph.name}' has no layer to export"
    return N2D2Error("E704", what, remedy="connect an output to an input through a layer")
