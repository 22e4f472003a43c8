"""The arithmetic of the integer units one number at a time, in Python's integers."""

__all__ = ["clamp", "converter", "lookup", "lrn", "pool", "rsh", "wrap", "x_unit", "y_unit"]

RECIPROCALS = [0x10000, 0x8000, 0x5555, 0x4000, 0x3333, 0x2AAA, 0x2492, 0x2000]


def clamp(x: int, bits: int) -> int:
    return max(-(1 << bits - 1), min((1 << bits - 1) - 1, x))


def wrap(x: int, bits: int) -> int:
    return (x + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def rsh(x: int, shift: int) -> int:
    """x / 2^shift to nearest, ties away from zero; a negative shift is one to the left."""
    if shift <= 0:
        return x << -shift
    half = (abs(x) * 2 + (1 << shift)) >> (shift + 1)
    return half if x >= 0 else -half


def converter(x: int, offset: int, scale: int, shift: int, bits: int) -> int:
    return clamp(rsh((x - offset) * scale, shift), bits)


def x_unit(x: int, op, alu: int, mul: int) -> int:
    """X1 or X2: ALU, multiplier, shifter (positive numbers of a PReLU pass it), ReLU."""
    kind, act = int(op["type"]), int(op["act"])
    if kind in (2, 3):
        operand = clamp(alu << int(op["shift_value"]), 32)
        x = {0: max(x, operand), 1: min(x, operand)}.get(int(op["alu_type"]), x + operand)
    if kind in (1, 3) and act == 3 and x >= 0:
        return wrap(x, 32)
    y = clamp(rsh(x * mul if kind in (1, 3) else x, int(op["truncate"])), 32)
    return max(y, 0) if act == 1 else y


def y_unit(x: int, op, alu: int, mul: int, from_memory: bool) -> int:
    """Y: multiplier, then ALU; operands from memory go through their converters."""
    kind = int(op["type"])

    def operand(value: int, name: str) -> int:
        cvt = op["cvt"][name]
        if not from_memory or not cvt["enable"]:
            return value
        return converter(value, int(cvt["offset"]), int(cvt["scale"]), int(cvt["truncate"]), 32)

    if kind in (1, 3) and not (int(op["act"]) == 3 and x >= 0):
        x = clamp(rsh(x * operand(mul, "mul_cvt"), int(op["truncate"])), 32)
    if kind in (2, 3):
        a = operand(alu, "alu_cvt")
        x = {0: max(x, a), 1: min(x, a), 3: int(x != a)}.get(int(op["alu_type"]), clamp(x + a, 32))
    return x


def _side(x: int, table, start: int, end: int, exponential: bool, number: int, below, above, cdp: bool) -> tuple[int, str]:
    last, gap = len(table) - 1, x - start
    width = 56 if cdp else 32

    def extend(base: int, bound: int, slope) -> int:
        shift = wrap(int(slope["shifter"]), 5)
        return clamp(int(base) + clamp(rsh((x - bound) * int(slope["scale"]), shift), width), 16 if cdp else 32)

    if gap > 0:
        index = gap.bit_length() - 1 - number if exponential else gap >> number if number >= 0 else gap << -number
    lowest = (1 << number) if exponential and (number >= 0 if cdp else number > 0) else 0
    if gap <= 0 or index < 0:
        return extend(table[0], start + lowest, below), "below"
    if index >= last:
        return extend(table[last], end, above), "above"
    step = gap.bit_length() - 1 if exponential else max(number, 0)
    bits = 16 if cdp else 35
    rest = gap - (1 << step) if exponential else gap & ((1 << step) - 1)
    fraction = rest << bits - step if step <= bits else rest >> step - bits
    y0, y1 = int(table[index]), int(table[index + 1])
    value = y0 + rsh((y1 - y0) * fraction, 16) if cdp else rsh(y0 * ((1 << 35) - fraction) + y1 * fraction, 35)
    return clamp(value, 16 if cdp else 32), "hit"


def lookup(x: int, lut, cdp: bool) -> int:
    """Both tables are asked, priorities choose."""
    bits = 38 if cdp else 32
    answers = []
    for name, exponential in (("linear_exp", int(lut["method"]) == 0), ("linear_only", False)):
        answers.append(
            _side(
                x,
                lut[f"{name}_table"],
                wrap(int(lut[f"{name}_start"]), bits),
                wrap(int(lut[f"{name}_end"]), bits),
                exponential,
                int(lut[f"{name}_offset"]["value"]),
                lut[f"{name}_underflow_slope"],
                lut[f"{name}_overflow_slope"],
                cdp,
            )
        )
    (le, le_state), (lo, lo_state) = answers
    if le_state == lo_state == "below":
        return lo if lut["underflow_priority"] else le
    if le_state == lo_state == "above":
        return lo if lut["overflow_priority"] else le
    if (le_state == "hit") != (lo_state == "hit"):
        return le if le_state == "hit" else lo
    return lo if lut["hybrid_priority"] else le


def pool(get, size: tuple[int, int], op, row: int, column: int, bits: int) -> int:
    """One result of the PDP; `get(h, w)` is an input of an image of `size`."""
    kernel = int(op["pool_height"]) + 1, int(op["pool_width"]) + 1
    top, left = row * int(op["stride_y"]) - int(op["pad_top"]), column * int(op["stride_x"]) - int(op["pad_left"])
    rows = [h for h in range(top, top + kernel[0]) if 0 <= h < size[0]]
    columns = [w for w in range(left, left + kernel[1]) if 0 <= w < size[1]]
    values = [get(h, w) for h in rows for w in columns]
    if int(op["pool_mode"]):
        return max(values) if int(op["pool_mode"]) == 1 else min(values)
    table = [0, *(int(value) for value in op["padding_value"])]
    total = sum(values) + len(rows) * table[kernel[1] - len(columns)] + kernel[1] * table[kernel[0] - len(rows)]
    for k in (kernel[1], kernel[0]):
        total = rsh(total * RECIPROCALS[k - 1], 16)
    return wrap(total, bits)


def lrn(get, channels: int, c: int, op, lut, bits: int) -> int:
    """One result of the CDP; `get(c)` are the channels of a position; lanes from `channels` on hold nothing."""
    into, out = op["in_cvt"], op["out_cvt"]

    def v(channel: int) -> int:
        if not 0 <= channel < channels:
            return 0
        return converter(get(channel), int(into["offset"]), int(into["scale"]), int(into["truncate"]), bits + 1)

    half = int(op["local_size"]) // 2
    total = v(c) if op["bypass_sqsum"] else sum(v(k) ** 2 for k in range(c - half, c + half + 1))
    y = lookup(total, lut, True)
    if not op["bypass_out_mul"]:
        y *= v(c)
    return converter(y, int(out["offset"]), int(out["scale"]), int(out["truncate"]), bits)
