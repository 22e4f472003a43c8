"""Networks that differ a little from small ones: what a rewrite looks for just fails, just holds, or is read elsewhere too.

A change is drawn by seed: an operator becomes a similar one, its inputs change places, a constant or an attribute is another, a layer
comes in between or goes, a tensor inside is read twice or is an output. A change may give no network at all; who draws looks whether it did.
"""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from support.chain_texts import network
from support.near_miss_texts import ALL
from support.onnx_models import runtime_outputs

__all__ = ["drawn", "in_onnx_runtime", "stimulus"]

F = np.float32
ALIKE = (
    ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"),
    (*"Relu Sigmoid Tanh Softplus Exp Abs Neg Erf HardSwish HardSigmoid Identity Elu Softsign".split(),),
    ("Sqrt", "Reciprocal", "Abs", "Log", "Floor", "Round", "Sign"),
    ("ReduceMean", "ReduceMax", "ReduceL2", "ReduceSumSquare", "ReduceL1", "ReduceMin"),
    ("Greater", "Less", "GreaterOrEqual", "LessOrEqual"),
    ("MaxPool", "AveragePool"),
    ("GlobalAveragePool", "GlobalMaxPool"),
    ("ArgMax", "ArgMin"),
    ("Softmax", "LogSoftmax"),
)
"""Operators of which one stands for another with the same inputs."""
UNARY = ("Relu", "Neg", "Abs", "Identity", "Sigmoid", "Tanh", "Exp", "HardSwish")


class Net:
    """A model being changed; `shapes`: those of its tensors of real numbers before the change."""

    def __init__(self, model: onnx.ModelProto, shapes: dict[str, tuple[int, ...]], draw: random.Random):
        self.graph: GraphProto = model.graph
        self.shapes, self.draw = shapes, draw
        self.numbers = np.random.default_rng(draw.randrange(1 << 30))

    def choose(self, found: list) -> Any:
        """Any of them; None where there is none."""
        return self.draw.choice(found) if found else None

    def fresh(self) -> str:
        return f"n{len(self.graph.node)}_{len(self.graph.initializer)}"

    def constant(self, array: np.ndarray) -> str:
        name = self.fresh()
        self.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def held(self) -> dict[str, TensorProto]:
        return {each.name: each for each in self.graph.initializer}

    def edges(self) -> list[tuple[NodeProto, int]]:
        """Inputs of nodes that are computed in real numbers."""
        return [(node, at) for node in self.graph.node for at, name in enumerate(node.input) if name in self.shapes]

    def put(self, before: NodeProto, kind: str, inputs: list[str], **attributes) -> str:
        """A new node in front of another one; its output."""
        name = self.fresh()
        at = next(at for at, node in enumerate(self.graph.node) if node is before or list(node.output) == list(before.output))
        self.graph.node.insert(at, helper.make_node(kind, inputs, [name], **attributes))
        return name

    def set_constant(self, old: TensorProto, array: np.ndarray) -> None:
        old.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), old.name))


def _swap(net: Net) -> None:
    node = net.choose([node for node in net.graph.node if len(node.input) > 1 and all(node.input[:2])])
    if node is not None:
        node.input[0], node.input[1] = node.input[1], node.input[0]


def _other_operator(net: Net) -> None:
    node = net.choose([node for node in net.graph.node if any(node.op_type in kinds for kinds in ALIKE)])
    if node is not None:
        node.op_type = net.choose([k for kinds in ALIKE if node.op_type in kinds for k in kinds if k != node.op_type])


def _insert(net: Net) -> None:
    edge = net.choose(net.edges())
    if edge is None:
        return
    node, at = edge
    source, shape = node.input[at], net.shapes[node.input[at]]
    what = net.draw.randrange(5)
    if what < 2:
        made = net.put(node, net.draw.choice(UNARY), [source])
    elif what == 2:
        made = net.put(node, "Mul", [source, net.constant(np.array(net.choose([0.5, -1.0, 2.0, 0.0, 1.0]), F))])
    elif what == 3:
        made = net.put(node, net.choose(["Add", "Sub", "Mul"]), [source, net.constant(_some_of(net, shape))])
    else:
        made = net.put(
            node, "Clip", [source, net.constant(np.array(-0.5, F)), net.constant(np.array(net.choose([0.5, 3.0]), F))]
        )
    node.input[at] = made


def _some_of(net: Net, shape: tuple[int, ...]) -> np.ndarray:
    """A constant of some of the axes, with or without the first ones."""
    dims = [size if net.draw.random() < 0.5 else 1 for size in shape]
    return net.numbers.uniform(0.3, 1.7, dims[net.draw.randrange(len(dims) + 1) :]).astype(F)


def _remove(net: Net) -> None:
    alike = [
        (node, name)
        for node in net.graph.node
        for name in node.input
        if len(node.output) == 1 and name in net.shapes and net.shapes.get(node.output[0]) == net.shapes[name]
    ]
    found = net.choose(alike)
    if found is not None:
        node, name = found
        node.CopyFrom(helper.make_node("Identity", [name], [node.output[0]]))


def _redirect(net: Net) -> None:
    edge = net.choose(net.edges())
    if edge is None:
        return
    node, at = edge
    before, made = [], ["x"]
    for each in net.graph.node:
        if list(each.output) == list(node.output):
            before = list(made)
        made += each.output
    same = [name for name in before if name != node.input[at] and net.shapes.get(name) == net.shapes[node.input[at]]]
    other = net.choose(same)
    if other is not None:
        node.input[at] = other


def _output_inside(net: Net) -> None:
    names = [name for node in net.graph.node for name in node.output if name in net.shapes and len(net.shapes[name]) > 1]
    name = net.choose([name for name in names if all(name != given.name for given in net.graph.output)])
    if name is None:
        return
    if net.draw.random() < 0.5:
        reader = net.fresh()
        net.graph.node.append(helper.make_node(net.choose(["Relu", "Neg", "Sigmoid"]), [name], [reader]))
        name = reader
    given = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    net.graph.output.insert(net.draw.randrange(2), given)


def _read_twice(net: Net) -> None:
    edge = net.choose(net.edges())
    if edge is not None:
        node, at = edge
        kind = net.choose(["Add", "Mul", "Max", "Sub"])
        other = net.put(node, net.draw.choice(UNARY), [node.input[at]])
        node.input[at] = net.put(node, kind, [node.input[at], other])


def _numbers(net: Net) -> None:
    old = net.choose([each for each in net.graph.initializer if each.data_type == TensorProto.FLOAT])
    if old is None:
        return
    array = numpy_helper.to_array(old)
    line = array.reshape(-1).copy()
    what = net.draw.randrange(9)
    if what == 0:
        line[:] = line[:1]
    elif what == 1:
        line = -line
    elif what == 2:
        line = line * F(2)
    elif what == 3:
        line[:] = net.choose([0.0, 1.0, -1.0, 1e-6, 1e4])
    elif what == 4 and line.size:
        line[0] = line[0] * F(1.5) + F(0.25)
    elif what == 5 and line.size:
        line[-1] = -line[-1] - F(0.25)
    elif what == 6 and line.size:
        line[net.draw.randrange(line.size)] = net.choose([0.0, np.inf, -np.inf, -70.0, 200.0])
    elif what == 7:
        line[line.size // 2 :] = 0
    elif line.size:
        line = line[::-1]
    net.set_constant(old, line.reshape(array.shape).astype(F))


def _constant_shape(net: Net) -> None:
    """A constant of single values: of other axes, of one more, of none."""
    held = net.held()
    places = [
        (node, at)
        for node in net.graph.node
        if node.op_type in ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Where", "Clip", "Pow")
        for at, name in enumerate(node.input)
        if name in held and node.output[0] in net.shapes
    ]
    place = net.choose(places)
    if place is None:
        return
    node, at = place
    array, shape = numpy_helper.to_array(held[node.input[at]]), net.shapes[node.output[0]]
    what = net.draw.randrange(5)
    if what == 0:
        array = array.reshape((1, *array.shape))
    elif what == 1 and array.size:
        array = array.reshape(-1)[0]
    elif what == 2:
        array = np.broadcast_to(array, np.broadcast_shapes(array.shape, shape))
    elif what == 3 and array.size:
        array = array.reshape(-1)[:1]
    elif array.dtype == F:
        array = _some_of(net, shape)
    node.input[at] = net.constant(np.array(array))


def _whole_numbers(net: Net) -> None:
    old = net.choose([each for each in net.graph.initializer if each.data_type == TensorProto.INT64])
    if old is None:
        return
    array = numpy_helper.to_array(old).copy()
    line = array.reshape(-1)
    if not line.size:
        return
    at = net.draw.randrange(line.size)
    what = net.draw.randrange(4)
    if what == 0:
        line[at] += net.choose([1, -1])
    elif what == 1:
        line[at] = -1
    elif what == 2:
        other = net.draw.randrange(line.size)
        line[at], line[other] = line[other], line[at]
    else:
        line[:] = line[::-1].copy()
    net.set_constant(old, array)


def _attribute(net: Net) -> None:
    found = [(node, each) for node in net.graph.node for each in node.attribute if each.type != AttributeProto.STRING]
    chosen = net.choose(found)
    if chosen is None:
        return
    _, each = chosen
    if each.type == AttributeProto.INT:
        each.i = 1 - each.i if each.name in ("keepdims", "transB", "transA") else each.i + net.choose([1, -1, -2])
    elif each.type == AttributeProto.FLOAT:
        each.f = each.f * net.choose([10.0, 0.5, -1.0])
    elif each.type == AttributeProto.INTS and each.ints:
        at, other = (net.draw.randrange(len(each.ints)) for _ in range(2))
        if each.name == "perm" or net.draw.random() < 0.3:
            each.ints[at], each.ints[other] = each.ints[other], each.ints[at]
        elif each.name == "axes" and net.draw.random() < 0.5:
            each.ints.append(net.choose([1, -2, -3]))
        else:
            each.ints[at] += net.choose([1, -1])


def _spelled(net: Net) -> None:
    """The same by other operators."""
    held = net.held()
    node = net.choose([node for node in net.graph.node if node.op_type in _SPELLED])
    if node is None:
        return
    given = list(node.input)
    kind, made = node.op_type, node.output[0]
    if kind in ("Div", "Mul") and given[1] in held:
        array = numpy_helper.to_array(held[given[1]])
        inverse = net.constant((F(1) / np.where(array == 0, 1, array)).astype(F))
        node.CopyFrom(helper.make_node("Mul" if kind == "Div" else "Div", [given[0], inverse], [made]))
    elif kind == "Div":
        node.CopyFrom(helper.make_node("Mul", [given[0], net.put(node, "Reciprocal", [given[1]])], [made]))
    elif kind == "Mul" and given[0] == given[1]:
        node.CopyFrom(helper.make_node("Pow", [given[0], net.constant(np.array(2, F))], [made]))
    elif kind == "Pow":
        node.CopyFrom(helper.make_node("Mul", [given[0], given[0]], [made]))
    elif kind == "Sqrt":
        node.CopyFrom(helper.make_node("Pow", [given[0], net.constant(np.array(0.5, F))], [made]))
    elif kind == "Relu":
        zero = net.constant(np.array(0, F))
        node.CopyFrom(helper.make_node(net.draw.choice(["Max", "Clip"]), [given[0], zero], [made]))
    elif kind == "Sub":
        node.CopyFrom(helper.make_node("Add", [given[0], net.put(node, "Neg", [given[1]])], [made]))
    elif kind == "Add":
        node.CopyFrom(helper.make_node("Sum", given, [made]))
    elif kind == "Softmax" and given[0] in net.shapes:
        axes = [next((each.i for each in node.attribute if each.name == "axis"), -1)]
        raised = net.put(node, "Exp", [given[0]])
        total = net.put(node, "ReduceSum", [raised, net.constant(np.array(axes))])
        node.CopyFrom(helper.make_node("Div", [raised, total], [made]))


_SPELLED = ("Div", "Mul", "Pow", "Sqrt", "Relu", "Sub", "Add", "Softmax")


def _free_batch(net: Net) -> None:
    net.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"


def _shared(net: Net) -> None:
    """Two constants of one shape are one."""
    by_shape: dict[tuple, list[str]] = {}
    for each in net.graph.initializer:
        by_shape.setdefault((each.data_type, *each.dims), []).append(each.name)
    names = net.choose([names for names in by_shape.values() if len(names) > 1])
    if names is not None:
        for node in net.graph.node:
            for at, name in enumerate(node.input):
                if name in names[1:]:
                    node.input[at] = names[0]


CHANGES: tuple[Callable[[Net], None], ...] = (
    _swap,
    _other_operator,
    _insert,
    _insert,
    _remove,
    _redirect,
    _output_inside,
    _output_inside,
    _read_twice,
    _numbers,
    _numbers,
    _constant_shape,
    _constant_shape,
    _whole_numbers,
    _attribute,
    _attribute,
    _spelled,
    _spelled,
    _free_batch,
    _shared,
)


@cache
def _shapes(text: bytes) -> dict[str, tuple[int, ...]]:
    """The tensors of real numbers that are fed or computed."""
    graph = onnx.shape_inference.infer_shapes(onnx.load_from_string(text), data_prop=True).graph
    return {
        each.name: tuple(dim.dim_value for dim in each.type.tensor_type.shape.dim)
        for each in (*graph.input, *graph.value_info, *graph.output)
        if each.type.tensor_type.elem_type == TensorProto.FLOAT
    }


def drawn(base: str, number: int) -> onnx.ModelProto:
    """A network with one change or two, those of the number; 0: without any."""
    model, draw = network(ALL[base]), random.Random(f"{base} {number}")
    net = Net(model, _shapes(model.SerializeToString()), draw)
    for _ in range(1 + (draw.random() < 0.35) if number else 0):
        draw.choice(CHANGES)(net)
    return model


def stimulus() -> np.ndarray:
    """What the networks are fed with."""
    return np.random.default_rng(3).normal(0.3, 0.8, (1, 4, 8, 8)).astype(F)


def in_onnx_runtime(model: onnx.ModelProto) -> list[np.ndarray] | None:
    """The outputs for the stimulus, without rewrites by ONNX Runtime; None where it refuses the network, or a number inside is not finite."""
    count, tapped = len(model.graph.output), onnx.load_from_string(model.SerializeToString())
    known = {each.name for each in model.graph.output}
    inside = [name for node in model.graph.node for name in node.output if name and name not in known]
    tapped.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inside)
    try:
        values = [np.asarray(each) for each in runtime_outputs(tapped, stimulus(), optimize=False)]
    except Exception:  # ONNX Runtime has no common base class for its errors
        return None
    return values[:count] if all(np.isfinite(each).all() for each in values) else None
