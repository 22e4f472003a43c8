"""Problem for a memory planner: the tensors of a network, and the operators that read and write them; its residual sums."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.memory.access import Access, Overlay, Pointwise, PoolWindow, TensorSpec, Whole, Window

NO_ROW = int(np.iinfo(np.int64).max)
"""Row that `first_needed` gives where none is read."""


def first_needed(reads: Sequence[range]) -> np.ndarray:
    """Return the first row that each output row, by the rows that it reads, or a later one needs: int64, `NO_ROW` for none."""
    starts = np.array([rows.start if rows else NO_ROW for rows in reads], dtype=np.int64)
    return np.minimum.accumulate(starts[::-1])[::-1]


@dataclass(frozen=True)
class OpSpec:
    """One operator: its inputs, its output, and the order of its accesses (`access`). `scratch_bytes` are needed only while it
    runs. `layer`: kind of the layer, for readers."""

    name: str
    access: Access
    inputs: tuple[str, ...]
    output: str
    scratch_bytes: int = 0
    layer: str = ""

    @property
    def aliased(self) -> str | None:
        """The tensor that the output overwrites exactly."""
        return None if self.access.aliases is None else self.inputs[self.access.aliases]

    @property
    def operands(self) -> tuple[str, ...]:
        """The inputs except the aliased one."""
        alias = self.access.aliases
        return self.inputs if alias is None else (*self.inputs[:alias], *self.inputs[alias + 1 :])

    def reads(self, source: TensorSpec, lines: int) -> list[range]:
        """Return, for each of `lines` output rows, the rows of `source` that it reads, in ascending order."""
        return self.access.reads([number for number, name in enumerate(self.inputs) if name == source.name], source, lines)

    def accumulates(self, tensors: dict[str, TensorSpec]) -> bool:
        """True if it can accumulate its input row by row: a pool over the whole input."""
        return bool(self.inputs) and self.access.accumulates(tensors[self.inputs[0]], tensors[self.output])

    def partial_bytes(self, tensors: dict[str, TensorSpec]) -> int:
        """Return the bytes of the partial results of an accumulating operator."""
        size = self.access.partial_bytes if isinstance(self.access, PoolWindow) else None
        return tensors[self.output].channels * (size or 4)

    def work(self, tensors: dict[str, TensorSpec]) -> int:
        """Return an estimate of its cost in multiply-accumulates; a byte read or stored counts as four."""
        output, sources = tensors[self.output], [tensors[name] for name in self.operands]
        return self.access.computed(sources[0], output) + 4 * sum(tensor.bytes for tensor in (output, *sources))

    def faults(self, tensors: dict[str, TensorSpec]) -> list[str]:
        """Return the errors of an operator whose tensors all exist."""
        sources, output = [tensors[name] for name in self.operands], tensors[self.output]
        if not sources:
            return ["the operator reads nothing"]
        if self.scratch_bytes < 0:
            return [f"scratch of {self.scratch_bytes} bytes"]
        if self.access.single and len(sources) != 1:
            return [f"a {self.access.single} reads one tensor, not {len(sources)}"]
        problems = self.access.faults(sources, output)
        if self.aliased is not None:
            under = tensors[self.aliased]
            if (under.shape, under.element_bytes) != (output.shape, output.element_bytes) or self.aliased in self.operands:
                problems.append(f"its residual {self.aliased} has not the form of its output, or is its input")
        return problems


@dataclass(frozen=True)
class MemoryProblem:
    """Tensors by name, network inputs and outputs, operators in topological order. The last `states` inputs are kept between
    inferences; the last outputs are copied there at the end."""

    tensors: dict[str, TensorSpec]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[OpSpec, ...]
    states: int = 0

    @property
    def state_inputs(self) -> tuple[str, ...]:
        """The inputs that are states."""
        return self.inputs[len(self.inputs) - self.states :]

    @property
    def state_outputs(self) -> tuple[str, ...]:
        """The outputs that become the states of the next inference."""
        return self.outputs[len(self.outputs) - self.states :]

    @property
    def tensor_bytes(self) -> int:
        """Sum of the sizes of all tensors, without sharing."""
        return sum(tensor.bytes for tensor in self.tensors.values())

    def op(self, name: str) -> OpSpec:
        """Return the operator of that name; raises KeyError."""
        for op in self.ops:
            if op.name == name:
                return op
        raise KeyError(name)

    @property
    def views(self) -> set[str]:
        """The operators that never need code."""
        return {op.name for op in self.ops if op.access.overlay is Overlay.VIEW}

    def read_whole(self, names: Collection[str]) -> MemoryProblem:
        """Return the problem with these operators reading all inputs before they store."""
        return replace(self, ops=tuple(replace(op, access=Whole()) if op.name in names else op for op in self.ops))

    def validate(self) -> None:
        """Raise E602, once per fault, for a graph that cannot be planned."""
        ErrorList.raise_if(
            [N2D2Error("E602", what, where=where, remedy="correct the memory graph") for where, what in self._faults()]
        )

    def _faults(self) -> Iterator[tuple[str, str]]:
        """Yield the name of a tensor or operator, and its fault."""
        yield from self._tensor_faults()
        known: set[str] = set()
        for name in self.inputs:
            if name not in self.tensors or name in known:
                yield name, "the network input is unknown or listed twice"
            known.add(name)
        yield from self._op_faults(known)
        yield from ((name, "the network output is never written") for name in self.outputs if name not in known)

    def _tensor_faults(self) -> Iterator[tuple[str, str]]:
        for name, t in self.tensors.items():
            if min(*t.shape, t.element_bytes) < 1:
                sizes = f"{t.height} x {t.width} x {t.channels} elements of {t.element_bytes} bytes"
                yield t.name, f"the tensor has {sizes}; each must be at least 1"
            if name != t.name:
                yield name, "the tensor is listed under another name"

    def _op_faults(self, known: set[str]) -> Iterator[tuple[str, str]]:
        """Yield the faults of the operators, which add their outputs to the `known` tensors."""
        names: set[str] = set()
        for op in self.ops:
            missing = [t for t in op.inputs if t not in known or t not in self.tensors]
            if missing:
                yield op.name, f"reads {', '.join(missing)} before it is written"
            if op.output not in self.tensors or op.output in known:
                yield op.name, f"its output {op.output} is unknown or written twice"
            elif op.name in names:
                yield op.name, "two operators have this name"
            elif not missing:
                yield from ((op.name, what) for what in op.faults(self.tensors))
            known.add(op.output)
            names.add(op.name)


@dataclass(frozen=True)
class ResidualSum:
    """A convolution with its sum: layer names, and the added tensor."""

    conv: str
    sum: str
    residual: str


def residual_sums(problem: MemoryProblem, fits: Callable[[str, str], bool] = lambda conv, sum: True) -> list[ResidualSum]:
    """Return every sum of two 8-bit tensors that a convolution can compute in its epilogue: it adds the other operand, the
    residual, and stores the sum exactly over it. Its own result is never in memory.

    `fits`: the arithmetic of a convolution and a sum, by name, can be one layer. The convolution computes the later operand and
    has no other consumer; all other consumers of the residual run before it. Network inputs and outputs, whose place the caller
    chooses, and tensors shared by views are excluded.
    """
    producers = {op.output: index for index, op in enumerate(problem.ops)}
    readers: dict[str, list[int]] = {}
    for index, op in enumerate(problem.ops):
        for name in op.inputs:
            readers.setdefault(name, []).append(index)
    names = problem.views
    views = {index for index, op in enumerate(problem.ops) if op.name in names}
    ends = {*problem.inputs, *problem.outputs}
    sums = []
    for index, op in enumerate(problem.ops):
        tensors = [problem.tensors[name] for name in (op.output, *op.inputs)]
        if (
            not (isinstance(op.access, Pointwise) and op.layer == "ElemWise")
            or len(set(op.inputs)) != 2
            or len(op.inputs) != 2
            or ends & {op.output, *op.inputs}
            or any((t.shape, t.element_bytes) != (tensors[0].shape, 1) for t in tensors)
        ):
            continue
        residual, result = sorted(op.inputs, key=producers.__getitem__)
        conv, others = problem.ops[producers[result]], [reader for reader in readers[residual] if reader != index]
        if (
            isinstance(conv.access, Window)
            and not isinstance(conv.access, PoolWindow)
            and readers[result] == [index]
            and producers[residual] not in views
            and all(other < producers[result] for other in others)
            and not views & {*others, *readers.get(op.output, ())}
            and fits(conv.name, op.name)
        ):
            sums.append(ResidualSum(conv.name, op.name, residual))
    return sums
