"""Small ONNX models from an image to an image, of operators that the INI has no layer type for: in random networks and in whole chains.

A block reads one image (N, C, H, W), or two of the same size, and gives one. Single nodes are drawn as by `support.onnx_draws`;
functions and products of several nodes are texts. The blocks for the input of a network, which is the same in every engine to the
last bit, may have steps.
"""

import random
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser, printer

from support.onnx_draws import draw_of_image
from support.onnx_models import runtime_outputs

__all__ = ["Block", "draw_block", "has_table", "model_text", "text_block"]

Shape = tuple[int, int, int]
"""Height, width, channels."""
MAX_ELEMENTS, MAX_VALUE = 400, 20.0
"""Largest result of a block for normal numbers."""


@dataclass(frozen=True)
class Block:
    """A model of inputs x (and y) with one output, and the shape of its result, as an image."""

    model: onnx.ModelProto
    shape: Shape


FUNCTIONS = "Abs Celu Elu Erf Gelu HardSigmoid HardSwish LeakyRelu Mish Neg PRelu Relu Selu Softplus Softsign Tanh Clip"
COMPUTED = (
    "Add Sub Mul Max Min Mean Sum BatchNormalization InstanceNormalization LayerNormalization Softmax LRN CumSum MatMul Conv "
    "ConvTranspose MaxPool AveragePool GlobalAveragePool GlobalMaxPool ReduceSum ReduceMean ReduceMax ReduceMin ReduceL1 ReduceL2 "
    "ReduceSumSquare ReduceLogSumExp"
)
MOVED = "Concat DepthToSpace Expand Gather Pad Reshape Resize Slice SpaceToDepth Split Tile Transpose Unsqueeze Upsample"
OPERATORS = (*FUNCTIONS.split(), *COMPUTED.split(), *MOVED.split())
CONSTANTS = {"one": 1.0, "two": 2.0, "half": 0.5, "root": 1.4142135, "low": -2.0, "high": 2.0, "hw": np.array([2, 3]), "c": [1]}
TEXTS = (
    *(f"a = Clip (x, low, high) z = {name} (a)" for name in ("Sin", "Cos", "Atan", "Sinh", "Asinh", "Exp")),
    "s = Sigmoid (x) z = Mul (x, s)",
    *(f"a = Abs (x) b = Add (a, one) z = {name} (b)" for name in ("Log", "Sqrt", "Reciprocal")),
    "a = Pow (x, two) z = Sqrt (a)",
    "a = Div (x, root) b = Erf (a) c0 = Add (b, one) d = Mul (x, c0) z = Mul (d, half)",
    "z = Add (x, x)",
    "a = Neg (x) z = Sum (x, a, x)",
    "a = Sub (one, x) z = Mul (a, half)",
    "a = Add (x, one) z = LpNormalization <axis = 1> (a)",
    "m = ReduceMean (x, c) z = Sub (x, m)",
    "t = Transpose <perm = [0, 1, 3, 2]> (x) z = MatMul (x, t)",
    "g = GlobalAveragePool (x) s = Sigmoid (g) z = Mul (x, s)",
    "t = Sigmoid (x) z = Concat <axis = 1> (x, t)",
)
PAIRS = (
    *(f"z = {name} (x, y)" for name in ("Add", "Mul", "Sub", "Max", "Min", "Mean")),
    "a = Abs (y) b = Add (a, one) z = Div (x, b)",
    "s = Sigmoid (y) z = Mul (x, s)",
    "t = Transpose <perm = [0, 1, 3, 2]> (y) m = MatMul (x, t) z = MatMul (m, y)",
    "m = ReduceMean (y, hw) z = Mul (x, m)",
)
STEPS = (
    *(f"a = ArgMax <axis = {axis}> (x) z = Cast <to = 1> (a)" for axis in (1, 2, 3)),
    "g = Greater (x, half) z = Where (g, x, two)",
    "g = Less (x, half) z = Cast <to = 1> (g)",
    *(f"a = Mul (x, two) b = Mul (a, two) z = {name} (b)" for name in ("Floor", "Ceil", "Round")),
    "a = Sub (x, half) z = Sign (a)",
    "g = GreaterOrEqual (x, half) l = LessOrEqual (x, half) o = Or (g, l) z = Where (o, x, two)",
    "a = Sub (x, half) z = ThresholdedRelu <alpha = 0.25> (a)",
)
"""Comparisons, rounding, orders: a step where the value of an input passes a limit."""


def text_block(nodes: str, inputs: list[Shape], constants: dict[str, object] | None = None) -> Block:
    """The block of nodes in ONNX's text form, from `x` (and `y`) to `z`."""
    ends = ", ".join(f"float[N, {c}, {h}, {w}] {name}" for (h, w, c), name in zip(inputs, "xy", strict=False))
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> block ({ends}) => (float[N] z) {{ {nodes} }}')
    read = {name for node in model.graph.node for name in node.input}
    for name, value in {**CONSTANTS, **(constants or {})}.items():
        if name in read:
            array = np.asarray(value)
            array = array.astype(np.float32) if array.dtype.kind == "f" else array
            model.graph.initializer.append(numpy_helper.from_array(array, name))
    return Block(model, result_of(model, inputs) or inputs[0])


def result_of(model: onnx.ModelProto, inputs: list[Shape]) -> Shape | None:
    """The shape of the result as an image; None if ONNX Runtime refuses the model, or its samples or numbers are not as in a network."""
    rng = np.random.default_rng(1)
    feeds = {
        value.name: rng.normal(size=(2, c, h, w)).astype(np.float32)
        for value, (h, w, c) in zip(model.graph.input, inputs, strict=True)
    }
    try:
        (both,) = runtime_outputs(model, feeds)
        (first,) = runtime_outputs(model, {name: x[:1] for name, x in feeds.items()})
    except Exception:  # ONNX Runtime has no common base class for its errors
        return None
    if both.shape[:1] != (2,) or first.size * 2 != both.size or not 0 < first.size <= MAX_ELEMENTS:
        return None
    if not np.allclose(both[:1], first.reshape(1, *both.shape[1:])) or not np.abs(both).max() < MAX_VALUE:
        return None
    c, h, *rest = (*both.shape[1:], 1, 1, 1)
    return h, int(np.prod(rest)), c


def model_text(name: str, block: Block) -> str:
    """The model with names of its own; its output carries the name of the layer."""
    model = onnx.ModelProto()
    model.CopyFrom(block.model)
    graph, (height, width, channels) = model.graph, block.shape
    names = {value.name: other for value, other in zip(graph.input, "xy", strict=False)}
    for node in graph.node:
        for ends in (node.input, node.output):
            ends[:] = [one and names.get(one, f"{name}_{one}") for one in ends]
    for constant in graph.initializer:
        constant.name = f"{name}_{constant.name}"
    for value in graph.input:
        value.name = names[value.name]
    graph.name = f"{name}_model"
    image = numpy_helper.from_array(np.array([0, channels, height, width]), f"{name}_image")
    graph.initializer.append(image)
    graph.node.append(helper.make_node("Reshape", [f"{name}_{graph.output[0].name}", image.name], [name]))
    del graph.output[:], graph.value_info[:]
    graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", channels, height, width]))
    return printer.to_text(model)


_TABLES = {
    *"HardSwish HardSigmoid Elu Gelu Mish Softplus Softsign Abs Erf Selu Celu LeakyRelu Tanh Sigmoid Sin Cos Atan Asinh Log".split(),
    *"Sqrt Reciprocal Exp Pow PRelu Floor Ceil Round Sign Where Less Greater Max Min".split(),
}


def has_table(block: Block) -> bool:
    """True if integers may look a function up, which takes inputs of 8 bits."""
    return any(node.op_type in _TABLES for node in block.model.graph.node)


def node_block(operator: str, seed: object, shape: Shape) -> Block | None:
    """A node of an image and constants; None where the drawn one does not fit."""
    height, width, channels = shape
    model = draw_of_image(operator, seed, (1, channels, height, width)).model()
    result = result_of(model, [shape]) if len(model.graph.input) == 1 else None
    return None if result is None else Block(model, result)


def draw_block(rng: random.Random, inputs: list[Shape], steps: bool = False) -> Block | None:
    """A block of these inputs; None where the drawn one does not fit them."""
    if len(inputs) > 1 or steps or rng.random() < 0.3:
        return text_block(rng.choice(PAIRS if len(inputs) > 1 else STEPS if steps else TEXTS), inputs)
    return node_block(rng.choice(OPERATORS), rng.random(), inputs[0])


def behind_convolution(block: Block) -> onnx.ModelProto:
    """The block after a convolution of an image of four channels, and a rectifier and a gain after it."""
    model = onnx.ModelProto()
    model.CopyFrom(block.model)
    graph, (source,), (result,) = model.graph, block.model.graph.input, block.model.graph.output
    weights = np.random.default_rng(9).normal(0, 0.5, (4, 4, 1, 1)).astype(np.float32)
    bias = np.array([0.3, -0.2, 0.1, 0.7], np.float32)
    for node in graph.node:
        node.input[:] = ["front1" if name == source.name else name for name in node.input]
    front = [("Conv", [source.name, "weights", "bias"], "front0"), ("Relu", ["front0"], "front1")]
    for at, (kind, inputs, output) in enumerate(front):
        graph.node.insert(at, helper.make_node(kind, inputs, [output]))
    graph.node.append(helper.make_node("Relu", [result.name], ["last0"]))
    graph.node.append(helper.make_node("Mul", ["last0", "gain"], ["last1"]))
    graph.initializer.extend(
        numpy_helper.from_array(*one) for one in ((weights, "weights"), (bias, "bias"), (np.array(0.5, np.float32), "gain"))
    )
    del graph.output[:], graph.value_info[:]
    graph.output.append(helper.make_tensor_value_info("last1", onnx.TensorProto.FLOAT, None))
    return model
