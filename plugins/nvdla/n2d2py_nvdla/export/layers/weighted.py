"""Convolutions and fully connected layers, with what follows them in the same pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.contracts.functions import Clip, LeakyRectifier
from n2d2py.graph import QuantNode
from n2d2py.graph.forms import Table
from n2d2py_nvdla.export.arithmetic import Post, one_pass
from n2d2py_nvdla.export.convolution import ConvolutionWindow, split
from n2d2py_nvdla.export.layers.wide_fc import pieces, summed_maps, wide_chains
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering, chw, int8_table, lowering


@lowering("Conv")
def _conv(state: Lowering, node: QuantNode) -> None:
    value = state.values[node.inputs[0]]
    window = ConvolutionWindow(node.op.stride, node.op.pads, node.op.dilation)
    _weighted(state, node, node.params["weights"], window, node.op.groups, value)


@lowering("Fc")
def _fc(state: Lowering, node: QuantNode) -> None:
    """Compile the layer to a convolution whose kernel is the whole map, in pieces if that is too large."""
    value = state.values[node.inputs[0]]
    c, h, w = value.region.shape
    weights = node.params["weights"].reshape(-1, c, h, w)
    fits = (
        split(state.config, state.precision, (c, h, w), len(weights), (h, w), 1, ConvolutionWindow(), state.lanes) is not None
    )
    if max(h, w) <= 32 and fits:
        _weighted(state, node, weights, ConvolutionWindow(), 1, value)
        return
    post, weights = _post(state, node, weights, value)
    found, result = pieces(state, value.region, len(weights)), state.result(node.output)
    if found is None:
        chains = summed_maps(state, node, value.region, weights, post, result)
    else:
        chains = wide_chains(state, node, value, weights, found, post, result)
    state.finish(node, node.output, result, post.scale, chains)


def _weighted(
    state: Lowering, node: QuantNode, weights: np.ndarray, window: ConvolutionWindow, groups: int, value: HardwareTensor
) -> None:
    post, weights = _post(state, node, weights, value)
    post, tensor = fold_followers(state, node, post)
    state.convolve(node, tensor, value.region, weights, window, groups, post)


def _post(state: Lowering, node: QuantNode, weights: np.ndarray, value: HardwareTensor) -> tuple[Post, np.ndarray]:
    """Arithmetic after the accumulators, and the weights in the type that hardware multiplies."""
    if state.integer:
        kind = state.graph.type(node.inputs[0])
        # The factor of the rescale is s_x s_w / s_y; the input may lie in another scale than its type says.
        gain = node.rescaling.effective() * state.graph.type(node.output).scale * (value.scale / kind.scale)
        bias = np.rint(node.params["bias"].astype(np.float64) * (kind.scale / value.scale)).astype(np.int64)
        post = Post(gain, bias, state.scale_of(node.output))
        weights = weights.astype(np.int8)
    else:
        post = Post(np.ones(1), node.params["bias"].astype(np.float64), 1.0)
        weights = weights.astype(np.float16)
    return state.activated(node, post, None if state.integer else node.activation, node.clamp), weights


def fold_followers(state: Lowering, node: QuantNode, post: Post) -> tuple[Post, str]:
    """`post` with the only reader of the result, where that is an addition or an activation of the same pass.

    Returns the tensor that is then computed.
    """
    reader = state.sole_reader(node.output)
    if reader is None or node.output in state.slots or post.operand is not None:
        return post, node.output
    plain = not post.relu and all(one is None for one in (post.slope, post.high, post.low, post.table))
    folded = None
    if reader.op.kind == "ElemWise" and plain:
        folded = _addition(state, node, reader, post)
    elif reader.op.kind == "Activation" and plain:
        folded = _activation(state, reader, post)
    if folded is None or not one_pass(state.precision, folded):
        return post, node.output
    state.done.add(reader.name)
    return folded, reader.output


def _addition(state: Lowering, node: QuantNode, reader: QuantNode, post: Post) -> Post | None:
    """Return the sum with a tensor that is there already."""
    op = reader.op
    weights, shifts = op.coefficients(len(reader.inputs))
    others = [name for name in reader.inputs if name != node.output]
    if op.operation != "Sum" or len(reader.inputs) != 2 or len(others) != 1 or any(shifts) or others[0] not in state.values:
        return None
    other = state.values[others[0]]
    own, its = (weights[reader.inputs.index(name)] for name in (node.output, others[0]))
    if other.region.shape != chw(state.graph.shape(reader.output)) or (not state.integer and (own, its) != (1, 1)):
        return None
    joined = replace(
        post,
        gain=np.asarray(post.gain) * own,
        operand=other.region,
        operand_scale=other.scale * its,
        scale=state.scale_of(reader.output),
    )
    return state.activated(reader, joined, None if state.integer else reader.activation, reader.clamp)


def _activation(state: Lowering, reader: QuantNode, post: Post) -> Post | None:
    """Return an activation layer: a slope, a limit, or a table where the configuration has one."""
    function = reader.op.function
    scale = state.scale_of(reader.output)
    if isinstance(function, Clip) or (isinstance(function, LeakyRectifier) and function.high == np.inf):
        return state.activated(reader, replace(post, scale=scale), function, None)
    if not state.config.has_y:
        return None
    if not state.integer:
        return state.activated(reader, post, function, None)
    kind = state.graph.type(reader.inputs[0])
    return replace(post, scale=scale, table=int8_table(reader.form_as(Table).table, kind.qmin), table_scale=kind.scale)
