"""Layers that the accelerator does not have as extension operations of the CPU, where the parameters ask for it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from n2d2py.contracts.functions import FunctionRow
from n2d2py.contracts.operator import operator_kinds
from n2d2py.graph import QuantNode
from n2d2py.graph.forms import Moved, Rescaled, Table, Weighted
from n2d2py_nvdla.export.hardware import EmuLayer, Region
from n2d2py_nvdla.export.lowering import HardwareTensor, Lowering, flat
from n2d2py_nvdla.extension import Extension, Port

_WITHOUT_CONSTANTS = (Moved, Rescaled, Table)
"""Forms of layers that have no constants in floating point."""


class _Unfit(Exception):
    """Why a layer has no description."""


def fall_back(state: Lowering, node: QuantNode) -> str | None:
    """Compile a layer to an extension operation; the reason where that cannot be done."""
    try:
        extension = _extension(state, node)
    except _Unfit as reason:
        return str(reason)
    sources = tuple(state.values[name].region for name in node.inputs)
    results = tuple(_result(state, name) for name in node.outputs)
    scales = [port.scale for port in extension.outputs]
    state.out.emulated.append(
        EmuLayer(node.name, tuple(node.outputs), sources, results, 1.0, scales[0], len(state.out.layers), extension)
    )
    for name, region, scale in zip(node.outputs, results, scales, strict=True):
        state.values[name] = HardwareTensor(region, scale)
    return None


def _result(state: Lowering, tensor: str) -> Region:
    if tensor in state.slots:
        return state.slots[tensor]
    kind = "output" if tensor in state.graph.outputs else "activation"
    return Region.whole(state.buffer(tensor, kind, flat(state.graph.shape(tensor))))


def _extension(state: Lowering, node: QuantNode) -> Extension:
    graph = state.graph
    if operator_kinds().get(node.op.kind) is not type(node.op):
        raise _Unfit("the operator is a plug-in's")
    if any(graph.type(name).plain for name in (*node.inputs, *node.outputs)):
        raise _Unfit("it works on integers or truth values, not on numbers of the network")
    inputs = tuple(Port(tuple(graph.shape(name)), state.values[name].scale) for name in node.inputs)
    return Extension(
        node.name,
        node.op.kind,
        _fields(node.op),
        None if node.activation is None else _json(node.activation),
        inputs,
        tuple(_port(state, node, name) for name in node.outputs),
        _constants(state, node),
    )


def _port(state: Lowering, node: QuantNode, tensor: str) -> Port:
    shape, kind = tuple(state.graph.shape(tensor)), state.graph.type(tensor)
    if not state.integer:
        return Port(shape)
    if kind.is_float and tensor not in state.scales:
        raise _Unfit("no layer after it gives the scale of its int8 output")
    scale = state.scale_of(tensor)
    low, high = (
        (-127, 127)
        if kind.is_float or node.clamp is None
        else (int(np.clip(np.rint(edge * kind.scale / scale), -127, 127)) for edge in node.clamp)
    )
    return Port(shape, scale, low, high)


def _constants(state: Lowering, node: QuantNode) -> dict[str, np.ndarray]:
    """Return the constants of the floating-point form."""
    real = not state.integer or any(state.graph.type(name).is_float for name in node.outputs)
    if real:
        return {role: array.astype(np.float32) if array.dtype.kind == "f" else array for role, array in node.params.items()}
    if isinstance(node.form, _WITHOUT_CONSTANTS):
        return {}
    if not isinstance(node.form, Weighted):
        raise _Unfit("its constants have no real values any more")
    unit = np.asarray(node.rescaling.effective(), np.float64) * state.graph.type(node.output).scale
    weights, bias = (array.astype(np.float64) for array in (node.form.weights, node.form.bias))
    by_output = unit.reshape(-1, *[1] * (weights.ndim - 1)) / state.graph.type(node.inputs[0]).scale
    return {"weights": (weights * by_output).astype(np.float32), "bias": (bias * unit.reshape(-1)).astype(np.float32)}


def _fields(value: Any) -> dict[str, Any]:
    return {one.name: _json(getattr(value, one.name)) for one in dataclasses.fields(value) if one.init}


def _json(value: Any) -> Any:
    """Return an attribute as plain values."""
    if isinstance(value, FunctionRow):
        return {"function": value.kind, **_fields(value)}
    if isinstance(value, (list, tuple)):
        return [_json(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    raise _Unfit(f"it has an attribute of type {type(value).__name__}")
