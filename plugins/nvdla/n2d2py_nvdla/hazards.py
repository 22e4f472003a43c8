"""Check that the dependency graph keeps readers after writers: races that firmware would not notice.

An operation is known to be complete before another begins when a chain of COMPLETED events says so, or when two later
ones of its engine have been begun (an engine holds two). Everything that touches the same bytes must be so ordered.
"""

from __future__ import annotations

from n2d2py_nvdla.firmware import BDMA, BYTES, COMPLETED, CONV, CUBES, SDP
from n2d2py_nvdla.program import DlaTask, Operation, Program

Span = tuple[int, int, int]
"""(memory, first byte, byte after the last)."""


def hazards(program: Program, task: DlaTask) -> list[str]:
    """Return the first unordered access of each operation."""
    before = _complete_before(task)
    reads, writes = (
        zip(*(_spans(program, task, operation) for operation in task.operations), strict=True) if task.operations else ((), ())
    )
    found = []
    by_memory: dict[int, list[int]] = {}
    for number, operation in enumerate(task.operations):
        parent = int(operation.common["fused_parent"]["index"])
        known_to_write = before[number] | (before[parent] if parent >= 0 else 0)
        mine = [*((span, False) for span in reads[number]), *((span, True) for span in writes[number])]
        candidates = {one for span, _ in mine for one in by_memory.get(span[0], ())}
        for earlier in sorted(candidates, reverse=True):
            text = None
            if not before[number] >> earlier & 1 and _meet(reads[number], writes[earlier]):
                text = "reads what {} writes"
            elif not known_to_write >> earlier & 1 and not _linked(task, earlier, number):
                if _meet(writes[number], writes[earlier]):
                    text = "overwrites what {} writes"
                elif _meet(writes[number], reads[earlier]):
                    text = "overwrites what {} reads"
            if text:
                found.append(
                    f"{operation.name} {text.format(task.operations[earlier].name)}, and nothing says that "
                    "it is complete by then"
                )
                break
        for span, _ in mine:
            members = by_memory.setdefault(span[0], [])
            if not members or members[-1] != number:
                members.append(number)
    return found


def _linked(task: DlaTask, earlier: int, number: int) -> bool:
    """True if both belong to one chain on the fly, or are on one engine, which finishes them in order."""
    one, two = task.operations[earlier], task.operations[number]
    return int(two.common["fused_parent"]["index"]) == earlier or one.engine == two.engine


def _complete_before(task: DlaTask) -> list[int]:
    """For each operation, the set (bits) of those that are complete when it begins."""
    count = len(task.operations)
    sources: list[list[int]] = [[] for _ in range(count)]
    for operation in task.operations:
        for _, index, event in operation.consumers():
            if event == COMPLETED and index < count:
                sources[index].append(operation.number)
    before, done = [0] * count, [0] * count
    """Complete when an operation begins, and when it is complete: an engine finishes its operations in order."""
    last: dict[int, list[int]] = {}
    for operation in task.operations:  # compilers number operations in an order that the links follow
        number = operation.number
        known = 0
        for source in sources[number]:
            known |= done[source]
        chain = last.setdefault(operation.engine, [])
        if chain:
            known |= before[chain[-1]]
        if len(chain) > 1:
            known |= done[chain[-2]]
        before[number] = known
        parent = int(operation.common["fused_parent"]["index"])
        done[number] = known | 1 << number | (done[chain[-1]] if chain else 0) | (done[parent] if 0 <= parent < number else 0)
        chain.append(number)
    return before


def _spans(program: Program, task: DlaTask, operation: Operation) -> tuple[list[Span], list[Span]]:
    """Return the bytes that an operation reads and writes; constants' pools are left out, nobody writes them."""
    if operation.engine == BDMA:
        sides = []
        for side in ("source", "destination"):
            spans = []
            for one in operation.surface["transfers"][: int(operation.surface["num_transfers"])]:
                memory, start, _ = task.addresses[int(one[f"{side}_address"])]
                end = (
                    start
                    + (max(int(one["surface_repeat"]), 1) - 1) * int(one[f"{side}_surface"])
                    + (max(int(one["line_repeat"]), 1) - 1) * int(one[f"{side}_line"])
                    + int(one["line_size"])
                )
                spans.append((memory, start, end))
            sides.append(spans)
        return sides[0], sides[1]
    reads, writes = [], []
    for name in CUBES[operation.engine]:
        if name in ("weight_data", "wmb_data", "wgs_data") or (operation.engine == CONV and name == "dst_data"):
            continue
        if operation.engine == SDP and name in ("x1_data", "x2_data", "y_data"):
            op = operation.op[name.replace("_data", "_op")]
            if not (op["enable"] and op["type"] and op["mode"]):
                continue
        cube = operation.surface[name]
        if int(cube["type"]) != 0 or not 0 <= int(cube["address"]) < len(task.addresses):
            continue
        memory, start, _ = task.addresses[int(cube["address"])]
        start += int(cube["offset"]) if "offset" in cube.dtype.names else 0
        size = int(cube["size"]) or int(cube["surf_stride"]) * -(-int(cube["channel"]) * max(BYTES) // 8)
        (writes if name == "dst_data" else reads).append((memory, start, start + size))
    return reads, writes


def _meet(one: list[Span], two: list[Span]) -> bool:
    return any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for a in one for b in two)
