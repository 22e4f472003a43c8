"""Drawn networks of other forms, each by its seed: graphs with spectra and floating point, arrays, networks that are quantized already."""

from __future__ import annotations

import random

import numpy as np
from onnx import numpy_helper, parser

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Node
from n2d2py.graph.precision import Precision
from n2d2py.operators.activation import Activation
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import FUNCTIONS, Clip, Log, Sqrt
from n2d2py.operators.identity import Identity
from n2d2py.operators.pool import Pool
from n2d2py.operators.softmax import Softmax
from n2d2py.passes import fuse

_MAPS = (Log(), Log(), Sqrt(), Clip(1e-3), Clip(0.0), FUNCTIONS["Tanh"](), FUNCTIONS["Abs"]())


def spectral_graph(seed: int) -> Graph:
    """Layers of four channels, most of which are what a front end for sounds has, some of another kind, some with a precision."""
    rng, graph = random.Random(seed), Graph("drawn")
    graph.add_input("x", (1, 4, 1, 2))
    made: list[tuple[str, int]] = [("x", 4)]
    for number in range(rng.randint(4, 12)):
        name, kind = (
            f"n{number}",
            rng.choice(("conv", "square", "square", "map", "map", "sum", "join", "moved", "pool", "other", "power")),
        )
        x, channels = made[-1] if rng.random() < 0.75 else rng.choice(made)
        peers = [each for each, size in made if size == channels]
        activation = Clip(0.0) if rng.random() < 0.1 else None
        inputs, op, params, size = [x], None, {}, channels
        if kind == "conv":
            size = 4
            params = {"weights": np.ones((4, channels, 1, 1), np.float32), "bias": np.zeros(4, np.float32)}
            op = Conv()
        elif kind == "square":
            op, inputs = ElemWise("Prod"), [x, x] if rng.random() < 0.9 else [x, rng.choice(peers)]
        elif kind == "map":
            op = Activation(rng.choice(_MAPS))
        elif kind == "sum":
            op, inputs = ElemWise(rng.choice(("Sum", "Sum", "Max", "Min"))), [x, rng.choice(peers)]
        elif kind == "power":
            op, inputs = ElemWise("EuclideanSum"), [x, rng.choice(peers)]
        elif kind == "join" and channels <= 16:
            other, more = rng.choice(made)
            op, inputs, size = Concat(), [x, other], channels + more
        elif kind == "pool":
            op = Pool(rng.choice(("Average", "Average", "Max")), (1, 1))
        elif kind == "other":
            op = Softmax()
        op = op or Identity()
        if isinstance(op, (Identity, Softmax)):
            activation = None
        graph.add(Node(name, op, inputs, [name], params, activation=activation))
        if rng.random() < 0.06:
            graph.precisions[name] = Precision(quantize=rng.choice((True, False)))
        made.append((name, size))
    unread = [name for name, _ in made[1:] if not graph.consumers(name)]
    graph.outputs = unread + ([rng.choice([name for name, _ in made[1:]])] if rng.random() < 0.2 else [])
    graph.outputs = list(dict.fromkeys(graph.outputs))
    graph.verify()
    return graph


def _imported(text: str, shape: str, constants: dict[str, np.ndarray], output: str) -> Graph:
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> drawn (float[{shape}] x) => (float[N] {output}) {{ {text} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in constants.items())
    return fuse(import_onnx(model), integer=True)[0]


def array_network(seed: int) -> tuple[Graph, np.ndarray]:
    """Tokens of eight numbers: products, sums, normalisations, attention, means; and its stimuli."""
    rng, array = random.Random(seed), np.random.default_rng(seed)
    lines: list[str] = []
    constants: dict[str, np.ndarray] = {
        "one": array.integers(1, 9, 8).astype(np.float32) / 8,
        "shift": array.integers(-8, 9, 8).astype(np.float32) / 8,
        "heads": np.array([0, 5, 2, 4]),
        "flat": np.array([0, 5, 8]),
        "eps": np.float32(1e-5),
        "half": np.float32(0.5),
    }

    def line(text: str) -> str:
        lines.append(f"t{len(lines)} = {text}")
        return f"t{len(lines) - 1}"

    def linear(x: str, outputs: int = 8) -> str:
        name = f"w{len(constants)}"
        constants[name] = (array.integers(-8, 9, (8, outputs)) / 16).astype(np.float32)
        return line(f"MatMul ({x}, {name})")

    x, made = "x", ["x"]
    for _ in range(rng.randint(2, 5)):
        kind = rng.choice(("linear", "linear", "norm", "sum", "sum", "attention", "map", "gain", "join", "soft"))
        if kind == "linear":
            x = line(f"Add ({linear(x)}, shift)") if rng.random() < 0.5 else linear(x)
        elif kind == "norm":
            x = line(f"LayerNormalization <epsilon = 1e-5> ({x}, one, shift)")
        elif kind == "sum":
            x = line(f"{rng.choice(('Add', 'Add', 'Sub', 'Mul'))} ({x}, {rng.choice(made)})")
        elif kind == "map":
            x = line(f"{rng.choice(('Relu', 'Relu', 'Sigmoid', 'Tanh', 'Abs', 'Floor', 'Exp', 'Sqrt', 'Neg'))} ({x})")
        elif kind == "gain":
            x = line(f"{rng.choice(('Mul', 'Add'))} ({x}, {rng.choice(('one', 'shift', 'half'))})")
        elif kind == "join":
            mean = line(f"ReduceMean <axes = [1], keepdims = 1> ({x})")
            x = linear(line(f"Add ({x}, {mean})"))
        elif kind == "soft":
            x = line(f"Softmax <axis = -1> ({x})")
        else:
            parts = [line(f"Reshape ({linear(x)}, heads)") for _ in range(3)]
            q, k, v = (line(f"Transpose <perm = [0, 2, 1, 3]> ({part})") for part in parts)
            turned = line(f"Transpose <perm = [0, 1, 3, 2]> ({k})")
            product = line(f"MatMul ({q}, {turned})")
            scores = line(f"Mul ({product}, half)")
            shares = line(f"Softmax <axis = -1> ({scores})")
            out = line(f"MatMul ({shares}, {v})")
            back = line(f"Transpose <perm = [0, 2, 1, 3]> ({out})")
            x = line(f"Reshape ({back}, flat)")
        made.append(x)
    if rng.random() < 0.6:
        x = linear(line(f"ReduceMean <axes = [1], keepdims = 0> ({x})"), 3)
    stimuli = (array.integers(-24, 25, (5, 5, 8)) / 16).astype(np.float32)
    return _imported("\n".join(lines), "N,5,8", constants, x), stimuli


def quantized_network(seed: int) -> Graph:
    """Layers between QuantizeLinear and DequantizeLinear, whose scales are powers of two, or not, zero points any."""
    rng, array = random.Random(seed), np.random.default_rng(seed)
    lines: list[str] = []
    constants: dict[str, np.ndarray] = {}

    def line(text: str) -> str:
        lines.append(f"t{len(lines)} = {text}")
        return f"t{len(lines) - 1}"

    def constant(value: np.ndarray) -> str:
        constants[f"c{len(constants)}"] = value
        return f"c{len(constants) - 1}"

    kind = rng.choice((np.int8, np.uint8))
    powers = rng.random() < 0.5

    def grid() -> tuple[str, str]:
        scale = np.float32(2.0 ** rng.randint(-6, -2) if powers else rng.choice((0.03, 0.07, 0.0113)))
        info = np.iinfo(kind)
        zero = rng.choice((0, 0, int(info.min), int(info.max), rng.randint(info.min, info.max)))
        return constant(scale), constant(np.array(zero, kind))

    def rounded(x: str, of: tuple[str, str] | None = None) -> str:
        scale, zero = of or grid()
        integers = line(f"QuantizeLinear ({x}, {scale}, {zero})")
        return line(f"DequantizeLinear ({integers}, {scale}, {zero})")

    def weights(outputs: int, inputs: int, size: int) -> str:
        values = constant(array.integers(-128, 128, (outputs, inputs, size, size)).astype(np.int8))
        if rng.random() < 0.5:
            return line(f"DequantizeLinear ({values}, {constant(np.float32(0.0078125))})")
        scales = (2.0 ** array.integers(-9, -5, outputs)).astype(np.float32)
        return line(f"DequantizeLinear <axis = 0> ({values}, {constant(scales)})")

    channels, size = 4, 8
    x = rounded("x")
    made = [(x, channels, size)]
    for _ in range(rng.randint(1, 5)):
        step = rng.choice(("conv", "conv", "depthwise", "pool", "mean", "sum", "join", "relu", "moved", "other"))
        peers = [name for name, c, s in made if (c, s) == (channels, size)]
        if step == "conv":
            outputs = rng.choice((2, 4, 5))
            bias = f", {constant((array.integers(-64, 64, outputs) / 64).astype(np.float32))}" if rng.random() < 0.5 else ""
            x = line(f"Conv <pads = [1,1,1,1]> ({x}, {weights(outputs, channels, 3)}{bias})")
            x, channels = line(f"Relu ({x})") if rng.random() < 0.4 else x, outputs
        elif step == "depthwise":
            x = line(f"Conv <group = {channels}> ({x}, {weights(channels, 1, 1)})")
        elif step in ("pool", "mean") and size >= 4:
            x = line(f"{'MaxPool' if step == 'pool' else 'AveragePool'} <kernel_shape = [2,2], strides = [2,2]> ({x})")
            size //= 2
        elif step == "sum":
            x = line(f"{rng.choice(('Add', 'Add', 'Sub', 'Mul', 'Max'))} ({x}, {rng.choice(peers)})")
        elif step == "join":
            x, channels = line(f"Concat <axis = 1> ({x}, {rng.choice(peers)})"), 2 * channels
        elif step == "relu":
            x = line(f"{rng.choice(('Relu', 'Sigmoid', 'LeakyRelu', 'HardSigmoid'))} ({x})")
        elif step == "moved":
            x = line(f"Transpose <perm = [0, 1, 3, 2]> ({x})")
        else:
            x = line(f"Clip ({x}, {constant(np.float32(-0.5))}, {constant(np.float32(1.0))})")
        x = rounded(x) if rng.random() < 0.8 else x
        made.append((x, channels, size))
    x = rounded(line(f"GlobalAveragePool ({x})")) if rng.random() < 0.4 else x
    if x == "t1":
        x = rounded(line(f"Relu ({x})"))
    return _imported("\n".join(lines), "N,4,8,8", constants, x)


def recurrent_network(seed: int) -> tuple[Graph, np.ndarray]:
    """One to three LSTM or GRU, one behind the other or beside, and scores of the last step, of all, or none; and its stimuli."""
    rng, array = random.Random(seed), np.random.default_rng(seed)
    lines: list[str] = []
    constants: dict[str, np.ndarray] = {"axis": np.array([1]), "last": np.array(-1)}

    def line(text: str) -> str:
        lines.append(f"t{len(lines)} = {text}")
        return f"t{len(lines) - 1}"

    def constant(*shape: int) -> str:
        name = f"w{len(constants)}"
        constants[name] = (array.integers(-8, 9, shape) / 16).astype(np.float32)
        return name

    def cell(x: str, size: int) -> str:
        kind, reverse = rng.choice(("LSTM", "GRU")), rng.random() < 0.3
        gates = 4 if kind == "LSTM" else 3
        form = 'hidden_size = 6, direction = "reverse"' if reverse else "hidden_size = 6"
        if kind == "GRU" and rng.random() < 0.5:
            form += ", linear_before_reset = 1"
        weights = constant(1, 6 * gates, size), constant(1, 6 * gates, 6), constant(1, 12 * gates)
        names = ", ".join((x, *weights))
        states = line(f"{kind} <{form}> ({names})")
        return line(f"Squeeze ({states}, axis)")

    x, size = line("Transpose <perm = [1, 0, 2]> (x)"), 8
    if rng.random() < 0.3:
        x = line(f"{rng.choice(('Relu', 'Tanh', 'Neg'))} ({x})")
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.3:
            x, size = line(f"Concat <axis = 2> ({cell(x, size)}, {cell(x, size)})"), 12
        else:
            x, size = cell(x, size), 6
    ending = rng.choice(("last", "all", "none"))
    if ending == "last":
        step = line(f"Gather <axis = 0> ({x}, last)")
        x = line(f"Gemm <transB = 1> ({step}, {constant(3, size)})")
    else:
        x = line(f"Transpose <perm = [1, 0, 2]> ({x})")
        x = line(f"MatMul ({x}, {constant(size, 3)})") if ending == "all" else x
    stimuli = (array.integers(-24, 25, (6, 5, 8)) / 16).astype(np.float32)
    return _imported("\n".join(lines), "N,5,8", constants, x), stimuli
