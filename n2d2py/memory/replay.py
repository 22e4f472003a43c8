"""Replays a network over an arena of stamps: which bytes are lost before they are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from n2d2py.memory.case import Case, Violation
from n2d2py.memory.replay_lines import POINTWISE, WINDOWS, LineReplay
from n2d2py.memory.stamps import Stamps
from n2d2py.memory.taps import last_user, taps_along

_NEVER_READ = -1
_ALWAYS_READ = np.iinfo(np.int32).max - 1
_NEVER_STORED = np.iinfo(np.int32).max
_WHOLE = ("fc", "softmax")


class Replay:
    """One replay of a case whose planes and schedule are in order; `run` adds to its faults."""

    def __init__(self, case: Case):
        self.case, self.graph = case, case.graph
        self.stamps = Stamps(case)
        self._lines = LineReplay(case, self.stamps)

    def run(self) -> list[Violation]:
        """All faults of the case."""
        arriving = {step["input"] for step in self.case.map["schedule"] if "input" in step}
        for name in self.graph["inputs"]:
            if name not in arriving:
                self.stamps.store(name)
        for step in self.case.map["schedule"]:
            if "input" in step:
                self.stamps.store_lines(step["input"], *step["rows"])
            elif "in_rows" in step:
                self._lines.accumulate(self.case.ops[step["op"]], step)
            elif "rows" in step:
                self._lines.execute(self.case.ops[step["op"]], step)
            else:
                self._execute(self.case.ops[step["op"]], step)
        for name in self.graph["outputs"]:
            self.stamps.compare(name, None, "the end of the network")
        return self.case.found

    def _execute(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        name, output = op["name"], op["output"]
        if step.get("view"):
            self._view(op)
            return
        if op["type"] not in POINTWISE + WINDOWS + _WHOLE:
            self.case.fault("unsupported", f"an operator of type {op['type']} must be a view", op=name)
            return
        self.stamps.destroy_scratch(op, step)
        out = self.case.addresses(output)
        backwards = step.get("loop", "hwc").startswith("-")
        stored_at = None
        for source in dict.fromkeys(op["inputs"]):
            if source in self.case.outside:
                continue
            last_read = self._last_reads(op, source, backwards)
            self.stamps.compare(source, name, name, last_read != _NEVER_READ)
            if output in self.case.outside:
                continue
            places = self.case.addresses(source)
            if places.min() > out.max() or out.min() > places.max():
                continue
            if stored_at is None:
                stored_at = self._store_times(op, out, backwards)
            if op["type"] in POINTWISE and self.stamps.elements(source) == self.stamps.elements(output):
                lost = self._lost_elements(source, places, stored_at, backwards)
            else:
                lost = stored_at[places] <= last_read[:, :, None]
            if lost.any():
                y, x, byte = (int(i) for i in np.argwhere(lost)[0])
                self.case.fault(
                    "overwritten",
                    f"its output {output} overwrites {int(lost.sum())} bytes of {source} "
                    f"that are still to be read, first line {y}, pixel {x}, byte {byte}",
                    op=name,
                    tensor=source,
                    by=output,
                )
        if "residual" in op:
            self._add(op)
        self.stamps.store(output)

    def _add(self, op: dict[str, Any]) -> None:
        """The addend of a convolution must lie at its output byte by byte: each one is read before it is stored."""
        name, residual, output = op["name"], op["residual"], op["output"]
        if {residual, output} & self.case.outside or not np.array_equal(
            self.case.addresses(residual), self.case.addresses(output)
        ):
            self.case.fault("residual", f"its output {output} does not lie exactly over {residual}", op=name, tensor=residual)
        else:
            self.stamps.compare(residual, name, name)

    def _last_reads(self, op: dict[str, Any], source: str, backwards: bool) -> np.ndarray:
        """int32[height, width]: when the last output line (windows) reads a pixel, in lines since
        the start; -1 when none does.
        """
        height, width, _ = self.case.shape[source]
        if op["type"] not in WINDOWS:
            return np.full((height, width), _ALWAYS_READ, dtype=np.int32)
        rows_out, cols_out, _ = self.case.shape[op["output"]]
        rows = last_user(height, rows_out, taps_along(op, source, 0, height), backwards)
        cols = last_user(width, cols_out, taps_along(op, source, 1, width), False)
        return np.where(cols[None, :] >= 0, rows[:, None], _NEVER_READ).astype(np.int32)

    def _store_times(self, op: dict[str, Any], out: np.ndarray, backwards: bool) -> np.ndarray:
        """int32[arena]: when each address is stored first, from 0 on: in lines (windows), elements
        (pointwise); 0 for the others.
        """
        height, width, pixel = out.shape
        times = np.full(self.case.size, _NEVER_STORED, dtype=np.int32)
        if op["type"] in POINTWISE:
            element = self.graph["tensors"][op["output"]].get("bytes", 1)
            when = np.arange(height * width * pixel, dtype=np.int32) // element
        elif op["type"] in WINDOWS:
            when = np.repeat(np.arange(height, dtype=np.int32), width * pixel)
        else:
            when = np.zeros(height * width * pixel, dtype=np.int32)
        if backwards:
            when = when[-1] - when
        latest_first = np.argsort(-when, kind="stable")
        times[out.reshape(-1)[latest_first]] = when[latest_first]
        return times

    def _lost_elements(self, source: str, places: np.ndarray, stored_at: np.ndarray, backwards: bool) -> np.ndarray:
        """Bytes of a pointwise operand that are stored before their element is read."""
        element = self.graph["tensors"][source].get("bytes", 1)
        read_at = (np.arange(places.size, dtype=np.int64) // element).reshape(places.shape)
        if backwards:
            read_at = read_at.max() - read_at
        return stored_at[places] < read_at

    def _view(self, op: dict[str, Any]) -> None:
        """No code runs: the output's addresses must already hold the inputs' bytes, in the output's
        order.
        """
        name, output = op["name"], op["output"]
        if op["type"] == "reshape":
            expected = self.stamps.own(op["inputs"][0]).reshape(self.case.shape[output])
        elif op["type"] == "concat" and not op.get("rescale"):
            axis = 1 if op.get("axis") == "columns" else 2
            expected = np.concatenate([self.stamps.own(source) for source in op["inputs"]], axis=axis)
        else:
            self.case.fault("view", f"an operator of type {op['type']} that computes cannot be a view", op=name)
            return
        self.stamps.known[output] = expected
        self.stamps.compare(output, name, "the view")
