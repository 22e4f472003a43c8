"""Declaration of a model's inputs and outputs, and the layout of its images."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np
import onnx
from onnx import TensorProto

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.contracts.onnx.nodes import Builder
from n2d2py.contracts.onnx.tensors import constant_kind
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.model import OnnxInput, OnnxModel, dims_text
from n2d2py.frontend.onnx.states import propose_constants
from n2d2py.graph import FilePort, Node, Shape
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.reshape import Identity, Transpose

_ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Cast", "Identity", "Clip", "Relu", "QuantizeLinear", "DequantizeLinear")


def nhwc_inputs(graph: onnx.GraphProto) -> set[str]:
    """Return the inputs that reach only NHWC -> NCHW transpositions, through element-wise nodes."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    outputs = {value.name for value in graph.output}
    transposed: set[str] = set()
    # nodes are in topological order, so the readers of a tensor are judged before it
    names = [node.output[0] for node in reversed(graph.node) if node.op_type in _ELEMENTWISE]
    for name in (*names, *(value.name for value in graph.input)):
        nodes = [] if name in outputs else readers.get(name, [])
        if nodes and all(_is_nhwc_to_nchw(node) or not transposed.isdisjoint(node.output) for node in nodes):
            transposed.add(name)
    return transposed.intersection(value.name for value in graph.input)


def _is_nhwc_to_nchw(node: onnx.NodeProto) -> bool:
    return node.op_type == "Transpose" and any(a.name == "perm" and list(a.ints) == [0, 3, 1, 2] for a in node.attribute)


def add_inputs(builder: Builder, input_shapes: Mapping[str, Shape]) -> None:
    """Declare the model's inputs: images, sequences and vectors in their shape, others as arrays.

    `input_shapes` replaces declared shapes (batch 1 included).

    Raises N2D2Error: E305 an unknown size.
    """
    transposed = nhwc_inputs(builder.model.proto.graph)
    states = {name for name, _ in builder.model.states}
    for value in builder.model.inputs:
        if (
            value.kind
            or value.name in states
            or len(value.dims) not in (2, 3, 4)
            or builder.whole
            or (value.dims[0] not in (None, 1) and not builder.is_batched and not input_shapes)
        ):
            is_free = value.dims[:1] == (None,)
            dims = _known_sizes(builder, value, value.shape if is_free and len(value.dims) > 1 else value.dims)
            batch_axis = 0 if len(dims) > 1 and dims[0] == 1 and not builder.whole else None
            builder.graph.input_ports.append(FilePort(dims, batch_axis, is_free, type=builder.model.integer_type(value)))
            builder.arrays[value.name] = builder.graph.add_input(value.name, (1, prod(dims)), value.kind)
            builder.dims[value.name] = dims
            continue
        is_nhwc = value.name in transposed and len(value.shape) == 4
        declared = tuple(value.shape[axis] for axis in (0, 3, 1, 2)) if is_nhwc else value.shape
        shape = tuple(input_shapes.get(value.name) or _known_sizes(builder, value, declared))
        builder.names[value.name] = builder.graph.add_input(value.name, shape)
        of_file = tuple(shape[axis] for axis in (0, 2, 3, 1)) if is_nhwc else shape
        kind, axes = builder.model.integer_type(value), _image_axes(shape, bool(builder.model.places))
        builder.graph.input_ports.append(FilePort(of_file, 0, value.dims[0] is None, is_nhwc, kind, axes))
        if is_nhwc:
            text = "%s: the input '%s' is height, width, channels (%s)"
            log.notice(text, builder.model.path, value.name, dims_text(of_file[1:]))
            name = builder.fresh(f"{value.name}_nhwc")
            builder.graph.add(Node(name, Transpose((0, 2, 3, 1)), [value.name], [name], location=builder.model.place(name)))
            builder.names[value.name] = name


def _image_axes(shape: Shape, is_translated: bool) -> tuple[int, int, int]:
    """Return the axes of channels, height and width of an image input (1, C, H, W); those of a .tflite file end with C."""
    counts = [size in (1, 3) for size in shape[1:]]
    if len(counts) != 3 or counts[0]:
        return 0, 1, 2
    if is_translated:
        return (1, 2, 0) if counts[1] else (0, 1, 2)
    return (2, 0, 1) if counts[2] else (0, 1, 2)


def _known_sizes(builder: Builder, value: OnnxInput, dims: Sequence[int | None]) -> Shape:
    known = tuple(size for size in dims if size is not None)
    if len(known) < len(dims):
        raise open_sizes_error(builder.model, value)
    return known


def open_sizes_error(model: OnnxModel, value: OnnxInput, proposed: Mapping[str, Shape] | None = None) -> N2D2Error:
    """Return the error for an input of unknown size, with the option that sets all sizes; `proposed`: sizes that work."""

    def option(shapes: Mapping[str, Iterable[int | None]]) -> str:
        has_several = len(model.user_inputs) > 1
        return ",".join(f"{name}={dims_text(dims)}" if has_several else dims_text(dims) for name, dims in shapes.items())

    opened = [one for one in model.user_inputs if one.is_open] or [value]
    unknown = {one.name: one.dims[-len(proposed[one.name]) :] if proposed else one.shape[1:] for one in opened}
    constants = propose_constants(model)
    words = f"add -input-shape {option(proposed or unknown)}" + (f" -constants {constants}" if constants else "")
    words += f", or another number for each ? of {option(unknown)}" if proposed else " with a number for each ?"
    what = f"input '{value.name}' has shape {dims_text(value.shape[1:])} with unknown sizes"
    remedy = f"{words}; or fix the sizes when you export the model, in an INI by Size of the stimuli provider"
    return N2D2Error("E305", what, where=model.place(), remedy=remedy)


def set_outputs(builder: Builder) -> None:
    """Declare the model's outputs, a separate tensor for each. Raise E311 for an output without layer, or a duplicate."""
    where = builder.model.place()
    if not builder.model.outputs:
        raise N2D2Error("E311", "the model has no outputs", where=where, remedy="declare the results of the model as outputs")
    for index, name in enumerate(builder.model.outputs):
        if name in builder.model.outputs[:index]:
            remedy = "list it once, or list the output of an Identity of it"
            raise N2D2Error("E311", f"output '{name}' is listed twice", where=where, remedy=remedy)
        builder.graph.output_ports.append(_output_port(builder, name))
        if builder.is_tensor(name):
            tensor = _output_tensor(builder, name)  # may make a new list of outputs
            builder.graph.outputs.append(tensor)
        elif name in builder.constants and builder.constants[name].size and not builder.is_batched:
            builder.graph.outputs.append(_constant_output(builder, name))
        else:
            what = f"output '{name}' {'is a constant' if name in builder.constants else 'is not produced by any node'}"
            raise N2D2Error("E311", what, where=where, remedy="remove this output from the model")
    _separate_outputs(builder)


def _output_port(builder: Builder, name: str) -> FilePort:
    """Return an output in the file's axes, its type without scale; the batch axis has open size, else size 1 and index 0."""
    dims = builder.known_shape(name) if name in builder.constants or builder.is_tensor(name) else ()
    given = next(value for value in builder.model.proto.graph.output if value.name == name).type.tensor_type
    kinds: dict[int, NumType] = {TensorProto.UINT8: NumType(8, False), TensorProto.INT8: NumType(8, full=True)}
    declared, kind = given.shape.dim, kinds.get(given.elem_type)
    opened = [position for position, size in enumerate(declared) if not size.HasField("dim_value")]
    batched = any(port.axis is not None for port in builder.graph.input_ports)
    is_free = any(port.is_free for port in builder.graph.input_ports if port.axis is not None)
    axis = None
    if batched and is_free and len(declared) == len(dims) and len(opened) == 1 and dims[opened[0]] == 1:
        axis = opened[0]
    elif batched and dims[:1] == (1,):
        axis = 0
    return FilePort(tuple(dims), axis, is_free, type=kind)


def _separate_outputs(builder: Builder) -> None:
    """Name a tensor that the file does not name as its output; insert an Identity before an output that is also an input of
    the network or another output."""
    graph, names = builder.graph, builder.model.outputs
    shared = list(graph.outputs)
    for index, name in enumerate(names):
        tensor = shared[index]
        named_so = tensor in names and shared[names.index(tensor)] == tensor
        owner = names.index(tensor) if named_so else shared.index(tensor)
        if index == owner and tensor not in graph.inputs:
            if not named_so and name not in graph.tensors:
                _rename_tensor(builder, tensor, name)
                graph.aliases[tensor] = name
                shared = [name if each == tensor else each for each in shared]
            continue
        graph.aliases.pop(name, None)
        copy = name if name not in graph.tensors else builder.fresh(f"{name}_output")
        graph.outputs[index] = copy
        graph.add(Node(copy, Identity(), [tensor], [copy], location=builder.model.place(name)))


def _constant_output(builder: Builder, name: str) -> str:
    """Add a layer that outputs a constant, independent of its input."""
    stored, first = builder.constants[name], builder.array(builder.model.inputs[0].name)
    kind = constant_kind(stored)
    op = ArrayMap("Right", (stored.size,), ((1,), (stored.size,)), (0, -1), kind)
    one = builder.fresh(f"{name}_first")
    builder.graph.add(Node(one, IndexSelect(((0,),)), [first], [one], location=builder.model.place(name)))
    constant = stored.astype(kind or np.float32)
    builder.graph.add(Node(name, op, [one], [name], {"operand1": constant}, location=builder.model.place(name)))
    return name


def _output_tensor(builder: Builder, name: str) -> str:
    """Return the tensor of an output: an image or a sequence in its ONNX shape; others, and states, as row-major elements."""
    if any(name == output for _, output in builder.model.states):
        return builder.array(name)
    dims = builder.dims_of(name)
    if name not in builder.names and (len(dims) not in (3, 4) or dims[0] != 1 or builder.kind_of(name)):
        return builder.arrays[name]
    result, array = builder.plane(name), builder.arrays.get(name)
    shaped = next((node for node in builder.graph.nodes if node.outputs == [result]), None)
    if array is None or shaped is None or shaped.inputs != [array] or shaped.op.kind != "Reshape":
        return result
    # an image made of an array: the layer that gives it has the name of the output, the array another one
    if name in builder.graph.tensors:
        _rename_tensor(builder, name, builder.fresh(f"{name}_array"))
    _rename_tensor(builder, result, name)
    return name


def _rename_tensor(builder: Builder, old: str, new: str) -> None:
    """Rename a tensor, now the last, and its layer."""
    graph = builder.graph
    graph.rename_tensor(old, new)
    graph.tensors[new] = graph.tensors.pop(new)
    for node in graph.nodes:
        if node.outputs == [new]:
            node.name, node.source = new, [new]
    graph.aliases.pop(new, None)
    for table in (builder.arrays, builder.names):
        table.update({key: new for key, tensor in table.items() if tensor == old})
