"""Replays a network over an arena of stamps: which bytes are lost before they are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from n2d2py.memory.case import Case, Violation

__all__ = ["Replay"]

_NEVER_READ = -1
_ALWAYS_READ = np.iinfo(np.int32).max - 1
_NEVER_STORED = np.iinfo(np.int32).max
_POINTWISE = ("add", "ew")
_WINDOWS = ("conv", "pool", "pad", "upsample", "concat")
_WHOLE = ("fc", "softmax", "copy", "deconv", "resize", "unpool", "normalize")


class Replay:
    """One replay of a case whose planes and schedule are in order; `run` adds to its faults."""

    def __init__(self, case: Case):
        self.case, self.graph = case, case.graph
        self.names = list(case.graph["tensors"])
        sizes = [height * width * pixel for height, width, pixel in case.shape.values()]
        self.starts = np.cumsum([0] + sizes[:-1], dtype=np.int64)
        self.base = {name: int(start) for name, start in zip(self.names, self.starts)}
        self.total = sum(sizes)
        self.arena = np.full(case.size, -1, dtype=np.int64)
        self.stamps: dict[str, np.ndarray] = {}
        self.kept: dict[str, int] = {}
        """Stamps of the partial results of each operator that accumulates, beyond those of tensors and scratch."""

    def run(self) -> list[Violation]:
        """All faults of the case."""
        arriving = {step["input"] for step in self.case.map["schedule"] if "input" in step}
        for name in self.graph["inputs"]:
            if name not in arriving:
                self._store(name)
        for step in self.case.map["schedule"]:
            if "input" in step:
                self._store_lines(step["input"], *step["rows"])
            elif "in_rows" in step:
                self._accumulate(self.case.ops[step["op"]], step)
            elif "rows" in step:
                self._execute_lines(self.case.ops[step["op"]], step)
            else:
                self._execute(self.case.ops[step["op"]], step)
        for name in self.graph["outputs"]:
            self._compare(name, None, "the end of the network")
        return self.case.found

    def _own_stamps(self, name: str) -> np.ndarray:
        """int64[height, width, pixel bytes]: the stamps that the bytes of a tensor must bear."""
        if name not in self.stamps:
            height, width, pixel = self.case.shape[name]
            first = self.base[name]
            self.stamps[name] = np.arange(
                first, first + height * width * pixel, dtype=np.int64
            ).reshape(height, width, pixel)
        return self.stamps[name]

    def _store(self, name: str) -> None:
        """Writes a tensor as a whole; a plane that lies over itself is caught by its next read."""
        if name not in self.case.outside:
            self.arena[self.case.addresses(name)] = self._own_stamps(name)

    def _compare(
        self, name: str, op: str | None, reader: str, reads: np.ndarray | None = None
    ) -> None:
        """Checks a tensor in the arena; `reads` masks [height, width] pixels, None for all."""
        if name in self.case.outside:
            return
        wrong = self.arena[self.case.addresses(name)] != self._own_stamps(name)
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

    def _holder(self, stamp: int) -> str | None:
        """The tensor whose stamp it is; "scratch" for destroyed bytes, None for bytes never
        written.
        """
        if stamp == -1:
            return None
        if stamp >= self.total:
            return "scratch"
        return self.names[int(np.searchsorted(self.starts, stamp, side="right")) - 1]

    def _execute(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        name, output = op["name"], op["output"]
        if step.get("view"):
            self._view(op)
            return
        if op["type"] not in _POINTWISE + _WINDOWS + _WHOLE:
            self.case.fault(
                "unsupported", f"an operator of type {op['type']} must be a view", op=name
            )
            return
        self._scratch(op, step)
        out = self.case.addresses(output)
        backwards = step.get("loop", "hwc").startswith("-")
        stored_at = None
        for source in dict.fromkeys(op["inputs"]):
            if source in self.case.outside:
                continue
            last_read = self._last_reads(op, source, backwards)
            self._compare(source, name, name, last_read != _NEVER_READ)
            places = self.case.addresses(source)
            if places.min() > out.max() or out.min() > places.max():
                continue
            if stored_at is None:
                stored_at = self._store_times(op, out, backwards)
            if op["type"] in _POINTWISE and self._elements(source) == self._elements(output):
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
        self._store(output)

    def _store_lines(self, name: str, first: int, stop: int) -> None:
        """Writes lines [first, stop) one after the other."""
        for y in range(first, stop):
            self.arena[self.case.addresses(name)[y]] = self._own_stamps(name)[y]

    def _execute_lines(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Makes some lines: what a line reads must be there before and after it is stored."""
        name, output = op["name"], op["output"]
        if op["type"] not in _POINTWISE + _WINDOWS:
            self.case.fault("unsupported", f"a {op['type']} does not run by lines", op=name)
            return
        self._scratch(op, step)
        masks = {source: self._line_reads(op, source) for source in dict.fromkeys(op["inputs"])}
        for y in range(*step["rows"]):
            for moment in ("", " again"):
                for source, (rows, columns) in masks.items():
                    self._compare_lines(source, rows[y], columns, name, f"line {y} of {name}{moment}")
                if not moment:
                    self._store_lines(output, y, y + 1)
            if len(self.case.found) > 20:
                return

    def _accumulate(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Adds some lines to partial results, which must be as the step before left them; the last one stores."""
        name, source, output = op["name"], op["inputs"][0], op["output"]
        height, width, _ = self.case.shape[source]
        first, stop = step["in_rows"]
        if not _is_global(op, self.graph["tensors"]):
            self.case.fault("unsupported", f"a {op['type']} that is not global does not accumulate", op=name)
            return
        self._fit_scratch(op, step, self.graph["tensors"][output]["c"] * op.get("sum_bytes", 4))
        places = [np.arange(p["offset"], p["offset"] + p["size"]) for p in step.get("scratch", ())]
        places = np.concatenate(places) if places else np.zeros(0, dtype=np.int64)
        if places.size and (places.min() < 0 or places.max() >= self.case.size):
            self.case.fault("arena", "its partial results are outside the arena", op=name)
            return
        stamps = self.kept.setdefault(name, self.total + 1 + len(self.kept) * (self.case.size + 1)) + np.arange(places.size)
        if first > 0 and (self.arena[places] != stamps).any():
            self.case.fault("overwritten", f"partial results are lost before line {first} of {source} is added", op=name)
        self._compare_lines(source, np.arange(first, stop), np.arange(width), name, f"line {first} and after of {name}")
        self.arena[places] = stamps
        self._compare_lines(source, np.arange(first, stop), np.arange(width), name, f"its scratch for {name}")
        if step.get("commit"):
            self._store(output)
            out = self.case.addresses(output)
            if np.isin(out, places).any():
                self.case.fault("overwritten", f"its partial results lie over its output {output}", op=name, tensor=output)

    def _line_reads(self, op: dict[str, Any], source: str) -> tuple[list[np.ndarray], np.ndarray]:
        """For each output line the input lines that it reads; the columns that any line reads."""
        height, width, _ = self.case.shape[source]
        rows_out, cols_out, _ = self.case.shape[op["output"]]
        if op["type"] in _POINTWISE:
            if self._elements(source) != self._elements(op["output"]):
                return [np.arange(height)] * rows_out, np.arange(width)
            return [np.array([y]) for y in range(rows_out)], np.arange(width)
        rows = [_taps(y, height, *_axis(op, 0)) for y in range(rows_out)]
        columns = _last_user(width, cols_out, *_axis(op, 1), False) >= 0
        return rows, np.flatnonzero(columns)

    def _compare_lines(
        self, source: str, rows: np.ndarray, columns: np.ndarray, op: str, reader: str
    ) -> None:
        if source in self.case.outside or not len(rows):
            return
        grid = np.ix_(rows, columns)
        held, wanted = self.arena[self.case.addresses(source)[grid]], self._own_stamps(source)[grid]
        if (held != wanted).any():
            at = tuple(np.argwhere(held != wanted)[0])
            holder = self._holder(int(held[at]))
            self.case.fault(
                "overwritten",
                f"line {rows[at[0]]} of {source} is lost before {reader} reads it: "
                f"{holder or 'nothing'} is there",
                op=op,
                tensor=source,
                by=holder,
            )

    def _scratch(self, op: dict[str, Any], step: dict[str, Any]) -> None:
        """Destroys the scratch bytes: inputs lose theirs now, the output must not lie there."""
        output = self.case.addresses(op["output"])
        self._fit_scratch(op, step, op.get("scratch_bytes", 0))
        for part in step.get("scratch", ()):
            begin, end = part["offset"], part["offset"] + part["size"]
            if begin < 0 or end > self.case.size:
                self.case.fault(
                    "arena",
                    f"scratch at {begin} to {end} is outside the arena of {self.case.size}",
                    op=op["name"],
                )
                continue
            self.arena[begin:end] = self.total
            if ((output >= begin) & (output < end)).any():
                self.case.fault(
                    "overwritten",
                    f"its scratch lies over its output {op['output']}",
                    op=op["name"],
                    tensor=op["output"],
                    by="scratch",
                )

    def _fit_scratch(self, op: dict[str, Any], step: dict[str, Any], needed: int) -> None:
        given = sum(part["size"] for part in step.get("scratch", ()))
        if given < needed:
            self.case.fault(
                "scratch", f"needs {needed} bytes of scratch, has {given}", op=op["name"]
            )

    def _last_reads(self, op: dict[str, Any], source: str, backwards: bool) -> np.ndarray:
        """int32[height, width]: when the last output line (windows) reads a pixel, in lines since
        the start; -1 when none does.
        """
        height, width, _ = self.case.shape[source]
        if op["type"] not in _WINDOWS:
            return np.full((height, width), _ALWAYS_READ, dtype=np.int32)
        rows_out, cols_out, _ = self.case.shape[op["output"]]
        rows = _last_user(height, rows_out, *_axis(op, 0), backwards)
        cols = _last_user(width, cols_out, *_axis(op, 1), False)
        return np.where(cols[None, :] >= 0, rows[:, None], _NEVER_READ).astype(np.int32)

    def _store_times(self, op: dict[str, Any], out: np.ndarray, backwards: bool) -> np.ndarray:
        """int32[arena]: when each address is stored first, from 0 on: in lines (windows), elements
        (pointwise); 0 for the others.
        """
        height, width, pixel = out.shape
        times = np.full(self.case.size, _NEVER_STORED, dtype=np.int32)
        if op["type"] in _POINTWISE:
            element = self.graph["tensors"][op["output"]].get("bytes", 1)
            when = np.arange(height * width * pixel, dtype=np.int32) // element
        elif op["type"] in _WINDOWS:
            when = np.repeat(np.arange(height, dtype=np.int32), width * pixel)
        else:
            when = np.zeros(height * width * pixel, dtype=np.int32)
        if backwards:
            when = when[-1] - when
        latest_first = np.argsort(-when, kind="stable")
        times[out.reshape(-1)[latest_first]] = when[latest_first]
        return times

    def _elements(self, name: str) -> tuple[int, int, int]:
        """Height, width and channels, without regard to the element size."""
        tensor = self.graph["tensors"][name]
        return tensor["h"], tensor["w"], tensor["c"]

    def _lost_elements(
        self, source: str, places: np.ndarray, stored_at: np.ndarray, backwards: bool
    ) -> np.ndarray:
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
            expected = self._own_stamps(op["inputs"][0]).reshape(self.case.shape[output])
        elif op["type"] == "concat" and not op.get("rescale"):
            expected = np.concatenate([self._own_stamps(source) for source in op["inputs"]], axis=2)
        else:
            self.case.fault(
                "view", f"an operator of type {op['type']} that computes cannot be a view", op=name
            )
            return
        self.stamps[output] = expected
        self._compare(output, name, "the view")


def _is_global(op: dict[str, Any], tensors: dict[str, Any]) -> bool:
    """Whether the operator is a pool over its whole input."""
    source, output = tensors[op["inputs"][0]], tensors[op["output"]]
    return (
        op["type"] == "pool"
        and (op["kh"], op["kw"]) == (source["h"], source["w"])
        and (output["h"], output["w"]) == (1, 1)
        and not any(op["pads"])
    )


def _axis(op: dict[str, Any], axis: int) -> tuple[int, int, int, int, int]:
    """(kernel, stride, pad before, dilation, upsampling factor) of a window along an axis."""
    if op["type"] == "upsample":
        scale = op["scale"]
        return 1, 1, 0, 1, scale[axis] if isinstance(scale, (list, tuple)) else scale
    if op["type"] == "concat":
        return 1, 1, 0, 1, 1
    pad = op["pads"][axis]
    if op["type"] == "pad":
        return 1, 1, pad, 1, 1
    dil = op.get("dil", 1)
    dilation = dil[axis] if isinstance(dil, (list, tuple)) else dil
    return op[("kh", "kw")[axis]], op[("sh", "sw")[axis]], pad, dilation, 1


def _last_user(
    inputs: int,
    outputs: int,
    kernel: int,
    stride: int,
    pad: int,
    dilation: int,
    factor: int,
    backwards: bool,
) -> np.ndarray:
    """int64[inputs]: how many output positions precede the last one whose window holds each input
    position, -1 when none does.
    """
    last = np.full(inputs, -1, dtype=np.int64)
    for step in range(outputs):
        position = outputs - 1 - step if backwards else step
        last[_taps(position, inputs, kernel, stride, pad, dilation, factor)] = step
    return last


def _taps(
    position: int, inputs: int, kernel: int, stride: int, pad: int, dilation: int, factor: int
) -> np.ndarray:
    """The input positions inside the window of an output position."""
    taps = (position * stride - pad + np.arange(kernel) * dilation) // factor
    return taps[(taps >= 0) & (taps < inputs)]
