"""Selection of elements or boxes by value: top-k, non-maximum suppression."""

import numpy as np

from n2d2py import log
from n2d2py.contracts.cpp.layer import Layer, LayerCode, cpp
from n2d2py.contracts.facets import OnnxWriter, onnx_emitter, register
from n2d2py.graph import Node, Shape
from n2d2py.operators.arrays.base import ArrayOp, AxisOp, around_axis, kernel_call, operand_pointers
from n2d2py.operators.arrays.gather import ArrayGather
from n2d2py.operators.arrays.values import Arrays, Unsupported, onnx

# ---- top-k --------------------------------------------------------------------------------------


@register
class ArrayTopK(AxisOp):
    """Positions (outer, count, inner) of the `count` largest elements along the middle axis of (outer, size, inner).

    The largest comes first (without `largest`, the smallest); of equal elements, the lower position. NaN is the largest.
    """

    count: int
    largest: bool = True
    result: str = "int64"

    def output_dims(self) -> Shape:
        return self.outer, self.count, self.inner

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.outer * self.size * self.inner * self.count

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        (x,) = self.operands(inputs, node)
        if self.largest:  # stable: of equal elements, the lower position comes first
            order = self.size - 1 - np.argsort(x[:, :, ::-1], axis=2, kind="stable")[:, :, ::-1]
        else:
            order = np.argsort(x, axis=2, kind="stable")
        return self.as_output(order[:, :, : self.count], inputs)


@onnx("TopK")
def _top(a: Arrays) -> None:
    x = a.tensor(a.value(0))
    axis = a.node.axis_of(a.node.attribute("axis", -1), len(x.dims))
    a.builder.guard_batch(a.node, 0, axis, "orders")
    count = int(a.node.constant(1, "K").item()) if a.node.has(1) else int(a.node.attribute("k"))
    if not 0 < count <= x.dims[axis]:
        raise Unsupported(f"k={count} is out of range for an axis of {x.dims[axis]} elements")
    lines, dims = around_axis(x.dims, axis), (*x.dims[:axis], count, *x.dims[axis + 1 :])
    order = a.add(ArrayTopK(*lines, count, bool(a.node.attribute("largest", 1))), [x], dims, label="order")
    if a.node.outputs[0]:
        values = ArrayGather(*lines, count, True, a.slots([x, order]), x.kind)
        a.bind(a.add(values, [x, order], dims, label="values"))
    a.bind(order, 1)


@onnx_emitter("ArrayTopK")
def _emit_topk(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    (x,) = writer.operands(node)
    _, result = writer.emit_all("TopK", [x, writer.constant([op.count])], 2, axis=2, largest=int(op.largest), sorted=1)
    writer.flat(result, output)


@cpp("ArrayTopK")
def _lower_topk(layer: Layer) -> LayerCode:
    op = layer.op
    return kernel_call(layer, "array_reduce", "arrayTopK", (op.outer, op.size, op.inner, op.count, bool(op.largest)))


# ---- non-maximum suppression --------------------------------------------------------------------


@register
class ArrayNonMaxSuppression(ArrayOp):
    """Selected boxes as rows (image, class, box), from boxes (images, boxes, 4) and scores (images, classes, boxes).

    Rows are ordered by image, then class, then score, highest first, with at most `count` boxes each. A box is selected if its
    score exceeds `least` and its intersection over union with each box selected before is at most `overlap`. Of equal scores
    the lower index comes first; NaN is not a score. Unused rows hold -1. A box is two opposite corners (y, x, y, x), or
    `centered`: (x, y of its center, width, height).
    """

    images: int
    classes: int
    boxes: int
    count: int
    overlap: float
    least: float = float("-inf")
    centered: bool = False
    slots: tuple[int, ...] = (0, 1)
    result: str = "int64"

    @property
    def rows(self) -> int:
        """Number of rows of the result."""
        return self.images * self.classes * self.count

    def operand_dims(self) -> tuple[Shape, ...]:
        return (self.images, self.boxes, 4), (self.images, self.classes, self.boxes)

    def output_dims(self) -> Shape:
        return self.rows, 3

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.rows * self.boxes

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        operands = self.operands(inputs, node)
        count = max(map(len, operands))
        boxes, scores = (np.broadcast_to(values, (count, *values.shape[1:])) for values in operands)
        corners = self._corners(boxes)
        result = np.full((count, self.rows, 3), -1, np.int64)
        for sample in range(count):
            rows = [
                (image, number, box)
                for image, number in np.ndindex(self.images, self.classes)
                for box in self._select_boxes(corners[sample, image], scores[sample, image, number])
            ]
            result[sample, : len(rows)] = np.reshape(rows, (-1, 3))
        return self.as_output(result, inputs)

    def _corners(self, boxes: np.ndarray) -> np.ndarray:
        """Return boxes as (min y, min x, max y, max x)."""
        first, second = boxes[..., :2], boxes[..., 2:]
        if self.centered:
            half = second / 2
            first, second = (first - half)[..., ::-1], (first + half)[..., ::-1]
        return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)

    def _select_boxes(self, corners: np.ndarray, scores: np.ndarray) -> list[int]:
        selected: list[int] = []
        candidates = np.flatnonzero(scores > self.least)
        for box in candidates[np.argsort(-scores[candidates], kind="stable")]:
            if len(selected) == self.count:
                break
            if not (_overlaps(corners[box], corners[selected]) > self.overlap).any():
                selected.append(int(box))
        return selected


def _overlaps(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return intersection over union of a box (4) and others (N, 4), 0 without intersection: (N)."""
    sides = np.minimum(one[2:], others[:, 2:]) - np.maximum(one[:2], others[:, :2])
    shared = np.where((sides > 0).all(1), sides.astype(float).prod(1), 0)
    union = np.add((one[2:] - one[:2]).astype(float).prod(), (others[:, 2:] - others[:, :2]).astype(float).prod(1)) - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=shared > 0)


@onnx("NonMaxSuppression")
def _suppress(a: Arrays) -> None:
    boxes, scores = a.value(0), a.value(1)
    images, classes, count = scores.dims
    if boxes.dims != (images, count, 4) or boxes.kind or scores.kind:
        raise Unsupported(f"boxes of {boxes.dims} do not match scores of {scores.dims}, or one of them is an integer")

    def number(index: int, name: str, absent: float = 0.0) -> float:
        return float(a.node.constant(index, name).item()) if a.node.has(index) else absent

    limit = int(min(number(2, "max_output_boxes_per_class"), count))
    overlap, least = number(3, "iou_threshold"), number(4, "score_threshold", float("-inf"))
    if limit < 1:
        raise Unsupported("max_output_boxes_per_class is 0, which keeps no box")
    for index in (0, 1):
        a.builder.guard_batch(a.node, index, 0, "orders")
    centered, slots = bool(a.node.attribute("center_point_box", 0)), a.slots([boxes, scores])
    op = ArrayNonMaxSuppression(images, classes, count, limit, overlap, least, centered, slots)
    log.notice("%s: its result has %d rows, those after the last box hold -1", a.builder.model.place(a.node.name), op.rows)
    a.bind(a.add(op, [boxes, scores], (op.rows, 3), label="kept"))


@onnx_emitter("ArrayNonMaxSuppression")
def _emit_non_max_suppression(writer: OnnxWriter, node: Node, output: str) -> None:
    """Emit the rows of all samples, each moved to its sample's rows."""
    op = node.op
    boxes, scores = writer.operands(node)
    boxes = writer.emit("Reshape", [boxes, writer.constant([-1, op.boxes, 4])])
    scores = writer.emit("Reshape", [scores, writer.constant([-1, op.classes, op.boxes])])
    limits = [writer.constant([op.count]), *(writer.exact(np.array([x], np.float32)) for x in (op.overlap, op.least))]
    rows = writer.emit("NonMaxSuppression", [boxes, scores, *limits], center_point_box=int(op.centered))
    image, rest = writer.emit_all("Split", [rows, writer.constant([1, 2])], 2, axis=1)
    images = writer.constant([op.images])
    sample = writer.emit("Div", [image, images])
    own = writer.emit("Concat", [writer.emit("Sub", [image, writer.emit("Mul", [sample, images])]), rest], axis=1)

    def length(tensor: str, axis: int = 0) -> str:
        return writer.emit("Gather", [writer.emit("Shape", [tensor]), writer.exact(np.array(axis))])

    zero, one = writer.exact(np.array(0)), writer.exact(np.array(1))
    samples = writer.emit("Div", [length(scores), writer.exact(np.array(op.images))])
    earlier = writer.emit("Less", [sample, writer.emit("Range", [zero, samples, one])])
    first = writer.emit("ReduceSum", [writer.emit("Cast", [earlier], to=7), writer.constant([0])], keepdims=0)
    begun = writer.emit("Gather", [first, sample])
    numbers = writer.emit("Unsqueeze", [writer.emit("Range", [zero, length(rows), one]), writer.constant([1])])
    rank = writer.emit("Sub", [numbers, begun])
    place = writer.emit("Add", [writer.emit("Mul", [sample, writer.constant([op.rows])]), rank])
    total = writer.emit("Mul", [writer.emit("Unsqueeze", [samples, writer.constant([0])]), writer.constant([op.rows])])
    shape = writer.emit("Concat", [total, writer.constant([3])], axis=0)
    empty = writer.emit("Expand", [writer.constant([-1]), shape])
    scattered = writer.emit("ScatterND", [empty, place, own])
    writer.emit("Reshape", [scattered, writer.constant([-1, op.output_size()])], output)


@cpp("ArrayNonMaxSuppression")
def _lower_non_max_suppression(layer: Layer) -> LayerCode:
    op = layer.op
    numbers = (op.images, op.classes, op.boxes, op.count, op.centered)
    least = "-HUGE_VAL" if np.isinf(op.least) else repr(op.least)
    arguments = (*operand_pointers(layer), repr(op.overlap), least)
    return kernel_call(layer, "non_max_suppression", "nonMaxSuppression", numbers, arguments)
