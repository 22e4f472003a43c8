"""Shared by Conv and Deconv: a kernel that moves over the image, in groups of channels."""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.errors import N2D2Error
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, OpNode, require_rank
from n2d2py.operators.windows import Pads


@dataclass(frozen=True)
class GroupedKernel(Op):
    """An operator of "weights" (O, C / groups, KH, KW); its subclasses say what the attributes mean."""

    stride: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def outputs_and_extent(self, shape: Shape, node: OpNode) -> tuple[int, tuple[int, int]]:
        """Number of outputs, and height and width of the dilated kernel, for an input of `shape`.

        Raises:
            N2D2Error: E201 an input of another rank, E202 weights for another number of channels.
        """
        require_rank(shape, 4, node, self.kind)
        outputs, per_group, *size = node.params["weights"].shape
        if per_group * self.groups != shape[1] or outputs % self.groups:
            raise N2D2Error(
                "E202",
                f"{self.kind} '{node.name}' has weights for {outputs} outputs and {per_group} channels in each of "
                f"{self.groups} groups, but its input has {shape[1]} channels",
                where=node.location,
                remedy="correct NbOutputs, the groups or the layer before it",
            )
        height, width = ((k - 1) * d + 1 for k, d in zip(size, self.dilation, strict=True))
        return outputs, (height, width)

    def is_depthwise(self, node: OpNode) -> bool:
        """True if each output reads one its own channel."""
        outputs, per_group = node.params["weights"].shape[:2]
        return per_group == 1 and outputs == self.groups
