"""Stimuli without an INI: a folder of images, an .npy, .npz or .csv file, or synthetic values.

Images and bytes are scaled to the input range: byte p becomes low + p/255 * (high - low). Colours are in the order red, green,
blue, as in most ONNX networks. Real arrays are used unchanged.
"""

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.sensor import SensorSource, StreamSource
from n2d2py.data import decode
from n2d2py.data.database.arrays import check_axes, label_ids, random_bytes, read_arrays
from n2d2py.data.database.base import Database, Items, array_items, file_items
from n2d2py.data.database.directory import FileSelection, list_directory
from n2d2py.data.input_data import InputData, open_data
from n2d2py.data.pipeline import size_text
from n2d2py.data.preprocessing import Preprocessing, scale_bytes
from n2d2py.data.stimuli import Stimuli, even_positions
from n2d2py.data.transformations.base import Range, reported
from n2d2py.data.transformations.color import ColorSpace, gray
from n2d2py.data.transformations.geometry import resize_bilinear
from n2d2py.errors import N2D2Error
from n2d2py.graph.port import FilePort, plain_port


def open_source(
    source: InputData | Path | str, shape: tuple[int, ...], how: Preprocessing = Preprocessing(), port: FilePort | None = None
) -> Stimuli:
    """Return the stimuli of a folder of images (searched recursively, by name), an .npy, .npz or .csv file, or of arrays.

    Args:
        shape: network input, (C, H, W) or (F,); images are resized to it with a notice, arrays must have it.
        how: preprocessing of images and bytes.
        port: axes of arrays; by default those of the network.

    Raises: E401, E402, E403 for files, E414 arrays or inputs that do not fit, E416 no data, E417 an invalid range; during
        streaming E403, E408, E415 and E418.
    """
    data, port = open_data(source), port or plain_port((1, *shape))
    axes = port.image_axes if data.is_folder and len(shape) == 3 else (0, 1, 2)
    if not isinstance(how.source, StreamSource):
        how.check(shape[axes[0]] if len(shape) == 3 else shape[0])
    if isinstance(how.source, AudioSource):
        return _open_sounds(data, shape, how.source)
    if isinstance(how.source, SensorSource):
        return _open_recordings(data, shape, how.source)
    return _open_folder(data, shape, how, axes) if data.is_folder else _open_array(data, shape, how, port)


def source_database(data: InputData, shape: tuple[int, ...], *, fit: bool) -> Database | None:
    """Return a folder of images or an array of bytes as a database, for the pipeline of an INI; None for arrays of real
    numbers.

    The stimuli validate, and also test if all have labels. With `fit`, images are resized to `shape` (C, H, W) and its
    channels.

    Raises: E401, E402, E403 for files, E414 other data, E416 no data.
    """
    path = data.path
    if data.is_folder:
        files = _find_files(path)
        labels, names = _picture_labels(data, len(files)), ()
        items = file_items(path, files)
        if fit and len(shape) == 3 and shape[0] in (1, 3):
            items = Items(files, lambda index: _fit_picture(path, files[index], shape, Preprocessing(bgr=True)), path)
    else:
        x, labels, names = read_arrays(data)
        check_axes(x, path)
        if x.dtype != np.uint8 or labels.ndim > 1:
            return None
        if not len(x):
            raise N2D2Error("E416", f"{path} contains no sample", remedy="store at least one sample")
        items = array_items(path.name, x)
    indices = np.arange(len(items))
    sets = {"Validation": indices, "Test": indices} if (labels >= 0).all() else {"Validation": indices}
    return Database(items, labels, names, sets)


def synthetic(shape: tuple[int, ...], count: int = 32, seed: int = 0, input_range: Range = (0.0, 1.0)) -> Stimuli:
    """Return `count` stimuli of uniform noise in the input range, with a warning: W402."""
    interval = f"[{input_range[0]:g}, {input_range[1]:g}]"
    what = f"{count} samples of noise in {interval} replace data, so the accuracy of the export is unknown"
    log.warning("W402", what, remedy="give real data with -calib-data")
    names = [f"synthetic[{index}]" for index in range(count)]
    return Stimuli(names, np.full(count, -1), shape, lambda index: scale_bytes(random_bytes(shape, seed, index), input_range))


def _open_folder(data: InputData, sample_shape: tuple[int, ...], how: Preprocessing, axes: tuple[int, ...]) -> Stimuli:
    """Return images for an input of shape `sample_shape`, with channels, height and width at `axes`."""
    folder = data.path
    shape = tuple(sample_shape[axis] for axis in axes) if len(sample_shape) == 3 else sample_shape
    if len(shape) != 3 or shape[0] not in (1, 3):
        what = f"images cannot be fed to the input of shape {size_text(shape)}"
        raise N2D2Error("E414", what, where=str(folder), remedy="give the data as a .npy or .npz file")
    files = _find_files(folder)
    if how.layout is not None:
        raise N2D2Error("E417", "-layout has no effect on images", where=str(folder), remedy="remove -layout")
    first = _convert_colours(decode.read_picture(folder / files[0], files[0]), files[0], shape[0])
    first = how.resize_and_crop(first, files[0]) if how.source is None else first
    sizes = _survey_headers(folder, files, shape[0])
    if how.source is None and (first.shape[:2] != shape[1:] or (len(sizes) > 1 and how.resize is None and how.crop is None)):
        size = f"{files[0]} is {first.shape[1]}x{first.shape[0]}"
        size += "" if len(sizes) == 1 else f"; files are {size_text(sizes[0])} to {size_text(sizes[-1])}"
        log.notice("%s: images are resized to %dx%d, bilinear (%s)", folder.name, shape[2], shape[1], size)

    def load(index: int) -> np.ndarray:
        return how.real(_fit_picture(folder, files[index], shape, how).transpose(2, 0, 1)).transpose(np.argsort(axes))

    def read(index: int) -> np.ndarray:
        return _convert_colours(decode.read_picture(folder / files[index], files[index]), files[index], 3)

    stimuli = Stimuli(files, _picture_labels(data, len(files)), sample_shape, load, raw=read if how.source else None)
    if data.boxes is not None:
        stimuli.boxes = [_place_boxes(one, folder, file, shape, how) for one, file in zip(data.boxes, files, strict=True)]
    return stimuli


def _place_boxes(
    boxes: np.ndarray | None, folder: Path, file: str, shape: tuple[int, ...], how: Preprocessing
) -> np.ndarray | None:
    """Return image-relative boxes in pixels of the input of `shape` (C, H, W), clipped to it, without those outside."""
    if boxes is None or not len(boxes):
        return boxes
    size = decode.picture_size(folder / file, file)
    result = boxes.copy()
    for axis, (scale, offset) in enumerate(how.placement(*size, shape[2], shape[1], file)):
        corners = boxes[:, [2 + axis, 4 + axis]] * size[axis] * scale + offset
        result[:, [2 + axis, 4 + axis]] = corners.clip(0, shape[2 - axis])
    return result[(result[:, 4:] > result[:, 2:4]).all(axis=1)]


def _open_sounds(data: InputData, shape: tuple[int, ...], source: AudioSource) -> Stimuli:
    """Return WAV files, .pcm files or int16 arrays (N, samples) as features for an input of `shape`."""
    if data.is_folder:
        names = _find_files(data.path, decode.SOUNDS, "sound")
        labels = _picture_labels(data, len(names))

        def read(index: int) -> np.ndarray:
            return decode.read_samples(data.path / names[index], names[index], source.sound_rate)

        read(0)
    else:
        x, labels, _ = read_arrays(data)
        if x.ndim != 2 or x.dtype != np.int16 or not len(x):
            what = f"{data.path} contains an array {size_text(x.shape)} of {x.dtype} instead of sounds"
            raise N2D2Error("E414", what, remedy="store int16 samples (N, samples), or a folder of WAV files")
        names = data.titles(len(x))

        def read(index: int) -> np.ndarray:
            return x[index]

    return Stimuli(names, labels, shape, lambda index: source.stimulus(read(index), shape), raw=read)


def _open_recordings(data: InputData, shape: tuple[int, ...], source: SensorSource) -> Stimuli:
    """Return the windows of CSV files in the measure of `unit`, or of int16 arrays (N, samples, axes), for an input of `shape`."""
    if data.is_folder:
        names = _find_files(data.path, decode.RECORDINGS, "recording")
        measured = [decode.read_table(data.path / name, name, header=True)[:, :, 0] for name in names]
        for name, samples in zip(names, measured, strict=True):
            if samples.shape[1] != source.axes:
                what = f"{name} has {samples.shape[1]} numbers in a line instead of those of {source.axes} axes"
                raise N2D2Error("E414", what, remedy="correct axes= of -sensor, or remove other columns such as times")
        _warn_about_unit(np.concatenate(measured), source, data.path)
        recordings = [source.stored(one) for one in measured]
        labels = _picture_labels(data, len(names))
    else:
        x, labels, _ = read_arrays(data)
        if x.ndim != 3 or x.dtype != np.int16 or x.shape[2] != source.axes or not x.size:
            what = f"{data.path} contains an array {size_text(x.shape)} of {x.dtype} instead of samples of {source.axes} axes"
            raise N2D2Error("E414", what, remedy="store int16 samples (N, samples, axes), or a folder of CSV files")
        recordings, names = list(x), data.titles(len(x))
    frames = source.frames_of(shape)
    counts = [source.windows(len(one), frames.count) for one in recordings]
    places = [(file, source.hop * number) for file, count in enumerate(counts) for number in range(count)]

    def window(index: int) -> np.ndarray:
        file, first = places[index]
        return recordings[file][first : first + frames.count]

    def load(index: int) -> np.ndarray:
        return frames.stimulus(source.real(source.latest(window(index), frames.count)), shape)

    titles = [f"{names[file]}[{first}]" for file, first in places]
    return Stimuli(titles, np.repeat(labels, counts), shape, load, raw=window)


def _warn_about_unit(values: np.ndarray, source: SensorSource, path: Path) -> None:
    """Warn W411 if the steps of a sensor do not fit its real values (n, axes): they are clipped, or rounded to few steps."""
    beyond = float((abs(values) > 32768 * np.array(source.unit)).mean())
    spread = values.std(axis=0, dtype=np.float64)
    coarse = np.flatnonzero((spread > 0) & (spread < source.unit))
    if beyond > 0.01:
        what = f"{beyond:.0%} of the values exceed 32768 steps of the sensor"
    elif len(coarse):
        axis = int(coarse[0])
        least, most = values[:, axis].min(), values[:, axis].max()
        what = f"the values of axis {axis}, {least:.4g} to {most:.4g}, are rounded to steps of {source.unit[axis]:g}"
    else:
        return
    log.warning("W411", what, where=str(path), remedy="give unit=, the real value of one step of the 16-bit sensor")


_MAX_SURVEYED = 256
"""Limit of images whose headers are read in advance."""
_MODES = {
    "CMYK": "CMYK (converted without its color profile)",
    **dict.fromkeys(("RGBA", "LA", "PA", "La", "RGBa"), "with alpha (ignored)"),
    **dict.fromkeys(("L", "1", "I;16", "I;16B", "I"), "gray"),
}


def _survey_headers(folder: Path, files: Sequence[str], channels: int) -> list[tuple[int, int]]:
    """Return the different image sizes, the smallest first; warn W415 for EXIF rotations, alpha, CMYK, and gray among colour images.

    Unreadable files are reported when they are read.
    """
    sizes, modes, rotated = set(), [], 0
    for name in (files[int(index)] for index in even_positions(len(files), _MAX_SURVEYED)):
        try:
            size, mode, is_rotated = decode.picture_header(folder / name, name)
        except N2D2Error:
            continue
        sizes.add(size)
        rotated += is_rotated
        modes.append(_MODES.get(mode, "color"))
    usual = "gray" if channels == 1 and "gray" in modes else "color"
    odd = [kind for kind in sorted(set(modes)) if kind != usual and (kind != "gray" or "color" in modes)]
    converted: dict[str, str] = dict.fromkeys(("gray", "color"), f" (converted to {'gray' if channels == 1 else 'RGB'})")
    texts = [f"{modes.count(kind)} {kind}{converted.get(kind, '')}" for kind in odd]
    texts += [f"{rotated} with an EXIF rotation (ignored)"] * (rotated > 0)
    if texts:
        remedy = "convert the images to one mode, as the application delivers them"
        log.warning("W415", f"of {len(modes)} images, {', '.join(texts)}", where=str(folder), remedy=remedy)
    return sorted(sizes, key=lambda size: (size[0] * size[1], size))


def _find_files(folder: Path, extensions: Sequence[str] = decode.PICTURES, what: str = "image") -> list[str]:
    files = list_directory(folder, {}, FileSelection(-1, label_depth=-1, valid_extensions=extensions)).files
    if not files:
        others = {"-audio to convert the sounds": decode.SOUNDS, "-sensor to convert the recordings": decode.RECORDINGS}
        held = {path.suffix.lower() for path in folder.iterdir()}
        remedies = [f"add {option}" for option, kinds in others.items() if what == "image" and held.intersection(kinds)]
        raise N2D2Error("E416", f"{folder} contains no {what}", remedy=[*remedies, f"give a folder with {what}s"][0])
    return files


def _picture_labels(data: InputData, count: int) -> np.ndarray:
    if data.labels is None:
        return np.full(count, -1, np.int64)
    return label_ids(data.labels, np.empty((count, 1)), data.path)


def _fit_picture(folder: Path, name: str, shape: tuple[int, ...], how: Preprocessing) -> np.ndarray:
    """Return an image as uint8 (H, W, C) of `shape` (C, H, W)."""
    image = decode.read_picture(folder / name, name)
    if isinstance(how.source, FrameSource):
        pixels = _convert_colours(image, name, 3)
        taken = how.source.convert(how.source.frame(pixels), pixels.shape[1], (shape[0], shape[1], shape[2]), name)
        return taken[:, :, ::-1] if how.bgr else taken
    pixels = _convert_colours(image, name, shape[0], "BGR" if how.bgr else "RGB")
    return resize_bilinear(how.resize_and_crop(pixels, name), *shape[1:])


def _convert_colours(image: np.ndarray, name: str, channels: int, order: str = "RGB") -> np.ndarray:
    """Return an image as uint8 (H, W, C), gray for one channel."""
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    if image.dtype != np.uint8:
        what = f"image {name} has type {image.dtype} instead of 8 or 16 bits"
        raise N2D2Error("E415", what, remedy="convert it, or give the data as a .npy file")
    with reported(f"image {name}: "):
        return gray(image) if channels == 1 else ColorSpace(order).apply(image)


def _open_array(data: InputData, shape: tuple[int, ...], how: Preprocessing, port: FilePort) -> Stimuli:
    path, (x, labels, _) = data.path, read_arrays(data)
    options = (("resize", how.resize), ("crop", how.crop), ("input-format", how.source), ("bgr", how.bgr))
    pictures = [name for name, value in options if value]
    if pictures:
        raise N2D2Error("E417", f"-{pictures[0]} has no effect on the array {path}", remedy="leave it out")
    x = _input_samples(x, path, shape, port if how.layout is None or len(shape) != 3 else port.in_layout(shape, how.layout))
    labels = labels if len(labels) == len(x) else np.full(len(x), -1)
    decode.check_integers(x, how.type, str(path))
    if x.dtype.kind not in "bf" and x.dtype != np.uint8 and not how.integers and how.type is None:
        raise N2D2Error("E414", f"{path} has the unsupported type {x.dtype}", remedy="store uint8 or float32")
    if x.dtype.kind in "bf":
        if how.by_formula and not how.from_metadata:
            kind = "float" if x.dtype.kind == "f" else "truth"
            what = f"{path} contains {kind} values, which are used unchanged; -mean, -std and -scale apply to bytes"
            raise N2D2Error("E417", what, remedy="remove these options, or store bytes")
        _warn_about_range(x, path, how.declared)

    def load(index: int) -> np.ndarray:
        sample = decode.to_sample_type(x[index])
        if x.dtype.kind in "iu":
            return how.real(sample)
        if not np.isfinite(sample).all():
            what = f"sample {index} of {path.name} contains NaN or infinity"
            raise N2D2Error("E418", what, remedy="remove it, or correct its values")
        return sample.astype(np.float32)

    return Stimuli(data.titles(len(x)), labels, shape, load)


def _input_samples(x: np.ndarray, path: Path, shape: tuple[int, ...], port: FilePort) -> np.ndarray:
    """Return an array in the axes of the file as samples (N, *shape); a line of a CSV file is a sample."""
    samples = port.samples(x, (1, *shape))
    if samples is None and path.suffix == ".csv" and x.shape[1] == prod(shape):
        x = np.moveaxis(x.reshape(len(x), *port.sample), 0, port.axis or 0)
        samples = port.samples(x, (1, *shape))
    if samples is None and shape[:1] == (1,) and x.shape[1:] == shape[1:]:  # the only channel has no axis
        samples = x[:, None]
    if samples is None:
        raise _shape_error(path, x.shape, shape, port)
    if not len(samples):
        raise N2D2Error("E416", f"{path} contains no sample", remedy="store at least one sample")
    return samples


def _warn_about_range(x: np.ndarray, path: Path, declared: Range | None) -> None:
    """Warn W411 if real values far exceed the declared range, or use almost nothing of it."""
    if declared is None:
        return
    some = np.asarray(x[:32])
    low, high = declared
    least, most = float(some.min()), float(some.max())
    width = high - low
    if least < low - 0.1 * width or most > high + 0.1 * width or most - least < 0.02 * width:
        what = f"the first samples range from {least:.4g} to {most:.4g} instead of {low:g} to {high:g}"
        remedy = "scale the data, or correct -input-range or the metadata of the model"
        log.warning("W411", what, where=str(path), remedy=remedy)


def _shape_error(path: Path, actual: tuple[int, ...], shape: tuple[int, ...], port: FilePort) -> N2D2Error:
    if path.suffix.lower() == ".csv" and len(actual) == 2:
        what = f"{path} has {actual[1]:,} columns, but a sample of the model has {prod(port.sample):,} values"
        return N2D2Error("E414", what, remedy="write the values of one sample in each line")
    text = "x".join(map(str, actual))
    wanted = "x".join("N" if axis == port.axis else str(size) for axis, size in enumerate(port.dims))
    other = "nchw" if port.channels_last else "nhwc"
    if len(shape) == 3 and actual[1:] == port.in_layout(shape, other).sample:
        orders = ["(N, C, H, W)", "(N, H, W, C)"][:: -1 if port.channels_last else 1]
        remedy = f"give -layout {other}, or transpose it from {orders[1]} to {orders[0]}"
    elif actual == port.sample:
        remedy = "add an axis of stimuli in front"
    elif port.axis is None:
        remedy = f"stack the samples along a new first axis, Nx{wanted}"
    else:
        remedy = "store the inputs of the network"
    return N2D2Error("E414", f"{path} contains an array {text}, but the model takes {wanted}", remedy=remedy)
