"""Mutants that no test can tell from the original, each with the reason: what they change makes no difference to any result.

They are known by file, function, original text and mutated text, so that lines may move.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EQUIVALENT", "Equivalent"]


@dataclass(frozen=True)
class Equivalent:
    """A mutant and why it is equivalent."""

    file: str
    function: str
    original: str
    mutated: str
    reason: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """As `mutants.Mutant.key`."""
        return self.file, self.function, self.original, self.mutated


EQUIVALENT: tuple[Equivalent, ...] = ()
