"""Test samples of an exported project: PGM and PPM files with the expected labels after the image.

File: ``P5`` (one channel) or ``P6`` (several), newline, ``width height``, newline, maxval (255 up to 8 bits, else 65535),
newline; the stored values in HWC order, little-endian, two's complement if signed; then one little-endian int32 per label. A
vector of C elements is an image of one pixel with C channels, written as a row of C pixels with one channel, which is the same
sequence of values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from n2d2py.files import write_text
from n2d2py.graph import QuantGraph, channels, height, width


@dataclass(frozen=True, eq=False)
class StoredStimuli:
    """Quantized inputs of a network and the expected labels.

    Attributes:
        inputs: stored values (N, C, H, W) or (N, C), one array for each network input.
        labels: int32 (N, ...) for each target, in the order of the targets.
        names: origin of each sample; empty if unknown.
    """

    inputs: tuple[np.ndarray, ...] = ()
    labels: tuple[np.ndarray, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.inputs[0]) if self.inputs else 0


def hwc(values: np.ndarray) -> np.ndarray:
    """Return values (C, H, W), (C, L) or (C) of one sample as (H, W, C); a vector has one pixel."""
    if values.ndim == 1:
        return values.reshape(1, 1, -1)
    if values.ndim == 2:
        return values.T[np.newaxis]
    return values.transpose(1, 2, 0)


def stored_bytes(values: np.ndarray) -> bytes:
    """Return the bytes of one sample, as `hwc` and little-endian."""
    pixels = hwc(values)
    return pixels.astype(pixels.dtype.newbyteorder("<"), copy=False).tobytes()


def hwc_field(shape: tuple[int, ...], dtype: np.dtype) -> tuple[np.dtype, tuple[int, int, int]]:
    """Return the type and shape (H, W, C) of a tensor as exports hold it, for a field of a `np.dtype`."""
    return dtype.newbyteorder("<"), (height(shape), width(shape), channels(shape))


def from_hwc(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return (N, H, W, C) as contiguous (N, C, ...) of the rank of `shape`, in the byte order of this machine."""
    moved = np.moveaxis(values, 3, 1).reshape(len(values), *shape[1:])
    return np.ascontiguousarray(moved.astype(moved.dtype.newbyteorder("="), copy=False))


def write_stimuli(stimuli: StoredStimuli, graph: QuantGraph, names: Sequence[str], folder: Path) -> None:
    """Write `stimuli/<name><number>.pgm|ppm`, `stimuli.list` and `stimuli.link` into `folder`.

    `names` are the file stems, one for each network input. A line of `stimuli.list` has the path of a sample, or the paths of
    all its inputs separated by blanks; labels are in the first file. Lines of `stimuli.link`: path, blank, original name.
    """
    digits = max(3, len(str(stimuli.count - 1)))
    (folder / "stimuli").mkdir(exist_ok=True)
    paths, links = [], []
    for index in range(stimuli.count):
        files = []
        for position, (name, tensor, values) in enumerate(zip(names, graph.user_inputs, stimuli.inputs, strict=True)):
            files.append(f"stimuli/{name}{index:0{digits}d}.{'pgm' if _grey(graph.shape(tensor)) else 'ppm'}")
            labels = [label[index].astype("<i4").tobytes() for label in stimuli.labels] if position == 0 else []
            (folder / files[-1]).write_bytes(_header(graph, tensor) + stored_bytes(values[index]) + b"".join(labels))
        paths.append(" ".join(files))
        links.append(f"{files[0]} {stimuli.names[index] if stimuli.names else '-'}")
    for file, lines in (("stimuli.list", paths), ("stimuli.link", links)):
        write_text(folder / file, "".join(line + "\n" for line in lines))


def _grey(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 or channels(shape) == 1


def _header(graph: QuantGraph, tensor: str) -> bytes:
    shape = graph.shape(tensor)
    columns = channels(shape) if len(shape) == 2 else width(shape)
    maxval = 255 if graph.type(tensor).bits <= 8 else 65535
    return f"{'P5' if _grey(shape) else 'P6'}\n{columns} {height(shape)}\n{maxval}\n".encode("ascii")


def _array_files(inputs: int) -> list[str]:
    return ["stimuli.npy"] if inputs == 1 else [f"stimuli{i}.npy" for i in range(inputs)]


def write_arrays(stimuli: StoredStimuli, folder: Path, dtype: np.dtype | type | None = None) -> None:
    """Write the stored values of each input as a NumPy file, in the type `dtype` or unchanged; no file without samples."""
    if not stimuli.count:
        return
    for name, values in zip(_array_files(len(stimuli.inputs)), stimuli.inputs, strict=True):
        np.save(folder / name, values if dtype is None else values.astype(dtype))


def read_arrays(folder: Path, inputs: int, count: int) -> list[np.ndarray]:
    """Return the first `count` stored values of each input that `write_arrays` wrote."""
    return [np.load(folder / name, allow_pickle=False)[:count] for name in _array_files(inputs)]
