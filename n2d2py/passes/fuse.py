"""Runs the rewrites, also those that operators and plug-ins declare, in a fixed order until none applies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from n2d2py.errors import InternalError
from n2d2py.graph import CHAINS, Chain, Graph, Node, Precision, TargetForm, elements
from n2d2py.operators import Activation, Normalize, Softmax, is_quantized
from n2d2py.passes.array_layers import AddedConstants, ArrayElemWise, ArraySums, OuterProduct, PooledArrays
from n2d2py.passes.base import FuseReport, Pass
from n2d2py.passes.embeddings import FoldIntoTable, OneHotMatMul
from n2d2py.passes.fuse_into import (
    BatchNormToAffine,
    FuseActivation,
    FuseAffine,
    FuseBatchNorm,
    FusePadding,
    RemoveUnlimited,
    SplitActivation,
)
from n2d2py.passes.gains import GainsOfChannels, GainsOfParts, GainsOfRows, MergeGains, RemoveGain, WeighSums
from n2d2py.passes.idioms import FuseGate, FuseMagnitude, FuseNorm, RemoveSoftplusTail
from n2d2py.passes.layout import DropSoftmax, MergeTranspose, MoveTranspose, RemoveIdentity, RemoveReshape, TransposeIntoFc
from n2d2py.passes.lift_channels import LiftChannels, MergeTake
from n2d2py.passes.masked_softmax import FuseMask, RemoveNanGuard
from n2d2py.passes.products import ConvToFc, GroupedMatMul, LeftMatMul, MatMulToConv, ProductOperand, ProductResult
from n2d2py.passes.quantized import ClipBeforeQuantize, HoistQuantize, MergeQuantize

_ROUNDS = 20


class ChainPass(Pass):
    """Replacement of a chain of layers, each the only consumer of the one before, by one layer: the pass of one declared chain."""

    def __init__(self, chain: Chain):
        self.name, self.summary = chain.name, chain.summary
        self._kinds, self._becomes = chain.kinds, chain.becomes

    def match(self, graph: Graph, node: Node) -> tuple[list[Node], Any, dict[str, Any]] | str | None:
        if _kind(node) != self._kinds[0]:
            return None
        nodes = [node]
        for kind in self._kinds[1:]:
            follower = graph.sole_consumer(nodes[-1].output)
            if follower is None or _kind(follower) != kind:
                readers = [f"{reader.name} ({_kind(reader)})" for reader in graph.consumers(nodes[-1].output)]
                text = ", ".join(readers) or "nothing"
                return f"the result of {nodes[-1].name} is read by {text}, not by a {kind} alone"
            nodes.append(follower)
        for one in nodes[:-1]:
            if one.activation is not None:
                return f"{one.name} carries the activation {one.activation.kind}"
        result = self._becomes(*nodes)
        if isinstance(result, str):
            return result
        op, params = result if isinstance(result, tuple) else (result, dict(node.params))
        return nodes, op, params

    def rewrite(self, graph: Graph, node: Node, match: Any) -> str:
        nodes, op, params = match
        inside = {one.output for one in nodes}
        outside = [name for one in nodes for name in one.inputs if name not in inside]
        last, source = nodes[-1], [name for one in nodes for name in one.source]
        result, place = last.output, graph.nodes.index(last) - len(nodes) + 1
        new = Node(last.name, op, outside, [result], params, last.activation, last.location, source)
        for one in nodes:
            graph.remove(one)
            graph.tensors.pop(one.output)
            if one is not last:
                graph.aliases[one.output] = result
        graph.add(new, at=place)
        return f"{' - '.join(self._kinds)} became {op.kind}"


def _kind(node: Node) -> str:
    return node.op.function.kind if isinstance(node.op, Activation) else node.op.kind


def _declared_passes(*, integer: bool, last: bool) -> list[Pass]:
    return [ChainPass(one) for one in CHAINS.values() if one.last == last and one.integer in (None, integer)]


def passes(*, integer: bool, logits: bool = False) -> list[Pass]:
    """Return the rewrites in the order in which they run; some only for integer exports.

    With `logits`, a Softmax at an output is dropped.
    """
    order: list[Pass] = [
        RemoveIdentity(),
        *_declared_passes(integer=integer, last=False),
        MergeQuantize(),
        HoistQuantize(),
        ClipBeforeQuantize(),
        MergeTranspose(),
        MoveTranspose(),
        TransposeIntoFc(),
        LiftChannels(),
        RemoveReshape(),
        MergeTake(),
        FusePadding(),
        FuseBatchNorm(),
        BatchNormToAffine(),
        FuseAffine(),
        MergeGains(arrays=False),
        RemoveUnlimited(),
        FuseActivation(),
        ConvToFc(),
        OneHotMatMul(),
        FoldIntoTable(),
        LeftMatMul(),
        MatMulToConv(),
        GroupedMatMul(),
    ]
    order += [RemoveNanGuard(), FuseMask(), FuseMagnitude()] if integer else []
    order += [RemoveSoftplusTail(), FuseGate(), ProductOperand(), ProductResult(), FuseNorm(), MergeGains(arrays=True)]
    order += [ArraySums(), RemoveGain(), GainsOfParts(), SplitActivation()] if integer else []
    order += [DropSoftmax()] if logits else []
    return order + _declared_passes(integer=integer, last=True)


def late_passes() -> list[Pass]:
    """Return the rewrites of integer exports that run last, because they would hide patterns of the others."""
    return [WeighSums(), GainsOfRows(), GainsOfChannels(), PooledArrays(), ArrayElemWise(), OuterProduct(), AddedConstants()]


def fuse(graph: Graph, *, integer: bool, rows: bool = True, logits: bool = False) -> tuple[Graph, FuseReport]:
    """Return an equivalent rewritten copy of a float graph, and the report.

    `integer`: activations that are not clamps become layers. `rows`: False keeps a Softmax over channels in floating point.
    `logits`: a Softmax at an output is dropped. Names of removed tensors remain as aliases. Raises InternalError if a rewrite
    breaks the graph.
    """
    fused, report = graph.copy(), FuseReport()
    order = passes(integer=integer, logits=logits)
    for _ in range(_ROUNDS):
        changes = [rewrite.run(fused, report) for rewrite in order]
        if not any(changes) and not (integer and any(rewrite.run(fused, report) for rewrite in late_passes())):
            break
    else:
        raise InternalError(f"the rewrites do not come to an end after {_ROUNDS} rounds")
    fused.prune()
    if integer:
        keep_real(fused, rows=rows)
    fused.verify()
    left = {node.name for node in fused.nodes}
    report.refused = [entry for entry in report.refused if entry.layer in left]
    report.publish()
    return fused, report


def keep_real(graph: Graph, *, rows: bool) -> None:
    """Mark layers over the channels of an image or vector that the target runs in floating point.

    Without `rows` these are each Softmax and each division by a length; in pre-quantized networks, the divisions.
    """
    kinds = (Softmax, Normalize) if not rows else (Normalize,) if is_quantized(graph) else ()
    for node in graph.nodes:
        op = node.op
        if not isinstance(op, kinds) or (isinstance(op, Normalize) and op.centred):
            continue
        shape = graph.shape(node.output)
        if len(shape) > 2 or op.size in (0, elements(shape)):
            precision = graph.precisions.get(node.name, Precision())
            graph.precisions[node.name] = replace(precision, target=TargetForm.REAL)
