"""Options of the quantization."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

QUALITIES = ("fast", "default", "best")
"""Levels of `-quality`."""


@dataclass(frozen=True)
class AskedIntegers:
    """Quantization options of the user; names as in N2D2.

    Attributes:
        bits: width of weights and activations: 8 or 16 for integers, 32 for unscaled ones, -32 or -64 for floating point, -16
            for float32 with weights in half precision.
        act_clipping, quantile: method of activation ranges; the share of values that "Quantile" keeps, in (0, 1].
        wt_clipping: method of weight ranges.
        reduce_range: limit weights so that sums of two 8-bit products fit 16 bits.
        correct_bias: correct the mean error of outputs in the biases, unless the quality is fast.
        input_bits, output_bits: width of network inputs and outputs, 8 or 16; 0 chooses 16 bits for inputs that 8 would spoil
            and for outputs that 8 would spoil or that are vectors of weighted sums.
        sequential: refine ranges on the integers of the layers before.
        unsigned: tensors without negative values are unsigned.
        zero_points: 8-bit tensors with an asymmetric range have a zero point; only with `unsigned`.
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
    """Integer types of a target that users cannot select.

    Attributes:
        wide_concats: a Concat of very different ranges may have 16 bits; False for 8-bit hardware.
        unit_ranges: 8-bit results of Softmax and Logistic have scale 1/256, those of Tanh 1/128, as fixed-point runtimes
            require.
        full_range: signed integers include -2^(bits-1), as in runtimes that saturate at the end of the type.
        file_types: inputs and outputs have the int8 or uint8 type of a pre-quantized file; else the type that the kernels
            prefer.
    """

    _: KW_ONLY
    wide_concats: bool = True
    unit_ranges: bool = False
    full_range: bool = False
    file_types: bool = False


@dataclass(frozen=True)
class QuantOptions(IntegerKinds, AskedIntegers):
    """Options of the algorithms, after quality and target have completed the user's options.

    Attributes:
        rescaling: `-act-rescaling-mode`.
        per_output: a weight scale for each output channel.
        equalize: False with `-no-cle`.
        adaptive_rounding: round weights for the least error of the outputs.
        input_asked: inputs have 16 bits whatever consumes them.
        mixed: store tensors whose rounding costs most in 16 bits.
        wide_weights: with `mixed`, also give 16 bits to weights whose rounding costs most, as far as needed.
        wide: the 16-bit tensors, once they are chosen.
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
        """True if layers are quantized one after the other on samples."""
        return self.correct_bias or self.adaptive_rounding or self.sequential
