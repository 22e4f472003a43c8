"""Embeddings: lookups of the rows of a constant table, without products and with what follows in the table."""

from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, ArrayGather, ArrayMap, ArrayMatMul, is_quantized, row_constant
from n2d2py.passes.base import Done, Outcome, is_plain, rewrite


@rewrite("one-hot-matmul", "products of one-hot codes turned into picked rows", ArrayMatMul)
def one_hot_matmul(graph: Graph, node: Node) -> Outcome:
    """ArrayMatMul(code, W) => ArrayGather(rows of W, x); the code is Cast(Equal(x, counting numbers)), or Where of this Equal,
    on, off, with rows of on and off times W. An x outside the numbers has a code without a one: the table has a row for it at
    both ends."""
    op = node.op
    if op.slots != (0, -1) or op.result or op.views or prod(op.right[:-2]) != 1:
        return None
    code = _find_one_hot(graph, graph.producer(node.inputs[0]))
    if code is None or code[2] != op.right[-2]:
        return None
    if is_quantized(graph):
        return "it computes in integers of the file"
    weights = node.params["operand1"].reshape(op.right[-2:]).astype(np.float64) * op.scale
    (index, first, size, on, off), count = code, prod(op.left[:-1])
    rest = np.tile(off * weights.sum(0), (size + 2, 1))
    rest[1:-1] += (on - off) * weights
    steps: list[tuple[str, dict[str, int]]] = [("Add", {"operand1": 1 - first}), ("Max", {"operand1": 0})]
    if graph.kind(index) != "int64":
        steps.insert(0, ("Cast", {}))
    for function, operands in steps:
        shapes, slots = ((count,), *((1,) for _ in operands)), (0, *(-1 for _ in operands))
        params = {role: np.array([value]) for role, value in operands.items()}
        layer = ArrayMap(function, (count,), shapes, slots, "int64")
        index = graph.add_before(node, layer, index, f"{node.output}_{function.lower()}", params)
    node.op, node.inputs = ArrayGather(1, size + 2, op.right[-1], count, slots=(-1, 0)), [index]
    node.params = {"operand0": rest.astype(node.params["operand1"].dtype)}
    graph.prune()
    return Done(f"product of {count} codes of {size} numbers turned into picked rows")


@rewrite("fold-into-table", "functions and constants computed in the table of an embedding", ArrayGather)
def fold_into_table(graph: Graph, node: Node) -> Outcome:
    """ArrayGather of a constant table, then a function or a constant of its rows => ArrayGather of what these give."""
    op, reader = node.op, graph.sole_consumer(node.output)
    if reader is None or reader.activation is not None or not op.is_embedding(node) or is_quantized(graph):
        return None
    table = node.params["operand0"].reshape(op.size, op.inner)
    if isinstance(reader.op, Activation):
        table = reader.op.run([table], reader)[0]
    elif (constant := row_constant(reader, "Add", op.inner)) is not None:
        table = table + constant
    elif (constant := row_constant(reader, "Mul", op.inner)) is not None:
        table = table * constant
    else:
        return None
    graph.absorb(node, reader)
    node.params = {"operand0": table.astype(np.float32)}
    return Done(f"its table holds the results of {reader.name}")


def _find_one_hot(graph: Graph, node: Node | None) -> tuple[str, int, int, float, float] | None:
    """Return (x, first, size, on, off) of a layer with the one-hot code of the integers x over `size` numbers from `first`: `on`
    at the index of x, `off` elsewhere; None for other layers."""
    if not is_plain(node, ArrayMap) or node.op.result:
        return None
    op, on, off = node.op, 1.0, 0.0
    if op.function == "Where" and op.slots == (0, -1, -1) and op.shapes[0] == op.dims:
        values = [node.params[f"operand{index}"] for index in (1, 2)]
        if any(value.size != 1 for value in values):
            return None
        on, off = (float(value.item()) for value in values)
    elif op.function != "Cast":
        return None
    equal = graph.producer(node.inputs[0])
    if equal is None or not isinstance(equal.op, ArrayMap) or equal.op.function != "Equal" or sorted(equal.op.slots) != [-1, 0]:
        return None
    op, index = equal.op, equal.op.slots.index(-1)
    numbers, x = equal.params[f"operand{index}"].reshape(-1), equal.inputs[0]
    size = op.dims[-1]
    if op.shapes[1 - index] != (*op.dims[:-1], 1) or op.shapes[index][-1:] != (len(numbers),):
        return None
    counts = len(numbers) == size and np.array_equal(numbers, numbers[0] + np.arange(size))
    if not counts or not graph.kind(x).startswith(("int", "uint")):
        return None
    return x, int(numbers[0]), size, on, off
