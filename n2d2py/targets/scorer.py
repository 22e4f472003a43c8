"""Scorer of network outputs, batch by batch, and the stored tensors that a TargetCompare compares with."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path

import numpy as np

from n2d2py.arithmetic import FLOAT64, NumType
from n2d2py.errors import InternalError, Location, N2D2Error
from n2d2py.files import read_npy
from n2d2py.ini import wildcard_match
from n2d2py.targets.pixels import Pixels, SegmentedSample, count_pixels, fit_labels
from n2d2py.targets.score import Score
from n2d2py.targets.target import ScoreTarget


@dataclass(frozen=True)
class StoredTensors:
    """Files of a folder, by name: text (numbers, # comments), .npy, or .bin (float32, little-endian).

    Attributes:
        folder, matching: folder and pattern of the files, with * and ?.
        order: axes in the files, for example NCHW or NHWC.
        transposed: height and width are swapped in the files.
        where: place for messages.
    """

    folder: Path
    matching: str = "*.dat"
    order: str = "NCHW"
    transposed: bool = False
    where: Location | None = None

    def read(self, indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the tensors (n, *shape), float64, of the samples with these numbers; `shape` is (C, H, W) or (C,).

        Raises: E455 for a missing folder or file, a missing sample, or a file that is unreadable or of another size.
        """
        tensors = _read_tensors(self, shape)
        if (most := int(indices.max(initial=-1))) >= len(tensors):
            what = f"{self.folder} contains {len(tensors)} tensors, but none for sample {most}"
            raise N2D2Error("E455", what, where=self.where, remedy="use -nb-test with the number of stored samples")
        if len(shape) != 3:
            return tensors[indices].reshape(-1, *shape)
        swapped = str.maketrans("HW", "WH") if self.transposed else {}
        axes, sizes = self.order.replace("N", "").translate(swapped), dict(zip("CHW", shape, strict=True))
        stored = tensors[indices].reshape(-1, *(sizes[axis] for axis in axes))
        return stored.transpose(0, *(1 + axes.index(axis) for axis in "CHW"))


@lru_cache(1)
def _read_tensors(stored: StoredTensors, shape: tuple[int, ...]) -> np.ndarray:
    """Return the tensors of all files, in the order of their names, float64 (n, values)."""
    if not stored.folder.is_dir():
        what = f"DataPath={stored.folder} is not a folder"
        raise N2D2Error("E455", what, where=stored.where, remedy="give the folder with the tensors")
    paths = sorted(stored.folder.iterdir())
    files = [path for path in paths if path.is_file() and wildcard_match(stored.matching, path.name)]
    if not files:
        what = f"{stored.folder} contains no file {stored.matching}"
        raise N2D2Error("E455", what, where=stored.where, remedy="correct DataPath and Matching")
    size, parts = prod(shape), []
    for file in files:
        values = _read(file)
        if values.size > size and values.size % size and not values[size:].any():
            values = values[:size]  # a vector written as a padded matrix
        if values.size % size:
            what = f"{file.name} contains {values.size} values, but the layer has {size} ({'x'.join(map(str, shape))})"
            raise N2D2Error("E455", what, where=stored.where, remedy="correct the layer or TargetFormat")
        parts.append(values.reshape(-1, size))
    return np.concatenate(parts)


def _read(file: Path) -> np.ndarray:
    try:
        if file.suffix == ".npy":
            return read_npy(file).astype(np.float64).reshape(-1)
        if file.suffix == ".bin":
            return np.fromfile(file, "<f4").astype(np.float64)
        lines = file.read_text(encoding="utf-8").splitlines()
        return np.array([float(word) for line in lines for word in line.partition("#")[0].split()])
    except (OSError, ValueError, EOFError) as error:
        what = f"{file} is not a readable tensor: {error}"
        raise N2D2Error("E455", what, remedy="store numbers as text, .npy or float32 .bin") from None


MAX_SEGMENTED = 10
"""Number of samples whose segmentation is stored for images."""


def refuse_positions(target: ScoreTarget, shape: Sequence[int]) -> None:
    """Raise E452 if an output of this shape, batch included, has several positions: classes cannot be counted."""
    if not target.as_data and prod(shape[2:]) != 1:
        what = f"output '{target.tensor}' has {'x'.join(map(str, shape[1:]))} values instead of one per class"
        remedy = (
            "put the target on the layer with one value per class, or use pixel-wise labels"
            if target.location
            else "give a label of each position, y (N, H, W) of an .npz, or remove -test"
        )
        raise N2D2Error("E452", what, where=target.location or f"[{target.name}]", remedy=remedy)


class Scorer:
    """Scorer of one target, batch by batch; `result` returns the score so far.

    The best output is the first of the largest ones, as in the exported program. A single output is class 1 if its real value
    is above the target's threshold.
    """

    def __init__(self, target: ScoreTarget, classes: Sequence[str] = (), type: NumType = FLOAT64):
        """`classes`: names of the outputs. `type`: number type of stored integers; by default outputs are real values.

        Raises: E220 for a kind of target that is not scored.
        """
        if target.kind not in ("TargetScore", "TargetCompare"):
            what = f"Type={target.kind} is not supported by -test"
            raise N2D2Error("E220", what, where=target.location, remedy="use TargetScore, or export without -test")
        self.target = target
        _read_tensors.cache_clear()
        self._stored = None if target.stored is None else StoredTensors(*target.stored, target.location)
        self._classes = tuple(classes)
        self._type = type
        self._outputs: int | None = None
        self._names: list[str] = []
        self._parts: list[dict[str, np.ndarray]] = []
        self._next = 0
        self._confusion: np.ndarray | None = None
        self._shown: list[SegmentedSample] = []

    def add(
        self,
        outputs: np.ndarray,
        labels: np.ndarray | None,
        names: Sequence[str] = (),
        *,
        inputs: np.ndarray | None = None,
        indices: Sequence[int] | np.ndarray | None = None,
    ) -> None:
        """Score a batch.

        `outputs` (n, C) or (n, C, 1, 1); any shape for targets whose data are the target, with real `inputs` of the same size
        (from files for a TargetCompare). `labels` (n,) expected outputs, -1 for none; None without labels; (n, H, W), one per pixel,
        for `outputs` (n, C, h, w). `indices`: numbers of the samples in their set; by default they continue those of the
        previous batch.

        Raises: E451 a label beyond the outputs, E452 outputs with several positions, E453 outputs that are not finite.
        """
        stored = np.asarray(outputs)
        count = len(stored)
        where = self.target.location or f"[{self.target.name}]"
        if not np.all(np.isfinite(stored)):
            what = f"the outputs of '{self.target.tensor}' contain NaN or infinity"
            raise N2D2Error("E453", what, where=where, remedy="check the weights and the preprocessing")
        numbers = np.arange(self._next, self._next + count) if indices is None else np.asarray(indices, np.int64)
        self._next = int(numbers[-1]) + 1 if count else self._next
        texts = list(names) if len(names) else [str(number) for number in numbers]
        ids = np.full(count, -1, np.int64) if labels is None else np.asarray(labels, np.int64)
        if len(texts) != count or len(numbers) != count:
            raise InternalError("outputs, names and indices differ in number")
        if self._stored is not None:
            inputs = self._stored.read(numbers, stored.shape[1:])
        if ids.ndim == 3 and not self.target.as_data:
            part = self._count_positions(stored, ids, numbers, where)
        elif self.target.as_data:
            part = self._squared_errors(stored, ids if ids.ndim == 1 else np.full(count, -1, np.int64), inputs)
        else:
            refuse_positions(self.target, stored.shape)
            part = self._rank_outputs(stored.reshape(count, -1), ids, where)
        none, nothing = np.full(count, -1, np.int64), np.zeros((count, 0))
        unranked = {"labels": none, "best": nothing.astype(np.int64), "values": nothing, "ranks": none}
        self._names += texts
        self._parts.append({"indices": numbers, **unranked, **part})

    def _squared_errors(self, stored: np.ndarray, ids: np.ndarray, inputs: np.ndarray | None) -> dict[str, np.ndarray]:
        """Return the mean squared error of each sample, and the labels, to rate the detection."""
        if inputs is None or inputs.size != stored.size:
            raise InternalError(f"{self.target.name}: the inputs do not fit the outputs")
        real = self._type.dequantize(stored).reshape(len(stored), -1).astype(np.float64)
        return {"labels": ids, "errors": np.mean((real - inputs.reshape(len(stored), -1)) ** 2, axis=1)}

    def _rank_outputs(self, stored: np.ndarray, ids: np.ndarray, where: Location | str) -> dict[str, np.ndarray]:
        """Return best outputs, their values and the rank of the label, for stored (n, C)."""
        channels = stored.shape[1]
        self._outputs = channels
        labels = self._expected_outputs(ids, max(channels, 2), where)
        real = self._type.dequantize(stored).astype(np.float64)
        if channels == 1:
            best = (real > self.target.binary_threshold).astype(np.int64)
            ranks = np.where(labels < 0, -1, (best[:, 0] != labels).astype(np.int64))
            return {"labels": labels, "best": best, "values": real, "ranks": ranks, "margins": real[:, 0]}
        wide = stored.astype(np.int64 if stored.dtype.kind in "iu" else np.float64)
        best = np.argsort(-wide, axis=1, kind="stable")[:, : min(self.target.top_n, channels)]
        own = np.take_along_axis(wide, np.maximum(labels, 0)[:, None], axis=1)
        before = np.arange(channels) < labels[:, None]
        ranks = np.count_nonzero((wide > own) | ((wide == own) & before), axis=1)
        return {
            "labels": labels,
            "best": best,
            "values": np.take_along_axis(real, best, axis=1),
            "ranks": np.where(labels < 0, -1, ranks),
            "margins": real[:, 1] - real[:, 0],
        }

    def _count_positions(self, stored: np.ndarray, ids: np.ndarray, numbers: np.ndarray, where: Location | str) -> dict:
        """Count over the positions of outputs (n, C, h, w) for labels (n, H, W)."""
        stored = stored.reshape(*stored.shape[:2], *(stored.shape[2:] or (1, 1)))
        channels = stored.shape[1]
        self._outputs = channels
        classes = max(channels, 2)
        labels = fit_labels(self._expected_outputs(ids, classes, where), stored.shape[2:], classes)
        if channels == 1:
            estimated = (self._type.dequantize(stored[:, 0]) > self.target.binary_threshold).astype(np.int64)
        else:
            estimated = stored.argmax(axis=1)
        hits, counted, matrix = count_pixels(estimated, labels, classes)
        self._confusion = matrix if self._confusion is None else self._confusion + matrix
        for index in range(min(len(stored), MAX_SEGMENTED - len(self._shown))):
            estimates, expected = estimated[index].astype(np.int16), labels[index].astype(np.int16)
            self._shown.append(SegmentedSample(int(numbers[index]), estimates, expected))
        return {"hits": hits, "counted": counted}

    def _expected_outputs(self, labels: np.ndarray, outputs: int, where: Location | str) -> np.ndarray:
        """Return the expected outputs, -1 for ignored ones. Raise E451 for one beyond so many `outputs`."""
        if (most := int(labels.max(initial=-1))) >= outputs:
            what = f"a sample has label {most}, but '{self.target.tensor}' has {outputs} classes"
            raise N2D2Error("E451", what, where=where, remedy="correct the model, or set LabelsMapping")
        return np.maximum(labels, -1)

    def _class_names(self) -> tuple[str, ...]:
        outputs = range(0 if self._outputs is None else max(self._outputs, 2))
        return tuple(self._classes[index] if index < len(self._classes) else str(index) for index in outputs)

    @property
    def rate(self) -> float | None:
        """Top-1 accuracy so far, in percent; None before the first label."""
        counted = sum(int(np.count_nonzero(part["ranks"] >= 0)) for part in self._parts)
        hits = sum(int(np.count_nonzero(part["ranks"] == 0)) for part in self._parts)
        return 100.0 * hits / counted if counted else None

    def result(self) -> Score:
        """Return the score of all batches so far."""
        parts = self._parts or [_NOTHING]
        found = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        pixels = None
        if self._confusion is not None:
            pixels = Pixels(found["hits"], found["counted"], self._confusion, tuple(self._shown))
        is_binary = not self.target.as_data and pixels is None and len(self._class_names()) == 2
        return Score(
            self.target.name,
            self._class_names(),
            self.target.top_n,
            tuple(self._names),
            found["indices"],
            found["labels"],
            found["best"],
            found["values"],
            found["ranks"],
            found["errors"] if self.target.as_data else None,
            pixels,
            margins=found["margins"] if is_binary else None,
        )


_NOTHING = {
    **dict.fromkeys(("indices", "labels", "ranks"), np.zeros(0, np.int64)),
    **dict.fromkeys(("errors", "margins"), np.zeros(0)),
    "best": np.zeros((0, 1), np.int64),
    "values": np.zeros((0, 1)),
}
"""A batch without samples."""
