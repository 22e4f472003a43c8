"""Spaces and planes: N2D2's memory manager, with a wrap margin that is correct.

A space is a contiguous block with a lifetime, the only thing that is placed. It hosts planes:
tensors that follow each other in its bytes, the later one starting where the earlier one ends and
wrapping to the start of the space, between two lines. A space grows while planes are added, so a
plane's wrap is a function of the space's final size and not a stored number.

Addresses here are relative to the space; sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from n2d2py.memory.access import Overlay


@dataclass(frozen=True)
class PlaneLayout:
    """The form of a tensor in memory: `count` lines of `length` pixels of `size` bytes every
    `stride`.

    `element` is the alignment that its first byte needs. `whole`: it may not wrap at all. `pitch`: bytes from line to line
    where these are a part of longer ones, else 0.
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
        """Bytes from line to line."""
        return self.pitch or self.stride * self.length

    @property
    def bytes(self) -> int:
        """Bytes of the whole plane."""
        return self.line * self.count

    @property
    def unit(self) -> int:
        """N2D2's unit for the size of a space: lines, or pixels of a single line, or bytes of a
        vector.
        """
        return self.line if self.count > 1 else self.stride if self.length > 1 else 1


@dataclass(eq=False)
class Space:
    """A block of `size` bytes, busy at the clocks allocated..released, both included.

    `offset` is its place in the arena, decided last.
    """

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
    """A tensor in a space from byte `start` on, live at the clocks allocated..released, both
    included.
    """

    space: Space
    form: PlaneLayout
    start: int
    allocated: int
    released: int

    @property
    def limit(self) -> int:
        """Contiguous bytes before the wrap: all, or whole lines (0: it starts at the space's first
        byte).
        """
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
        """True if its elements are aligned and it does not lie over itself or beyond the space."""
        limit, full = self.limit, self.form.bytes
        if limit and self.start % self.form.element:
            return False
        return full - limit <= (self.start if limit else self.space.size)

    def line_offset(self, y: int) -> int:
        """Address of line y."""
        at, limit = y * self.form.line, self.limit
        return self.start + at if at < limit else at - limit


@dataclass(frozen=True)
class Share:
    """An operator whose output lies in the space of an input that dies at it.

    `dead(y)`: how many leading lines of the input are dead when output line y is stored (windows
    only).
    """

    op: str
    source: SpacePlane
    output: SpacePlane
    overlay: Overlay
    dead: Callable[[int], int]

    @property
    def safe(self) -> bool:
        """True if no store of the output hits a byte of the input that is still to be read."""
        if not _meet(self.source.intervals, self.output.intervals):
            return True
        if self.overlay is Overlay.POINTWISE:
            return self._safe_pointwise()
        return self.overlay is Overlay.WINDOW and self._safe_lines()

    def _safe_lines(self) -> bool:
        """Line y of the output misses every input line that is still needed, for all y."""
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
        """Element i of the output may reach up to element i of the input, and no later one."""
        rows = self.source.form.count
        later = replace(self, overlay=Overlay.WINDOW, dead=lambda y: min(rows, y + 1))
        return later._safe_lines() and all(self._in_step(y) for y in range(rows))

    def _in_step(self, y: int) -> bool:
        """Within line y: stores end before the next element of the input, or miss the line
        altogether.

        Both addresses are linear in pixel and channel, so the corners of the line decide.
        """
        source, output = self.source, self.output
        into, own = output.line_offset(y), source.line_offset(y)
        if not _meet([(into, into + output.form.line)], [(own, own + source.form.line)]):
            return True
        channels = source.form.size // source.form.element
        return all(
            into + x * output.form.stride + c * output.form.element <= own + x * source.form.stride + c * source.form.element
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
        """A plane at the start of a new space."""
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
        """A plane that starts where `source` ends and lives from one clock to another, in a space of at least `needed` bytes
        (None: unchanged).

        N2D2's size is tried first; where it would overwrite a live byte, here or at an earlier
        operator of the space, up to three more lines are added. None when the space cannot be
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
        """`needed` raised so that neither plane loses a part of a line at the wrap."""
        start = source.end
        needed = start - (start - needed) // form.unit * form.unit
        return source.start - (source.start - needed) // source.form.unit * source.form.unit

    @staticmethod
    def _try(
        op: str, source: SpacePlane, form: PlaneLayout, size: int, overlay: Overlay, dead: Callable[[int], int]
    ) -> SpacePlane | None:
        """The plane in the space grown to `size`, or None, the space unchanged, when that is not
        safe.
        """
        space, before = source.space, source.space.size
        space.size = size
        start = -(-source.end // form.element) * form.element
        plane = SpacePlane(space, form, start, 0, 0)
        share = Share(op, source, plane, overlay, dead)
        others_hold = size == before or all(each.safe for each in space.shares)  # planes stay sound in a larger space
        if plane.sound and share.safe and others_hold:
            space.planes.append(plane)
            space.shares.append(share)
            return plane
        space.size = before
        return None
