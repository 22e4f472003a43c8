"""Models of other frameworks: files by extension, and models in memory."""

import contextlib
import io
import sys
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx

from n2d2py import log
from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.onnx.model import ImportOptions, OnnxModel, load_onnx, stored_type
from n2d2py.frontend.tflite.control_flow import inline_graphs, mark_dilations
from n2d2py.frontend.tflite.file import DamagedFile, invalid_file_error, read_tflite
from n2d2py.frontend.tflite.translation import Translation

Source = Path | onnx.ModelProto
"""A network: its file, or an ONNX model in memory."""


def load_model(path: str | Source, options: ImportOptions = ImportOptions()) -> OnnxModel:
    """Return the model of an ONNX or TFLite file, or of ONNX in memory; errors as `load_onnx` and `load_tflite`.

    Raises N2D2Error: E315 encodings of a TFLite file.
    """
    if isinstance(path, onnx.ModelProto) or Path(path).suffix != ".tflite":
        return load_onnx(path, options)
    if options.encodings is not None:
        remedy = "remove them; a TFLite file contains its own"
        raise N2D2Error("E315", "encodings apply to ONNX files only", where=Location(str(options.encodings)), remedy=remedy)
    return load_tflite(path, options)


def load_tflite(path: str | Path, options: ImportOptions = ImportOptions()) -> OnnxModel:
    """Return the model of a .tflite file as ONNX with the file's scales and zero points; images are N, C, H, W.

    Raises N2D2Error: E301 unreadable file, E302 invalid model, E305 unusable inputs, E310 (one for each kind) operators that
    cannot be translated.
    """
    try:
        file = mark_dilations(inline_graphs(read_tflite(Path(path))))
        known = {tensor.name: index for index, tensor in enumerate(file.tensors)}
        if (names := options.cut.outputs) and known.keys() >= set(names):  # operators after them are not translated
            file = replace(file, outputs=tuple(known[name] for name in names))
        translation = Translation(file)
        proto = translation.run()
    except DamagedFile as damage:
        raise invalid_file_error(str(path), f"the file is damaged or truncated ({damage})") from None
    model = load_onnx(proto, options)
    inputs = [file.tensors[index] for index in file.inputs]
    if any(len(tensor.shape) == 4 for tensor in inputs):
        text = "%s: images are stored as height, width, channels; the exported model takes channels, height, width"
        log.notice(text, model.path)
    for tensor in inputs:
        if len(tensor.shape) == 3 and min(tensor.shape[1:]) > 1:
            rows, columns = tensor.shape[1:]
            order = f"the {rows} channels of each value next to each other, the transpose of the file"
            text = "%s: input '%s' of %d x %d has %d channels of %d values: the exported function takes %s"
            log.notice(text, model.path, tensor.name, rows, columns, rows, columns, order)
    if states := translation.states:
        log.notice("%s: variables are kept between calls: %s", model.path, ", ".join(name for name, _ in states))
    stored = [one for one in inputs if one.is_quantized]
    types = {one.name: stored_type(one.dtype, float(one.scale[0]), int(one.zero_point[0])) for one in stored}
    return replace(model, places=translation.places, states=states, batch=1 if states else model.batch, stored=types)


def onnx_model(model: Any, example_inputs: Any = None) -> onnx.ModelProto:
    """Return a model of another framework as ONNX: a ModelProto, an `onnx_ir.Model`, or a `torch.nn.Module`.

    Args:
        example_inputs: a tensor or a tuple of tensors with batch 1; only for a module, which is exported in evaluation mode.

    Raises N2D2Error: E008 another type, example inputs that are missing or have no effect, a module that torch.onnx cannot
    export.
    """
    torch, ir, kind = sys.modules.get("torch"), sys.modules.get("onnx_ir"), type(model).__name__
    if torch is not None and isinstance(model, torch.nn.Module):
        if example_inputs is None:
            what = f"the module {kind} has no example inputs"
            raise N2D2Error("E008", what, remedy="give example_inputs=(torch.zeros(1, ...),)")
        return _export_module(torch, model, example_inputs)
    if example_inputs is not None:
        what = f"example_inputs have no effect on {kind}"
        raise N2D2Error("E008", what, remedy="leave them out; only a torch.nn.Module needs them")
    if ir is not None and isinstance(model, ir.Model):
        return ir.serde.serialize_model(model)
    if isinstance(model, onnx.ModelProto):
        return model
    remedy = "give a path, an onnx.ModelProto, an onnx_ir.Model, or a torch.nn.Module with example_inputs"
    raise N2D2Error("E008", f"a model of type {type(model).__module__}.{kind} is not supported", remedy=remedy)


def _export_module(torch: Any, module: Any, example_inputs: Any) -> onnx.ModelProto:
    inputs = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    training, file, is_new = module.training, io.BytesIO(), find_spec("onnxscript") is not None
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            module.eval()
            if is_new:
                proto = torch.onnx.export(module, inputs, dynamo=True, verbose=False).model_proto
            else:
                torch.onnx.export(module, inputs, file, dynamo=False)
                proto = onnx.load_from_string(file.getvalue())
    except Exception as error:  # of torch and of the module itself
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        what = f"torch.onnx cannot export the module {type(module).__name__}: {reason}"
        raise N2D2Error("E008", what, remedy="check example_inputs, or export it to an .onnx file yourself") from error
    finally:
        module.train(training)
    proto.graph.name = type(module).__name__
    return proto
