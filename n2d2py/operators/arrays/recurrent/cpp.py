"""The C++ of recurrent layers."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.contracts.cpp import Layer, LayerCode, cpp, epilogue, row_dots, row_panels

_CTYPES = {
    "input_multipliers": "std::int32_t",
    "recurrent_multipliers": "std::int32_t",
    "gate_bias": "std::int64_t",
    "recurrent_bias": "std::int64_t",
    "initial_h": "std::int16_t",
    "initial_c": "std::int16_t",
    "sigmoid": "std::int32_t",
    "tanh": "std::int32_t",
    "cell_tanh": "std::int32_t",
}
_UNUSED = {
    "LSTM": ("recurrent_bias",),
    "GRU": ("initial_c", "cell_tanh"),
    "RNN": ("recurrent_bias", "initial_c", "sigmoid", "cell_tanh"),
}
"""Constants that a cell does not use."""
_REALS = ("input_weights", "recurrent_weights", "gate_bias", "recurrent_bias", "initial_h", "initial_c")


@cpp("ArrayRecurrent")
def _lower(layer: Layer) -> LayerCode:
    layer, op = layer.requiring_whole_input(), layer.op
    sizes = {
        "Sequences": op.sequences,
        "Steps": op.steps,
        "Size": op.size,
        "Hidden": op.hidden,
        "Backward": op.reverse,
        "LinearBeforeReset": op.linear_before_reset,
        "LastCell": bool(op.part),
    }
    side = f", {op.sequences} sequences side by side" if op.sequences > 1 else ""
    function, what = op.cell.lower(), f"{op.cell} of {op.steps} steps{side}"
    others = _UNUSED[op.cell]
    if layer.node.rescale is None:
        roles, real = [role for role in _REALS if role not in others], layer.output
        reals = tuple(
            _state_argument(layer, role) if role in op.given else layer.array(role, _float_constant(layer, role), real.cpp)
            for role in roles
        )
        if op.cell == "LSTM":
            sizes |= {"Peepholes": op.peepholes, "Coupled": op.coupled}
            peepholes = layer.values("peepholes") if op.peepholes else np.zeros(1)
            reals += (layer.array("peepholes", peepholes.astype(real.dtype), real.cpp),)
        limits = [each or np.inf for each in (op.gate_limit, op.cell_limit)]
        config = layer.config(what, layer.planes, sizes | {"Limited": min(limits) < np.inf, "Relu": op.relu})
        held = layer.array("limits", np.array(limits, real.dtype), real.cpp)
        return layer.code("recurrent", layer.call(function, config, constants=(*reals, held)))
    sums = ["std::int32_t" if reach < 2**31 else "std::int64_t" for reach in layer.values("reaches")]
    weight = f"std::{layer.values('input_weights').dtype.name}_t"
    types = {**layer.planes, "Weight": weight, "InputSum": sums[0], "RecurrentSum": sums[1], "Epilogue": epilogue(layer)}
    tables = {"SigmoidSegments": "sigmoid", "TanhSegments": "tanh", "CellSegments": "cell_tanh"}
    sizes |= {
        "Gates": len(layer.values("input_weights")) // op.hidden,
        "Shift": int(layer.values("shift")[0]),
        "HiddenFraction": int(layer.values("hidden_fraction")[0]),
        "CellFraction": int(layer.values("cell_fraction")[0]),
        "GateLimit": int(layer.values("gate_limit")[0]),
        "CellLimit": int(layer.values("cell_limit")[0]),
        **{name: layer.values(role).size - 1 for name, role in tables.items() if role not in others},
    }
    selection = row_dots()
    config = layer.config(what, types, sizes, selection)
    kinds = ("input_weights", layer.inputs[0]), ("recurrent_weights", NumType(16))
    weights = [
        layer.array(role, layer.values(role), weight, row_panels(layer.values(role), op.hidden, kind, int(reach)))
        for (role, kind), reach in zip(kinds, layer.values("reaches"), strict=True)
    ]
    rest = [
        _state_argument(layer, role) if role in op.given else layer.array(role, _integer_constant(layer, role), ctype)
        for role, ctype in _CTYPES.items()
        if role not in others
    ]
    called = f"integer{op.cell.capitalize()}"
    return layer.code("integer_recurrent", layer.call(called, config, constants=(*weights, *rest)), selection=selection)


def _state_argument(layer: Layer, role: str) -> str:
    """Return the kernel argument of an initial state that is an input."""
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
