"""Sizes of inputs that an ONNX file leaves open, from -input-shape or from given arrays. A separate module because it needs
onnx."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod

import numpy as np

from n2d2py import log
from n2d2py.data.database.arrays import read_arrays
from n2d2py.data.decode import open_npy
from n2d2py.data.input_data import InputData, open_data
from n2d2py.data.multi_input import array_files
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.inputs_outputs import nhwc_inputs, open_sizes_error
from n2d2py.frontend.onnx.model import OnnxModel
from n2d2py.frontend.onnx.states import fix_inputs, propose_constants
from n2d2py.graph.shapes import Shape, dims_text, elements
from n2d2py.stages.options import LoadOptions


def size_inputs(model: OnnxModel, options: LoadOptions) -> None:
    """Set the open input sizes of an ONNX file from -input-shape, or from given arrays. Raise E003 for a text that is not a
    shape, E305 a shape that the file does not allow, an unknown input, open sizes."""
    for name, sizes in _shapes(options.input_shape, [one.name for one in model.user_inputs]).items():
        model.set_sizes(name, sizes)
    _size_by_data(model, options)
    opened = next((one for one in model.user_inputs if one.is_open), None)
    if opened is not None:
        raise open_sizes_error(model, opened, _find_sizes(model, options))


_SIZES = (64, 224, 576, 1024, 16000)  # sizes that are tried for open axes
_PAIRS = ((32, 320), (48, 320), (64, 32))
"""Further sizes, of the other axes and of the last one: lines of text, an image with a short input."""
_WIDTHS = 8  # number of sizes of weights that are tried for the last axis
_SECONDS, _BYTES = 10, 64 << 20  # limits of the trials: CPU time, and size of the model


def _find_sizes(model: OnnxModel, options: LoadOptions) -> dict[str, Shape]:
    """Return sizes of the open inputs with which the model is imported; none if they are not found soon. All open axes get one
    size, or the last one another one, such as that of a weight. A first axis that layers mix is time: it gets a size too."""
    opened = [one for one in model.user_inputs if one.is_open]
    has_time = all(len(one.dims) == 2 and one.dims[0] is None and not one.kind for one in opened)
    start, first, lone = time.process_time(), _SIZES[0], _batch_axes(model)
    pairs = [*((size, size) for size in _SIZES), *_PAIRS, *((first, width) for width in _widths(model))]
    for others, last in pairs if model.proto.ByteSize() <= _BYTES else ():
        sizes = {one.name: _filled(one.dims[len(one.dims) > 1 :], others, last) for one in opened} | dict.fromkeys(lone, (1,))
        mixes = _mixes_first_axis(model, options, sizes)
        if has_time and mixes is not False:
            by_time = {name: (first, *dims) for name, dims in sizes.items()}
            if _mixes_first_axis(model, options, by_time):
                return by_time
        if mixes is not None:
            return sizes
        if time.process_time() > start + _SECONDS:
            break
    return {}


def _batch_axes(model: OnnxModel) -> list[str]:
    """Return the inputs whose only axis has the name of the first axis of another one, such as lengths of sequences."""
    axes = {value.name: [size.dim_param for size in value.type.tensor_type.shape.dim] for value in model.proto.graph.input}
    batches = {names[0] for names in axes.values() if len(names) > 1 and names[0]}
    return [one.name for one in model.user_inputs if one.is_open and len(one.dims) == 1 and axes[one.name][0] in batches]


def _filled(dims: Sequence[int | None], others: int, last: int) -> Shape:
    return tuple(each or (last if index == len(dims) else others) for index, each in enumerate(dims, 1))


def _widths(model: OnnxModel) -> list[int]:
    """Return the sizes of matrices, in the order of the nodes that multiply with them."""
    nodes = [node for node in model.proto.graph.node if node.op_type in ("MatMul", "Gemm", "RNN", "GRU", "LSTM")]
    shapes = [model.constants[node.input[1]].shape for node in nodes if node.input[1] in model.constants]
    return list(dict.fromkeys(size for shape in shapes for size in shape[-2:]))[:_WIDTHS]


def _mixes_first_axis(model: OnnxModel, options: LoadOptions, sizes: Mapping[str, Shape]) -> bool | None:
    """Import a copy of the model with these sizes; return whether its first axis is a part of the sample, None if it fails."""
    proto = type(model.proto).FromString(model.proto.SerializeToString())
    trial = replace(model, proto=proto, inputs=list(model.inputs), constants=dict(model.constants))
    with log.muted(), suppress(N2D2Error):
        for name, dims in sizes.items():
            trial.set_sizes(name, dims)
        fix_inputs(trial, options.constants or propose_constants(trial))
        graph = import_onnx(trial)
        if trial.batch in (None, 1):
            return model.batch is None and trial.batch == 1
        return elements(graph.shape(graph.inputs[0])) == prod(next(iter(sizes.values())))
    return None


def _size_by_data(model: OnnxModel, options: LoadOptions) -> None:
    opened = [one.name for one in model.user_inputs if one.is_open]
    if not opened or options.data is None:
        return
    data = open_data(options.data)
    if len(model.user_inputs) == 1 and not data.is_folder:
        sizes = read_arrays(data)[0].shape[1:]
        channels_last = opened[0] in nhwc_inputs(model.proto.graph)
        if len(sizes) == 3 and options.layout is not None and (options.layout == "nhwc") != channels_last:
            sizes = (*sizes[1:], sizes[0]) if channels_last else (sizes[2], *sizes[:2])
        _take(model, opened[0], sizes, data.name)
    elif len(model.user_inputs) > 1:
        arrays = _arrays(data, opened)
        for name in opened:
            if name in arrays and arrays[name].ndim > 1:
                _take(model, name, arrays[name].shape[1:], data.name)


def _arrays(data: InputData, names: list[str]) -> dict[str, np.ndarray]:
    """Return the given arrays of a network with several inputs, with an axis of samples in front, which files of single samples
    lack."""
    if not data.is_folder:
        return data.read()
    return {name: open_npy(path) for name, path in array_files(data.path, names).items() if path.is_file()}


def _take(model: OnnxModel, name: str, sizes: tuple[int, ...], source: str) -> None:
    model.set_sizes(name, sizes)
    log.notice("the input '%s' is %s, as %s", name, dims_text(sizes), source)


def _shapes(given: str | int | Sequence[int] | None, names: list[str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes by input name; one without name belongs to the only input."""
    if given is None:
        return {}
    sizes = [given] if isinstance(given, (int, str)) else given
    text, shapes = "x".join(map(str, sizes)), {}
    for part in text.split(","):
        name, equals, sizes = part.rpartition("=" if "=" in part else ":")  # names of tensors may have colons
        try:
            shape = tuple(int(size) for size in sizes.lower().split("x"))
        except ValueError:
            shape = ()
        if not shape or min(shape) < 1 or (not equals and len(names) > 1):
            what = f"-input-shape {text} contains no shape for '{name or names[0]}'"
            raise N2D2Error("E003", what, remedy="give sizes such as 3x224x224, or NAME=3x224x224 for several inputs")
        shapes[name.strip() if equals else names[0]] = shape
    return shapes
