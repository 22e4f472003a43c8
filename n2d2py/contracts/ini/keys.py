"""Common keys of layer sections: windows, activations, and training keys without effect."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from n2d2py.contracts.functions import Clip, FunctionRow, Tanh, ini_functions, rectifier
from n2d2py.contracts.ini.trained import (
    QUANTIZED_ACTIVATION,
    QUANTIZED_ELSEWHERE,
    QUANTIZED_TRAINING,
    QUANTIZER_SOLVERS,
    with_trained_activation,
)
from n2d2py.ini import COVERED, PRECISION_KEYS, SPIKING, TRAINING, Ignored, Key, Kind, Schema, Values

_SHARED = "store the parameters under the name of each layer, and remove it"
PARAMETERS_OF_TRAINING = (
    *TRAINING.for_keys("Solvers*", "WeightsSolver*", "BiasSolver*", "ScaleSolver*", "BackPropagate"),
    Ignored("*Sharing", "shared parameters", "makes layers share their parameters", _SHARED, changes=True),
)

_PRECISION = "choose the precision with -nbbits: -32 or -64"
FLOATS = Ignored("", "types of floating point", "sets the type that N2D2 computes with", _PRECISION)
_DATA_TYPE = "Floating-point type. Has no effect, as -nbbits selects the precision."

LAYER = Schema(
    "layer",
    (
        Key("Input", Kind.NAMES, doc="Sections that feed this layer. Several inputs are concatenated in order."),
        Key("Type", Kind.STRING, doc="Type of the layer."),
        Key("Model", Kind.STRING, "", "Execution model: Frame, Frame_CUDA or Transcode. All are equivalent here."),
        Key("DataType", Kind.DATATYPE, "Float32", _DATA_TYPE, ignored=FLOATS),
        *PRECISION_KEYS,
    ),
    (*COVERED.for_keys("ConfigSection", "ConfigSection(*)", "NbChannels"), *PARAMETERS_OF_TRAINING, *QUANTIZED_TRAINING),
    "Keys of every layer section.",
)

WINDOW_KEYS = (
    Key("InputOffsetX", Kind.UINT, 0, "Left edge of the input region."),
    Key("InputOffsetY", Kind.UINT, 0, "Top edge of the input region."),
    Key("InputWidth", Kind.UINT, 0, "Width of the input region. 0: up to the right edge."),
    Key("InputHeight", Kind.UINT, 0, "Height of the input region. 0: down to the bottom edge."),
)

NB_OUTPUTS = Key("NbOutputs", Kind.UINT, doc="Number of output channels.", minimum=1)

_ACTIVATIONS = ("Linear", "Rectifier", "Saturation", "Logistic", "LogisticWithLoss", "Softplus", "Swish", "Tanh", "TanhLeCun")
_ACTIVATED = LAYER.extended(
    Key("ActivationFunction", Kind.ENUM, "Linear", "Activation function of the layer.", _ACTIVATIONS),
    Key("ActivationFunction.LeakSlope", Kind.FLOAT, 0.0, "Rectifier: slope for negative values."),
    Key("ActivationFunction.Clipping", Kind.FLOAT, 0.0, "Rectifier, Linear: upper bound. 0: none.", minimum=0),
    Key("ActivationFunction.Threshold", Kind.FLOAT, 1.0, "Saturation: bound of the magnitude.", minimum=0),
    Key("ActivationFunction.Alpha", Kind.FLOAT, 1.0, "Tanh: factor of the argument."),
    accepted=(*QUANTIZED_ACTIVATION, *TRAINING.for_keys("ActivationFunction.MovingAverage", "ActivationFunction.MA_Window")),
)
ACTIVATED = with_trained_activation(_ACTIVATED)

_SPIKING = SPIKING.for_keys(
    *"""
    IncomingDelay Threshold BipolarThreshold TerminateDelta Leak Refractory *Refractory Inhibit* Bipolar*
    Weights*Mean WeightsRelInit Weights*VarSlope Weights*VarOrigin Weights*Proba SynapticRedundancy EnableStdp
    Stdp* LtpProba LtdProba OrderStdp RefractoryIntegration DigitalIntegration LateralInhibition SubConnectIdx
    """.split()
)
"""Parameters of spiking models in sections shared with other models."""

_DEPTH = Ignored("", "keys of a third axis", "acts along a third axis", "remove it: layers have two axes", changes=True)
THIRD_AXIS = tuple(
    replace(_DEPTH, pattern=pattern, same=("0",) if "Padding" in pattern else ("1",))
    for pattern in ("KernelDepth", "PoolDepth", "StrideZ", "PaddingZ", "DilationZ", "SubSampleZ")
)

CONFIGURATION = Schema(
    "layer configuration", (), accepted=(*PARAMETERS_OF_TRAINING, *QUANTIZER_SOLVERS, *QUANTIZED_ELSEWHERE, *_SPIKING)
)


_FUNCTIONS: dict[str, tuple[tuple[str, ...], Callable[..., FunctionRow | None]]] = {
    "Linear": (("Clipping",), lambda clipping: Clip(-clipping, clipping) if clipping else None),
    "Rectifier": (("LeakSlope", "Clipping"), rectifier),
    "Saturation": (("Threshold",), lambda threshold: Clip(-threshold, threshold)),
    "Tanh": (("Alpha",), Tanh),
    "TanhLeCun": ((), lambda: Tanh(1.7159 * 2.0 / 3.0)),
}
"""Keys of activation functions with parameters, and the function of their values."""
_OTHER_FUNCTION = Ignored(
    "", "parameters of another activation function", "belongs to another activation function", "remove them"
)


def read_activation(values: Values) -> FunctionRow | None:
    """Return the activation of a layer; None for Linear without clipping."""
    name = values["ActivationFunction"]
    keys, function = _FUNCTIONS.get(name, ((), lambda: ini_functions()[name]))
    for key in ("LeakSlope", "Clipping", "Threshold", "Alpha"):
        if values.is_given(key_name := f"ActivationFunction.{key}") and key not in keys:
            values.section.document.ignored.add(_OTHER_FUNCTION, key_name, values.where(key_name))
    return function(*(values[f"ActivationFunction.{key}"] for key in keys))


def window_keys(base: str, default: int | None, *, signed: bool = False, size: bool = False) -> tuple[Key, ...]:
    """Return the keys of a window, with one number per axis: BaseDims (X Y), Base or BaseSize (both), BaseX and BaseY.

    With `size`, the names are those of kernels: BaseSize, BaseWidth, BaseHeight.
    """
    one, many = (Kind.INT, Kind.INTS) if signed else (Kind.UINT, Kind.UINTS)
    low = None if signed else 0 if base == "Padding" else 1
    square, x, y = (f"{base}Size", f"{base}Width", f"{base}Height") if size else (base, f"{base}X", f"{base}Y")
    return (
        Key(f"{base}Dims", many, None, f"{base} in X and Y.", minimum=low),
        Key(square, one, None, f"{base} in both axes.", minimum=low),
        Key(x, one, None, f"{base} in X (horizontal).", minimum=low),
        Key(y, one, default, f"{base} in Y (vertical).", minimum=low),
    )


def read_window(
    values: Values, base: str, default: int | None, *, size: bool = False, line: int | None = None
) -> tuple[int, int]:
    """Return (vertical, horizontal) from the keys of `window_keys`; the INI gives X first.

    `line`: the vertical value for a one-dimensional layer, whose Dims have one value. Raises E211 or E212 for the dimensions.
    """
    square, x, y = (f"{base}Size", f"{base}Width", f"{base}Height") if size else (base, f"{base}X", f"{base}Y")
    dims: Sequence[int] | None = values[f"{base}Dims"]
    if dims is not None:
        if line is not None and len(dims) == 1:
            return line, dims[0]
        if len(dims) != 2:
            raise values.fail("E211", f"{base}Dims has {len(dims)} values instead of 2", "give X and Y", f"{base}Dims")
        return dims[1], dims[0]
    if values[square] is not None:
        return values[square] if line is None else line, values[square]
    horizontal = values[x] if values[x] is not None else default
    vertical = values[y] if values.is_given(y) or line is None else line
    vertical = default if vertical is None else vertical
    if horizontal is None or vertical is None:
        raise values.fail("E212", f"the layer has no {base.lower()} dimensions", f"add {base}Dims=X Y or {square}=N")
    return vertical, horizontal
