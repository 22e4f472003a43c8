"""SDP operations from real arithmetic: y = activation(gain * (sum + bias) [+ second operand]), in int8 and fp16.

int8: X1 adds the bias (16 bits, shifted) and multiplies (16 bits, then a shift), X2 takes the second operand, the limit
or the slope of negative values, the converter gives the output's scale. fp16 needs no scales.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.errors import InternalError, N2D2Error
from n2d2py_nvdla import firmware
from n2d2py_nvdla.export.hardware import ConstantBlob, Region
from n2d2py_nvdla.firmware import INT8, INT16

MUL, ADD, BOTH = 1, 2, 3
MAX, MIN, SUM = range(3)
RELU, LUT, PRELU = 1, 2, 3
PER_LAYER, PER_KERNEL, PER_POINT = range(3)

_OPERAND_SHIFT = 8
"""Fractional bits of a second int8 operand."""


@dataclass(frozen=True)
class Post:
    """Arithmetic applied to the accumulators of a convolution, or to a tensor.

    Attributes:
        gain: real value of 1 of the sum, by channel or one for all; 1 for fp16 sums. From memory also by element, (C, H, W).
        bias: added to the sum before the gain (integers of the sum, or reals for fp16), by channel; None.
        after: a real bias, added after the gain, by channel; from memory also by element, (C, H, W); None.
        operand, operand_scale, combine: second operand: region, its scale (signed), "sum", "max", "min" or "mul".
        repeated: the operand is 1x1 and used at every position.
        relu: negative values become 0.
        slope: negative values are multiplied by it.
        high: real upper limit, None without.
        low: real lower limit other than 0, None without.
        table: look-up table for the result, in steps of `table_scale`.
        scale: real value of 1 of the output.
    """

    gain: np.ndarray
    bias: np.ndarray | None
    scale: float
    operand: Region | None = None
    operand_scale: float = 1.0
    repeated: bool = False
    combine: str = "sum"
    relu: bool = False
    after: np.ndarray | None = None
    slope: float | None = None
    high: float | None = None
    low: float | None = None
    table: np.void | None = None
    table_scale: float = 1.0


@dataclass(frozen=True)
class SdpPlan:
    """A filled descriptor, the operands it reads, and its look-up table."""

    op: np.void
    cubes: dict[str, object]
    lut: np.void | None


def one_pass(precision: int, post: Post) -> bool:
    """True if one SDP operation can do it."""
    finishing = sum(one is not None for one in (post.slope, post.high, post.low, post.table))
    if post.low is not None and post.relu:
        return False
    if precision == INT8:
        second = (post.operand is not None) + (post.after is not None)
        return finishing + second <= 1
    first = bool(np.any(np.asarray(post.gain) != 1)) + any(b is not None and bool(np.any(b)) for b in (post.bias, post.after))
    first += (post.operand is not None) + (post.slope is not None)
    in_y = sum(one is not None for one in (post.high, post.low, post.table))
    return first <= 2 and in_y <= 1 and not (post.slope is not None and post.relu)


def fixed_point(factor: np.ndarray | float, bits: int = 15, largest_shift: int = 62) -> tuple[np.ndarray, int]:
    """(m, t): integers of `bits` magnitude bits and one shift with m / 2^t ~ factor, t as large as it can be.

    Raises:
        N2D2Error: E715 for a factor beyond the range.
    """
    values = np.atleast_1d(np.asarray(factor, np.float64))
    peak = float(np.max(np.abs(values)))
    if peak == 0:
        return np.zeros(values.shape, np.int64), 0
    shift = min(int(np.floor(bits - np.log2(peak))), largest_shift)
    while shift > 0 and np.rint(peak * 2.0**shift) > 2**bits - 1:
        shift -= 1
    whole = np.rint(values * 2.0**shift)
    if shift < 0 or np.max(np.abs(whole)) > 2**bits - 1:
        raise N2D2Error(
            "E715",
            f"its output is so fine that sums are scaled by {peak:g}, which does not fit into 16 bits",
            remedy="check the values of the layer, or use -export CPP",
        )
    return whole.astype(np.int64), shift


def half_bits(value: float) -> int:
    """Return the bits of a float16."""
    return int(np.array(value, np.float16).view(np.uint16))


def single_bits(value: float) -> int:
    """Return the bits of a float32 as int32."""
    return int(np.array(value, np.float32).view(np.int32))


def plan_sdp(precision: int, post: Post, channels: int, lanes: int) -> SdpPlan:
    """Return the SDP descriptor for `post`; tables of constants hold `channels` rounded up to `lanes`."""
    op = np.zeros((), firmware.SDP_DESC)
    op["src_precision"] = op["dst_precision"] = precision
    op["lut_index"], op["batch_num"] = -1, 1
    op["out_cvt"]["scale"], op["out_cvt"]["enable"] = 1, 1
    for name in ("x1_op", "x2_op", "y_op"):
        op[name]["precision"] = INT16 if precision == INT8 else precision
        op[name]["alu_type"] = SUM
    cubes: dict[str, object] = {}
    (_integer if precision == INT8 else _float)(op, post, channels, lanes, cubes)
    return SdpPlan(firmware.descriptor(op), cubes, post.table)


def _table(values: np.ndarray, lanes: int) -> ConstantBlob:
    """Return a per-kernel table, (channels, components), filled up with zeros to whole atoms; a surface is one group of
    channels.
    """
    filled = np.zeros((-(-len(values) // lanes) * lanes, *values.shape[1:]), values.dtype)
    filled[: len(values)] = values
    surface = filled[:lanes].nbytes
    return ConstantBlob(filled.tobytes(), (1, 1, len(values), surface, surface))


def _points(values: np.ndarray, lanes: int) -> ConstantBlob:
    """Return a per-point table of (C, H, W) in two bytes each, atoms of `lanes` channels side by side."""
    c, h, w = values.shape
    filled = np.zeros((-(-c // lanes) * lanes, h, w), values.dtype)
    filled[:c] = values
    data = np.ascontiguousarray(filled.reshape(-1, lanes, h, w).transpose(0, 2, 3, 1)).tobytes()
    line = w * lanes * 2
    return ConstantBlob(data, (w, h, c, line, h * line))


def _operand(values: np.ndarray, lanes: int) -> tuple[int, ConstantBlob]:
    """(mode, table) of values by channel, or by element."""
    return (PER_POINT, _points(values, lanes)) if values.ndim == 3 else (PER_KERNEL, _table(values[:, None], lanes))


def _integer(op: np.ndarray, post: Post, channels: int, lanes: int, cubes: dict[str, object]) -> None:
    x1, x2, cvt = op["x1_op"], op["x2_op"], op["out_cvt"]
    middle, sign = _middle_scale(post)
    multipliers, shift = fixed_point(np.asarray(post.gain, np.float64) * sign / middle)
    x1["enable"], x1["truncate"] = 1, shift
    if multipliers.ndim == 3:
        x1["type"] = MUL
        x1["mode"], cubes["x1_data"] = _operand(multipliers.astype("<i2"), lanes)
    elif post.bias is None and len(multipliers) == 1:
        x1["type"], x1["mode"], x1["mul_operand"] = MUL, PER_LAYER, int(multipliers[0])
    else:
        bias = np.zeros(channels, np.int64) if post.bias is None else np.asarray(post.bias, np.int64)
        shifted, down = _biases(bias)
        x1["type"], x1["mode"], x1["shift_value"] = BOTH, PER_KERNEL, down
        table = np.stack([shifted, np.broadcast_to(multipliers, shifted.shape)], axis=1).astype("<i2")
        cubes["x1_data"] = _table(table, lanes)
    last = x1
    if post.after is not None:
        last = x2
        offsets, down = _biases(np.rint(post.after / middle))
        x2["enable"], x2["type"], x2["shift_value"] = 1, ADD, down
        x2["mode"], cubes["x2_data"] = _operand(offsets.astype("<i2"), lanes)
        cvt["scale"], cvt["truncate"] = 1, _OPERAND_SHIFT
    elif post.operand is not None:
        last = x2
        x2["enable"], x2["mode"], x2["precision"] = 1, _point_or_kernel(post), INT8
        cubes["x2_data"] = post.operand
        if post.combine == "mul":
            x1["enable"], x2["type"] = 0, MUL
            middle = middle * sign * float(np.asarray(post.gain).reshape(-1)[0]) * post.operand_scale
        else:
            x2["type"], x2["alu_type"] = ADD, {"sum": SUM, "max": MAX, "min": MIN}[post.combine]
            x2["shift_value"] = _OPERAND_SHIFT
        out, out_shift = fixed_point((middle if post.combine == "mul" else middle * sign) / post.scale)
        cvt["scale"], cvt["truncate"] = int(out[0]), out_shift
    elif post.slope is not None:
        last = x2
        slope, slope_shift = fixed_point(post.slope)
        x2["enable"], x2["type"], x2["mode"], x2["act"] = 1, MUL, PER_LAYER, PRELU
        x2["mul_operand"], x2["truncate"] = int(slope[0]), slope_shift
    elif (limit := post.high if post.high is not None else post.low) is not None:
        algorithm = MIN if post.high is not None else MAX
        x2["enable"], x2["type"], x2["mode"], x2["alu_type"] = 1, ADD, PER_LAYER, algorithm
        x2["alu_operand"] = int(np.clip(np.rint(limit / post.scale), -32768, 32767))
    if post.relu:
        last["act"] = RELU
    if post.table is not None:
        op["y_op"]["enable"], op["y_op"]["act"] = 1, LUT


def _biases(bias: np.ndarray) -> tuple[np.ndarray, int]:
    """(b, d): 16-bit integers with b * 2^d ~ bias, d as small as it can be."""
    down = max(0, int(np.max(np.abs(bias), initial=0)).bit_length() - 15)
    shifted = np.rint(bias / 2.0**down)
    if np.max(np.abs(shifted), initial=0) > 32767:
        down += 1
        shifted = np.rint(bias / 2.0**down)
    return shifted, down


def _point_or_kernel(post: Post) -> int:
    """Return a 1x1 map for a larger one is a table of one value per channel."""
    assert post.operand is not None
    return PER_KERNEL if post.repeated else PER_POINT


def _middle_scale(post: Post) -> tuple[float, float]:
    """Real value of 1 between X1 and the converter, and the sign with which it is held there."""
    if post.after is not None:
        return post.scale / 2.0**_OPERAND_SHIFT, 1.0
    if post.operand is None:
        return (post.table_scale if post.table is not None else post.scale), 1.0
    if post.combine == "mul":
        return 1.0, 1.0
    return abs(post.operand_scale) / 2.0**_OPERAND_SHIFT, float(np.sign(post.operand_scale))


def _float(op: np.ndarray, post: Post, channels: int, lanes: int, cubes: dict[str, object]) -> None:
    stages = [op["x1_op"], op["x2_op"]]
    names = ["x1_data", "x2_data"]
    used = 0

    def take() -> tuple[np.ndarray, str]:
        nonlocal used
        if used == 2:
            raise InternalError("more than two operations before Y")
        used += 1
        stages[used - 1]["enable"] = 1
        return stages[used - 1], names[used - 1]

    gain = np.asarray(post.gain, np.float64)
    if np.any(gain != 1):
        stage, name = take()
        stage["type"] = MUL
        if gain.size == 1:
            stage["mode"], stage["mul_operand"] = PER_LAYER, half_bits(float(gain.reshape(-1)[0]))
        else:
            stage["mode"], cubes[name] = _operand(gain.astype("<f2"), lanes)
    bias = post.bias if post.after is None else post.after
    if bias is not None and np.any(bias):
        stage, name = take()
        stage["type"] = ADD
        values = bias if np.ndim(bias) == 3 else np.broadcast_to(bias, (channels,))
        stage["mode"], cubes[name] = _operand(values.astype("<f2"), lanes)
    last = stages[max(used - 1, 0)]
    if post.operand is not None:
        last, name = take()
        last["mode"] = _point_or_kernel(post)
        last["type"] = MUL if post.combine == "mul" else ADD
        last["alu_type"] = {"sum": SUM, "max": MAX, "min": MIN, "mul": SUM}[post.combine]
        cubes[name] = post.operand
    if post.slope is not None:
        stage, _ = take()
        stage["type"], stage["mode"], stage["act"] = MUL, PER_LAYER, PRELU
        stage["mul_operand"] = half_bits(post.slope)
    if post.relu:
        last["enable"], last["act"] = 1, RELU
    limit = post.high if post.high is not None else post.low
    y = op["y_op"]
    if limit is not None:
        y["enable"], y["type"], y["mode"] = 1, ADD, PER_LAYER
        y["alu_type"] = MIN if post.high is not None else MAX
        y["alu_operand"] = single_bits(limit)
    if post.table is not None:
        y["enable"], y["act"] = 1, LUT
