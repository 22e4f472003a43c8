"""A Graph as a PyTorch module: one layer for each node, with the quantizers of its recipe."""

# PyTorch is an extra: pyright runs without it too, and then takes n2d2py/torch.py for it
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from n2d2py.arithmetic.trained import lsq_first_steps
from n2d2py.contracts.functions import Clip, FunctionRow, LeakyRectifier, Logistic, Softplus, Swish, Tanh
from n2d2py.contracts.ini import GRIDS, WeightStore, refuse_binary_lsq, require_positive
from n2d2py.contracts.ini.recipes import LayerRecipe
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.graph import Graph, Node
from n2d2py.ini.schema import Values
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv, Deconv, Fc
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.normalize.op import SMALLEST_SQUARE, Normalize
from n2d2py.operators.padding import Padding
from n2d2py.operators.pointwise import Activation, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import Dropout, Identity, Reshape, Transpose
from n2d2py.operators.softmax import Softmax
from n2d2py.training.quantizers import MIN_POSITIVE, LsqActivation, LsqWeights, SatActivation, SatWeights, TrainableQuantizer

Function = Callable[[Tensor], Tensor]
Layer = Callable[..., Tensor]


class GraphModule(nn.Module):
    """Layers of a graph. `forward` takes one input (N, C, H, W) and returns the requested tensors by name.

    Attributes:
        functions: by layer, what computes it: the layer, its activation, its quantizer.
        fixed: layers that are not trained.
        barriers: layers whose inputs get no gradients (BackPropagate=0).
    """

    def __init__(self, graph: Graph, functions: Mapping[str, Sequence[Layer]], recipes: Mapping[str, LayerRecipe]):
        super().__init__()
        self.graph, self.functions = graph, dict(functions)
        self.parts = nn.ModuleList(each for one in functions.values() for each in one if isinstance(each, nn.Module))
        names = [name for name, recipe in recipes.items() if not recipe.learns and name in functions]
        self.fixed = [layer for name in names if isinstance(layer := functions[name][0], nn.Module)]
        self.barriers = {name for name, recipe in recipes.items() if not recipe.back_propagates}
        for layer in self.fixed:
            layer.requires_grad_(False)

    def forward(
        self, x: Tensor, wanted: Iterable[str] | None = None, right: Mapping[str, Tensor] | None = None
    ) -> dict[str, Tensor]:
        """Return tensors by name: `wanted`, by default the graph outputs. With QAct, they are quantized.

        `right`: correct outputs (N,) by the tensor of each layer that adds a margin; without them no margin is added.
        """
        names = list(self.graph.outputs if wanted is None else wanted)
        values = {self.graph.inputs[0]: x}
        for node in self.graph.nodes:
            inputs = [values[name] for name in node.inputs]
            if right and node.output in right:
                inputs.append(right[node.output])
            inputs = [each.detach() for each in inputs] if node.name in self.barriers else inputs
            layer, *after = self.functions[node.name]
            result = layer(*inputs)
            for function in after:
                result = function(result)
            values[node.output] = result
        return {name: values[name] for name in names}

    def train(self, mode: bool = True) -> GraphModule:
        """Set the training mode as nn.Module does, except that the statistics of fixed layers do not change."""
        super().train(mode)
        for layer in self.fixed:
            layer.train(False)
        return self

    def _tensors(self) -> dict[str, dict[str, Tensor]]:
        """Return the tensors to store for each layer, under N2D2's file names."""
        tensors: dict[str, dict[str, Tensor]] = {}
        for name, functions in self.functions.items():
            for each in functions:
                if isinstance(each, (_Weighted, _BatchNorm, TrainableQuantizer)):
                    tensors.setdefault(name, {}).update(each.tensors())
        return tensors

    def arrays(self) -> dict[str, dict[str, np.ndarray]]:
        """Return the arrays to store for each layer, under N2D2's file names."""
        return {
            layer: {name: each.detach().cpu().numpy().astype(np.float32) for name, each in tensors.items()}
            for layer, tensors in self._tensors().items()
        }

    @torch.no_grad()
    def clamp_parameters(self) -> None:
        """Keep steps and clipping values positive. Called after each optimizer step."""
        for module in self.modules():
            if isinstance(module, TrainableQuantizer):
                for learned in module.parameters():
                    learned.clamp_(min=MIN_POSITIVE)

    def parameters_by_role(self) -> Iterator[tuple[str, str, nn.Parameter]]:
        """Yield (layer, role, parameter) of all that learns, with the roles of `LayerRecipe.solvers`."""
        for layer, tensors in self._tensors().items():
            for name, tensor in tensors.items():
                if isinstance(tensor, nn.Parameter) and tensor.requires_grad:
                    yield layer, _ROLES.get(name, name.partition("_")[0]), tensor


_ROLES = {"biases": "bias", "scales": "scale"}
"""Roles of parameters by their name in N2D2's files; others begin with their role: QAct_SAT_Alpha."""


def build_module(graph: Graph, recipes: Mapping[str, LayerRecipe], store: WeightStore) -> GraphModule:
    """Return the module of a graph with real weights; `store` has the initial values of the quantizers.

    Raises E431 listing all layers that cannot be trained; E425 for a stored step or alpha that is not positive.
    """
    errors: list[N2D2Error] = []
    functions: dict[str, list[Layer]] = {}
    for node in graph.nodes:
        recipe = recipes.get(node.name)
        try:
            activation = [] if node.activation is None else [_differentiable(node, node.activation)]
            functions[node.name] = [_layer(node, recipe, store), *activation]
            if recipe is not None and "QAct" in recipe.values and recipe.values["QAct"]:
                functions[node.name].append(_activation_quantizer(node, recipe, store))
        except N2D2Error as error:
            errors.append(error)
    ErrorList.raise_if(errors)
    return GraphModule(graph, functions, recipes)


def _cannot_train_error(node: Node, what: str) -> N2D2Error:
    remedy = "train elsewhere, and give the weights with -w or an ONNX file"
    return N2D2Error("E431", f"layer '{node.name}' cannot be trained: {what}", where=node.location, remedy=remedy)


def _differentiable(node: Node, row: FunctionRow) -> Function:
    if type(row) not in _ACTIVATIONS:
        raise _cannot_train_error(node, f"its activation {row.kind} has no gradient here")
    return _ACTIVATIONS[type(row)](row)


_ACTIVATIONS: dict[type[FunctionRow], Callable[[Any], Function]] = {
    Clip: lambda row: partial(torch.clamp, min=row.low, max=row.high),
    LeakyRectifier: lambda row: lambda x: functional.leaky_relu(x, row.slope).clamp(max=row.high),
    Tanh: lambda row: lambda x: torch.tanh(row.alpha * x),
    Logistic: lambda _: torch.sigmoid,
    Softplus: lambda _: functional.softplus,
    Swish: lambda _: functional.silu,
}


class _Margin(nn.Module):
    """TargetBias: adds `bias` to the correct output if that is above -bias."""

    def __init__(self, bias: float):
        super().__init__()
        self.bias = bias

    def forward(self, x: Tensor, right: Tensor | None = None) -> Tensor:
        if right is None:
            return x
        chosen = functional.one_hot(right, x.shape[1]).reshape(*x.shape[:2], *(1,) * (x.dim() - 2))
        return x + self.bias * (chosen * (x > -self.bias))


class _Weighted(nn.Module):
    """A convolution, a transposed convolution or a fully connected layer.

    With a mapping `connected` (O, C), the parameter has the weights (count, KH, KW) of the connected inputs; the others are 0.
    With Normalize=1, a fully connected layer normalizes its stored weights before each use, outside the gradient.
    """

    connected: Tensor | None

    def __init__(self, node: Node, connected: np.ndarray | None, quantizer: TrainableQuantizer | None, is_normalized: bool):
        super().__init__()
        self.op, self.quantizer, self.is_normalized = node.op, quantizer, is_normalized
        self.weight = nn.Parameter(_tensor(_stored_weights(node, connected)))
        self.register_buffer("connected", None if connected is None else torch.from_numpy(connected), persistent=False)
        self.bias = None if node.unbiased else nn.Parameter(_tensor(node.params["bias"]))

    def forward(self, x: Tensor) -> Tensor:
        if self.is_normalized:
            with torch.no_grad():
                self.weight.div_(torch.sqrt(self.weight.square().sum(1, keepdim=True) + SMALLEST_SQUARE))
        weight = self.weight if self.quantizer is None else self.quantizer(self.weight)
        if self.connected is not None:
            dense = weight.new_zeros((*self.connected.shape, *weight.shape[1:]))
            weight = dense.masked_scatter(self.connected[:, :, None, None], weight)
        if isinstance(self.op, Deconv):
            return _transposed_convolution(self.op, x, weight, self.bias)
        if isinstance(self.op, Conv):
            top, left, bottom, right = self.op.pads
            if any(self.op.pads):
                x = functional.pad(x, (left, right, top, bottom))
            return functional.conv2d(x, weight, self.bias, self.op.stride, 0, self.op.dilation, self.op.groups)
        return functional.linear(x.flatten(1), weight, self.bias)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to store, under N2D2's file names."""
        biases = {} if self.bias is None else {"biases": self.bias}
        learned = {} if self.quantizer is None else self.quantizer.tensors()
        return {"weights": self.weight, **biases, **learned}


def _stored_weights(node: Node, connected: np.ndarray | None) -> np.ndarray:
    weights = node.params["weights"]
    return weights if connected is None else weights[connected]


def _transposed_convolution(op: Deconv, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the transposed convolution with weights (O, C / groups, KH, KW), output channels first."""
    outputs, per_group, *kernel = weight.shape
    inputs_first = weight.reshape(op.groups, outputs // op.groups, per_group, *kernel).transpose(1, 2).flatten(0, 1)
    result = functional.conv_transpose2d(x, inputs_first, None, op.stride, 0, 0, op.groups, op.dilation)
    top, left, bottom, right = op.pads
    result = functional.pad(result, (-left, -right, -top, -bottom))
    return result if bias is None else result + bias[:, None, None]


class _BatchNorm(nn.Module):
    """Batch normalization. Its statistics are moving averages; `momentum` is the weight of the new batch."""

    mean: Tensor
    variance: Tensor

    def __init__(self, node: Node[BatchNorm], momentum: float):
        super().__init__()
        self.epsilon, self.momentum = node.op.epsilon, momentum
        self.scale, self.bias = (nn.Parameter(_tensor(node.params[role])) for role in ("scale", "bias"))
        for role in ("mean", "variance"):
            self.register_buffer(role, _tensor(node.params[role]))

    def forward(self, x: Tensor) -> Tensor:
        running, learned = (self.mean, self.variance), (self.scale, self.bias)
        return functional.batch_norm(x, *running, *learned, self.training, self.momentum, self.epsilon)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to store, under N2D2's file names."""
        return {"scales": self.scale, "biases": self.bias, "means": self.mean, "variances": self.variance}


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(array, np.float32))


def _layer(node: Node, recipe: LayerRecipe | None, store: WeightStore) -> Layer:
    op = node.op
    if isinstance(op, (Conv, Deconv, Fc)):
        connected = None if recipe is None else recipe.connected
        quantizer = None if recipe is None else _weight_quantizer(node, recipe, store)
        is_normalized = recipe is not None and "Normalize" in recipe.values and recipe.values["Normalize"]
        return _Weighted(node, connected, quantizer, is_normalized)
    if isinstance(op, BatchNorm):
        momentum = recipe.values["MovingAverageMomentum"] if recipe is not None else 0.1
        return _BatchNorm(node, momentum)
    if recipe is not None and recipe.adds_margin:
        return _Margin(recipe.values["Bias"])
    if isinstance(op, Affine) or node.params:
        raise _cannot_train_error(node, f"{op.kind} learns nothing here")
    return _forward_function(node)


_FUNCTIONS: dict[type, Callable[[Any], Callable[..., Tensor] | None]] = {
    Dropout: lambda op: nn.Dropout(op.ratio),
    Identity: lambda op: nn.Identity(),
    Pool: lambda op: partial(_pool, op),
    Concat: lambda op: None if op.slots or op.rows > 1 else lambda *inputs: torch.cat(inputs, op.axis),
    Reshape: lambda op: lambda x: x.reshape(len(x), *op.dims),
    Transpose: lambda op: lambda x: x.permute(op.perm),
    Padding: lambda op: lambda x: functional.pad(x, (op.pads[1], op.pads[3], op.pads[0], op.pads[2])),
    Softmax: lambda op: partial(_softmax, op),
    Normalize: lambda op: None if op.part else partial(_normalize, op),
    ElemWise: lambda op: partial(_elementwise, op) if op.operation in ("Sum", "Prod", "Max") else None,
}
"""Function of an operator without weights, by its type; None for a form that has no gradient here."""


def _forward_function(node: Node) -> Callable[..., Tensor]:
    if isinstance(node.op, Activation):
        return _differentiable(node, node.op.function)
    function = _FUNCTIONS[type(node.op)](node.op) if type(node.op) in _FUNCTIONS else None
    if function is None:
        raise _cannot_train_error(node, f"{node.op.kind} has no gradient here")
    return function


def _softmax(op: Softmax, x: Tensor) -> Tensor:
    stored = x.movedim(1, -1)
    result = (torch.log_softmax if op.log else torch.softmax)(stored.reshape(len(x), *op.rows(tuple(x.shape))), dim=2)
    return result.reshape(stored.shape).movedim(-1, 1)


def _normalize(op: Normalize, x: Tensor) -> Tensor:
    stored = x.movedim(1, -1)
    rows = stored.reshape(len(x), -1, op.size)
    away = rows - rows.mean(2, keepdim=True) if op.centred else rows
    size = away.abs() if op.power == 1 else away.square()
    size = size.sum(2, keepdim=True) / (1 if op.summed else op.size)
    divisor = (size if op.power == 1 else torch.sqrt(size + op.epsilon)) + op.added
    return (away / divisor).reshape(stored.shape).movedim(-1, 1)


def _pool(op: Pool, x: Tensor) -> Tensor:
    top, left, bottom, right = op.pads
    if op.mode == "Max":
        if any(op.pads):
            x = functional.pad(x, (left, right, top, bottom), value=float("-inf"))
        return functional.max_pool2d(x, op.kernel, op.stride)
    counts = torch.from_numpy(op.window_counts(x.shape[2:]).astype(np.float32)).to(x.device)
    if any(op.pads):
        x = functional.pad(x, (left, right, top, bottom))
    return functional.avg_pool2d(x, op.kernel, op.stride, divisor_override=1) / counts


def _elementwise(op: ElemWise, *inputs: Tensor) -> Tensor:
    weights, shifts = op.coefficients(len(inputs))
    if op.operation == "Sum":
        terms = (weight * x + shift for weight, shift, x in zip(weights, shifts, inputs, strict=True))
        return reduce(torch.add, terms)
    return reduce(torch.mul if op.operation == "Prod" else torch.maximum, inputs)


def _weight_quantizer(node: Node, recipe: LayerRecipe, store: WeightStore) -> TrainableQuantizer | None:
    values, weights = recipe.values, _stored_weights(node, recipe.connected)
    kind = values["QWeight"]
    if not kind:
        return None
    steps = values["QWeight.Range"]
    if kind == "SAT":
        outputs = len(node.params["weights"]) if values["QWeight.ApplyScaling"] else 0
        grid = GRIDS[values["QWeight.QuantMode"]]
        return SatWeights(steps, grid, values["QWeight.ApplyQuantization"], outputs)
    refuse_binary_lsq(values)
    if values["QWeight.PerChannel"] and recipe.connected is not None:
        raise _cannot_train_error(node, "QWeight.PerChannel=1 is not supported with an irregular Mapping")
    count = len(weights) if values["QWeight.PerChannel"] else 1
    wanted = values["QWeight.SetOptInitStepSize"] and values["QWeight.StepOptInitStepSize"]
    initial = lsq_first_steps(weights, count, steps) if wanted else np.full(count, values["QWeight.StepSize"])
    return LsqWeights(steps, _tensor(_load_step(store, node, "QWeight_LSQ_StepSize", values, initial)))


def _activation_quantizer(node: Node, recipe: LayerRecipe, store: WeightStore) -> TrainableQuantizer:
    values = recipe.values
    steps = values["QAct.Range"]
    if values["QAct"] == "SAT":
        return SatActivation(steps, float(_load_step(store, node, "QAct_SAT_Alpha", values, [values["QAct.Alpha"]])[0]))
    role = "QAct_LSQ_StepSize"
    first = values["QAct.SetOptInitStepSize"] and values["QAct.StepOptInitStepSize"] and not store.has(node.name, role)
    return LsqActivation(steps, float(_load_step(store, node, role, values, [values["QAct.StepSize"]])[0]), first)


def _load_step(store: WeightStore, node: Node, role: str, values: Values, initial: Any) -> np.ndarray:
    """Return the stored step or alpha, else the initial one: weights trained without quantizers have none."""
    value = np.asarray(initial, np.float32)
    if store.has(node.name, role):
        value = store.load(node.name, role, value, node.location)
    return require_positive(value, node.name, role, values)
