"""Post-processing in C++: a kernel with the numbers of a post-processor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from n2d2py.arithmetic.fixed_scale import FixedScale
from n2d2py.exports.cpp.view import PortView
from n2d2py.postprocessing import Detector, PostProcessor


@dataclass(frozen=True)
class PostView:
    """A post-processing as the templates see it.

    Attributes:
        post: its numbers.
        outputs: those of the network.
    """

    post: PostProcessor
    outputs: Sequence[PortView]

    @property
    def ports(self) -> list[PortView]:
        """The outputs that it reads, in the order of the parameters of its functions."""
        return [self.outputs[at] for at in sorted(set(self.post.config.reads.values()))]

    @property
    def values(self) -> dict[str, PortView]:
        """The output of each type of the configuration."""
        return {name: self.outputs[at] for name, at in self.post.config.reads.items()}

    @property
    def scales(self) -> dict[str, tuple[str, str]]:
        """By function of the configuration, the C++ type of a conversion to fixed point, and its members."""
        return {name: _literal(one) for name, one in self.post.config.scales.items()}

    @property
    def detects(self) -> bool:
        """True if its results are boxes, which a program can draw."""
        return isinstance(self.post, Detector)

    def file(self, name: str) -> str:
        """The template of a file."""
        return f"post/{self.post.folder}/{name}.j2"


def _literal(scale: FixedScale) -> tuple[str, str]:
    if scale.factor:
        return "RealScale", repr(scale.factor)
    return "FixedScale", f"{scale.multiplier}, {scale.shift}, {scale.zero_point}"
