"""Stimuli of networks with several inputs: an .npz with an array for each, or a folder with a file for each.

| given | content | |---|---| | FILE.npz | an array (N, ...) under the name of each input, and label ids under y if any | |
FOLDER with INPUT.npy files | an array (N, ...) in a file named after each input, and y.npy if any | | FOLDER with .npz files |
a file for each stimulus: an array (...) under the name of each input |

In file names, characters of input names other than letters, digits, - and . may be written as _.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from types import MappingProxyType

import numpy as np

from n2d2py.data.database.arrays import label_ids
from n2d2py.data.decode import check_integers, check_type, open_npy, open_npz, to_sample_type
from n2d2py.data.input_data import InputData, open_data
from n2d2py.data.preprocessing import scale_bytes
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.files import file_names
from n2d2py.graph.port import FilePort, plain_port

_REMEDY = "give a .npz with an array for each input, or a folder with a file INPUT.npy for each"
Inputs = Mapping[str, tuple[int, ...]]
_ToReal = Callable[[str, np.ndarray], np.ndarray]
"""Function from the name and the stored values of an input to its real values."""


def open_multi_input(
    source: InputData | Path | str,
    inputs: Inputs,
    input_range: tuple[float, float] = (0.0, 1.0),
    integers: Collection[str] = (),
    ports: Mapping[str, FilePort] = MappingProxyType({}),
) -> Stimuli:
    """Return the stimuli for `inputs` (name -> shape of a stimulus), each as one vector of all inputs in order.

    Bytes are scaled to the input range, as for one input, except for the inputs in `integers`; all other values stay unchanged.
    `ports`: inputs as declared by the file; their integer types are used.

    Raises: E401, E402 for files, E414 arrays that do not fit, E416 no data, E418 not finite.
    """
    ports = {name: ports.get(name) or plain_port((1, *shape)) for name, shape in inputs.items()}

    def real(name: str, part: np.ndarray) -> np.ndarray:
        kind = ports[name].type
        if kind is not None and part.dtype.kind in "iu":
            check_integers(part, kind, name)
            return kind.dequantize(part)
        if part.dtype == np.uint8 and name not in integers:
            return scale_bytes(to_sample_type(part), input_range)
        return to_sample_type(part).astype(np.float32)

    data = open_data(source)
    path = data.path
    if data.arrays is None and not path.exists():
        raise N2D2Error("E401", f"{path} does not exist", remedy=_REMEDY)
    if data.arrays is not None or (path.suffix == ".npz" and path.is_file()):
        return _stack_samples(replace(data, labels=None).read(), data, inputs, ports, real)
    if not path.is_dir():
        raise N2D2Error("E414", f"{path} does not contain an array for each of the {len(inputs)} inputs", remedy=_REMEDY)
    files = array_files(path, inputs)
    missing = [file.name for file in files.values() if not file.is_file()]
    if len(missing) == len(files):
        return _open_singles(data, inputs, ports, real)
    if missing:
        raise N2D2Error("E401", f"{path} lacks {', '.join(missing)}", remedy=_REMEDY)
    labels = {"y": open_npy(path / "y.npy")} if (path / "y.npy").is_file() else {}
    return _stack_samples({**labels, **{name: open_npy(file) for name, file in files.items()}}, data, inputs, ports, real)


def _open_singles(data: InputData, inputs: Inputs, ports: Mapping[str, FilePort], real: _ToReal) -> Stimuli:
    path = data.path
    singles = sorted(path.glob("*.npz"))
    if not singles:
        first = next(iter(array_files(path, inputs).values()))
        raise N2D2Error("E416", f"{path} contains neither {first.name} nor .npz files", remedy=_REMEDY)

    def load(index: int) -> np.ndarray:
        arrays = open_npz(singles[index])
        parts = []
        for name, shape in inputs.items():
            part = _input_array(arrays, name, singles[index])
            part = part if part.ndim and len(part) == 1 and part.shape[1:] == ports[name].sample else part[None]
            parts.append(_check_samples(part, name, shape, ports[name], singles[index])[0])
        return _concat_inputs(parts, inputs, singles[index].name, real)

    load(0)
    labels = np.full(len(singles), -1) if data.labels is None else label_ids(data.labels, np.empty((len(singles), 1)), path)
    return Stimuli([file.name for file in singles], labels, _shape(inputs), load)


def array_files(folder: Path, inputs: Iterable[str]) -> dict[str, Path]:
    """Return the array file of each input in a folder, by input name."""
    plain = {name: re.sub(r"[^\w.-]", "_", name) for name in inputs}
    return {name: folder / f"{file_names([text])[text]}.npy" for name, text in plain.items()}


def _shape(inputs: Inputs) -> tuple[int, ...]:
    return (sum(prod(shape) for shape in inputs.values()),)


def _input_array(arrays: Mapping[str, np.ndarray], name: str, path: Path) -> np.ndarray:
    if name not in arrays:
        what = f"{path} contains no array '{name}', only {', '.join(arrays)}"
        raise N2D2Error("E414", what, remedy="store an array under the name of each input")
    check_type(arrays[name], f"{path.name}: {name}")
    return arrays[name]


def _stack_samples(
    arrays: Mapping[str, np.ndarray], source: InputData, inputs: Inputs, ports: Mapping[str, FilePort], real: _ToReal
) -> Stimuli:
    """Return arrays with a leading axis of stimuli; y has the labels, unless an input has this name."""
    path = source.path
    samples = [
        _check_samples(_input_array(arrays, name, path), name, shape, ports[name], path) for name, shape in inputs.items()
    ]
    count = len(samples[0])
    for array, name in zip(samples, inputs, strict=True):
        if len(array) != count:
            what = f"{path}: {name} has {len(array)} samples, but {next(iter(inputs))} has {count}"
            raise N2D2Error("E414", what, remedy="store the same number of samples for each input")
    if not count:
        raise N2D2Error("E416", f"{path} contains no sample", remedy="store at least one sample")
    none = np.full(count, -1)
    held = source.labels if source.labels is not None else none if "y" in inputs else arrays.get("y", none)
    labels = np.asarray(held)
    if labels.size != count or labels.dtype.kind not in "iu":
        what = f"{path}: y is not an integer for each of the {count} samples"
        raise N2D2Error("E414", what, remedy="store one label id per sample")
    return Stimuli(
        source.titles(count),
        labels.reshape(-1),
        _shape(inputs),
        lambda index: _concat_inputs([array[index] for array in samples], inputs, f"stimulus {index} of {path.name}", real),
    )


def _check_samples(array: np.ndarray, name: str, shape: tuple[int, ...], port: FilePort, path: Path) -> np.ndarray:
    """Return an array in the file's axes as samples of the network input; samples of a vector input may have any axes."""
    samples = port.samples(array, (1, *shape))
    if samples is None and array.ndim and len(port.dims) == 2 and prod(array.shape[1:]) == prod(shape):
        samples = array.reshape(len(array), *shape)
    if samples is None:
        text, wanted = ("x".join(map(str, sizes)) for sizes in (("N", *array.shape[1:]), port.sample))
        is_transposed = sorted(array.shape[1:]) == sorted(shape) and len(shape) == 3
        axes = "height, width, channels" if port.channels_last else "channels, height, width"
        remedy = f"transpose it to {axes}" if is_transposed else "store the input of the network"
        raise N2D2Error("E414", f"{path}: {name} has {text}, but the model takes {wanted}", remedy=remedy)
    return samples


def _concat_inputs(parts: list[np.ndarray], inputs: Inputs, title: str, real: _ToReal) -> np.ndarray:
    vectors = []
    for part, name in zip(parts, inputs, strict=True):
        vectors.append(real(name, part).reshape(-1))
        if not np.isfinite(vectors[-1]).all():
            what = f"{title}: {name} contains NaN or infinity"
            raise N2D2Error("E418", what, remedy="remove the sample, or correct its values")
    return np.concatenate(vectors)
