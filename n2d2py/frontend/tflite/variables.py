"""Variables of .tflite files as states: graph inputs, and the outputs that replace them in the next call.

VAR_HANDLE names a variable, READ_VARIABLE reads it and ASSIGN_VARIABLE writes it, also for the next call. The subgraph of
CALL_ONCE assigns the initial value. Streaming networks (microWakeWord, stateful Keras exports) keep past frames in variables.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import Protocol

import numpy as np
import onnx

from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.tflite.file import RefusedOperator, TfliteFile, TfliteTensor
from n2d2py.naming import FreshNames


class VariableTensors(Protocol):
    """Interface of the graph under construction that variables use (`Translation`)."""

    file: TfliteFile
    fresh: FreshNames

    def tensor(self, index: int) -> TfliteTensor: ...
    def alias(self, index: int, source: int) -> None: ...
    def graph_input(self, index: int, name: str) -> onnx.ValueInfoProto: ...
    def graph_output(self, index: int, copied: bool) -> onnx.ValueInfoProto: ...


class Variables:
    """The variables of the graph under construction.

    Attributes:
        inputs: graph inputs for variables, in the order of their first read.
        states: (input, output) of each.
    """

    def __init__(self, tensors: VariableTensors):
        self._t = tensors
        self._names = tensors.file.variables()
        self.inputs: list[onnx.ValueInfoProto] = []
        self.states: list[tuple[str, str]] = []
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._own: list[tuple[onnx.ValueInfoProto, onnx.ValueInfoProto]] = []

    def keep(self, source: onnx.ValueInfoProto, value: onnx.ValueInfoProto) -> None:
        """Add the state of an operator: a graph input, and the output that replaces it in the next call."""
        self._own.append((source, value))

    def read(self, index: int, handle: int) -> None:
        """Declare a result with the value of a variable: that of the last call until it is assigned."""
        name = self._name(handle)
        source = self._last.get(name, self._first.get(name))
        if source is not None:
            self._need_same(index, source, name)
            return self._t.alias(index, source)
        tensor, initial = self._t.tensor(index), self._t.file.initial.get(name)
        if initial is None or initial.values is None:
            raise RefusedOperator(f"its variable '{name}' has no value before the first call")
        zero = tensor.zero_point[0] if tensor.is_quantized else 0
        if initial.dtype != tensor.dtype or initial.values.size != prod(tensor.shape) or np.any(initial.values != zero):
            raise RefusedOperator(f"its variable '{name}' does not start as zeros")
        self._first[name] = index
        self.inputs.append(self._t.graph_input(index, self._t.fresh(name)))

    def assign(self, handle: int, index: int) -> None:
        """Set the value of a variable from here on, and for the next call."""
        name = self._name(handle)
        if self._t.tensor(index).values is not None:
            raise RefusedOperator(f"its variable '{name}' becomes a constant")
        self._last[name] = index

    def outputs(self, names: Collection[int]) -> list[onnx.ValueInfoProto]:
        """Return the values of the variables for the next call; `names`: tensors that are outputs already.

        Raises:
            N2D2Error: E310 a variable that is never assigned, or whose assigned form differs from the form read.
        """
        values, known = [], {*names, *self._first.values()}
        for (name, index), tensor in zip(self._first.items(), self.inputs, strict=True):
            value = self._last.get(name)
            try:
                if value is None:
                    raise RefusedOperator(f"the variable '{name}' is never assigned")
                self._need_same(index, value, name)
                values.append(self._t.graph_output(value, value in known))
            except RefusedOperator as reason:
                remedy = "convert the model with a variable that keeps its value"
                raise N2D2Error("E310", str(reason), where=Location(self._t.file.path), remedy=remedy) from None
            known.add(value)
            self.states.append((tensor.name, values[-1].name))
        self.inputs += [source for source, _ in self._own]
        self.states += [(source.name, value.name) for source, value in self._own]
        return [*values, *(value for _, value in self._own)]

    def _name(self, handle: int) -> str:
        if handle not in self._names:
            raise RefusedOperator("its variable is not a result of VAR_HANDLE")
        return self._names[handle]

    def _need_same(self, index: int, source: int, name: str) -> None:
        first, second = self._t.tensor(index), self._t.tensor(source)
        alike = first.dtype == second.dtype and first.shape == second.shape
        if not (alike and np.array_equal(first.scale, second.scale) and np.array_equal(first.zero_point, second.zero_point)):
            raise RefusedOperator(f"the variable '{name}' is assigned with another shape or type than it is read")
