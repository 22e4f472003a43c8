"""Replay of a network over an arena of stamps, to find bytes that are lost before they are read."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
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


def last_user(inputs: int, outputs: int, inside: Taps, backwards: bool) -> np.ndarray:
    """Return for each input position the outputs before its last reader, int64[inputs]; -1 if none reads it."""
    last = np.full(inputs, -1, dtype=np.int64)
    for step in range(outputs):
        last[inside(outputs - 1 - step if backwards else step)] = step
    return last


_POINTWISE = ("add", "ew")
_WINDOWS = ("conv", "pool", "upsample", "window", "concat")
_WHOLE = ("fc", "softmax")

_NEVER_READ = -1
_ALWAYS_READ = np.iinfo(np.int32).max - 1
_NEVER_STORED = np.iinfo(np.int32).max


class Copy:
    """A copy of a constant in the arena, made once its life begins; it must be intact after each step of its operator."""

    def __init__(self, case: Case, stamps: Stamps, number: int):
        self.case, self.stamp, self.made, self.entry = case, -2 - number, False, case.copies[number]
        self.begin, self.end = self.entry["copy"], self.entry["copy"] + self.entry["bytes"]
        self.bytes = stamps.arena[self.begin // stamps.grain : self.end // stamps.grain]

    def make(self, step: dict[str, Any]) -> None:
        """Write it before the first step of its life."""
        if self.made or step["clock"] < self.entry["life"][0]:
            return
        self.made = True
        if self.begin < 0 or self.end > self.case.size or not self.case.is_in_one_memory(self.begin, self.end):
            self.case.fault("memory", f"the copy of {self.entry['name']} is not in one memory", op=self.entry["op"])
        else:
            self.bytes[:] = self.stamp

    def compare(self, step: dict[str, Any]) -> None:
        """Record a fault if its operator reads other bytes."""
        if step.get("op") == self.entry["op"] and not (self.made and (self.bytes == self.stamp).all()):
            what = f"the copy of {self.entry['name']} is lost before the layer has read it"
            self.case.fault("overwritten", what, op=self.entry["op"], by=self.entry["name"])


class Replay:
    """One replay of a case whose planes and schedule are valid; `run` adds to its faults."""

    def __init__(self, case: Case):
        self.case, self.graph = case, case.graph
        self.stamps = Stamps(case)
        self._kept: dict[str, int] = {}
        """Stamps of the partial results of each operator that accumulates, beyond those of tensors and scratch."""
        self._lines_read: dict[tuple[str, str], tuple[list[np.ndarray], np.ndarray]] = {}

    def run(self) -> list[Violation]:
        """Return all faults of the case."""
        arriving = {step["input"] for step in self.case.map["schedule"] if "input" in step}
        for name in self.graph["inputs"]:
            if name not in arriving:
                self.stamps.store(name)
        copies = [Copy(self.case, self.stamps, number) for number in range(len(self.case.copies))]
        for step in self.case.map["schedule"]:
            for copy in copies:
                copy.make(step)
            if "input" in step:
                self.stamps.store(step["input"], slice(*step["rows"]))
            elif "in_rows" in step:
                self._accumulate(self.case.ops[step["op"]], step)
            elif "rows" in step:
                self._execute_lines(self.case.ops[step["op"]], step)
            else:
                self._execute(self.case.ops[step["op"]], step)
            for copy in copies:
                copy.compare(step)
        for name in self.graph["outputs"]:
            self.stamps.compare(name, None, "the end of the network")
        return self.case.found

    def _execute(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        name, output = op["name"], op["output"]
        if step.get("view"):
            self._view(op)
            return
        if op["type"] not in _POINTWISE + _WINDOWS + _WHOLE:
            self.case.fault("unsupported", f"an operator of type {op['type']} must be a view", op=name)
            return
        self.stamps.destroy_scratch(op, step)
        backwards = step.get("loop", "hwc").startswith("-")
        stored_at = None
        for source in dict.fromkeys(op["inputs"]):
            if source in self.case.outside:
                continue
            last_read = self._last_reads(op, source, backwards)
            self.stamps.compare(source, name, name, last_read != _NEVER_READ)
            if not self._may_overwrite(output, source):
                continue
            if stored_at is None:
                stored_at = self._store_times(op, backwards)
            by_element = op["type"] in _POINTWISE and self.stamps.elements(source) == self.stamps.elements(output)
            lost = np.zeros(self.stamps.shape[source], bool)
            for at in self.stamps.blocks(source):
                places = self.stamps.addresses(source, *at)
                if by_element:
                    lost[at] = stored_at[places] < self._elements_of_grains(source, at, backwards)
                else:
                    lost[at] = stored_at[places] <= last_read[at][:, :, None]
            self._check_overwritten(op, source, lost)
        if "residual" in op:
            self._add(op)
        self.stamps.store(output)

    def _may_overwrite(self, output: str, source: str) -> bool:
        if output in self.case.outside:
            return False
        (first, last), (out_first, out_last) = self.case.extent(source), self.case.extent(output)
        return first <= out_last and out_first <= last

    def _check_overwritten(self, op: dict[str, Any], source: str, lost: np.ndarray) -> None:
        if lost.any():
            y, x, byte = (int(i) for i in np.argwhere(lost)[0])
            grain, output = self.stamps.grain, op["output"]
            place = f"first line {y}, pixel {x}, byte {byte * grain}"
            what = f"its output {output} overwrites {int(lost.sum()) * grain} bytes of {source} that are still to be read"
            self.case.fault("overwritten", f"{what}, {place}", op["name"], source, output)

    def _add(self, op: dict[str, Any]) -> None:
        """Check that the addend of a convolution lies exactly at its output: each byte is read before it is stored."""
        name, residual, output = op["name"], op["residual"], op["output"]
        if {residual, output} & self.case.outside or not np.array_equal(
            self.stamps.addresses(residual), self.stamps.addresses(output)
        ):
            self.case.fault("residual", f"its output {output} does not lie exactly over {residual}", op=name, tensor=residual)
        else:
            self.stamps.compare(residual, name, name)

    def _last_reads(self, op: dict[str, Any], source: str, backwards: bool) -> np.ndarray:
        """Return the output row, counted from the start, that reads a pixel last: int32[height, width], -1 if none does."""
        height, width, _ = self.case.shape[source]
        if op["type"] not in _WINDOWS:
            return np.full((height, width), _ALWAYS_READ, dtype=np.int32)
        rows_out, cols_out, _ = self.case.shape[op["output"]]
        rows = last_user(height, rows_out, taps_along(op, source, 0, height), backwards)
        cols = last_user(width, cols_out, taps_along(op, source, 1, width), False)
        return np.where(cols[None, :] >= 0, rows[:, None], _NEVER_READ).astype(np.int32)

    def _store_times(self, op: dict[str, Any], backwards: bool) -> np.ndarray:
        """Return the first store of each grain: int32[arena], in rows (windows) or elements (pointwise); 0 for others."""
        output, times = op["output"], np.full(self.stamps.size, _NEVER_STORED, dtype=np.int32)
        rows = self.stamps.shape[output][0]
        parts, last_first = list(self.stamps.blocks(output)), 1 if backwards else -1
        for at in parts[::last_first]:
            out = self.stamps.addresses(output, *at)
            if op["type"] in _POINTWISE:
                when = self._elements_of_grains(output, at, backwards)
            elif op["type"] in _WINDOWS:
                order = np.arange(rows, dtype=np.int32)[::-1] if backwards else np.arange(rows, dtype=np.int32)
                when = order[at[0], None, None]
            else:
                when = np.zeros((1, 1, 1), dtype=np.int32)
            times[out.reshape(-1)[::last_first]] = np.broadcast_to(when, out.shape).reshape(-1)[::last_first]
        return times

    def _elements_of_grains(self, name: str, at: tuple[slice, slice], backwards: bool) -> np.ndarray:
        """Return the element of the first byte of each grain of a block, counted from the last one if `backwards`:
        int64[rows, columns, pixel]."""
        stamps, size = self.stamps, self.graph["tensors"][name].get("bytes", 1)
        element = stamps.order(name, *at) * stamps.grain // size
        return (prod(stamps.shape[name]) - 1) * stamps.grain // size - element if backwards else element

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
        self.stamps.views[output] = op["inputs"], axis
        self.stamps.compare(output, name, "the view")

    def _execute_lines(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Compute some rows: the inputs of a row must be intact before and after it is stored."""
        name, output = op["name"], op["output"]
        if op["type"] not in _POINTWISE + _WINDOWS or "residual" in op:
            what = "with a residual " if "residual" in op else ""
            self.case.fault("unsupported", f"a {op['type']} {what}does not run by lines", op=name)
            return
        self.stamps.destroy_scratch(op, step)
        masks = {source: self._line_reads(op, source) for source in dict.fromkeys(op["inputs"])}
        for y in range(*step["rows"]):
            for moment in ("", " again"):
                for source, (rows, columns) in masks.items():
                    self.stamps.compare_lines(source, rows[y], columns, name, f"line {y} of {name}{moment}")
                if not moment:
                    self.stamps.store(output, slice(y, y + 1))
            if len(self.case.found) > 20:
                return

    def _accumulate(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Add some rows to partial results, which must be intact since the previous step; the last step stores the output."""
        name, source, output = op["name"], op["inputs"][0], op["output"]
        _height, width, _ = self.case.shape[source]
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
        lines, columns = np.arange(first, stop), np.arange(width)
        self.stamps.compare_lines(source, lines, columns, name, f"line {first} and after of {name}")
        self.stamps.arena[places] = stamps
        self.stamps.compare_lines(source, lines, columns, name, f"its scratch for {name}")
        if step.get("commit"):
            self.stamps.store(output)
            if output not in self.case.outside and np.isin(self.stamps.addresses(output), places).any():
                self.case.fault("overwritten", f"its partial results lie over its output {output}", op=name, tensor=output)

    def _line_reads(self, op: dict[str, Any], source: str) -> tuple[list[np.ndarray], np.ndarray]:
        key = op["name"], source
        if key not in self._lines_read:
            self._lines_read[key] = self._find_line_reads(op, source)
        return self._lines_read[key]

    def _find_line_reads(self, op: dict[str, Any], source: str) -> tuple[list[np.ndarray], np.ndarray]:
        height, width, _ = self.case.shape[source]
        rows_out, cols_out, _ = self.case.shape[op["output"]]
        if op["type"] in _POINTWISE:
            if self.stamps.elements(source) != self.stamps.elements(op["output"]):
                return [np.arange(height)] * rows_out, np.arange(width)
            return [np.array([y]) for y in range(rows_out)], np.arange(width)
        inside = taps_along(op, source, 0, height)
        columns = last_user(width, cols_out, taps_along(op, source, 1, width), False) >= 0
        return [inside(y) for y in range(rows_out)], np.flatnonzero(columns)
