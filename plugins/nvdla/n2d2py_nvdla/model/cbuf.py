"""The convolution buffer: what convolutions load into it, read from it, release, and leave after.

A loader writes lines of data and weights into entries, a sequencer reads and releases them. Both count entries on from
convolution to convolution, and wrap at the end of the banks that data or weights have. What is loaded and not released
stays: the next convolution reads it instead of the new one, or waits for ever. The pointers are those of NVIDIA's C-model
(nvdla/hw, cmod/cdma and cmod/csc).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.config import HardwareConfig
from n2d2py_nvdla.model.cbuf_use import BufferUse

TRANSACTION = 8
"""Atoms that the loader asks memory for at once."""


@dataclass(frozen=True)
class Reading:
    """Reads of the sequencer.

    Attributes:
        data: the lines, (lines, entries, width) bytes; None where they are what was loaded just now.
        weights: bytes of all kernels; None where they are what was loaded just now.
        data_shift, weight_shift: entries that they begin before what belongs to the convolution.
    """

    data: np.ndarray | None
    weights: np.ndarray | None
    data_shift: int
    weight_shift: int


@dataclass
class _Pointers:
    """Entries counted from the beginning of the banks, without the wrapping.

    Attributes:
        loaded: the first entry that is not loaded.
        free: the first entry that must not be loaded yet.
        read: the first entry that the sequencer has not released.
        before: `read` when the last convolution that loaded weights began.
        left: entries that the last convolution kept for this one.
        own: where what the last loading brought begins.
    """

    loaded: int = 0
    free: int = 0
    read: int = 0
    before: int = 0
    left: int = 0
    own: int = 0

    def begin(self, entries: int) -> None:
        """Empty banks of so many entries."""
        self.loaded, self.free, self.read, self.before, self.left, self.own = 0, entries, 0, 0, 0, 0

    def drop(self) -> None:
        """Release what was kept."""
        self.free += self.left
        self.left = 0


class ConvolutionBuffer:
    """The buffer of one accelerator, from convolution to convolution."""

    def __init__(self, config: HardwareConfig):
        self._config = config
        self._memory: np.ndarray | None = None
        self._data, self._weights = _Pointers(), _Pointers()
        self._last: BufferUse | None = None
        self._stuck = ""

    @property
    def held(self) -> int:
        """Entries of weights that were loaded and never released, apart from those that were kept on purpose."""
        if self._last is None:
            return 0
        entries = self._last.weight_banks * self._config.depth
        return self._weights.loaded - (self._weights.free - entries) - self._weights.left

    def run(self, use: BufferUse, lines: np.ndarray | None = None, weights: np.ndarray | None = None) -> Reading:
        """Return a convolution: loads, reads, releases.

        Args:
            use: what it asks for.
            lines: data as loaded, (lines, entries, width) uint8; None moves the pointers alone.
            weights: `weight_bytes` of memory, uint8; None moves the pointers alone.

        Raises:
            N2D2Error: E904 where the hardware would wait for ever, E903 where it cannot do what is asked.
        """
        self._check(use)
        data, data_shift = self._read_data(use, lines)
        read, weight_shift = self._read_weights(use, weights)
        self._last = use
        return Reading(data, read, data_shift, weight_shift)

    def _check(self, use: BufferUse) -> None:
        if self._stuck:
            raise _hang(use, self._stuck)
        wrong, width = "", self._config.width
        if use.data_banks < 1 or use.weight_banks < 1 or use.data_banks + use.weight_banks > self._config.banks:
            wrong = f"takes {use.data_banks} and {use.weight_banks} of {self._config.banks} banks"
        elif use.entries < 1 or use.lines * use.entries > use.data_banks * self._config.depth:
            wrong = (
                f"loads {use.lines} lines of {use.entries} entries into {use.data_banks} banks of {self._config.depth} entries"
            )
        elif use.weight_bytes % width or not use.weight_bytes:
            wrong = f"loads {use.weight_bytes} bytes of weights, not a multiple of the {width} bytes of an entry"
        elif use.released > use.wanted or use.released < 1:
            wrong = f"releases {use.released} of {use.wanted} lines"
        if wrong:
            raise N2D2Error("E903", f"{use.name}: {wrong}", remedy="compile it again; NVIDIA's C-model stops here")

    # ---- data ------------------------------------------------------------------------------
    def _read_data(self, use: BufferUse, lines: np.ndarray | None) -> tuple[np.ndarray | None, int]:
        at, last, size = self._data, self._last, use.data_banks * self._config.depth
        reused = last is not None and last.layout == use.layout and use.reuse_data
        if last is None:
            at.begin(size)
        elif last.data_banks != use.data_banks:
            at.drop()
            held = at.loaded - (at.free - last.data_banks * self._config.depth)
            if held > 0:
                raise _hang(use, f"its data wait until {held} entries of data are released, and nothing releases them")
            at.begin(size)
        elif not reused:
            at.read += at.left
            at.drop()
        whole = reused and last is not None and last.keep_data
        if not whole:
            at.own = at.loaded
            at.loaded += use.lines * use.entries
            if at.loaded > at.free:
                raise _hang(use, f"its data wait for {at.loaded - at.free} entries that nothing releases")
            if lines is not None:
                self._write_lines(at.own, size, lines)
        if at.loaded - at.read < use.wanted * use.entries:
            raise _hang(use, f"it waits for {use.wanted} lines, and {(at.loaded - at.read) // use.entries} are loaded")
        start = at.read
        fresh = not whole and start == at.own and use.wanted == use.lines and (lines is None or lines.shape[1] == use.entries)
        found = None if fresh or lines is None else self._lines(use, start, size, lines.shape[1])
        released = 0 if use.keep_data else use.released
        at.read += released * use.entries
        at.free += released * use.entries
        at.left = (use.wanted - released) * use.entries
        return found, 0 if whole or reused else at.own - start

    def _write_lines(self, first: int, size: int, lines: np.ndarray) -> None:
        places = (first + np.arange(lines.shape[0] * lines.shape[1])) % size
        self._bytes()[places] = lines.reshape(-1, lines.shape[2])

    def _lines(self, use: BufferUse, first: int, size: int, entries: int) -> np.ndarray:
        places = first + np.arange(use.wanted)[:, None] * use.entries + np.arange(entries)
        return self._bytes()[places % size]

    # ---- weights ---------------------------------------------------------------------------
    def _read_weights(self, use: BufferUse, weights: np.ndarray | None) -> tuple[np.ndarray | None, int]:
        at, last, size = self._weights, self._last, use.weight_banks * self._config.depth
        loading = True
        if last is None:
            at.begin(size)
        elif last.layout[1:] != use.layout[1:]:
            at.drop()
            held = at.loaded - (at.free - last.weight_banks * self._config.depth)
            if held > 0:
                raise _hang(use, f"its weights wait until {held} entries of earlier weights are released, and nothing does")
            at.begin(size)
        elif last.layout == use.layout and last.keep_weights and use.reuse_weights:
            at.read, loading = at.before, False
        else:
            at.before = at.read
            at.drop()
        if loading:
            at.own = at.loaded
        start = at.read
        fresh = weights is None or (loading and start == at.own)
        loader = self._load(use, weights) if loading else iter(())
        counted, parts = 0, []
        for first in range(0, use.kernels, use.group):
            kernels = min(first + use.group, use.kernels)
            wanted = -(-kernels * use.counted_bytes // self._config.width) * self._config.width
            while loading and counted < wanted:
                counted = next(loader, -1)
                if counted < 0:
                    raise _hang(use, f"it waits for {wanted} bytes of weights: {self._why(use)}")
            low, high = (start + -(-k * use.kernel_bytes // self._config.width) for k in (first, kernels))
            if not fresh:
                parts.append(self._entries(use, low, high))
            at.read += high - low
            at.free += 0 if use.keep_weights else high - low
        counted = max(loader, default=counted)
        if loading and counted < use.weight_bytes:
            self._stuck = f"the weights of {use.name} are still loading: {self._why(use)}"
        at.left = use.weight_bytes // self._config.width if use.keep_weights else 0
        found = None if fresh else np.concatenate(parts)[: use.kernels * use.kernel_bytes]
        return found, at.own - start

    def _why(self, use: BufferUse) -> str:
        """Why loading stopped."""
        entries = self._weights.loaded - self._weights.own
        whole = use.weight_bytes // self._config.width
        if entries >= whole:
            return f"{use.weight_bytes} are loaded"
        return f"{whole - entries} entries are not loaded, and nothing releases as many"

    def _load(self, use: BufferUse, weights: np.ndarray | None) -> Iterator[int]:
        """Load weights by transactions, while there are free entries; the bytes loaded so far."""
        at, width, atom = self._weights, self._config.width, self._config.atom
        begin, done = at.own * width, 0
        while done < use.weight_bytes:
            step = use.weight_bytes - done
            if begin + done + step > at.free * width:  # not all at once
                whole = TRANSACTION * atom
                step = min(whole - (use.address + done) % whole, step)
                if -(-(begin + done + step) // width) > at.free:
                    return
            if weights is not None:
                self._write_weights(use, begin + done, weights[done : done + step])
            done += step
            at.loaded = -(-(begin + done) // width)
            yield done

    def _write_weights(self, use: BufferUse, first: int, data: np.ndarray) -> None:
        size = use.weight_banks * self._config.depth * self._config.width
        places = self._region(use)
        first %= size
        until = min(len(data), size - first)
        places[first : first + until] = data[:until]
        places[: len(data) - until] = data[until:]

    def _entries(self, use: BufferUse, first: int, last: int) -> np.ndarray:
        """Return the bytes of entries of weights."""
        size, width = use.weight_banks * self._config.depth, self._config.width
        return self._region(use).reshape(-1, width)[np.arange(first, last) % size].reshape(-1)

    def _region(self, use: BufferUse) -> np.ndarray:
        """Return the bytes of the banks of weights, after those of data."""
        depth = self._config.depth
        return self._bytes()[use.data_banks * depth : (use.data_banks + use.weight_banks) * depth].reshape(-1)

    def _bytes(self) -> np.ndarray:
        if self._memory is None:
            self._memory = np.zeros((self._config.banks * self._config.depth, self._config.width), np.uint8)
        return self._memory


def _hang(use: BufferUse, why: str) -> N2D2Error:
    return N2D2Error(
        "E904", f"the convolution buffer is in a deadlock at {use.name}: {why}", remedy="compile it again; hardware would hang"
    )
