"""Memory graphs of known architectures: int8, batch 1, BatchNorm and activations folded."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

from n2d2py.memory.problem import MemoryProblem, OpSpec, ResidualSum, TensorSpec
from n2d2py.memory.strategies import PLANNERS
from support.memory_files import read_op

N2D2 = "OptimizeMaxLifetimeMaxSizeFirst"
"""N2D2's default strategy."""


def available_strategies() -> list[str]:
    """All strategies, less those whose solver is not installed."""
    return [s for s in PLANNERS if s != "OptimizeOptimal" or find_spec("ortools")]


def spec(name: str, type: str, inputs: tuple[str, ...], output: str, **attributes) -> OpSpec:
    """An operator, as `memory_graph.json` spells it."""
    return read_op({"name": name, "type": type, "inputs": inputs, "output": output, **attributes})


class Net:
    """Builds a MemoryProblem call by call; every call returns the name of the tensor it makes."""

    def __init__(self, height: int, width: int, channels: int, element_bytes: int = 1):
        self.element_bytes = element_bytes
        self.tensors: dict[str, TensorSpec] = {}
        self.ops: list[OpSpec] = []
        self.input = self.tensor("input", height, width, channels)

    def tensor(self, name: str, height: int, width: int, channels: int, element_bytes: int | None = None) -> str:
        self.tensors[name] = TensorSpec(name, height, width, channels, element_bytes or self.element_bytes)
        return name

    def _add(self, type: str, inputs: tuple[str, ...], shape: tuple[int, int, int], **attributes) -> str:
        name = f"{type}{len(self.ops)}"
        self.ops.append(spec(name, type, inputs, self.tensor(name + ".y", *shape), **attributes))
        return name + ".y"

    def _window(self, type: str, x: str, channels: int, kernel, stride, pads, dilation=1, groups=1) -> str:
        kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        sh, sw = stride if isinstance(stride, tuple) else (stride, stride)
        t = self.tensors[x]
        if pads == "same":
            rows, cols = -(-t.height // sh), -(-t.width // sw)
            high = max(0, (rows - 1) * sh + (kh - 1) * dilation + 1 - t.height)
            wide = max(0, (cols - 1) * sw + (kw - 1) * dilation + 1 - t.width)
            pads = (high // 2, wide // 2, high - high // 2, wide - wide // 2)
        elif isinstance(pads, int):
            pads = (pads,) * 4
        rows = (t.height + pads[0] + pads[2] - (kh - 1) * dilation - 1) // sh + 1
        cols = (t.width + pads[1] + pads[3] - (kw - 1) * dilation - 1) // sw + 1
        name = f"{type}{len(self.ops)}"
        y = self.tensor(name + ".y", rows, cols, channels)
        form = {"kh": kh, "kw": kw, "sh": sh, "sw": sw, "pads": pads, "dil": dilation, "groups": groups}
        self.ops.append(spec(name, type, (x,), y, **form))
        return y

    def conv(self, x, channels, kernel, stride=1, pads="same", dilation=1, groups=1) -> str:
        return self._window("conv", x, channels, kernel, stride, pads, dilation, groups)

    def dw(self, x, kernel, stride=1, pads="same") -> str:
        channels = self.tensors[x].channels
        return self._window("conv", x, channels, kernel, stride, pads, 1, channels)

    def pool(self, x, kernel, stride, pads=0) -> str:
        return self._window("pool", x, self.tensors[x].channels, kernel, stride, pads)

    def global_pool(self, x) -> str:
        t = self.tensors[x]
        return self.pool(x, (t.height, t.width), 1)

    def add(self, *inputs) -> str:
        return self._add("add", inputs, self.tensors[inputs[0]].shape)

    def ew(self, *inputs) -> str:
        return self._add("ew", inputs, self.tensors[inputs[0]].shape)

    def concat(self, *inputs, **attributes) -> str:
        t = self.tensors[inputs[0]]
        channels = sum(self.tensors[i].channels for i in inputs)
        return self._add("concat", inputs, (t.height, t.width, channels), **attributes)

    def fc(self, x, channels) -> str:
        return self._add("fc", (x,), (1, 1, channels))

    def softmax(self, x) -> str:
        return self._add("softmax", (x,), self.tensors[x].shape)

    def reshape(self, x, height, width, channels) -> str:
        return self._add("reshape", (x,), (height, width, channels))

    def flatten(self, x) -> str:
        return self.reshape(x, 1, 1, self.tensors[x].height * self.tensors[x].width * self.tensors[x].channels)

    def upsample(self, x, scale) -> str:
        t = self.tensors[x]
        return self._add("upsample", (x,), (t.height * scale, t.width * scale, t.channels), scale=scale)

    def done(self, *outputs: str) -> MemoryProblem:
        outputs = outputs or (self.ops[-1].output,)
        return MemoryProblem(dict(self.tensors), (self.input,), outputs, tuple(self.ops))


def resnet8() -> MemoryProblem:
    """MLPerf Tiny image classification."""
    n = Net(32, 32, 3)
    x = n.conv(n.input, 16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = n.conv(n.conv(x, channels, 3, stride), channels, 3)
        x = n.add(x if stride == 1 else n.conv(x, channels, 1, stride), y)
    n.softmax(n.fc(n.global_pool(x), 10))
    return n.done()


def mobilenet_v1(width: float, size: int, classes: int = 1000, softmax: bool = True) -> MemoryProblem:
    n = Net(size, size, 3)
    x = n.conv(n.input, int(32 * width), 3, 2)
    for channels, stride in (
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        (512, 1),
        (512, 1),
        (512, 1),
        (512, 1),
        (512, 1),
        (1024, 2),
        (1024, 1),
    ):
        x = n.conv(n.dw(x, 3, stride), int(channels * width), 1)
    x = n.fc(n.global_pool(x), classes)
    if softmax:
        n.softmax(x)
    return n.done()


def vww() -> MemoryProblem:
    """MLPerf Tiny visual wake words."""
    return mobilenet_v1(0.25, 96, 2)


def ds_cnn() -> MemoryProblem:
    """MLPerf Tiny keyword spotting."""
    n = Net(49, 10, 1)
    x = n.conv(n.input, 64, (10, 4), 2)
    for _ in range(4):
        x = n.conv(n.dw(x, 3), 64, 1)
    n.softmax(n.fc(n.global_pool(x), 12))
    return n.done()


def autoencoder() -> MemoryProblem:
    """MLPerf Tiny anomaly detection."""
    n = Net(1, 1, 640)
    x = n.input
    for channels in (128, 128, 128, 128, 8, 128, 128, 128, 128, 640):
        x = n.fc(x, channels)
    return n.done()


def mobilenet_v2(
    width: float, size: int, classes: int = 1000, *, expand_always: bool = False, rounds_down: bool = False
) -> MemoryProblem:
    """`expand_always`: a 1x1 expansion in the first block too, as in N2D2's MobileNet_v2.ini. `rounds_down`: numbers of channels that need
    not be multiples of 8, as in the tables of msf-CNN."""

    def scaled(channels: float) -> int:
        if rounds_down:
            return int(channels * width)
        rounded = max(8, int(channels * width + 4) // 8 * 8)
        return rounded + 8 if rounded < 0.9 * channels * width else rounded

    n = Net(size, size, 3)
    x = n.conv(n.input, scaled(32), 3, 2, 1)
    for expand, channels, repeats, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for index in range(repeats):
            step = stride if index == 0 else 1
            inside = n.tensors[x].channels
            y = n.conv(x, inside * expand, 1) if expand > 1 or expand_always else x
            y = n.conv(n.dw(y, 3, step, 1), scaled(channels), 1)
            x = n.add(x, y) if step == 1 and inside == scaled(channels) else y
    x = n.conv(x, max(1280, scaled(1280)), 1)
    n.softmax(n.fc(n.global_pool(x), classes))
    return n.done()


def mcunet_320k(size: int = 176, classes: int = 1000) -> MemoryProblem:
    """MCUNet for 320 KB of RAM and ImageNet (MIT, mcunet-320kb-1mb_imagenet): (expansion, channels, stride, kernel) of its blocks."""
    n = Net(size, size, 3)
    x = n.conv(n.input, 16, 3, 2, 1)
    for expand, channels, stride, kernel in (
        *((1, 8, 1, 3), (3, 16, 2, 7), (5, 16, 1, 3), (5, 16, 1, 7), (4, 16, 1, 5)),
        *((5, 24, 2, 5), (5, 24, 1, 5), (5, 24, 1, 5), (5, 40, 2, 3), (6, 40, 1, 7), (4, 40, 1, 5)),
        *((5, 48, 1, 5), (5, 48, 1, 7), (5, 48, 1, 3), (6, 96, 2, 3), (5, 96, 1, 7), (4, 96, 1, 3), (5, 160, 1, 7)),
    ):
        inside = n.tensors[x].channels
        y = n.conv(x, inside * expand, 1) if expand > 1 else x
        y = n.conv(n.dw(y, kernel, stride, kernel // 2), channels, 1)
        x = n.add(x, y) if stride == 1 and inside == channels else y
    n.fc(n.global_pool(x), classes)
    return n.done()


def resnet18() -> MemoryProblem:
    n = Net(224, 224, 3)
    x = n.pool(n.conv(n.input, 64, 7, 2, 3), 3, 2, 1)
    for channels, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first, 1):
            y = n.conv(n.conv(x, channels, 3, stride, 1), channels, 3, 1, 1)
            x = n.add(y, n.conv(x, channels, 1, stride, 0) if stride == 2 else x)
    n.fc(n.global_pool(x), 1000)
    return n.done()


def resnet50() -> MemoryProblem:
    n = Net(224, 224, 3)
    x = n.pool(n.conv(n.input, 64, 7, 2, 3), 3, 2, 1)
    for channels, repeats, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(repeats):
            stride = first if index == 0 else 1
            y = n.conv(n.conv(x, channels, 1), channels, 3, stride, 1)
            y = n.conv(y, channels * 4, 1)
            x = n.add(y, n.conv(x, channels * 4, 1, stride, 0) if index == 0 else x)
    n.fc(n.global_pool(x), 1000)
    return n.done()


def squeezenet11() -> MemoryProblem:
    n = Net(224, 224, 3)

    def fire(x, squeeze, expand):
        x = n.conv(x, squeeze, 1)
        return n.concat(n.conv(x, expand, 1), n.conv(x, expand, 3, 1, 1))

    x = n.pool(n.conv(n.input, 64, 3, 2, 0), 3, 2, 0)
    x = n.pool(fire(fire(x, 16, 64), 16, 64), 3, 2, 0)
    x = n.pool(fire(fire(x, 32, 128), 32, 128), 3, 2, 0)
    x = fire(fire(fire(fire(x, 48, 192), 48, 192), 64, 256), 64, 256)
    n.global_pool(n.conv(x, 1000, 1))
    return n.done()


def googlenet() -> MemoryProblem:
    n = Net(224, 224, 3)

    def inception(x, c1, r3, c3, r5, c5, cp):
        return n.concat(
            n.conv(x, c1, 1),
            n.conv(n.conv(x, r3, 1), c3, 3, 1, 1),
            n.conv(n.conv(x, r5, 1), c5, 3, 1, 1),
            n.conv(n.pool(x, 3, 1, 1), cp, 1),
        )

    x = n.conv(n.input, 64, 7, 2, 3)
    x = n.conv(n.pool(x, 3, 2, (0, 0, 1, 1)), 64, 1)
    x = n.pool(n.conv(x, 192, 3, 1, 1), 3, 2, (0, 0, 1, 1))
    x = inception(inception(x, 64, 96, 128, 16, 32, 32), 128, 128, 192, 32, 96, 64)
    x = n.pool(x, 3, 2, (0, 0, 1, 1))
    for c in (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ):
        x = inception(x, *c)
    x = n.pool(x, 2, 2, 0)
    x = inception(inception(x, 256, 160, 320, 32, 128, 128), 384, 192, 384, 48, 128, 128)
    n.fc(n.global_pool(x), 1000)
    return n.done()


def densenet121() -> MemoryProblem:
    """BatchNorm and ReLU folded into the neighbouring convolutions."""
    n = Net(224, 224, 3)
    x = n.pool(n.conv(n.input, 64, 7, 2, 3), 3, 2, 1)
    for repeats in (6, 12, 24, 16):
        for _ in range(repeats):
            y = n.conv(n.conv(x, 128, 1), 32, 3, 1, 1)
            x = n.concat(x, y)
        if repeats != 16:
            x = n.pool(n.conv(x, n.tensors[x].channels // 2, 1), 2, 2, 0)
    n.fc(n.global_pool(x), 1000)
    return n.done()


def unet() -> MemoryProblem:
    """Three levels of 16, 32, 64 channels, four classes."""
    n = Net(128, 128, 3)
    x, skips, channels = n.input, [], 16
    for _ in range(3):
        x = n.conv(n.conv(x, channels, 3), channels, 3)
        skips.append(x)
        x, channels = n.pool(x, 2, 2), channels * 2
    x = n.conv(x, channels, 3)
    for skip in reversed(skips):
        channels //= 2
        x = n.concat(skip, n.conv(n.upsample(x, 2), channels, 3))
        x = n.conv(n.conv(x, channels, 3), channels, 3)
    n.conv(x, 4, 1)
    return n.done()


def tiny_yolo_v2() -> MemoryProblem:
    """224 x 224, 125 channels of boxes; the last pool has a stride of 1 and a padded side."""
    n = Net(224, 224, 3)
    x = n.input
    for channels in (16, 32, 64, 128, 256):
        x = n.pool(n.conv(x, channels, 3), 2, 2)
    x = n.pool(n.conv(x, 512, 3), 2, 1, (0, 0, 1, 1))
    n.conv(n.conv(n.conv(x, 1024, 3), 1024, 3), 125, 1)
    return n.done()


def two_convs(channels: int = 8) -> MemoryProblem:
    """16x16x3 -> conv 3x3 -> conv 3x3."""
    n = Net(16, 16, 3)
    n.conv(n.conv(n.input, channels, 3), channels, 3)
    return n.done()


def with_sums(problem: MemoryProblem, sums: Sequence[ResidualSum]) -> MemoryProblem:
    """The problem with each of the sums done by its convolution, whose output then takes the place of the residual: that of the
    network with such layers, before it has types."""
    by_conv, gone = {each.conv: each for each in sums}, {each.sum for each in sums}
    lost = {problem.op(each.conv).output for each in sums}
    ops = []
    for op in problem.ops:
        if op.name in by_conv:
            each = by_conv[op.name]
            aliasing = replace(op.access, aliases=len(op.inputs))
            op = replace(op, access=aliasing, inputs=(*op.inputs, each.residual), output=problem.op(each.sum).output)
        if op.name not in gone:
            ops.append(op)
    return replace(problem, tensors={name: t for name, t in problem.tensors.items() if name not in lost}, ops=tuple(ops))


NETWORKS = {
    "resnet8": resnet8,
    "vww": vww,
    "ds_cnn": ds_cnn,
    "ad": autoencoder,
    "mbv1_0.25_128": lambda: mobilenet_v1(0.25, 128),
    "mbv1_0.25_224": lambda: mobilenet_v1(0.25, 224),
    "mbv1_0.5_224": lambda: mobilenet_v1(0.5, 224),
    "mbv1_1.0_224": lambda: mobilenet_v1(1.0, 224),
    "mbv2_0.35_128": lambda: mobilenet_v2(0.35, 128),
    "mbv2_0.35_224": lambda: mobilenet_v2(0.35, 224),
    "mbv2_1.0_224": lambda: mobilenet_v2(1.0, 224),
    "resnet18": resnet18,
    "resnet50": resnet50,
    "squeezenet": squeezenet11,
    "googlenet": googlenet,
    "densenet121": densenet121,
    "unet": unet,
}
"""Networks whose arenas N2D2 publishes, or that were measured with it; and a U-Net."""


# spec 4.5: the shapes where N2D2's margin is short
UNSAFE_IN_N2D2 = [
    ((224, 224, 3), 12, 3, 2, 1),
    ((224, 224, 3), 16, 3, 2, 1),
    ((28, 28, 1), 2, 3, 1, 0),
    ((64, 64, 8), 16, 3, 1, 0),
]


def single_conv(shape, channels, kernel, stride, pad) -> MemoryProblem:
    net = Net(*shape)
    net.conv(net.input, channels, kernel, stride, pad)
    return net.done()
