"""SDP, the single data processor: up to three operations with operands, a look-up table, a converter.

X1 and X2: ALU, multiplier, activation; Y: multiplier, ALU, table. Operands are one for the layer (a register), one per
channel, or one per element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.firmware import BYTES, FP16, INT8
from n2d2py_nvdla.model import floats
from n2d2py_nvdla.model.formats import DTYPES, read_feature, read_vector
from n2d2py_nvdla.model.integers import convert, saturate, shift_right
from n2d2py_nvdla.model.lut import SDP_WIDTHS, lookup_integers, lookup_sdp_floats
from n2d2py_nvdla.model.machine import Machine
from n2d2py_nvdla.program import DlaTask, Operation

MUL, ADD, BOTH = 1, 2, 3
MAX, MIN, SUM, EQL = range(4)
RELU, LUT, PRELU = 1, 2, 3
PER_LAYER, PER_KERNEL, PER_POINT = range(3)
_PROCESSING = ((0, 0, 2), (0, 1, 2), (0, 1, 2))
"""Processing precision by [destination][source]."""


def processing_precision(source: int, destination: int) -> int:
    """Return number type of the SDP's arithmetic."""
    return _PROCESSING[destination][source]


def sdp(machine: Machine, task: DlaTask, operation: Operation, source: np.ndarray | None) -> np.ndarray:
    """Return the result (C rounded up to an atom, H, W) in its precision, of `source` (from the convolution) or of memory."""
    op, surface = operation.op, operation.surface
    from_, to = int(op["src_precision"]), int(op["dst_precision"])
    if from_ > FP16 or to > FP16:
        raise N2D2Error(
            "E903", f"{operation.name}: precisions {from_} to {to} do not exist", where=machine.name, remedy="compile it again"
        )
    process = processing_precision(from_, to)
    if process == FP16 and to == INT8:
        raise N2D2Error(
            "E903", f"{operation.name}: from fp16 to int8 is not modelled", where=machine.name, remedy="keep fp16, or use int16"
        )
    if source is None:
        source = machine.read_cube(task, operation, "src_data", from_)
    channels = int(surface["src_data"]["channel"])
    x: Any = floats.half_to_single(source) if source.dtype == np.float16 else source
    x = x.astype(np.float32 if process == FP16 else np.int64)
    unit = _Floats if process == FP16 else _Integers
    for name, data in (("x1_op", "x1_data"), ("x2_op", "x2_data")):
        if op[name]["enable"]:
            operands = _operands(machine, task, operation, name, data, process, x.shape, channels)
            x = unit.x_operation(x, op[name], operands)
    y = op["y_op"]
    if y["enable"]:
        operands = _operands(machine, task, operation, "y_op", "y_data", process, x.shape, channels)
        x = unit.y_operation(x, y, operands)
        if int(y["act"]) == LUT:
            x = unit.look_up(x, _lut(machine, task, operation))
    raw = bool(y["enable"]) and int(y["type"]) in (ADD, BOTH) and int(y["alu_type"]) == EQL
    return unit.output(x, op["out_cvt"], to, raw)


def _lut(machine: Machine, task: DlaTask, operation: Operation) -> np.void:
    index = int(operation.op["lut_index"])
    if not 0 <= index < len(task.luts):
        raise N2D2Error(
            "E903",
            f"{operation.name}: it uses look-up table {index} of {len(task.luts)}",
            where=machine.name,
            remedy="compile it again",
        )
    return task.luts[index]


def _operands(
    machine: Machine,
    task: DlaTask,
    operation: Operation,
    name: str,
    data: str,
    process: int,
    shape: tuple[int, ...],
    channels: int,
) -> tuple[Any, Any]:
    """(ALU operand, multiplier operand) as read, broadcastable to (C, H, W); None where there is none."""
    op = operation.op[name]
    kind, mode = int(op["type"]), int(op["mode"])
    if kind == 0:
        return None, None
    if mode == PER_LAYER:
        return int(op["alu_operand"]), int(op["mul_operand"])
    precision = int(op["precision"])
    if precision > FP16:
        raise N2D2Error(
            "E903",
            f"{operation.name}: {name} has operands of precision {precision}, which does not exist",
            where=machine.name,
            remedy="compile it again",
        )
    components = 2 if kind == BOTH else 1
    memory, base = machine.place(task, operation.surface[data], f"{operation.name} {data}")
    if mode == PER_KERNEL:
        table = read_vector(memory, base, shape[0], precision, components)[:, :, None, None]
    else:
        lanes = machine.config.atom // BYTES[process]
        cube = operation.surface[data]
        table = read_feature(
            memory,
            base,
            (channels, shape[1], shape[2]),
            int(cube["line_stride"]),
            int(cube["surf_stride"]),
            precision,
            machine.config.atom,
            f"{operation.name} {data}",
            lanes,
            components,
        )
        table = table.reshape(components, -1, *shape[1:])
        if table.shape[1] < shape[0]:
            table = np.concatenate([table, np.zeros((components, shape[0] - table.shape[1], *shape[1:]), table.dtype)], 1)
        table = table[:, : shape[0]]
    if kind == BOTH:
        return table[0], table[1]
    return (table[0], None) if kind == ADD else (None, table[0])


class _Integers:
    """int8 and int16 processing in int64 arrays."""

    @staticmethod
    def x_operation(x: np.ndarray, op: np.void, operands: tuple[Any, Any]) -> np.ndarray:
        kind, activation = int(op["type"]), int(op["act"])
        if kind in (ADD, BOTH):
            operand = saturate(np.asarray(_signed16(operands[0]), np.int64) << int(op["shift_value"]), 32)
            algorithm = int(op["alu_type"])
            x = np.maximum(x, operand) if algorithm == MAX else np.minimum(x, operand) if algorithm == MIN else x + operand
        product = x * np.asarray(_signed16(operands[1]), np.int64) if kind in (MUL, BOTH) else x
        result = saturate(shift_right(product, int(op["truncate"])), 32)
        if kind in (MUL, BOTH) and activation == PRELU:
            result = np.where(x >= 0, x.astype(np.int32), result)  # past the shifter, which saturates
        return np.maximum(result, 0) if activation == RELU else result

    @staticmethod
    def y_operation(x: np.ndarray, op: np.void, operands: tuple[Any, Any]) -> np.ndarray:
        kind = int(op["type"])
        if kind in (MUL, BOTH):
            operand = _Integers._converted(operands[1], op, "mul_cvt")
            product = saturate(shift_right(x * operand, int(op["truncate"])), 32)
            x = np.where(x >= 0, x, product) if int(op["act"]) == PRELU else product
        if kind in (ADD, BOTH):
            operand = _Integers._converted(operands[0], op, "alu_cvt")
            algorithm = int(op["alu_type"])
            x = (
                np.maximum(x, operand)
                if algorithm == MAX
                else np.minimum(x, operand)
                if algorithm == MIN
                else (x != operand).astype(np.int64)
                if algorithm == EQL
                else saturate(x + operand, 32)
            )
        return x

    @staticmethod
    def _converted(operand: Any, op: np.void, name: str) -> np.ndarray:
        cvt = op["cvt"][name]
        operand = np.asarray(operand, np.int64)
        if int(op["mode"]) == PER_LAYER or not cvt["enable"]:
            return operand
        return convert(operand, int(cvt["offset"]), int(cvt["scale"]), int(cvt["truncate"]), 32)

    @staticmethod
    def look_up(x: np.ndarray, lut: np.void) -> np.ndarray:
        def interpolate(y0: np.ndarray, y1: np.ndarray, fraction: np.ndarray) -> np.ndarray:
            return shift_right(y0 * ((1 << 35) - fraction) + y1 * fraction, 35)

        return lookup_integers(x, lut, interpolate, SDP_WIDTHS)

    @staticmethod
    def output(x: np.ndarray, cvt: np.void, precision: int, raw: bool) -> np.ndarray:
        if raw:
            return x.astype(DTYPES[precision])
        x = convert(x, int(cvt["offset"]), int(cvt["scale"]), int(cvt["truncate"]), 17)
        if precision == FP16:
            return np.clip(x, -65504, 65504).astype(np.float16)
        return saturate(x, 8 * BYTES[precision]).astype(DTYPES[precision])


class _Floats:
    """fp16 processing in float32 arrays."""

    @staticmethod
    def _operand(operand: Any, register: Any) -> np.ndarray:
        if isinstance(operand, int):
            return np.asarray(register(operand))
        return floats.half_to_single(operand.view(np.float16) if operand.dtype != np.float16 else operand)

    @staticmethod
    def _alu(x: np.ndarray, operand: np.ndarray, algorithm: int) -> np.ndarray:
        if algorithm == MAX:
            return floats.maximum(x, operand)
        if algorithm == MIN:
            return floats.minimum(x, operand)
        if algorithm == EQL:
            return floats.unequal(x, operand)
        return floats.add(x, operand)

    @staticmethod
    def x_operation(x: np.ndarray, op: np.void, operands: tuple[Any, Any]) -> np.ndarray:
        def register(bits: int) -> np.ndarray:
            return floats.half_to_single(np.asarray(floats.bits_to_half(bits)))

        kind, activation = int(op["type"]), int(op["act"])
        if kind in (ADD, BOTH):
            x = _Floats._alu(x, _Floats._operand(operands[0], register), int(op["alu_type"]))
        if kind in (MUL, BOTH):
            product = floats.multiply(x, _Floats._operand(operands[1], register))
            x = np.where(np.signbit(x), product, x) if activation == PRELU else product
        return floats.relu(x) if activation == RELU else x

    @staticmethod
    def y_operation(x: np.ndarray, op: np.void, operands: tuple[Any, Any]) -> np.ndarray:
        kind = int(op["type"])
        if kind in (MUL, BOTH):
            product = floats.multiply(x, _Floats._operand(operands[1], floats.bits_to_single))
            x = np.where(np.signbit(x), product, x) if int(op["act"]) == PRELU else product
        if kind in (ADD, BOTH):
            x = _Floats._alu(x, _Floats._operand(operands[0], floats.bits_to_single), int(op["alu_type"]))
        return x

    @staticmethod
    def look_up(x: np.ndarray, lut: np.void) -> np.ndarray:
        return lookup_sdp_floats(x, lut)

    @staticmethod
    def output(x: np.ndarray, cvt: np.void, precision: int, raw: bool) -> np.ndarray:
        if raw:
            return np.ascontiguousarray(x).view(np.uint32).astype(np.uint16).view(DTYPES[precision])
        half = floats.single_to_half(x)
        if precision == FP16:
            return half
        whole = np.copysign(np.floor(np.abs(half.astype(np.float64)) + 0.5), half)
        return saturate(np.where(np.isnan(half), -32768, whole), 16).astype(np.int16)


def _signed16(operand: Any) -> Any:
    """Return a register holds 16 bits; tables are what they are."""
    if isinstance(operand, int):
        return ((operand & 0xFFFF) ^ 0x8000) - 0x8000
    return operand
