"""The numbers of the tool: types of tensors, exact integer sums, rescaling. Normative for the C++ side."""

from n2d2py.arithmetic.exact import PLACE_LIMIT, conv_sums, exact_float, largest_place, round_up
from n2d2py.arithmetic.numtype import FLOAT32, FLOAT64, NumType, cut, plain_type
from n2d2py.arithmetic.rescale import (
    RESCALING_MODES,
    DoublingRescale,
    FixedPointRescale,
    FloatRescale,
    FractionRescale,
    Rescale,
    ShiftRescale,
    StepRescale,
    make_rescale,
)
