"""Recognition of an LSTM, GRU or RNN in the body of a WHILE, by its formula.

Tensors of the body become sums of products: matrices times the step's input, states, and functions of other sums. The sums of a
cell do not depend on how a converter splits, joins or orders the gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from n2d2py.frontend.tflite.file import RecurrentCell, TfliteFile, TfliteOperator, TfliteTensor
from n2d2py.frontend.tflite.known_values import compute_values

RECURRENT_LOOP = "RECURRENT_LOOP"
"""Operator for all steps of a cell; its inputs are x (steps, batch, size) and the initial states."""
_FUNCTIONS = {"LOGISTIC", "TANH", "RELU"}


@dataclass(frozen=True, eq=False)
class _Factor:
    """A vector that matrices multiply: a state, the input of a step ("GATHER"), or a function of sums."""

    kind: str
    of: tuple[_Sum, ...] = ()
    variables: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class _Sum:
    """Matrices (size, ...) by the factor that they multiply, and a bias of `size` elements."""

    terms: dict[_Factor, np.ndarray]
    bias: np.ndarray

    def times(self, matrix: np.ndarray) -> _Sum:
        return _Sum({factor: matrix @ term for factor, term in self.terms.items()}, matrix @ self.bias)

    def plus(self, other: _Sum, sign: int) -> _Sum:
        terms = dict(self.terms)
        for factor, term in other.terms.items():
            terms[factor] = terms[factor] + sign * term if factor in terms else sign * term
        return _Sum(terms, self.bias + sign * other.bias)

    def factors(self) -> list[_Factor]:
        """Return the factors if none has a matrix; else no factors."""
        alone = all(np.array_equal(term, np.eye(len(term))) for term in self.terms.values())
        return list(self.terms) if alone and not self.bias.any() else []

    def as_factor(self) -> _Factor:
        """Return the only factor if it has no matrix; else the sum as a factor of the kind "SUM"."""
        factors = self.factors()
        return factors[0] if len(factors) == 1 else _Factor("SUM", (self,))

    def products(self) -> list[dict[str, _Factor]]:
        """Return both sides of each product, by kind, if this is a sum of products."""
        return [{side.as_factor().kind: side.as_factor() for side in factor.of} for factor in self.factors()]


def recognize_cell(body: TfliteFile) -> RecurrentCell | None:
    """Return the cell that a loop body computes from its inputs, the loop variables; None for anything else."""
    sums = _find_sums(body)
    changed = {index: sums[out] for index, out in enumerate(body.outputs) if out in sums and body.inputs[index] in sums}
    for h, total in changed.items():
        for c, cell_state in changed.items():
            cell = _match_lstm(h, total, c, cell_state) if c != h else _match_gru(h, total) or _match_rnn(h, total)
            if cell is not None:
                return cell
    return None


def _find_sums(body: TfliteFile) -> dict[int, _Sum]:
    sums: dict[int, _Sum] = {}
    for variable, position in enumerate(body.inputs):
        tensor = body.tensors[position]
        if tensor.dtype == np.float32 and len(tensor.shape) == 2 and not tensor.refusal:
            sums[position] = _of(_Factor("STATE", (), (variable,)), tensor.shape[-1])
    for position, tensor in enumerate(body.tensors):
        values = tensor.real_values() if tensor.values is not None and tensor.dtype.kind in "fi" else None
        if values is not None and values.size == (tensor.shape or (1,))[-1]:
            sums[position] = _Sum({}, values.reshape(-1).astype(np.float64))
    for op in body.operators:
        results = _operator_sums(body, op, sums)
        pairs = zip(op.outputs, results, strict=False)
        sums.update((output, each) for output, each in pairs if body.tensors[output].shape[-1:] == each.bias.shape)
    return sums


def _of(factor: _Factor, size: int) -> _Sum:
    return _Sum({factor: np.eye(size)}, np.zeros(size))


def _operator_sums(body: TfliteFile, op: TfliteOperator, known_sums: dict[int, _Sum]) -> list[_Sum]:
    """Return the sums that an operator computes; none for other functions."""
    code, (x, *rest) = op.code, [known_sums.get(index) for index in op.inputs] or [None]
    tensors, size = [body.tensors[index] for index in op.inputs if index >= 0], body.tensors[op.outputs[0]].shape[-1:]
    if code == "GATHER" and size and all(index in body.inputs for index in op.inputs) and not op.options.integer(0):
        variables = tuple(body.inputs.index(index) for index in op.inputs)
        fits = [len(tensor.shape) for tensor in tensors] == [3, 0]
        return [_of(_Factor(code, (), variables), size[0])] if fits else []
    if code == "SPLIT" and len(tensors) == 2:
        return _split_sum(body, op, known_sums)
    if x is None or not size:
        return []
    if code in ("FULLY_CONNECTED", "BATCH_MATMUL"):
        weights = tensors[1].real_values() if len(tensors) > 1 and tensors[1].values is not None else None
        return _product_sum(op, x, weights, rest[1:])
    if code in _FUNCTIONS:
        return [_of(_Factor(code, (x,)), size[0])]
    if code in ("ADD", "SUB", "MUL") and rest and rest[0] is not None and not op.options.integer(0, "<b"):
        if code == "MUL":
            return [_of(_Factor(code, (x, rest[0])), size[0])] if len(x.bias) == len(rest[0].bias) else []
        fits = all(len(each.bias) in (size[0], 0 if each.terms else 1) for each in (x, rest[0]))  # or broadcast constants
        return [x.plus(rest[0], 1 if code == "ADD" else -1)] if fits else []
    if code == "RESHAPE" and len(x.bias) == size[0]:
        return [x]
    if code in ("STRIDED_SLICE", "SLICE") and tensors[0].shape[-1:] == x.bias.shape:
        return _slice_sum(op, x, tensors, size)
    return []


def _slice_sum(op: TfliteOperator, x: _Sum, tensors: Sequence[TfliteTensor], size: tuple[int, ...]) -> list[_Sum]:
    lines = np.broadcast_to(np.arange(len(x.bias)), tensors[0].shape)
    bounds = [tensor.values for tensor in tensors[1:] if tensor.values is not None]
    computed = compute_values(op, tensors[0], [lines, *bounds])
    fits = computed is not None and computed.size and computed.shape[-1:] == size
    return [x.times(np.eye(len(x.bias))[computed.reshape(-1, *size)[0]])] if computed is not None and fits else []


def _product_sum(op: TfliteOperator, x: _Sum, weights: np.ndarray | None, biases: Sequence[_Sum | None]) -> list[_Sum]:
    dense = op.code == "FULLY_CONNECTED"
    if weights is None or weights.ndim != 2 or (dense and op.options.integer(0, "<b")):
        return []
    matrix = weights if dense or op.options.integer(1, "<B") else weights.T
    bias = biases[0] if biases and op.inputs[2] >= 0 else _Sum({}, np.zeros(len(matrix)))
    fits = bias is not None and len(bias.bias) == len(matrix) and matrix.shape[1] == len(x.bias)
    return [x.times(matrix).plus(bias, 1)] if bias is not None and fits else []


def _split_sum(body: TfliteFile, op: TfliteOperator, known_sums: dict[int, _Sum]) -> list[_Sum]:
    axis, x = body.tensors[op.inputs[0]].values, known_sums.get(op.inputs[1])
    rank = len(body.tensors[op.inputs[1]].shape)
    if x is None or axis is None or axis.size != 1 or axis.item() not in (-1, rank - 1) or len(x.bias) % len(op.outputs):
        return []
    return [x.times(part) for part in np.split(np.eye(len(x.bias)), len(op.outputs))]


# ---- formulas -----------------------------------------------------------------------------------
def _match_lstm(h: int, total: _Sum, c: int, cell: _Sum) -> RecurrentCell | None:
    """Match h' = sigmoid(o) tanh(c'), c' = sigmoid(f) c + sigmoid(i) tanh(g)."""
    kinds = [{"LOGISTIC", "TANH"}, {"LOGISTIC", "STATE"}, {"LOGISTIC", "TANH"}]
    products = [*total.products(), *sorted(cell.products(), key=lambda each: "TANH" in each)]
    if [set(each) for each in products] != kinds:
        return None
    out, forget, new = products
    if out["TANH"].of[0] is not cell or forget["STATE"].variables != (c,):
        return None
    gates = [each.of[0] for each in (new["LOGISTIC"], out["LOGISTIC"], forget["LOGISTIC"], new["TANH"])]
    return _build_cell("LSTM", h, c, gates, gates)


def _match_gru(h: int, total: _Sum) -> RecurrentCell | None:
    """Match h' = z h + (1 - z) tanh(n), z = sigmoid(...), n = W x + r (R h + b) or W x + R (r h), r = sigmoid(...)."""
    products = sorted(total.products(), key=lambda each: "TANH" in each)
    if [set(each) for each in products] != [{"LOGISTIC", "STATE"}, {"TANH", "SUM"}]:
        return None
    z, n = products[0]["LOGISTIC"], products[1]["TANH"].of[0]
    opposite = products[1]["SUM"].of[0].plus(_of(z, len(n.bias)), 1)
    is_one = not any(term.any() for term in opposite.terms.values()) and np.all(opposite.bias == 1)
    resets = [factor for factor in n.terms if factor.kind == "MUL"]
    if products[0]["STATE"].variables != (h,) or not is_one or len(resets) != 1:
        return None
    (reset,), matrix = _of(resets[0], 1).products(), n.terms[resets[0]]
    inner = _Sum({factor: term for factor, term in n.terms.items() if factor is not resets[0]}, n.bias)
    if set(reset) == {"LOGISTIC", "STATE"} and matrix.shape[0] == matrix.shape[1]:  # R (r h)
        read = _of(reset["STATE"], len(matrix)).times(matrix)
        return _build_cell("GRU", h, -1, [z.of[0], reset["LOGISTIC"].of[0], inner], [z.of[0], reset["LOGISTIC"].of[0], read])
    if set(reset) == {"LOGISTIC", "SUM"} and np.array_equal(matrix, np.eye(len(matrix))):
        read = reset["SUM"].of[0]
        if not any(factor.kind == "STATE" for factor in inner.terms):
            gates = [z.of[0], reset["LOGISTIC"].of[0]]
            return _build_cell("GRU", h, -1, [*gates, inner], [*gates, read], recurrent_bias=read.bias)
    return None


def _match_rnn(h: int, total: _Sum) -> RecurrentCell | None:
    function = total.as_factor()
    if function.kind not in ("TANH", "RELU"):
        return None
    return _build_cell("RNN", h, -1, [function.of[0]], [function.of[0]], activation=function.kind.capitalize())


def _build_cell(kind: str, h: int, c: int, gates: list[_Sum], recurrent: list[_Sum], **more: Any) -> RecurrentCell | None:
    """Return the cell if its gates read only the step's input and the state `h`, which the sums `recurrent` read."""
    read = {factor for gate in (*gates, *recurrent) for factor in gate.terms}
    inputs, states = ([factor for factor in read if factor.kind == kind] for kind in ("GATHER", "STATE"))
    if len(inputs) != 1 or len(states) != 1 or len(read) != 2 or states[0].variables != (h,):
        return None
    none = np.zeros((len(gates[0].bias), gates[0].terms.get(inputs[0], np.zeros((0, 0))).shape[1]))
    zeros = np.zeros((len(none), len(none)))
    stacks = (
        [gate.terms.get(inputs[0], none) for gate in gates],
        [gate.terms.get(states[0], zeros) for gate in recurrent],
        [gate.bias for gate in gates],
    )
    if any(len({part.shape for part in each}) > 1 for each in stacks):
        return None
    weights, recurrent_weights, biases = (np.stack(each).astype(np.float32) for each in stacks)
    x, counter = inputs[0].variables
    return RecurrentCell(kind, x, counter, h, c, weights, recurrent_weights, biases, **more)
