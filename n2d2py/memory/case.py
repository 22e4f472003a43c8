"""The two files of a plan as the checker sees them: names, shapes, addresses, faults found; and an arena of stamps, one for each byte of each tensor."""

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

    def is_in_one_memory(self, begin: int, end: int) -> bool:
        """True if the bytes [begin, end) lie in one of the memories of the map, or it has one only."""
        memories = self.map.get("memories", ())
        return not memories or any(each["start"] <= begin and end <= each["start"] + each["bytes"] for each in memories)

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


class Stamps:
    """Content of each byte of the arena; stores put stamps, comparisons add faults to the case."""

    def __init__(self, case: Case):
        self.case, self.graph = case, case.graph
        self.names = list(case.graph["tensors"])
        sizes = [height * width * pixel for height, width, pixel in case.shape.values()]
        self.starts = np.cumsum([0] + sizes[:-1], dtype=np.int64)
        self.base = {name: int(start) for name, start in zip(self.names, self.starts, strict=True)}
        self.total = sum(sizes)
        self.arena = np.full(case.size, -1, dtype=np.int64)
        self.known: dict[str, np.ndarray] = {}
        self._touched: dict[tuple[str, int, int], bool] = {}

    def own(self, name: str) -> np.ndarray:
        """int64[height, width, pixel bytes]: the stamps that the bytes of a tensor must bear."""
        if name not in self.known:
            height, width, pixel = self.case.shape[name]
            first = self.base[name]
            self.known[name] = np.arange(first, first + height * width * pixel, dtype=np.int64).reshape(height, width, pixel)
        return self.known[name]

    def store(self, name: str) -> None:
        """Write a tensor as a whole; a plane that lies over itself is caught by its next read."""
        if name not in self.case.outside:
            self.arena[self.case.addresses(name)] = self.own(name)

    def store_lines(self, name: str, first: int, stop: int) -> None:
        """Write lines [first, stop) one after the other."""
        if name in self.case.outside:
            return
        for y in range(first, stop):
            self.arena[self.case.addresses(name)[y]] = self.own(name)[y]

    def compare(self, name: str, op: str | None, reader: str, reads: np.ndarray | None = None) -> None:
        """Check a tensor in the arena; `reads` masks [height, width] pixels, None for all."""
        if name in self.case.outside:
            return
        wrong = self.arena[self.case.addresses(name)] != self.own(name)
        if reads is not None:
            wrong &= reads[:, :, None]
        if wrong.any():
            y, x, byte = (int(i) for i in np.argwhere(wrong)[0])
            holder = self._holder(int(self.arena[self.case.addresses(name)[y, x, byte]]))
            self.case.fault(
                "overwritten",
                f"{int(wrong.sum())} bytes of {name} are lost before {reader} reads them, "
                f"first line {y}, pixel {x}, byte {byte}: {holder or 'nothing'} is there",
                op=op,
                tensor=name,
                by=holder,
            )

    def compare_lines(self, source: str, rows: np.ndarray, columns: np.ndarray, op: str, reader: str) -> None:
        if source in self.case.outside or not len(rows):
            return
        grid = np.ix_(rows, columns)
        held, wanted = self.arena[self.case.addresses(source)[grid]], self.own(source)[grid]
        if (held != wanted).any():
            at = tuple(np.argwhere(held != wanted)[0])
            holder = self._holder(int(held[at]))
            self.case.fault(
                "overwritten",
                f"line {rows[at[0]]} of {source} is lost before {reader} reads it: {holder or 'nothing'} is there",
                op=op,
                tensor=source,
                by=holder,
            )

    def _holder(self, stamp: int) -> str | None:
        """The tensor whose stamp it is; "scratch" for destroyed bytes, None for bytes never
        written.
        """
        if stamp == -1:
            return None
        if stamp >= self.total:
            return "scratch"
        return self.names[int(np.searchsorted(self.starts, stamp, side="right")) - 1]

    def destroy_scratch(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Destroys the scratch bytes: inputs lose theirs now, the output must not lie there."""
        self.fit_scratch(op, step, op.get("scratch_bytes", 0))
        for part in step.get("scratch", ()):
            begin, end = part["offset"], part["offset"] + part["size"]
            if begin < 0 or end > self.case.size:
                self.case.fault("arena", f"scratch at {begin} to {end} is outside the arena of {self.case.size}", op=op["name"])
                continue
            if not self.case.is_in_one_memory(begin, end):
                self.case.fault("memory", f"scratch at {begin} to {end} is not in one memory", op=op["name"])
            self.arena[begin:end] = self.total
            if op["output"] not in self.case.outside and self._touches(op["output"], begin, end):
                self.case.fault(
                    "overwritten",
                    f"its scratch lies over its output {op['output']}",
                    op=op["name"],
                    tensor=op["output"],
                    by="scratch",
                )

    def _touches(self, name: str, begin: int, end: int) -> bool:
        """True if bytes of a tensor lie at these addresses of the arena."""
        key = name, begin, end
        if key not in self._touched:
            places = self.case.addresses(name)
            self._touched[key] = bool(((places >= begin) & (places < end)).any())
        return self._touched[key]

    def fit_scratch(self, op: dict[str, Any], step: dict[str, Any], needed: int) -> None:
        given = sum(part["size"] for part in step.get("scratch", ()))
        if given < needed:
            self.case.fault("scratch", f"needs {needed} bytes of scratch, has {given}", op=op["name"])

    def elements(self, name: str) -> tuple[int, int, int]:
        """Height, width and channels, without regard to the element size."""
        tensor = self.graph["tensors"][name]
        return tensor["h"], tensor["w"], tensor["c"]
