"""[section] Type=BatchNorm."""

from __future__ import annotations

import numpy as np

from n2d2py.frontend.ini.contract import LayerContext, LayerType
from n2d2py.frontend.ini.keys import ACTIVATED, CONFIGURATION, NB_OUTPUTS, read_activation
from n2d2py.graph.shapes import channels
from n2d2py.ini.ignored import TRAINING
from n2d2py.ini.schema import Key, Kind
from n2d2py.operators.batchnorm import BatchNorm

__all__ = ["LAYER_TYPE"]

_SCHEMA = ACTIVATED.extended(NB_OUTPUTS, name="BatchNorm", doc="Batch normalisation with stored statistics.")
_CONFIG = CONFIGURATION.extended(
    Key("Epsilon", Kind.FLOAT, 1e-5, "added to the variance; 0 means the default", minimum=0),
    Key("MovingAverageMomentum", Kind.FLOAT, 0.1, "training", ignored=TRAINING),
    name="BatchNorm configuration",
)


def _build(context: LayerContext) -> None:
    values, outputs = context.values, context.values["NbOutputs"]
    tensor = context.joined()
    count = channels(context.graph.shape(tensor))
    if count != outputs:
        raise context.fail(
            "E216", f"NbOutputs={outputs}, but the input has {count} channels", f"set NbOutputs to {count}", "NbOutputs"
        )
    ones, zeros = np.ones(outputs, np.float32), np.zeros(outputs, np.float32)
    params = {
        "scale": context.parameter("scales", (outputs,), ones),
        "bias": context.parameter("biases", (outputs,), zeros),
        "mean": context.parameter("means", (outputs,), zeros),
        "variance": context.parameter("variances", (outputs,), ones),
    }
    context.add(BatchNorm(values["Epsilon"] or 1e-5), [tensor], params, read_activation(values))


LAYER_TYPE = LayerType("BatchNorm", _SCHEMA, _CONFIG, _build)
