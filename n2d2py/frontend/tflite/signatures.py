"""Signatures of operators: what their lowerings rely on, checked in one place before they run.

With `@lowers("RESIZE_BILINEAR", inputs=(Rank(4), Ints(2)))` the lowering gets a shape of four axes and a list of two integers.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain, repeat, zip_longest
from typing import Any

import numpy as np

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator, TfliteTensor


@dataclass(frozen=True)
class Input:
    """An input of an operator, of which the lowering gets nothing.

    Attributes:
        size: axes of a tensor, or values of a constant; None: any number.
        at_least: there may be more than `size`.
        per_axis: instead of `size`, so many for each axis of the first tensor.
        optional: the input may be left out.
        many: there are one or more such inputs, the last ones.
    """

    size: int | None = None
    _: KW_ONLY
    at_least: bool = False
    per_axis: int = 0
    optional: bool = False
    many: bool = False

    def read(self, tensor: TfliteTensor, rank: int) -> Any:
        """Return what the lowering gets. Raise RefusedOperator for another input; `rank`: of the first tensor."""

    def check_size(self, tensor: TfliteTensor, size: int, unit: str, rank: int) -> None:
        """Raise RefusedOperator if the input has another size."""
        wanted = self.per_axis * rank if self.per_axis else self.size
        if wanted is not None and (size < wanted or (size > wanted and not self.at_least)):
            more = " or more" if self.at_least else ""
            raise RefusedOperator(f"its input '{tensor.name}' has {size} {unit}, not {wanted}{more}")

    def constant(self, tensor: TfliteTensor, kinds: str, rank: int) -> np.ndarray:
        """Return the values of a constant of some kinds of types (as `np.dtype.kind`) and of this size."""
        values = tensor.constant().reshape(-1)
        if values.dtype.kind not in kinds:
            raise RefusedOperator(f"its input '{tensor.name}' has the unsupported type {values.dtype.name}")
        self.check_size(tensor, values.size, "values", rank)
        return values


class Rank(Input):
    """A tensor of `size` axes; the lowering gets its shape."""

    def read(self, tensor: TfliteTensor, rank: int) -> Any:
        self.check_size(tensor, len(tensor.shape), "axes", rank)
        return tensor.shape


class Ints(Input):
    """Constant integers; the lowering gets a list, or the integer if `size` is 1."""

    def read(self, tensor: TfliteTensor, rank: int) -> Any:
        values = self.constant(tensor, "iu", rank).tolist()
        return values[0] if self.size == 1 else values


class Axes(Ints):
    """Constant axes of the first tensor, -rank to rank - 1; the lowering gets them as it does Ints."""

    def read(self, tensor: TfliteTensor, rank: int) -> Any:
        for axis in self.constant(tensor, "iu", rank).tolist():
            if not -rank <= axis < rank:
                raise RefusedOperator(f"its input '{tensor.name}' has the axis {axis}, which is outside rank {rank}")
        return super().read(tensor, rank)


class Number(Input):
    """A constant number; the lowering gets it as an array of rank 0."""

    def read(self, tensor: TfliteTensor, rank: int) -> Any:
        return self.constant(tensor, "iuf", rank).reshape(())


UNREAD, TENSOR, NUMBER = Input(), Rank(), Number(1)


@dataclass(frozen=True)
class Signature:
    """Inputs in order, and facts.

    Attributes:
        results: number of outputs; None: one or more.
        axis_options: options that are axes of the first tensor.
        adds_axis: these are axes of a tensor with one more axis.
        broadcast: axes at the end of the tensors that do not broadcast; None: none has to.
    """

    inputs: Sequence[Input]
    results: int | None = 1
    axis_options: Sequence[int] = ()
    adds_axis: bool = False
    broadcast: int | None = None

    def read(self, op: TfliteOperator, tensor: Callable[[int], TfliteTensor]) -> list[Any]:
        """Return what the lowering gets of each input. Raise RefusedOperator if an operator does not fit."""
        inputs = [(form, tensor(index)) for form, index in self._given(op) if type(form) is not Input and index >= 0]
        shapes = [one.shape for form, one in inputs if isinstance(form, Rank)]
        rank = len(shapes[0]) if shapes else 0
        limit = rank + self.adds_axis
        for option in self.axis_options:
            if not -limit <= (axis := op.options.integer(option)) < limit:
                raise RefusedOperator(f"its axis {axis} is outside rank {limit}")
        if self.broadcast is not None:
            sizes = zip_longest(*(shape[: len(shape) - self.broadcast][::-1] for shape in shapes), fillvalue=1)
            if any(len({*each} - {1}) > 1 for each in sizes):
                raise RefusedOperator(f"its inputs {' and '.join(map(str, shapes))} cannot be broadcast")
        return [form.read(one, rank) for form, one in inputs]

    def _given(self, op: TfliteOperator) -> list[tuple[Input, int]]:
        """Return the form and the tensor of each input."""
        needed = [place for place, form in enumerate(self.inputs) if not form.optional]
        most = len(op.inputs) if self.inputs[-1].many else len(self.inputs)
        fits = len(op.outputs) >= 1 if self.results is None else len(op.outputs) == self.results
        if not fits or not needed[-1] < len(op.inputs) <= most:
            raise RefusedOperator(f"it has {len(op.inputs)} inputs and {len(op.outputs)} outputs")
        given = list(zip(chain(self.inputs, repeat(self.inputs[-1])), op.inputs, strict=False))
        if any(index < 0 and not form.optional for form, index in given):
            raise RefusedOperator("a required input is missing")
        return given
