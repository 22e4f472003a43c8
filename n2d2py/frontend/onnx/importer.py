"""Conversion of an ONNX model to a Graph in one walk over its nodes.

A node is folded if all its inputs are known; otherwise the converter of its operator adds layers. A node that cannot be
imported does not stop the walk: its outputs get the shapes that ONNX infers. One error then lists all unsupported nodes.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from n2d2py import log
from n2d2py.contracts.onnx.nodes import MOVES, Builder, OnnxNode, Unsupported, find_converter, operator_key
from n2d2py.contracts.onnx.tensors import MergesBatchAxis, MixesSamples, refuse_misfits
from n2d2py.errors import ErrorList, InternalError, N2D2Error, readable
from n2d2py.frontend.onnx import folding
from n2d2py.frontend.onnx.control_flow import LOOPS, SEQUENCES, body_nodes, expand_sequence, unroll_loop
from n2d2py.frontend.onnx.cut import propose_outputs
from n2d2py.frontend.onnx.inputs_outputs import add_inputs, set_outputs
from n2d2py.frontend.onnx.model import OnnxModel, load_onnx, to_array
from n2d2py.frontend.onnx.parts import EXPANSIONS, Expansion, Parts, expand_functions
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

    Raises N2D2Error: E30x from `load_onnx`; E305 unknown input shape, E306 weights that are not finite, E310 (one for each
    kind of unsupported node), E311 an output without layer, E2xx shapes.
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


def _refused_nodes(error: N2D2Error, kind: type[Unsupported]) -> list[_RefusedNodes]:
    return [one for one in error.errors if isinstance(one, _RefusedNodes) and isinstance(one.refusal, kind)]


def _build_graph(model: OnnxModel, title: str, input_shapes: Mapping[str, Shape], whole: bool = False) -> Graph:
    builder = Builder(model, Graph(title), whole, _has_plain_integers(model.proto.graph))
    add_inputs(builder, input_shapes)
    _Walk(builder).run()
    if not model.options.load_weights:
        _set_initial_values(builder.graph, model.options.seed)
    set_outputs(builder)
    graph = builder.graph
    graph.states = len(model.states)
    check_states(model, graph)
    keep_state_images(graph)
    graph.prune()
    other = {_CONVERTED_TYPES[a.dtype.name] for a in model.constants.values() if a.dtype.name in _CONVERTED_TYPES and a.ndim}
    if other:
        log.notice("%s: %s weights are converted to float32", model.path, " and ".join(sorted(other)))
    graph.verify()
    _refuse_nan(graph)
    folding.refuse_mixed_samples(model)
    return graph


def _has_plain_integers(graph: onnx.GraphProto) -> bool:
    """True if no node computes with integers of a static scale: dequantized network tensors are only model outputs."""
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if set(node.input) <= constants:
            constants.update(node.output)
    written = {name for node in graph.node for name in node.output}
    dequantized = [node for node in graph.node if node.op_type == "DequantizeLinear"]
    static = [node for node in dequantized if node.input[0] not in constants and node.input[1] in constants]
    has_forms = any(node.op_type.startswith(("QLinear", "QGemm")) for node in graph.node)
    read = {name for node in graph.node for name in node.input}
    return not has_forms and not any(node.input[0] in written or not read.isdisjoint(node.output) for node in static)


class _Walk:
    """Walk over the nodes in order; refusals are collected and raised at the end as one list."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self._refused: list[tuple[onnx.NodeProto, Unsupported]] = []
        self._failures: list[N2D2Error] = []
        """Errors of single layers, such as a shape mismatch; after a refused node they may only follow from it."""
        self._blocked: set[str] = set()
        self._sequences: dict[str, list[str]] = {}
        self._validator = Validator(builder, builder.constants)
        self._batch = folding.BatchValues(builder.model.proto, (builder.is_batched and builder.model.batch) or 1)
        self._batch_validator = Validator(builder, ChainMap(self._batch.values, builder.constants))

    def run(self) -> None:
        for proto in self.builder.model.proto.graph.node:
            self._visit(proto)
        refused = _refused_errors(self.builder, self._refused)
        ErrorList.raise_if([*refused] or self._failures)

    def _visit(self, proto: onnx.NodeProto) -> None:
        builder = self.builder
        if builder.read.isdisjoint(proto.output):
            return
        if proto.output[0] in builder.model.options.ignore:
            log.notice("%s: [%s] %s is ignored, as Ignore says", builder.model.path, proto.output[0], proto.op_type)
            self._rename(proto.input[0], proto.output[0])
            return
        self._need_inputs(proto)
        misfit = None
        try:
            misfit = self._validator.check(proto)
            follows_refusal = not self._blocked.isdisjoint(proto.input)
            self._import(proto)
            if misfit is not None and not follows_refusal:  # shapes after a refused node are not those of the file
                raise misfit
        except Unsupported as refusal:
            self._refused.append((proto, refusal))
        except N2D2Error as error:
            self._failures.append(error)
        except MemoryError:
            raise
        except Exception as error:  # expected on invalid nodes only; on others it is a defect
            if misfit is None:
                raise InternalError(f"{proto.op_type} '{proto.output[0]}': {type(error).__name__}: {error}") from error
            self._failures.append(misfit)
        else:
            return
        self._mark_outputs(proto)

    def _need_inputs(self, proto: onnx.NodeProto) -> None:
        """Raise E302 if no earlier node produces an input."""
        known = (self.builder.constants, self._blocked, self._sequences)
        for name in proto.input:
            if name and not self.builder.is_tensor(name) and not any(name in names for names in known):
                what = f"the node reads '{name}', which no earlier node produces"
                raise N2D2Error("E302", what, where=self.builder.model.place(proto.output[0]), remedy="export the model again")

    def _import(self, proto: onnx.NodeProto) -> None:
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
                raise _unknown_operator(key)
            self._mark_outputs(proto)
        elif self._fold(proto) or self._drop_empty(proto):
            return
        elif key in EXPANSIONS:
            self._replace(proto, EXPANSIONS[key])
        else:
            self._convert(proto)

    def _fold(self, proto: onnx.NodeProto) -> bool:
        builder = self.builder
        if proto.op_type == "Constant" and [attribute.name for attribute in proto.attribute] == ["value"]:
            for name in proto.output:
                builder.constants[name] = to_array(proto.attribute[0].t, builder.model.path)
            return True
        unknown = [name for name in proto.input if name and name not in builder.constants]
        if not folding.is_foldable(proto) or (unknown and proto.op_type not in folding.SHAPE_READERS):
            return False
        shapes = {name: np.broadcast_to(np.float32(), builder.dims_of(name)) for name in unknown}
        values = [shapes.get(name, builder.constants.get(name)) for name in proto.input]
        results = folding.evaluate(proto, values, builder.model.opset)
        self._batch.fold(proto, values, results, builder.model.opset, self._batch_validator.check)
        for name, value in zip(proto.output, results, strict=True):
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
        parts = Parts(proto, self.builder)
        with refuse_misfits():
            expansion(parts)
        self._expand(parts.nodes)

    def _expand(self, parts: Iterable[onnx.NodeProto]) -> None:
        for part in parts:
            self._visit(part)

    def _convert(self, proto: onnx.NodeProto) -> None:
        builder = self.builder
        converter = find_converter(proto.op_type, proto.domain)
        if converter is None:
            raise _unknown_operator(operator_key(proto.op_type, proto.domain))
        integers = builder.integers.intersection(proto.input)
        if integers and proto.op_type not in _INTEGER_OPERATORS:
            raise Unsupported(f"its input is the integer tensor '{min(integers)}'", "put a DequantizeLinear before it")
        of_file = self._batch.of(proto, builder.constants)
        side_by_side = {name: builder.constants[name] for name in of_file}
        builder.constants.update(of_file)
        node = OnnxNode(proto, builder)
        if builder.is_batched or not import_decomposed_norm(node, builder):
            converter(node, builder)
        builder.constants.update(side_by_side)
        if integers and proto.op_type not in ("DequantizeLinear", "ArgMax", "ArgMin"):
            builder.integers.update(filter(None, proto.output))
        output = next(filter(None, proto.output), "")
        is_needed = output == proto.output[0] or output in builder.read
        if is_needed and not builder.is_tensor(output) and output not in builder.constants:
            raise InternalError(f"the converter of {proto.op_type} returns no result for {output}")

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
        condition = self._batch.values.get(name, builder.constants.get(name))
        if condition is None and (not builder.is_tensor(name) or propose_constants(builder.model)):
            return False
        bodies = {attribute.name: attribute.g for attribute in proto.attribute}
        branches = [bodies.get("then_branch"), bodies.get("else_branch")]
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
        results: list[str] = []
        self._expand(body_nodes(branch, [value.name for value in branch.input], results, self.builder))
        return results

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


def _set_initial_values(graph: Graph, seed: int) -> None:
    """Set weights to normal values of variance 2 / fan-in, batch normalization to the identity, biases to 0."""
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


# ---- refusals -----------------------------------------------------------------------------------
_REMEDIES = {
    "ArgMax": "let the model end with the scores",
    "TopK": "export it with a number of elements that is known, or let the model end with the scores",
    "NonMaxSuppression": "let the model end before its post-processing",
    **dict.fromkeys(("NonZero", "Range", "Unique"), "export it without results whose sizes depend on the values of the inputs"),
    "Loop": "export the model without control flow",
    "Scan": "export the model without control flow",
    "If": "export the model without it",
}
_REASONS = {
    **dict.fromkeys(("NonZero", "Range", "Unique", "ConstantOfShape"), "the size of its result is computed at run time"),
    **dict.fromkeys(("Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike"), "its result is random"),
    **dict.fromkeys(("ImageDecoder", "RegexFullMatch", "StringNormalizer", "TfIdfVectorizer"), "it reads files or text"),
    "If": "its condition is computed at run time",
    "MelWeightMatrix": "its inputs are computed at run time",
    "ai.onnx.ml": "trees, linear models and their encoders are not supported",
    "ai.onnx.preview.training": "it trains a network",
}
"""Reasons for operators without converter, by operator or domain."""
_OTHER_SIZES = "give the sizes that the model is made for with -input-shape; or "
_DEFAULT_REMEDY = "replace it by supported operators, or leave it out with Ignore if it has no effect"


def _unknown_operator(key: str) -> Unsupported:
    """Return the refusal of an operator without converter, by its registry key."""
    return Unsupported(_REASONS.get(key) or _REASONS.get(key.split("::")[0], "the operator is not supported"))


class _RefusedNodes(N2D2Error):
    """E310 for the refused nodes of one operator and reason; `refusal` is that of the first, None in another process."""

    refusal: Unsupported | None = None


def _refused_errors(builder: Builder, refused: list[tuple[onnx.NodeProto, Unsupported]]) -> list[_RefusedNodes]:
    """Return one E310 for each operator and reason of the refused nodes, with its count and first node."""
    model = builder.model
    groups: dict[tuple[str, str], list[tuple[onnx.NodeProto, Unsupported]]] = {}
    for node, refusal in refused:
        groups.setdefault((operator_key(node.op_type, node.domain), refusal.reason), []).append((node, refusal))
    errors, ending = [], _ending(builder, {_result(node) for node, _ in refused})
    for (operator, reason), nodes in groups.items():
        node, refusal = nodes[0]
        default = f"{_OTHER_SIZES * model.has_given_sizes}{_DEFAULT_REMEDY}"
        remedy = refusal.remedy or _REMEDIES.get(node.op_type, default)
        if operator == "If" and (fixed := propose_constants(model)):
            remedy = f"give the input that its condition depends on a fixed value: -constants {fixed}; or {remedy}"
        number = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes, the first one here"
        what = f"{operator} ({number}) cannot be imported: {reason}"
        errors.append(_RefusedNodes("E310", what, where=model.place(_result(node)), remedy=remedy + ending))
        errors[-1].refusal = refusal
    return errors


def _result(node: onnx.NodeProto) -> str:
    return next(filter(None, node.output), "")


def _ending(builder: Builder, refused: set[str]) -> str:
    """Return the remedy that leaves the nodes with the results `refused`, and all after them, out."""
    model, constants = builder.model, builder.constants
    writers = [node for node in model.proto.graph.node if not refused.isdisjoint(node.output)]
    has_inner = any(attribute.HasField("g") for node in writers for attribute in node.attribute)
    if model.places or has_inner or not refused <= {name for node in writers for name in node.output}:
        return ""
    nodes = [(node.input, node.output) for node in model.proto.graph.node if not all(name in constants for name in node.output)]
    return propose_outputs(nodes, refused, model.outputs)


def _refuse_nan(graph: Graph) -> None:
    """Raise E306 for each layer with a constant or an attribute that contains a NaN; infinities are allowed."""
    errors = []
    for node in graph.nodes:
        values = (*node.params.items(), ("attributes", node.op), ("activation", node.activation))
        name = next((name for name, value in values if _has_nan(value)), None)
        if name is not None:
            what = f"the constant '{name}' of the layer contains NaN"
            errors.append(N2D2Error("E306", what, where=node.location, remedy="train or export the model again"))
    ErrorList.raise_if(errors)


def _has_nan(value: Any) -> bool:
    if isinstance(value, (float, np.floating, np.ndarray)):
        array = np.asarray(value)
        return array.dtype.kind == "f" and bool(np.isnan(array).any())
    parts = value if isinstance(value, (tuple, list)) else ()
    parts = [getattr(value, field.name) for field in fields(value)] if is_dataclass(value) else parts
    return any(_has_nan(part) for part in parts if not isinstance(part, (int, str)))
