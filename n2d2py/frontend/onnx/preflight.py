"""Collection of import refusals, reported as one error for each kind."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.model import OnnxModel
from n2d2py.frontend.onnx.unsupported import Unsupported

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
_DEFAULT_REMEDY = "replace it by supported operators, or leave it out with Ignore if it has no effect"


@dataclass
class _Kind:
    operator: str
    reason: str
    remedy: str
    first: str
    count: int = 0


class Preflight:
    """The refused nodes of a model, by operator and reason."""

    def __init__(self, model: OnnxModel):
        self._model = model
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._failures: list[N2D2Error] = []

    def refuse(self, proto: onnx.NodeProto, refusal: Unsupported) -> None:
        """Record a node that no converter supports."""
        operator = proto.op_type if proto.domain in ("", "ai.onnx") else f"{proto.domain}::{proto.op_type}"
        remedy = refusal.remedy or _REMEDIES.get(proto.op_type, _DEFAULT_REMEDY)
        kind = self._kinds.setdefault(
            (operator, refusal.reason), _Kind(operator, refusal.reason, remedy, next(filter(None, proto.output), ""))
        )
        kind.count += 1

    def fail(self, error: N2D2Error) -> None:
        """Record an error of one layer, such as a shape mismatch."""
        self._failures.append(error)

    def errors(self) -> list[N2D2Error]:
        """Return one E310 for each operator and reason, with its count and first node; if there are none, the other errors.

        Layers after a refused node may fail only because of it; their errors wait for the next attempt.
        """
        found = []
        for kind in self._kinds.values():
            number = "1 node" if kind.count == 1 else f"{kind.count} nodes, the first one here"
            found.append(
                N2D2Error(
                    "E310",
                    f"{kind.operator} ({number}) cannot be imported: {kind.reason}",
                    where=self._model.place(kind.first),
                    remedy=kind.remedy,
                )
            )
        return found or self._failures
