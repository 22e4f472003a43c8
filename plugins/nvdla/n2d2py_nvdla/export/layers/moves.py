"""Layers that move values: concatenation, reshape; and the softmax, which the CPU computes."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import QuantNode
from n2d2py_nvdla.export.arithmetic import Post
from n2d2py_nvdla.export.convolution import ConvolutionWindow, convolution_chains
from n2d2py_nvdla.export.hardware import EmuLayer, HwOp, Region
from n2d2py_nvdla.export.layers.arrays import between_reshapes
from n2d2py_nvdla.export.layers.elements import reads_in_place
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering, lowering, refuse

_FREE_SCALE = ("Conv", "Fc", "Affine", "ElemWise")
"""Kinds whose result can be given any scale."""


def plan_concatenations(state: Lowering) -> None:
    """Give inputs of concatenations their place in the result, where that costs nothing."""
    graph = state.graph
    producers = {name: node for node in graph.nodes for name in node.outputs}
    for node in reversed(graph.nodes):
        if node.op.kind != "Concat" or len(graph.shape(node.output)) != 4 or node.op.axis != 1:
            continue
        whole = state.result(node.output)
        state.slots[node.output] = whole
        at = 0
        for name in node.inputs:
            channels = graph.shape(name)[1]
            producer = producers.get(name)
            fits = at % state.lanes == 0 and name not in graph.outputs and name not in state.slots
            fits = fits and (channels % state.lanes == 0 or name == node.inputs[-1])  # lanes after must stay 0
            if fits and producer is not None and _scale_fits(state, node, producer, name):
                if node.inputs.count(name) == 1 and producer.op.kind not in ("Reshape", "Identity", "Dropout", "Softmax"):
                    state.slots[name] = whole.part(at, channels)
            at += channels


def _scale_fits(state: Lowering, node: QuantNode, producer: QuantNode, name: str) -> bool:
    """True if the producer can write in the scale of the concatenation."""
    if not state.integer:
        return True
    wanted = state.scale_of(node.output)
    if state.graph.type(name).scale == wanted and producer.op.kind != "Pool":
        return True
    if producer.op.kind in _FREE_SCALE and state.sole_reader(name) is node and producer.clamp is not None:
        kind = state.graph.type(name)
        if producer.clamp[0] in (0, kind.qmin) and producer.clamp[1] == kind.qmax:
            state.scales[name] = wanted
            return True
    return False


@lowering("Concat", in_bytes=True)
def _concat(state: Lowering, node: QuantNode) -> None:
    """Copy the inputs that are not in their place: by the SDP, or by a convolution if they begin inside an atom."""
    result = state.slots.get(node.output)
    if result is None or (not state.integer and node.activation is not None):
        raise refuse(
            node, "a concatenation of vectors or along another axis, or one with an activation", "concatenate channels"
        )
    scale, at = state.scale_of(node.output), 0
    chains: list[list[HwOp]] = []
    for name in node.inputs:
        value = state.values[name]
        channels = value.region.channels
        clean = channels % state.lanes == 0 or at + channels == result.channels
        place = result.part(at, channels) if at % state.lanes == 0 and clean else None
        if name in state.slots and state.slots[name] is value.region and value.scale == scale:
            pass
        elif place is not None:
            chains.append(state.sdp_chain(value.region, Post(np.array([value.scale]), None, scale), place))
        else:
            chains += shifted(state, value, result, at, scale)
        at += channels
    if chains:
        state.finish(node, node.output, result, scale, chains)
    else:
        state.values[node.output] = HardwareTensor(result, scale)


def shifted(state: Lowering, value: HardwareTensor, result: Region, at: int, scale: float) -> list[list[HwOp]]:
    """Return a copy to channels that begin inside of an atom: a 1x1 convolution, added to what is there already."""
    begin = at // state.lanes * state.lanes
    channels = value.region.channels
    outputs = at - begin + channels
    unit = 64 if state.integer else 1
    weights = np.zeros((outputs, channels, 1, 1), np.int8 if state.integer else np.float16)
    weights[at - begin + np.arange(channels), np.arange(channels)] = unit
    chains = []
    for first in range(0, outputs, state.lanes):
        block = weights[first : first + state.lanes]
        place = result.part(begin + first, len(block))
        gain = np.array([value.scale / unit if state.integer else 1.0])
        shared = first == 0 and at != begin
        post = Post(gain, None, scale, operand=place if shared else None, operand_scale=scale)
        chains += convolution_chains(state.config, state.precision, value.region, block, ConvolutionWindow(), post, place)
    return chains


@lowering("Reshape", "Identity", "Dropout", in_bytes=True)
def _reshape(state: Lowering, node: QuantNode) -> None:
    """Nothing to do where the order in memory stays, or where only fully connected layers read the result."""
    if between_reshapes(state, node):
        return
    value = state.values[node.inputs[0]]
    target = state.graph.shape(node.output)
    c, h, w = value.region.shape
    same = (int(target[1]), *(int(n) for n in (*target[2:], 1, 1)[:2])) == (c, h, w)
    readers = state.readers.get(node.output, [])
    flat = int(np.prod(target[1:])) == target[1] and readers and all(reads_in_place(state, r, (c, h, w)) for r in readers)
    if node.activation is not None:
        raise refuse(node, "a reshape with an activation", "put the activation before it")
    if node.output in state.graph.outputs and same:
        scale = state.scale_or(node.output, value.scale)
        state.from_memory(node, node.output, value.region, Post(np.array([value.scale]), None, scale))
        return
    if node.output in state.graph.outputs:
        raise refuse(node, "a reshape of a map at the end of the network", "leave it out")
    if not same and not flat:
        raise refuse(
            node,
            f"from {c}x{h}x{w} to {'x'.join(map(str, target[1:]))} elements change their place",
            "keep channels, height and width",
        )
    state.values[node.output] = value


@lowering("Softmax", in_bytes=True)
def _softmax(state: Lowering, node: QuantNode) -> None:
    """At the end of the network, over the channels of one position: on the CPU, by NVIDIA's emulator."""
    value = state.values[node.inputs[0]]
    if value.region.shape[1:] != (1, 1) or node.op.log or node.op.size not in (0, value.region.channels):
        raise refuse(node, "the emulator has a softmax over all channels of one position only", "take the logits")
    if node.output not in state.graph.outputs:
        raise refuse(node, "a softmax inside of the network", "take the logits")
    scale = state.scale_of(node.output)
    result = Region.whole(state.buffer(node.output, "output"))
    state.out.emulated.append(
        EmuLayer(node.name, (node.output,), (value.region,), (result,), value.scale, scale, len(state.out.layers))
    )
    state.values[node.output] = HardwareTensor(result, scale)
