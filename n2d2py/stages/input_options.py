"""The data that are given with a network: their labels, their preprocessing, and its description in the metadata of an ONNX file."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.audio import AudioSource, read_audio
from n2d2py.arithmetic.frame import FrameSource, read_frame
from n2d2py.data.decode import PICTURES, SOUNDS
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
        input_range: of Image.NominalPixelRange.
        bgr: of Image.BitmapPixelFormat.
        names: of the classes, from the dictionary `names` that YOLO's exporters write.
        factors, offsets: what a byte is multiplied by, and what is added, for each channel (n2d2py.factors, n2d2py.offsets).
        formula: where these come from (n2d2py.formula).
    """

    input_range: tuple[float, float] | None = None
    bgr: bool | None = None
    names: tuple[str, ...] = ()
    factors: tuple[float, ...] = ()
    offsets: tuple[float, ...] = ()
    formula: str = "n2d2py.factors and n2d2py.offsets"


def read_metadata(metadata: Mapping[str, str]) -> OnnxMetadata:
    """Read the keys of the metadata that are known; keys and values in any case."""
    lower = {key.lower(): value for key, value in metadata.items()}
    pixels = lower.get("image.bitmappixelformat", "").lower()
    return OnnxMetadata(
        _RANGES.get(lower.get("image.nominalpixelrange", "").lower()),
        pixels.startswith("bgr") if pixels else None,
        _names(lower.get("names", "")),
        *_formula(lower.get("n2d2py.factors", ""), lower.get("n2d2py.offsets", "")),
        formula=lower.get("n2d2py.formula", OnnxMetadata.formula),
    )


def _formula(factors: str, offsets: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The numbers of two lists of the same length; empty for anything else."""
    found = []
    for text in (factors, offsets):
        try:
            found.append(tuple(float(value) for value in ast.literal_eval(text)))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return (), ()
    known = (
        len(found[0]) == len(found[1]) and all(0 < value < np.inf for value in found[0]) and bool(np.isfinite(found[1]).all())
    )
    return (found[0], found[1]) if known else ((), ())


def _names(text: str) -> tuple[str, ...]:
    """The values of a dictionary of texts by 0, 1, ...; empty for anything else."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    if isinstance(found, list):
        found = dict(enumerate(found))
    if not isinstance(found, dict) or list(found) != list(range(len(found))):
        return ()
    return tuple(str(name) for name in found.values())


def class_names(options: LoadOptions, meta: OnnxMetadata) -> tuple[str, ...]:
    """The names of `-class-names`, else those of the metadata; may be empty."""
    if options.class_names is None:
        return meta.names
    if isinstance(options.class_names, tuple):
        return options.class_names
    return read_class_names(Path(options.class_names))


def labelled_input(options: LoadOptions, names: tuple[str, ...]) -> tuple[InputData, tuple[str, ...]]:
    """The data of the options with their labels, and the names of the classes."""
    if options.data is None:
        raise InternalError("data are opened that nobody gave")
    return labelled_data(options.data, options.labels, names, PICTURES if options.audio is None else SOUNDS)


def preprocessing(
    options: LoadOptions,
    shape: tuple[int, ...],
    meta: OnnxMetadata,
    network: str,
    integers: bool = False,
    kind: NumType | None = None,
    silent: bool = False,
) -> Preprocessing:
    """Conversion of images and bytes to an input of `shape` (C, H, W), one of `integers` perhaps; decisions by the metadata are reported
    unless `silent`.

    `kind`: the integers that the file declares for the input. A byte of an image is one of them, as signed ones less 128.
    """
    if kind is not None and kind.bits == 8:
        offset = ((-128 if kind.signed else 0) - kind.zero_point) * kind.scale
        meta = replace(
            meta, factors=(kind.scale,), offsets=(offset,), formula="the scale and zero point of the input", input_range=None
        )
    taken = []
    by_formula = options.scale is not None or bool(options.mean or options.std)
    declared = options.input_range
    if declared is None and not by_formula and meta.input_range is not None:
        declared = meta.input_range
        taken.append(f"values {declared[0]:g}..{declared[1]:g} (Image.NominalPixelRange)")
    scale, mean, std = options.scale, options.mean, options.std
    by_file = (
        options.input_range is None
        and not by_formula
        and bool(meta.factors)
        and len(meta.factors) in (1, *shape[:1])
        and declared is None
    )
    if by_file:
        scale, std = 1.0, tuple(1 / factor for factor in meta.factors)
        mean = tuple(-offset / factor for factor, offset in zip(meta.factors, meta.offsets, strict=True))
        if kind is None or kind.scale != 1:
            taken.append(f"values by {meta.formula}")
    bgr = options.bgr
    pictures = isinstance(options.data, (str, Path)) and Path(options.data).is_dir()
    if not bgr and meta.bgr and pictures and shape[:1] == (3,):
        bgr = True
        taken.append("channels blue, green, red (Image.BitmapPixelFormat)")
    if meta.names and options.class_names is None:
        taken.append(f"{len(meta.names)} class names (names)")
    if taken and not silent:
        log.notice("metadata of %s: %s", network, ", ".join(taken))
    crop = options.crop
    if crop is None and options.resize is not None and len(options.resize) == 1 and len(shape) == 3:
        crop = (shape[2], shape[1])
    bounds = declared or (0.0, 1.0)
    how = Preprocessing(bounds, scale, mean, std, options.resize, crop, bgr, options.layout, declared, by_file, integers, kind)
    if options.audio is not None:
        return replace(how, source=_audio_source(options, shape))
    return how if options.input_format is None else replace(how, source=_frame_source(how, options.input_format, shape))


def _audio_source(options: LoadOptions, shape: tuple[int, ...]) -> AudioSource:
    """Sounds for an input of `shape`; raise E007 with preprocessing of images, E417 where the input takes other features."""
    if others := [name for name in _preparing(options) if name != "-audio"]:
        raise N2D2Error("E007", f"-audio and {others[0]} exclude each other", remedy="remove one of them")
    source = read_audio(str(options.audio))
    source.frames_of(shape)
    return source


def _frame_source(how: Preprocessing, text: str, shape: tuple[int, ...]) -> FrameSource:
    """Frames of a camera for an input of `shape`; raise E417 where it takes none, or where a crop would be resized again."""
    crop, resize = how.crop_size, how.resize or ()
    if len(shape) != 3 or shape[0] not in (1, 3) or how.integers:
        raise N2D2Error("E417", "-input-format requires one input of gray or RGB images", remedy="remove -input-format")
    if how.resize is not None and crop != (shape[2], shape[1]) != how.resize:
        what = f"with -input-format, -resize and -crop must lead to the size of the input, {shape[2]}x{shape[1]}"
        raise N2D2Error("E417", what, remedy=f"give -crop {shape[2]}x{shape[1]}, or -resize alone")
    return read_frame(text, resize, () if resize else crop)


def input_text(how: Preprocessing, shape: tuple[int, ...], given: InputData, reals: bool, count: str, layout: str) -> str:
    """One line: size and channels of the input, range and formula of its values, how many stimuli."""
    if isinstance(how.source, AudioSource):
        frames = how.source.frames_of(shape).count
        return f"input: {frames} frames of {how.source.features} features, {how.source.text}, {count}"
    size = "x".join(map(str, shape[:0:-1])) if len(shape) == 3 else "x".join(map(str, shape))
    channels = {1: " gray", 3: " BGR" if how.bgr else " RGB"}.get(shape[0], f", {shape[0]} channels") if len(shape) == 3 else ""
    if not given.is_folder and len(shape) == 3:
        channels = f", {shape[0]} channel{'s' * (shape[0] > 1)}, {(how.layout or layout).upper()}"
    kind = "integers" if how.integers else "real values" if reals else ""
    if how.type is not None and not reals and not given.is_folder:
        kind = f"{how.type.name} of the file"
    values = f"{kind} unchanged" if kind else how.text(shape[0])
    steps = "".join(f"{step}, " for step in how.steps())
    return f"input: {size}{channels}, {steps}{values}, {count}"


_PREPARING = ("mean", "std", "scale", "resize", "crop", "input_format", "audio", "bgr", "layout")
"""Options for the conversion of images and bytes to the input."""


def _preparing(options: LoadOptions) -> list[str]:
    """Those of them that are given, as on the command line."""
    plain = LoadOptions()
    return [f"-{name.replace('_', '-')}" for name in _PREPARING if getattr(options, name) != getattr(plain, name)]


def refuse_for_ini(options: LoadOptions) -> None:
    """Raise E007 for preprocessing that the pipeline of an INI does, for encodings and for shapes, which its sections say."""
    for name, key in (("input_shape", "Size"), ("inputs", "Inputs"), ("outputs", "Outputs"), ("encodings", "Encodings")):
        if getattr(options, name) is not None:
            what = f"-{name.replace('_', '-')} applies to ONNX files only"
            raise N2D2Error("E007", what, remedy=f"remove it; in an INI, set {key} in the section of the ONNX file")
    if given := [name for name in _preparing(options) if name != "-input-format"]:
        what = f"{given[0]} applies to ONNX files only"
        raise N2D2Error("E007", what, remedy="write a transformation into the INI, or give the ONNX file instead")


def refuse_for_several(options: LoadOptions, inputs: int) -> None:
    """Raise E417 for preprocessing, which the data of a network with several inputs do not get."""
    if given := _preparing(options):
        what = f"{', '.join(given)} cannot be applied to a model with {inputs} inputs"
        raise N2D2Error("E417", what, where="-calib-data", remedy="give preprocessed arrays in the order (N, C, H, W)")
