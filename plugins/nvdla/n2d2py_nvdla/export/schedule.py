"""The dependency graph: which operation releases which, on which event.

Within a layer operations follow each other through the engines' register groups; the next layer's begin when the last
of this layer is complete. Of two neighbours on one engine the later one waits for the completion of the earlier one
when it reads its result, else only until it is programmed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from n2d2py_nvdla import firmware
from n2d2py_nvdla.export.hardware import HwLayer, HwOp, Region, SubRegion
from n2d2py_nvdla.firmware import COMPLETED, CONV, ENABLED, PROGRAMMED, SDP


def dependency_graph(layers: list[HwLayer]) -> tuple[np.ndarray, list[int]]:
    """Return (common descriptors, first operation of each engine) of all operations in order."""
    ops = [op for layer in layers for chain in layer.chains for op in chain]
    number = {id(op): i for i, op in enumerate(ops)}
    commons = np.zeros(len(ops), firmware.COMMON)
    for name in ("consumers", "fused_parent"):
        commons[name]["index"], commons[name]["event"] = -1, COMPLETED
    links: dict[tuple[int, int], tuple[int, int]] = {}
    """(producer, engine) -> (consumer, event); one consumer for each engine."""
    for i, op in enumerate(ops):
        commons[i]["index"], commons[i]["op_type"] = i, op.engine
    _chain_engines(ops, links)
    _link_layers(layers, number, links)
    for layer in layers:
        for chain in layer.chains:
            for first, second in pairwise(chain):
                a, b = number[id(first)], number[id(second)]
                links[a, second.engine] = (b, PROGRAMMED)
                commons[b]["fused_parent"]["index"], commons[b]["fused_parent"]["event"] = a, ENABLED
                commons[a]["dependency_count"] += 1
    for (producer, engine), (consumer, event) in links.items():
        commons[producer]["consumers"][engine]["index"] = consumer
        commons[producer]["consumers"][engine]["event"] = event
        commons[consumer]["dependency_count"] += 1
    heads = [next((i for i, op in enumerate(ops) if op.engine == engine), -1) for engine in range(6)]
    return commons, heads


def _chain_engines(ops: list[HwOp], links: dict[tuple[int, int], tuple[int, int]]) -> None:
    """Every operation releases the next one of its engine when it is programmed."""
    last: dict[int, int] = {}
    for i, op in enumerate(ops):
        if op.engine in last:
            links[last[op.engine], op.engine] = (i, PROGRAMMED)
        last[op.engine] = i


def _link_layers(layers: list[HwLayer], number: dict[int, int], links: dict[tuple[int, int], tuple[int, int]]) -> None:
    """Link layers: the end of a layer, or of a chain whose result is read within the layer, releases its successors."""
    steps: list[list[list[HwOp]]] = []
    for layer in layers:
        groups: list[list[list[HwOp]]] = []
        for chain in layer.chains:
            if groups and not _reads_results(chain, groups[-1]):
                groups[-1].append(chain)
            else:
                groups.append([chain])
        steps += groups
    for before, after in pairwise(steps):
        end = number[id(before[-1][-1])]
        heads = _heads(after)
        for op in heads:
            links[end, op.engine] = (number[id(op)], COMPLETED)


def _reads_results(chain: list[HwOp], group: list[list[HwOp]]) -> bool:
    """True if a chain reads, or writes again, what chains of the group write, or runs on another engine."""
    if chain[-1].engine != group[-1][-1].engine or chain[0].engine != group[-1][0].engine:
        return True
    written = [op.cubes["dst_data"] for earlier in group for op in earlier if isinstance(op.cubes["dst_data"], Region)]
    # An engine finishes its operations in order: copies may write between each other's positions.
    touched = [
        cube
        for op in chain
        for name, cube in op.cubes.items()
        if isinstance(cube, Region) and not (name == "dst_data" and isinstance(cube, SubRegion))
    ]
    return any(_overlap(a, b) for a in written for b in touched)


def _overlap(a: Region, b: Region) -> bool:
    """True if two regions may share bytes (of one buffer; the placement keeps others apart)."""
    if a.buffer is not b.buffer:
        return False
    lanes = a.buffer.lanes
    rows = a.row < b.row + b.rows and b.row < a.row + a.rows
    surfaces = a.channel // lanes < -(-(b.channel + b.channels) // lanes) and b.channel // lanes < -(
        -(a.channel + a.channels) // lanes
    )
    return rows and surfaces


def _heads(group: list[list[HwOp]]) -> list[HwOp]:
    """Return the operations of a group that must wait: its first one, and the first SDP where it reads memory by itself."""
    heads = [group[0][0]]
    if heads[0].engine == CONV:
        sdp = group[0][1]
        reading = any(
            isinstance(op.cubes.get(name), Region)
            for chain in group
            for op in chain
            for name in ("x1_data", "x2_data", "y_data")
            if op.engine == SDP
        )
        if reading:
            heads.append(sdp)
    return heads
