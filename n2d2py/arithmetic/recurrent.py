"""LSTM, GRU and RNN in integers. Normative for `kernels/n2d2/integer_recurrent.hpp`.

x (zero point taken off) are the integers of a step's input, h the hidden state in 2^-H, c the cell state in 2^-F. Rows of
weights W, R
are integers; each row has its multipliers m_x, m_h and its bias b, so that the sum of a gate is one integer in 2^-(12 + p):

    S = m_x * (W x) + m_h * (R h) + b                            64 bits
    gate = clamp16((S + 2^(p - 1)) >> p)                         in 2^-12

sigmoid and tanh of gates, and tanh of the cell state, are straight lines between knots (arithmetic/interpolated.py), in 2^-15,
from -2^15 to 2^15. With i, o, f, g and z, r, n for them:

    LSTM    c' = clamp16((2^(15 - F) f c + i g + 2^(29 - F)) >> (30 - F)),  h' = clamp16((o tanh(c') + 2^(29 - H)) >> (30 - H))
    GRU     h' = clamp16(((2^15 - z) n' + z h + 2^14) >> 15),  n' = (n + 2^(14 - H)) >> (15 - H), n where H is 15
    RNN     h' = clamp16(n'), n the tanh of its only gate

The gate n of a GRU reads (r h + 2^14) >> 15 instead of h, or with linear_before_reset:

    u = clamp31((m_x * (W x) + b + 2^(p - 5)) >> (p - 4)),  v = clamp31((m_h * (R h) + b_h + 2^(p - 5)) >> (p - 4))      in
    2^-16
    gate = clamp16((2^15 u + r v + 2^18) >> 19)

A sequence that begins with a state x of another tensor begins with clamp16((m x + 2^(p - 1)) >> p).

clamp16 holds within +-32767, clamp31 within +-2^30. A layer may hold gates and the cell state within less (gate_limit,
cell_limit).
"""

from collections.abc import Mapping

import numpy as np

from n2d2py.arithmetic import functions as exact
from n2d2py.arithmetic.interpolated import FRACTION, INPUTS, fit_knots, interpolate

GATE_BITS = 12
"""Fractional bits of the inputs of sigmoid and tanh, which are -8 to 8."""
STATE_BITS = 15
"""Fractional bits of the results of sigmoid and tanh, and the most of the hidden state."""
ONE = 1 << STATE_BITS
SMALLEST_SHIFT, LARGEST_SHIFT = 8, 46
"""Limits of p."""
_LIMIT = 2**15 - 1
_WIDE = 2**30
_MIDDLE = 2**15
"""The place of 0 among 16-bit inputs of a table."""
_SEGMENTS = 1024
_WITHIN = 1.5
"""Steps by which sigmoid and tanh may be off."""


def knots(function: str, fraction: int) -> np.ndarray:
    """Return the knots of "sigmoid" or "tanh" in 2^-15, for 16-bit inputs in 2^-fraction."""
    inputs = np.arange(-_MIDDLE, _MIDDLE + 1) * 2.0**-fraction
    values = ONE * (exact.sigmoid(inputs) if function == "sigmoid" else exact.tanh(inputs))
    result = fit_knots(values, -ONE, ONE, _WITHIN)
    if result is not None:
        return result
    width = INPUTS // _SEGMENTS
    return np.rint(values[::width] * (2**FRACTION // width)).astype(np.int32)


def _clamp16(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -_LIMIT, _LIMIT)


def _read(table: np.ndarray, x: np.ndarray) -> np.ndarray:
    return interpolate(table, x + _MIDDLE, -ONE, ONE)


def begun(x: np.ndarray, multiplier: int, shift: int) -> np.ndarray:
    """Return the state with which a sequence begins, from integers of another tensor without zero point."""
    return _clamp16((x * np.int64(multiplier) + (np.int64(1) << (int(shift) - 1))) >> int(shift))


class _Layer:
    """The constants of a layer as integers, and the sums of inputs (N, steps, size) without zero point."""

    def __init__(self, form: Mapping[str, np.ndarray], x: np.ndarray):
        wide = np.float64  # sums stay below 2^53
        self.form, self.shift, self.fraction = form, int(form["shift"][0]), int(form["hidden_fraction"][0])
        sums = np.matmul(x.astype(wide), form["input_weights"].T.astype(wide)).astype(np.int64)
        self.inputs = sums * form["input_multipliers"] + form["gate_bias"]
        self.recurrent = form["recurrent_weights"].T.astype(wide)

    def hidden(self, h: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return m_h * (R h) of some rows."""
        sums = np.matmul(h.astype(np.float64), self.recurrent[:, rows]).astype(np.int64)
        return sums * self.form["recurrent_multipliers"][rows]

    def gate(self, total: np.ndarray) -> np.ndarray:
        """Return S as the input of a table."""
        return self.held((total + (np.int64(1) << (self.shift - 1))) >> self.shift)

    def held(self, gate: np.ndarray) -> np.ndarray:
        limit = int(self.form["gate_limit"][0])
        return np.clip(gate, -limit, limit)

    def wide(self, total: np.ndarray) -> np.ndarray:
        """Return S in 2^-16."""
        return np.clip((total + (np.int64(1) << (self.shift - 5))) >> (self.shift - 4), -_WIDE, _WIDE)

    def new_state(self, gate: np.ndarray) -> np.ndarray:
        """Return the tanh of a gate as a hidden state."""
        narrowed = STATE_BITS - self.fraction
        return (_read(self.form["tanh"], gate) + ((1 << narrowed) >> 1)) >> narrowed

    def lstm(self, inputs: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the states after a step, of the sums `inputs` of the step and the states before it."""
        form, fraction, limit = self.form, int(self.form["cell_fraction"][0]), int(self.form["cell_limit"][0])
        *sigmoids, last = np.split(self.gate(inputs + self.hidden(h)), 4, axis=1)
        (i, o, f), g = (_read(form["sigmoid"], gate) for gate in sigmoids), _read(form["tanh"], last)
        c = np.clip((((f * c) << (15 - fraction)) + i * g + (np.int64(1) << (29 - fraction))) >> (30 - fraction), -limit, limit)
        return _clamp16((o * _read(form["cell_tanh"], c) + (1 << (29 - self.fraction))) >> (30 - self.fraction)), c

    def gru(self, inputs: np.ndarray, h: np.ndarray, linear_before_reset: bool) -> np.ndarray:
        """Return the state after a step, as `lstm`."""
        both, last = slice(0, 2 * h.shape[1]), slice(2 * h.shape[1], None)
        z, r = np.split(_read(self.form["sigmoid"], self.gate(inputs[:, both] + self.hidden(h, both))), 2, axis=1)
        if linear_before_reset:
            v = self.wide(self.hidden(h, last) + self.form["recurrent_bias"])
            mixed = self.held((self.wide(inputs[:, last]) * ONE + r * v + (1 << 18)) >> 19)
        else:
            mixed = self.gate(inputs[:, last] + self.hidden((r * h + ONE // 2) >> STATE_BITS, last))
        return _clamp16(((ONE - z) * self.new_state(mixed) + z * h + ONE // 2) >> STATE_BITS)


def all_states(
    cell: str, x: np.ndarray, form: Mapping[str, np.ndarray], order: range, linear: bool, h: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the hidden states (N, steps, hidden) and the last cell state (N, hidden), int64, of an "LSTM", "GRU" or "RNN".

    x: inputs (N, steps, size) without zero point. `order`: of the steps. `linear`: linear_before_reset. h, c: the states (N,
    hidden) before.
    """
    layer, states = _Layer(form, x), np.zeros((*x.shape[:2], h.shape[1]), np.int64)
    for t in order:
        inputs = layer.inputs[:, t]
        if cell == "LSTM":
            h, c = layer.lstm(inputs, h, c)
        elif cell == "GRU":
            h = layer.gru(inputs, h, linear)
        else:
            h = _clamp16(layer.new_state(layer.gate(inputs + layer.hidden(h))))
        states[:, t] = h
    return states, c
