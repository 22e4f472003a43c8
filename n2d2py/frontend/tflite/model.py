"""Loading of a .tflite file for the ONNX import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.frontend.onnx.model import ImportOptions, OnnxModel, load_onnx
from n2d2py.frontend.tflite.control_flow import inline_graphs
from n2d2py.frontend.tflite.dilations import mark_dilations
from n2d2py.frontend.tflite.file import TfliteFile, damaged_error, read_tflite
from n2d2py.frontend.tflite.flatbuffer import DamagedFile
from n2d2py.frontend.tflite.translation import Translation


def load_tflite(path: str | Path, options: ImportOptions = ImportOptions()) -> OnnxModel:
    """Return the model of a .tflite file as ONNX with the file's scales and zero points; images are N, C, H, W.

    Raises:
        N2D2Error: E301 unreadable file, E302 invalid model, E305 unusable inputs, E310 (one for each kind)
            operators that cannot be translated.
    """
    file = read_tflite(Path(path))
    try:
        file = _ending_at(options.cut.outputs, mark_dilations(inline_graphs(file)))
        translation = Translation(file)
        proto = translation.run()
    except DamagedFile as damage:  # options of operators are read when these are translated
        raise damaged_error(file.path, damage) from None
    model = load_onnx(proto, options)
    images = [file.tensors[index].name for index in file.inputs if len(file.tensors[index].shape) == 4]
    if images:
        text = "%s: images are stored as height, width, channels; the exported model takes channels, height, width"
        log.notice(text, model.path)
    for tensor in (file.tensors[index] for index in file.inputs):
        if len(tensor.shape) == 3 and min(tensor.shape[1:]) > 1:
            rows, columns = tensor.shape[1:]
            order = (
                f"the exported function takes the {rows} channels of each value next to each other, the transpose of the file"
            )
            text = "%s: input '%s' of %d x %d has %d channels of %d values: %s"
            log.notice(text, model.path, tensor.name, rows, columns, rows, columns, order)
    if states := translation.variables.states:
        log.notice("%s: variables are kept between calls: %s", model.path, ", ".join(name for name, _ in states))
    return replace(model, places=translation.places, states=states, batch=1 if states else model.batch, stored=_types(file))


def _ending_at(names: Sequence[str], file: TfliteFile) -> TfliteFile:
    """Return the file with these outputs, so that operators after them are not translated; unchanged if it lacks one."""
    known = {tensor.name: index for index, tensor in enumerate(file.tensors)}
    return replace(file, outputs=tuple(known[name] for name in names)) if names and known.keys() >= set(names) else file


def _types(file: TfliteFile) -> dict[str, NumType]:
    """Return the integer types of the inputs that are stored as integers."""
    types = {}
    for tensor in (file.tensors[index] for index in file.inputs):
        if tensor.is_quantized and tensor.dtype.kind in "iu":
            signed = tensor.dtype.kind == "i"
            scale, zero = float(tensor.scale[0]), int(tensor.zero_point[0])
            types[tensor.name] = NumType(8 * tensor.dtype.itemsize, signed, scale=scale, zero_point=zero, full=signed)
    return types
