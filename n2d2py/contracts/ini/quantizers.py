"""Quantizers of an INI network from its training: weights on their grid, outputs rounded to their steps.

The graph equals that of a pre-quantized (QDQ) file: weights are integers times "weight_scales", and a Quantize follows every
output with QAct.
"""

from collections.abc import Sequence

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.trained import bits_of, lsq_first_steps, lsq_weights, normalized, read_grid, sat_gain, sat_weights
from n2d2py.contracts.ini.recipes import refuse_unsupported_quantizers
from n2d2py.contracts.ini.weights import QUANTIZED_WEIGHTS, WeightStore
from n2d2py.contracts.operator import make_operator
from n2d2py.graph import Graph, Node, Tensor
from n2d2py.ini.schema import Values

_WEIGHT_STEP = "QWeight_LSQ_StepSize"
_ACTIVATION = {"SAT": ("QAct_SAT_Alpha", "QAct.Alpha"), "LSQ": ("QAct_LSQ_StepSize", "QAct.StepSize")}
GRIDS = {"Default": "odd", "Integer": "odd", "Symmetric": "symmetric", "FullRange": "full"}
"""Grids of `n2d2py.arithmetic.trained` by QWeight.QuantMode."""
_MAX_MISMATCH = 0.05
"""If a larger share of the weights differs by several steps, the stored ones are of another network or another quantizer."""

TrainedWeights = tuple[np.ndarray, "np.ndarray | None"]
"""Weights as the network uses them, float32, and their scale: one, or one per output; None for real weights."""


def load_trained_weights(
    values: Values, store: WeightStore, name: str, initial: np.ndarray, rows: Sequence[int], order: Sequence[int]
) -> TrainedWeights:
    """Return the weights of a layer with QWeight, in stored order; `rows` and `order` as in `WeightStore.load`.

    Raises E425 for a step or weights off the quantization grid, E124 for an unsupported quantizer, and the errors of loading.
    """
    kind, steps, where = values["QWeight"], values["QWeight.Range"], values.section.location
    if kind == "LSQ" and values["QWeight.PerChannel"] and (order or len(initial) != len(rows)):
        what = "QWeight.PerChannel=1 requires weights that are stored by output channel"
        raise values.fail("E124", what, "store the weights in the order OCHW without a mapping", "QWeight.PerChannel")
    refuse_unsupported_quantizers(values)
    stored = next((role for role in QUANTIZED_WEIGHTS if store.has(name, role)), None)
    if stored is not None and not store.has(name, "weights"):
        if kind == "LSQ":
            quantized = store.load(name, stored, initial, where, rows, order)
            return quantized, _lsq_step(values, store, name, quantized)
        grid, integers, scale = _read_grid(values, store, name, stored, initial, rows, order)
        log.notice("%s: %s are used as stored (%s grid)", name, stored, grid)
        return _dequantize(integers, np.array([scale], np.float32)), np.array([scale], np.float32)
    real = store.load(name, "weights", initial, where, rows, order)
    if kind == "LSQ":
        step = _lsq_step(values, store, name, real)
        return _dequantize(lsq_weights(real, steps, step), step), step
    if not values["QWeight.ApplyQuantization"]:
        return normalized(real).astype(np.float32), None
    grid, kept = GRIDS[values["QWeight.QuantMode"]], None
    if stored is not None:
        kept = _read_grid(values, store, name, stored, initial, rows, order)
        grid = kept[0]
    integers, scale = sat_weights(real, steps, grid)
    if kept is not None:
        _report_mismatch(name, integers, kept[1], steps, grid, values)
    if values["QWeight.ApplyScaling"]:
        scale *= sat_gain(integers, scale, len(rows))
    scales = np.array([scale], np.float32)
    return _dequantize(integers, scales), scales


def _dequantize(integers: np.ndarray, scales: np.ndarray) -> np.ndarray:
    each = scales.astype(np.float64).reshape(-1, *(1,) * (integers.ndim - 1))
    return (integers * each).astype(np.float32)


def _read_grid(
    values: Values, store: WeightStore, name: str, stored: str, initial: np.ndarray, rows: Sequence[int], order: Sequence[int]
) -> tuple[str, np.ndarray, float]:
    array = store.load(name, stored, initial, values.section.location, rows, order)
    steps = values["QWeight.Range"]
    read = read_grid(array, steps, GRIDS[values["QWeight.QuantMode"]])
    if read is None:
        what = f"layer '{name}': the stored quantized weights '{name}_{stored}' are not on the grid of QWeight.Range={steps}"
        raise values.fail("E425", what, "set QWeight.Range to the value used in training", "QWeight.Range")
    return read


def _report_mismatch(name: str, integers: np.ndarray, stored: np.ndarray, steps: int, grid: str, values: Values) -> None:
    share, step = float(np.mean(integers != stored)), 2 if grid == "odd" or steps == 1 else 1
    differs = np.abs(integers - stored) > (step if steps > 1 else 0)
    text = f"{name}: {bits_of(steps)}-bit weights, {grid} grid; {100 * share:.2f} % differ from the stored quantized ones"
    if np.mean(differs) > _MAX_MISMATCH:
        log.warning("W421", text, where=values.section.location, remedy="use both files from one training")
    else:
        log.notice("%s", text)


def refuse_binary_lsq(values: Values) -> None:
    """Raise E124 for LSQ weights of one bit."""
    if bits_of(values["QWeight.Range"]) < 2:
        what = "QWeight=LSQ with QWeight.Range=1 would have the integers -1 and 0"
        remedy = "use SAT with its binary weights -1 and 1, or a QWeight.Range of 3 or more"
        raise values.fail("E124", what, remedy, "QWeight.Range")


def _lsq_step(values: Values, store: WeightStore, name: str, real: np.ndarray) -> np.ndarray:
    """Return the LSQ step, (1), or (O) with QWeight.PerChannel: stored, else from the INI, else the initial step of LSQ."""
    steps, outputs = values["QWeight.Range"], len(real)
    refuse_binary_lsq(values)
    count = outputs if values["QWeight.PerChannel"] else 1
    if values.is_given("QWeight.StepSize") and not store.has(name, _WEIGHT_STEP):
        return np.full(count, values["QWeight.StepSize"], np.float32)
    initial = lsq_first_steps(real.astype(np.float64), count, steps).astype(np.float32)
    return require_positive(store.load(name, _WEIGHT_STEP, initial, values.section.location), name, _WEIGHT_STEP, values)


def require_positive(array: np.ndarray, name: str, role: str, values: Values) -> np.ndarray:
    """Return stored steps or alphas; raise E425 if one is not positive."""
    if not (array > 0).all():
        what = f"'{name}_{role}' is {float(array.min()):g}, but must be above 0"
        raise values.fail("E425", what, "check the training of the layer")
    return array


def quantize_output(graph: Graph, values: Values, store: WeightStore, node: Node, name: str) -> None:
    """Add the Quantize of QAct after a layer. It takes over the layer's tensor; the real one is renamed to <layer>_real.

    `name`: name of the layer under which the step or alpha is stored. Raises E421 if it is missing, E425 if not positive.
    """
    steps = values["QAct.Range"]
    role, key = _ACTIVATION[values["QAct"]]
    # what the INI gives is where training started: it stands for no trained value
    known = store.has(name, role) or store.ignore_missing
    initial = np.array([values[key]], np.float32)
    if not known and values["QAct"] == "LSQ" and values.is_given(key):
        threshold = float(initial[0])
    else:
        threshold = float(require_positive(store.load(name, role, initial, values.where("QAct")), name, role, values)[0])
    scale = np.float32(threshold) / np.float32(steps) if values["QAct"] == "SAT" else np.float32(threshold)
    kind = NumType(8, False, scale=float(scale), most=None if steps == 255 else steps)
    tensor = node.output
    shape, real = graph.shape(tensor), graph.fresh_name(f"{tensor}_real")
    del graph.tensors[tensor]
    node.outputs = [real]
    graph.tensors[real] = Tensor(real, shape)
    quantize, name = make_operator("Quantize", kind), graph.fresh_name(f"{name}_quantized")
    graph.add(Node(name, quantize, [real], [tensor], location=node.location), graph.nodes.index(node) + 1)
