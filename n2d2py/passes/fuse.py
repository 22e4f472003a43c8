"""Runs the rewrites in a fixed order until none applies."""

from __future__ import annotations

from dataclasses import replace

from n2d2py.errors import InternalError
from n2d2py.graph import CHAINS, Graph, Precision, TargetForm, elements
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.quantize import is_quantized
from n2d2py.operators.softmax import Softmax
from n2d2py.passes.array_layers import AddedConstants, ArrayElemWise, ArraySums, OuterProduct, PooledArrays
from n2d2py.passes.base import FuseReport, Pass
from n2d2py.passes.chain import ChainPass
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


def _declared_passes(*, integer: bool, last: bool) -> list[Pass]:
    """Return the rewrites that operators and plug-ins declare."""
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
    `logits`: a Softmax at an output is dropped. Names of removed tensors remain as aliases.

    Raises:
        InternalError: if a rewrite breaks the graph.
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
