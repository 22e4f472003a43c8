"""A plan's two files as the checker sees them, the faults found, and an arena of stamps."""

from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Violation:
    """A fault of a plan. `tensor` is damaged, `by` is the cause; each is None if it does not apply."""

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

    @cached_property
    def copies(self) -> list[dict[str, Any]]:
        """The constants that are copied into the arena."""
        return [each for each in self.map.get("constants", ()) if "copy" in each]

    def fault(self, kind: str, what: str, op: str | None = None, tensor: str | None = None, by: str | None = None) -> None:
        """Record a violation."""
        self.found.append(Violation(kind, what, op, tensor, by))

    def is_in_one_memory(self, begin: int, end: int) -> bool:
        """True if the bytes [begin, end) lie in one memory of the map, or the map has only one."""
        memories = self.map.get("memories", ())
        return not memories or any(each["start"] <= begin and end <= each["start"] + each["bytes"] for each in memories)

    def lines(self, name: str) -> np.ndarray:
        """Return the arena address of each row of a tensor, int64[height]."""
        plane = self.map["tensors"][name]
        line = plane.get("pitch") or plane["stride"] * plane["length"]
        starts = np.arange(plane["count"], dtype=np.int64) % (plane.get("ring_rows") or plane["count"]) * line
        limit = plane.get("limit")
        if limit is None:
            return starts + plane["offset"]
        return np.where(starts < limit, plane["offset"] + starts, plane.get("wrap_offset", 0) + starts - limit)

    def extent(self, name: str) -> tuple[int, int]:
        """Return the first and the last address of a tensor."""
        lines, plane = self.lines(name), self.map["tensors"][name]
        return int(lines.min()), int(lines.max()) + (plane["length"] - 1) * plane["stride"] + plane["size"] - 1

    @staticmethod
    def may_meet(extent: tuple[int, int], other: tuple[int, int]) -> bool:
        """True if two ranges, from first to last address, have a byte in common."""
        return extent[0] <= other[1] and other[0] <= extent[1]

    def grain(self) -> int:
        """Return the largest number of bytes of which all tensors and workspaces are multiples."""
        tensors = self.graph["tensors"].values()
        elements = {tensor.get("bytes", 1) for tensor in tensors}
        parts = [part for step in self.map["schedule"] for part in step.get("scratch", ())]
        sizes = [plane.get(key) or 0 for plane in self.map["tensors"].values() for key in _BYTES]
        sizes += [part[key] for part in parts for key in ("offset", "size")]
        sizes += [each[key] for each in self.copies for key in ("copy", "bytes")]
        return gcd(self.size, *sizes, *(elements if len(elements) > 1 else ())) or 1


_BLOCK = 1 << 18  # stamps of a tensor that are written or compared at once
_BYTES = ("offset", "size", "stride", "limit", "wrap_offset", "pitch")  # fields of a plane that count bytes


class Stamps:
    """Content of the arena. Stores write stamps; comparisons add faults to the case, one for each reader of a tensor. A stamp
    stands for `grain` bytes, which are read and written together. A grain is never larger than an element, so it has one place
    in the order of elements. Rows and columns are indices."""

    def __init__(self, case: Case):
        self.case, self.graph = case, case.graph
        self.names = list(case.graph["tensors"])
        self.grain = case.grain()
        self.shape = {name: (h, w, size // self.grain) for name, (h, w, size) in case.shape.items()}
        sizes = [prod(shape) for shape in self.shape.values()]
        self.starts = np.cumsum([0] + sizes[:-1], dtype=np.int64)
        self.total = sum(sizes)
        self.size = case.size // self.grain
        self.arena = np.full(self.size, -1, dtype=np.int64)
        self._stamps: dict[str, int | np.ndarray] = dict(zip(self.names, self.starts.tolist(), strict=True))
        """The first stamp of a tensor; all stamps of one that joins others."""
        self._lost: set[tuple[str | None, str]] = set()

    def addresses(self, name: str, rows: Any = slice(None), columns: Any = slice(None)) -> np.ndarray:
        """Return the arena positions of a tensor, or of some rows and columns, in grains: int64[rows, columns, pixel]."""
        plane = self.case.map["tensors"][name]
        lines, pixels = self.case.lines(name)[rows], np.arange(plane["length"], dtype=np.int64)[columns] * plane["stride"]
        places = (lines[:, None] + pixels) // self.grain
        return places[:, :, None] + np.arange(plane["size"] // self.grain, dtype=np.int64)

    def order(self, name: str, rows: Any = slice(None), columns: Any = slice(None)) -> np.ndarray:
        """Return the place of each grain in the order of a tensor's elements: int64[rows, columns, pixel]."""
        height, width, pixel = self.shape[name]
        lines = np.arange(height, dtype=np.int64)[rows] * width
        starts = (lines[:, None] + np.arange(width, dtype=np.int64)[columns]) * pixel
        return starts[:, :, None] + np.arange(pixel, dtype=np.int64)

    def own(self, name: str, rows: Any = slice(None), columns: Any = slice(None)) -> np.ndarray:
        """Return the stamps that a tensor, or some of its rows and columns, must have: int64[rows, columns, pixel]."""
        places, stamps = self.order(name, rows, columns), self._stamps[name]
        return stamps[places] if isinstance(stamps, np.ndarray) else stamps + places

    def show(self, name: str, sources: list[str], axis: int) -> None:
        """Give a view the stamps of the tensors whose bytes it shows, joined along an axis."""
        self._stamps[name] = self._stamps[sources[0]]
        if len(sources) > 1:
            self._stamps[name] = np.concatenate([self.own(source) for source in sources], axis).reshape(-1)

    def store(self, name: str, rows: np.ndarray) -> None:
        """Write some rows of a tensor. A plane that overlaps itself is found by its next read."""
        if name not in self.case.outside:
            for part in self._parts(name, rows):
                self.arena[self.addresses(name, part)] = self.own(name, part)

    def compare(self, name: str, rows: np.ndarray, columns: Any, op: str | None, reader: str) -> None:
        """Check some rows and columns of a tensor in the arena."""
        if name in self.case.outside or (op, name) in self._lost:
            return
        for part in self._parts(name, rows):
            stored = self.arena[self.addresses(name, part, columns)]
            wrong = stored != self.own(name, part, columns)
            if wrong.any():
                y, x, grain = np.argwhere(wrong)[0].tolist()
                holder, column = self._holder(int(stored[y, x, grain])), np.arange(self.shape[name][1])[columns][x]
                place = f"line {part[y]}, pixel {column}, byte {grain * self.grain} of {name}"
                self.lose(op, name, f"{place} is lost before {reader} reads it: {holder or 'nothing'} is there", holder)
                return

    def lose(self, op: str | None, name: str, what: str, by: str | None) -> None:
        """Record the first byte of a tensor that an operator cannot read."""
        self._lost.add((op, name))
        self.case.fault("overwritten", what, op, name, by)

    def _parts(self, name: str, rows: np.ndarray) -> list[np.ndarray]:
        """Return the rows in parts of about `_BLOCK` grains, in order."""
        _, width, pixel = self.shape[name]
        step = max(1, _BLOCK // (width * pixel))
        return [rows[first : first + step] for first in range(0, len(rows), step)]

    def _holder(self, stamp: int) -> str | None:
        """Return the tensor that wrote a stamp; "scratch" for destroyed bytes, None for bytes never written."""
        if stamp < 0:
            return None if stamp == -1 else "a constant"
        if stamp >= self.total:
            return "scratch"
        return self.names[int(np.searchsorted(self.starts, stamp, side="right")) - 1]

    def destroy_scratch(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Destroy the workspace bytes: inputs must not lie there, nor the output."""
        self.fit_scratch(op, step, op.get("scratch_bytes", 0))
        for part in step.get("scratch", ()):
            begin, end = part["offset"], part["offset"] + part["size"]
            if begin < 0 or end > self.case.size:
                self.case.fault("arena", f"scratch at {begin} to {end} is outside the arena of {self.case.size}", op=op["name"])
                continue
            if not self.case.is_in_one_memory(begin, end):
                self.case.fault("memory", f"scratch at {begin} to {end} is not in one memory", op=op["name"])
            self.arena[begin // self.grain : end // self.grain] = self.total
            if self._touches(op["output"], begin, end):
                what = f"its scratch lies over its output {op['output']}"
                self.case.fault("overwritten", what, op=op["name"], tensor=op["output"], by="scratch")

    def _touches(self, name: str, begin: int, end: int) -> bool:
        """True if a pixel of a tensor in the arena has a byte in [begin, end)."""
        if name in self.case.outside or not self.case.may_meet(self.case.extent(name), (begin, end - 1)):
            return False
        plane = self.case.map["tensors"][name]
        pixels = self.case.lines(name)[:, None] + np.arange(plane["length"], dtype=np.int64) * plane["stride"]
        return bool(((pixels < end) & (pixels + plane["size"] > begin)).any())

    def fit_scratch(self, op: dict[str, Any], step: dict[str, Any], needed: int) -> None:
        """Record a fault if a step has less workspace than its operator needs."""
        scratch_bytes = sum(part["size"] for part in step.get("scratch", ()))
        if scratch_bytes < needed:
            self.case.fault("scratch", f"needs {needed} bytes of scratch, has {scratch_bytes}", op=op["name"])

    def elements(self, name: str) -> tuple[int, int, int]:
        """Return height, width and channels, regardless of the element size."""
        tensor = self.graph["tensors"][name]
        return tensor["h"], tensor["w"], tensor["c"]
