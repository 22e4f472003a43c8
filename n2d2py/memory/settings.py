"""Export parameters of static memory, for every target whose memory the tool plans."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from n2d2py.arithmetic.exact import round_up
from n2d2py.errors import N2D2Error
from n2d2py.ini import ExportParameters, Kind, ParametersT, Params, parameter
from n2d2py.memory.plan import Memory

_LIFETIMES = ("OptimizeMaxLifetimeMinSizeFirst", "OptimizeMaxLifetimeMaxSizeFirst", "OptimizeMaxHoleMaxLifetimeFirst")
N2D2_STRATEGIES = ("None", *_LIFETIMES, "OptimizeAuto")
"""The strategies that place as N2D2 does."""
STRATEGIES = (*N2D2_STRATEGIES, "OptimizeOverlap", "OptimizeOptimal", "OptimizeReorder", "OptimizeStream")
DEFAULT_STRATEGY = "OptimizeOverlap"
MODES = ("Speed", "Balanced", "Small", "Minimum")
"""From the fastest to the smallest: no overlap; exact overlap; row streaming; the smallest plan known."""
WHOLE_MODES = MODES[:2]
"""The modes in which no layer runs row by row."""

_TEXTS = """
IncludeInputInBuffer: Place the input buffer in the static memory, where it can be overwritten.
IncludeOutputInBuffer: 1: compute the outputs in static memory and copy them to the caller. 0: write them directly into the
    caller's buffers. auto: direct where that is faster (a max pool with an addition), otherwise static memory.
OptimizeNoBranchConcat: Write the inputs of a concatenation directly to their final position where possible.
FuseResidualAdd: Fuse a residual addition into the convolution before it; the result overwrites the other operand. Used with
    the strategies of n2d2py, except for layers in stripes, and where it does not increase the memory.
BufferAlignment: Alignment of buffer addresses in bytes, for OptimizeOverlap and strategies derived from it.
MemoryManagerStrategy: Placement of buffers. N2D2 provides four orders; OptimizeAuto takes its smallest plan.
    OptimizeOverlap: outputs overlap inputs as far as the kernels allow. OptimizeOptimal: the same with a solver (needs
    ortools). OptimizeReorder: the same in the best layer order. OptimizeStream: run layers row by row through line buffers.
MemoryMode: Trade-off between speed and memory. Speed: outputs never overlap inputs. Balanced: OptimizeOverlap. Small: run
    as few layers in stripes as the budget requires. Minimum: the smallest known plan. auto: follow MemoryManagerStrategy or
    MemoryBudget; Small with StreamInput.
MemoryBudget: Limit of the static memory in bytes. The fastest plan that fits is used, up to MemoryMode. 0: same as
    MemoryMode=Minimum. -1: no limit.
Memories: Memories, each as NAME:BYTES:COST: its size (k and M are allowed) and the relative cost of a byte read or written. The
    plan moves the fewest bytes at the highest cost. The caller's arena is the cheapest memory. NAME:BYTES:COST:rom holds
    constants, NAME:BYTES:COST:states the states, in exports for microcontrollers.
MaxExtraMacs: Percentage of the multiply-accumulates that can be repeated to save memory. Stripes of layers are then also
    split vertically.
PackActivations: Pack 1-, 2- and 4-bit tensors between layers into bytes where that saves memory. Layers unpack them through
    line buffers.
StreamInput: Receive the inputs row by row through a callback. The whole input is never in memory.
"""
_ONE_MEMORY = ("budget", "extra_macs", "pack_activations")  # settings that require one memory
_OUTPUT_PLACES = {"auto": None, "0": False, "1": True}
_FORM = re.compile(r"([A-Za-z]\w*):(\d+)([kM]?):(\d+\.?\d*|\.\d+)(?::(rom|states))?", re.ASCII)
_UNITS = {"": 1, "k": 1024, "M": 1024**2}


def read_memories(texts: Sequence[str]) -> tuple[Memory, ...]:
    """Return the memories of `Memories=NAME:BYTES:COST, ...`, the cheapest first; bytes may end in k or M. Raise E603 for
    another form, an empty memory, a cost of 0, or a repeated name."""
    memories: list[Memory] = []
    for text in texts:
        parts = _FORM.fullmatch(text)
        if parts is None or int(parts[2]) < 1 or float(parts[4]) <= 0:
            raise _wrong(
                f"Memories={text} is not NAME:BYTES:COST, with :rom or :states after it or not, and a size and a cost above 0"
            )
        if parts[1].lower() in [memory.name.lower() for memory in memories]:
            raise _wrong(f"Memories= names {parts[1]} twice")
        if parts[5] == "states" and any(memory.kind == "states" for memory in memories):
            raise _wrong(f"Memories={text} is a second memory of the states")
        memories.append(Memory(parts[1], int(parts[2]) * _UNITS[parts[3]], float(parts[4]), kind=parts[5] or ""))
    address, placed = 0, []
    for memory in sorted(memories, key=lambda each: each.cost):
        placed.append(memory if memory.kind else replace(memory, start=address))
        address += 0 if memory.kind else round_up(memory.bytes, Memory.ALIGNMENT)
    return tuple(placed)


def _wrong(what: str) -> N2D2Error:
    return N2D2Error("E603", what, where="export parameters", remedy="write for example Memories=DTCM:128k:1, AXI:512k:3")


@dataclass(frozen=True)
class Settings(ExportParameters, texts=_TEXTS):
    """The export parameters of memory (`_TEXTS`): the settings of a planner.

    Attributes:
        include_output: None for "auto": only layers that are faster that way write to the caller (`Access.prefers_caller`).
        clock: "level" frees memory between depth levels of the graph, as N2D2; "op" between operators; N2D2's strategies only.
    """

    include_input: bool = parameter("IncludeInputInBuffer", Kind.BOOL, True)
    include_output: bool | None = parameter(
        "IncludeOutputInBuffer", Kind.ENUM, "auto", read=_OUTPUT_PLACES.__getitem__, choices=tuple(_OUTPUT_PLACES)
    )
    optimize_buffer: bool = parameter("OptimizeBufferMemory", Kind.BOOL, True, "Reuse memory in place and by wrapping around.")
    no_branch_concat: bool = parameter("OptimizeNoBranchConcat", Kind.BOOL, True)
    fuse_residuals: bool = parameter("FuseResidualAdd", Kind.BOOL, True)
    alignment: int = parameter(
        "MemoryAlignment", Kind.UINT, 1, "Alignment of the pixel stride in bytes.", minimum=1, maximum=4096
    )
    buffer_alignment: int = parameter("BufferAlignment", Kind.UINT, 16, minimum=1, maximum=4096)
    strategy: str = parameter("MemoryManagerStrategy", Kind.ENUM, DEFAULT_STRATEGY, choices=STRATEGIES)
    mode: str = parameter("MemoryMode", Kind.ENUM, "auto", choices=("auto", *MODES))
    budget: int = parameter("MemoryBudget", Kind.INT, -1, minimum=-1)
    memories: tuple[Memory, ...] = parameter("Memories", Kind.NAMES, (), read=read_memories)
    extra_macs: float = parameter("MaxExtraMacs", Kind.FLOAT, 0.0, minimum=0, maximum=100)
    pack_activations: bool = parameter("PackActivations", Kind.BOOL, False)
    stream_input: bool = parameter("StreamInput", Kind.BOOL, False)
    clock: str = "level"

    @property
    def tensor_memories(self) -> tuple[Memory, ...]:
        """The memories of tensors, the cheapest first; () for a single arena."""
        return tuple(memory for memory in self.memories if not memory.kind)

    @property
    def roms(self) -> tuple[Memory, ...]:
        """The memories of constants."""
        return tuple(memory for memory in self.memories if memory.kind == "rom")

    @property
    def state_memory(self) -> Memory | None:
        """The memory of states."""
        return next((memory for memory in self.memories if memory.kind == "states"), None)

    @classmethod
    def of(cls: type[ParametersT], values: Params | Mapping[str, Any]) -> ParametersT:
        """As `ExportParameters.of`. Raise E603 for a memory of another form, E608 for several with what requires one."""
        settings = super().of(values)  # type: ignore[misc]
        if settings.tensor_memories:
            others = [f"{cls.rows[name].name}={value}" for name in _ONE_MEMORY if (value := getattr(settings, name)) > 0]
            if settings.strategy != DEFAULT_STRATEGY:
                others.append(f"MemoryManagerStrategy={settings.strategy}")
            if others:
                what = f"Memories and {others[0]} exclude each other"
                raise N2D2Error("E608", what, where="export parameters", remedy="remove one of them")
        return settings

    @property
    def runs_by_lines(self) -> bool:
        """True if layers may run row by row through line buffers, with complete inputs."""
        if self.stream_input or self.mode != "auto":
            return not self.stream_input and self.mode not in WHOLE_MODES
        return bool(self.tensor_memories) or self.strategy == "OptimizeStream" or self.budget >= 0

    @property
    def by_strategy(self) -> bool:
        """True if the strategy decides, not memories, a mode or a budget."""
        overridden = self.mode != "auto" or self.budget >= 0 or self.tensor_memories
        return not overridden and (self.strategy != DEFAULT_STRATEGY or not self.stream_input)

    def check(self) -> None:
        """Raise E608 for settings that exclude each other."""
        if self.by_strategy:
            if self.stream_input and self.strategy != "OptimizeStream":
                raise _excluded("StreamInput=1", self.strategy, "use OptimizeStream, or remove MemoryManagerStrategy")
        elif self.strategy != DEFAULT_STRATEGY:
            what = f"MemoryMode={self.mode}" if self.mode != "auto" else f"MemoryBudget={self.budget}"
            raise _excluded(what, self.strategy, "remove one of them")

    def by_export_name(self) -> dict[str, int | str]:
        """Return the settings by export parameter."""
        fields = "include_input include_output optimize_buffer no_branch_concat alignment buffer_alignment".split()
        values = {self.rows[field].name: getattr(self, field) for field in fields}
        return {name: "auto" if value is None else int(value) for name, value in values.items()} | {"Clock": self.clock}


def _excluded(what: str, strategy: str, remedy: str) -> N2D2Error:
    text = f"{what} and MemoryManagerStrategy={strategy} exclude each other"
    return N2D2Error("E608", text, where="export parameters", remedy=remedy)
