"""Normalisation and softmax of lines of an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic import FloatRescale
from n2d2py.arithmetic import functions as exact
from n2d2py.arithmetic.attention import normalized, powers_of, shares, taken_of
from n2d2py.arithmetic.functions import sequential_sum
from n2d2py.graph import Node
from n2d2py.graph.forms import Exponentials, MaskedExponentials, Normalized
from n2d2py.graph.shapes import Shape
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.arrays.emitting import flat, shaped, typed
from n2d2py.operators.base import register
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter


@register
@dataclass(frozen=True)
class ArrayNorm(ArrayOp):
    """(x - mean) / (sqrt(variance + epsilon) + added) of each of `outer` lines of `inner` elements; mean 0 with not `centred`.

    `part`: "" for that, "mean" or "inverse" for the line's mean or what the differences are multiplied by alone. Parameters "gain" and
    "shift" (inner), both or neither: the result times gain plus shift, each rounded to the type of x.
    """

    outer: int
    inner: int
    epsilon: float
    centred: bool = True
    part: str = ""
    result: str = ""
    added: float = 0.0
    kind: ClassVar[str] = "ArrayNorm"

    def operand_sizes(self) -> tuple[int, ...]:
        return (self.outer * self.inner,)

    def output_size(self) -> int:
        return self.outer if self.part else self.outer * self.inner

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return 2 * self.outer * self.inner

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].reshape(-1, self.outer, self.inner)
        mean = sequential_sum(x) / self.inner if self.centred else np.zeros(x.shape[:2])
        # the differences are rounded to the type of x: their squares are then exact in float64
        away = (x.astype(np.float64) - mean[..., None]).astype(x.dtype)
        variance = sequential_sum(np.square(away.astype(np.float64))) / self.inner
        inverse = 1.0 / (np.sqrt(variance + self.epsilon) + self.added)
        if self.part:
            return self.typed(mean if self.part == "mean" else inverse, inputs)
        result = (away.astype(np.float64) * inverse[..., None]).astype(x.dtype)
        if "gain" in node.params:
            result = result * node.params["gain"].astype(x.dtype) + node.params["shift"].astype(x.dtype)
        return self.typed(result, inputs)

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """As `arithmetic/attention.py` says."""
        if node.rescale is None:
            return super().run_integer(inputs, node, graph)
        form, kind = node.form_as(Normalized), graph.type(node.inputs[0])
        away = inputs[0].reshape(-1, self.outer, self.inner).astype(np.int64) - kind.zero_point
        lines = normalized(away, self.centred, int(form.epsilon[0]), int(form.fraction[0]))
        acc = lines * form.gains.astype(np.int64) + form.offsets.astype(np.int64)
        return [node.requantize(acc, graph.type(node.output)).reshape(len(inputs[0]), -1)]


@register
@dataclass(frozen=True)
class ArraySoftmax(ArrayOp):
    """exp(x - max) / sum along the middle axis of (outer, size, inner); `log`: its logarithm."""

    outer: int
    size: int
    inner: int
    log: bool = False
    result: str = ""
    kind: ClassVar[str] = "ArraySoftmax"

    def operand_sizes(self) -> tuple[int, ...]:
        return (self.outer * self.size * self.inner,)

    def output_size(self) -> int:
        return self.outer * self.size * self.inner

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.outer * self.size * self.inner

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = np.moveaxis(inputs[0].reshape(-1, self.outer, self.size, self.inner), 2, 3).astype(np.float64)
        with np.errstate(all="ignore"):
            shifted = x - x.max(-1, keepdims=True)
            powers = exact.exp(shifted)
            total = sequential_sum(powers)[..., None]
            values = shifted - exact.log(total) if self.log else powers / total
        return self.typed(np.moveaxis(values, 3, 2), inputs)

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """As `arithmetic/attention.py` says."""
        if not isinstance(node.form, Exponentials):
            return super().run_integer(inputs, node, graph)
        form, kind = node.form, graph.type(node.output)
        x = np.moveaxis(inputs[0].reshape(-1, self.outer, self.size, self.inner), 2, 3)
        taken = self.taken(form)
        factor = node.rescale.factors[0] if isinstance(node.rescale, FloatRescale) else None
        low, high = (limit - kind.zero_point for limit in node.limits)
        found = shares(powers_of(x, form.powers, taken), factor, int(form.numerator[0]), low, high) + kind.zero_point
        return [np.moveaxis(found, 3, 2).astype(kind.dtype).reshape(len(inputs[0]), -1)]

    def taken(self, form: Exponentials) -> np.ndarray | None:
        """The elements that count, bool, (outer, 1, size); None where all do."""
        return None


@register
@dataclass(frozen=True)
class ArrayMaskedSoftmax(ArraySoftmax):
    """Softmax of lines (outer, size, 1) of which some elements do not count: they give 0, as if they were minus infinity.

    Parameter "mask" (lines, size), bool: what counts in line i is row i % lines; at least one element of each row.
    """

    kind: ClassVar[str] = "ArrayMaskedSoftmax"

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].reshape(-1, self.outer, self.size)
        lowest = np.finfo(x.dtype).min
        return super().run([np.where(self._repeated(node.params["mask"]), x, lowest).reshape(len(x), -1)], node)

    def taken(self, form: Exponentials) -> np.ndarray | None:
        assert isinstance(form, MaskedExponentials)
        return self._repeated(taken_of(form.mask, self.size))[:, None]

    def _repeated(self, mask: np.ndarray) -> np.ndarray:
        return np.tile(mask, (self.outer // len(mask), 1))


memory_access("ArrayNorm", "ArraySoftmax", "ArrayMaskedSoftmax")(whole)


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("ArraySoftmax")
def _softmax(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    x = shaped(writer, node.inputs[0], (op.outer, op.size, op.inner))
    flat(writer, writer.emit("LogSoftmax" if op.log else "Softmax", [x], axis=2), output)


@onnx_emitter("ArrayMaskedSoftmax")
def _masked_softmax(writer: OnnxWriter, node: Node, output: str) -> None:
    op, mask = node.op, node.params["mask"]
    x = shaped(writer, node.inputs[0], (op.outer // len(mask), len(mask), op.size))
    lowest = typed(writer, np.array(np.finfo(np.float32).min), "")
    flat(writer, writer.emit("Softmax", [writer.emit("Where", [typed(writer, mask, "bool"), x, lowest])], axis=3), output)


@onnx_emitter("ArrayNorm")
def _norm(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if op.part:
        raise NoOnnxForm(f"the {op.part} of a normalisation has no ONNX form")
    x, emit = shaped(writer, node.inputs[0], (op.outer, op.inner)), writer.emit
    affine = [typed(writer, node.params[role], "") for role in ("gain", "shift") if role in node.params]
    if op.centred and not op.added:
        gain = affine[:1] or [typed(writer, np.ones(op.inner), "")]
        flat(writer, emit("LayerNormalization", [x, *gain, *affine[1:]], axis=-1, epsilon=op.epsilon), output)
        return
    away = emit("Sub", [x, emit("ReduceMean", [x], axes=[-1])]) if op.centred else x
    power = emit("Add", [emit("ReduceMean", [emit("Mul", [away, away])], axes=[-1]), typed(writer, np.array(op.epsilon), "")])
    made = emit("Div", [away, emit("Add", [emit("Sqrt", [power]), typed(writer, np.array(op.added), "")])])
    for function, constant in zip(("Mul", "Add"), affine, strict=False):
        made = emit(function, [made, constant])
    flat(writer, made, output)
