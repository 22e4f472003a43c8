"""The export parameters of the static memory, for every target whose memory the tool plans."""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.errors import N2D2Error
from n2d2py.ini.schema import Key, Kind, Schema, keys
from n2d2py.memory.plan import Memory

STRATEGIES = (
    "None",
    "OptimizeMaxLifetimeMinSizeFirst",
    "OptimizeMaxLifetimeMaxSizeFirst",
    "OptimizeMaxHoleMaxLifetimeFirst",
    "OptimizeAuto",
    "OptimizeOverlap",
    "OptimizeOptimal",
    "OptimizeReorder",
    "OptimizeStream",
)

N2D2_STRATEGIES = STRATEGIES[:5]
"""Those that place as N2D2 does."""

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
Memories: Memories for the tensors, each as NAME:BYTES:COST: its size (k and M are allowed) and the relative cost of a byte
    read or written. The plan moves the fewest bytes at the highest cost. The caller's arena is the cheapest memory.
MaxExtraMacs: Percentage of the multiply-accumulates that can be repeated to save memory. Stripes of layers are then also
    split vertically.
PackActivations: Pack 1-, 2- and 4-bit tensors between layers into bytes where that saves memory. Layers unpack them through
    line buffers.
StreamInput: Receive the inputs row by row through a callback. The whole input is never in memory.
"""
MEMORY_PARAMETERS = Schema(
    "export parameters of the memory",
    keys(
        _TEXTS,
        Key("IncludeInputInBuffer", Kind.BOOL, True),
        Key("IncludeOutputInBuffer", Kind.ENUM, "auto", choices=("auto", "0", "1")),
        Key("OptimizeBufferMemory", Kind.BOOL, True, "Reuse memory in place and by wrapping around."),
        Key("OptimizeNoBranchConcat", Kind.BOOL, True),
        Key("FuseResidualAdd", Kind.BOOL, True),
        Key("MemoryAlignment", Kind.UINT, 1, "Alignment of the pixel stride in bytes.", minimum=1, maximum=4096),
        Key("BufferAlignment", Kind.UINT, 16, minimum=1, maximum=4096),
        Key("MemoryManagerStrategy", Kind.ENUM, "OptimizeOverlap", choices=STRATEGIES),
        Key("MemoryMode", Kind.ENUM, "auto", choices=("auto", "Speed", "Balanced", "Small", "Minimum")),
        Key("MemoryBudget", Kind.INT, -1, minimum=-1),
        Key("Memories", Kind.NAMES, ()),
        Key("MaxExtraMacs", Kind.FLOAT, 0.0, minimum=0, maximum=100),
        Key("PackActivations", Kind.BOOL, False),
        Key("StreamInput", Kind.BOOL, False),
    ),
)


@dataclass(frozen=True)
class Settings:
    """The export parameters of the memory, and the clock (by level as N2D2, or by operator).

    include_input: the network inputs are in the arena and may be overwritten once read. include_output:
    so are the network outputs; False: layers write them straight into the caller's buffers, None: those do
    whose operator says that it is faster (`straight`).
    optimize_buffer: an output may lie over an input that dies. no_branch_concat: concatenate in
    place where possible. alignment: bytes, of the pixel stride of every tensor that an operator
    writes. buffer_alignment: bytes, of the address of every buffer, for the strategies that place
    buffers singly (OptimizeOverlap and later ones). clock: "level" frees memory between the depth levels
    of the graph, as N2D2; "op" between operators; N2D2's strategies only, the others count operators.
    memories: where the arena lies in several, no buffer in two of them (`memories.py`).
    """

    include_input: bool = True
    optimize_buffer: bool = True
    no_branch_concat: bool = True
    alignment: int = 1
    clock: str = "level"
    buffer_alignment: int = 16
    include_output: bool | None = None
    memories: tuple[Memory, ...] = ()

    def check(self) -> None:
        """Raise E603 for a setting out of range."""
        for key, value in (("MemoryAlignment", self.alignment), ("BufferAlignment", self.buffer_alignment)):
            if value < 1:
                raise N2D2Error("E603", f"{key}={value} is below 1", remedy="give 1, 2, 4, 8, ...")
        if self.clock not in ("level", "op"):
            raise N2D2Error("E603", f"memory clock {self.clock} is unknown", remedy="use level or op")

    def by_export_name(self) -> dict[str, int | str]:
        """The settings under the names of the export parameters."""
        return {
            "IncludeInputInBuffer": int(self.include_input),
            "IncludeOutputInBuffer": "auto" if self.include_output is None else int(self.include_output),
            "OptimizeBufferMemory": int(self.optimize_buffer),
            "OptimizeNoBranchConcat": int(self.no_branch_concat),
            "MemoryAlignment": self.alignment,
            "BufferAlignment": self.buffer_alignment,
            "Clock": self.clock,
        }
