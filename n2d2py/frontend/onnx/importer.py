"""Conversion of an ONNX model to a Graph in one walk over its nodes.

A node is folded if all its inputs are known; otherwise the converter of its operator adds layers. A node that cannot be
imported does not stop the walk: its outputs get the shapes that ONNX infers. One error then lists all unsupported nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import onnx

from n2d2py import log
from n2d2py.contracts.onnx.nodes import MOVES, Builder, OnnxNode, Unsupported, find_converter, operator_key
from n2d2py.contracts.onnx.tensors import MergesBatchAxis, MixesSamples, refuse_misfits
from n2d2py.errors import ErrorList, InternalError, N2D2Error, readable
from n2d2py.frontend.onnx import folding
from n2d2py.frontend.onnx.batch_values import BatchValues, refuse_mixed_samples
from n2d2py.frontend.onnx.control_flow import LOOPS, SEQUENCES, body_nodes, expand_sequence, unroll_loop
from n2d2py.frontend.onnx.expansion import expand_functions
from n2d2py.frontend.onnx.inputs_outputs import add_inputs, set_outputs
from n2d2py.frontend.onnx.model import OnnxModel, load_onnx, to_array
from n2d2py.frontend.onnx.parts import EXPANSIONS, Expansion, Parts
from n2d2py.frontend.onnx.preflight import Preflight, RefusedNodes, nan_constants, unknown_operator
from n2d2py.frontend.onnx.states import check_states, keep_state_images, propose_constants
from n2d2py.frontend.onnx.validator import Validator
from n2d2py.graph import Graph, Shape, Tensor, elements
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.conv import Conv, Fc
from n2d2py.operators.normalize.decomposed import import_decomposed_norm

_CONVERTED_TYPES = {"float16": "half", "bfloat16": "bfloat16", "float64": "double"}
"""Weight types that are converted to float32."""

_INTEGER_OPERATORS = tuple(
    """
    DequantizeLinear Clip MaxPool GlobalMaxPool Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Slice Gather
    Identity Dropout DepthToSpace SpaceToDepth Pad Resize Upsample ArgMax ArgMin
    """.split()
)
"""Operators that may read quantized integers: they move, average or rank values. All but the last two keep scale and zero point."""


def import_onnx(
    model: OnnxModel | onnx.ModelProto | str | Path, name: str | None = None, *, input_shapes: Mapping[str, Shape] | None = None
) -> Graph:
    """Return the Graph of an ONNX model: float32, batch 1, layers named after the first outputs of their nodes.

    `input_shapes` replaces the declared shapes of inputs (batch 1 included). An input that the model transposes from NHWC
    becomes CHW, with a notice.

    Raises:
        N2D2Error: E30x from `load_onnx`; E305 unknown input shape, E306 weights that are not finite,
            E310 (one for each kind of unsupported node), E311 an output without layer, E2xx shapes.
    """
    if not isinstance(model, OnnxModel):
        model = load_onnx(model)
    expand_functions(model)
    title, shapes = name or readable(Path(model.path).stem), dict(input_shapes or {})
    if model.batch is None:
        try:
            return _build_graph(model, title, shapes)
        except N2D2Error as refusal:
            mixing = _refused_nodes(refusal, MixesSamples)
            if not mixing:
                raise
            what = f"the open batch is set to 1, as the layer mixes its samples: {mixing[0].refusal}"
            log.warning("W307", what, where=mixing[0].where, remedy="add -input-shape with a 1 in front to say so")
            model.batch = 1
    if model.batch == 1 or shapes:
        return _build_graph(model, title, shapes)
    # a first axis of fixed size: a batch if no layer mixes its samples, else a part of each sample
    try:
        return _build_graph(model, title, shapes)
    except N2D2Error as refusal:
        try:
            return _build_graph(model, title, shapes, whole=True)
        except N2D2Error as other:
            lines = {error.line() for error in other.errors}  # of both interpretations of the first axis
            ErrorList.raise_if([error for error in refusal.errors if error.line() in lines])
            raise (other if _refused_nodes(refusal, MergesBatchAxis) else refusal) from None


def _refused_nodes(error: N2D2Error, kind: type[Unsupported]) -> list[RefusedNodes]:
    """Return the errors for nodes that are refused in this way."""
    return [one for one in error.errors if isinstance(one, RefusedNodes) and isinstance(one.refusal, kind)]


def _build_graph(model: OnnxModel, title: str, input_shapes: Mapping[str, Shape], whole: bool = False) -> Graph:
    builder = Builder(model, Graph(title), whole, _has_plain_integers(model.proto.graph))
    add_inputs(builder, input_shapes)
    _Walk(builder).run()
    if not model.options.load_weights:
        set_initial_values(builder.graph, model.options.seed)
    set_outputs(builder)
    graph = builder.graph
    graph.states = len(model.states)
    ends = zip(model.states, graph.state_inputs, graph.state_outputs, strict=True)
    tensors = {name: tensor for pair, *both in ends for name, tensor in zip(pair, both, strict=True)}
    check_states(model, {name: elements(graph.shape(tensor)) for name, tensor in tensors.items()})
    keep_state_images(graph)
    builder.graph.prune()
    other = {_CONVERTED_TYPES[a.dtype.name] for a in model.constants.values() if a.dtype.name in _CONVERTED_TYPES and a.ndim}
    if other:
        log.notice("%s: %s weights are converted to float32", model.path, " and ".join(sorted(other)))
    builder.graph.verify()
    _refuse_not_numbers(builder)
    refuse_mixed_samples(model)
    return builder.graph


def _has_plain_integers(graph: onnx.GraphProto) -> bool:
    """True if no node computes with integers of a static scale: dequantized network tensors are only model outputs."""
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if set(node.input) <= constants:
            constants.update(node.output)
    written = {name for node in graph.node for name in node.output}
    static = [
        node
        for node in graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] not in constants and node.input[1] in constants
    ]
    real = {name for node in static for name in node.output}
    return (
        not any(node.op_type.startswith(("QLinear", "QGemm")) for node in graph.node)
        and not any(node.input[0] in written for node in static)
        and not any(name in real for node in graph.node for name in node.input)
    )


_CONSTANT = re.compile(r"operand\d+")
"""Tensor name of a constant operand of an array layer."""


def _refuse_not_numbers(builder: Builder) -> None:
    parameters = {node.name: (node, what) for node, what in reversed(list(nan_constants(builder.graph)))}
    errors, remedy = [], "train or export the model again"
    for node, name in reversed(parameters.values()):
        what = f"the {_CONSTANT.sub('constant', name)} of the layer contains NaN"
        errors.append(N2D2Error("E306", what, where=node.location, remedy=remedy))
    ErrorList.raise_if(errors)


class _Walk:
    """Walk over the nodes in order; refusals are collected and raised at the end as one list."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self._preflight = Preflight(builder.model, builder.constants)
        self._blocked: set[str] = set()
        self._sequences: dict[str, list[str]] = {}
        self._room = folding.constant_budget(builder.constants)
        self._validator = Validator(builder)
        self._batch = BatchValues(builder.model.proto, builder.model.batch or 1) if builder.is_batched else None

    def run(self) -> None:
        for proto in self.builder.model.proto.graph.node:
            self._visit(proto)
        ErrorList.raise_if(self._preflight.errors())

    def _visit(self, proto: onnx.NodeProto) -> None:
        """Check and import one node, or skip it; collect its errors."""
        builder = self.builder
        if not any(builder.is_read(name) for name in proto.output):
            return
        if proto.output[0] in builder.model.options.ignore:
            self._skip(proto)
            return
        known = (builder.constants, self._blocked, self._sequences)
        missing = [
            name for name in proto.input if name and not builder.is_tensor(name) and not any(name in names for names in known)
        ]
        if missing:
            what = f"the node reads '{missing[0]}', which no earlier node produces"
            raise N2D2Error("E302", what, where=builder.model.place(proto.output[0]), remedy="export the model again")
        misfit = None
        try:
            misfit = self._validator.check(proto)
            follows_refusal = not self._blocked.isdisjoint(proto.input)
            self._import(proto)
            if misfit is not None and not follows_refusal:  # shapes after a refused node are not those of the file
                raise misfit
        except Unsupported as refusal:
            self._preflight.refuse(proto, refusal)
            self._mark_outputs(proto)
        except N2D2Error as error:
            self._preflight.fail(error)
            self._mark_outputs(proto)
        except MemoryError:
            raise
        except Exception as error:  # expected on invalid nodes only; on others it is a defect
            if misfit is None:
                raise InternalError(f"{proto.op_type} '{proto.output[0]}': {type(error).__name__}: {error}") from error
            self._preflight.fail(misfit)
            self._mark_outputs(proto)

    def _import(self, proto: onnx.NodeProto) -> None:
        """Fold, inline, expand or convert one checked node."""
        builder, key = self.builder, operator_key(proto.op_type, proto.domain)
        if key == "If" and self._inline_branch(proto):
            return
        if key in (*LOOPS, *SEQUENCES) and not self._blocked.isdisjoint(proto.input):
            self._mark_outputs(proto)
        elif key in LOOPS:
            self._expand(unroll_loop(Parts(proto, builder), builder))
        elif key in SEQUENCES or (key == "Identity" and proto.input[0] in self._sequences):
            self._replace(proto, partial(expand_sequence, sequences=self._sequences))
        elif any(name in self._blocked for name in proto.input):
            if find_converter(proto.op_type, proto.domain) is None and key not in (*folding.SHAPE_ARITHMETIC, *EXPANSIONS):
                raise unknown_operator(key)
            self._mark_outputs(proto)
        elif self._fold(proto) or self._drop_empty(proto):
            return
        elif key in EXPANSIONS:
            self._replace(proto, EXPANSIONS[key])
        else:
            self._convert(proto)

    def _fold(self, proto: onnx.NodeProto) -> bool:
        """Compute a node whose inputs are known, or that only reads a shape."""
        builder = self.builder
        if proto.op_type == "Constant" and [attribute.name for attribute in proto.attribute] == ["value"]:
            for name in proto.output:
                builder.constants[name] = to_array(proto.attribute[0].t, builder.model.path)
            return True
        reads_shape = proto.op_type in folding.SHAPE_READERS
        if not folding.is_foldable(proto) or not (
            reads_shape or all(name in builder.constants for name in proto.input if name)
        ):
            return False
        values = []
        for name in proto.input:
            known = name in builder.constants or not name
            values.append(builder.constants.get(name) if known else np.broadcast_to(np.float32(), builder.dims_of(name)))
        results = folding.evaluate(proto, values, builder.model.opset, self._room)
        if self._batch is not None:
            self._batch.fold(proto, values, results, builder.model.opset)
        for name, value in zip(proto.output, results, strict=True):
            self._room -= value.size
            if name:
                value.setflags(write=False)
                builder.constants[name] = value
        if proto.op_type in MOVES and proto.input[0] in builder.weight_scales:
            values = [builder.weight_scales.get(name, value) for name, value in zip(proto.input, values, strict=True)]
            builder.weight_scales.update(zip(proto.output, folding.evaluate(proto, values, builder.model.opset), strict=True))
        return True

    def _drop_empty(self, proto: onnx.NodeProto) -> bool:
        """Make an empty Slice a constant, and drop empty constants from a Concat: torch.roll by 0 has both."""
        constants = self.builder.constants
        if proto.op_type == "Concat":
            rest = [name for name in proto.input if name not in constants or constants[name].size]
            if 0 < len(rest) < len(proto.input):
                axis = onnx.helper.get_attribute_value(proto.attribute[0])
                self._convert(onnx.helper.make_node("Concat", rest, proto.output, axis=axis))
                return True
        empty = self._validator.empty.get(proto.output[0]) if proto.op_type == "Slice" else None
        if empty is None:
            return False
        constants[proto.output[0]] = np.empty(empty, np.float32)
        return True

    def _replace(self, proto: onnx.NodeProto, expansion: Expansion) -> None:
        """Import the nodes of an expansion."""
        parts = Parts(proto, self.builder)
        with refuse_misfits():
            expansion(parts)
        self._expand(parts.nodes)

    def _expand(self, parts: Iterable[onnx.NodeProto]) -> None:
        """Import the nodes that replace an operator."""
        for part in parts:
            self._visit(part)

    def _convert(self, proto: onnx.NodeProto) -> None:
        builder = self.builder
        converter = find_converter(proto.op_type, proto.domain)
        if converter is None:
            raise unknown_operator(operator_key(proto.op_type, proto.domain))
        integers = builder.integers.intersection(proto.input)
        if integers and proto.op_type not in _INTEGER_OPERATORS:
            raise Unsupported(f"its input is the integer tensor '{min(integers)}'", "put a DequantizeLinear before it")
        of_file = {} if self._batch is None else self._batch.of(proto, builder.constants)
        side_by_side = {name: builder.constants[name] for name in of_file}
        builder.constants.update(of_file)
        node = OnnxNode(proto, builder)
        if builder.is_batched or not import_decomposed_norm(node, builder):
            converter(node, builder)
        builder.constants.update(side_by_side)
        if integers and proto.op_type not in ("DequantizeLinear", "ArgMax", "ArgMin"):
            builder.integers.update(filter(None, proto.output))
        output = next(filter(None, proto.output), "")
        is_needed = output == proto.output[0] or builder.is_read(output)
        if is_needed and not builder.is_tensor(output) and output not in builder.constants:
            raise InternalError(f"the converter of {proto.op_type} returns no result for {output}")

    def _skip(self, proto: onnx.NodeProto) -> None:
        """Make the node's first output an alias of its first input."""
        builder = self.builder
        log.notice("%s: [%s] %s is ignored, as Ignore says", builder.model.path, proto.output[0], proto.op_type)
        self._rename(proto.input[0], proto.output[0])

    def _rename(self, source: str, result: str) -> None:
        """Give a constant or tensor another name; an unknown one stays unknown."""
        builder = self.builder
        if source in builder.constants:
            builder.constants[result] = builder.constants[source]
        elif builder.is_tensor(source):
            builder.rename(source, result)
        else:
            self._blocked.add(result)

    def _inline_branch(self, proto: onnx.NodeProto) -> bool:
        """Inline the branch of an If whose condition is known; both branches, and a choice, if no constant would decide."""
        builder = self.builder
        name = next(iter(proto.input), "")
        condition = builder.constants.get(name)
        if self._batch is not None:
            condition = self._batch.get(name, condition)
        if condition is None and (not builder.is_tensor(name) or propose_constants(builder.model)):
            return False
        branches = [
            {attribute.name: attribute.g for attribute in proto.attribute}.get(f"{way}_branch") for way in ("then", "else")
        ]
        size = elements(builder.dims_of(name)) if condition is None else condition.size
        if size != 1 or any(branch is None or len(branch.output) != len(proto.output) for branch in branches):
            raise Unsupported("its condition is not a single boolean, or its branches differ in the number of outputs")
        chosen = branches if condition is None else [branches[not condition]]
        results = zip(*(self._inline(branch) for branch in chosen if branch is not None), strict=True)
        for outer, (inner, *others) in zip(proto.output, results, strict=True):
            if not others:
                self._rename(inner, outer)
                continue
            if self._blocked.isdisjoint((inner, *others)) and len({*map(builder.known_shape, (inner, *others))}) > 1:
                raise Unsupported("its condition is computed at run time, and its branches have results of different shapes")
            self._visit(onnx.helper.make_node("Where", [name, inner, *others], [outer]))
        return True

    def _inline(self, branch: onnx.GraphProto) -> list[str]:
        """Import the nodes of a branch; return the names of its results."""
        names: dict[str, str] = {}
        self._expand(body_nodes(branch, names, self.builder))
        return [names.get(value.name, value.name) for value in branch.output]

    def _mark_outputs(self, proto: onnx.NodeProto) -> None:
        """Give the outputs of a refused node their inferred shapes, or mark them as unknown."""
        builder = self.builder
        for name in (each for each in proto.output if each and not builder.is_tensor(each)):
            shape = self._validator.shapes.get(name)
            if shape is None:
                self._blocked.add(name)
            else:
                builder.graph.tensors[name] = Tensor(name, shape)
                builder.names[name] = name


_NEUTRAL = {"bias": 0.0, "mean": 0.0, "scale": 1.0, "variance": 1.0}


def set_initial_values(graph: Graph, seed: int) -> None:
    """Initialize Conv, Fc and BatchNorm layers of a graph under construction instead of loading weights.

    Weights are normal with variance 2 / fan-in, batch normalization is the identity, biases are 0.
    """
    for index, node in enumerate(graph.nodes):
        if not isinstance(node.op, (Conv, Fc, BatchNorm)):
            continue
        for role, array in node.params.items():
            if role == "weights":
                deviation = np.sqrt(2.0 / np.prod(array.shape[1:]))
                normal = np.random.default_rng(seed + index).normal(0.0, deviation, array.shape)
                node.params[role] = normal.astype(np.float32)
            elif role in _NEUTRAL:
                node.params[role] = np.full(array.shape, _NEUTRAL[role], np.float32)
