"""The contract of a kernel form: what it takes, what it costs, its scratch, its constants.

    @form
    class Panels(KernelForm):
        name, which, kernels = "panels of 16 outputs", CONVOLUTION, ("convolution",)

Adding one: a module of this package with its class, and the header of its kernels. `select` takes the cheapest forms that fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from n2d2py.arithmetic import DoublingRescale, FixedPointRescale
from n2d2py.contracts.cpp.arrays import Storage, storage_of
from n2d2py.contracts.cpp.code import ChosenKernel, Panels
from n2d2py.contracts.cpp.isa import sets_with
from n2d2py.contracts.cpp.layer import Layer
from n2d2py.contracts.cpp.parts import NATIVE
from n2d2py.contracts.cpp.winograd import Winograd
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.registry import Registry

HALF = "n2d2::Half"
"""The type of weights that are stored in binary16."""
OUTPUTS = 16
"""Outputs of a panel: 32-bit sums of one 512-bit register."""
QUAD = 4
"""8-bit products that one instruction adds to a sum; half as many of 16-bit integers."""
SHIFT = 32
"""Of the products that microcontrollers rescale by."""
_LARGEST_RUN = 4608
"""Weights of an output that are unpacked at a time, at most: those of 512 channels by 3 x 3. SIMD kernels unpack up to 64 outputs (128
of a fully connected layer) on the stack."""


@dataclass(eq=False)
class KernelFacts:
    """Facts for a choice: a dense or depthwise layer, or a part of one.

    Attributes:
        kernel: the C++ function.
        weights: (O, positions..., inputs of an output) of a dense kernel, (C, KH, KW) of a depthwise one.
        whole: whether it is all of the layer.
        storage: how the weights are packed; None for a byte or more each.
        dense: True if an output depends on several channels.
        rows: the weights (O, K).
        outputs: those of a group.
        each: products of integers in a word of the dense kernels: of four bytes, or of two where inputs or weights have 16 bits.
    """

    layer: Layer
    kernel: str
    weights: np.ndarray
    groups: int = 1
    whole: bool = True
    storage: Storage | None = None

    def __post_init__(self) -> None:
        self.input, self.dense = self.layer.inputs[0], self.kernel != "depthwise"
        self.rows, self.outputs = self.weights.reshape(len(self.weights), -1), len(self.weights) // self.groups
        self.weight_type = weight_type(self.layer, self.weights)
        self.each = QUAD if self.input.bits == 8 and self.weight_type == "std::int8_t" else QUAD // 2

    @staticmethod
    def of(layer: Layer, kernel: str, weights: np.ndarray, groups: int = 1) -> KernelFacts:
        """Return the facts of a whole layer. Its weights are packed if the kernel unpacks them."""
        packs = layer.choices.packs_weights and layer.integer and kernel != "depthwise" and weights[0].size <= _LARGEST_RUN
        whole = groups == 1 or len(weights) // groups % OUTPUTS == 0  # panels of other groups would not begin at bytes
        return KernelFacts(layer, kernel, weights, groups, storage=storage_of(weights) if packs and whole else None)

    @property
    def bias(self) -> np.ndarray:
        """The bias of the layer, in 64-bit integers."""
        bias = self.layer.values("bias")
        return bias.astype(np.int64) if self.layer.integer else bias

    @property
    def signed_bias(self) -> np.ndarray:
        """The bias for inputs that are multiplied as signed bytes, unsigned ones 128 lower."""
        below = 0 if self.input.signed else 128
        return self.bias + below * self.rows.astype(np.int64).sum(axis=1)

    @property
    def multipliers(self) -> np.ndarray:
        """Those of a fixed-point rescale (1, O), or of a DoublingRescale, and its shifts (2, O), int64."""
        rescale = self.layer.node.rescale
        words = [rescale.multipliers] + ([rescale.shifts] if isinstance(rescale, DoublingRescale) else [])  # type: ignore[union-attr]
        return np.stack([np.broadcast_to(one, len(self.weights)) for one in words])

    @property
    def high_words(self) -> np.ndarray:
        """`multipliers` for cores that take the high word of a product: multipliers doubled, less 2^32, and -2^(32 - shift)."""
        words = self.multipliers
        return words if len(words) == 1 else np.stack([2 * words[0] - 2**SHIFT, -(np.int64(1) << SHIFT - words[1])])

    @property
    def one_multiplier(self) -> str | None:
        """The clause of the report for depthwise layers with several outputs of a channel."""
        return None if self.layer.input_shape[1] == len(self.weights) else "a channel has several outputs"

    @property
    def has_nine_taps(self) -> bool:
        """True for a depthwise layer of 3 x 3 taps that lie side by side, with a stride of 1 or 2 along a line."""
        op = self.layer.op
        return self.weights.shape[1:] == (3, 3) and tuple(op.dilation) == (1, 1) and op.stride[1] <= 2

    @property
    def gathered_bytes(self) -> int:
        """Bytes of a copy of the input for a fully connected layer, whose lines may lie apart; 0 where they follow each other."""
        plane, size = self.layer.sources[0], self.rows.shape[1]
        whole = plane.stride == plane.size and plane.limit is plane.ring_rows is plane.pitch is None
        return 0 if whole else size

    @property
    def unaligned(self) -> str | None:
        """The clause of the report for layers whose pixels are read, or whose fours of outputs are written, at any address."""
        input_aligned, output_aligned = self.layer.word_pixels
        aligned = input_aligned and (output_aligned or len(self.weights) % 4)
        return None if aligned else "a pixel of its tensors may begin within a word"


def weight_type(layer: Layer, values: np.ndarray) -> str:
    """Return the C++ type of weights: the narrowest of int8, int16, int32, int64 that holds integers."""
    if not layer.integer:
        return HALF if values.dtype == np.float16 else layer.output.cpp
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return next(f"std::int{bits}_t" for bits in (8, 16, 32, 64) if -(2 ** (bits - 1)) <= low <= high < 2 ** (bits - 1))


def plain(ctype: str) -> str:
    """Return a type of C++ as reports name it."""
    return ctype.removeprefix("std::").removesuffix("_t")


class Role(Enum):
    """Where a form stands: a host's own order of constants, a Winograd form next to that, the constants of a core."""

    HOST = "host"
    WINOGRAD = "winograd"
    CORE = "core"


T = TypeVar("T", Panels, Winograd, np.ndarray)


class KernelForm(Generic[T]):
    """A way to compute a layer with the kernels of some instruction sets.

    Attributes:
        which: what these instruction sets have (`isa.InstructionSet.has`).
        kernels: the C++ functions that it is for.
        headers: what binds its kernels, where that is not the header of the instruction sets.
        real: whether it is for floating point; the others are for integers.
        time: `cost`, where that is the same for all layers.
    """

    name: ClassVar[str]
    which: ClassVar[str]
    kernels: ClassVar[tuple[str, ...]]
    role: ClassVar[Role] = Role.HOST
    headers: ClassVar[tuple[str, ...]] = ()
    real: ClassVar[bool] = False
    time: ClassVar[float] = 1.0
    tiled: ClassVar[bool] = False

    def fits(self, facts: KernelFacts) -> str | None:
        """Reason against the form, as a clause for the report; None where it is exact."""
        raise NotImplementedError

    def considered(self, facts: KernelFacts) -> bool:
        """Return false if the report omits the form: an export does not want it, or it is for other layers."""
        return True

    def cost(self, facts: KernelFacts) -> float:
        """Return the time of a product, in relation to that of the other forms of its role."""
        return self.time

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        """Return the bytes that it needs while the layer runs, or None."""
        return None

    def pack(self, facts: KernelFacts) -> T:
        """Return the constants in its order."""
        raise NotImplementedError

    def isa(self, facts: KernelFacts) -> str:
        """Return the instruction set of a config."""
        return NATIVE

    @property
    def sets(self) -> tuple[str, ...]:
        """The instruction sets that it is written for, best first."""
        return sets_with(self.which)

    @property
    def signed_sets(self) -> tuple[str, ...]:
        """Those of them that multiply signed bytes."""
        return sets_with(self.which, signed=True)

    def kernel(self, facts: KernelFacts) -> ChosenKernel:
        """Return the kernel for a layer that it fits."""
        return ChosenKernel(self.name, self.sets, self.isa(facts), self.signed_sets, self.headers, self.tiled)


class CoreForm(KernelForm[np.ndarray]):
    """A form of microcontrollers, of layers in integers: all constants are one run of bytes, int8.

    Attributes:
        facts: the enumerators of a config that has it.
    """

    role = Role.CORE
    facts: ClassVar[Mapping[str, int]]

    def fits(self, facts: KernelFacts) -> str | None:
        layer, widest = facts.layer, 16 if facts.kernel == "fullyConnected" else 8
        rescale, kind, output = layer.node.rescale, facts.input, layer.output
        if kind.bits != 8 or output.bits not in (8, widest) or kind.is_float or output.is_float:
            return "its tensors are not 8-bit"
        if layer.node.residual is not None:
            return "it does the sum of another layer"
        if max(*layer.input_shape, *layer.output_shape) >= 2**15:
            return "a dimension exceeds 16 bits"  # of lanes::Shape
        if isinstance(rescale, DoublingRescale):
            if rescale.shifts.min() < 1 or rescale.multipliers.min() < 2**30 or output.bits != 8:
                return "a factor of its rescale is 1 / 2 or more, or tiny"
        elif not isinstance(rescale, FixedPointRescale) or rescale.shift != SHIFT or rescale.multipliers.min() < 0:
            return "its rescale is not a 32-bit product"
        if layer.sum_type() != "std::int32_t" or facts.rows.min() < -128 or facts.rows.max() > 127:
            return "its sums or weights are wide"
        return self.problem(facts)

    def problem(self, facts: KernelFacts) -> str | None:
        """Further reasons against it."""
        return "it has groups" if facts.dense and facts.groups != 1 else None

    def enumerators(self, facts: KernelFacts) -> Mapping[str, int]:
        """Return the enumerators of the config of a layer that it fits."""
        return self.facts

    def stack(self, facts: KernelFacts) -> int:
        """Return the bytes of its buffers on the stack, and of the frames of its functions (see `exports.mcu.stack`)."""
        raise NotImplementedError


FORMS: Registry[KernelForm[Any]] = Registry("the kernel form")
"""By the name of the class."""
F = TypeVar("F", bound="KernelForm[Any]")


def form(cls: type[F]) -> type[F]:
    """Register a class as a kernel form. Raise InternalError when one of its name exists."""
    FORMS.add(cls.__name__, cls())
    return cls


def candidates(facts: KernelFacts, role: Role) -> list[KernelForm[Any]]:
    """Return the forms of a role for the kernel of a layer, the cheapest first."""
    real = not facts.layer.integer
    known = [one for one in FORMS.values() if one.role == role and one.real == real and facts.kernel in one.kernels]
    return sorted((one for one in known if one.considered(facts)), key=lambda one: one.cost(facts))
