"""The contract of an operator's C++ form: a Layer, and a function from it to its code.

    @cpp("Mean")
    def lower(layer: Layer) -> LayerCode:
        config = layer.config("mean of a window", {**layer.planes, "Epilogue": epilogue(layer)}, {"Window": layer.op.size})
        return layer.code("mean", layer.call("mean", config))

`selection` chooses a kernel and packs its constants, `epilogue` returns the type that stores a result; all are functions of the
layer. `parts.needs_of` collects what calls, configs and types require.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from n2d2py.arithmetic import NumType, round_up
from n2d2py.contracts.cpp.code import LayerCode, Selection
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.isa import tags
from n2d2py.contracts.cpp.parts import Argument, Array, Call, Constants, LayerConfig, LayerForm, PanelOrder, Reference, needs_of
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.graph import QuantGraph, QuantNode, Shape, channels, dims_text, height, width
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.registry import Registry


def window(
    kernel: Sequence[int], stride: Sequence[int], pads: Sequence[int], dilation: Sequence[int] | None = None
) -> dict[str, int]:
    """Return the enumerators of a config that describe a window's movement; `pads` begin with top and left."""
    sizes = {"Kernel": kernel, "Stride": stride, **({} if dilation is None else {"Dilation": dilation})}
    moves = {f"{name}{axis}": each[index] for name, each in sizes.items() for index, axis in enumerate(("Height", "Width"))}
    return {**moves, "PadTop": pads[0], "PadLeft": pads[1]}


def _overlap(a: Plane, b: Plane) -> bool:
    return any(begin < other_end and other < end for begin, end in a.intervals() for other, other_end in b.intervals())


def same_place(a: Plane, b: Plane) -> bool:
    """True if element i of both is at the same address, for every i."""
    return a.limit is b.limit is a.ring_rows is b.ring_rows is None and (
        (a.offset, a.size, a.stride, a.length, a.count, a.pitch) == (b.offset, b.size, b.stride, b.length, b.count, b.pitch)
    )


@dataclass(frozen=True)
class ExportChoices:
    """Choices of export parameters that affect the kernels of a layer.

    Attributes:
        packs_weights: low-bit weights are packed.
        prepacks_weights: packed weights with few uses may be unpacked once, into static memory.
        trades_flash: larger constants are allowed for faster kernels.
        stores_winograd: convolution weights may be stored transformed, 3.6 or 8 times as large.
    """

    packs_weights: bool = True
    prepacks_weights: bool = False
    trades_flash: bool = False
    stores_winograd: bool = True


@dataclass(frozen=True)
class LayerScratch:
    """Workspace of a layer in the arena: `bytes` from `at`, relative to the output pointer (`base` 1) or the input pointer (2);
    0 bytes without one."""

    bytes: int = 0
    at: int = 0
    base: int = 0

    @staticmethod
    def of(node: QuantNode, plan: MemoryPlan) -> LayerScratch:
        """Return the workspace of a node; none if both tensors are outside of the arena, since nothing locates it then."""
        scratch = plan.op(node.name).scratch
        if scratch is None or plan.op(node.name).partial is not None:
            return LayerScratch()
        for base, tensor in enumerate((node.output, node.inputs[0]), 1):
            plane, memory = plan.planes[tensor], plan.memory_at(scratch.offset)
            if not plane.external and plan.memory_at(plane.offset) == memory:
                return LayerScratch(scratch.size, scratch.offset - (plan.memories[memory].start if memory else 0), base)
        return LayerScratch()

    @property
    def constants(self) -> dict[str, int]:
        """Return the enumerators of a config (`kernels/n2d2/scratch.hpp`)."""
        return {"ScratchBytes": self.bytes, "ScratchBase": self.base, "ScratchAt": self.at} if self.bytes else {}


@dataclass(eq=False)
class Layer:
    """A node in its graph, with types, names and storage of its tensors; no function changes it.

    Attributes:
        inputs, output: number types of the tensors.
        sources, place: planes of the inputs and of the output.
        over: planes of the inputs that the output overlaps.
        serial: the output overlaps an input, so rows are stored in order.
        backwards: that order is from the last row, or element, to the first.
        run: how the layer runs, by the memory plan; `partial`: address of its partial results, if it accumulates rows.
        integer: True if it computes in integers.
        computed: True if another layer computes the first input, so its integers are within the limits of their type.
        input_zero: number that is taken from the integers of the first input: their zero point, or the origin of stored sums.
        planes: the typedefs Input, of the first input, and Output.
        bases: the pointers in0, in1, ... to which the planes of the inputs are relative.
        streamed: True if it computes some rows at a time.
        copied_line_bytes: bytes of a line of the first input, which kernels of two lines copy where lines have an order; else 0.
        word_pixels: whether pixels of the first input, and of the output, begin at words.
        whole_output: True if the rows of the output are contiguous.
    """

    node: QuantNode
    graph: QuantGraph
    identifiers: Identifiers
    identifier: str
    inputs: tuple[NumType, ...]
    output: NumType
    sources: tuple[Plane, ...]
    over: tuple[Plane, ...]
    place: Plane
    serial: bool
    backwards: bool
    run: OpPlan = OpPlan()
    scratch: LayerScratch = LayerScratch()
    choices: ExportChoices = ExportChoices()

    def __post_init__(self) -> None:
        node, graph, first, place = self.node, self.graph, self.sources[0], self.place
        self.name, self.integer, self.computed = node.name, graph.is_integer(node), node.inputs[0] not in graph.inputs
        self.op: Any = node.op
        self.input_shape, self.output_shape = graph.shape(node.inputs[0]), graph.shape(node.output)
        self.input_zero = int(node.params["origin"][0]) if "origin" in node.params else self.inputs[0].zero_point
        *inputs, self.output_plane = map(self.identifiers.plane, (*node.inputs, node.output))
        self.input_planes = tuple(inputs)
        self.planes = {"Input": inputs[0], "Output": self.output_plane}
        self.bases = tuple(f"in{index}" for index in range(len(node.inputs)))
        self.streamed, self.partial = self.run.streamed, self.run.partial
        self.copied_line_bytes = first.line_bytes if self.serial or self.streamed else 0
        self.word_pixels = first.word_pixels, place.word_pixels
        self.external, self.whole_output = place.external, place.limit is place.ring_rows is place.pitch is None

    @staticmethod
    def of(
        node: QuantNode, graph: QuantGraph, plan: MemoryPlan, identifiers: Identifiers, choices: ExportChoices = ExportChoices()
    ) -> Layer:
        """Return the layer of a node; `plan` has the addresses of its tensors and its execution. Raise InternalError if it
        mixes integers and floating point and its operator does not."""
        inputs, output = tuple(graph.type(name) for name in node.inputs), graph.type(node.output)
        place, run = plan.planes[node.output], plan.op(node.name)
        sources = tuple(plan.planes[name] for name in node.inputs)
        requiring_whole_input = [one for name, one in zip(node.inputs, sources, strict=True) if name != run.aliases]
        over = tuple(one for one in requiring_whole_input if _overlap(one, place))
        if not (graph.is_integer(node) or node.op.mixes_types or all(kind.is_float for kind in [*inputs, output])):
            raise InternalError(f"{node.name} mixes integer and floating-point tensors")
        planes, order = (sources, over, place), (bool(over), bool(over) and run.backwards)
        names, types = (identifiers, identifiers.layer(node.name)), (inputs, output)
        return Layer(node, graph, *names, *types, *planes, *order, run, LayerScratch.of(node, plan), choices)

    def values(self, role: str) -> np.ndarray:
        """Return a constant of the node: "weights", "bias", "table", ..."""
        return self.node.params[role]

    def has(self, role: str) -> bool:
        """True if the node has such a constant."""
        return role in self.node.params

    def sum_type(self, bound: int = 0) -> str:
        """Return the C++ type of the accumulator, for sums up to the larger of `bound` and the node's."""
        if not self.integer:
            return self.output.cpp
        return "std::int32_t" if max(bound, self.node.bound) < 2**31 else "std::int64_t"

    def pointwise(self) -> Layer:
        """Return the layer as element-wise: rows need no order if each is stored over its own operands."""
        return replace(self, serial=False, backwards=False) if all(same_place(one, self.place) for one in self.over) else self

    def requiring_whole_input(self) -> Layer:
        """Return the layer as one that needs its whole input. Raise InternalError if its output overlaps it."""
        if self.serial:
            raise InternalError(f"{self.name}: the output of a {self.op.kind} lies over its input")
        return self

    def beyond_axes(self, shape: Shape) -> N2D2Error:
        """Return the error for a tensor of `shape` with too many axes."""
        tensor = f"a tensor of rank {len(shape)} ({dims_text(shape)})"
        what = f"layer '{self.name}': {self.op.kind} of {tensor} is not supported by the C++ export"
        return N2D2Error("E703", what, where=self.node.location, remedy="use tensors with channels, height and width")

    def no_integers(self, remedy: str) -> N2D2Error:
        """Return the error for a layer without an integer form."""
        what = f"layer '{self.name}': {self.op.kind} is not supported in integers"
        return N2D2Error("E702", what, where=self.node.location, remedy=remedy)

    # ---- its C++ ----------------------------------------------------------------------------
    @property
    def portable(self) -> Selection:
        """The portable kernel, for an operator without others."""
        return Selection(f"there is no other kernel for {self.op.kind}" if self.integer else "floating point")

    def array(
        self, role: str, values: np.ndarray, ctype: str, forms: tuple[LayerForm, ...] = (), order: PanelOrder | None = None
    ) -> Array:
        """Return the array `role` of the layer with the flattened `values`; `order` is that of a panel form."""
        return Array(f"{self.identifier}_{role}", ctype, np.ascontiguousarray(values).reshape(-1), forms, order=order)

    def constants(
        self, role: str, ctype: str, functions: Mapping[str, object], types: Mapping[str, str] | None = None
    ) -> Constants:
        """Return the struct `role` of the layer with constant functions of type `ctype`."""
        return Constants(f"{self.identifier}_{role}", ctype, functions, types or {})

    def config(
        self,
        description: str,
        types: Mapping[str, Reference],
        constants: Mapping[str, int],
        selection: Selection | None = None,
        suffix: str = "config",
    ) -> LayerConfig:
        """Return a config of the layer. The direction of rows is added to `constants` if they have an order."""
        if "Serial" in constants:
            order = {"Serial": self.serial or self.streamed, "Reverse": self.backwards, "Streamed": self.streamed}
            constants = {**constants, **order, **(self.scratch.constants if selection and selection.panels else {})}
        numbers, isa = {key: int(value) for key, value in constants.items()}, (selection or self.portable).isa
        return LayerConfig(f"{self.identifier}_{suffix}", f"{self.name}: {description}", types, numbers, isa)

    def call(self, function: str, *template: Argument, inputs: tuple[Argument, ...] = ("in0",), constants: tuple = ()) -> Call:
        """Return the call of a kernel of namespace n2d2 with its `template` arguments, inputs, output and `constants`."""
        return Call(f"n2d2::{function}", template, (*inputs, "out", *constants))

    def code(self, header: str, *calls: Call, selection: Selection | None = None) -> LayerCode:
        """Return the code of the layer: `calls` of kernels in the header `header`.

        Calls of a layer that runs row by row get the rows as last argument.
        """
        chosen = selection or self.portable
        structs, arrays, more = needs_of(part for call in calls for part in call.parts)
        first = header if header.startswith("plugins/") else f"n2d2/{header}.hpp"
        headers = (first, *more, *chosen.headers)
        by_rows = tuple(replace(call, rows=self.streamed) for call in calls)
        return LayerCode(self.node, self.identifier, self.run, headers, structs, by_rows, arrays, chosen)


LayerFunction = Callable[[Layer], LayerCode]
LAYERS: Registry[LayerFunction] = Registry("the C++ layer of", "n2d2py.operators.catalog")
"""C++ forms by operator kind."""
cpp = LAYERS.declare
"""Decorator that registers a function as the C++ form of operator kinds."""


def layer_code(
    node: QuantNode, graph: QuantGraph, plan: MemoryPlan, identifiers: Identifiers, choices: ExportChoices = ExportChoices()
) -> LayerCode:
    """Return the C++ of one layer; `plan` has the addresses of its tensors and its execution.

    Weights that a plug-in's kernel might read are not packed.

    Raise E701 if the C++ export has no kernel for the operator.
    """
    function = LAYERS.get(node.op.kind)
    if function is None:
        what = f"layer '{node.name}': {node.op.kind} is not supported by the C++ export"
        raise N2D2Error("E701", what, where=node.location, remedy="remove the layer, or add -fuse")
    replaced = [one for one in REPLACED_KERNELS.values() if one.kind == node.op.kind]
    if replaced:
        choices = replace(choices, packs_weights=False)
    code = function(Layer.of(node, graph, plan, identifiers, choices))
    for override in replaced:
        code = override.applied(code, node)
    return code


Fits = Callable[[QuantNode], bool | str]


@dataclass(frozen=True)
class _Override:
    """A plug-in's kernel for layers of an operator `kind`: for `tag`, in `header`, for the compiler target `isa`."""

    kind: str
    isa: str
    header: str
    tag: str
    fits: Fits

    def applied(self, code: LayerCode, node: QuantNode) -> LayerCode:
        """Return the layer with this kernel if it fits, else with the reason against it."""
        busy = "it runs row by row" if code.streamed else f"it performs the addition of {code.sum}" if code.sum else ""
        answer = busy or self.fits(node)
        if answer is not True:
            reason = answer if isinstance(answer, str) and answer else "the plug-in says that it does not fit"
            noted = replace(code.selection, reason="; ".join(filter(None, (code.selection.reason, f"no {self.tag}: {reason}"))))
            return replace(code, selection=noted)
        code = code.configured(lambda config: replace(config, special=(*config.special, (self.isa, self.tag))))
        kernel = code.selection.kernel
        others = f", elsewhere {kernel.name}" if self.isa and kernel.name else ""
        sets = tuple(dict.fromkeys((tags()[self.isa].name, *kernel.sets))) if self.isa else ("all",)
        kernel = replace(kernel, name=f"{self.tag}{others}", sets=sets)
        selection = replace(code.selection, kernel=kernel, reason="a plug-in's kernel fits", winograd=None)
        return replace(code, headers=(*code.headers, self.header), selection=selection)


REPLACED_KERNELS: Registry[_Override] = Registry("the kernel")
"""Kernels of plug-ins by their tag."""


def kernel(kind: str, tag: str, header: str, isa: str = "") -> Callable[[Fits], Fits]:
    """Decorate a predicate on layers: it selects the kernel for `tag` of `header`, or returns the reason against it for the
    report.

    `kind`: the operator. `isa`: tag of the required instruction set (`kernels/n2d2/isa.hpp`), "" for any. Layers that run row
    by row or add a residual keep the kernels of the project.

    Raise InternalError if the operator or the instruction set is unknown.
    """
    for what, name, known in (("operator", kind, LAYERS), ("instruction set", isa, ("", *tags()))):
        if name not in known:
            raise InternalError(f"the kernel {tag} is for the {what} {name}, not one of {', '.join(known)}")

    def declare(fits: Fits) -> Fits:
        REPLACED_KERNELS.add(tag, _Override(kind, isa, header, tag, fits))
        return fits

    return declare


ScratchFunction = Callable[[Layer], "ScratchNeed | None"]
_NEEDS: Registry[ScratchFunction] = Registry("the scratch of", "n2d2py.operators.catalog")
scratch = _NEEDS.declare
"""Decorator that registers a function of a planned layer as the scratch of operator kinds."""
_TAIL = 64
"""Bytes that copying may write after windows."""
_PIXELS = 6
"""Pixels of a tile of most kernels; they make smaller ones where these do not fit."""
_TILES = 4
"""Tiles of a block that hide the time of reading many weights."""
_BLOCK, _ORDERED_BLOCK, _LARGE_BLOCK, _LINES_BLOCK = 24576, 65536, 262144, 32768
"""Bytes of windows that kernels gather at a time: of layers whose lines have an order, of those with many weights, as lines."""
_MANY_WEIGHTS = 524288


def scratch_needs(graph: QuantGraph, plan: MemoryPlan, choices: ExportChoices = ExportChoices()) -> dict[str, ScratchNeed]:
    """Scratch of layers, by name, in a plan of their tensors; those that need nothing are not in it."""
    identifiers = Identifiers(graph)
    needs = {}
    for node in graph.nodes:
        function = _NEEDS.get(node.op.kind)
        if function is None or plan.op(node.name).view:
            continue
        need = function(Layer.of(node, graph, plan, identifiers, choices))
        if need is not None:
            needs[node.name] = need
    return needs


def _window_bytes(layer: Layer, inputs: int) -> int:
    """Return the most bytes of a window of `inputs` inputs, over the instruction sets: bytes may be widened to 16 bits."""
    size = layer.inputs[0].bytes
    words = -(-inputs * size // 4)
    return words * (8 if size == 1 else 4)


def windows_scratch(layer: Layer, kernel: tuple[int, int], groups: int = 1) -> ScratchNeed:
    """Return the bytes of `panels/panel_convolution.hpp`: windows of some tiles, or lines of input with their padding."""
    shape, (_, _, lines, columns) = layer.input_shape, layer.output_shape
    depth = channels(shape) // groups
    window = _window_bytes(layer, kernel[0] * kernel[1] * depth)
    ordered = layer.serial and not layer.streamed
    parts, pixels = (groups, lines * columns) if ordered else (1, columns if layer.streamed else lines * columns)
    weights = kernel[0] * kernel[1] * depth * channels(layer.output_shape) // groups
    block = _LARGE_BLOCK if weights > _MANY_WEIGHTS else _ORDERED_BLOCK if ordered else _BLOCK
    tile = min(_PIXELS, pixels) + 1
    most = max(min(block, window * (pixels + _PIXELS)), window * tile)
    if not ordered and kernel != (1, 1):
        by_lines = (height(shape) + kernel[0]) * (width(shape) + kernel[1]) * depth * layer.inputs[0].bytes
        most = max(most, min(_LINES_BLOCK, by_lines))
    # Each block reads all weights again: of large layers in float32, from memory.
    enough = min(most, window * tile * (1 if layer.integer or weights <= _MANY_WEIGHTS else _TILES))
    least, enough, most = (parts * size + _TAIL for size in (window * min(3, tile), enough, most))
    return ScratchNeed(least, least, enough, most)


def input_scratch(layer: Layer) -> ScratchNeed:
    """Return the bytes of `panels/panel_fullyconnected.hpp`: the input as a window, and before it was arranged."""
    shape = layer.input_shape
    inputs = channels(shape) * height(shape) * width(shape)
    window = (_window_bytes(layer, inputs) + 127) // 64 * 64
    size = window + round_up(inputs * layer.inputs[0].bytes, 4) + _TAIL
    return ScratchNeed(size, size, size, size)
