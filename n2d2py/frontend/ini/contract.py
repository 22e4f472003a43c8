"""Declaration of a type of layer section: its keys, and a function that adds its nodes to the Graph.

    @ini("Softmax", LAYER.extended(NB_OUTPUTS, name="Softmax", doc="Softmax over the channels."))
    def _from_ini(context: LayerContext) -> None:
        context.add(Softmax(), [context.joined()])

Plug-ins and the operators of this package say it alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.frontend.ini.fillers import fill
from n2d2py.frontend.ini.keys import CONFIGURATION
from n2d2py.frontend.ini.quantizers import trained_weights
from n2d2py.frontend.ini.weights import WeightStore
from n2d2py.graph import Graph, Node, complete_params
from n2d2py.graph.shapes import MAX_ELEMENTS, Shape
from n2d2py.ini.schema import Schema, Values
from n2d2py.operators.base import Op, make_operator
from n2d2py.operators.functions import FunctionRow
from n2d2py.registry import Registry


@dataclass
class LayerContext:
    """One layer section being built: its values, its inputs, and helpers that add nodes to the graph.

    Attributes:
        parents: section name and tensor of each input, in order.
        weights: None when shapes are all that is wanted (-describe): parameters are then zeros that take no memory.
        rows: weights of each output, once they are asked for.
        connected: bool (O, C), the inputs that each output reads, where only the weights of these are stored; else None.
        weight_scales: scales of the weights that were asked for, where they are integers times it (QWeight).
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
        """Shapes of the inputs."""
        return [self.graph.shape(tensor) for _, tensor in self.parents]

    def joined(self) -> str:
        """The input tensor; several inputs are concatenated along their channels."""
        tensors = [tensor for _, tensor in self.parents]
        if len(tensors) == 1:
            return tensors[0]
        return self.helper("concat", make_operator("Concat"), self.aligned())

    def aligned(self) -> list[str]:
        """The input tensors; vectors become maps of one pixel where the others are such maps."""
        ranks = {len(shape) for shape in self.shapes}
        if ranks != {2, 4} or any(size != 1 for shape in self.shapes for size in shape[2:]):
            return [tensor for _, tensor in self.parents]
        return [
            self.helper(f"pixel{index}", make_operator("Reshape", (shape[1], 1, 1)), [tensor]) if len(shape) == 2 else tensor
            for index, ((_, tensor), shape) in enumerate(zip(self.parents, self.shapes, strict=True))
        ]

    def helper(self, suffix: str, op: Op, inputs: list[str], params: dict[str, np.ndarray] | None = None) -> str:
        """Appends a node that prepares the inputs of the layer's own; returns its output tensor."""
        document, name = self.values.section.document, f"{self.name}_{suffix}"
        while name in self.graph.tensors or name in document:
            name += "_"
        return self.graph.add(
            Node(name, op, inputs, [name], params or {}, location=self.values.section.location, helper=True)
        ).output

    def add(
        self,
        op: Op,
        inputs: list[str],
        params: Mapping[str, np.ndarray | None] | None = None,
        activation: FunctionRow | None = None,
    ) -> Node:
        """Appends the layer's node."""
        where = self.values.section.location
        given, unbiased = complete_params(params or {})
        if self.weight_scales is not None:
            given["weight_scales"] = self.weight_scales
        return self.graph.add(Node(self.name, op, inputs, [self.name], given, activation, where, unbiased=unbiased))

    def parameter(
        self,
        name: str,
        shape: tuple[int, ...],
        default: np.ndarray | None = None,
        rows: Sequence[int] | None = None,
        order: Sequence[int] = (),
    ) -> np.ndarray:
        """Array "weights", "biases", "scales", ... of this layer: stored, else `default`, else filled.

        `rows`: of weights, how many each output has; by default all the same, outputs first in `shape`. `order`: which axis of
        `shape` each axis of a stored array is; its values come in the order in which they are stored.

        Raises:
            N2D2Error: E229 for a shape that is too large, and what loading raises.
        """
        if prod(shape) > MAX_ELEMENTS:
            raise self.fail(
                "E229",
                f"the layer requires {prod(shape):,} {name} ({'x'.join(map(str, shape))}), more than the limit of {MAX_ELEMENTS:,}",
                "correct NbOutputs and the dimensions of its input",
            )
        if self.weights is None:
            return np.broadcast_to(np.float32(0), shape)
        if default is None:
            role = {"weights": "Weights", "biases": "Bias"}[name]
            default = fill(self.values, role, shape, seed=self.seed, name=self.name)
        if name == "weights":
            self.rows = (prod(shape[1:]),) * shape[0] if rows is None else tuple(rows)
        trains = self.weights.recipes is not None
        if name == "weights" and not trains and "QWeight" in self.values and self.values["QWeight"]:
            found, self.weight_scales = trained_weights(self.values, self.weights, self.name, default, self.rows, order)
            return found
        return self.weights.load(self.name, name, default, self.values.section.location, self.rows, order)

    def fail(self, code: str, what: str, remedy: str, key: str | None = None) -> N2D2Error:
        """The error for this section, at the line of `key` when given."""
        return self.values.fail(code, what, remedy, key)

    def cannot_run(self, code: str, what: str, remedy: str, key: str | None = None) -> None:
        """Refuses a layer whose dimensions are known but which cannot be computed.

        Raises:
            N2D2Error: `code`; with -describe it is the warning W226 instead.
        """
        error = self.fail(code, what, remedy, key)
        if self.weights is not None:
            raise error
        log.warning("W226", f"the layer can be described but not run: {what}", where=error.where, remedy=remedy)


@dataclass(frozen=True)
class LayerType:
    """A value of `Type=`: the keys of its section and of its ConfigSection, its builder, and why it cannot run, "" where it can."""

    name: str
    schema: Schema
    config: Schema
    build: Callable[[LayerContext], None]
    refused: str = ""


LAYER_TYPES: Registry[LayerType] = Registry("the layer type", "n2d2py.operators.catalog", "n2d2py.frontend.ini.transformations")
"""The values of `Type=`."""


Build = Callable[[LayerContext], None]


def ini(name: str, schema: Schema, config: Schema = CONFIGURATION, refused: str = "") -> Callable[[Build], Build]:
    """Decorator: makes a function build the layers of `Type=name`, whose section has the keys of `schema`.

    `config`: the keys of its ConfigSection; `refused`: why layers of this type cannot run.

    Raises:
        InternalError: when the name has another one.
    """

    def declare(build: Build) -> Build:
        LAYER_TYPES.add(name, LayerType(name, schema, config, build, refused))
        return build

    return declare


def layer_types() -> dict[str, LayerType]:
    """All layer types by name."""
    return LAYER_TYPES.snapshot()
