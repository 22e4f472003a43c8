"""Sums of convolutions against loops over numbers: dilation, strides, paddings, converters, pixel formats, extensions."""

import numpy as np
import pytest
from support.nvdla_scalar import clamp, converter, rsh
from support.nvdla_single import Cube, fill

from n2d2py_nvdla import firmware
from n2d2py_nvdla.config import CONFIGS, HardwareConfig
from n2d2py_nvdla.firmware import ABIS, BYTES, CONV, INT8, INT16
from n2d2py_nvdla.model.conv import convolve
from n2d2py_nvdla.model.machine import Machine
from n2d2py_nvdla.program import DlaTask, Operation

ORDERS = {0: [0], 12: [0, 1, 2, 3], 13: [2, 1, 0, 3], 14: [1, 2, 3, 0], 15: [3, 2, 1, 0], 26: [2, 1, 0, 3], 27: [1, 2, 3, 0]}
BITS = {INT8: 8, INT16: 16}


def weight_index(
    k: int, c: int, r: int, s: int, kernels: int, channels: int, shape: tuple[int, int], group: int, depth: int, rows: int = 1
) -> int:
    """Element of a weight in memory: kernel group, channel group, row group, column, kernel, row in group, channel."""
    high, wide = shape
    first_k, first_c = k // group * group, c // depth * depth
    many, deep = min(group, kernels - first_k), min(depth, channels - first_c)
    at = first_k * channels * high * wide + many * first_c * high * wide
    if rows == 1:
        return at + ((r * wide + s) * many + k - first_k) * deep + c - first_c
    first_r = r // rows * rows
    tall = min(rows, high - first_r)
    return at + many * deep * first_r * wide + ((s * many + k - first_k) * tall + r - first_r) * deep + c - first_c


def run(config, op: np.void, source: bytes, weights: bytes, cube: np.ndarray, out: tuple[int, int, int]) -> np.ndarray:
    surface = np.zeros((), ABIS["v12"].surfaces[CONV])
    surface["src_data"], surface["weight_data"]["address"], surface["dst_data"]["type"] = cube, 1, 2
    surface["src_data"]["address"] = 0
    surface["dst_data"]["channel"], surface["dst_data"]["height"], surface["dst_data"]["width"] = out
    weights += bytes(-len(weights) % CONFIGS[config].width)
    surface["weight_data"]["size"] = len(weights)
    for field, value in buffer_fields(CONFIGS[config], op, cube).items():
        op[field] = value
    memories = {0: np.frombuffer(source, np.uint8), 1: np.frombuffer(weights, np.uint8)}
    machine = Machine("one.nvdla", CONFIGS[config], memories)
    task = DlaTask(0, ((0, 0, len(source)), (1, 0, len(weights))), np.zeros((), firmware.NETWORK)[()], (), ())
    return convolve(machine, task, Operation(0, CONV, np.zeros((), firmware.COMMON)[()], op, surface[()]))


def buffer_fields(one: HardwareConfig, op: np.void, cube: np.ndarray) -> dict[str, int]:
    """Fields of the convolution buffer: half of it for data, half for weights; pixels of a line are counted one by one."""
    size, width, height = BYTES[int(op["out_precision"])], int(cube["width"]), int(cube["height"])
    if op["data_format"] < 36:
        padded = width + int(op["pad_x_left"]) + int(op["pad_x_right"])
        entries = -(-padded * int(cube["channel"]) * size // one.width)
        channels = int(op["kernel_channel_csc"])
    else:
        channels = int(cube["channel"])
        left = -(-channels * size // one.atom) * one.atom  # bytes of a pixel
        entries = left // one.width * width
        left %= one.width
        together = one.width // left if left and 2 * left <= one.width else 1
        entries += len(range(0, width, together)) if left else 0
        op["kernel_channel_csc"] = channels
    return {
        "entry_per_slice": entries,
        "data_bank": one.banks // 2,
        "weight_bank": one.banks // 2,
        "input_height_csc": height,
        "release": height,
        "bytes_per_kernel": channels * int(op["kernel_width_csc"]) * int(op["kernel_height_csc"]) * size,
    }


def geometry(random: np.random.Generator, op: np.ndarray, dilation: bool) -> tuple[tuple[int, int], ...]:
    """(input, kernel, stride, dilation, padding before, output), height first; fills the fields of `op`."""
    kernel = tuple(int(random.integers(1, 4)) for _ in range(2))
    stride = tuple(int(random.integers(1, 4)) for _ in range(2))
    apart = tuple(int(random.integers(1, 4)) if dilation else 1 for _ in range(2))
    before, behind = (tuple(int(random.integers(0, 3)) for _ in range(2)) for _ in range(2))
    out = tuple(int(random.integers(1, 4)) for _ in range(2))
    size = tuple(
        max(1, (n - 1) * s + (k - 1) * d + 1 - a - b)
        for n, s, k, d, a, b in zip(out, stride, kernel, apart, before, behind, strict=True)
    )
    for name, value in {
        "conv_stride_y": stride[0],
        "conv_stride_x": stride[1],
        "dilation_y": apart[0],
        "dilation_x": apart[1],
        "pad_y_top": before[0],
        "pad_x_left": before[1],
        "kernel_height_csc": kernel[0],
        "kernel_width_csc": kernel[1],
        "batch": 1,
    }.items():
        op[name] = value
    return size, kernel, stride, apart, before, out


def sums(get, weight, channels: int, shapes, k: int, y: int, x: int, pad: int, bits: int, shift: int) -> int:
    size, kernel, stride, apart, before, _ = shapes
    total = 0
    for c in range(channels):
        for r in range(kernel[0]):
            for s in range(kernel[1]):
                h, w = y * stride[0] - before[0] + r * apart[0], x * stride[1] - before[1] + s * apart[1]
                inside = 0 <= h < size[0] and 0 <= w < size[1]
                total += weight(k, c, r, s) * (get(c, h, w) if inside else pad)
    return clamp(rsh(clamp(total, bits), shift), 32)


@pytest.mark.parametrize(
    "config, precision", [("nv_full", INT8), ("nv_full", INT16), ("nv_small", INT8), ("nv_small_256", INT8)]
)
def test_features(config, precision):
    one = CONFIGS[config]
    for seed in range(8):
        random = np.random.default_rng(seed)
        op = np.zeros((), firmware.CONV_OP)
        shapes = geometry(random, op, True)
        channels, kernels = (
            int(random.integers(1, 2 * one.channels if seed % 4 == 0 else 12)),
            int(random.integers(1, 2 * one.kernels)),
        )
        kernels = min(kernels, 5) if channels > 12 else kernels
        op["data_format"], op["input_channel_csc"], op["in_precision"], op["out_precision"] = 36, channels, precision, precision
        op["pad_val"], op["out_cvt"]["truncate"] = random.integers(-127, 128), random.integers(0, 6)
        cvt = op["in_cvt"]
        cvt["enable"], cvt["scale"], cvt["offset"], cvt["truncate"] = (
            seed % 2,
            random.integers(-9, 9),
            random.integers(-99, 99),
            2,
        )
        cube = Cube((channels, *shapes[0]), precision, one.atom, (1, 1))
        record = np.zeros((), ABIS["v12"].cube)
        cube.descriptor(record, 0)
        source, count = fill(cube.size, seed), kernels * channels * shapes[1][0] * shapes[1][1]
        raw = fill(count * BYTES[precision], seed + 99)
        values = np.frombuffer(raw, "i1" if precision == INT8 else "<i2").astype(int).tolist()
        found = run(config, op[()], source, raw, record, (kernels, *shapes[5]))

        def get(c: int, h: int, w: int) -> int:
            x = int(cube.get(source, c, h, w))
            return converter(x, int(cvt["offset"]), int(cvt["scale"]), 2, BITS[precision]) if cvt["enable"] else x

        def weight(k: int, c: int, r: int, s: int) -> int:
            return values[weight_index(k, c, r, s, kernels, channels, shapes[1], one.kernel_group(precision), one.channels)]

        for k, y, x in [(int(random.integers(kernels)), *(int(random.integers(n)) for n in shapes[5])) for _ in range(12)]:
            wanted = sums(
                get,
                weight,
                channels,
                shapes,
                k,
                y,
                x,
                int(op["pad_val"]),
                34 if precision == INT8 else 48,
                int(op["out_cvt"]["truncate"]),
            )
            assert found[k, y, x] == wanted, (seed, k, y, x)


@pytest.mark.parametrize("code", sorted(ORDERS))
def test_pixels(code):
    order = ORDERS[code]
    for config in ("nv_full", "nv_small"):
        one = CONFIGS[config]
        for seed in range(6):
            random = np.random.default_rng(100 * code + seed)
            op = np.zeros((), firmware.CONV_OP)
            shapes = geometry(random, op, False)
            (h, w), (r, s) = shapes[0], shapes[1]
            kernels, channels = int(random.integers(1, 12)), len(order)
            extension = seed % 3 if s * channels <= one.channels // 4 else 0
            rows = 1 << extension
            op["data_format"], op["kernel_width_csc"], op["kernel_channel_csc"] = code, 1, s * channels
            op["post_extension"], op["pixel_override"], op["mean_format"] = extension, seed % 2, seed % 4 == 1
            op["pad_val"], op["out_cvt"]["truncate"] = random.integers(-9, 9), seed
            for name in ("mean_ry", "mean_gu", "mean_bv", "mean_ax"):
                op[name] = random.integers(-130, 130)
            cvt = op["in_cvt"]
            cvt["enable"], cvt["scale"], cvt["offset"], cvt["truncate"] = 1, random.integers(-9, 9), random.integers(-99, 99), 1
            record = np.zeros((), ABIS["v12"].cube)
            line = -(-w * channels // 32) * 32
            record["width"], record["height"], record["channel"], record["line_stride"] = w, h, channels, line
            source, raw = fill(line * h, seed), fill(kernels * channels * r * s, seed + 9)
            values = np.frombuffer(raw, "i1").astype(int).tolist()
            found = run(config, op[()], source, raw, record, (kernels, *shapes[5]))

            def get(c: int, y: int, x: int) -> int:
                byte = source[y * line + x * channels + order[c]]
                byte = byte - 256 if op["pixel_override"] and byte > 127 else byte
                offset = int(op[("mean_ry", "mean_gu", "mean_bv", "mean_ax")[c]]) if op["mean_format"] else int(cvt["offset"])
                return converter(byte, offset, int(cvt["scale"]), 1, 8)

            def weight(k: int, c: int, row: int, column: int) -> int:
                depth = s * channels if rows > 1 else one.channels
                return values[
                    weight_index(k, column * channels + c, row, 0, kernels, s * channels, (r, 1), one.kernels, depth, rows)
                ]

            for k, y, x in [(int(random.integers(kernels)), *(int(random.integers(n)) for n in shapes[5])) for _ in range(10)]:
                wanted = sums(get, weight, channels, shapes, k, y, x, int(op["pad_val"]), 34, seed)
                assert found[k, y, x] == wanted, (config, seed, k, y, x)


def test_accumulators_saturate():
    op = np.zeros((), firmware.CONV_OP)
    for name, value in {
        "conv_stride_y": 1,
        "conv_stride_x": 1,
        "dilation_y": 1,
        "dilation_x": 1,
        "kernel_height_csc": 8,
        "kernel_width_csc": 8,
        "batch": 1,
        "data_format": 36,
        "input_channel_csc": 512,
        "in_precision": INT16,
        "out_precision": INT16,
    }.items():
        op[name] = value
    cube = Cube((512, 8, 8), INT16, 32)
    record = np.zeros((), ABIS["v12"].cube)
    cube.descriptor(record, 0)
    low = np.full(cube.size // 2, -32768, "<i2").tobytes()
    for shift, wanted in ((0, 2**31 - 1), (8, clamp((2**45) >> 8, 32)), (15, 2**30)):
        op["out_cvt"]["truncate"] = shift
        assert run("nv_full", op[()], low, low, record, (1, 1, 1))[0, 0, 0] == wanted
