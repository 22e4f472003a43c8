"""The refusal of an ONNX node."""

from __future__ import annotations


class Unsupported(Exception):
    """Why a node cannot be imported: `reason` and `remedy` are clauses, the same for every node they hit."""

    def __init__(self, reason: str, remedy: str | None = None):
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)
