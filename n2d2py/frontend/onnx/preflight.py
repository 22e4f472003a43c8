"""Refusals of a network at its import: nodes, one error for each kind, and constants that are not numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import onnx

from n2d2py.contracts.onnx.nodes import Unsupported, operator_key
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.cut import propose_outputs
from n2d2py.frontend.onnx.model import OnnxModel
from n2d2py.frontend.onnx.states import propose_constants
from n2d2py.graph import Graph, Node

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


def unknown_operator(key: str) -> Unsupported:
    """Return the refusal of an operator without converter, by its registry key."""
    return Unsupported(_REASONS.get(key) or _REASONS.get(key.split("::")[0], "the operator is not supported"))


class RefusedNodes(N2D2Error):
    """E310 for the refused nodes of one operator and reason; `refusal` is that of the first, None in another process."""

    refusal: Unsupported | None = None


class Preflight:
    """The refused nodes of a model, by operator and reason."""

    def __init__(self, model: OnnxModel, constants: Mapping[str, np.ndarray]):
        self._model, self._constants = model, constants.keys()
        self._refused: dict[tuple[str, str], tuple[Unsupported, str, list[str]]] = {}
        """By (operator, reason): the first refusal, the remedy, and the first output of each node."""
        self._failures: list[N2D2Error] = []

    def refuse(self, proto: onnx.NodeProto, refusal: Unsupported) -> None:
        """Record a node that no converter supports."""
        key = operator_key(proto.op_type, proto.domain), refusal.reason
        default = f"{_OTHER_SIZES * self._model.has_given_sizes}{_DEFAULT_REMEDY}"
        remedy = refusal.remedy or _REMEDIES.get(proto.op_type, default)
        self._refused.setdefault(key, (refusal, remedy, []))[2].append(next(filter(None, proto.output), ""))

    def fail(self, error: N2D2Error) -> None:
        """Record an error of one layer, such as a shape mismatch."""
        self._failures.append(error)

    def errors(self) -> list[N2D2Error]:
        """Return one E310 for each operator and reason, with its count and first node; if there are none, the other errors.

        Layers after a refused node may fail only because of it; their errors wait for the next attempt.
        """
        errors, ending = [], self._ending()
        for (operator, reason), (refusal, remedy, names) in self._refused.items():
            if operator == "If" and (constants := propose_constants(self._model)):
                remedy = f"give the input that its condition depends on a fixed value: -constants {constants}; or {remedy}"
            number = "1 node" if len(names) == 1 else f"{len(names)} nodes, the first one here"
            what = f"{operator} ({number}) cannot be imported: {reason}"
            errors.append(RefusedNodes("E310", what, where=self._model.place(names[0]), remedy=remedy + ending))
            errors[-1].refusal = refusal
        return errors or self._failures

    def _ending(self) -> str:
        """Return the remedy that leaves the refused nodes and all after them out."""
        graph, refused = self._model.proto.graph, {name for *_, names in self._refused.values() for name in names}
        writers = [node for node in graph.node if not refused.isdisjoint(node.output)]
        has_inner = any(attribute.HasField("g") for node in writers for attribute in node.attribute)
        if self._model.places or has_inner or not refused <= {name for node in writers for name in node.output}:
            return ""
        nodes = [(node.input, node.output) for node in graph.node if not self._constants >= set(node.output)]
        option = propose_outputs(nodes, refused, self._model.outputs)
        return option and f"; or end the model before it: {option}"


def nan_constants(graph: Graph) -> Iterator[tuple[Node, str]]:
    """Yield (layer, name of the constant or attribute) for all that hold a NaN. Infinities are allowed."""
    for node in graph.nodes:
        for role, array in node.params.items():
            if array.dtype.kind == "f" and np.isnan(array).any():
                yield node, role
        for part in (node.op, node.activation):
            for name in _nan_fields(part):
                yield node, name


def _nan_fields(part: Any) -> Iterator[str]:
    """Yield the fields of an operator or activation that hold a NaN."""
    for field in fields(part) if is_dataclass(part) else ():
        if _is_nan(getattr(part, field.name)):
            yield field.name


def _is_nan(value: Any) -> bool:
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, (tuple, list)):
        return any(_is_nan(item) for item in value if not isinstance(item, (int, str)))
    return is_dataclass(value) and any(True for _ in _nan_fields(value))
