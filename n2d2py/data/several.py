"""Stimuli of networks with several inputs: an .npz with an array for each, or a folder with a file for each.

| given | holds |
|---|---|
| FILE.npz | an array (N, ...) under the name of each input, and label ids under y if any |
| FOLDER with INPUT.npy files | an array (N, ...) in a file named after each input, and y.npy if any |
| FOLDER with .npz files | a file for each stimulus: an array (...) under the name of each input |

In file names, characters of inputs' names other than letters, digits, - and . may be written as _.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from n2d2py.data.arrays import check_type, open_npy, open_npz, plain
from n2d2py.data.database.numpy_file import label_ids
from n2d2py.data.given import GivenData, given_data
from n2d2py.data.preprocessing import scaled_bytes
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.files import file_names

_REMEDY = "give an .npz with an array for each input, or a folder with a file INPUT.npy for each"
Inputs = Mapping[str, tuple[int, ...]]
_Real = Callable[[str, np.ndarray], np.ndarray]
"""The real numbers of what is stored for an input, by its name."""


def open_several(
    source: GivenData | Path | str,
    inputs: Inputs,
    input_range: tuple[float, float] = (0.0, 1.0),
    integers: Collection[str] = (),
) -> Stimuli:
    """The stimuli for `inputs` (name -> shape without stimuli), each as one vector of all inputs in order.

    Bytes are scaled to the input range, as for one input, except those of the inputs of `integers`; everything else is taken as it is.

    Raises:
        N2D2Error: E401, E402 for files, E414 arrays that do not fit, E416 nothing there, E418 not finite.
    """

    def real(name: str, part: np.ndarray) -> np.ndarray:
        if part.dtype == np.uint8 and name not in integers:
            return scaled_bytes(plain(part), input_range)
        return plain(part).astype(np.float32)

    given = given_data(source)
    path = given.path
    if given.arrays is None and not path.exists():
        raise N2D2Error("E401", f"{path} does not exist", remedy=_REMEDY)
    if given.arrays is not None or (path.suffix == ".npz" and path.is_file()):
        return _stacked(replace(given, labels=None).read(), given, inputs, real)
    if not path.is_dir():
        raise N2D2Error("E414", f"{path} has no array for each of the {len(inputs)} inputs", remedy=_REMEDY)
    files = array_files(path, inputs)
    if any(file.is_file() for file in files.values()):
        missing = [file.name for file in files.values() if not file.is_file()]
        if missing:
            raise N2D2Error("E401", f"{path} lacks {', '.join(missing)}", remedy=_REMEDY)
        labels = {"y": open_npy(path / "y.npy")} if (path / "y.npy").is_file() else {}
        return _stacked({**labels, **{name: open_npy(file) for name, file in files.items()}}, given, inputs, real)
    singles = sorted(path.glob("*.npz"))
    if not singles:
        raise N2D2Error("E416", f"{path} holds neither {next(iter(files.values())).name} nor .npz files", remedy=_REMEDY)

    def load(index: int) -> np.ndarray:
        arrays = open_npz(singles[index])
        return _joined([_given(arrays, name, singles[index]) for name in inputs], inputs, singles[index].name, real)

    load(0)
    labels = np.full(len(singles), -1) if given.labels is None else label_ids(given.labels, np.empty((len(singles), 1)), path)
    return Stimuli([file.name for file in singles], labels, _shape(inputs), load)


def array_files(folder: Path, inputs: Iterable[str]) -> dict[str, Path]:
    """Where a folder holds the array of each input, by its name."""
    return {name: folder / f"{_file_name(name)}.npy" for name in inputs}


def _file_name(name: str) -> str:
    return next(iter(file_names([re.sub(r"[^\w.-]", "_", name)]).values()))


def _text(shape: tuple) -> str:
    return "x".join(map(str, shape))


def _shape(inputs: Inputs) -> tuple[int, ...]:
    return (sum(prod(shape) for shape in inputs.values()),)


def _given(arrays: Mapping[str, np.ndarray], name: str, path: Path) -> np.ndarray:
    if name not in arrays:
        raise N2D2Error(
            "E414",
            f"{path} has no array '{name}', but {', '.join(arrays)}",
            remedy="store an array under the name of each input",
        )
    check_type(arrays[name], f"{path.name}: {name}")
    return arrays[name]


def _stacked(arrays: Mapping[str, np.ndarray], source: GivenData, inputs: Inputs, real: _Real) -> Stimuli:
    """Arrays with an axis of stimuli in front; y has the labels, unless an input is called so."""
    path = source.path
    given = [_given(arrays, name, path) for name in inputs]
    count = len(given[0]) if given[0].ndim else 0
    for array, (name, shape) in zip(given, inputs.items(), strict=True):
        if array.ndim == 0 or len(array) != count:
            raise N2D2Error(
                "E414",
                f"{path}: {name} holds {len(array) if array.ndim else 'no'} stimuli, {next(iter(inputs))} {count}",
                remedy="store as many stimuli for each input",
            )
        _check(array.shape[1:], shape, f"{path}: {name}", _text(("N", *array.shape[1:])))
    if not count:
        raise N2D2Error("E416", f"{path} holds no stimulus", remedy="check the file")
    none = np.full(count, -1)
    held = source.labels if source.labels is not None else none if "y" in inputs else arrays.get("y", none)
    labels = np.asarray(held)
    if labels.size != count or labels.dtype.kind not in "iu":
        raise N2D2Error(
            "E414", f"{path}: y has no integer for each of the {count} stimuli", remedy="store one label id per stimulus"
        )
    return Stimuli(
        [f"{path.name}[{index}]" for index in range(count)],
        labels.reshape(-1),
        _shape(inputs),
        lambda index: _joined([array[index] for array in given], inputs, f"stimulus {index} of {path.name}", real),
    )


def _check(found: tuple[int, ...], shape: tuple[int, ...], where: str, text: str) -> None:
    """An input of an image has its shape; one of a vector may have any axes."""
    if found != shape and not (prod(found) == prod(shape) and (len(shape) == 1 or found == (1, *shape))):
        remedy = (
            "transpose it to channels, height, width" if found == (*shape[1:], shape[0]) else "store the input of the network"
        )
        raise N2D2Error("E414", f"{where} holds {text}, the network takes {_text(shape)}", remedy=remedy)


def _joined(parts: list[np.ndarray], inputs: Inputs, title: str, real: _Real) -> np.ndarray:
    vectors = []
    for part, (name, shape) in zip(parts, inputs.items(), strict=True):
        _check(part.shape, shape, f"{title}: {name}", _text(part.shape))
        vectors.append(real(name, part).reshape(-1))
        if not np.isfinite(vectors[-1]).all():
            raise N2D2Error("E418", f"{title}: {name} holds NaN or infinity", remedy="remove it or correct its values")
    return np.concatenate(vectors)
