"""Declaration of a layer type: the keys of its section, and a function that adds its nodes to the Graph.

    @ini("Softmax", NB_OUTPUTS, doc="Softmax over the channels.")
    def _from_ini(context: LayerContext) -> None:
        context.add(Softmax(), [context.concat_inputs()])

Plug-ins and the operators of this package use the same declaration.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py import log
from n2d2py.contracts.functions import FunctionRow
from n2d2py.contracts.ini.keys import CONFIGURATION, LAYER, WINDOW_KEYS
from n2d2py.contracts.ini.quantizers import load_trained_weights
from n2d2py.contracts.ini.weights import WeightStore, fill
from n2d2py.contracts.operator import Op, make_operator
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node, Shape, channels, complete_params, dims_text, height, width
from n2d2py.graph.shapes import MAX_ELEMENTS
from n2d2py.ini import Ignored, Key, Schema, Values
from n2d2py.registry import Registry


@dataclass
class LayerContext:
    """A layer section during import: its values, its inputs, and methods that add nodes to the graph.

    Attributes:
        parents: section name and tensor of each input, in order.
        weights: None if only shapes are needed (-describe): parameters are then zeros that take no memory.
        rows: number of weights of each output, after the weights were loaded.
        connected: bool (O, C), the inputs of each output, if only connected weights are stored; else None.
        weight_scales: scales of the loaded weights, if these are integers times a scale (QWeight).
    """

    graph: Graph
    values: Values
    parents: list[tuple[str, str]]
    weights: WeightStore | None
    seed: int
    rows: tuple[int, ...] = ()
    connected: np.ndarray | None = None
    weight_scales: np.ndarray | None = None

    @property
    def name(self) -> str:
        return self.values.section.name

    @property
    def shapes(self) -> list[Shape]:
        return [self.graph.shape(tensor) for _, tensor in self.parents]

    def concat_inputs(self) -> str:
        """Return the input tensor; several inputs are concatenated along their channels."""
        if len(self.parents) == 1:
            return self.parents[0][1]
        return self.add_helper("concat", make_operator("Concat"), self.align_ranks())

    def align_ranks(self) -> list[str]:
        """Return the input tensors; vectors become 1x1 feature maps if the other inputs are 1x1 feature maps."""
        tensors, shapes = [tensor for _, tensor in self.parents], self.shapes
        if {len(shape) for shape in shapes} == {2, 4} and all(size == 1 for shape in shapes for size in shape[2:]):
            for index, shape in enumerate(shapes):
                if len(shape) == 2:
                    pixel = make_operator("Reshape", (shape[1], 1, 1))
                    tensors[index] = self.add_helper(f"pixel{index}", pixel, [tensors[index]])
        return tensors

    def as_images(self) -> None:
        """Give the inputs height and width: a vector becomes one pixel, a sequence one row."""
        for index, shape in enumerate(self.shapes):
            if len(shape) < 4:
                self._prepare("image", index, make_operator("Reshape", (channels(shape), height(shape), width(shape))))

    def crop_inputs(self) -> None:
        """Crop the inputs to the layer's window, if its section has one. Raise E233 if the window exceeds an input."""
        values = self.values
        if "InputOffsetX" not in values:
            return
        x, y, columns, lines = (values[key.name] for key in WINDOW_KEYS)
        if not (x or y or columns or lines):
            return
        self.as_images()
        for index, (_, _, h, w) in enumerate(self.shapes):
            right, bottom = w - x - (columns or w - x), h - y - (lines or h - y)
            if x >= w or y >= h or right < 0 or bottom < 0:
                size = f"{columns or 'all'}x{lines or 'all'} at {x},{y}"
                what = f"the region of {size} exceeds the input of {w}x{h} (width x height)"
                key = next(key.name for key in WINDOW_KEYS if values.is_given(key.name))
                raise self.fail("E233", what, "reduce or move the region", key)
            if right or bottom or x or y:
                self._prepare("window", index, make_operator("Padding", (-y, -x, -bottom, -right)))

    def _prepare(self, suffix: str, index: int, op: Op) -> None:
        name, tensor = self.parents[index]
        self.parents[index] = name, self.add_helper(f"{suffix}{index}", op, [tensor])

    def require_channels(self, tensor: str) -> int:
        """Return the number of channels of a tensor. Raise E216 if it differs from NbOutputs."""
        count, outputs = channels(self.graph.shape(tensor)), self.values["NbOutputs"]
        if count != outputs:
            what = f"NbOutputs={outputs}, but the {'result' if tensor == self.name else 'input'} has {count} channels"
            raise self.fail("E216", what, f"set NbOutputs to {count}", "NbOutputs")
        return count

    def add_helper(self, suffix: str, op: Op, inputs: list[str], params: dict[str, np.ndarray] | None = None) -> str:
        """Add a node that prepares an input of the layer; return its output tensor."""
        document, name = self.values.section.document, f"{self.name}_{suffix}"
        while name in self.graph.tensors or name in document:
            name += "_"
        where = self.values.section.location
        return self.graph.add(Node(name, op, inputs, [name], params or {}, location=where, helper=True)).output

    def add(
        self,
        op: Op,
        inputs: list[str],
        params: Mapping[str, np.ndarray | None] | None = None,
        activation: FunctionRow | None = None,
    ) -> Node:
        """Add the node of the layer."""
        where = self.values.section.location
        complete, unbiased = complete_params(params or {})
        if self.weight_scales is not None:
            complete["weight_scales"] = self.weight_scales
        return self.graph.add(Node(self.name, op, inputs, [self.name], complete, activation, where, unbiased=unbiased))

    def parameter(
        self,
        name: str,
        shape: tuple[int, ...],
        default: np.ndarray | None = None,
        rows: Sequence[int] | None = None,
        order: Sequence[int] = (),
    ) -> np.ndarray:
        """Return the array "weights", "biases", "scales", ... of the layer: stored, else `default`, else filled.

        `rows`: number of weights of each output; by default equal, with outputs as first axis of `shape`. `order`: axis of
        `shape` for each axis of a stored array. Values keep the stored order. Raises E229 and the errors of loading.
        """
        if prod(shape) > MAX_ELEMENTS:
            size = f"{prod(shape):,} {name} ({dims_text(shape)})"
            what = f"the layer requires {size}, more than the limit of {MAX_ELEMENTS:,}"
            raise self.fail("E229", what, "correct NbOutputs and the dimensions of its input")
        if self.weights is None:
            return np.broadcast_to(np.float32(0), shape)
        if default is None:
            role = {"weights": "Weights", "biases": "Bias"}[name]
            default = fill(self.values, role, shape, seed=self.seed, name=self.name)
        if name == "weights":
            self.rows = (prod(shape[1:]),) * shape[0] if rows is None else tuple(rows)
        trains = self.weights.recipes is not None
        if name == "weights" and not trains and "QWeight" in self.values and self.values["QWeight"]:
            result, self.weight_scales = load_trained_weights(self.values, self.weights, self.name, default, self.rows, order)
            return result
        return self.weights.load(self.name, name, default, self.values.section.location, self.rows, order)

    def fail(self, code: str, what: str, remedy: str, key: str | None = None) -> N2D2Error:
        """Return an error of this section, at the line of `key` if given."""
        return self.values.fail(code, what, remedy, key)

    def cannot_run(self, code: str, what: str, remedy: str, key: str | None = None) -> None:
        """Refuse, with `code`, a layer that cannot be computed; with -describe, warn W226."""
        refuse_to_run(self.fail(code, what, remedy, key), describing=self.weights is None)


def refuse_to_run(error: N2D2Error, describing: bool) -> None:
    """Raise the error of a layer that cannot be computed; if `describing`, warn W226 instead."""
    if not describing:
        raise error
    log.warning("W226", f"the layer can be described but not run: {error.what}", where=error.where, remedy=error.remedy)


@dataclass(frozen=True)
class LayerType:
    """A value of `Type=`: keys of its section and ConfigSection, builder, and why it cannot run, "" if it can."""

    name: str
    schema: Schema
    config: Schema
    build: Callable[[LayerContext], None]
    refused: str = ""


LAYER_TYPES: Registry[LayerType] = Registry("the layer type", "n2d2py.operators.catalog", "n2d2py.frontend.ini.transformations")


Build = Callable[[LayerContext], None]


def ini(
    name: str,
    *keys: Key,
    doc: str,
    base: Schema = LAYER,
    accepted: tuple[Ignored, ...] = (),
    config: tuple[Key, ...] = (),
    config_accepted: tuple[Ignored, ...] = (),
    refused: str = "",
) -> Callable[[Build], Build]:
    """Decorate the builder of layers of `Type=name`, whose section has these keys and those of `base`.

    `config`, `config_accepted`: of its ConfigSection; `refused`: why layers of this type cannot run.
    """

    def declare(build: Build) -> Build:
        schema = base.extended(*keys, name=name, accepted=accepted, doc=doc)
        configuration = CONFIGURATION.extended(*config, name=f"{name} configuration", accepted=config_accepted)
        LAYER_TYPES.add(name, LayerType(name, schema, configuration, build, refused))
        return build

    return declare


def layer_types() -> dict[str, LayerType]:
    """Return all layer types by name."""
    return LAYER_TYPES.snapshot()
