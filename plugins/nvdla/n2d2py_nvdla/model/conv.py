"""The convolution pipeline: feature or image input, weights, sums, up to the SDP.

Integers are exact: one tap at a time, products of float matrices whose sums stay below the mantissa. fp16 sums in
float64 and rounds to fp32 (`exact` follows the multipliers instead, n2d2py_nvdla.model.multiplier).
"""

from __future__ import annotations

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.config import HardwareConfig
from n2d2py_nvdla.firmware import BYTES, FP16, INT8
from n2d2py_nvdla.model import floats
from n2d2py_nvdla.model.cbuf_use import buffer_use
from n2d2py_nvdla.model.entries import feature_entries, feature_lines, image_entries, image_lines
from n2d2py_nvdla.model.formats import DTYPES
from n2d2py_nvdla.model.image import FEATURE, pixels
from n2d2py_nvdla.model.integers import convert, saturate, shift_right
from n2d2py_nvdla.model.machine import Machine
from n2d2py_nvdla.model.multiplier import accumulate
from n2d2py_nvdla.model.window import ConvolutionShape
from n2d2py_nvdla.program import DlaTask, Operation

ROWS = {0: 1, 1: 2, 2: 4}
"""Kernel rows that are multiplied together, by the field post_extension."""


def unpack_weights(
    data: np.ndarray,
    kernels: int,
    channels: int,
    kernel: tuple[int, int],
    rows: int,
    group: int,
    channel_group: int,
    precision: int,
) -> np.ndarray:
    """Weight memory (uint8) as (K, C, R, S).

    Order, outermost first: kernel group, channel group, kernel row group, kernel column, kernel, row in group,
    channel. With `rows` > 1 all channels are one group.
    """
    r, s = kernel
    values = data[: kernels * channels * r * s * BYTES[precision]].view(DTYPES[precision])
    weights = np.empty((kernels, channels, r, s), values.dtype)
    at = 0
    for k in range(0, kernels, group):
        many = min(group, kernels - k)
        for c in range(0, channels, channel_group):
            depth = min(channel_group, channels - c)
            for row in range(0, r, rows if rows > 1 else r):
                high = min(rows, r - row) if rows > 1 else r
                count = many * depth * high * s
                block = values[at : at + count]
                at += count
                part = (
                    block.reshape(s, many, high, depth).transpose(1, 3, 2, 0)
                    if rows > 1
                    else block.reshape(high, s, many, depth).transpose(2, 3, 0, 1)
                )
                weights[k : k + many, c : c + depth, row : row + high] = part
    return weights


def pack_weights(weights: np.ndarray, rows: int, group: int, channel_group: int) -> np.ndarray:
    """(K, C, R, S) as weight memory, the inverse of `unpack_weights`; uint8."""
    kernels, channels, r, _ = weights.shape
    blocks = []
    for k in range(0, kernels, group):
        for c in range(0, channels, channel_group):
            for row in range(0, r, rows if rows > 1 else r):
                part = weights[k : k + group, c : c + channel_group, row : row + (rows if rows > 1 else r)]
                order = (3, 0, 2, 1) if rows > 1 else (2, 3, 0, 1)
                blocks.append(np.ascontiguousarray(part.transpose(order)).reshape(-1))
    return np.concatenate(blocks).view(np.uint8)


def convolve(machine: Machine, task: DlaTask, operation: Operation) -> np.ndarray:
    """Return the sums (K, H, W) as the SDP gets them: int64, or float32 for fp16.

    Raises:
        N2D2Error: E903 for modes that are not modelled: Winograd, batches, compressed weights.
    """
    op = operation.op
    _check(machine, operation)
    precision = int(op["out_precision"])
    image = int(op["data_format"]) < FEATURE
    x, weights, pad_value = _operands(machine, task, operation, precision, image)
    geometry = _geometry(operation, len(x), image)
    padded = _pad(x, geometry, pad_value)
    if precision == FP16:
        rows = ROWS[int(op["post_extension"])] if image else 0
        return accumulate(padded, weights, geometry, machine.exact, rows, machine.config.channels)
    total = _integer_sums(padded, weights, geometry, precision)
    bits = 34 if precision == INT8 else 48
    return saturate(shift_right(saturate(total, bits), int(op["out_cvt"]["truncate"])), 32)


def _operands(
    machine: Machine, task: DlaTask, operation: Operation, precision: int, image: bool
) -> tuple[np.ndarray, np.ndarray, int | np.float16]:
    """Input (C, H, W), weights (K, C, R, S) and value of the padding, as they come out of the convolution buffer."""
    op, dtype = operation.op, DTYPES[precision]
    pad = floats.bits_to_half(int(op["pad_val"])) if precision == FP16 else _signed(int(op["pad_val"]), precision)
    x = (_pixels if image else _features)(machine, task, operation).astype(dtype)
    left = int(op["pad_x_left"])
    lines = image_entries(machine.config, x, left, int(op["pad_x_right"]), pad) if image else feature_entries(machine.config, x)
    geometry = _geometry(operation, len(x) if image else int(op["input_channel_csc"]), image)
    memory, base = _weight_bytes(machine, task, operation, geometry)
    use = buffer_use(machine.config, operation, base)
    wrong = ""
    if not image and (lines.shape[1] != use.entries or len(x) < geometry.channels):
        wrong = f"a line of {use.entries} entries and {geometry.channels} channels; its data have {lines.shape[1]} and {len(x)}"
    elif use.kernel_bytes != geometry.channels * geometry.kernel[0] * geometry.kernel[1] * BYTES[precision]:
        wrong = f"kernels of {use.kernel_bytes} bytes, which do not fit the channels of the input"
    if wrong:
        raise N2D2Error(
            "E903", f"{operation.name}: {wrong}", where=machine.name, remedy="compile it again; NVIDIA's C-model stops here"
        )
    reading = machine.buffer.run(use, lines, memory[base : base + use.weight_bytes])
    if reading.data is not None and image:
        x = image_lines(reading.data, len(x), left, x.shape[2], dtype)
    elif reading.data is not None:
        x = feature_lines(machine.config, reading.data, len(x) // machine.config.lanes(precision), x.shape[2], dtype)
    if reading.weights is None:
        weights = _weights(machine, task, operation, geometry, image)
    else:
        weights = _unpacked(machine.config, operation, reading.weights, geometry, image)
    return x[: geometry.channels], weights, pad


def _pixels(machine: Machine, task: DlaTask, operation: Operation) -> np.ndarray:
    memory, base = machine.place(task, operation.surface["src_data"], f"{operation.name} src_data")
    return pixels(memory, base, operation, machine.name)


def _features(machine: Machine, task: DlaTask, operation: Operation) -> np.ndarray:
    """Return the whole atoms of the input, converted where the operation says so."""
    x = machine.read_cube(task, operation, "src_data", int(operation.op["in_precision"]))
    cvt, precision = operation.op["in_cvt"], int(operation.op["out_precision"])
    if not cvt["enable"] or precision == FP16:
        return x
    return convert(x.astype(np.int64), int(cvt["offset"]), int(cvt["scale"]), int(cvt["truncate"]), 8 * BYTES[precision])


def _signed(value: int, precision: int) -> int:
    return ((value & 0xFF) ^ 0x80) - 0x80 if precision == INT8 else value


def _check(machine: Machine, operation: Operation) -> None:
    op = operation.op
    wrong = None
    if op["conv_mode"]:
        wrong = "it is a Winograd convolution"
    elif op["batch"] > 1:
        wrong = f"it convolves {int(op['batch'])} images at once"
    elif op["weight_format"]:
        wrong = "its weights are compressed"
    elif int(op["in_precision"]) != int(op["out_precision"]) or int(op["out_precision"]) > FP16:
        wrong = f"it converts precision {int(op['in_precision'])} to {int(op['out_precision'])}"
    elif int(op["post_extension"]) not in ROWS or not (op["conv_stride_x"] and op["conv_stride_y"]):
        wrong = "its post extension or stride does not exist"
    if wrong:
        raise N2D2Error(
            "E903",
            f"{operation.name}: {wrong}, which is not modelled",
            where=machine.name,
            remedy="use direct convolutions of one image with plain weights",
        )


def _geometry(operation: Operation, channels: int, image: bool) -> ConvolutionShape:
    op, dst = operation.op, operation.surface["dst_data"]
    width = int(op["kernel_channel_csc"]) // channels if image else int(op["kernel_width_csc"])
    return ConvolutionShape(
        int(dst["channel"]),
        channels,
        (int(op["kernel_height_csc"]), width),
        (int(dst["height"]), int(dst["width"])),
        (int(op["conv_stride_y"]), int(op["conv_stride_x"])),
        (max(int(op["dilation_y"]), 1), max(int(op["dilation_x"]), 1)),
        (int(op["pad_y_top"]), int(op["pad_x_left"])),
    )


def _weight_bytes(machine: Machine, task: DlaTask, operation: Operation, geometry: ConvolutionShape) -> tuple[np.ndarray, int]:
    """Memory and first byte of the weights."""
    what = f"{operation.name} weight_data"
    memory, base = machine.place(task, operation.surface["weight_data"], what)
    k, c, (r, s) = geometry.kernels, geometry.channels, geometry.kernel
    size = k * c * r * s * BYTES[int(operation.op["out_precision"])]
    if base + max(size, int(operation.surface["weight_data"]["size"])) > len(memory) or not size:
        raise N2D2Error(
            "E906",
            f"{what}: {size} bytes from byte {base} of a memory of {len(memory)}",
            where=machine.name,
            remedy="compile it again",
        )
    return memory, base


def _weights(machine: Machine, task: DlaTask, operation: Operation, geometry: ConvolutionShape, image: bool) -> np.ndarray:
    """Return the weights in the order of the computation, as they lie in memory."""
    precision = int(operation.op["out_precision"])
    memory, base = _weight_bytes(machine, task, operation, geometry)
    k, c, (r, s) = geometry.kernels, geometry.channels, geometry.kernel
    size = k * c * r * s * BYTES[precision]
    index = task.addresses[int(operation.surface["weight_data"]["address"])][0]
    key = (index, base, k, c, r, s, precision, image, int(operation.op["post_extension"]))
    if key in machine.weights:
        return machine.weights[key]
    weights = _unpacked(machine.config, operation, memory[base : base + size], geometry, image)
    if index in machine.constant:
        machine.weights[key] = weights
    return weights


def _unpacked(
    one: HardwareConfig, operation: Operation, data: np.ndarray, geometry: ConvolutionShape, image: bool
) -> np.ndarray:
    precision = int(operation.op["out_precision"])
    k, c, (r, s) = geometry.kernels, geometry.channels, geometry.kernel
    if not image:
        return unpack_weights(data, k, c, (r, s), 1, one.kernel_group(precision), one.channels, precision)
    rows = ROWS[int(operation.op["post_extension"])]
    packed = unpack_weights(
        data, k, c * s, (r, 1), rows, one.kernel_group(precision), c * s if rows > 1 else one.channels, precision
    )
    return packed.reshape(k, s, c, r).transpose(0, 2, 3, 1)


def _pad(x: np.ndarray, geometry: ConvolutionShape, value: int | np.float16) -> np.ndarray:
    """`x` with the cells that the windows reach, filled with `value`."""
    need = [
        (n - 1) * s + (k - 1) * d + 1
        for n, s, k, d in zip(geometry.size, geometry.stride, geometry.kernel, geometry.dilation, strict=True)
    ]
    padded = np.full((len(x), *need), value, x.dtype if x.dtype == np.float16 else np.int32)
    top, left = geometry.pad
    part = x[:, : max(need[0] - top, 0), : max(need[1] - left, 0)]
    padded[:, top : top + part.shape[1], left : left + part.shape[2]] = part
    return padded


def _integer_sums(x: np.ndarray, weights: np.ndarray, geometry: ConvolutionShape, precision: int) -> np.ndarray:
    k, c, r, s = weights.shape
    h, w = geometry.size
    taps = max(1, min(r * s, 1024 // c)) if precision == INT8 else r * s
    real = np.float32 if precision == INT8 and c <= 1024 else np.float64
    x = x.astype(real)
    matrix = weights.transpose(2, 3, 0, 1).reshape(r * s, k, c).astype(real)
    total = np.zeros((k, h * w), np.float64)
    for first in range(0, r * s, taps):
        last = min(first + taps, r * s)
        columns = np.concatenate([_tap(x, geometry, tap // s, tap % s) for tap in range(first, last)])
        total += matrix[first:last].transpose(1, 0, 2).reshape(k, -1) @ columns
    return total.reshape(k, h, w).astype(np.int64)


def _tap(x: np.ndarray, geometry: ConvolutionShape, row: int, column: int) -> np.ndarray:
    """Return the elements that all windows see at one kernel position, (C, H * W)."""
    (h, w), (sy, sx), (dy, dx) = geometry.size, geometry.stride, geometry.dilation
    y, z = row * dy, column * dx
    return x[:, y : y + (h - 1) * sy + 1 : sy, z : z + (w - 1) * sx + 1 : sx].reshape(len(x), -1)
