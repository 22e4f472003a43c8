"""Small typed networks with known integers, plans for them, and their exports."""

from pathlib import Path

import numpy as np

from n2d2py.arithmetic import FLOAT32, FixedPointRescale, FloatRescale, NumType
from n2d2py.contracts.functions import Clip
from n2d2py.exports import ExportFolder, ExportRequest, ScoredOutput, StoredStimuli, find_target
from n2d2py.graph import Aligned, Moved, QuantGraph, QuantNode, QuantTensor, Real, Rescaled, Weighted, channels, height, width
from n2d2py.memory.plan import MemoryPlan, Plane, ScheduleStep
from n2d2py.memory.problem import MemoryProblem
from n2d2py.quant.simulator import simulate
from support.ops import Conv, ElemWise, Fc, Pool

U8, S8 = NumType(8, signed=False, scale=1 / 128), NumType(8, scale=0.0625)


def random_inputs(graph: QuantGraph, count: int, seed: int = 0) -> list[np.ndarray]:
    """Stored values over the whole range of each input."""
    rng = np.random.default_rng(seed)
    made = []
    for name in graph.inputs:
        kind, shape = graph.type(name), (count, *graph.shape(name)[1:])
        made.append(
            rng.standard_normal(shape).astype(kind.dtype)
            if kind.is_float
            else rng.integers(kind.qmin, kind.qmax, shape, kind.dtype, endpoint=True)
        )
    return made


class Builder:
    """Adds layers with random parameters whose outputs spread over the range of their type."""

    def __init__(self, name: str, shape: tuple[int, ...], integer: bool, seed: int = 1):
        self.integer, self.rng = integer, np.random.default_rng(seed)
        self.graph = QuantGraph(name, 8 if integer else -32, inputs=["env"])
        self.tensor("env", shape, U8)

    def tensor(self, name: str, shape: tuple[int, ...], kind: NumType) -> None:
        self.graph.tensors[name] = QuantTensor(name, shape, kind if self.integer else FLOAT32)

    def weighted(self, name: str, op, source: str, shape: tuple[int, ...], kind: NumType, fixed: bool = False) -> str:
        """A Conv or Fc with weights of `shape`; unsigned outputs are rectified."""
        taps = int(np.prod(shape[1:]))
        params = {"weights": self.rng.integers(-127, 128, shape), "bias": self.rng.integers(-4000, 4000, shape[0])}
        node = QuantNode(name, op, [source], [name], Weighted(**params))
        if self.integer:
            safe_distances = np.abs(params["weights"]).reshape(shape[0], -1).sum(1) * self.graph.type(source).qmax
            node.bound = int((safe_distances + np.abs(params["bias"])).max())
            factors = self.rng.uniform(0.5, 1.5, shape[0]) / (60 * np.sqrt(taps) * 127 / kind.qmax)
            node.rescale = (
                FixedPointRescale(np.rint(factors * 2**30).astype(np.int64), 30, 31) if fixed else FloatRescale(factors)
            )
            node.clamp = (kind.qmin, kind.qmax)
        else:
            node.form = Real({role: array.astype(np.float32) / 127 / np.sqrt(taps) for role, array in params.items()})
            node.activation = None if kind.signed else Clip(0)
        return self.add(node, kind)

    def add(self, node: QuantNode, kind: NumType) -> str:
        output = node.op.output_shapes([self.graph.shape(name) for name in node.inputs], node)[0]
        self.tensor(node.output, output, kind)
        self.graph.nodes.append(node)
        return node.output

    def pool(self, name: str, op: Pool, source: str) -> str:
        kind = self.graph.type(source)
        node = QuantNode(name, op, [source], [name], Moved() if self.integer else Real())
        if self.integer:
            node.clamp = (kind.qmin, kind.qmax)
            if op.mode == "Average":
                area, node.form = op.kernel[0] * op.kernel[1], Rescaled()
                node.rescale, node.bound = FloatRescale(np.array([1 / area])), area * kind.qmax
        return self.add(node, kind)

    def finish(self, *outputs: str) -> QuantGraph:
        self.graph.outputs = list(outputs)
        self.graph.verify()
        return self.graph


def chain(integer: bool, name: str = "Digits-1", seed: int = 1) -> QuantGraph:
    """conv (stride 2, rectified) - max pool - fc, 12 x 10 x 3 to 5."""
    build = Builder(name, (1, 3, 12, 10), integer, seed)
    conv = build.weighted("conv/1", Conv((2, 2), (1, 1, 1, 1)), "env", (8, 3, 3, 3), U8)
    pool = build.pool("forward", Pool("Max", (2, 2), (2, 2)), conv)
    features = int(np.prod(build.graph.shape(pool)[1:]))
    return build.finish(build.weighted("fc", Fc(), pool, (5, features), S8, fixed=True))


def residual(integer: bool) -> QuantGraph:
    """conv - depthwise - conv added to the first, average pool to a map; two outputs."""
    build = Builder("residual", (1, 4, 7, 9), integer, 2)
    first = build.weighted("stem", Conv(pads=(1, 1, 1, 1)), "env", (6, 4, 3, 3), U8)
    deep = build.weighted("deep", Conv(pads=(1, 1, 1, 1), groups=6), first, (6, 1, 3, 3), U8, fixed=True)
    flat = build.weighted("flat", Conv(), deep, (6, 6, 1, 1), U8)
    add = QuantNode("add", ElemWise("Sum"), [first, flat], ["add"], Real())
    if integer:
        add.form = Aligned(np.array([3, 5]), np.array([0]))
        add.rescale, add.clamp, add.bound = FloatRescale(np.array([1 / 8])), (0, 255), 8 * 255
    build.add(add, U8)
    pool = build.pool("mean", Pool("Average", (7, 9)), "add")
    return build.finish(build.weighted("fc", Fc(), pool, (4, 6), S8), "add")


def separate_plan(graph: QuantGraph, external: tuple[str, ...] = ()) -> MemoryPlan:
    """Every tensor at its own place, at multiples of 8 bytes; `external` ones with the caller."""
    planes, offset = {}, 0
    for name, tensor in graph.tensors.items():
        shape, size = tensor.shape, channels(tensor.shape) * tensor.type.bytes
        outside = name in external
        planes[name] = Plane(
            0 if outside else offset, size, size, width(shape), height(shape), -1, len(graph.nodes), external=outside
        )
        offset += 0 if outside else -(-planes[name].bytes // 8) * 8
    steps = tuple(ScheduleStep(node.name, clock) for clock, node in enumerate(graph.nodes))
    return MemoryPlan("separate", offset, planes, steps)


def request(graph: QuantGraph, *, count: int = 4, external: tuple[str, ...] = (), **fields) -> ExportRequest:
    """A request with random stimuli, labelled with what the network answers except for the first."""
    inputs = random_inputs(graph, count)
    scores = simulate(graph, inputs)[graph.outputs[0]]
    labels = scores.reshape(count, -1).argmax(1).astype(np.int32)
    labels[0] = (labels[0] + 1) % scores.shape[1]
    values = {
        "stimuli": StoredStimuli(tuple(inputs), (labels,), tuple(f"img/{i}.png" for i in range(count))),
        "targets": (ScoredOutput(graph.outputs[0], top_n=2),),
        "plan": separate_plan(graph, external),
        "problem": MemoryProblem({}, (), (), ()),
        **fields,
    }
    return ExportRequest(graph, **values)


def write_export(path: Path, made: ExportRequest, target: str = "CPP") -> Path:
    """The C++ project of a request at `path`."""
    cpp = find_target(target)
    prepared = cpp.prepare(made)
    with ExportFolder(path, cpp.manifest(prepared)) as folder:
        cpp.write(prepared, folder)
    return path
