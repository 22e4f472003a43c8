"""Copies between positions: lines and columns of a map in steps, by the SDP alone, on every configuration.

Steps between lines are strides of a cube. Steps between columns are not, as a cube's pixels lie side by side. Seen as a cube
one pixel wide, however, the columns of a surface are lines, which may lie any number of atoms apart, and its lines are
surfaces: one operation for each atom of channels. Where there are fewer columns than atoms, each column is a cube by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py_nvdla.export.arithmetic import Post
from n2d2py_nvdla.export.hardware import HwOp, Region, SubRegion
from n2d2py_nvdla.export.lowering import Lowering

LARGEST = 8192
"""Channels of a cube."""


@dataclass(frozen=True)
class Steps:
    """`count` positions of an axis: where they begin and how far they lie apart, in the source and in the result."""

    count: int
    source: int = 0
    source_step: int = 1
    result: int = 0
    result_step: int = 1

    @property
    def dense(self) -> bool:
        """True if neighbours stay neighbours."""
        return self.count == 1 or (self.source_step == 1 and self.result_step == 1)

    def one(self, index: int) -> Steps:
        """Return the position `index` by itself."""
        return Steps(1, self.source + index * self.source_step, 1, self.result + index * self.result_step, 1)

    def part(self, first: int, count: int) -> Steps:
        """Return some of the positions."""
        return Steps(
            count,
            self.source + first * self.source_step,
            self.source_step,
            self.result + first * self.result_step,
            self.result_step,
        )


def steps_of(positions: np.ndarray) -> list[Steps]:
    """Return the steps that bring the positions given (of the source) to 0, 1, 2, ... of the result: as few as they have a
    period.
    """
    phases = _phases(positions)
    return [
        Steps(len(phase), int(phase[0]), int(phase[1] - phase[0]) if len(phase) > 1 else 1, first, len(phases))
        for first, phase in enumerate(phases)
    ]


def _phases(positions: np.ndarray) -> list[np.ndarray]:
    """Return the fewest lists of every n-th position, from the first, second, ... n-th on, that have one step each.

    No step is 0: strides are not, so positions that are repeated come one after the other.
    """
    for period in range(1, len(positions)):
        phases = [positions[first::period] for first in range(period)]
        steps = [np.diff(phase) for phase in phases if len(phase) > 1]
        if all(step[0] > 0 and np.all(step == step[0]) for step in steps):
            return phases
    return [positions[first : first + 1] for first in range(len(positions))]


def copy(state: Lowering, source: Region, result: Region, rows: Steps, columns: Steps, post: Post) -> list[list[HwOp]]:
    """Return the operations that bring some lines and columns of `source` to some of `result`, with `post` on the way.

    Both hold the same channels; `post` has no tables of channels.
    """
    lanes = source.buffer.lanes
    if columns.dense and columns.count == rows.count == 1 and source.channels > lanes:
        # Hardware reads the atoms of a single pixel as if nothing stood between them.
        atoms = [(first, min(lanes, source.channels - first)) for first in range(0, source.channels, lanes)]
        pairs = [(source.part(*atom), result.part(*atom)) for atom in atoms]
        return [_whole_lines(state, one, two, rows, columns, post) for one, two in pairs]
    if columns.dense:
        return [_whole_lines(state, source, result, rows, columns, post)]
    high = LARGEST // lanes
    surfaces = -(-source.channels // lanes)
    if columns.count <= surfaces * -(-rows.count // high):
        each = [columns.one(index) for index in range(columns.count)]
        return [chain for column in each for chain in copy(state, source, result, rows, column, post)]
    chains = []
    for surface in range(surfaces):
        for first in range(0, rows.count, high):
            part = rows.part(first, min(high, rows.count - first))
            views = [_turned(region, surface, steps) for region, steps in _sides(source, result, part, columns)]
            chains.append(state.sdp_chain(views[0], post, views[1]))
    return chains


def gather(
    state: Lowering, source: Region, result: Region, rows: np.ndarray, columns: np.ndarray, post: Post
) -> list[list[HwOp]]:
    """Return the operations for result(c, y, x) = post(source(c, rows[y], columns[x])): along the axis that leaves less, then
    the other.
    """
    identity = Post(np.array([post.scale]), None, post.scale)
    chains: list[list[HwOp]] = []
    current = source
    turns = sorted((0, 1), key=lambda axis: len((rows, columns)[axis]) / source.shape[1 + axis])
    turns = [axis for axis in turns if not _same((rows, columns)[axis], source.shape[1 + axis])] or [0]
    for number, axis in enumerate(turns):
        last = number == len(turns) - 1
        size = [current.rows, current.width]
        size[axis] = len((rows, columns)[axis])
        target = (
            result
            if last
            else Region.whole(state.buffer(f"{result.buffer.name}.half", shape=(source.channels, size[0], size[1])))
        )
        for steps in steps_of((rows, columns)[axis]):
            other = Steps(size[1 - axis])
            along = (steps, other) if axis == 0 else (other, steps)
            chains += copy(state, current, target, *along, post if number == 0 else identity)
        current = target
    return chains


def _same(positions: np.ndarray, size: int) -> bool:
    return len(positions) == size and bool(np.all(positions == np.arange(size)))


def _sides(source: Region, result: Region, rows: Steps, columns: Steps):
    """(region, (lines, first line, step, columns, first column, step)) of both sides."""
    return (
        (source, (rows.count, rows.source, rows.source_step, columns.count, columns.source, columns.source_step)),
        (result, (rows.count, rows.result, rows.result_step, columns.count, columns.result, columns.result_step)),
    )


def _whole_lines(state: Lowering, source: Region, result: Region, rows: Steps, columns: Steps, post: Post) -> list[HwOp]:
    """One operation for columns that lie side by side."""
    views = []
    for region, (height, row, row_step, width, column, _) in _sides(source, result, rows, columns):
        line = region.line * row_step if height > 1 else width * region.buffer.atom
        views.append(
            SubRegion(
                *_fields(region),
                cube=(region.channels, height, width),
                strides=(line, region.surface),
                start=row * region.line + column * region.buffer.atom,
                place=(row, column, row_step, 1, 0),
            )
        )
    return state.sdp_chain(views[0], post, views[1])


def _turned(region: Region, surface: int, steps: tuple[int, int, int, int, int, int]) -> SubRegion:
    """Return the lines of a surface as surfaces, columns as lines."""
    height, row, row_step, width, column, column_step = steps
    buffer = region.buffer
    lanes, atom = buffer.lanes, buffer.atom
    part = region.part(surface * lanes, min(lanes, region.channels - surface * lanes))
    return SubRegion(
        *_fields(part),
        cube=(height * lanes, width, 1),
        strides=(column_step * atom, row_step * region.line),
        start=row * region.line + column * atom,
        place=(row, column, row_step, column_step, lanes),
    )


def _fields(region: Region) -> tuple:
    return region.buffer, region.channel, region.channels, region.row, region.rows, region.columns, region.column
