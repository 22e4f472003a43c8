"""Windows of convolutions and pools of TFLite along any number of axes."""

from __future__ import annotations

from collections.abc import Sequence

from n2d2py.frontend.tflite.file import RefusedOperator
from n2d2py.frontend.tflite.schema import SAME, VALID


def find_windows(
    padding: int, sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return (result sizes, ONNX pads)."""
    if min(*kernel, *stride, *dilation) < 1:
        raise RefusedOperator(f"its kernel {kernel}, stride {stride} or dilation {dilation} is below 1")
    if padding not in (SAME, VALID):
        raise RefusedOperator(f"padding number {padding} is not defined")
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    if padding == VALID:
        if any(n < e for n, e in zip(sizes, extents, strict=True)):
            window, size = (" x ".join(map(str, each)) for each in (extents, sizes))
            raise RefusedOperator(f"its window {window} is larger than its input {size}")
        return [(n - e) // s + 1 for n, e, s in zip(sizes, extents, stride, strict=True)], [0] * 2 * len(sizes)
    outputs = [-(-n // s) for n, s in zip(sizes, stride, strict=True)]
    total = [max((o - 1) * s + e - n, 0) for o, s, e, n in zip(outputs, stride, extents, sizes, strict=True)]
    return outputs, [amount // 2 for amount in total] + [amount - amount // 2 for amount in total]
