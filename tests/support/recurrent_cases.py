"""LSTM, GRU and RNN: one-layer networks over sizes, directions, types and rescales, in integers and in floating point. Seeded."""

from dataclasses import replace
from itertools import cycle

import numpy as np

from n2d2py.arithmetic import FLOAT32, FLOAT64, RESCALING_MODES, NumType
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, quantize_layer
from n2d2py.graph import Node, Real
from n2d2py.operators.arrays.recurrent.op import GATES
from support.attention_cases import SHIFTED
from support.kernel_cases import S8, S16, U8, U16, Sweep
from support.kernel_harness import Case
from support.ops import ArrayRecurrent

__all__ = ["everything", "parameters"]

CELLS: tuple[dict, ...] = (
    {"cell": "LSTM"},
    {"cell": "GRU", "linear_before_reset": True},
    {"cell": "GRU"},
    {"cell": "LSTM", "part": "cell"},
    {"cell": "RNN"},
    {"cell": "LSTM", "gate_limit": 1.5, "cell_limit": 1.25},
    {"cell": "GRU", "linear_before_reset": True, "gate_limit": 0.75},
)
REAL_CELLS: tuple[dict, ...] = (
    {"cell": "LSTM", "peepholes": True, "gate_limit": 2.0},
    {"cell": "LSTM", "coupled": True, "peepholes": True, "cell_limit": 1.25},
    {"cell": "RNN", "relu": True, "gate_limit": 1.5},
)
SIZES = (
    (1, 1, 1),
    (3, 5, 2),
    (4, 3, 7),
    (5, 16, 8),
    (2, 17, 13),
    (6, 9, 31),
    (3, 33, 64),
    (2, 40, 65),
    (17, 4, 3),
    (2, 3, 130),
    (2, 150, 34),
    (1, 70, 16),
)
"""Steps, inputs, hidden units."""
KINDS = ((S8, S8), (U8, S8), (SHIFTED[0], U8), (S8, S16), (SHIFTED[1], SHIFTED[0]), (S16, S16), (U16, S8))


def parameters(op: ArrayRecurrent, rng: np.random.Generator, spread: float = 1.0) -> dict[str, np.ndarray]:
    """Parameters whose gates reach some -3 to 3, times `spread`."""
    rows, hidden = GATES[op.cell] * op.hidden, op.hidden
    drawn = {
        "input_weights": rng.normal(0, spread / op.size**0.5, (rows, op.size)),
        "recurrent_weights": rng.normal(0, spread / hidden**0.5, (rows, hidden)),
        "gate_bias": rng.normal(0, spread / 2, rows),
        "recurrent_bias": rng.normal(0, spread / 2, hidden) * (op.cell == "GRU" and op.linear_before_reset),
        "initial_h": rng.uniform(-1, 1, (op.sequences, hidden)),
        "initial_c": rng.uniform(-2, 2, (op.sequences, hidden)) * (op.cell == "LSTM"),
    }
    if op.peepholes:
        drawn["peepholes"] = rng.normal(0, spread / 2, 3 * hidden)
    return {role: values.astype(np.float32) for role, values in drawn.items()}


def everything(seed: int, every: int = 1) -> list[Case]:
    """All sizes of all cells in integers, some in floating point."""
    sweep, kinds, modes, made = Sweep(seed), cycle(KINDS), cycle(RESCALING_MODES), []
    for at, (steps, size, hidden) in enumerate(SIZES):
        for cell in CELLS:
            side = 1 if at % 4 < 2 else 3
            op = ArrayRecurrent(**cell, steps=steps, size=size, hidden=hidden, reverse=len(made) % 3 == 1, sequences=side)
            params = parameters(op, sweep.rng, (1.0, 6.0, 0.1)[at % 3])
            made.append(_integers(sweep, op, params, *next(kinds), next(modes)))
            if at % 3 == 0:
                made.append(_reals(sweep, op, params, (FLOAT32, FLOAT64)[at % 2]))
            if at % 2 == 1:
                roles = ("initial_h", "initial_c")[: 2 if op.cell == "LSTM" else 1]
                fed = replace(op, given=roles[at % 4 == 1 and op.cell == "LSTM" :])
                rest = {role: values for role, values in params.items() if role not in fed.given}
                state = (S16, S8, SHIFTED[0])[len(made) % 3]
                made.append(_integers(sweep, fed, rest, *next(kinds), next(modes), state))
                made.append(_reals(sweep, fed, rest, (FLOAT32, FLOAT64)[at % 4 == 1]))
        if at % 2 == 0:
            op = ArrayRecurrent(**REAL_CELLS[at // 2 % 3], steps=steps, size=size, hidden=hidden)
            made.append(_reals(sweep, op, parameters(op, sweep.rng), (FLOAT32, FLOAT64)[at % 4 == 0]))
    return made[::every]


def _states(op: ArrayRecurrent, kind: NumType) -> dict[str, tuple[tuple[int, int], NumType]]:
    """The inputs of a layer whose sequence begins with states: beyond what they can be, to be held within that."""
    scaled = {
        role: kind if kind.is_float else kind.with_scale((1.2, 20.0)[role == "initial_c"] / kind.qmax) for role in op.given
    }
    return {role: ((1, op.sequences * op.hidden), one) for role, one in scaled.items()}


def _integers(sweep: Sweep, op: ArrayRecurrent, params: dict, x: NumType, y: NumType, mode: str, state: NumType = S16) -> Case:
    x, y = x.with_scale(3 / x.qmax), y.with_scale((2.0 if op.part else 1.0) / y.qmax)
    bits = 16 if x.bits == 16 else 8
    states = _states(op, state)
    types = LayerTypes([x, *(kind for _, kind in states.values())], y, QuantOptions(rescaling=mode, bits=bits))
    node = quantize_layer(Node("layer", op, ["x", *states], ["y"], params), types)
    own = {"form": node.form, "rescale": node.rescale, "clamp": node.clamp, "bound": node.bound}
    size = op.steps * op.sequences * op.size
    ends = {"x": ((1, size), x), **states}
    graph = sweep.graph(op, ends, ((1, op.output_size()), y), **own)
    drawn = {name: sweep.stored(*end) for name, end in ends.items()}
    return sweep.case(f"{op} {op.given} {x.name} to {y.name} {mode}", graph, drawn, "apart")


def _reals(sweep: Sweep, op: ArrayRecurrent, params: dict, kind: NumType) -> Case:
    size = op.steps * op.sequences * op.size
    form = Real({role: values.astype(kind.dtype) for role, values in params.items()})
    ends = {"x": ((1, size), kind), **_states(op, kind)}
    graph = sweep.graph(op, ends, ((1, op.output_size()), kind), form=form)
    return sweep.case(f"{op} {op.given} {kind.name}", graph, {name: sweep.stored(*end) for name, end in ends.items()}, "apart")
