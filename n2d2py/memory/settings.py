"""The export parameters that shape a memory plan."""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.errors import N2D2Error


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
    """

    include_input: bool = True
    optimize_buffer: bool = True
    no_branch_concat: bool = True
    alignment: int = 1
    clock: str = "level"
    buffer_alignment: int = 16
    include_output: bool | None = None

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
