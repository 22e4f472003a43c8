"""A plan's two files as the checker sees them, the faults found, and an arena of stamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
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

    @property
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
    """Content of the arena. Stores write stamps; comparisons add faults to the case. A stamp stands for `grain` bytes, which
    are read and written together. A grain is never larger than an element, so it has one place in the order of elements."""

    def __init__(self, case: Case):
        self.case, self.graph = case, case.graph
        self.names = list(case.graph["tensors"])
        self.grain = case.grain()
        self.shape = {name: (h, w, size // self.grain) for name, (h, w, size) in case.shape.items()}
        sizes = [prod(shape) for shape in self.shape.values()]
        self.starts = np.cumsum([0] + sizes[:-1], dtype=np.int64)
        self.base = {name: int(start) for name, start in zip(self.names, self.starts, strict=True)}
        self.total = sum(sizes)
        self.size = case.size // self.grain
        self.arena = np.full(self.size, -1, dtype=np.int64)
        self.views: dict[str, tuple[list[str], int]] = {}
        """Tensor -> the tensors whose bytes it shows, and the axis along which they are joined."""
        self._touched: dict[tuple[str, int, int], bool] = {}

    def addresses(self, name: str, rows: Any = slice(None), columns: Any = slice(None)) -> np.ndarray:
        """Return the arena positions of a tensor, or of some rows and columns, in grains: int64[rows, columns, pixel]."""
        plane = self.case.map["tensors"][name]
        lines, pixels = self.case.lines(name)[rows], np.arange(plane["length"], dtype=np.int64)[columns] * plane["stride"]
        places = (lines[:, None] + pixels) // self.grain
        return places[:, :, None] + np.arange(plane["size"] // self.grain, dtype=np.int64)

    def own(self, name: str, rows: Any = slice(None), columns: Any = slice(None)) -> np.ndarray:
        """Return the stamps that a tensor, or some of its rows and columns, must have: int64[rows, columns, pixel]."""
        places = self.order(name, rows, columns)
        while name in self.views:
            sources, axis = self.views[name]
            if len(sources) > 1:
                return np.concatenate([self.own(source) for source in sources], axis).reshape(-1)[places]
            name = sources[0]
        return self.base[name] + places

    def order(self, name: str, rows: Any = slice(None), columns: Any = slice(None)) -> np.ndarray:
        """Return the place of each grain in the order of a tensor's elements: int64[rows, columns, pixel]."""
        height, width, pixel = self.shape[name]
        lines = np.arange(height, dtype=np.int64)[rows] * width
        starts = (lines[:, None] + np.arange(width, dtype=np.int64)[columns]) * pixel
        return starts[:, :, None] + np.arange(pixel, dtype=np.int64)

    def store(self, name: str, rows: slice = slice(None)) -> None:
        """Write a tensor, or some of its rows in order. A plane that overlaps itself is found by its next read."""
        if name not in self.case.outside:
            for at in self.blocks(name, rows):
                self.arena[self.addresses(name, *at)] = self.own(name, *at)

    def compare(self, name: str, op: str | None, reader: str, reads: np.ndarray | None = None) -> None:
        """Check a tensor in the arena; `reads` masks [height, width] pixels, None for all."""
        if name in self.case.outside:
            return
        lost, first = 0, None
        for rows, columns in self.blocks(name):
            stored = self.arena[self.addresses(name, rows, columns)]
            wrong = stored != self.own(name, rows, columns)
            if reads is not None:
                wrong &= reads[rows][:, columns, None]
            lost += int(wrong.sum()) * self.grain
            if first is None and wrong.any():
                y, x, byte = (int(i) for i in np.argwhere(wrong)[0])
                first = y + (rows.start or 0), x + (columns.start or 0), byte, self._holder(int(stored[y, x, byte]))
        if first is not None:
            y, x, byte, holder = first
            place = f"first line {y}, pixel {x}, byte {byte * self.grain}: {holder or 'nothing'} is there"
            what = f"{lost} bytes of {name} are lost before {reader} reads them, {place}"
            self.case.fault("overwritten", what, op, name, holder)

    def blocks(self, name: str, rows: slice = slice(None)) -> Iterator[tuple[slice, slice]]:
        """Yield rows and columns of parts of a tensor of about `_BLOCK` grains, in order; a joined view is one part."""
        height, width, pixel = self.shape[name]
        if self._is_joined(name) or height * width * pixel <= _BLOCK:
            yield rows, slice(None)
            return
        first, last, _ = rows.indices(height)
        lines, columns = max(1, _BLOCK // (width * pixel)), max(1, _BLOCK // pixel)
        for top, left in product(range(first, last, lines), range(0, width, columns)):
            yield slice(top, min(top + lines, last)), slice(left, left + columns)

    def compare_lines(self, source: str, rows: np.ndarray, columns: np.ndarray, op: str, reader: str) -> None:
        if source in self.case.outside or not len(rows):
            return
        stored, wanted = self.arena[self.addresses(source, rows, columns)], self.own(source, rows, columns)
        if (stored != wanted).any():
            position = tuple(np.argwhere(stored != wanted)[0])
            holder = self._holder(int(stored[position]))
            what = f"line {rows[position[0]]} of {source} is lost before {reader} reads it: {holder or 'nothing'} is there"
            self.case.fault("overwritten", what, op=op, tensor=source, by=holder)

    def _is_joined(self, name: str) -> bool:
        return name in self.views and (len(self.views[name][0]) > 1 or self._is_joined(self.views[name][0][0]))

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
            if op["output"] not in self.case.outside and self._touches(op["output"], begin, end):
                what = f"its scratch lies over its output {op['output']}"
                self.case.fault("overwritten", what, op=op["name"], tensor=op["output"], by="scratch")

    def _touches(self, name: str, begin: int, end: int) -> bool:
        key = name, begin, end
        if key not in self._touched:
            low, high = begin // self.grain, end // self.grain
            parts = (self.addresses(name, *at) for at in self.blocks(name))
            self._touched[key] = any(bool(((places >= low) & (places < high)).any()) for places in parts)
        return self._touched[key]

    def fit_scratch(self, op: dict[str, Any], step: dict[str, Any], needed: int) -> None:
        scratch_bytes = sum(part["size"] for part in step.get("scratch", ()))
        if scratch_bytes < needed:
            self.case.fault("scratch", f"needs {needed} bytes of scratch, has {scratch_bytes}", op=op["name"])

    def elements(self, name: str) -> tuple[int, int, int]:
        """Return height, width and channels, regardless of the element size."""
        tensor = self.graph["tensors"][name]
        return tensor["h"], tensor["w"], tensor["c"]
