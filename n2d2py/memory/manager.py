"""Spaces and planes of N2D2's memory manager, with a correct wrap margin.

A space is a contiguous block with a lifetime; only spaces are placed. Planes follow each other in its bytes: a later tensor
starts where the earlier one ends, and wraps to the start of the space between two rows. A space grows while planes are added,
so the wrap depends on its final size. Addresses are relative to the space; sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from n2d2py.arithmetic.exact import round_up
from n2d2py.memory.access import Overlay


@dataclass(frozen=True)
class PlaneLayout:
    """Layout of a tensor: `count` rows of `length` pixels of `size` bytes every `stride` bytes.

    `element` is the alignment of its first byte. `whole`: it may not wrap. `pitch`: bytes from row to row if these are part of
    longer rows, else 0.
    """

    size: int
    stride: int
    length: int
    count: int
    element: int = 1
    whole: bool = False
    pitch: int = 0

    @property
    def line(self) -> int:
        """Bytes from row to row."""
        return self.pitch or self.stride * self.length

    @property
    def bytes(self) -> int:
        """Bytes of the whole plane."""
        return self.line * self.count

    @property
    def unit(self) -> int:
        """Unit of a space's size in N2D2: rows, pixels of a single row, or bytes of a vector."""
        return self.line if self.count > 1 else self.stride if self.length > 1 else 1


@dataclass(eq=False)
class Space:
    """A block of `size` bytes, busy at the clocks allocated..released, both included. `offset` is its address in the arena,
    decided last."""

    size: int
    allocated: int
    released: int
    planes: list[SpacePlane] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    offset: int = 0

    @property
    def lifetime(self) -> int:
        """Clocks between allocation and release."""
        return self.released - self.allocated


@dataclass(eq=False)
class SpacePlane:
    """A tensor in a space from byte `start`, live at the clocks allocated..released, both included."""

    space: Space
    form: PlaneLayout
    start: int
    allocated: int
    released: int

    @property
    def limit(self) -> int:
        """Contiguous bytes before the wrap: all, or whole rows (0: it starts at the first byte of the space)."""
        full, room = self.form.bytes, max(0, self.space.size - self.start)
        if room >= full:
            return full
        return 0 if self.form.whole or self.form.count == 1 else room // self.form.line * self.form.line

    @property
    def end(self) -> int:
        """One past the last byte: in the wrapped part when there is one."""
        limit = self.limit
        return self.start + limit if limit == self.form.bytes else self.form.bytes - limit

    @property
    def intervals(self) -> list[tuple[int, int]]:
        """The occupied byte ranges [begin, end): the contiguous part, the wrapped part."""
        limit = self.limit
        parts = [(self.start, self.start + limit), (0, self.form.bytes - limit)]
        return [part for part in parts if part[0] < part[1]]

    @property
    def sound(self) -> bool:
        """True if its elements are aligned, and it neither overlaps itself nor exceeds the space."""
        limit, full = self.limit, self.form.bytes
        if limit and self.start % self.form.element:
            return False
        return full - limit <= (self.start if limit else self.space.size)

    def line_offset(self, y: int) -> int:
        """Return the address of row y."""
        offset, limit = y * self.form.line, self.limit
        return self.start + offset if offset < limit else offset - limit


@dataclass(frozen=True)
class Share:
    """An operator whose output lies in the space of an input that dies at it.

    `dead(y)`: number of leading input rows that are dead when output row y is stored (windows only).
    """

    op: str
    source: SpacePlane
    output: SpacePlane
    overlay: Overlay
    dead: Callable[[int], int]

    @property
    def safe(self) -> bool:
        """True if no store of the output hits an input byte that is still to be read."""
        if not _meet(self.source.intervals, self.output.intervals):
            return True
        if self.overlay is Overlay.POINTWISE:
            return self._safe_pointwise()
        return self.overlay is Overlay.WINDOW and self._safe_lines()

    def _safe_lines(self) -> bool:
        """True if each output row misses every input row that is still needed."""
        source, output = self.source, self.output
        line, before = source.form.line, source.limit // source.form.line
        for y in range(output.form.count):
            begin = output.line_offset(y)
            first = self.dead(y)
            live = [(source.start + first * line, source.start + before * line)] if first < before else []
            wrapped = max(first, before)
            if source.form.count > wrapped:
                live.append(((wrapped - before) * line, (source.form.count - before) * line))
            if _meet([(begin, begin + output.form.line)], live):
                return False
        return True

    def _safe_pointwise(self) -> bool:
        """True if output element i does not extend beyond input element i."""
        rows = self.source.form.count
        later = replace(self, overlay=Overlay.WINDOW, dead=lambda y: min(rows, y + 1))
        return later._safe_lines() and all(self._in_step(y) for y in range(rows))

    def _in_step(self, y: int) -> bool:
        """True if, within row y, stores end before the next input element, or miss the row altogether.

        Both addresses are linear in pixel and channel, so the corners of the row decide.
        """
        source, output = self.source, self.output
        into, read_offset = output.line_offset(y), source.line_offset(y)
        if not _meet([(into, into + output.form.line)], [(read_offset, read_offset + source.form.line)]):
            return True
        channels = source.form.size // source.form.element
        return all(
            into + x * output.form.stride + c * output.form.element
            <= read_offset + x * source.form.stride + c * source.form.element
            for x in (0, source.form.length - 1)
            for c in (1, channels)
        )


def _meet(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> bool:
    return any(a < d and c < b for a, b in some for c, d in others)


class Manager:
    """The spaces of one plan, in the order of their allocation."""

    def __init__(self) -> None:
        self.spaces: list[Space] = []

    def allocate(self, form: PlaneLayout, allocated: int, released: int) -> SpacePlane:
        """Return a plane at the start of a new space."""
        space = Space(form.bytes, allocated, released)
        plane = SpacePlane(space, form, 0, allocated, released)
        space.planes.append(plane)
        self.spaces.append(space)
        return plane

    def reallocate(
        self,
        op: str,
        source: SpacePlane,
        form: PlaneLayout,
        life: tuple[int, int],
        *,
        overlay: Overlay,
        dead: Callable[[int], int],
        needed: int | None,
    ) -> SpacePlane | None:
        """Return a plane that starts where `source` ends, in a space of at least `needed` bytes (None: unchanged).

        N2D2's size is tried first. If it would overwrite a live byte, up to three rows are added. None if the space cannot be
        shared safely.
        """
        space = source.space
        sizes = [space.size]
        if needed is not None:
            first = max(space.size, self._rounded(source, form, needed))
            step = form.unit + source.form.unit
            sizes = [first] + [self._rounded(source, form, first + 1 + more * step) for more in range(3)]
        for size in sizes:
            plane = self._try(op, source, form, size, overlay, dead)
            if plane is not None:
                plane.allocated, plane.released = life
                space.released = max(space.released, plane.released)
                return plane
        return None

    @staticmethod
    def _rounded(source: SpacePlane, form: PlaneLayout, needed: int) -> int:
        """Return `needed` rounded up so that neither plane loses part of a row at the wrap."""
        start = source.end
        needed = start - (start - needed) // form.unit * form.unit
        return source.start - (source.start - needed) // source.form.unit * source.form.unit

    @staticmethod
    def _try(
        op: str, source: SpacePlane, form: PlaneLayout, size: int, overlay: Overlay, dead: Callable[[int], int]
    ) -> SpacePlane | None:
        """Return the plane in the space grown to `size`; None, with the space unchanged, if that is not safe."""
        space, before = source.space, source.space.size
        space.size = size
        start = round_up(source.end, form.element)
        plane = SpacePlane(space, form, start, 0, 0)
        share = Share(op, source, plane, overlay, dead)
        others_hold = size == before or all(each.safe for each in space.shares)  # planes stay sound in a larger space
        if plane.sound and share.safe and others_hold:
            space.planes.append(plane)
            space.shares.append(share)
            return plane
        space.size = before
        return None
