"""[section] Type=Fc."""

from __future__ import annotations

from n2d2py.frontend.ini.contract import LayerContext, ini
from n2d2py.frontend.ini.convolution import REMAP, remapped
from n2d2py.frontend.ini.fillers import filler_keys
from n2d2py.frontend.ini.inputs import WINDOW_KEYS
from n2d2py.frontend.ini.keys import ACTIVATED, CONFIGURATION, NB_OUTPUTS, read_activation
from n2d2py.frontend.ini.trained import with_trained_weights
from n2d2py.graph.shapes import elements
from n2d2py.ini.ignored import TRAINING
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.concat import Concat
from n2d2py.operators.fc import Fc
from n2d2py.operators.reshape import Reshape

_SCHEMA = with_trained_weights(ACTIVATED).extended(
    NB_OUTPUTS,
    *WINDOW_KEYS,
    *filler_keys("Weights"),
    *filler_keys("Bias"),
    name="Fc",
    doc="Fully connected layer. Its input is flattened in C, H, W order.",
)
_CONFIG = CONFIGURATION.extended(
    Key("NoBias", Kind.BOOL, False, "Leave out the bias."),
    Key("WeightsExportFormat", Kind.ENUM, "OC", "Axis order of stored weights.", ("OC", "CO")),
    REMAP,
    Key("Normalize", Kind.BOOL, False, "training", ignored=TRAINING),
    Key("DropConnect", Kind.FLOAT, 1.0, "training", ignored=TRAINING),
    name="Fc configuration",
)


def _flattened(context: LayerContext) -> str:
    """One input as it is; several inputs flattened one by one, then joined in order."""
    if len(context.parents) == 1:
        return context.parents[0][1]
    flat = []
    for index, (_, tensor) in enumerate(context.parents):
        shape = context.graph.shape(tensor)
        if len(shape) > 2:
            tensor = context.helper(f"flatten{index}", Reshape((elements(shape),)), [tensor])
        flat.append(tensor)
    return context.helper("concat", Concat(), flat)


@ini("Fc", _SCHEMA, _CONFIG)
def _build(context: LayerContext) -> None:
    values, outputs = context.values, context.values["NbOutputs"]
    count = sum(elements(shape) for shape in context.shapes)
    by_input = values["WeightsExportFormat"] == "CO"
    weights = context.parameter("weights", (outputs, count), order=(1, 0) if by_input else ())
    if by_input:
        weights = weights.reshape(count, outputs).T.copy()
    bias = None if values["NoBias"] else context.parameter("biases", (outputs,))
    context.add(Fc(), [_flattened(context)], remapped(context, weights, bias), read_activation(values))
