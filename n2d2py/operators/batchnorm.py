"""Batch normalization with stored statistics."""

from collections.abc import Mapping

import numpy as np

from n2d2py.contracts.facets import OnnxWriter, Op, onnx_emitter, register
from n2d2py.contracts.ini import ACTIVATED, NB_OUTPUTS, LayerContext, ini, read_activation
from n2d2py.graph import Node
from n2d2py.ini import TRAINING, Key, Kind
from n2d2py.operators.arrays.values import Arrays, Unsupported, onnx
from n2d2py.operators.pointwise import emit_gain_and_shift


@register
class BatchNorm(Op):
    """y = scale * (x - mean) / sqrt(variance + epsilon) + bias, per channel.

    Parameters: "scale", "bias", "mean", "variance", each (C).
    """

    epsilon: float = 1e-5
    macs_per_output = 1

    def factors(self, params: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return (gain, shift) with y = gain * x + shift, float64 (C)."""
        p = {role: np.asarray(array, np.float64) for role, array in params.items()}
        gain = p["scale"] / np.sqrt(p["variance"] + self.epsilon)
        return gain, p["bias"] - p["mean"] * gain

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        gain, shift = self.factors(node.params)
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return [x * gain.astype(x.dtype).reshape(shape) + shift.astype(x.dtype).reshape(shape)]


_ROLES = ("scale", "bias", "mean", "variance")


@onnx("BatchNormalization")
def _from_onnx(a: Arrays) -> None:
    node, epsilon = a.node, float(a.node.attribute("epsilon", 1e-5))
    if node.attribute("training_mode", 0):
        raise Unsupported("it is in training mode", "export the model for inference")
    if node.is_constant(4) and not (node.constant(4, "variance") + epsilon > 0).all():
        raise Unsupported("a variance plus epsilon is not positive", "train or export the model again")
    constants = [node.constant(index, role) for index, role in enumerate(_ROLES, 1) if node.is_constant(index)]
    by_channel = bool(node.attribute("spatial", 1))
    x = a.image() if by_channel and len(constants) == len(_ROLES) else a.value(0)
    if x.image is not None and all(array.size == x.dims[1] for array in constants):
        params = {role: array.reshape(-1) for role, array in zip(_ROLES, constants, strict=True)}
        a.builder.layer(node, BatchNorm(epsilon), [x.image], params)
        return
    x = a.value(0)
    shape = x.dims[1:] if not by_channel else (x.dims[1], *(1,) * (len(x.dims) - 2)) if len(x.dims) > 1 else (1,)
    scale, shift, mean, variance = (a.reshape(a.value(index), shape) for index in range(1, 5))
    deviation = a.map("Sqrt", a.map("Add", variance, a.const(epsilon, variance)))
    normed = a.map("Div", a.map("Sub", x, mean), deviation)
    a.bind(a.map("Add", a.map("Mul", normed, scale), shift))


@ini(
    "BatchNorm",
    NB_OUTPUTS,
    base=ACTIVATED,
    config=(
        Key("Epsilon", Kind.FLOAT, 1e-5, "Value added to the variance. 0: default.", minimum=0),
        Key("MovingAverageMomentum", Kind.FLOAT, 0.1, "training", ignored=TRAINING),
    ),
    doc="Batch normalization with stored statistics.",
)
def _from_ini(context: LayerContext) -> None:
    values, outputs = context.values, context.values["NbOutputs"]
    tensor = context.concat_inputs()
    context.require_channels(tensor)
    ones, zeros = np.ones(outputs, np.float32), np.zeros(outputs, np.float32)
    stored = ("scales", ones), ("biases", zeros), ("means", zeros), ("variances", ones)
    params = {role: context.parameter(name, (outputs,), value) for role, (name, value) in zip(_ROLES, stored, strict=True)}
    context.add(BatchNorm(values["Epsilon"] or 1e-5), [tensor], params, read_activation(values))


@onnx_emitter("BatchNorm")
def _emit(writer: OnnxWriter, node: Node[BatchNorm], output: str) -> None:
    gain, shift = node.op.factors(node.params)
    emit_gain_and_shift(writer, node, gain, shift, output)
