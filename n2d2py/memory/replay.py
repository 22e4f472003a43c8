"""Replay of a network over an arena of stamps, to find bytes that are lost before they are read."""

from collections.abc import Callable
from typing import Any

import numpy as np

from n2d2py.memory.case import Case, Stamps, Violation

Taps = Callable[[int], np.ndarray]
"""Input positions inside the window of an output position."""


def is_global(op: dict[str, Any], tensors: dict[str, Any]) -> bool:
    """True if the operator is a pool over its whole input."""
    source, output = tensors[op["inputs"][0]], tensors[op["output"]]
    return (
        op["type"] == "pool"
        and (op["kh"], op["kw"]) == (source["h"], source["w"])
        and (output["h"], output["w"]) == (1, 1)
        and not any(op["pads"])
    )


def taps_along(op: dict[str, Any], source: str, axis: int, inputs: int) -> Taps:
    """Return the taps of a window operator in `source`, which has `inputs` positions along the axis (0: rows)."""
    if op["type"] == "window":
        tables = [table for name, table in zip(op["inputs"], op[("lines", "columns")[axis]], strict=True) if name == source]
        return lambda position: np.concatenate([np.arange(*table[position], dtype=np.int64) for table in tables])
    if op["type"] == "upsample":
        scale = op["scale"]
        factor = scale[axis] if isinstance(scale, (list, tuple)) else scale
        return lambda position: np.array([position // factor])
    if op["type"] == "concat":
        return lambda position: np.array([position])
    pad = op["pads"][axis]
    dil = op.get("dil", 1)
    dilation = dil[axis] if isinstance(dil, (list, tuple)) else dil
    kernel, stride = op[("kh", "kw")[axis]], op[("sh", "sw")[axis]]

    def inside(position: int) -> np.ndarray:
        taps = position * stride - pad + np.arange(kernel) * dilation
        return taps[(taps >= 0) & (taps < inputs)]

    return inside


_POINTWISE = ("add", "ew")
_WINDOWS = ("conv", "pool", "upsample", "window", "concat")
_WHOLE = ("fc", "softmax")


class Replay:
    """One replay of a case whose planes and schedule are valid; `run` adds to its faults."""

    def __init__(self, case: Case):
        self.case, self.graph = case, case.graph
        self.stamps = Stamps(case)
        self._kept: dict[str, int] = {}
        """Stamps of the partial results of each operator that accumulates, beyond those of tensors and scratch."""
        self._pixels_read: dict[tuple[str, str], tuple[list[np.ndarray], Any]] = {}

    def run(self) -> list[Violation]:
        """Return all faults of the case."""
        arriving = {step["input"] for step in self.case.map["schedule"] if "input" in step}
        for name in self.graph["inputs"]:
            if name not in arriving:
                self.stamps.store(name, self._rows(name))
        made: set[int] = set()
        for step in self.case.map["schedule"]:
            self._make_copies(step, made)
            if "input" in step:
                self.stamps.store(step["input"], np.arange(*step["rows"]))
            elif "in_rows" in step:
                self._accumulate(self.case.ops[step["op"]], step)
            elif step.get("view"):
                self._view(self.case.ops[step["op"]])
            else:
                self._execute(self.case.ops[step["op"]], step)
            self._compare_copies(step)
        for name in self.graph["outputs"]:
            self.stamps.compare(name, self._rows(name), slice(None), None, "the end of the network")
        return self.case.found

    def _rows(self, name: str) -> np.ndarray:
        return np.arange(self.case.shape[name][0])

    def _copy(self, entry: dict[str, Any]) -> slice:
        return slice(entry["copy"] // self.stamps.grain, (entry["copy"] + entry["bytes"]) // self.stamps.grain)

    def _make_copies(self, step: dict[str, Any], made: set[int]) -> None:
        """Write each copy of a constant, with a stamp below -1, before the first step of its life."""
        for number, entry in enumerate(self.case.copies):
            if number in made or step["clock"] < entry["life"][0]:
                continue
            made.add(number)
            begin, end = entry["copy"], entry["copy"] + entry["bytes"]
            if begin < 0 or end > self.case.size or not self.case.is_in_one_memory(begin, end):
                self.case.fault("memory", f"the copy of {entry['name']} is not in one memory", op=entry["op"])
            else:
                self.stamps.arena[self._copy(entry)] = -2 - number

    def _compare_copies(self, step: dict[str, Any]) -> None:
        """Record a fault if a copy is not intact after a step of its operator."""
        for number, entry in enumerate(self.case.copies):
            if entry["op"] == step.get("op") and (self.stamps.arena[self._copy(entry)] != -2 - number).any():
                what = f"the copy of {entry['name']} is lost before the layer has read it"
                self.case.fault("overwritten", what, op=entry["op"], by=entry["name"])

    def _execute(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Compute an operator, or some rows of it. Inputs must be intact before the stores. Those whose bytes the output may
        overwrite must also be intact for each row, before and after it is stored; of pointwise operators for each element
        until it is read."""
        output, kind = op["output"], op["type"]
        if not self._is_known(op, step):
            return
        self.stamps.destroy_scratch(op, step)
        if "residual" in op:
            self._add(op)
        rows = np.arange(*step["rows"]) if "rows" in step else self._rows(output)
        backwards = step.get("loop", "hwc").startswith("-")
        near = [source for source in dict.fromkeys(op["inputs"]) if self._may_overwrite(output, source)]
        for source in dict.fromkeys(op["inputs"]):
            if source not in near:
                self._compare(op, source, rows)
        by_element = kind in _POINTWISE and "rows" not in step
        parts = [rows] if kind in _WHOLE or not near else np.split(rows[::-1] if backwards else rows, len(rows))
        for part in parts:
            for source in near:
                self._compare(op, source, part)
            self.stamps.store(output, part)
            for source in near:
                if by_element and self.stamps.elements(source) == self.stamps.elements(output):
                    self._compare_elements(op, source, part, backwards)
                else:
                    self._compare(op, source, part)

    def _is_known(self, op: dict[str, Any], step: dict[str, Any]) -> bool:
        """Record a fault unless the operator can be executed, row by row if the step says so."""
        by_lines, kind = "rows" in step, op["type"]
        if kind in _POINTWISE + _WINDOWS + (() if by_lines else _WHOLE) and not (by_lines and "residual" in op):
            return True
        what = f"a {kind} {'with a residual ' * ('residual' in op)}does not run by lines"
        self.case.fault("unsupported", what if by_lines else f"an operator of type {kind} must be a view", op=op["name"])
        return False

    def _may_overwrite(self, output: str, source: str) -> bool:
        case = self.case
        return not {output, source} & case.outside and case.may_meet(case.extent(source), case.extent(output))

    def _compare(self, op: dict[str, Any], source: str, rows: np.ndarray) -> None:
        """Check what some output rows read of an input."""
        lines, columns = self._reads(op, source)
        read = lines[rows[0]] if len(rows) == 1 else np.unique(np.concatenate([lines[row] for row in rows]))
        self.stamps.compare(source, read, columns, op["name"], op["name"])

    def _compare_elements(self, op: dict[str, Any], source: str, rows: np.ndarray, backwards: bool) -> None:
        """Check that within the rows no element is stored over one that is read later."""
        stamps, (name, output) = self.stamps, (op["name"], op["output"])
        places, sources = stamps.addresses(output, rows), stamps.addresses(source, rows)
        _, stored, read = np.intersect1d(places, sources, return_indices=True)
        written, needed = self._elements(output, rows)[stored], self._elements(source, rows)[read]
        if (written > needed if backwards else written < needed).any():
            what = f"its output {output} overwrites elements of {source} that are still to be read, in line {rows[0]}"
            stamps.lose(name, source, what, output)

    def _elements(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Return the element of the first byte of each grain of some rows."""
        return self.stamps.order(name, rows).reshape(-1) * self.stamps.grain // self.graph["tensors"][name].get("bytes", 1)

    def _add(self, op: dict[str, Any]) -> None:
        """Check that the addend of a convolution lies exactly at its output: each byte is read before it is stored."""
        name, residual, output = op["name"], op["residual"], op["output"]
        if {residual, output} & self.case.outside or not np.array_equal(
            self.stamps.addresses(residual), self.stamps.addresses(output)
        ):
            self.case.fault("residual", f"its output {output} does not lie exactly over {residual}", op=name, tensor=residual)
        else:
            self.stamps.compare(residual, self._rows(residual), slice(None), name, name)

    def _view(self, op: dict[str, Any]) -> None:
        """Check that the output addresses of a view already hold the input bytes, in the output's order."""
        name, output = op["name"], op["output"]
        if op["type"] == "reshape":
            axis = 0
        elif op["type"] == "concat" and not op.get("rescale"):
            axis = 1 if op.get("axis") == "columns" else 2
        else:
            self.case.fault("view", f"an operator of type {op['type']} that computes cannot be a view", op=name)
            return
        self.stamps.show(output, op["inputs"], axis)
        self.stamps.compare(output, self._rows(output), slice(None), name, "the view")

    def _accumulate(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Add some rows to partial results, which must be intact since the previous step; the last step stores the output."""
        name, source, output = op["name"], op["inputs"][0], op["output"]
        first, stop = step["in_rows"]
        if not is_global(op, self.graph["tensors"]):
            self.case.fault("unsupported", f"a {op['type']} that is not global does not accumulate", op=name)
            return
        self.stamps.fit_scratch(op, step, self.graph["tensors"][output]["c"] * op.get("sum_bytes", 4))
        grain = self.stamps.grain
        parts = [np.arange(p["offset"], p["offset"] + p["size"], grain) // grain for p in step.get("scratch", ())]
        places = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
        if places.size and (places.min() < 0 or places.max() >= self.stamps.size):
            self.case.fault("arena", "its partial results are outside the arena", op=name)
            return
        first_stamp = self.stamps.total + 1 + len(self._kept) * (self.stamps.size + 1)
        stamps = self._kept.setdefault(name, first_stamp) + np.arange(places.size)
        if first > 0 and (self.stamps.arena[places] != stamps).any():
            self.case.fault("overwritten", f"partial results are lost before line {first} of {source} is added", op=name)
        self.stamps.compare(source, np.arange(first, stop), slice(None), name, name)
        self.stamps.arena[places] = stamps
        self.stamps.compare(source, np.arange(first, stop), slice(None), name, f"the scratch of {name}")
        if step.get("commit"):
            self.stamps.store(output, self._rows(output))
            if output not in self.case.outside and np.isin(self.stamps.addresses(output), places).any():
                self.case.fault("overwritten", f"its partial results lie over its output {output}", op=name, tensor=output)

    def _reads(self, op: dict[str, Any], source: str) -> tuple[list[np.ndarray], Any]:
        """Return the rows of an input that each output row reads, and the columns that any of them reads."""
        key = op["name"], source
        if key not in self._pixels_read:
            height, width, _ = self.case.shape[source]
            rows_out, columns_out, _ = self.case.shape[op["output"]]
            if op["type"] in _WINDOWS:
                rows, columns = taps_along(op, source, 0, height), taps_along(op, source, 1, width)
                read = np.unique(np.concatenate([columns(x) for x in range(columns_out)]))
                self._pixels_read[key] = [rows(y) for y in range(rows_out)], slice(None) if len(read) == width else read
            elif op["type"] in _POINTWISE and self.stamps.elements(source) == self.stamps.elements(op["output"]):
                self._pixels_read[key] = list(np.arange(height)[:, None]), slice(None)
            else:
                self._pixels_read[key] = [np.arange(height)] * rows_out, slice(None)
        return self._pixels_read[key]
