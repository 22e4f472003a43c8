"""Facilities for the lowering of every operator, and the registry of the lowerings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from n2d2py.contracts.functions import Clip, FunctionRow, LeakyRectifier
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.shapes import Shape
from n2d2py.registry import Registry
from n2d2py_nvdla.config import HardwareConfig
from n2d2py_nvdla.export.arithmetic import Post, one_pass, plan_sdp
from n2d2py_nvdla.export.convolution import ConvolutionWindow, convolution_chains, split
from n2d2py_nvdla.export.groups import blocks
from n2d2py_nvdla.export.hardware import HardwareBuffer, HwLayer, HwOp, Lowered, Region
from n2d2py_nvdla.export.tables import function_table, integer_table
from n2d2py_nvdla.firmware import INT8, SDP


@dataclass(frozen=True)
class HardwareTensor:
    """A tensor in hardware: where it lies, and the real value of 1 in it."""

    region: Region
    scale: float


Rule = Callable[["Lowering", QuantNode], None]
_RULES: Registry[Rule] = Registry("the lowering of")
_IN_BYTES: Registry[Rule] = Registry("the lowering to bytes of")


def lowering(*kinds: str, in_bytes: bool = False) -> Callable[[Rule], Rule]:
    """Register the lowering of operator kinds; a second one for a kind is an InternalError.

    `in_bytes`: the accelerator has them in int8 whatever the network computes them in.
    """

    def register(rule: Rule) -> Rule:
        for kind in kinds:
            _RULES.add(kind, rule)
            if in_bytes:
                _IN_BYTES.add(kind, rule)
        return rule

    return register


def rule_of(kind: str) -> Rule | None:
    """Return the lowering of an operator kind; None if the accelerator has no such operation."""
    return _RULES.get(kind)


def is_in_bytes(kind: str) -> bool:
    """True if the accelerator has an operator kind in int8 whatever the network computes it in."""
    return kind in _IN_BYTES


def refuse(
    node: QuantNode, reason: str, remedy: str = "run this layer elsewhere, or choose another configuration"
) -> N2D2Error:
    """E715: a layer that the accelerator cannot run, with the reason."""
    return N2D2Error("E715", f"layer '{node.name}' ({node.op.kind}): {reason}", where=node.location, remedy=remedy)


def chw(shape: Shape) -> tuple[int, int, int]:
    """(C, H, W) of a tensor shape with batch; missing axes are 1."""
    c, h, w = (*shape[1:], 1, 1)[:3]
    return int(c), int(h), int(w)


def flat(shape: Shape) -> tuple[int, int, int]:
    """(C, H, W) of any tensor; all elements are channels where it has other axes than an image."""
    return chw(shape) if len(shape) <= 4 else (int(np.prod(shape)), 1, 1)


class Lowering:
    """The state of one compilation.

    Attributes:
        graph, config, precision: what is compiled, for what.
        out: what has been compiled so far.
        values: where each tensor lies.
        done: nodes that an earlier one took over.
        slots: regions that tensors must be written to (parts of concatenations), by tensor.
        scales: scales that tensors must have.
        readers: the nodes that read each tensor, in order.
    """

    def __init__(self, graph: QuantGraph, config: HardwareConfig, precision: int):
        self.graph, self.config, self.precision = graph, config, precision
        self.out = Lowered(graph.name, config, precision)
        self.values: dict[str, HardwareTensor] = {}
        self.done: set[str] = set()
        self.slots: dict[str, Region] = {}
        self.scales: dict[str, float] = {}
        self.readers: dict[str, list[QuantNode]] = {}
        for node in graph.nodes:
            for name in dict.fromkeys(node.inputs):
                self.readers.setdefault(name, []).append(node)

    @property
    def integer(self) -> bool:
        """True if it compiles to int8."""
        return self.precision == INT8

    @property
    def lanes(self) -> int:
        """Channels of an atom."""
        return self.config.lanes(self.precision)

    def scale_of(self, tensor: str) -> float:
        """Return the real value of 1 that a tensor should have."""
        if not self.integer:
            return 1.0
        return self.scales.get(tensor, self.graph.type(tensor).scale)

    def scale_or(self, tensor: str, bound: float) -> float:
        """Return the real value of 1 that a tensor should have; `bound` where it is in floating point and nothing says.

        `bound` must hold every value that can result: 127 of it are the largest.
        """
        if self.integer and self.graph.type(tensor).is_float and tensor not in self.scales:
            return bound or 1.0
        return self.scale_of(tensor)

    def sole_reader(self, tensor: str) -> QuantNode | None:
        """Return the only consumer of a tensor that is not an output."""
        readers = self.readers.get(tensor, [])
        return readers[0] if len(readers) == 1 and tensor not in self.graph.outputs else None

    def buffer(self, tensor: str, kind: str = "activation", shape: tuple[int, int, int] | None = None) -> HardwareBuffer:
        """Return a new buffer for a tensor."""
        c, h, w = shape or chw(self.graph.shape(tensor))
        return HardwareBuffer(tensor, c, h, w, self.precision, self.config.atom, kind)

    def result(self, tensor: str, shape: tuple[int, int, int] | None = None) -> Region:
        """Where the result of a layer goes: its part of a concatenation, an output, or a new buffer, of `shape` if given."""
        if tensor in self.slots:
            return self.slots[tensor]
        return Region.whole(self.buffer(tensor, "output" if tensor in self.graph.outputs else "activation", shape))

    def finish(self, node: QuantNode, tensor: str, region: Region, scale: float, chains: list[list[HwOp]]) -> None:
        """Append a layer and say where its result lies."""
        self.out.layers.append(HwLayer(node.name, tensor, region, scale, chains))
        self.values[tensor] = HardwareTensor(region, scale)

    # ---- SDP ------------------------------------------------------------------------------
    def activated(self, node: QuantNode, post: Post, function: FunctionRow | None, clamp: tuple[int, int] | None) -> Post:
        """`post` with the activation of a node: a function, or the clamp of an integer layer.

        Raises:
            N2D2Error: E715 where the configuration cannot compute it.
        """
        if clamp is not None and function is None and self.integer:
            kind = self.graph.type(node.output)
            relu = clamp[0] == 0
            low = None if relu or clamp[0] <= kind.qmin else clamp[0] * kind.scale
            high = None if clamp[1] >= kind.qmax else clamp[1] * kind.scale
            return replace(post, relu=relu, low=low, high=high)
        if function is None:
            return post
        if isinstance(function, Clip):
            high = None if function.high == np.inf else float(function.high)
            if function.low in (0, -np.inf):
                return replace(post, relu=function.low == 0, high=high)
            return replace(post, low=float(function.low), high=high)
        if isinstance(function, LeakyRectifier) and function.high == np.inf:
            return replace(post, slope=float(function.slope))
        if not self.config.has_y:
            raise refuse(
                node,
                f"{self.config.name} has no look-up table for {function.kind}",
                "use a rectifier, or a configuration with look-up tables such as nv_large",
            )
        if self.integer:
            raise InternalError("a function in an integer layer")
        return replace(post, table=function_table(function))

    def sdp_chain(self, source: Region, post: Post, result: Region) -> list[HwOp]:
        """One SDP operation from memory to memory."""
        plan = plan_sdp(self.precision, post, result.shape[0], result.buffer.lanes)
        return [HwOp(SDP, plan.op, {"src_data": source, "dst_data": result, **plan.cubes}, plan.lut)]

    def from_memory(self, node: QuantNode, tensor: str, source: Region, post: Post) -> None:
        """Add a layer that computes `post` of a tensor, in several passes if one is not enough."""
        result = self.result(tensor, source.shape)  # a vector may lie there as a map
        self.finish(node, tensor, result, post.scale, self.passes(node, source, post, result))

    def passes(self, node: QuantNode, source: Region, post: Post, result: Region) -> list[list[HwOp]]:
        """SDP operations from memory to memory that together are `post`."""
        first, *others = self._divided(node, post)
        return [self.sdp_chain(source, first, result), *(self.sdp_chain(result, one, result) for one in others)]

    def _divided(self, node: QuantNode, post: Post) -> list[Post]:
        """`post` in passes that the SDP has; the later ones read what the first one wrote.

        Raises:
            N2D2Error: E715 where three passes are not enough.
        """
        if one_pass(self.precision, post):
            return [post]
        limits = []
        if post.low is not None and post.high is not None:  # the two limits of a clip: one pass each
            limits, post = [Post(_unit(post.scale), None, post.scale, low=post.low)], replace(post, low=None)
        found = [post] if one_pass(self.precision, post) else list(divide(post))
        if not all(one_pass(self.precision, one) for one in found):
            raise refuse(node, "its activation takes more than two passes", "declare the activation by itself")
        return found + limits

    def convolve(
        self,
        node: QuantNode,
        tensor: str,
        source: Region,
        weights: np.ndarray,
        window: ConvolutionWindow,
        groups: int,
        post: Post,
    ) -> None:
        """Add a layer that convolves, group by group, with `post` of the accumulators.

        Raises:
            N2D2Error: E715 for windows or sizes that hardware does not have.
        """
        result = self.result(tensor)
        self.finish(node, tensor, result, post.scale, self.convolution(node, source, weights, window, groups, post, result))

    def convolution(
        self,
        node: QuantNode,
        source: Region,
        weights: np.ndarray,
        window: ConvolutionWindow,
        groups: int,
        post: Post,
        result: Region,
    ) -> list[list[HwOp]]:
        """Return the operations of a convolution, group by group, with `post` of the sums, into `result`.

        Raises:
            N2D2Error: E715 for windows or sizes that hardware does not have.
        """
        self._check_window(node, weights, window)
        post, *others = self._divided(node, post)
        chains: list[list[HwOp]] = []
        for part, region, block, selected in blocks(source, result, weights, groups, self.lanes, post):
            k, c, r, s = block.shape
            image = part.buffer.image
            if split(self.config, self.precision, part.shape, k, (r, s), region.rows, window, self.lanes, image) is None:
                raise refuse(
                    node,
                    f"one line of {part.width}x{c} with kernels of {s}x{r} does not fit into the "
                    f"convolution buffer of {self.config.name}",
                )
            chains += convolution_chains(self.config, self.precision, part, block, window, selected, region)
        return chains + [self.sdp_chain(result, one, result) for one in others]

    def _check_window(self, node: QuantNode, weights: np.ndarray, window: ConvolutionWindow) -> None:
        r, s = weights.shape[2:]
        if max(r, s) > 32 or max(window.dilation) > 32 or max(window.stride) > 8:
            raise refuse(
                node,
                f"a kernel of {s}x{r}, stride {window.stride[1]}x{window.stride[0]}, dilation "
                f"{window.dilation[1]}x{window.dilation[0]}; the limits are 32, 8 and 32",
            )
        if min(window.pads) < 0 or max(window.pads) > 31:
            raise refuse(node, f"paddings {window.pads}; they must be from 0 to 31")


def _unit(scale: float) -> np.ndarray:
    """Return the gain of stored values of that scale."""
    return np.array([scale])


def divide(post: Post) -> tuple[Post, Post]:
    """Two passes: first the sums and the second operand, then the activation."""
    first = replace(post, relu=False, slope=None, high=None, low=None, table=None)
    if post.table is not None:
        first = replace(first, scale=post.table_scale)
    second = Post(
        _unit(first.scale),
        None,
        post.scale,
        relu=post.relu,
        slope=post.slope,
        high=post.high,
        low=post.low,
        table=post.table,
        table_scale=post.table_scale,
    )
    return first, second


def int8_table(values: np.ndarray, qmin: int) -> np.void:
    """Return the look-up table of a stored table that begins at `qmin`."""
    full = np.empty(256, np.int64)
    full[128 + qmin : 128 + qmin + len(values)] = values
    full[: 128 + qmin] = values[0]
    full[128 + qmin + len(values) :] = values[-1]
    return integer_table(full)
