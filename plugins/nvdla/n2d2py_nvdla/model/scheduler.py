"""The firmware's scheduler: dependency counters, two register groups per engine, events; and what it is stuck on.

The order of events is the firmware's: an engine takes the next operation of its chain into a free register group,
programs it, and enables it when its counter is zero. Operations linked on the fly run together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.firmware import COMPLETED, ENABLED, ENGINES, EVENTS, PROGRAMMED, has_field
from n2d2py_nvdla.program import DlaTask, Operation

HARDWARE = 2
"""Memory type of a cube that is passed on inside of the hardware."""


@dataclass
class _Group:
    """A register group that holds an operation; `pending`: not yet programmed, `active`: enabled."""

    number: int
    pending: bool = True
    active: bool = False


class Scheduler:
    """Runs one task: `execute(chain)` is called with operations that run together, in the order of completion."""

    def __init__(self, task: DlaTask, name: str, execute: Callable[[list[Operation]], None]):
        self._task = task
        self._name = name
        self._execute = execute
        self._count = [int(one.common["dependency_count"]) for one in task.operations]
        self._groups: list[list[_Group]] = [[] for _ in ENGINES]
        self._tail: list[int | None] = [None] * len(ENGINES)
        self._done = 0

    def run(self) -> None:
        """Execute the whole task.

        Raises:
            N2D2Error: E904 when the firmware would wait for ever, with what waits for what; E903 for links that
                firmware refuses.
        """
        for engine in range(len(ENGINES)):
            head = int(self._task.network["op_head"][engine])
            if head >= 0:
                self._submit(engine, head)
        for engine in range(len(ENGINES)):
            self._dequeue(engine)
        while self._done < len(self._task.operations):
            chain = self._runnable()
            if chain is None:
                raise self._deadlock()
            self._execute(chain)
            for operation in chain:
                self._complete(operation)

    def _operation(self, number: int) -> Operation:
        if not 0 <= number < len(self._task.operations):
            raise N2D2Error(
                "E903",
                f"the dependency graph names operation {number} of {len(self._task.operations)}",
                where=self._name,
                remedy="compile it again",
            )
        return self._task.operations[number]

    def _submit(self, engine: int, number: int) -> None:
        operation = self._operation(number)
        if operation.engine != engine:
            raise N2D2Error(
                "E903", f"{operation.name} is in the chain of {ENGINES[engine]}", where=self._name, remedy="compile it again"
            )
        if len(self._groups[engine]) == 2:
            return
        self._groups[engine].append(_Group(number))
        self._tail[engine] = number
        if self._ready(engine, self._groups[engine][-1]):
            self._program(engine, self._groups[engine][-1])

    def _ready(self, engine: int, group: _Group) -> bool:
        """True if the look-up table that it needs is not in the way of the other group's."""
        op = self._operation(group.number).op
        if not has_field(op, "lut_index") or int(op["lut_index"]) < 0:
            return True
        others = [one for one in self._groups[engine] if one is not group and not one.pending]
        luts = [int(self._operation(one.number).op["lut_index"]) for one in others]
        return all(lut < 0 or lut == int(op["lut_index"]) for lut in luts) and all(
            lut == int(op["lut_index"]) or not one.active for lut, one in zip(luts, others, strict=True)
        )

    def _program(self, engine: int, group: _Group) -> None:
        group.pending = False
        self._raise_event(self._operation(group.number), PROGRAMMED)
        self._enable_if_ready(group.number)

    def _enable_if_ready(self, number: int) -> None:
        if self._count[number] > 0:
            return
        engine = self._operation(number).engine
        for group in self._groups[engine]:
            if group.number == number and not group.pending and not group.active:
                group.active = True
                self._raise_event(self._operation(number), ENABLED)

    def _raise_event(self, operation: Operation, event: int) -> None:
        links = list(operation.consumers())
        parent = operation.common["fused_parent"]
        if int(parent["index"]) >= 0:
            links.append((operation.engine - 1, int(parent["index"]), int(parent["event"])))
        for engine, number, wanted in links:
            if wanted != event:
                continue
            consumer = self._operation(number)
            if consumer.engine != engine:
                raise N2D2Error(
                    "E903",
                    f"{operation.name} names {consumer.name} as one of {ENGINES[engine]}",
                    where=self._name,
                    remedy="compile it again",
                )
            if self._count[number] == 0:
                raise N2D2Error(
                    "E903",
                    f"{operation.name} releases {consumer.name}, whose dependency count is 0 already",
                    where=self._name,
                    remedy="compile it again",
                )
            self._count[number] -= 1
            self._enable_if_ready(number)

    def _complete(self, operation: Operation) -> None:
        engine = operation.engine
        self._groups[engine] = [group for group in self._groups[engine] if group.number != operation.number]
        self._done += 1
        self._raise_event(operation, COMPLETED)
        for group in self._groups[engine]:
            if group.pending and self._ready(engine, group):
                self._program(engine, group)
        self._dequeue(engine)

    def _dequeue(self, engine: int) -> None:
        number = self._tail[engine]
        if number is None:
            return
        tail = self._operation(number)
        following = int(tail.common["consumers"][engine]["index"])
        if following >= 0 and len(self._groups[engine]) < 2:
            self._submit(engine, following)

    def _first(self, engine: int) -> Operation | None:
        """Return the operation that the engine's hardware works on: enabled, and the oldest."""
        groups = self._groups[engine]
        return self._operation(groups[0].number) if groups and groups[0].active else None

    def _runnable(self) -> list[Operation] | None:
        """Return the operations at the front of their engines that can run to their end, those linked on the fly together."""
        for engine in range(len(ENGINES)):
            first = self._first(engine)
            if first is None or _gets_on_the_fly(first):
                continue
            chain = [first]
            while _passes_on(chain[-1]):
                last = chain[-1].engine
                following = self._first(last + 1) if last + 1 < len(ENGINES) else None
                if following is None or not _gets_on_the_fly(following):
                    break
                chain.append(following)
            else:
                return chain
        return None

    def _deadlock(self) -> N2D2Error:
        waiting = []
        for _engine, groups in enumerate(self._groups):
            for group in groups:
                state = (
                    "is not programmed"
                    if group.pending
                    else "is enabled"
                    if group.active
                    else f"waits for {self._count[group.number]} of {self._names(group.number)}"
                )
                waiting.append(f"{self._operation(group.number).name} {state}")
        held = ", ".join(waiting) or "no engine holds an operation"
        return N2D2Error(
            "E904",
            f"a deadlock after {self._done} of {len(self._task.operations)} operations: {held}",
            where=self._name,
            remedy="correct the dependency graph; hardware would hang",
        )

    def _names(self, number: int) -> str:
        """Return the operations that release one, for a message."""
        found = []
        for operation in self._task.operations:
            links = [event for _, index, event in operation.consumers() if index == number]
            parent = operation.common["fused_parent"]
            links += [int(parent["event"])] if int(parent["index"]) == number else []
            found += [f"{operation.name} {EVENTS.get(event, event)}" for event in links]
        return " or ".join(found) or "nothing (no operation names it)"


def _gets_on_the_fly(operation: Operation) -> bool:
    return operation.engine in (2, 3) and int(operation.surface["src_data"]["type"]) == HARDWARE


def _passes_on(operation: Operation) -> bool:
    if operation.engine == 1:
        return True
    return operation.engine == 2 and int(operation.surface["dst_data"]["type"]) == HARDWARE
