"""Exception for an ONNX node that cannot be imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Unsupported(Exception):
    """Refusal of a node: `reason` and `remedy` are clauses, the same for every affected node."""

    def __init__(self, reason: str, remedy: str | None = None):
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)


@contextmanager
def refuse_misfits() -> Iterator[None]:
    """Refuse a node whose inputs, attributes or subgraphs do not match its operator."""
    try:
        yield
    except (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError) as error:
        raise Unsupported("its inputs, attributes or body do not fit the operator", "export the model again") from error
