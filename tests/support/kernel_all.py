"""All cases of the kernel sweeps by name: one-layer networks in integers and in real numbers, drawn by seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from support import (
    array_cases,
    attention_cases,
    kernel_cases,
    kernel_conversions,
    kernel_function_cases,
    kernel_interpolation,
    kernel_real_layers,
    kernel_unseen_layers,
    recurrent_cases,
)
from support.attention_cases import masked_softmaxes, products, softmaxes, sums
from support.kernel_cases import Sweep
from support.kernel_halves import half_cases
from support.kernel_harness import Case
from support.kernel_lines import line_cases
from support.kernel_overlaps import overlapping_cases
from support.kernel_packed import few_bits
from support.kernel_quantized_layers import quantized_cases
from support.kernel_residual import residual_cases

SWEEPS: dict[str, Callable[[int], Sequence[Case]]] = {
    "convolutions": lambda seed: kernel_cases.convolutions(Sweep(seed), 66),
    "fully connected layers": lambda seed: kernel_cases.fully_connected(Sweep(seed)),
    "pools": lambda seed: kernel_cases.pools(Sweep(seed)),
    "pointwise layers": lambda seed: kernel_cases.pointwise(Sweep(seed)),
    "moves": lambda seed: kernel_cases.moves(Sweep(seed)),
    "floating point": lambda seed: kernel_cases.floats(Sweep(seed)),
    "packed channels": lambda seed: kernel_cases.packed_channels(Sweep(seed)),
    "arrays": lambda seed: array_cases.everything(seed),
    "attention": lambda seed: [
        case for cases in (products, sums, softmaxes, masked_softmaxes, attention_cases.norms) for case in cases(seed)
    ],
    "recurrent layers": lambda seed: recurrent_cases.everything(seed, 3),
    "lines": lambda seed: line_cases(seed + 4),
    "overlaps": lambda seed: overlapping_cases(seed + 2),
    "conversions": lambda seed: kernel_conversions.all_cases(seed),
    "halves": lambda seed: half_cases(seed),
    "functions": lambda seed: kernel_function_cases.all_cases(seed),
    "functions of 16 bits": lambda seed: kernel_interpolation.cases(Sweep(seed)),
    "real layers": lambda seed: kernel_real_layers.all_cases(seed),
    "weights of few bits": lambda seed: few_bits(seed),
    "layers that come quantized": lambda seed: quantized_cases(seed),
    "sums in place": lambda seed: residual_cases(seed),
    "sizes around vectors": lambda seed: kernel_unseen_layers.all_cases(seed),
}
"""By seed; that of the first is 1."""
