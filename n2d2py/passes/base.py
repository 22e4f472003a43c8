"""The contract of a rewrite, its checks, and the report of what was rewritten and what was refused."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from n2d2py import log
from n2d2py.contracts.operator import Op
from n2d2py.errors import InternalError
from n2d2py.graph import Graph, Node, Tensor


@dataclass(frozen=True)
class Entry:
    """A line of the report: the pass, the layer, and the rewrite or the reason for its refusal."""

    rewrite: str
    layer: str
    text: str


@dataclass
class FuseReport:
    """Log of the passes, in order: rewrites done, and refusals that still hold for the final graph. `summaries` has the text of
    the summary line by pass."""

    done: list[Entry] = field(default_factory=list)
    refused: list[Entry] = field(default_factory=list)
    summaries: dict[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of rewrites by pass, in order of the first one."""
        return dict(Counter(entry.rewrite for entry in self.done))

    def lines(self) -> list[str]:
        """Return one summary line for each pass that changed something."""
        return [f"{self.summaries[rewrite]}: {count}" for rewrite, count in self.counts.items()]

    def dump(self) -> dict[str, Any]:
        """Return the report as plain data."""
        lines = {
            what: [[entry.rewrite, entry.layer, entry.text] for entry in entries]
            for what, entries in (("done", self.done), ("refused", self.refused))
        }
        return {"counts": self.counts, **lines}

    def publish(self) -> None:
        """Log the summary lines, with -verbose every entry."""
        for line in self.lines():
            log.notice("fuse: %s", line)
        for entry in self.done:
            log.detail("fuse: %s: %s", entry.layer, entry.text)
        for entry in self.refused:
            log.detail("fuse: %s: no %s: %s", entry.layer, entry.rewrite, entry.text)


@dataclass(frozen=True)
class Done:
    """A rewrite that was done; `text` is a clause about its layer for the report."""

    text: str


Outcome = Done | str | None
"""Result of a rewrite at a layer: done; as a text the reason, a clause about the layer, why it does not apply although the layer
is of the right kind; None without its pattern."""

Rule = Callable[[Graph, Node], Outcome]
"""A rewrite of the pattern that starts at a layer. It changes the graph in place. Parameter arrays may be shared with other nodes
and graphs: they are replaced, never written to."""


@dataclass(frozen=True)
class Pass:
    """A rewrite of single patterns, applied until none is left. `at` are the operators at which its pattern starts. `name` and
    `summary` (a description of one rewrite) are for reports."""

    name: str
    summary: str
    at: tuple[type[Op], ...]
    rule: Rule

    def run(self, graph: Graph, report: FuseReport) -> bool:
        """Apply the rewrite until no node matches; return whether anything changed. Raises InternalError for an inconsistent
        graph."""
        graph.verify()
        report.summaries[self.name] = self.summary
        changed, refusals = False, {}
        while True:
            progress = False
            refusals.clear()
            for node in list(graph.nodes):
                outcome = self.rule(graph, node) if isinstance(node.op, self.at) and node in graph else None
                if isinstance(outcome, str):
                    refusals[node.name] = Entry(self.name, node.name, outcome)
                elif outcome is not None:
                    report.done.append(Entry(self.name, node.name, outcome.text))
                    progress = changed = True
            if not progress:
                break
        report.refused = [entry for entry in report.refused if entry.rewrite != self.name] + list(refusals.values())
        graph.verify()
        return changed


def rewrite(name: str, summary: str, *at: type[Op]) -> Callable[[Rule], Pass]:
    """Decorator: the pass of a function of a graph and a node whose operator is one of `at`."""
    return lambda rule: Pass(name, summary, at, rule)


def is_plain(node: Node | None, *kinds: type[Op]) -> TypeGuard[Node]:
    """True for a layer with one of these operators and without activation."""
    return node is not None and isinstance(node.op, kinds) and node.activation is None


def reason_to_keep(graph: Graph, node: Node) -> str | None:
    """Return why a layer that changes nothing must stay; None if it can be dropped."""
    if node.activation is not None:
        return "it carries an activation"
    return "it joins a network output and an input or another output" if graph.joins_ends(node) else None


def drop(graph: Graph, node: Node) -> None:
    """Remove a node that passes its only input on; a network output keeps its name where possible. Raises InternalError if two
    inputs or outputs of the network would become one tensor."""
    if graph.joins_ends(node):
        raise InternalError(f"{node.name} joins two ends of the network and cannot be dropped")
    source, result = node.inputs[0], node.output
    producer = graph.producer(source)
    if producer is not None and result in graph.outputs and len(producer.outputs) == 1 and graph.sole_consumer(source) is node:
        shape, kind = graph.shape(source), graph.kind(source)
        graph.absorb(producer, node)
        graph.tensors[result] = Tensor(result, shape, kind)
        carrier = result
    else:
        graph.bypass(node)
        carrier = source
    for name in node.source:
        if name not in graph.tensors:
            graph.aliases[name] = carrier


def recompute_shapes(graph: Graph) -> None:
    """Compute the shapes of all tensors from those of the inputs. Raises N2D2Error if an operator cannot take its new input
    shapes. Raises InternalError if an operator changes its number of outputs."""
    for node in graph.nodes:
        shapes = node.op.output_shapes([graph.shape(name) for name in node.inputs], node)
        if len(shapes) != len(node.outputs):
            raise InternalError(f"{node.name}: {len(shapes)} shapes for {len(node.outputs)} outputs")
        for name, shape in zip(node.outputs, shapes, strict=True):
            graph.tensors[name] = Tensor(name, tuple(shape), graph.kind(name))
