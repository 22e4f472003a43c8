"""Options of the quantization."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

QUALITIES = ("fast", "default", "best")
"""Levels of `-quality`."""


@dataclass(frozen=True)
class AskedIntegers:
    """The integers of a network as a user may ask for them; names as in N2D2.

    Attributes:
        bits: width of weights and activations: 8 or 16 for integers, 32 for plain ones, -32 or -64 for floating point, -16 for that
            with weights in half precision.
        act_clipping, quantile: how ranges of activations are chosen; the share of values that "Quantile" keeps, in (0, 1].
        wt_clipping: how ranges of weights are chosen.
        reduce_range: weights so small that sums of two 8-bit products fit 16 bits.
        correct_bias: whether biases correct the mean error of outputs, unless the quality is fast.
        input_bits, output_bits: width of the inputs and outputs of the network, 8 or 16; 0: the tool chooses, 16 bits for an input that
            8 would spoil and for outputs that are vectors of weighted sums.
        sequential: whether ranges are chosen again on the integers of the layers before.
        unsigned: whether tensors without negative values are unsigned.
        zero_points: whether 8-bit tensors whose range is far from symmetric have a zero point; only with `unsigned`.
    """

    bits: int = 8
    _: KW_ONLY
    act_clipping: Literal["None", "MSE", "KL-Divergence", "Quantile"] = "MSE"
    quantile: float = 0.9999
    wt_clipping: Literal["None", "MSE", "KL-Divergence"] = "None"
    reduce_range: bool = False
    correct_bias: bool = True
    input_bits: int = 0
    output_bits: int = 0
    sequential: bool = False
    unsigned: bool = True
    zero_points: bool = True


@dataclass(frozen=True)
class IntegerKinds:
    """The integers that a target has, beyond what can be asked.

    Attributes:
        wide_joins: whether a concatenation of ranges that differ much may have 16 bits; False for hardware of 8.
        unit_ranges: whether 8-bit results of Softmax and Logistic have the scale 1/256, those of Tanh 1/128, whatever their range:
            runtimes in fixed point demand it.
        full_range: whether signed integers have -2^(bits-1) too, as where a runtime cuts at the end of its type.
        file_types: whether inputs and outputs have the 8-bit type of a pre-quantized file, int8 or uint8; else the type that the kernels
            prefer.
    """

    _: KW_ONLY
    wide_concats: bool = True
    unit_ranges: bool = False
    full_range: bool = False
    file_types: bool = False


@dataclass(frozen=True)
class QuantOptions(IntegerKinds, AskedIntegers):
    """Options of the algorithms: what was asked, once the quality and the target have decided the rest.

    Attributes:
        rescaling: `-act-rescaling-mode`.
        per_output: a weight scale for each output channel.
        equalize: False with `-no-cle`.
        adaptive_rounding: weights are rounded for the least error of the outputs.
        input_asked: inputs have 16 bits whatever reads them.
        mixed: tensors whose rounding costs most are stored in 16 bits.
        wide_weights: with `mixed`, weights whose rounding costs most have 16 bits too, as far as activations leave too much.
        wide: these tensors, once they are known.
    """

    _: KW_ONLY
    correct_bias: bool = False
    input_bits: int = 8
    output_bits: int = 8
    rescaling: str = "Floating-point"
    per_output: bool = True
    equalize: bool = True
    adaptive_rounding: bool = False
    input_asked: bool = False
    mixed: bool = False
    wide_weights: bool = False
    wide: frozenset[str] = frozenset()

    @property
    def needs_samples(self) -> bool:
        """True if layers are quantized one after the other on stimuli."""
        return self.correct_bias or self.adaptive_rounding or self.sequential
