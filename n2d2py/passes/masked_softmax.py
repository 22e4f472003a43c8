"""Attention masks: scores that a constant pushes far below the others of their row are left out of the Softmax.

Exporters write minus infinity, the lowest float, -10000 or -100 as mask. As integers, such scores would leave no steps to the
others. An element `_FAR` below the largest constant of its row gets a probability below e^-64 for otherwise equal scores. A row
without any unmasked element keeps its form, since its Softmax is over the masked scores.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py.contracts.quant.quantizer import refused
from n2d2py.graph import Graph, Node, elements
from n2d2py.operators import ArrayMap, Identity, MaskedSoftmax, Softmax, is_quantized
from n2d2py.operators.arrays.map import function_name
from n2d2py.passes.base import Done, Outcome, drop, is_plain, rewrite

_FAR = 64.0


@dataclass(frozen=True)
class Mask:
    """Mask of the elements that count (outer, size), bool, and the rest of the constant to add to the scores, or None."""

    counts: np.ndarray
    rest: np.ndarray | None

    @property
    def rows(self) -> np.ndarray:
        """Return the different rows if they repeat, else all rows."""
        outer = len(self.counts)
        for rows in (n for n in range(1, outer) if outer % n == 0):
            if (self.counts.reshape(outer // rows, rows, -1) == self.counts[:rows]).all():
                return self.counts[:rows]
        return self.counts


def _operand(node: Node, index: int) -> np.ndarray:
    op = node.op
    return np.broadcast_to(node.params[f"operand{index}"].reshape(op.shapes[index]), op.dims)


def _added_or_replacing(node: Node[ArrayMap]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the constant that a layer adds to its only input, and where it replaces the input; else None."""
    op = node.op
    if op.result or node.activation is not None or op.slots.count(0) != 1 or max(op.slots) > 0:
        return None
    slot = op.slots.index(0)
    if op.shapes[slot] != op.dims:
        return None
    if op.function == "Add":
        return _operand(node, 1 - slot), np.zeros(op.dims, bool)
    if op.function != "Where" or slot == 0:
        return None
    constant, put = _operand(node, 3 - slot), _operand(node, 0) != 0
    put = put if slot == 2 else ~put
    return np.where(put, constant, 0.0), put


def find_mask(node: Node[ArrayMap], outer: int, size: int) -> Mask | None:
    """Return the mask that a layer applies to scores of `outer` rows with `size` elements; None if it applies none."""
    added = _added_or_replacing(node)
    if added is None or prod(node.op.dims) != outer * size:
        return None
    constant, put = (part.reshape(outer, size) for part in added)
    if np.isnan(constant).any() or np.isposinf(constant).any():
        return None
    constant = constant.astype(np.float64)
    counts = constant > constant.max(1, keepdims=True) - _FAR
    if counts.all() or not np.isfinite(constant.max(1)).all() or (put & counts).any():
        return None
    rest = np.where(counts, constant, 0.0)
    if rest.any() and (constant[~counts] > -_FAR).any():
        return None
    return Mask(counts, rest.reshape(-1) if rest.any() else None)


@rewrite("masked-softmax", "masks of attention taken into the softmax", ArrayMap)
def fuse_mask(graph: Graph, node: Node) -> Outcome:
    """Softmax(Add(x, constant)) => MaskedSoftmax(x), or of x and the rest of the constant; Softmax(Where(constant condition, x,
    constant)) => MaskedSoftmax(x). Not in pre-quantized networks, nor for a Softmax in floating point."""
    softmax = graph.sole_consumer(node.output)
    if not is_plain(softmax, Softmax) or type(softmax.op) is not Softmax or softmax.op.inner != 1:
        return None
    if refused(softmax) is not None:
        return None
    outer, size, _ = softmax.op.rows(graph.shape(softmax.output))
    mask = find_mask(node, outer, size)
    if mask is None:
        return None
    if graph.precision(softmax).quantize is False or is_quantized(graph):
        return "it is to stay in floating point"
    softmax.op, softmax.params = MaskedSoftmax(size), {"mask": mask.rows}
    if mask.rest is None:
        drop(graph, node)
    else:
        node.op = ArrayMap("Add", node.op.dims, (node.op.dims, node.op.dims), (0, -1))
        node.params = {"operand1": mask.rest.astype(np.float32)}
    return Done(f"a mask of {len(mask.rows)} lines, of which {mask.counts.mean():.0%} counts")


@rewrite("remove-nan-guard", "NaN guards removed after softmax", ArrayMap)
def remove_nan_guard(graph: Graph, node: Node) -> Outcome:
    """Where(IsNaN(y), constant, y) => y for a softmax y, which is never NaN here."""
    op = node.op
    if op.function != "Where" or node.activation is not None or sorted(op.slots) != [-1, 0, 1] or op.slots[1] != -1:
        return None
    condition, softmax = (graph.producer(node.inputs[op.slots[index]]) for index in (0, 2))
    if condition is None or function_name(condition) != "IsNaN":
        return None
    if softmax is None or not isinstance(softmax.op, Softmax) or condition.inputs[0] != softmax.output:
        return None
    if op.shapes[2] != op.dims or _may_be_empty(graph, softmax):
        return "a line of its softmax may be without any element that counts"
    node.op, node.inputs, node.params = Identity(), [softmax.output], {}
    return Done("a softmax of numbers is a number")


def _may_be_empty(graph: Graph, softmax: Node) -> bool:
    source = graph.producer(softmax.inputs[0])
    if source is None or not isinstance(softmax.op, Softmax) or not isinstance(source.op, ArrayMap):
        return False
    added = _added_or_replacing(source)
    if added is None or prod(source.op.dims) != elements(graph.shape(softmax.output)):
        return False
    constant = added[0].reshape(softmax.op.rows(graph.shape(softmax.output)))
    return bool(np.isneginf(constant).all(1).any())
