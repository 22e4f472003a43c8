"""Random networks as INI text: branches, concatenations, residuals, every operator, odd sizes. Seeded.

Operators that only ONNX has come as sections of Type=ONNX with a small model each (`support.onnx_blocks`).
"""

import random
from dataclasses import dataclass, field, replace

from network_values import ValueLayers
from support.onnx_blocks import draw_block, has_table, model_text

__all__ = ["Layer", "Spec", "generate"]

MODES = ("Floating-point", "Fixed-point16", "Fixed-point32", "Fixed-point-p32", "Single-shift", "Double-shift")
STRATEGIES = (
    *"None OptimizeOverlap OptimizeOverlap OptimizeAuto OptimizeMaxLifetimeMinSizeFirst".split(),
    *"OptimizeMaxLifetimeMaxSizeFirst OptimizeMaxHoleMaxLifetimeFirst OptimizeReorder".split(),
)
TABLES = ("Logistic", "Tanh", "Swish", "Softplus")

Shape = tuple[int, int, int]
"""Height, width, channels."""


@dataclass(frozen=True)
class Layer:
    """One section: its name, type, parents and further keys; of Type=ONNX the text of its model too."""

    name: str
    type: str
    parents: tuple[str, ...]
    keys: dict[str, str] = field(default_factory=dict)
    model: str = ""

    def text(self) -> str:
        lines = [
            f"[{self.name}_block]" if self.model else f"[{self.name}]",
            f"Input={','.join(self.parents)}",
            f"Type={self.type}",
        ]
        lines += [f"File={self.name}.onnx"] if self.model else []
        return "\n".join(lines + [f"{key}={value}" for key, value in self.keys.items()])


@dataclass(frozen=True)
class Spec:
    """A network, the options of its export, and its export parameters."""

    seed: int
    size: Shape
    layers: tuple[Layer, ...]
    options: tuple[str, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)

    def ini(self) -> str:
        """The document, with a target on every layer that nothing reads."""
        height, width, channels = self.size
        head = f"[database]\nType=Random_Database\n\n[sp]\nSizeX={width}\nSizeY={height}\nNbChannels={channels}\n"
        read = {parent for layer in self.layers for parent in layer.parents}
        ends = [f"[{layer.name}.Target]" for layer in self.layers if layer.name not in read]
        return "\n\n".join([head.rstrip(), *(layer.text() for layer in self.layers), *ends]) + "\n"

    def parameter_text(self) -> str:
        """Constants have no files of their own: several networks are compiled as one program, in another folder."""
        return "WeightsFormat=string\n" + "".join(f"{key}={value}\n" for key, value in self.parameters.items())

    def command(self) -> str:
        """What reproduces it by hand."""
        return (
            f"n2d2py net.ini -seed {self.seed} -w /dev/null -export CPP -calib 8 {' '.join(self.options)} -compare 3 "
            "-export-parameters params.ini"
        )


def _out(extent: int, kernel: int, stride: int, pad: int, dilation: int = 1) -> int:
    return (extent + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1


class _Maker(ValueLayers):
    """Adds layers to a network whose shapes it follows; each method returns the new layer's name or None."""

    def __init__(self, rng: random.Random, spec: Spec, bits: int):
        self.rng, self.spec, self.bits = rng, spec, bits
        self.tables = bits != 16 and rng.random() < 0.6
        """Whether functions are drawn that take integers of 8 bits; else layers of 16 bits are."""
        self.flat: set[str] = set()
        """Vectors without height and width, which no image of 1 x 1 can be added to."""
        self.shapes: dict[str, Shape] = {"sp": spec.size}
        self.layers: list[Layer] = []
        self.pools: list[tuple[str, str]] = []

    def add(self, type: str, parents: tuple[str, ...], shape: Shape, **keys: object) -> str:
        name = f"{type.lower()}{len(self.layers)}"
        written = {key.replace("__", "."): str(value) for key, value in keys.items() if value is not None}
        self.layers.append(Layer(name, type, parents, {"NbOutputs": str(shape[2]), **written}))
        self.shapes[name] = shape
        if type == "Fc" or (
            type in ("BatchNorm", "Activation", "ElemWise", "Dropout", "Scaling") and self.flat.issuperset(parents)
        ):
            self.flat.add(name)
        return name

    def activation(self, tables: bool = True) -> dict[str, object]:
        rng = self.rng
        kind = rng.choice(["Linear", "Linear", "Rectifier", "Rectifier", "Rectifier6", "Leaky", "Saturation", *TABLES])
        if kind in (*TABLES, "Leaky") and not (tables and self.tables):
            kind = "Rectifier"
        if kind == "Rectifier6":
            return {"ActivationFunction": "Rectifier", "ActivationFunction__Clipping": rng.choice([6, 1.5])}
        if kind == "Leaky":
            return {"ActivationFunction": "Rectifier", "ActivationFunction__LeakSlope": rng.choice([0.125, 0.1])}
        if kind == "Saturation":
            return {"ActivationFunction": "Saturation", "ActivationFunction__Threshold": rng.choice([0.5, 1, 2])}
        return {"ActivationFunction": kind}

    def precision(self) -> dict[str, object]:
        if self.bits < 0:
            return {}
        draw = self.rng.random()
        if draw < 0.05:
            return {"Quantize": 0}
        if draw < 0.2 and self.bits == 8 and not self.tables:
            return {"QuantBits": 16, "QuantWeightBits": self.rng.choice([8, 16])}
        return {}

    def window(self, shape: Shape, dilated: bool) -> tuple[dict[str, object], int, int] | None:
        """Keys of a window that fits, and the size of the result."""
        rng, (h, w, _) = self.rng, shape
        if rng.random() < 0.15:
            kh, kw, sh, sw, ph, pw, dh, dw = 1, 1, *rng.choice([(1, 1), (2, 2), (1, 3)]), 0, 0, 1, 1
        else:
            kh, kw = rng.choice([(3, 3), (3, 3), (2, 2), (5, 5), (1, 3), (4, 1), (h, w), (3, 2)])
            sh, sw = rng.choice([(1, 1), (1, 1), (2, 2), (1, 2), (3, 1)])
            dh, dw = rng.choice([(1, 1), (1, 1), (1, 1), (2, 2), (1, 2)]) if dilated else (1, 1)
            ph, pw = (rng.randint(0, min(2, k - 1)) for k in (kh, kw))
        height, width = _out(h, kh, sh, ph, dh), _out(w, kw, sw, pw, dw)
        if height < 1 or width < 1 or kh > 9 or kw > 9:
            return None
        prefix = "KernelDims" if dilated else "PoolDims"
        keys: dict[str, object] = {prefix: f"{kw} {kh}", "StrideDims": f"{sw} {sh}", "PaddingDims": f"{pw} {ph}"}
        if dilated and (dh, dw) != (1, 1):
            keys["DilationDims"] = f"{dw} {dh}"
        return keys, height, width

    def conv(self, x: str) -> str | None:
        rng, shape = self.rng, self.shapes[x]
        found, c = self.window(shape, True), shape[2]
        if found is None:
            return None
        keys, height, width = found
        outputs = rng.choice([1, 3, 4, 5, 8, 13, 16, 17, 24, rng.choice([33, 70, 130]) if height * width <= 16 else 9])
        style = rng.random()
        if style < 0.3 and c > 1:
            keys["Mapping__ChannelsPerGroup"], outputs = 1, c
        elif style < 0.4 and c % 2 == 0:
            keys["Mapping__NbGroups"], outputs = 2, 2 * max(1, outputs // 2)
        elif style < 0.45 and c > 2:
            keys["Mapping__Size"] = 2
        return self.add(
            "Conv",
            (x,),
            (height, width, outputs),
            WeightsFiller=rng.choice(["HeFiller", "XavierFiller"]),
            NoBias=rng.choice([None, None, 1]),
            **keys,
            **self.activation(),
            **self.precision(),
        )

    def deconv(self, x: str) -> str | None:
        rng, (h, w, _) = self.rng, self.shapes[x]
        kernel, stride = rng.choice([(2, 2), (3, 2), (3, 1), (1, 1)])
        height, width = (h - 1) * stride + kernel, (w - 1) * stride + kernel
        if height * width > 400:
            return None
        return self.add(
            "Deconv",
            (x,),
            (height, width, rng.choice([1, 4, 7, 16])),
            WeightsFiller="HeFiller",
            KernelSize=kernel,
            Stride=stride,
            **self.activation(),
            **self.precision(),
        )

    def pool(self, x: str) -> str | None:
        found, c = self.window(self.shapes[x], False), self.shapes[x][2]
        if found is None:
            return None
        keys, height, width = found
        mode = self.rng.choice(["Max", "Average"])
        name = self.add(
            "Pool",
            (x,),
            (height, width, c),
            Pooling=mode,
            Mapping__ChannelsPerGroup=1,
            **keys,
            **self.activation(tables=False),
            **self.precision(),
        )
        kernel, stride = keys["PoolDims"], keys["StrideDims"]
        if mode == "Max" and kernel == stride and keys["PaddingDims"] == "0 0" and self.rng.random() < 0.4:
            self.unpool(name, str(kernel))
        return name

    def unpool(self, pool: str, kernel: str) -> None:
        """What the pool let through, back where it came from, behind another layer; rows and columns that no window held are lost."""
        shape, (width, height) = self.shapes[pool], map(int, kernel.split())
        middle = self.add("Conv", (pool,), shape, KernelSize=1, WeightsFiller="HeFiller", **self.activation())
        restored = (shape[0] * height, shape[1] * width, shape[2])
        self.add("Unpool", (middle,), restored, Pooling="Max", ArgMax=pool, PoolDims=kernel, StrideDims=kernel, Mapping__Size=1)

    def fc(self, x: str) -> str:
        return self.add(
            "Fc",
            (x,),
            (1, 1, self.rng.choice([1, 2, 5, 10, 33])),
            WeightsFiller="HeFiller",
            **self.activation(),
            **self.precision(),
        )

    def batchnorm(self, x: str) -> str:
        return self.add("BatchNorm", (x,), self.shapes[x], **self.activation(), **self.precision())

    def scaling(self, x: str) -> str:
        return self.add("Activation", (x,), self.shapes[x], **self.activation(), **self.precision())

    def elemwise(self, x: str) -> str | None:
        rng, shape = self.rng, self.shapes[x]
        same = [
            name
            for name, other in self.shapes.items()
            if other == shape and name != "sp" and name != x and (name in self.flat) == (x in self.flat)
        ]
        if not same and x in self.flat:
            return None
        others = [rng.choice(same) for _ in range(rng.choice([1, 1, 2]))] if same else []
        if not others:  # a residual: a convolution of the same shape beside
            others = [self.add("Conv", (x,), shape, KernelSize=3, Padding=1, WeightsFiller="HeFiller", **self.activation())]
        parents = (x, *others)
        operation = rng.choice(["Sum", "Sum", "Sum", "AbsSum", "Max", "Min", "Prod", "EuclideanSum"])
        keys: dict[str, object] = {"Operation": operation}
        if operation in ("Sum", "EuclideanSum") and rng.random() < 0.4:
            keys["Weights"] = " ".join(str(rng.choice([1.0, 0.5, -0.75, 2.0])) for _ in parents)
            keys["Shifts"] = " ".join(str(rng.choice([0.0, 0.25, -0.5])) for _ in parents)
        if operation == "Prod":
            parents = parents[:2]
        if operation == "EuclideanSum" and "Shifts" in keys and self.bits > 0:
            return self.add("ElemWise", parents, shape, **keys, **self.activation(), Quantize=0)
        return self.add("ElemWise", parents, shape, **keys, **self.activation(), **self.precision())

    def concat(self, x: str) -> str | None:
        """A 1x1 convolution over several parents: the concatenation is inserted by the tool."""
        rng, (h, w, _) = self.rng, self.shapes[x]
        others = [
            name
            for name, shape in self.shapes.items()
            if shape[:2] == (h, w) and name not in ("sp", x) and (name in self.flat) == (x in self.flat)
        ]
        if not others or x == "sp":
            return None
        parents = (x, *rng.sample(others, min(len(others), rng.choice([1, 1, 2, 3]))))
        if sum(self.shapes[name][2] for name in parents) > 200:
            return None
        if rng.random() < 0.4:
            return self.add("Activation", parents, (h, w, sum(self.shapes[name][2] for name in parents)), **self.activation())
        return self.add(
            "Conv",
            parents,
            (h, w, rng.choice([3, 8, 11])),
            KernelSize=1,
            WeightsFiller="HeFiller",
            **self.activation(),
            **self.precision(),
        )

    def block(self, x: str) -> str | None:
        """A small ONNX model."""
        rng, shape = self.rng, self.shapes[x]
        if x in self.flat:
            return None
        steps, parents = x == "sp" and rng.random() < 0.5, (x,)
        same = [
            name for name, other in self.shapes.items() if other == shape and name not in ("sp", x) and name not in self.flat
        ]
        if same and not steps and rng.random() < 0.2:
            parents = (x, rng.choice(same))
        inputs = [self.shapes[one] for one in parents]
        found = next((found for _ in range(4) if (found := draw_block(rng, inputs, steps)) is not None), None)
        if found is None or (has_table(found) and not self.tables and self.bits > 0):
            return None
        name = f"onnx{len(self.layers)}"
        self.layers.append(Layer(name, "ONNX", parents, {}, model_text(name, found)))
        self.shapes[name] = found.shape
        return name

    def step(self) -> None:
        rng = self.rng
        names = list(self.shapes)
        recent = names[-3:] if rng.random() < 0.8 else names
        x = rng.choice(recent)
        kinds = (
            [self.conv] * 8
            + [self.pool] * 3
            + [self.elemwise] * 4
            + [self.concat] * 4
            + [
                self.fc,
                self.batchnorm,
                self.scaling,
                self.padding,
                self.resize,
                self.transpose,
                self.dropout,
                self.deconv,
                self.normalization,
                self.spread,
            ]
            + [self.value] * 2
            + [self.block] * 7
        )
        rng.choice(kinds)(x)


def generate(seed: int) -> Spec:
    """The network of a seed."""
    rng = random.Random(seed)
    bits = rng.choice([8] * 8 + [16, -32])
    size = (rng.choice([1, 2, 5, 7, 9, 12, 16]), rng.choice([1, 3, 5, 8, 11, 16]), rng.choice([1, 1, 2, 3, 3, 4, 9]))
    spec = Spec(seed, size, ())
    maker = _Maker(rng, spec, bits)
    for _ in range(rng.randint(2, 11)):
        maker.step()
    if not maker.layers:
        maker.fc("sp")
    options = ["-nbbits", str(bits)]
    if bits > 0:
        options += ["-act-rescaling-mode", rng.choice(MODES), "-quality", rng.choice(["fast", "default", "default", "best"])]
        options += ["-act-clipping-mode", rng.choice(["None", "MSE", "Quantile", "KL-Divergence"])]
        options += rng.choice([[], [], ["-act-rescale-per-output", "0"], ["-no-unsigned"], ["-wt-clipping-mode", "MSE"]])
    parameters = {
        "MemoryManagerStrategy": rng.choice(STRATEGIES),
        "OptimizeBufferMemory": str(rng.choice([1, 1, 0])),
        "MemoryAlignment": str(rng.choice([1, 1, 4])),
        "IncludeInputInBuffer": str(rng.choice([1, 1, 0])),
    }
    return replace(spec, layers=tuple(maker.layers), options=tuple(options), parameters=parameters)
