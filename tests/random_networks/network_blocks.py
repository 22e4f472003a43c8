"""Small ONNX models as sections of a random network: operators that the INI has no layer type for.

A block reads one image (N, C, H, W), or two of the same size, and gives one. `BLOCKS` holds those that are continuous;
`STEPS` those that are not: they only read the network's input, which is the same in every engine to the last bit.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["BLOCKS", "PAIRS", "STEPS", "Block", "draw_block", "has_table", "model_text"]

Shape = tuple[int, int, int]
"""Height, width, channels."""


@dataclass(frozen=True)
class Block:
    """The nodes of a model in ONNX's text form, from `x` (and `y`) to `z`; its constants; the shape of `z`."""

    nodes: str
    shape: Shape
    constants: str = ""


def _floats(name: str, dims: tuple[int, ...], rng: random.Random, low: float = -1.0, high: float = 1.0) -> str:
    count = 1
    for dim in dims:
        count *= dim
    values = ", ".join(f"{rng.uniform(low, high):.4f}" for _ in range(count))
    return f"float[{','.join(map(str, dims))}] {name} = {{{values}}}"


def _ints(name: str, values: list[int]) -> str:
    return f"int64[{len(values)}] {name} = {{{', '.join(map(str, values))}}}"


def model_text(name: str, block: Block, inputs: list[Shape]) -> str:
    """The whole model; its output carries the name of the layer."""

    def tensor(shape: Shape, title: str) -> str:
        return f"float[N, {shape[2]}, {shape[0]}, {shape[1]}] {title}"

    made = re.findall(r"\w+", " ".join(re.findall(r"(?m)^([\w, ]+) = ", block.nodes)))
    made += re.findall(r"[\]a-z0-9] (\w+) = ", block.constants)

    def own(text: str) -> str:
        """The text with names that no other block has."""
        return re.sub(rf"\b({'|'.join(made)})\b", rf"{name}_\1", text)

    given = ", ".join(tensor(shape, title) for shape, title in zip(inputs, ("x", "y"), strict=False))
    return (
        f'<ir_version: 9, opset_import: ["" : 18]>\n{name}_model ({given}) => ({tensor(block.shape, name)})\n'
        + (f"<{own(block.constants)}>\n" if block.constants else "")
        + f"{{\n{own(block.nodes)}\n{name} = Identity({name}_z)\n}}\n"
    )


_FUNCTIONS = (
    "HardSwish(x)",
    "HardSigmoid <alpha = 0.2, beta = 0.4> (x)",
    "Elu <alpha = 0.8> (x)",
    *"Mish(x) Softsign(x) Abs(x) Erf(x) Selu(x) Celu(x) Relu(x)".split(),
    "LeakyRelu <alpha = 0.3> (x)",
    "Tanh(x)",
    "Neg(x)",
    "Softplus(x)",
)
_CIRCULAR = ("Sin(x)", "Cos(x)", "Atan(x)", "Sinh(x)", "Asinh(x)")


def _function(rng: random.Random, shape: Shape) -> Block:
    return Block(f"z = {rng.choice(_FUNCTIONS)}", shape)


def _circular(rng: random.Random, shape: Shape) -> Block:
    return Block(
        f"c = Clip(x, low, high)\nz = {rng.choice(_CIRCULAR).replace('x', 'c')}", shape, "float low = {-2}, float high = {2}"
    )


def _composed(rng: random.Random, shape: Shape) -> Block:
    """Functions written out, some of which are idioms that the import knows."""
    texts = (
        "s = Sigmoid(x)\nz = Mul(x, s)",
        "a = Abs(x)\nb = Add(a, one)\nz = Log(b)",
        "a = Abs(x)\nb = Add(a, one)\nz = Sqrt(b)",
        "a = Abs(x)\nb = Add(a, one)\nz = Reciprocal(b)",
        "a = Clip(x, low, high)\nz = Exp(a)",
        "z = Clip(x, low, high)",
        "a = Pow(x, two)\nz = Sqrt(a)",
        "a = Div(x, root)\nb = Erf(a)\nc = Add(b, one)\nd = Mul(x, c)\nz = Mul(d, half)",
        "z = Add(x, x)",
        "z = Max(x, half)",
        "z = Min(x, half)",
        "a = Neg(x)\nz = Sum(x, a, x)",
        "a = Tanh(x)\nz = Mean(x, a)",
        "a = Sub(one, x)\nz = Mul(a, half)",
    )
    return Block(
        rng.choice(texts),
        shape,
        "float one = {1}, float two = {2}, float half = {0.5}, float root = {1.4142135}, "
        "float low = {-0.75}, float high = {1.5}",
    )


def _by_channel(rng: random.Random, shape: Shape) -> Block:
    operator = rng.choice(["PRelu(x, v)", "Add(x, v)", "Mul(x, v)", "Sub(x, v)", "Sub(v, x)", "Div(x, w)"])
    if operator.startswith("PRelu"):
        return Block("z = PRelu(x, w)", shape, _floats("w", (shape[2], 1, 1), rng, 0.05, 0.9))
    dims = rng.choice([(shape[2], 1, 1), (1, 1, 1), (1, shape[0], shape[1])]) if shape[0] * shape[1] < 40 else (shape[2], 1, 1)
    name = "w" if "w" in operator else "v"
    return Block(f"z = {operator}", shape, _floats(name, dims, rng, 0.5, 2.0) if name == "w" else _floats(name, dims, rng))


def _normalized(rng: random.Random, shape: Shape) -> Block | None:
    h, w, c = shape
    scale, bias = _floats("s", (c,), rng, 0.5, 1.5), _floats("b", (c,), rng)
    kind = rng.choice(["batch", "instance", "layer", "lp", "softmax", "lrn", "channel mean"])
    if kind == "batch":
        return Block(
            "z = BatchNormalization(x, s, b, m, v)",
            shape,
            ", ".join((scale, bias, _floats("m", (c,), rng), _floats("v", (c,), rng, 0.3, 2.0))),
        )
    if kind == "instance" and h * w >= 4:
        return Block("z = InstanceNormalization <epsilon = 0.01> (x, s, b)", shape, f"{scale}, {bias}")
    if kind == "layer" and w >= 4:
        return Block(
            "z = LayerNormalization <axis = -1, epsilon = 0.01> (x, s, b)",
            shape,
            f"{_floats('s', (w,), rng, 0.5, 1.5)}, {_floats('b', (w,), rng)}",
        )
    if kind == "lp" and c > 2:
        return Block(
            f"a = Add(x, one)\nz = LpNormalization <axis = 1, p = {rng.choice([1, 2])}> (a)", shape, "float one = {0.5}"
        )
    if kind == "softmax":
        return Block(f"z = Softmax <axis = {rng.choice([1, 2, 3])}> (x)", shape)
    if kind == "lrn":
        return Block(f"z = LRN <size = {rng.choice([3, 5])}, alpha = 0.01, beta = 0.75, bias = 1.0> (x)", shape)
    return Block("m = ReduceMean <keepdims = 1> (x, axes)\nz = Sub(x, m)", shape, _ints("axes", [1]))


def _pooled(rng: random.Random, shape: Shape) -> Block | None:
    h, w, c = shape
    kind = rng.choice(["max", "max", "average", "average", "same", "global"])
    if kind == "global":
        operator = rng.choice(
            [
                "GlobalAveragePool(x)",
                "GlobalMaxPool(x)",
                "ReduceMean <keepdims = 1> (x, axes)",
                "ReduceMax <keepdims = 1> (x, axes)",
            ]
        )
        return Block(f"z = {operator}", (1, 1, c), _ints("axes", [2, 3]) if "axes" in operator else "")
    k, s = rng.choice([(2, 2), (3, 2), (3, 1), (2, 1), (3, 3)])
    if min(h, w) < k:
        return None
    if kind == "same":
        side = rng.choice(["SAME_UPPER", "SAME_LOWER"])
        operator = rng.choice(["MaxPool", "AveragePool"])
        return Block(
            f'z = {operator} <kernel_shape = [{k}, {k}], strides = [{s}, {s}], auto_pad = "{side}"> (x)',
            (-(-h // s), -(-w // s), c),
        )
    before, after, ceil = rng.randint(0, 1), rng.randint(0, 1), rng.randint(0, 1)
    keys = f"kernel_shape = [{k}, {k}], strides = [{s}, {s}], pads = [{before}, {before}, {after}, {after}], ceil_mode = {ceil}"

    def out(extent: int) -> int:
        room = extent + before + after - k
        size = (-(-room // s) if ceil else room // s) + 1
        return size - 1 if ceil and (size - 1) * s >= extent + before else size

    if kind == "average":
        keys += f", count_include_pad = {rng.randint(0, 1)}"
    return Block(f"z = {'MaxPool' if kind == 'max' else 'AveragePool'} <{keys}> (x)", (out(h), out(w), c))


def _convolved(rng: random.Random, shape: Shape) -> Block | None:
    h, w, c = shape
    if c > 12:
        return None
    if rng.random() < 0.5:
        k, s = rng.choice([(3, 1), (2, 2), (3, 2)])
        groups = rng.choice([1, c])
        outputs = c if groups == c else rng.choice([1, 2, 5])
        pad, extra = rng.randint(0, k - 1) // 2, rng.randint(0, s - 1)
        sizes = [(extent - 1) * s - 2 * pad + k + extra for extent in (h, w)]
        if min(sizes) < 1 or sizes[0] * sizes[1] > 400:
            return None
        keys = (
            f"strides = [{s}, {s}], pads = [{pad}, {pad}, {pad}, {pad}], output_padding = [{extra}, {extra}], group = {groups}"
        )
        return Block(
            f"z = ConvTranspose <{keys}> (x, w, b)",
            (*sizes, outputs),
            ", ".join((_floats("w", (c, outputs // groups, k, k), rng), _floats("b", (outputs,), rng))),
        )
    groups = rng.choice([1, c, c])
    outputs = groups * rng.choice([1, 1, 2]) if groups > 1 else rng.choice([1, 3, 6])
    s = rng.choice([1, 2])
    where = rng.choice(['auto_pad = "SAME_UPPER"', 'auto_pad = "SAME_LOWER"', "pads = [0, 1, 2, 0]"])
    if where.startswith("pads"):
        height, width = (h + 2 - 3) // s + 1, (w + 1 - 3) // s + 1
        if h + 2 < 3 or w + 1 < 3:
            return None
    else:
        height, width = -(-h // s), -(-w // s)
    return Block(
        f"z = Conv <strides = [{s}, {s}], group = {groups}, {where}> (x, w, b)",
        (height, width, outputs),
        ", ".join((_floats("w", (outputs, c // groups, 3, 3), rng), _floats("b", (outputs,), rng))),
    )


def _moved(rng: random.Random, shape: Shape) -> Block:
    """Layers that move values: no arithmetic."""
    h, w, c = shape
    kind = rng.choice([*"pad pad slice split gather depth depth space space flip tile reshape transpose concat".split()])
    if kind == "pad" and min(h, w) > 2:
        mode = rng.choice(["constant", "reflect", "edge"])
        t, left, b, r = (rng.randint(0, 2) for _ in range(4))
        return Block(
            f'z = Pad <mode = "{mode}"> (x, pads)', (h + t + b, w + left + r, c), _ints("pads", [0, 0, t, left, 0, 0, b, r])
        )
    if kind == "slice" and w > 3 and h > 1:
        return Block(
            "z = Slice(x, starts, ends, axes, steps)",
            (h - 1, -(-(w - 1) // 2), c),
            ", ".join((_ints("starts", [1, 1]), _ints("ends", [10**6, 10**6]), _ints("axes", [2, 3]), _ints("steps", [1, 2]))),
        )
    if kind == "flip":
        return Block(
            "z = Slice(x, starts, ends, axes, steps)",
            shape,
            ", ".join(
                (_ints("starts", [-1]), _ints("ends", [-(10**6)]), _ints("axes", [rng.choice([1, 2, 3])]), _ints("steps", [-1]))
            ),
        )
    if kind == "split" and c > 1:
        first = rng.randint(1, c - 1)
        return Block(
            "a, b = Split <axis = 1> (x, parts)\nt = Tanh(b)\nz = Concat <axis = 1> (t, a)",
            shape,
            _ints("parts", [first, c - first]),
        )
    if kind == "gather":
        chosen = [rng.randrange(c) for _ in range(rng.choice([1, c, c + 2]))]
        return Block("z = Gather <axis = 1> (x, i)", (h, w, len(chosen)), _ints("i", chosen))
    if kind == "depth" and c % 4 == 0 and h * w <= 100:
        return Block(f'z = DepthToSpace <blocksize = 2, mode = "{rng.choice(["DCR", "CRD"])}"> (x)', (2 * h, 2 * w, c // 4))
    if kind == "space" and h % 2 == 0 and w % 2 == 0 and c < 10:
        return Block("z = SpaceToDepth <blocksize = 2> (x)", (h // 2, w // 2, 4 * c))
    if kind == "tile" and h * w * c <= 200:
        return Block("z = Tile(x, r)", (2 * h, w, 2 * c), _ints("r", [1, 2, 2, 1]))
    if kind == "reshape":
        return Block(
            "a = Reshape(x, to)\nb = Relu(a)\nz = Reshape(b, back)",
            shape,
            ", ".join((_ints("to", [0, -1, 1, w]), _ints("back", [0, c, h, w]))),
        )
    if kind == "transpose":
        return Block("z = Transpose <perm = [0, 2, 3, 1]> (x)", (w, c, h)) if max(shape) <= 24 else _moved(rng, shape)
    if kind == "concat" and h * w * c <= 300:
        axis = rng.choice([1, 2, 3])
        sizes = [c, h, w]
        sizes[axis - 1] *= 2
        return Block(f"t = Sigmoid(x)\nz = Concat <axis = {axis}> (x, t)", (sizes[1], sizes[2], sizes[0]))
    return _moved(rng, shape)


def _resized(rng: random.Random, shape: Shape) -> Block | None:
    h, w, c = shape
    height, width = rng.choice([(2 * h, 2 * w), (h, 2 * w), (h + 1, w + 2), (max(1, h // 2), max(1, w // 2))])
    if height * width > 300:
        return None
    mode, where = rng.choice(
        [
            ("nearest", "asymmetric"),
            ("nearest", "half_pixel"),
            ("linear", "half_pixel"),
            ("linear", "align_corners"),
            ("linear", "asymmetric"),
            ("cubic", "half_pixel"),
            ("linear", "pytorch_half_pixel"),
        ]
    )
    if (mode, where) == ("nearest", "asymmetric") and (_misses(h, height) or _misses(w, width)):
        where = "half_pixel"
    rounding = ', nearest_mode = "floor"' if mode == "nearest" else ""
    return Block(
        f'z = Resize <mode = "{mode}", coordinate_transformation_mode = "{where}"{rounding}, axes = [2, 3]> (x, , , sizes)',
        (height, width, c),
        _ints("sizes", [height, width]),
    )


def _misses(before: int, after: int) -> bool:
    """Whether ONNX Runtime, which divides by the float32 of after / before, takes a position that lies exactly at one for the one before:
    8 / (16 / 14) is 6.9999995 there. PyTorch and exact arithmetic have 7."""
    scale = np.float32(after) / np.float32(before)
    return any(int(np.float32(position) / scale) != position * before // after for position in range(after))


def _reduced(rng: random.Random, shape: Shape) -> Block | None:
    """One axis becomes 1, or sums along it."""
    axis = rng.choice([1, 2, 3])
    sizes = [shape[2], shape[0], shape[1]]
    operator = rng.choice(
        [
            *"ReduceSum ReduceMean ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp".split(),
            *"CumSum".split(),
        ]
    )
    if operator == "CumSum":
        return Block(
            f"z = CumSum <reverse = {rng.randint(0, 1)}, exclusive = {rng.randint(0, 1)}> (x, axis)",
            shape,
            f"int64 axis = {{{axis}}}",
        )
    sizes[axis - 1] = 1
    return Block(f"z = {operator} <keepdims = 1> (x, axes)", (sizes[1], sizes[2], sizes[0]), _ints("axes", [axis]))


def _multiplied(rng: random.Random, shape: Shape) -> Block | None:
    """Products of matrices, by constants and by itself."""
    h, w, c = shape
    kind = rng.choice(["matmul", "gemm", "self", "einsum", "excite"])
    if kind == "matmul" and w <= 16:
        outputs = rng.choice([1, 3, 8])
        return Block("z = MatMul(x, w)", (h, outputs, c), _floats("w", (w, outputs), rng))
    if kind == "gemm" and h * w * c <= 60:
        outputs = rng.choice([2, 7])
        return Block(
            "a = Flatten <axis = 1> (x)\ng = Gemm <transB = 1> (a, w, b)\nz = Reshape(g, to)",
            (1, 1, outputs),
            ", ".join(
                (_floats("w", (outputs, h * w * c), rng), _floats("b", (outputs,), rng), _ints("to", [0, outputs, 1, 1]))
            ),
        )
    if kind == "self" and h <= 12:
        return Block("t = Transpose <perm = [0, 1, 3, 2]> (x)\nz = MatMul(x, t)", (h, h, c))
    if kind == "einsum" and w <= 12:
        return Block('z = Einsum <equation = "nchw,wk->nchk"> (x, w)', (h, 4, c), _floats("w", (w, 4), rng))
    if kind == "excite":
        return Block("g = GlobalAveragePool(x)\ns = Sigmoid(g)\nz = Mul(x, s)", shape)
    return None


def _paired(rng: random.Random, shape: Shape) -> Block:
    text = rng.choice(
        [
            "z = Add(x, y)",
            "z = Mul(x, y)",
            "z = Sub(x, y)",
            "z = Max(x, y)",
            "z = Min(x, y)",
            "z = Mean(x, y)",
            "a = Abs(y)\nb = Add(a, one)\nz = Div(x, b)",
            "s = Sigmoid(y)\nz = Mul(x, s)",
            "t = Transpose <perm = [0, 1, 3, 2]> (y)\nm = MatMul(x, t)\nz = MatMul(m, y)",
            "m = ReduceMean <keepdims = 1> (y, axes)\nz = Mul(x, m)",
        ]
    )
    constants = _ints("axes", [2, 3]) if "axes" in text else "float one = {1}" if "one" in text else ""
    return Block(text, shape, constants)


def _stepped(rng: random.Random, shape: Shape) -> Block:
    """Comparisons, rounding, orders: a step where the value of an input passes a limit."""
    h, w, c = shape
    axis = rng.choice([1, 2, 3])
    sizes = [c, h, w]
    one = list(sizes)
    one[axis - 1] = 1
    texts = (
        (f"a = ArgMax <axis = {axis}, keepdims = 1> (x)\nz = Cast <to = 1> (a)", one),
        ("g = Greater(x, half)\nz = Where(g, x, two)", sizes),
        ("g = Less(x, half)\nz = Cast <to = 1> (g)", sizes),
        ("a = Mul(x, two)\nb = Mul(a, two)\nz = Floor(b)", sizes),
        ("a = Mul(x, two)\nz = Ceil(a)", sizes),
        ("a = Mul(x, two)\nz = Round(a)", sizes),
        ("a = Sub(x, half)\nz = Sign(a)", sizes),
        ("g = GreaterOrEqual(x, half)\nl = LessOrEqual(x, half)\no = Or(g, l)\nz = Where(o, x, two)", sizes),
        ("a = Sub(x, half)\nz = ThresholdedRelu <alpha = 0.25> (a)", sizes),
    )
    text, found = rng.choice(texts)
    return Block(text, (found[1], found[2], found[0]), "float half = {0.5}, float two = {2}")


BLOCKS: tuple[Callable[[random.Random, Shape], Block | None], ...] = (
    _function,
    _composed,
    _by_channel,
    _normalized,
    _pooled,
    _convolved,
    _moved,
    _moved,
    _resized,
    _reduced,
    _multiplied,
    _circular,
)
PAIRS = (_paired,)
STEPS = (_stepped,)


_TABLES = (
    *"HardSwish HardSigmoid Elu Mish Soft Abs Erf Selu Celu LeakyRelu Tanh Sigmoid Sin Cos Atan Asinh Log".split(),
    *"Sqrt Reciprocal Exp Pow PRelu Floor Ceil Round Sign Where Less Greater Max( Min(".split(),
)


def has_table(block: Block) -> bool:
    """Whether integers may look a function up, which takes inputs of 8 bits."""
    return any(name in block.nodes for name in _TABLES)


def draw_block(
    kinds: tuple[Callable[[random.Random, Shape], Block | None], ...], rng: random.Random, shape: Shape
) -> Block | None:
    """A block of any of these kinds that fits the shape; None where the drawn one does not."""
    return rng.choice(kinds)(rng, shape)
