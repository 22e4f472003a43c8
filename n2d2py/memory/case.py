"""The two files of a plan as the checker sees them: names, shapes, addresses, faults found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Violation:
    """A fault of a plan. `tensor` is what suffers, `by` what does it, each None where it does not
    apply.
    """

    kind: str
    what: str
    op: str | None = None
    tensor: str | None = None
    by: str | None = None

    def __str__(self) -> str:
        return (f"{self.op}: " if self.op else "") + self.what


class Case:
    """A GRAPH and a MAP under examination; `outside`: the tensors that are not in the arena."""

    def __init__(self, graph: dict[str, Any], memory_map: dict[str, Any]):
        self.graph, self.map = graph, memory_map
        self.found: list[Violation] = []
        self.size = memory_map["arena_size"]
        self.ops = {op["name"]: op for op in graph["ops"]}
        self.shape = {name: (t["h"], t["w"], t["c"] * t.get("bytes", 1)) for name, t in graph["tensors"].items()}
        planes = memory_map["tensors"]
        self.outside = {name for name in (*graph["inputs"], *graph["outputs"]) if planes.get(name, {}).get("external")}
        reshapes = [op for op in graph["ops"] if op["type"] == "reshape"]
        for op in reversed(reshapes):
            if op["output"] in self.outside:
                self.outside.add(op["inputs"][0])
        for op in reshapes:
            if op["inputs"][0] in self.outside:
                self.outside.add(op["output"])
        self._places: dict[str, np.ndarray] = {}

    def fault(self, kind: str, what: str, op: str | None = None, tensor: str | None = None, by: str | None = None) -> None:
        """Records a violation."""
        self.found.append(Violation(kind, what, op, tensor, by))

    def addresses(self, name: str) -> np.ndarray:
        """int64[height, width, pixel bytes]: the arena address of each byte of a tensor."""
        if name not in self._places:
            plane = self.map["tensors"][name]
            line = plane.get("pitch") or plane["stride"] * plane["length"]
            slots = np.arange(plane["count"], dtype=np.int64) % (plane.get("ring_rows") or plane["count"])
            starts = slots * line
            limit = plane.get("limit")
            if limit is not None:
                starts = np.where(starts < limit, plane["offset"] + starts, plane.get("wrap_offset", 0) + starts - limit)
            else:
                starts = starts + plane["offset"]
            pixels = np.arange(plane["length"], dtype=np.int64) * plane["stride"]
            self._places[name] = (
                starts[:, None, None] + pixels[None, :, None] + np.arange(plane["size"], dtype=np.int64)[None, None, :]
            )
        return self._places[name]
