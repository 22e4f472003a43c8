"""Declaration of the replacement of a chain of layers by one layer; a pass runs it (`passes/chain.py`).

@chain("fuse-double", "sums of a tensor with itself", ("Identity", "ElemWise"), integer=True)
def _becomes(first: Node, second: Node) -> Op | str:
    return Double() if second.inputs[0] == second.inputs[1] else "it adds two tensors"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from n2d2py.registry import Registry

Becomes = Callable[..., Any]
"""From the nodes of a chain to the operator (or it and its constants) in their place, or the reason why there is none."""


@dataclass(frozen=True)
class Chain:
    """The chain of `kinds`, first to last, replaced by the result of `becomes` for its nodes.

    Attributes:
        name, summary: of the pass, for reports.
        integer: whether it is for integer exports alone (True) or for those in floating point alone (False).
        last: whether it runs after the rewrites of this package, whose results it may need, or before them.
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
    """Decorator: replaces chains of these kinds by what a function makes of their nodes; the rest as in `Chain`.

    Raises:
        InternalError: when another chain has the name.
    """

    def declare(becomes: Becomes) -> Becomes:
        CHAINS.add(name, Chain(name, summary, tuple(kinds), becomes, integer, last))
        return becomes

    return declare
