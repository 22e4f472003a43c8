"""Maxima over windows that are larger than the PDP's, as several pools: a maximum of maxima, the same values.

Windows of k1 after windows of k0 reach k0 + k1 - 1 positions; the last stage has the steps. Cells outside of the map
count nowhere, so paddings are shared out between the stages, to each less than its window.
"""

from __future__ import annotations

from dataclasses import dataclass

LARGEST_KERNEL, LARGEST_STRIDE, LARGEST_PAD = 8, 8, 7


@dataclass(frozen=True)
class Axis:
    """The stages of an axis.

    Attributes:
        used: positions of the map, from the first, that take part.
        stages: (kernel, stride, padding before, outputs) of each pool.
        step: every step-th output of the last stage is a result.
    """

    used: int
    stages: list[tuple[int, int, int, int]]
    step: int = 1

    def padded(self, depth: int) -> list[tuple[int, int, int, int]]:
        """Return the stages with some that change nothing after them."""
        size = self.stages[-1][3]
        return self.stages + [(1, 1, 0, size)] * (depth - len(self.stages))


def factors(k: int) -> list[int] | None:
    """k as a product of numbers up to 8, few of them."""
    found = []
    while k > LARGEST_KERNEL:
        divisor = next((d for d in range(LARGEST_KERNEL, 1, -1) if k % d == 0), None)
        if divisor is None:
            return None
        found.append(divisor)
        k //= divisor
    return [*found, k]


def maximum_stages(size: int, kernel: int, stride: int, pad: int, outputs: int) -> Axis:
    """Return the stages of `outputs` windows of `kernel`, `stride` apart from position -pad, over `size` positions."""
    if kernel <= LARGEST_KERNEL and stride <= LARGEST_STRIDE and pad <= LARGEST_PAD:
        return Axis(size, [(kernel, stride, pad, outputs)])
    if outputs == 1:
        return _one_window(min(size, kernel - pad))
    parts = factors(kernel)
    if kernel == stride and not pad and size >= outputs * kernel and parts is not None:
        stages, left = [], outputs * kernel
        for part in parts:
            left //= part
            stages.append((part, part, 0, left))
        return Axis(outputs * kernel, stages)
    return _overlapping(size, kernel, stride, pad, outputs)


def _one_window(used: int) -> Axis:
    stages, left = [], used
    while left > 1 or not stages:
        part = min(left, LARGEST_KERNEL)
        left = -(-left // part)
        stages.append((part, part, 0, left))
    return Axis(used, stages)


def _overlapping(size: int, kernel: int, stride: int, pad: int, outputs: int) -> Axis:
    step = 1 if stride <= LARGEST_STRIDE else stride
    last, count = (stride, outputs) if step == 1 else (1, (outputs - 1) * stride + 1)
    kernels = [LARGEST_KERNEL] * ((kernel - 1) // (LARGEST_KERNEL - 1))
    rest = kernel - len(kernels) * (LARGEST_KERNEL - 1)
    kernels += [rest] if rest > 1 or not kernels else []
    before, behind = _shared(pad, kernels), _shared(max(0, (count - 1) * last + kernel - size - pad), kernels)
    stages = []
    for number in reversed(range(len(kernels))):
        stages.append((kernels[number], last, before[number], count))
        count = (count - 1) * last + kernels[number] - before[number] - behind[number]
        last = 1
    return Axis(size, stages[::-1], step)


def _shared(pad: int, kernels: list[int]) -> list[int]:
    """Return a padding in parts, each below the kernel of its stage."""
    parts = []
    for kernel in kernels:
        parts.append(min(pad, kernel - 1))
        pad -= parts[-1]
    return parts
