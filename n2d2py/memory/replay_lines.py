"""The replay of operators that make some lines at a time, or take their input by lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from n2d2py.memory.case import Case
from n2d2py.memory.stamps import Stamps
from n2d2py.memory.taps import is_global, last_user, taps_along

POINTWISE = ("add", "ew")
WINDOWS = ("conv", "pool", "upsample", "window", "concat")


class LineReplay:
    """The inputs of a line must be there before and after it is stored; partial results must stay as they were left."""

    def __init__(self, case: Case, stamps: Stamps):
        self.case, self.graph, self.stamps = case, case.graph, stamps
        self.kept: dict[str, int] = {}
        """Stamps of the partial results of each operator that accumulates, beyond those of tensors and scratch."""
        self._known: dict[tuple[str, str], tuple[list[np.ndarray], np.ndarray]] = {}

    def execute(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Makes some lines: what a line reads must be there before and after it is stored."""
        name, output = op["name"], op["output"]
        if op["type"] not in POINTWISE + WINDOWS or "residual" in op:
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
                    self.stamps.store_lines(output, y, y + 1)
            if len(self.case.found) > 20:
                return

    def accumulate(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Adds some lines to partial results, which must be as the step before left them; the last one stores."""
        name, source, output = op["name"], op["inputs"][0], op["output"]
        _height, width, _ = self.case.shape[source]
        first, stop = step["in_rows"]
        if not is_global(op, self.graph["tensors"]):
            self.case.fault("unsupported", f"a {op['type']} that is not global does not accumulate", op=name)
            return
        self.stamps.fit_scratch(op, step, self.graph["tensors"][output]["c"] * op.get("sum_bytes", 4))
        parts = [np.arange(p["offset"], p["offset"] + p["size"]) for p in step.get("scratch", ())]
        places = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
        if places.size and (places.min() < 0 or places.max() >= self.case.size):
            self.case.fault("arena", "its partial results are outside the arena", op=name)
            return
        first_stamp = self.stamps.total + 1 + len(self.kept) * (self.case.size + 1)
        stamps = self.kept.setdefault(name, first_stamp) + np.arange(places.size)
        if first > 0 and (self.stamps.arena[places] != stamps).any():
            self.case.fault("overwritten", f"partial results are lost before line {first} of {source} is added", op=name)
        lines, columns = np.arange(first, stop), np.arange(width)
        self.stamps.compare_lines(source, lines, columns, name, f"line {first} and after of {name}")
        self.stamps.arena[places] = stamps
        self.stamps.compare_lines(source, lines, columns, name, f"its scratch for {name}")
        if step.get("commit"):
            self.stamps.store(output)
            out = self.case.addresses(output)
            if output not in self.case.outside and np.isin(out, places).any():
                self.case.fault("overwritten", f"its partial results lie over its output {output}", op=name, tensor=output)

    def _line_reads(self, op: dict[str, Any], source: str) -> tuple[list[np.ndarray], np.ndarray]:
        """For each output line the input lines that it reads; the columns that any line reads."""
        key = op["name"], source
        if key not in self._known:
            self._known[key] = self._find_line_reads(op, source)
        return self._known[key]

    def _find_line_reads(self, op: dict[str, Any], source: str) -> tuple[list[np.ndarray], np.ndarray]:
        height, width, _ = self.case.shape[source]
        rows_out, cols_out, _ = self.case.shape[op["output"]]
        if op["type"] in POINTWISE:
            if self.stamps.elements(source) != self.stamps.elements(op["output"]):
                return [np.arange(height)] * rows_out, np.arange(width)
            return [np.array([y]) for y in range(rows_out)], np.arange(width)
        inside = taps_along(op, source, 0, height)
        columns = last_user(width, cols_out, taps_along(op, source, 1, width), False) >= 0
        return [inside(y) for y in range(rows_out)], np.flatnonzero(columns)
