"""A second reader of `memory_graph.json` and `memory_map.json`, written from the description of the format alone.

It runs a network element by element, in the nested loops that each step declares, storing each element when it is computed,
and compares every byte that it reads with what its producer stored there. It knows the operator types and the keys of the
format and no others, and is far too slow for large networks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

__all__ = ["referee"]

TYPES = ("conv", "pool", "add", "ew", "softmax", "concat", "fc", "upsample", "reshape")
PLANE = {"offset", "size", "stride", "length", "count", "limit", "wrap_offset", "ring_rows", "alloc", "release"}
STEP = {"op", "loop", "unit", "rows", "scratch", "view", "clock", "in_rows", "commit", "input"}


def referee(graph: dict[str, Any], memory_map: dict[str, Any], limit: int = 5) -> list[str]:
    """The faults, at most `limit` of them; none when every byte read still holds what its producer stored."""
    try:
        return _Run(graph, memory_map, limit).faults()
    except _Enough as enough:
        return enough.args[0]


class _Enough(Exception):
    pass


class _Run:
    def __init__(self, graph: dict[str, Any], memory_map: dict[str, Any], limit: int):
        self.tensors, self.graph, self.map, self.limit = graph["tensors"], graph, memory_map, limit
        self.ops = {op["name"]: op for op in graph["ops"]}
        self.planes = memory_map["tensors"]
        self.memory: list[Any] = [None] * memory_map["arena_size"]
        self.names: dict[str, dict[tuple[int, int, int], Any]] = {}
        self.found: list[str] = []

    def fault(self, text: str) -> None:
        self.found.append(text)
        if len(self.found) >= self.limit:
            raise _Enough(self.found)

    def faults(self) -> list[str]:
        schedule = self.map["schedule"]
        clocks = [step.get("clock", index) for index, step in enumerate(schedule)]
        if clocks != sorted(clocks):
            self.fault("clocks go back")
        self._forms()
        arriving = {step["input"] for step in schedule if "input" in step}
        for name in self.graph["inputs"]:
            if name not in arriving:
                self.write(name, range(self.tensors[name]["h"]), -1)
        for clock, step in zip(clocks, schedule, strict=True):
            if set(step) - STEP:
                self.fault(f"keys of {step}")
            elif "input" in step:
                self.write(step["input"], range(*step["rows"]), clock)
            else:
                self.step(self.ops[step["op"]], step, clock)
        for name in self.graph["outputs"]:
            self.read(name, self.elements(name), "the end", max([len(schedule), *clocks]))
        return self.found

    def _forms(self) -> None:
        for op in self.graph["ops"]:
            if op["type"] not in TYPES:
                self.fault(f"type {op['type']}")
        for name, tensor in self.tensors.items():
            plane = self.planes[name]
            if set(plane) - PLANE or {"offset", "size", "stride", "length", "count"} - set(plane):
                self.fault(f"keys of {name}: {sorted(plane)}")
            form = (tensor["h"], tensor["w"], tensor["c"] * tensor.get("bytes", 1))
            if (plane["count"], plane["length"], plane["size"]) != form or plane["stride"] < plane["size"]:
                self.fault(f"the plane of {name} is no {form}")

    # ---- bytes
    def addresses(self, name: str, y: int, x: int, c: int) -> range:
        """The bytes of one element."""
        plane, width = self.planes[name], self.tensors[name].get("bytes", 1)
        line = plane["stride"] * plane["length"]
        row = y % plane["ring_rows"] if "ring_rows" in plane else y
        linear = row * line + x * plane["stride"] + c * width
        if "limit" in plane and linear >= plane["limit"]:
            start = plane["wrap_offset"] + linear - plane["limit"]
        else:
            start = plane["offset"] + linear
        if not 0 <= start <= len(self.memory) - width:
            self.fault(f"{name} at {start} is outside of the arena")
            raise _Enough(self.found)
        return range(start, start + width)

    def elements(self, name: str, rows: range | None = None) -> Iterator[tuple[int, int, int]]:
        tensor = self.tensors[name]
        return product(range(tensor["h"]) if rows is None else rows, range(tensor["w"]), range(tensor["c"]))

    def write(self, name: str, rows: range, clock: int) -> None:
        for at in self.elements(name, rows):
            self.store(name, at, clock)

    def store(self, name: str, at: tuple[int, int, int], clock: int) -> None:
        if clock < self.planes[name].get("alloc", clock):
            self.fault(f"{name} is written at {clock}, before its alloc")
        for byte, address in enumerate(self.addresses(name, *at)):
            self.memory[address] = (name, at, byte)

    def read(self, name: str, elements, reader: str, clock: int) -> None:
        if clock > self.planes[name].get("release", clock):
            self.fault(f"{name} is read at {clock}, after its release")
        seen = self.names.get(name)
        for at in elements:
            wanted = seen[at] if seen else (name, at)
            for byte, address in enumerate(self.addresses(name, *at)):
                if self.memory[address] != (*wanted, byte):
                    self.fault(f"{reader} reads {name} {at}: {self.memory[address]} is there")

    # ---- operators
    def step(self, op: dict[str, Any], step: dict[str, Any], clock: int) -> None:
        name, output = op["name"], op["output"]
        if step.get("view"):
            self.view(op, clock)
            return
        if step.get("unit", "elem") != "elem":
            self.fault(f"{name}: unit {step['unit']}")
        for part in step.get("scratch", ()):
            for address in range(part["offset"], part["offset"] + part["size"]):
                self.memory[address] = "scratch"
        if "in_rows" in step:
            source = op["inputs"][0]
            self.read(source, self.elements(source, range(*step["in_rows"])), name, clock)
            if step["commit"]:
                self.write(output, range(self.tensors[output]["h"]), clock)
            return
        shape = self.tensors[output]
        ranges = {"h": range(*step.get("rows", (0, shape["h"]))), "w": range(shape["w"]), "c": range(shape["c"])}
        loop = step.get("loop", "hwc")
        letters = loop.replace("-", "")
        orders = [reversed(ranges[x]) if f"-{x}" in loop else ranges[x] for x in letters]
        for indices in product(*orders):
            at = tuple(dict(zip(letters, indices, strict=True))[x] for x in "hwc")
            for source, elements in self.reads(op, at):
                self.read(source, elements, f"{name} {at}", clock)
            self.store(output, at, clock)

    def reads(self, op: dict[str, Any], at: tuple[int, int, int]):
        """(tensor, elements) that one element of the output is computed from."""
        y, x, c = at
        kind, tensors = op["type"], self.tensors
        first = op["inputs"][0]
        shape = tensors[first]
        if kind in ("conv", "pool"):
            top, left = op["pads"][:2]
            taps = [
                (y * op["sh"] - top + u * op["dil"], x * op["sw"] - left + v * op["dil"])
                for u in range(op["kh"])
                for v in range(op["kw"])
            ]
            taps = [(r, q) for r, q in taps if 0 <= r < shape["h"] and 0 <= q < shape["w"]]
            if kind == "pool":
                channels = [c]
            else:
                inside, outside = shape["c"] // op["groups"], tensors[op["output"]]["c"] // op["groups"]
                channels = range(c // outside * inside, (c // outside + 1) * inside)
            yield first, [(r, q, k) for r, q in taps for k in channels]
        elif kind == "upsample":
            yield first, [(y // op["scale"], x // op["scale"], c)]
        elif kind == "softmax":
            yield first, [(y, x, k) for k in range(shape["c"])]
        elif kind == "concat":
            for source in op["inputs"]:
                if c < tensors[source]["c"]:
                    yield source, [(y, x, c)]
                    return
                c -= tensors[source]["c"]
        elif kind in ("add", "ew"):
            for source in op["inputs"]:
                its = tensors[source]
                yield source, [(min(y, its["h"] - 1), min(x, its["w"] - 1), min(c, its["c"] - 1))]
        else:
            for source in op["inputs"]:
                yield source, self.elements(source)

    def view(self, op: dict[str, Any], clock: int) -> None:
        """The bytes are in place: from here on the output's elements are those of the inputs."""
        output, wanted = op["output"], []
        if op["type"] == "reshape":
            source = op["inputs"][0]
            wanted = [self._stamp(source, at) for at in self.elements(source)]
        elif op["type"] == "concat":
            for y, x, c in self.elements(output):
                if c == 0:
                    for source in op["inputs"]:
                        wanted += [self._stamp(source, (y, x, k)) for k in range(self.tensors[source]["c"])]
        else:
            self.fault(f"{op['name']} computes, it is no view")
            return
        self.names[output] = dict(zip(self.elements(output), wanted, strict=True))
        for source in op["inputs"]:
            self.read(source, self.elements(source), op["name"], clock)
        self.read(output, self.elements(output), op["name"], clock)

    def _stamp(self, name: str, at: tuple[int, int, int]):
        return self.names[name][at] if name in self.names else (name, at)
