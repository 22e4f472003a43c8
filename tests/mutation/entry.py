"""How a mutant is known that no test can tell from the original."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Equivalent"]


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
