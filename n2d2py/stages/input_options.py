"""Options of the input data: labels, preprocessing, and their description in the metadata of an ONNX file."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.audio import AudioSource, read_audio
from n2d2py.arithmetic.frame import FrameSource, read_frame
from n2d2py.arithmetic.sensor import SensorSource, StreamSource, read_sensor
from n2d2py.data.decode import PICTURES, RECORDINGS, SOUNDS
from n2d2py.data.input_data import InputData
from n2d2py.data.labels import labelled_data, read_class_names
from n2d2py.data.preprocessing import Preprocessing
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.stages.options import LoadOptions

_RANGES = {
    "nominalrange_0_255": (0.0, 255.0),
    "nominalrange_16_235": (16.0, 235.0),
    "normalized_0_1": (0.0, 1.0),
    "normalized_1_1": (-1.0, 1.0),
}
"""Values of Image.NominalPixelRange, a key of the ONNX specification."""


@dataclass(frozen=True)
class OnnxMetadata:
    """Description of the data in the metadata of an ONNX file.

    Attributes:
        input_range: from Image.NominalPixelRange.
        bgr: from Image.BitmapPixelFormat.
        names: class names, from the dictionary `names` of YOLO's exporters.
        factors, offsets: factor and offset of a byte, for each channel (n2d2py.factors, n2d2py.offsets).
        formula: origin of factors and offsets (n2d2py.formula).
    """

    input_range: tuple[float, float] | None = None
    bgr: bool | None = None
    names: tuple[str, ...] = ()
    factors: tuple[float, ...] = ()
    offsets: tuple[float, ...] = ()
    formula: str = "n2d2py.factors and n2d2py.offsets"


def read_metadata(metadata: Mapping[str, str]) -> OnnxMetadata:
    """Read the known metadata keys; keys and values in any case."""
    lower = {key.lower(): value for key, value in metadata.items()}
    pixels = lower.get("image.bitmappixelformat", "").lower()
    return OnnxMetadata(
        _RANGES.get(lower.get("image.nominalpixelrange", "").lower()),
        pixels.startswith("bgr") if pixels else None,
        _parse_names(lower.get("names", "")),
        *_parse_formula(lower.get("n2d2py.factors", ""), lower.get("n2d2py.offsets", "")),
        formula=lower.get("n2d2py.formula", OnnxMetadata.formula),
    )


def _parse_formula(factors: str, offsets: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the numbers of two lists of the same length; empty for anything else."""
    values = []
    for text in (factors, offsets):
        try:
            values.append(tuple(float(value) for value in ast.literal_eval(text)))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return (), ()
    factors_known = len(values[0]) == len(values[1]) and all(0 < value < np.inf for value in values[0])
    return (values[0], values[1]) if factors_known and np.isfinite(values[1]).all() else ((), ())


def _parse_names(text: str) -> tuple[str, ...]:
    """Return the values of a dictionary of texts by 0, 1, ...; empty for anything else."""
    try:
        names = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict) or list(names) != list(range(len(names))):
        return ()
    return tuple(str(name) for name in names.values())


def class_names(options: LoadOptions, meta: OnnxMetadata) -> tuple[str, ...]:
    """Return the names of `-class-names`, else those of the metadata; may be empty."""
    if options.class_names is None:
        return meta.names
    if isinstance(options.class_names, tuple):
        return options.class_names
    return read_class_names(Path(options.class_names))


def labelled_input(options: LoadOptions, names: tuple[str, ...]) -> tuple[InputData, tuple[str, ...]]:
    """Return the data of the options with labels, and the class names."""
    if options.data is None:
        raise InternalError("data are opened that nobody gave")
    return labelled_data(
        options.data, options.labels, names, SOUNDS if options.audio else RECORDINGS if options.sensor else PICTURES
    )


def preprocessing(
    options: LoadOptions,
    shape: tuple[int, ...],
    meta: OnnxMetadata,
    network: str,
    integers: bool = False,
    kind: NumType | None = None,
    silent: bool = False,
) -> Preprocessing:
    """Return the conversion of images and bytes to an input of `shape` (C, H, W); metadata in use are reported unless `silent`.
    `kind`: integer type that the file declares for the input. An image byte is one of its integers, minus 128 if signed."""
    if kind is not None and kind.bits == 8:
        offset = ((-128 if kind.signed else 0) - kind.zero_point) * kind.scale
        meta = replace(
            meta, factors=(kind.scale,), offsets=(offset,), formula="the scale and zero point of the input", input_range=None
        )
    steps = []
    by_formula = options.scale is not None or bool(options.mean or options.std)
    declared = options.input_range
    if declared is None and not by_formula and meta.input_range is not None:
        declared = meta.input_range
        steps.append(f"values {declared[0]:g}..{declared[1]:g} (Image.NominalPixelRange)")
    scale, mean, std = options.scale, options.mean, options.std
    by_file = declared is None and not by_formula and bool(meta.factors) and len(meta.factors) in (1, *shape[:1])
    if by_file:
        scale, std = 1.0, tuple(1 / factor for factor in meta.factors)
        mean = tuple(-offset / factor for factor, offset in zip(meta.factors, meta.offsets, strict=True))
        if kind is None or kind.scale != 1:
            steps.append(f"values by {meta.formula}")
    bgr = options.bgr
    pictures = isinstance(options.data, (str, Path)) and Path(options.data).is_dir()
    if not bgr and meta.bgr and pictures and shape[:1] == (3,):
        bgr = True
        steps.append("channels blue, green, red (Image.BitmapPixelFormat)")
    if meta.names and options.class_names is None:
        steps.append(f"{len(meta.names)} class names (names)")
    if steps and not silent:
        log.notice("metadata of %s: %s", network, ", ".join(steps))
    crop = options.crop
    if crop is None and options.resize is not None and len(options.resize) == 1 and len(shape) == 3:
        crop = (shape[2], shape[1])
    bounds = declared or (0.0, 1.0)
    how = Preprocessing(bounds, scale, mean, std, options.resize, crop, bgr, options.layout, declared, by_file, integers, kind)
    if options.audio is not None or options.sensor is not None:
        return replace(how, source=_stream_source(options, shape))
    return how if options.input_format is None else replace(how, source=_frame_source(how, options.input_format, shape))


def _stream_source(options: LoadOptions, shape: tuple[int, ...]) -> AudioSource | SensorSource:
    """Return the source of sounds or samples for an input of `shape`. Raise E007 with other preprocessing, E417 if the features
    do not fit."""
    source = read_audio(options.audio) if options.audio is not None else read_sensor(str(options.sensor))
    if others := [name for name in _given_preprocessing(options) if name != source.option]:
        raise N2D2Error("E007", f"{source.option} and {others[0]} exclude each other", remedy="remove one of them")
    source.frames_of(shape)
    return source


def _frame_source(how: Preprocessing, text: str, shape: tuple[int, ...]) -> FrameSource:
    """Return the frame conversion for an input of `shape`; raise E417 if it takes no frames, or if a crop would be resized
    again."""
    crop, resize = how.crop_size, how.resize or ()
    if len(shape) != 3 or shape[0] not in (1, 3) or how.integers:
        raise N2D2Error("E417", "-input-format requires one input of gray or RGB images", remedy="remove -input-format")
    if how.resize is not None and crop != (shape[2], shape[1]) != how.resize:
        what = f"with -input-format, -resize and -crop must lead to the size of the input, {shape[2]}x{shape[1]}"
        raise N2D2Error("E417", what, remedy=f"give -crop {shape[2]}x{shape[1]}, or -resize alone")
    return read_frame(text, resize, () if resize else crop)


def input_text(how: Preprocessing, shape: tuple[int, ...], data: InputData, reals: bool, count: str, layout: str) -> str:
    """Return one line: size and channels of the input, range and formula of its values, number of samples."""
    if isinstance(how.source, StreamSource):
        frames = how.source.frames_of(shape).count
        return f"input: {frames} frames of {how.source.features} features, {how.source.text}, {count}"
    size = "x".join(map(str, shape[:0:-1])) if len(shape) == 3 else "x".join(map(str, shape))
    channels = {1: " gray", 3: " BGR" if how.bgr else " RGB"}.get(shape[0], f", {shape[0]} channels") if len(shape) == 3 else ""
    if not data.is_folder and len(shape) == 3:
        channels = f", {shape[0]} channel{'s' * (shape[0] > 1)}, {(how.layout or layout).upper()}"
    kind = "integers" if how.integers else "real values" if reals else ""
    if how.type is not None and not reals and not data.is_folder:
        kind = f"{how.type.name} of the file"
    values = f"{kind} unchanged" if kind else how.text(shape[0])
    steps = "".join(f"{step}, " for step in how.steps())
    return f"input: {size}{channels}, {steps}{values}, {count}"


_PREPROCESSING_OPTIONS = ("mean", "std", "scale", "resize", "crop", "input_format", "audio", "sensor", "bgr", "layout")
"""Options of image and byte preprocessing."""


def _given_preprocessing(options: LoadOptions) -> list[str]:
    plain = LoadOptions()
    return [f"-{name.replace('_', '-')}" for name in _PREPROCESSING_OPTIONS if getattr(options, name) != getattr(plain, name)]


def refuse_for_ini(options: LoadOptions) -> None:
    """Raise E007 for preprocessing, encodings and shapes, which the sections of an INI define."""
    keys = {"input_shape": "Size", "constants": "Constants", "inputs": "Inputs", "outputs": "Outputs", "encodings": "Encodings"}
    for name, key in keys.items():
        if getattr(options, name) not in (None, ""):
            what = f"-{name.replace('_', '-')} applies to ONNX files only"
            raise N2D2Error("E007", what, remedy=f"remove it; in an INI, set {key} in the section of the ONNX file")
    if names := [name for name in _given_preprocessing(options) if name != "-input-format"]:
        what = f"{names[0]} applies to ONNX files only"
        raise N2D2Error("E007", what, remedy="write a transformation into the INI, or give the ONNX file instead")


def refuse_for_several(options: LoadOptions, inputs: int) -> None:
    """Raise E417 for preprocessing of a network with several inputs."""
    if names := _given_preprocessing(options):
        what = f"{', '.join(names)} cannot be applied to a model with {inputs} inputs"
        raise N2D2Error("E417", what, where="-calib-data", remedy="give preprocessed arrays in the order (N, C, H, W)")
