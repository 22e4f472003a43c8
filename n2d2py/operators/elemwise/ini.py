"""[section] Type=ElemWise."""

import numpy as np

from n2d2py.contracts.ini import ACTIVATED, NB_OUTPUTS, WINDOW_KEYS, LayerContext, ini, read_activation
from n2d2py.graph.shapes import channels
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pointwise import Affine


def _input_coefficients(context: LayerContext, key: str, inputs: int, count: int) -> list[tuple[float, ...]]:
    mode, coefficients = context.values["CoeffMode"], tuple(context.values[key])
    shapes = {"PerLayer": (), "PerInput": ((inputs, 1),), "PerChannel": ((1, count), (inputs, count))}[mode]
    for rows, columns in ((1, 1), *shapes):
        if len(coefficients) == rows * columns:
            return [coefficients[row * columns : (row + 1) * columns] for row in range(rows)] * (inputs // rows)
    wanted = {
        "PerLayer": "one value",
        "PerInput": f"one value, or {inputs} values",
        "PerChannel": f"one value, {count} values, or {inputs * count} values input by input",
    }[mode]
    what = f"{key} has {len(coefficients)} values for {inputs} inputs of {count} channels, CoeffMode={mode}"
    raise context.fail("E217", what, f"give {wanted}", key)


_MODES = ("PerLayer", "PerInput", "PerChannel")


@ini(
    "ElemWise",
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key("Operation", Kind.ENUM, "Sum", "Element-wise operation.", ElemWise.OPERATIONS),
    Key("Weights", Kind.FLOATS, (1.0,), "Factors of the inputs. A single value applies to all."),
    Key("Shifts", Kind.FLOATS, (0.0,), "Offsets added to the weighted inputs."),
    Key("CoeffMode", Kind.ENUM, "PerInput", "Meaning of the lists in Weights and Shifts.", _MODES),
    base=ACTIVATED,
    doc="Element-wise operation on inputs of equal shape.",
)
def _build(context: LayerContext) -> None:
    values, tensors = context.values, context.align_ranks()
    count = channels(context.shapes[0])
    if values["NbOutputs"] != count:
        what = f"NbOutputs={values['NbOutputs']}, but the inputs have {count} channels"
        raise context.fail("E216", what, f"set NbOutputs to {count}", "NbOutputs")
    weights, shifts = (_input_coefficients(context, key, len(tensors), count) for key in ("Weights", "Shifts"))
    if max(map(len, weights)) > 1 or max(map(len, shifts)) > 1:
        inputs = enumerate(zip(tensors, weights, shifts, strict=True))
        tensors = [_scale_input(context, index, *each, count) for index, each in inputs]
        weights = shifts = []
    op = ElemWise(values["Operation"], tuple(w for (w,) in weights), tuple(s for (s,) in shifts))
    context.add(op, tensors, activation=read_activation(values))


def _scale_input(
    context: LayerContext, index: int, tensor: str, weights: tuple[float, ...], shifts: tuple[float, ...], count: int
) -> str:
    operation = context.values["Operation"]
    if operation not in ("Sum", "AbsSum", "EuclideanSum") or (operation == "AbsSum" and min(weights) < 0):
        negative = " with negative weights" if operation == "AbsSum" else ""
        what = f"CoeffMode=PerChannel is not supported for {operation}{negative}"
        raise context.fail("E217", what, "give one weight per input", "CoeffMode")
    # AbsSum: w |x| = |w x|; N2D2 does not shift there
    shift = (0.0,) if operation == "AbsSum" else shifts
    gains, offsets = (np.broadcast_to(np.array(each, np.float32), count).copy() for each in (weights, shift))
    return context.add_helper(f"coefficients{index}", Affine(), [tensor], {"weights": gains, "bias": offsets})
