"""Declaration of the replacement of a chain of layers by one layer; a pass runs it (`passes/fuse.py`).

@chain("fuse-double", "sums of a tensor with itself", ("Identity", "ElemWise"), integer=True)
def _becomes(first: Node, second: Node) -> Op | str:
    return Double() if second.inputs[0] == second.inputs[1] else "it adds two tensors"
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from n2d2py.registry import Registry

Becomes = Callable[..., Any]
"""Function from the nodes of a chain to the replacing operator (or operator and constants), or to the reason for none."""


@dataclass(frozen=True)
class Chain:
    """A chain of layers of `kinds`, first to last, that one layer can replace; `name` and `summary` are those of the pass.

    Attributes:
        integer: True for integer exports only, False for float exports only.
        last: runs after the built-in rewrites, whose results it may need, instead of before them.
    """

    name: str
    summary: str
    kinds: tuple[str, ...]
    becomes: Becomes
    integer: bool | None = None
    last: bool = False


CHAINS: Registry[Chain] = Registry("the chain", "n2d2py.operators.catalog")
"""The chains by name."""


def chain(
    name: str, summary: str, kinds: Sequence[str], *, integer: bool | None = None, last: bool = False
) -> Callable[[Becomes], Becomes]:
    """Register the decorated function for chains of these kinds, as in `Chain`. Raises InternalError if the name is in use."""

    def declare(becomes: Becomes) -> Becomes:
        CHAINS.add(name, Chain(name, summary, tuple(kinds), becomes, integer, last))
        return becomes

    return declare
