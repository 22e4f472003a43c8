"""Runs the rewrites, also those that operators and plug-ins declare, in a fixed order until none applies."""

from dataclasses import replace
from functools import partial

from n2d2py.contracts.operator import Op
from n2d2py.errors import InternalError
from n2d2py.graph import CHAINS, Chain, Graph, Node, Precision, TargetForm, elements
from n2d2py.operators import Activation, Normalize, Softmax, is_quantized
from n2d2py.passes import (
    array_layers,
    embeddings,
    fuse_into,
    gains,
    idioms,
    layout,
    lift_channels,
    masked_softmax,
    products,
    quantized,
)
from n2d2py.passes.base import Done, FuseReport, Outcome, Pass

_ROUNDS = 20


def chain_pass(chain: Chain) -> Pass:
    """Return the pass of a declared chain of layers, each the only consumer of the one before, which become one layer."""
    return Pass(chain.name, chain.summary, (Op,), partial(_fuse_chain, chain))


def _fuse_chain(chain: Chain, graph: Graph, node: Node) -> Outcome:
    if _kind(node) != chain.kinds[0]:
        return None
    nodes = [node]
    for kind in chain.kinds[1:]:
        follower = graph.sole_consumer(nodes[-1].output)
        if follower is None or _kind(follower) != kind:
            readers = [f"{reader.name} ({_kind(reader)})" for reader in graph.consumers(nodes[-1].output)]
            text = ", ".join(readers) or "nothing"
            return f"the result of {nodes[-1].name} is read by {text}, not by a {kind} alone"
        if nodes[-1].activation is not None:
            return f"{nodes[-1].name} carries the activation {nodes[-1].activation.kind}"
        nodes.append(follower)
    becomes = chain.becomes(*nodes)
    if isinstance(becomes, str):
        return becomes
    op, params = becomes if isinstance(becomes, tuple) else (becomes, dict(node.params))
    inside = {one.output for one in nodes}
    outside = [name for one in nodes for name in one.inputs if name not in inside]
    last, source = nodes[-1], [name for one in nodes for name in one.source]
    result, place = last.output, graph.nodes.index(last) - len(nodes) + 1
    for one in nodes:
        graph.remove(one)
        graph.tensors.pop(one.output)
        if one is not last:
            graph.aliases[one.output] = result
    graph.add(Node(last.name, op, outside, [result], params, last.activation, last.location, source), at=place)
    return Done(f"{' - '.join(chain.kinds)} became {op.kind}")


def _kind(node: Node) -> str:
    return node.op.function.kind if isinstance(node.op, Activation) else node.op.kind


def _declared_passes(*, integer: bool, last: bool) -> list[Pass]:
    return [chain_pass(one) for one in CHAINS.values() if one.last == last and one.integer in (None, integer)]


def passes(*, integer: bool, logits: bool = False) -> list[Pass]:
    """Return the rewrites in the order in which they run; some only for integer exports.

    With `logits`, a Softmax at an output is dropped.
    """
    order = [layout.remove_identity, *_declared_passes(integer=integer, last=False)]
    order += [quantized.merge_quantize, quantized.hoist_quantize, quantized.clip_before_quantize]
    order += [layout.merge_transpose, layout.move_transpose, layout.transpose_into_fc]
    order += [lift_channels.lift_channels, layout.remove_reshape, lift_channels.merge_take]
    order += [fuse_into.fuse_padding, fuse_into.fuse_batch_norm, fuse_into.batch_norm_to_affine, fuse_into.fuse_affine]
    order += [gains.merge_gains, fuse_into.remove_unlimited, fuse_into.fuse_activation]
    order += [products.conv_to_fc, embeddings.one_hot_matmul, embeddings.fold_into_table]
    order += [products.left_matmul, products.matmul_to_conv, products.grouped_matmul]
    order += [masked_softmax.remove_nan_guard, masked_softmax.fuse_mask, idioms.fuse_magnitude] if integer else []
    order += [idioms.remove_softplus_tail, idioms.fuse_gate, products.product_operand, products.product_result]
    order += [idioms.fuse_norm, gains.merge_gains_of_arrays]
    order += [array_layers.array_sums, gains.remove_gain, gains.gains_of_parts, fuse_into.split_activation] if integer else []
    order += [layout.drop_softmax] if logits else []
    return order + _declared_passes(integer=integer, last=True)


def late_passes() -> list[Pass]:
    """Return the rewrites of integer exports that run last, because they would hide patterns of the others."""
    images = [array_layers.pooled_arrays, array_layers.array_elemwise, array_layers.outer_product, array_layers.added_constants]
    return [gains.weigh_sums, gains.gains_of_arrays, *images]


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
