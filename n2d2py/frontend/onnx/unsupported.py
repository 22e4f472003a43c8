"""The refusal of an ONNX node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Unsupported(Exception):
    """Why a node cannot be imported: `reason` and `remedy` are clauses, the same for every node they hit."""

    def __init__(self, reason: str, remedy: str | None = None):
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)


@contextmanager
def refusing_misfits() -> Iterator[None]:
    """Refuse a node whose inputs, attributes or inner graphs are not those that its operator has."""
    try:
        yield
    except (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError) as error:
        raise Unsupported("its inputs, attributes or body do not fit the operator", "export the model again") from error
