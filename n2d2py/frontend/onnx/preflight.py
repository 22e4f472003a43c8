"""Collection of import refusals, reported as one error for each kind."""

from __future__ import annotations

import onnx

from n2d2py.contracts.onnx.nodes import Unsupported, operator_key
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.model import OnnxModel

_REMEDIES = {
    "ArgMax": "let the model end with the scores",
    "TopK": "export it with a number of elements that is known, or let the model end with the scores",
    "NonMaxSuppression": "let the model end before its post-processing",
    "Loop": "export the model without control flow",
    "Scan": "export the model without control flow",
    "If": "where its condition depends on an input such as a rate, fix that with the export parameter Constants=NAME:VALUE; "
    "else export the "
    "model without it",
}
_OTHER_SIZES = "give the sizes that the model is made for with -input-shape; or "
_DEFAULT_REMEDY = "replace it by supported operators, or leave it out with Ignore if it has no effect"


class Preflight:
    """The refused nodes of a model, by operator and reason."""

    def __init__(self, model: OnnxModel):
        self._model = model
        self._refused: dict[tuple[str, str], tuple[str, list[str]]] = {}
        """By (operator, reason): the remedy, and the first output of each node."""
        self._failures: list[N2D2Error] = []

    def refuse(self, proto: onnx.NodeProto, refusal: Unsupported) -> None:
        """Record a node that no converter supports."""
        key = operator_key(proto.op_type, proto.domain), refusal.reason
        default = f"{_OTHER_SIZES * self._model.has_given_sizes}{_DEFAULT_REMEDY}"
        remedy = refusal.remedy or _REMEDIES.get(proto.op_type, default)
        self._refused.setdefault(key, (remedy, []))[1].append(next(filter(None, proto.output), ""))

    def fail(self, error: N2D2Error) -> None:
        """Record an error of one layer, such as a shape mismatch."""
        self._failures.append(error)

    def errors(self) -> list[N2D2Error]:
        """Return one E310 for each operator and reason, with its count and first node; if there are none, the other errors.

        Layers after a refused node may fail only because of it; their errors wait for the next attempt.
        """
        errors = []
        for (operator, reason), (remedy, names) in self._refused.items():
            number = "1 node" if len(names) == 1 else f"{len(names)} nodes, the first one here"
            what = f"{operator} ({number}) cannot be imported: {reason}"
            errors.append(N2D2Error("E310", what, where=self._model.place(names[0]), remedy=remedy))
        return errors or self._failures
