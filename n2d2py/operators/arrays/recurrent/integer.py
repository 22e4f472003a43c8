"""The forms of recurrent layers: in integers with 16-bit states and weights in the bit width of the network, and their C++."""

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.recurrent import GATE_BITS, LARGEST_SHIFT, SMALLEST_SHIFT, STATE_BITS, knots
from n2d2py.arithmetic.weights import range_nearest, stored_steps
from n2d2py.contracts.cpp import Argument, Layer, LayerCode, cpp, epilogue, row_dots, row_panels
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, peak, quantizer, refusal, rescaled_layer
from n2d2py.graph import Custom, Node, QuantNode

_STATE_PEAK = 2**STATE_BITS - 1
_MIN_FRACTION = 8
"""Smallest number of fractional bits of a state, which limits it to +-128."""
_ROLES = "input_weights recurrent_weights input_multipliers recurrent_multipliers gate_bias recurrent_bias".split()
_MAX_STATE = 2.0 ** (STATE_BITS - _MIN_FRACTION) - 1


def _quantize_weights(params: dict[str, np.ndarray], types: LayerTypes) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return integer weights (O, K) of inputs and of states, rounded together, each with the scale (O) of its rows. Rows that
    are multiples of a step keep it: 8-bit weights of a file are exact."""
    bits = types.weight_bits or types.options.bits
    levels = 2 ** (bits - 1) - 1
    reach = types.inputs[0].max_abs  # calibration divides inputs by it
    real = [params["input_weights"].astype(np.float64) * reach, params["recurrent_weights"].astype(np.float64)]
    scales = []
    for rows in real:
        largest = np.abs(rows).max(axis=1)
        steps = range_nearest(rows, largest, levels) / levels if bits < 8 else stored_steps(rows, largest, levels)
        scales.append(np.where(largest > 0, steps, 1.0))
    steps = np.repeat(np.stack(scales, axis=1), [rows.shape[1] for rows in real], axis=1)
    rounded = types.rounding(np.concatenate(real, axis=1), steps, levels).astype(np.int8 if bits <= 8 else np.int16)
    parts = np.split(rounded, [real[0].shape[1]], axis=1)
    return [(np.ascontiguousarray(part), scale / unit) for part, scale, unit in zip(parts, scales, (reach, 1.0), strict=True)]


def _fractional_bits(node: Node, types: LayerTypes, role: str) -> int:
    """Return the fractional bits for all states: hidden ones are at most 1, or as large as the initial one; cell states have
    their calibration range, or without one grow by 1 in each step."""
    op, cell = node.op, role == "initial_c"
    is_present = role in op.given
    first = types.inputs[1 + op.given.index(role)].max_abs if is_present else float(np.abs(node.params[role]).max())
    reach = max(first, types.cell or (0.0 if is_present else first + op.steps)) if cell else max(first, 1.0)
    reach = min(reach, op.cell_limit) if cell and op.cell_limit else reach
    return int(np.clip(STATE_BITS - np.ceil(np.log2(max(reach, 1.0))), _MIN_FRACTION, STATE_BITS))


@quantizer("ArrayRecurrent")
class RecurrentQuantizer(Quantizer):
    """The accumulator of each gate is a 64-bit sum of input and state products (arithmetic/recurrent.py)."""

    def refuses(self, node: Node) -> str | None:
        if node.op.peepholes or node.op.coupled or node.op.relu:
            return f"{node.op.cell} with {'peepholes' if node.op.peepholes else 'coupled gates' if node.op.coupled else 'ReLU'}"
        for role, what in (("initial_h", "hidden"), ("initial_c", "cell")):
            if np.abs(node.params.get(role, np.zeros(1))).max() > _MAX_STATE:
                return f"a recurrent layer whose initial {what} state is beyond {_MAX_STATE:.0f}"
        return None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, y, op, params = types.inputs[0], types.output, node.op, node.params
        (weights, weight_scales), (recurrent, recurrent_scales) = _quantize_weights(params, types)
        tops = (max(peak(x), x.qmax, -x.qmin), _STATE_PEAK)
        pairs = zip((weights, recurrent), tops, strict=True)
        reaches = [np.abs(rows.astype(np.int64)).sum(axis=1) * top for rows, top in pairs]
        if max(int(reach.max()) for reach in reaches) >= 2**53:
            raise refusal(node, "a recurrent layer whose sums exceed 53 bits")
        hidden, fraction = (_fractional_bits(node, types, role) for role in ("initial_h", "initial_c"))
        factors = [weight_scales * x.scale * 2.0**GATE_BITS, recurrent_scales * 2.0 ** (GATE_BITS - hidden)]
        biases = [params[role].astype(np.float64) for role in ("gate_bias", "recurrent_bias")]
        shift = _largest_shift(factors, reaches, biases)
        if shift is None:
            raise refusal(node, "a recurrent layer whose weights or biases are too large")
        multipliers = [np.rint(factor * 2.0**shift).astype(np.int32) for factor in factors]
        offsets = [np.rint(bias * 2.0 ** (GATE_BITS + shift)).astype(np.int64) for bias in biases]
        form = dict(zip(_ROLES, (weights, recurrent, *multipliers, *offsets), strict=True))
        form |= _initial_states(node, types, {"initial_h": hidden, "initial_c": fraction})
        form |= {"sigmoid": knots("sigmoid", GATE_BITS), "tanh": knots("tanh", GATE_BITS), "cell_tanh": knots("tanh", fraction)}
        limits = {"gate_limit": _limit(op.gate_limit, GATE_BITS), "cell_limit": _limit(op.cell_limit, fraction)}
        numbers = {"shift": shift, **limits, "hidden_fraction": hidden, "cell_fraction": fraction}
        form |= {role: np.array([number], np.int32) for role, number in numbers.items()}
        form["reaches"] = np.array([int(reach.max()) for reach in reaches], np.int64)
        step = 2.0 ** -(fraction if op.part else hidden)
        return rescaled_layer(node, types, np.array([step / y.scale]), _STATE_PEAK, Custom(form))

    def in_files(self, node: Node) -> bool:
        """True if the file limits the cell state, as TFLite does; other runtimes compute in floating point."""
        return bool(node.op.cell_limit)


def _limit(real: float, fraction: int) -> int:
    """Return a limit of accumulators in 2^-fraction; 0 selects the limit of the 16-bit type."""
    return int(min(np.rint(real * 2.0**fraction), _STATE_PEAK)) if real else _STATE_PEAK


def _initial_states(node: Node, types: LayerTypes, fractions: dict[str, int]) -> dict[str, np.ndarray]:
    result = {}
    for role, fraction in fractions.items():
        if role in node.op.given:
            # at the limit, every integer except 0 saturates
            factor = min(types.inputs[1 + node.op.given.index(role)].scale * 2.0**fraction, 2.0**29)
            shift = int(np.clip(30 - np.ceil(np.log2(factor)), 1, LARGEST_SHIFT))
            result[f"given_{role[-1]}"] = np.array([np.rint(factor * 2.0**shift), shift], np.int64)
        else:
            values = np.rint(node.params[role].astype(np.float64) * 2.0**fraction)
            result[role] = np.clip(values, -_STATE_PEAK, _STATE_PEAK).astype(np.int16)
    return result


def _largest_shift(factors: list[np.ndarray], reaches: list[np.ndarray], biases: list[np.ndarray]) -> int | None:
    """Return the largest p with 31-bit multipliers and accumulators below 2^62; else None."""
    largest = max(float(factor.max()) for factor in factors)
    sums = sum(2 * float((factor * reach).max()) for factor, reach in zip(factors, reaches, strict=True))
    reach = sums + sum(float(np.abs(bias).max()) for bias in biases) * 2.0**GATE_BITS
    rounding = sum(float(reach.max()) for reach in reaches)
    for shift in range(LARGEST_SHIFT, SMALLEST_SHIFT - 1, -1):
        if largest * 2.0**shift < 2**31 - 1 and reach * 2.0**shift + rounding < 2.0**61:
            return shift
    return None


_REALS = ("input_weights", "recurrent_weights", "gate_bias", "recurrent_bias", "initial_h", "initial_c")
_INTEGERS = """
    input_multipliers recurrent_multipliers gate_bias recurrent_bias initial_h initial_c sigmoid tanh cell_tanh
    """.split()
_UNUSED = {
    "LSTM": ("recurrent_bias",),
    "GRU": ("initial_c", "cell_tanh"),
    "RNN": ("recurrent_bias", "initial_c", "sigmoid", "cell_tanh"),
}
"""Constants that a cell does not use."""


@cpp("ArrayRecurrent")
def _lower(layer: Layer) -> LayerCode:
    layer, op = layer.requiring_whole_input(), layer.op
    sizes = {"Sequences": op.sequences, "Steps": op.steps, "Size": op.size, "Hidden": op.hidden, "Backward": op.reverse}
    sizes |= {"LinearBeforeReset": op.linear_before_reset, "LastCell": bool(op.part)}
    side = f", {op.sequences} sequences side by side" if op.sequences > 1 else ""
    what = f"{op.cell} of {op.steps} steps{side}"
    return (_lower_real if layer.node.rescale is None else _lower_integer)(layer, what, sizes)


def _lower_real(layer: Layer, what: str, sizes: dict[str, int]) -> LayerCode:
    op, real = layer.op, layer.output
    reals = [
        _state_argument(layer, role) if role in op.given else layer.array(role, _float_constant(layer, role), real.cpp)
        for role in _REALS
        if role not in _UNUSED[op.cell]
    ]
    if op.cell == "LSTM":
        sizes |= {"Peepholes": op.peepholes, "Coupled": op.coupled}
        peepholes = layer.values("peepholes") if op.peepholes else np.zeros(1)
        reals.append(layer.array("peepholes", peepholes.astype(real.dtype), real.cpp))
    limits = [each or np.inf for each in (op.gate_limit, op.cell_limit)]
    reals.append(layer.array("limits", np.array(limits, real.dtype), real.cpp))
    config = layer.config(what, layer.planes, sizes | {"Limited": min(limits) < np.inf, "Relu": op.relu})
    return layer.code("recurrent", layer.call(op.cell.lower(), config, constants=tuple(reals)))


def _lower_integer(layer: Layer, what: str, sizes: dict[str, int]) -> LayerCode:
    op, reaches, roles = layer.op, layer.values("reaches"), [role for role in _INTEGERS if role not in _UNUSED[layer.op.cell]]
    sums = ["std::int32_t" if reach < 2**31 else "std::int64_t" for reach in reaches]
    weight = f"std::{layer.values('input_weights').dtype.name}_t"
    types = {**layer.planes, "Weight": weight, "InputSum": sums[0], "RecurrentSum": sums[1], "Epilogue": epilogue(layer)}
    sizes["Gates"] = len(layer.values("input_weights")) // op.hidden
    for role in ("shift", "hidden_fraction", "cell_fraction", "gate_limit", "cell_limit"):
        sizes[role.title().replace("_", "")] = int(layer.values(role)[0])
    tables = {"SigmoidSegments": "sigmoid", "TanhSegments": "tanh", "CellSegments": "cell_tanh"}
    sizes |= {name: layer.values(role).size - 1 for name, role in tables.items() if role in roles}
    selection = row_dots()
    config = layer.config(what, types, sizes, selection)
    kinds = ("input_weights", layer.inputs[0]), ("recurrent_weights", NumType(16))
    constants: list[Argument] = [
        layer.array(role, layer.values(role), weight, row_panels(layer.values(role), op.hidden, kind, int(reach)))
        for (role, kind), reach in zip(kinds, reaches, strict=True)
    ]
    for role in roles:
        values = None if role in op.given else _integer_constant(layer, role)
        constants.append(
            _state_argument(layer, role) if values is None else layer.array(role, values, f"std::{values.dtype.name}_t")
        )
    call = layer.call(f"integer{op.cell.capitalize()}", config, constants=tuple(constants))
    return layer.code("integer_recurrent", call, selection=selection)


def _state_argument(layer: Layer, role: str) -> str:
    slot = 1 + layer.op.given.index(role)
    pointer = f"n2d2::elements<{layer.input_planes[slot]}>(in{slot})"
    if layer.node.rescale is None:
        return pointer
    kind, (multiplier, shift) = layer.inputs[slot], layer.values(f"given_{role[-1]}")
    return f"n2d2::BegunState<{kind.cpp}, {kind.zero_point}, {int(multiplier)}, {int(shift)}>{{{pointer}}}"


def _float_constant(layer: Layer, role: str) -> np.ndarray:
    """Return a float constant in kernel layout: rows of each gate padded to a multiple of 8, in groups of 64 by columns."""
    values, hidden = layer.values(role).astype(layer.output.dtype), layer.op.hidden
    if role.startswith("initial"):
        return values
    rows = values.reshape(-1, hidden, 1 if values.ndim == 1 else values.shape[1])
    padded = np.pad(rows, ((0, 0), (0, -hidden % 8), (0, 0)))
    groups = (gate[first : first + 64].T for gate in padded for first in range(0, padded.shape[1], 64))
    return np.concatenate([group.reshape(-1) for group in groups])


def _integer_constant(layer: Layer, role: str) -> np.ndarray:
    """Return an integer constant in kernel layout; the gate bias absorbs the zero point of the input."""
    values = layer.values(role)
    if role != "gate_bias":
        return values
    sums = layer.values("input_weights").astype(np.int64).sum(axis=1) * layer.inputs[0].zero_point
    return values - layer.values("input_multipliers").astype(np.int64) * sums
