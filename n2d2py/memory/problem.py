"""What a memory planner is given: the tensors of a network, and the operators that read and write
them.

Plain data. The JSON form is the GRAPH of `statistics/memory/memory_graph.json`::

    {"tensors": {t: {"h", "w", "c"[, "bytes"]}}, "inputs": [t..], "outputs": [t..],
     "ops": [{"name", "type", "inputs", "output", attributes...[, "scratch_bytes"]}]}

`bytes` is the size of one element, 1 when absent. Layout is height, width, channels (HWC).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.memory import access

__all__ = ["MemoryProblem", "OpSpec", "TensorSpec"]


@dataclass(frozen=True)
class TensorSpec:
    """One activation tensor in HWC; a vector is 1 x 1 x C. `element_bytes` is 1, 2, 4 or 8."""

    name: str
    height: int
    width: int
    channels: int
    element_bytes: int = 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, channels)."""
        return self.height, self.width, self.channels

    @property
    def pixel_bytes(self) -> int:
        """Useful bytes of one pixel."""
        return self.channels * self.element_bytes

    @property
    def bytes(self) -> int:
        """Useful bytes of the tensor."""
        return prod(self.shape) * self.element_bytes


@dataclass(frozen=True)
class OpSpec:
    """One operator: what it reads, what it writes, and in which order.

    `attributes` by type (those of `access.TYPES`): conv and pool: kh, kw, sh, sw, pads (top, left,
    bottom, right), dil (a number, or [vertical, horizontal]), groups; pad: pads; upsample: scale (a
    number, or [vertical, horizontal]); window, for any other layer that goes line by line: lines and
    columns, for each input and each line (column) of the output the range [first, stop) of the input's
    that it reads; concat: rescale, true where the operator changes the values and so must copy them;
    pool: sum_bytes, of a channel's partial result (4); all: by_lines, false where the kernel does not
    make single lines; straight, true where it is faster when its output stays with the caller; layer, its name for a reader;
    conv: residual, a tensor that is added to what the operator stores, over which the output lies exactly, and sum, the
    reshape behind it that stands for the addition. `scratch_bytes` are needed while the operator runs
    and hold nothing before or after.
    """

    name: str
    type: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any] = field(default_factory=dict)
    scratch_bytes: int = 0

    @property
    def residual(self) -> str | None:
        """The tensor that the output lies exactly over, and that is added to it."""
        return self.attributes.get("residual")

    @property
    def reads(self) -> tuple[str, ...]:
        """All tensors that must be there when the operator runs."""
        return self.inputs if self.residual is None else (*self.inputs, self.residual)

    @staticmethod
    def window(
        name: str,
        type: str,
        source: str,
        output: str,
        *,
        kernel: tuple[int, int],
        stride: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        dilation: tuple[int, int] = (1, 1),
        groups: int = 1,
        scratch_bytes: int = 0,
    ) -> OpSpec:
        """A conv or pool; pairs are (vertical, horizontal), pads are top, left, bottom, right.

        The dilation is one number where the two axes have the same, or the kernel has one line or column.
        """
        used = {d for d, k in zip(dilation, kernel, strict=True) if k > 1} or {1}
        dil = used.pop() if len(used) == 1 else list(dilation)
        attributes = {
            "kh": kernel[0],
            "kw": kernel[1],
            "sh": stride[0],
            "sw": stride[1],
            "pads": list(pads),
            "dil": dil,
            "groups": groups,
        }
        return OpSpec(name, type, (source,), output, attributes, scratch_bytes)


_OP_KEYS = ("name", "type", "inputs", "output", "scratch_bytes")


@dataclass(frozen=True)
class MemoryProblem:
    """Tensors by name, inputs and outputs of the network, operators in a topological order."""

    tensors: dict[str, TensorSpec]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[OpSpec, ...]

    def op(self, name: str) -> OpSpec:
        """The operator of that name; raises KeyError."""
        for op in self.ops:
            if op.name == name:
                return op
        raise KeyError(name)

    def unknown(self) -> tuple[str, ...]:
        """Operators that other readers of maps do not know: `access.in_known_terms`."""
        return tuple(op.name for op in self.ops if not access.in_known_terms(op, self.tensors))

    def read_whole(self, names: Collection[str]) -> MemoryProblem:
        """The problem with these operators as "fc", which reads its inputs whole before it stores."""
        return replace(
            self,
            ops=tuple(
                replace(op, type="fc", attributes={"layer": op.attributes.get("layer", op.type)}) if op.name in names else op
                for op in self.ops
            ),
        )

    def validate(self) -> None:
        """Raises E602, once per fault, where the graph is not one that can be planned."""
        ErrorList.raise_if(
            [N2D2Error("E602", what, where=where, remedy="correct the memory graph") for where, what in self._faults()]
        )

    def _faults(self) -> list[tuple[str, str]]:
        faults = [
            (
                t.name,
                f"the tensor has {t.height} x {t.width} x {t.channels} elements of "
                f"{t.element_bytes} bytes; each must be at least 1",
            )
            for t in self.tensors.values()
            if min(*t.shape, t.element_bytes) < 1
        ]
        faults += [(name, "the tensor is listed under another name") for name, t in self.tensors.items() if name != t.name]
        known = set()
        for name in self.inputs:
            if name not in self.tensors or name in known:
                faults.append((name, "the network input is unknown or listed twice"))
            known.add(name)
        names = set()
        for op in self.ops:
            missing = [t for t in op.reads if t not in known]
            if missing:
                faults.append((op.name, f"reads {', '.join(missing)} before it is written"))
            if op.output not in self.tensors or op.output in known:
                faults.append((op.name, f"its output {op.output} is unknown or written twice"))
            elif op.name in names:
                faults.append((op.name, "two operators have this name"))
            elif not missing:
                faults += [(op.name, what) for what in access.faults(op, self.tensors)]
            known.add(op.output)
            names.add(op.name)
        faults += [(name, "the network output is never written") for name in self.outputs if name not in known]
        return faults

    def to_json(self) -> dict[str, Any]:
        """The GRAPH as plain JSON data."""
        tensors = {}
        for t in self.tensors.values():
            tensors[t.name] = {"h": t.height, "w": t.width, "c": t.channels}
            if t.element_bytes != 1:
                tensors[t.name]["bytes"] = t.element_bytes
        ops = []
        for op in self.ops:
            entry = {"name": op.name, "type": op.type, "inputs": list(op.inputs), "output": op.output}
            entry.update(op.attributes)
            if op.scratch_bytes:
                entry["scratch_bytes"] = op.scratch_bytes
            ops.append(entry)
        return {"tensors": tensors, "inputs": list(self.inputs), "outputs": list(self.outputs), "ops": ops}

    @staticmethod
    def from_json(data: dict[str, Any]) -> MemoryProblem:
        """The problem that `to_json` wrote; raises E602 where a part is missing or wrong."""
        try:
            tensors = {name: TensorSpec(name, t["h"], t["w"], t["c"], t.get("bytes", 1)) for name, t in data["tensors"].items()}
            ops = tuple(
                OpSpec(
                    op["name"],
                    op["type"],
                    tuple(op["inputs"]),
                    op["output"],
                    {key: value for key, value in op.items() if key not in _OP_KEYS},
                    op.get("scratch_bytes", 0),
                )
                for op in data["ops"]
            )
            problem = MemoryProblem(tensors, tuple(data["inputs"]), tuple(data["outputs"]), ops)
        except (KeyError, TypeError, AttributeError) as error:
            raise N2D2Error(
                "E602", f"the memory graph lacks or misspells {error}", remedy="correct the memory graph"
            ) from error
        problem.validate()
        return problem
