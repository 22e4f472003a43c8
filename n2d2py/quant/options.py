"""Options of the quantization."""

from __future__ import annotations

from dataclasses import dataclass

QUALITIES = ("fast", "default", "best")
"""Levels of `-quality`."""


@dataclass(frozen=True)
class QuantOptions:
    """Options of the command line that decide the integers; names as in N2D2.

    Attributes:
        bits: width of weights and activations, 8 or 16.
        act_clipping, quantile: `-act-clipping-mode`, `-act-quantile-value`.
        wt_clipping: `-wt-clipping-mode`.
        rescaling: `-act-rescaling-mode`.
        per_output: `-act-rescale-per-output`; a weight scale for each output channel.
        unsigned: False with `-no-unsigned`.
        equalize: False with `-no-cle`.
        correct_bias: `-bias-correction`; the mean of every output of a weighted layer is kept.
        input_bits: `-input-bits`; 0 takes 16 for an input that 8 bits would spoil.
        input_asked: `-input-bits 16`; inputs have 16 bits whatever reads them.
        output_bits: `-output-bits`; width of the network's outputs; 0 takes 16 for vectors of weighted sums.
        mixed: `-mixed-precision`; tensors whose rounding costs most are stored in 16 bits.
        wide_weights: with `mixed`, weights whose rounding costs most have 16 bits too, as far as activations leave too much.
        wide: these tensors, once they are known.
        wide_joins: a Concat of ranges that differ much may get 16 bits; False for hardware of 8.
        sequential: `-sequential-calibration`; ranges are chosen again on the integers of the layers before.
        reduce_range: `-wt-reduce-range`; weights so small that 8-bit products fit 16 bits.
        adaptive_rounding: `-wt-rounding adaptive`; weights are rounded for the least error of the outputs.
        zero_points: False with `-no-zero-points`; unsigned activations with a zero point where that makes a
            smaller error; only where `unsigned` allows it.
        unit_ranges: 8-bit results of Softmax and Logistic have the scale 1/256, those of Tanh 1/128: runtimes in fixed point
            demand it.
        file_types: inputs and outputs of a pre-quantized file keep its 8-bit type, int8 or uint8, where the kernels work on the other one.
        full_range: signed integers have -2^(bits-1) too: runtimes cut at the end of the type.
    """

    bits: int = 8
    act_clipping: str = "MSE"
    quantile: float = 0.9999
    wt_clipping: str = "None"
    rescaling: str = "Floating-point"
    per_output: bool = True
    unsigned: bool = True
    equalize: bool = True
    correct_bias: bool = False
    adaptive_rounding: bool = False
    input_bits: int = 8
    input_asked: bool = False
    output_bits: int = 8
    mixed: bool = False
    wide_weights: bool = False
    wide: frozenset[str] = frozenset()
    wide_joins: bool = True
    sequential: bool = False
    reduce_range: bool = False
    zero_points: bool = True
    unit_ranges: bool = False
    full_range: bool = False
    file_types: bool = False

    @property
    def needs_samples(self) -> bool:
        """True if layers are quantized one after the other on stimuli."""
        return self.correct_bias or self.adaptive_rounding or self.sequential
