"""Memory of activations: which buffers live when, and where they lie in one pool."""

from __future__ import annotations

import numpy as np

from n2d2py_nvdla.export.hardware import EmuLayer, HardwareBuffer, HwLayer, Lowered, Region

ALIGNMENT = 256
"""Bytes that the offset of a buffer is a multiple of."""


class PoolPlacement:
    """Offsets of all activation buffers, the size of the pool, and the most bytes that live at once."""

    def __init__(self, buffers: list[HardwareBuffer], size: int, live: int):
        self.buffers, self.size, self.live = buffers, size, live


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def lifetimes(lowered: Lowered) -> dict[HardwareBuffer, tuple[int, int]]:
    """First and last step, counted over both kinds of layers, that touch each activation buffer."""
    spans: dict[HardwareBuffer, tuple[int, int]] = {}

    def touch(region: object, at: int) -> None:
        if isinstance(region, Region) and region.buffer.kind == "activation":
            first, last = spans.get(region.buffer, (at, at))
            spans[region.buffer] = (min(first, at), max(last, at))

    for number, layer in enumerate(_steps(lowered)):
        cubes = (
            (*layer.sources, *layer.results)
            if isinstance(layer, EmuLayer)
            else [cube for chain in layer.chains for op in chain for cube in op.cubes.values()]
        )
        for cube in cubes:
            touch(cube, number)
    return spans


def _steps(lowered: Lowered) -> list[HwLayer | EmuLayer]:
    return [layer for _, layers in lowered.segments() for layer in layers]


TRIALS = 200
"""Orders in which buffers are placed, until one needs no more than what lives at once."""


def place(lowered: Lowered) -> PoolPlacement:
    """Give every activation buffer its offset, each at the lowest place that is free for its life.

    Of several orders (by size, by time, by area) and variations of the best one, the one with the smallest pool is kept.
    """
    spans = lifetimes(lowered)
    live = max(
        (
            sum(_rounded(one.size) for one in spans if spans[one][0] <= at <= spans[one][1])
            for at in range(len(_steps(lowered)))
        ),
        default=0,
    )
    buffers = sorted(spans, key=lambda one: (-one.size, spans[one][0], one.name))
    orders = [
        buffers,
        sorted(buffers, key=lambda one: spans[one]),
        sorted(buffers, key=lambda one: -spans[one][1]),
        sorted(buffers, key=lambda one: -one.size * (1 + spans[one][1] - spans[one][0])),
    ]
    best = min((_placed(order, spans) for order in orders), key=lambda found: found[0])
    random = np.random.default_rng(1)
    order = list(best[2])
    for _ in range(TRIALS if len(buffers) < 500 else 0):
        if best[0] <= live:
            break
        varied = list(order)
        top = max(range(len(varied)), key=lambda i: best[1][varied[i]] + varied[i].size)
        chosen = top if random.integers(2) else int(random.integers(len(varied)))
        varied.insert(int(random.integers(chosen + 1)), varied.pop(chosen))
        found = _placed(varied, spans)
        if found[0] <= best[0]:
            best, order = found, varied
    for buffer, offset in best[1].items():
        buffer.offset = offset
    return PoolPlacement(buffers, best[0], live)


def _placed(
    order: list[HardwareBuffer], spans: dict[HardwareBuffer, tuple[int, int]]
) -> tuple[int, dict[HardwareBuffer, int], list[HardwareBuffer]]:
    """(size of the pool, offsets, order) when buffers are placed in this order."""
    offsets: dict[HardwareBuffer, int] = {}
    total = 0
    for buffer in order:
        first, last = spans[buffer]
        taken = sorted(
            (at, at + _rounded(one.size)) for one, at in offsets.items() if spans[one][0] <= last and first <= spans[one][1]
        )
        offset = 0
        for begin, end in taken:
            if begin - offset >= buffer.size:
                break
            offset = max(offset, end)
        offsets[buffer] = offset
        total = max(total, offset + _rounded(buffer.size))
    return total, offsets, order
