"""Convolution and pooling by their definitions, written as loops."""

import numpy as np


def convolve(x: np.ndarray, w: np.ndarray, b: np.ndarray, stride=(1, 1), pad=(0, 0), dilation=(1, 1)) -> np.ndarray:
    """Dense cross-correlation of x (n, C, H, W) with w (O, C, KH, KW); tuples are (vertical, horizontal)."""
    (ph, pw), (sh, sw), (dh, dw), (o, _, kh, kw) = pad, stride, dilation, w.shape
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    height = (x.shape[2] - dh * (kh - 1) - 1) // sh + 1
    width = (x.shape[3] - dw * (kw - 1) - 1) // sw + 1
    y = np.empty((len(x), o, height, width))
    for i in range(height):
        for j in range(width):
            window = x[:, :, i * sh : i * sh + dh * (kh - 1) + 1 : dh, j * sw : j * sw + dw * (kw - 1) + 1 : dw]
            y[:, :, i, j] = np.tensordot(window, w, axes=([1, 2, 3], [1, 2, 3])) + b
    return y


def pool(x: np.ndarray, kernel, stride, pad, how: str) -> np.ndarray:
    """Max (padding never wins) or Average over the whole window, padding counted."""
    (kh, kw), (sh, sw), (ph, pw) = kernel, stride, pad
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=-np.inf if how == "Max" else 0.0)
    height, width = (x.shape[2] - kh) // sh + 1, (x.shape[3] - kw) // sw + 1
    y = np.empty((*x.shape[:2], height, width))
    for i in range(height):
        for j in range(width):
            window = x[:, :, i * sh : i * sh + kh, j * sw : j * sw + kw]
            y[:, :, i, j] = window.max(axis=(2, 3)) if how == "Max" else window.sum(axis=(2, 3)) / (kh * kw)
    return y
