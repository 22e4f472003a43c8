"""The C++ of recurrent layers."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.contracts.cpp import Argument, Layer, LayerCode, cpp, epilogue, row_dots, row_panels

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
