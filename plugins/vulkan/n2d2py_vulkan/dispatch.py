"""A dispatch of a shader, and the contract of the functions that make dispatches of a layer."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.arithmetic import DoublingRescale, FixedPointRescale, NumType, Rescale, ShiftRescale
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.graph import QuantGraph, QuantNode, Shape, channels, height, width
from n2d2py.memory.plan import MemoryPlan, Plane
from n2d2py.registry import Registry
from n2d2py_vulkan import HOME

_CONSTANT = re.compile(r"layout\(constant_id = (\d+)\) const \w+ (\w+) = (-?[\w.]+);")
_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
_DEFAULTS = {"false": 0, "true": 1}


def source(shader: str) -> Path:
    """Return the file of a shader."""
    return HOME / "kernels" / f"{shader}.glsl"


@cache
def constant_defaults(shader: str) -> dict[str, int]:
    """Return the specialization constants of a shader after those of its work group, by number, with their defaults."""
    constants = sorted((int(number), name, text) for number, name, text in _CONSTANT.findall(_text(source(shader))))
    return {name: _DEFAULTS[text] if text in _DEFAULTS else int(text) for _, name, text in constants}


def _text(file: Path) -> str:
    text = file.read_text("utf-8")
    return text + "".join(_text(file.parent / name) for name in _INCLUDE.findall(text))


def compiler() -> str:
    """Return the program that compiles shaders: "glslc" or "glslangValidator". Raise E801 where neither is installed."""
    for name in ("glslc", "glslangValidator"):
        if shutil.which(name):
            return name
    what = "neither glslc nor glslangValidator is installed, so the shaders cannot be compiled"
    raise N2D2Error("E801", what, remedy="install one of them (apt install glslc, or glslang-tools)")


@cache
def spirv(shader: str, pixels: int, dot: bool) -> np.ndarray:
    """Return the SPIR-V words of a shader, uint32; `pixels`: positions of an invocation, `dot`: with integer dot products.
    Raise E801 without a compiler, E802 when it refuses the shader."""
    defines = [f"-DPIXELS={pixels}", f"-DDOT={int(dot)}"]
    with tempfile.TemporaryDirectory(prefix="n2d2py-") as folder:
        binary = Path(folder) / "shader.spv"
        if compiler() == "glslc":
            words = ["glslc", "-fshader-stage=compute", "-O", "--target-env=vulkan1.1", *defines]
        else:
            words = ["glslangValidator", "-S", "comp", "--target-env", "vulkan1.1", "--quiet", *defines]
        words += [str(source(shader)), "-o", str(binary)]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        if done.returncode:
            lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            what = f"the shader {shader} does not compile with {words[0]}: {(lines or ['no message'])[0]}"
            raise N2D2Error("E802", what, remedy=f"install a newer {words[0]}")
        return np.fromfile(binary, "<u4")


KINDS = {"u1": 0, "i1": 1, "u2": 2, "i2": 3, "i4": 4}
"""Kinds of elements, as in `kernels/common.glsl`."""
_GROUP = 64
"""Invocations of a work group."""
_MOST_SHIFT = 50


class NoShader(Exception):
    """The layer runs on the CPU, for this reason."""


@dataclass(frozen=True, eq=False)
class Dispatch:
    """One run of a shader.

    Attributes:
        shader, pixels: its name, and the output positions of an invocation.
        constants: specialization constants by name, where they differ from the shader's default.
        quads, positions: invocations along the two axes of the grid.
        slices: invocations that share the sums of an output.
        places: bytes of the arena where first input, second input and output begin.
        weights: int32, packed as the shader says, or its table; empty for none.
        parameters: int32, (channels, 4): bias, multiplier, shift, addend of signed products.
    """

    shader: str
    constants: Mapping[str, int]
    quads: int
    positions: int
    places: tuple[int, int, int]
    pixels: int = 1
    slices: int = 1
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    parameters: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), np.int32))

    @property
    def local_size(self) -> tuple[int, int, int]:
        """Invocations of a work group along the axes of the grid, and the slices."""
        most = _GROUP // self.slices
        x = min(1 << max(self.quads - 1, 0).bit_length(), most, 16)
        return x, min(1 << max(self.positions - 1, 0).bit_length(), max(most // x, 1)), self.slices

    @property
    def groups(self) -> tuple[int, int]:
        """Work groups along the axes of the grid."""
        x, y, _ = self.local_size
        return -(-self.quads // x), -(-self.positions // y)

    @property
    def specialization(self) -> tuple[int, ...]:
        """The values of all specialization constants in the order of their numbers."""
        known = constant_defaults(self.shader)
        shifts = {int(shift) for _, multiplier, shift, _ in self.parameters if multiplier}
        constants = {**self.constants, **({"Shift": shifts.pop()} if len(shifts) == 1 else {})}
        if unknown := set(constants) - set(known):
            raise InternalError(f"the shader {self.shader} has no constants {unknown}")
        return (*self.local_size, *(int(constants.get(name, default)) for name, default in known.items()))


@dataclass(eq=False)
class GpuLayer:
    """A layer as the functions that make its dispatches see it: its node, with the types and planes of its tensors.

    `views`: planes and shapes of tensors, by name, where the layer is computed on a part of them, or on other axes.
    """

    node: QuantNode
    graph: QuantGraph
    plan: MemoryPlan
    views: Mapping[str, tuple[Plane, Shape]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.op: Any = self.node.op
        names = (*self.node.inputs, self.node.output)
        *self.inputs, self.output = map(self.graph.type, names)
        views = [self.views.get(name) or (self.plan.planes[name], self.graph.shape(name)) for name in names]
        *self.planes, self.output_plane = (plane for plane, _ in views)
        *self.shapes, self.output_shape = (shape for _, shape in views)

    def kind(self, kind: NumType, most_bytes: int = 2) -> int:
        """Kind of the elements of a tensor. Raise NoShader for floating point and for integers of more than `most_bytes`
        bytes."""
        code = kind.dtype.str[1:]
        if code not in KINDS or kind.bytes > most_bytes:
            raise NoShader(f"it has {kind.name} elements")
        return KINDS[code]

    def operand(self, index: int = 0, suffix: str = "", zero: int = 0) -> dict[str, int]:
        """Return the constants of an input with a zero point: Height, Width, Stride, Pitch (bytes), Kind, Aligned, Zero."""
        return {
            **_geometry(self.planes[index], self.shapes[index], f"In{{}}{suffix}"),
            f"InKind{suffix}": self.kind(self.inputs[index]),
            f"InZero{suffix}": zero,
        }

    def result(self) -> dict[str, int]:
        """Return the constants of the output."""
        geometry = _geometry(self.output_plane, self.output_shape, "Out{}")
        kind = {"OutKind": self.kind(self.output, 4), "Channels": channels(self.output_shape)}
        return {**geometry, **kind, **self.limits(0 if self.node.zero_in_bias else self.output.zero_point)}

    def limits(self, zero: int) -> dict[str, int]:
        """Low, High and Zero of the result: limits before the zero point is added, and the zero point."""
        low, high = self.node.clamp or type_limits(self.output)
        return {"Low": low - zero, "High": high - zero, "Zero": zero}

    def places(self, index: int = 0, second: int = 0) -> tuple[int, int, int]:
        """Return the bytes of the arena where two inputs and the output begin."""
        return self.planes[index].offset, self.planes[second].offset, self.output_plane.offset

    def check(self, is_wide: bool) -> None:
        """Raise NoShader for a layer that no shader can compute; `is_wide`: its shader has sums of 64 bits."""
        if not self.graph.is_integer(self.node) or len(self.node.outputs) != 1:
            raise NoShader("it computes in floating point")
        if not is_wide and max(self.node.bound, self.node.residual.bound if self.node.residual else 0) >= 2**31:
            raise NoShader("its accumulators have more than 32 bits")
        planes = [self.plan.planes[name] for name in (*self.node.inputs, self.node.output)]
        if any(plane.limit is not None or plane.ring_rows is not None or plane.external for plane in planes):
            raise NoShader("a tensor of it is not in one piece of the arena")
        alias = self.plan.op(self.node.name).aliases
        if any(overlaps(self.plan.planes[name], self.output_plane) for name in self.node.inputs if name != alias):
            raise NoShader("its output overlaps an input, and invocations have no order")


def _geometry(plane: Plane, shape: Shape, named: str) -> dict[str, int]:
    sizes = {"Height": height(shape), "Width": width(shape), "Stride": plane.stride, "Pitch": plane.line_bytes}
    return {named.format(key): value for key, value in {**sizes, "Aligned": is_aligned(plane)}.items()}


def type_limits(kind: NumType) -> tuple[int, int]:
    """Return the range of the type that stores elements of `kind`."""
    info = np.iinfo(kind.dtype)
    return int(info.min), int(info.max)


def overlaps(a: Plane, b: Plane) -> bool:
    """True if two planes share useful bytes; channels next to each other in the same pixels do not."""
    if not any(begin < stop and first < end for begin, end in a.intervals() for first, stop in b.intervals()):
        return False
    distance = (b.offset - a.offset) % a.stride
    pixels = (a.stride, a.line_bytes, 0) == (b.stride, b.line_bytes, a.line_bytes % a.stride)
    return not (pixels and distance >= a.size and distance + b.size <= a.stride)


def is_aligned(plane: Plane) -> bool:
    """True if a quad of bytes of each pixel is a word of the arena."""
    return plane.offset % 4 == 0 and plane.stride % 4 == 0 and plane.line_bytes % 4 == 0


def fixed_point(rescale: Rescale | None, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(multipliers, shifts), int64 of length `count`, of (acc * multiplier + 2^(shift - 1)) >> shift. Raise NoShader for
    another arithmetic."""
    if rescale is None:
        multipliers, shifts = np.ones(1, np.int64), np.zeros(1, np.int64)
    elif isinstance(rescale, FixedPointRescale):
        multipliers, shifts = rescale.multipliers, np.full(rescale.count, rescale.shift)
    elif isinstance(rescale, ShiftRescale):
        multipliers, shifts = rescale.multipliers, rescale.second
    elif isinstance(rescale, DoublingRescale) and not rescale.twice and rescale.shifts.min() >= 0:
        multipliers, shifts = rescale.multipliers, rescale.shifts + 31
    else:
        raise NoShader("its rescaling is not (acc * m + 2^(s-1)) >> s, which GPUs compute exactly")
    if shifts.max() > _MOST_SHIFT or np.abs(multipliers).max() >= 2**31:
        raise NoShader("its rescaling needs more than 64 bits")
    return np.broadcast_to(multipliers, (count,)), np.broadcast_to(shifts, (count,))


def parameters(
    rescale: Rescale | None, bias: np.ndarray | None = None, addend: np.ndarray | None = None, is_wide: bool = False
) -> np.ndarray:
    """Return the parameters of channels: bias, multiplier, shift, addend (or gain), int32 (count, 4). Raise NoShader for a
    rescale that the shaders do not compute exactly."""
    count = len(bias) if bias is not None else rescale.count if rescale else 1
    multipliers, shifts = fixed_point(rescale, count)
    if is_wide and multipliers.min() < 0:
        raise NoShader("its rescaling of 64 bits has negative factors")
    none = np.zeros(count, np.int64)
    columns = [none if bias is None else bias, multipliers, shifts, none if addend is None else addend]
    return np.stack([column.astype(np.int64) for column in columns], axis=1).astype(np.int32)


def quads_of(shape: Shape) -> int:
    """Return the quads of channels of a tensor."""
    return -(-channels(shape) // 4)


def positions_of(shape: Shape) -> int:
    """Return the positions of a tensor."""
    return height(shape) * width(shape)


Lowering = Callable[[GpuLayer], Sequence[Dispatch]]
LOWERINGS: Registry[tuple[Lowering, bool]] = Registry(
    "the shader of", *(f"n2d2py_vulkan.{name}" for name in ("layers", "elements"))
)
"""Functions by operator kind that make dispatches of a layer, or raise NoShader; and whether they know sums of 64 bits."""


def vulkan(*kinds: str, is_wide: bool = False) -> Callable[[Lowering], Lowering]:
    """Declare a function as the Vulkan form of operator kinds."""

    def declare(function: Lowering) -> Lowering:
        for kind in kinds:
            LOWERINGS.add(kind, (function, is_wide))
        return function

    return declare


def dispatches(node: QuantNode, graph: QuantGraph, plan: MemoryPlan) -> Sequence[Dispatch]:
    """Return the dispatches of a layer. Raise NoShader when it runs on the CPU."""
    layer = GpuLayer(node, graph, plan)
    entry = LOWERINGS.get(node.op.kind)
    if entry is None:
        raise NoShader(f"there is no shader for {node.op.kind}")
    lowering, is_wide = entry
    layer.check(is_wide)
    return lowering(layer)
