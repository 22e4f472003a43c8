"""Insertion of Quantize layers into a pre-quantized network, so that each computed tensor has exactly one.

Quantization-aware training leaves types open: inputs, tensors without QAct, weights without QWeight. They get 8 bits first, from
known ranges or calibration, which makes the network a pre-quantized one.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import FLOAT32, NumType, plain_type
from n2d2py.contracts.functions import Clip
from n2d2py.errors import N2D2Error
from n2d2py.graph import FilePort, Graph, Node
from n2d2py.operators import Activation, Affine, Convert, ElemWise, Pool, Quantize, Resize, Softmax, grid_type, values_source
from n2d2py.operators.concat import Concat, is_real_concat
from n2d2py.quant.types.widths import feeds_output_softmax

Range = tuple[float, float]

_UNKNOWN = NumType(8)


def insert_missing_quantizes(
    graph: Graph, file_types: bool = False, real: Collection[str] = ()
) -> tuple[Graph, dict[str, NumType], list[N2D2Error]]:
    """Return a copy with one Quantize after each computed tensor, the types of its tensors, and the errors found.

    A tensor without Quantize in the file gets one with 32 bits (16 if a consumer accepts no more) over its largest possible
    range. If the file quantizes a tensor to several types, the layer is duplicated; a layer with weights is quantized first
    instead. With `file_types`, int8 and uint8 are converted at inputs and outputs to the type in the file. Layers named in
    `real` compute in floating point.
    """
    graph, types, errors = graph.copy(), {}, []
    for name in graph.inputs:
        if name in graph.float_inputs or graph.kind(name):
            types[name] = _unquantized_type(graph, name)
            continue
        readers = {node.op for node in graph.consumers(name)}
        reader = readers.pop() if len(readers) == 1 else None
        types[name] = reader.type if isinstance(reader, Quantize) else _UNKNOWN
        if file_types and name in graph.user_inputs:
            types[name] = _with_file_sign(types[name], graph.user_input_ports[graph.user_inputs.index(name)])
        if not isinstance(reader, Quantize) and graph.consumers(name):
            first = graph.consumers(name)[0]
            what = f"{first.op.kind} '{first.name}' reads the state '{name}', which the file does not quantize"
            remedy = "quantize the states of the model too, or give the float model and -calib"
            errors.append(N2D2Error("E514", what, where=first.location, remedy=remedy))
    for name, port in zip(graph.user_outputs, graph.user_output_ports, strict=True) if file_types else ():
        _requantize_output(graph, name, port)
    wide = [node.name for node in list(graph.nodes) if _complete_layer(graph, node, types, real)]
    if wide:
        log.notice(
            "%d layers have outputs that the file does not quantize (%s): they are stored as 32-bit or 16-bit integers",
            len(wide),
            ", ".join(wide[:3]) + (", ..." if len(wide) > 3 else ""),
        )
    graph.verify()
    return graph, types, errors


def _unquantized_type(graph: Graph, name: str) -> NumType:
    return plain_type(graph.kind(name)) if graph.kind(name) else FLOAT32


def _with_file_sign(kind: NumType, port: FilePort) -> NumType:
    """Return the 8-bit type for the same real numbers with the signedness of the file."""
    narrow = kind.least is not None or kind.most is not None
    if port.type is None or kind.bits != 8 or port.type.bits != 8 or narrow or kind.signed == port.type.signed:
        return kind
    moved = kind.zero_point + (128 if kind.signed else -128)
    return replace(kind, signed=port.type.signed, full=port.type.signed, zero_point=moved)


def _requantize_output(graph: Graph, name: str, port: FilePort) -> None:
    """Requantize an output to the type of the file if its signedness differs."""
    grid = grid_type(graph, name)
    kind = grid and _with_file_sign(grid, port)
    if grid is None or kind is None or kind == grid:
        return
    inner = graph.fresh_name(f"{name}_{grid.name}")
    writer = graph.required_producer(name)
    graph.tensors[inner] = replace(graph.tensors[name], name=inner)
    for reader in graph.consumers(name):
        reader.inputs = [inner if one == name else one for one in reader.inputs]
    writer.outputs = [inner]
    del graph.tensors[name]
    graph.add(Node(graph.fresh_name(f"{name}_{kind.name}"), Quantize(kind), [inner], [name], location=writer.location))


def _complete_layer(graph: Graph, node: Node, types: dict[str, NumType], real: Collection[str]) -> bool:
    """Choose the types of a layer's outputs, and insert the Quantize after it; True if that is one with 16 or 32 bits."""
    if isinstance(node.op, Quantize):
        types[node.output] = node.op.type
        return False
    if node.name in real or (isinstance(node.op, Convert) and node.op.to_float):
        types.update((name, _unquantized_type(graph, name)) for name in node.outputs)
        return False
    if node.op.moves_values and not _averages(node) and node.activation is None:
        types.update(dict.fromkeys(node.outputs, types[node.inputs[0]]))
        return False
    if is_real_concat(node) and node.activation is None:
        _unify_concat_inputs(graph, node, types)
        return False
    return _ensure_one_quantize(graph, node, types)


def _unify_concat_inputs(graph: Graph, node: Node, types: dict[str, NumType]) -> None:
    kinds = [types[name] for name in node.inputs]
    widest = max(kinds, key=lambda kind: (kind.bits, (kind.qmax - kind.qmin) * kind.scale))
    if widest.least is not None or widest.most is not None:  # its steps may be coarser than those of the others
        full = replace(widest, least=None, most=None)
        if any(kind != widest for kind in kinds) and widest.zero_point == 0:
            widest = full.with_scale(widest.scale * widest.qmax / full.qmax)
    for index, (name, kind) in enumerate(zip(node.inputs, kinds, strict=True)):
        if kind != widest:
            copy = graph.fresh_name(f"{name}_quantized")
            graph.add(Node(copy, Quantize(widest), [name], [copy], location=node.location), at=graph.nodes.index(node))
            node.inputs = [*node.inputs[:index], copy, *node.inputs[index + 1 :]]
            types[copy] = widest
    types[node.output] = widest


def _ensure_one_quantize(graph: Graph, node: Node, types: dict[str, NumType]) -> bool:
    tensor = node.output
    roundings = [reader for reader in graph.consumers(tensor) if isinstance(reader.op, Quantize)]
    others = len(graph.consumers(tensor)) > len(roundings) or tensor in graph.outputs or not roundings
    if len(roundings) == 1 and not others:
        return False
    if "weights" not in node.params:
        for index, reader in enumerate(roundings[0 if others else 1 :]):
            copy = graph.fresh_name(f"{tensor}_{index}")
            layer = Node(copy, node.op, list(node.inputs), [copy], dict(node.params), node.activation, node.location)
            graph.add(layer, at=graph.nodes.index(node) + 1)
            reader.inputs = [copy]
        if not others:
            return False
    types[tensor] = kind = _unquantized_tensor_type(graph, node, types)
    graph.add_after(node, Quantize(kind), f"{tensor}_real", f"{node.name}_quantized")
    return True


def _unquantized_tensor_type(graph: Graph, node: Node, types: dict[str, NumType]) -> NumType:
    """Return the type of a tensor that the file does not quantize.

    Its range covers the worst-case inputs. 32 bits, with a power of two as scale and magnitudes below 2^29, keep each float32
    result to 2^-29 of that range. A Softmax has scale 1/256.
    """
    if isinstance(node.op, Softmax) and not node.op.log:
        return NumType(8, False, scale=1 / 256)
    low, high = real_range(node, [types[name] for name in node.inputs])
    largest = max(-low, high)
    if not largest > 0:
        return NumType(16, full=True)
    if _is_computed_in_float(graph, node.output):
        return NumType(32, full=True, scale=float(2.0 ** (np.floor(np.log2(largest)) + 1 - 29)))
    return NumType(16, full=True, scale=float(np.float32(largest / 32767)))


def _is_computed_in_float(graph: Graph, tensor: str) -> bool:
    """True if no consumer of a tensor uses integer sums or lookup tables."""
    return all(
        isinstance(reader.op, (Quantize, ElemWise))
        or _averages(reader)
        or (isinstance(reader.op, Pool) and reader.op.mode != "Max")
        or ((is_real_concat(reader) or reader.op.moves_values) and _is_computed_in_float(graph, reader.output))
        for reader in graph.consumers(tensor)
    )


def _averages(node: Node) -> bool:
    """True for a linear Resize, which counts as moving values but averages them."""
    return isinstance(node.op, Resize) and node.op.mode != "Nearest"


def real_range(node: Node, inputs: list[NumType]) -> tuple[float, float]:
    """Return an interval that contains all results of a layer; (0, 0) for operators without a rule."""
    low, high = _operator_range(node, inputs, np.array([kind.interval for kind in inputs]))
    if isinstance(node.activation, Clip):
        low, high = (min(max(limit, node.activation.low), node.activation.high) for limit in (low, high))
    return float(low), float(high)


def _operator_range(node: Node, inputs: list[NumType], limits: np.ndarray) -> tuple[float, float]:
    op = node.op
    if "weights" in node.params:
        rows = node.params["weights"].reshape(len(node.params["weights"]), -1).astype(np.float64)
        bias = node.params["bias"].astype(np.float64)
        products = rows[..., None] * limits[0]
        return (products.min(axis=2).sum(axis=1) + bias).min(), (products.max(axis=2).sum(axis=1) + bias).max()
    if isinstance(op, (Pool, Resize)):
        return limits[0, 0], limits[0, 1]
    if isinstance(op, Activation):
        values = op.function(inputs[0].dequantize(np.arange(inputs[0].qmin, inputs[0].qmax + 1)))
        return np.nanmin(values), np.nanmax(values)
    if isinstance(op, ElemWise) and op.operation == "Sum":
        weights, shifts = map(np.array, op.coefficients(len(inputs)))
        terms = np.sort(weights[:, None] * limits, axis=1) + shifts[:, None]
        return terms[:, 0].sum(), terms[:, 1].sum()
    if isinstance(op, ElemWise) and op.operation == "Prod":
        low, high = limits[0]
        for factor in limits[1:]:
            ends = np.outer((low, high), factor)
            low, high = ends.min(), ends.max()
        return low, high
    if isinstance(op, ElemWise) and op.operation in ("Max", "Min"):
        return limits[:, 0].min(), limits[:, 1].max()
    return 0.0, 0.0


# ---- what training leaves open ------------------------------------------------------------------


def unmeasured_inputs(graph: Graph, ranges: Mapping[str, Range | None]) -> list[str]:
    """Return the unquantized inputs of unknown range."""
    return [name for name in graph.inputs if _is_unquantized(graph, name) and ranges.get(name) is None]


def complete_trained(graph: Graph, ranges: Mapping[str, Range | None], measured: Mapping[str, Range]) -> Graph:
    """Return a copy with quantized inputs, over `ranges` or else `measured`, and quantized weights.

    Other unquantized tensors are quantized if their range was `measured`. The rest keeps 16 or 32 bits over the largest
    possible range (`insert_requantize`): averages of pools, outputs, and the input of an output Softmax always do.
    """
    graph = graph.copy()
    for node in graph.nodes:
        if "weights" in node.params and "weight_scales" not in node.params and not isinstance(node.op, Affine):
            node.params = {**node.params, **_quantize_weights(node.params["weights"])}
    known = {name: limits if (limits := ranges.get(name)) is not None else measured.get(name) for name in graph.inputs}
    for name in graph.inputs:
        limits = known[name]
        if _is_unquantized(graph, name) and limits is not None:
            _quantize_over(graph, name, limits, 0)
    for node in list(graph.nodes):
        inside = node.output not in graph.outputs and not feeds_output_softmax(graph, node.output)
        computed = not (isinstance(node.op, (Quantize, Concat, Pool)) or node.op.moves_values)
        if node.output in measured and computed and inside and _is_unquantized(graph, node.output):
            _quantize_over(graph, node.output, measured[node.output], graph.nodes.index(node) + 1)
    graph.verify()
    return graph


def _is_unquantized(graph: Graph, tensor: str) -> bool:
    """True if a layer consumes a tensor that nothing quantizes."""
    if graph.kind(tensor) or grid_type(graph, tensor) is not None or values_source(graph, tensor) != tensor:
        return False
    return any(not isinstance(node.op, Quantize) for node in graph.consumers(tensor))


def _quantize_weights(weights: np.ndarray) -> dict[str, np.ndarray]:
    rows = np.abs(weights.astype(np.float64)).reshape(len(weights), -1).max(axis=1)
    scales = (np.where(rows > 0, rows, 1.0) / 127).astype(np.float32)
    each = scales.astype(np.float64).reshape(-1, *(1,) * (weights.ndim - 1))
    return {"weights": (np.rint(weights / each) * each).astype(np.float32), "weight_scales": scales}


def _quantize_over(graph: Graph, tensor: str, limits: Range, at: int) -> None:
    """Insert a Quantize of a tensor over a range before all its other consumers."""
    low, high = limits
    largest = max(-low, high)
    kind = NumType(8, low < 0)
    kind = kind.with_scale(float(np.float32((largest if largest > 0 else 1.0) / kind.qmax)))
    name = graph.fresh_name(f"{tensor}_quantized")
    readers = [node for node in graph.consumers(tensor) if not isinstance(node.op, Quantize)]
    graph.add(Node(name, Quantize(kind), [tensor], [name]), at=at)
    for node in readers:
        node.inputs = [name if source == tensor else source for source in node.inputs]
