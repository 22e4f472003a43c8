"""Stimuli of networks with several inputs: an .npz with an array for each, or a folder with a file for each.

| given | content |
|---|---|
| FILE.npz | an array (N, ...) under the name of each input, and label ids under y if any |
| FOLDER | an array (N, ...) in a file INPUT.npy named after each input, and y.npy if any |

In file names, characters of input names other than letters, digits, - and . may be written as _.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from types import MappingProxyType

import numpy as np

from n2d2py.data.decode import check_integers, check_type, open_npy, to_sample_type
from n2d2py.data.input_data import InputData, open_data
from n2d2py.data.preprocessing import scale_bytes
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.files import file_names
from n2d2py.graph.port import FilePort, plain_port

_REMEDY = "give a .npz with an array for each input, or a folder with a file INPUT.npy for each"
Inputs = Mapping[str, tuple[int, ...]]


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
    data = open_data(source)
    path, arrays = data.path, _read_arrays(data, inputs)
    known = {name: ports.get(name) or plain_port((1, *shape)) for name, shape in inputs.items()}
    samples = {name: _samples(arrays, name, path, shape, known[name]) for name, shape in inputs.items()}
    first, count = next((name, len(array)) for name, array in samples.items())
    for name, array in samples.items():
        if len(array) != count:
            what = f"{path}: {name} has {len(array)} samples, but {first} has {count}"
            raise N2D2Error("E414", what, remedy="store the same number of samples for each input")
    if not count:
        raise N2D2Error("E416", f"{path} contains no sample", remedy="store at least one sample")
    labels = data.labels
    if labels is None:
        none = np.full(count, -1)
        labels = none if "y" in inputs else np.asarray(arrays.get("y", none))
    if labels.size != count or labels.dtype.kind not in "iu":
        what = f"{path}: y is not an integer for each of the {count} samples"
        raise N2D2Error("E414", what, remedy="store one label id per sample")

    def load(index: int) -> np.ndarray:
        vectors = []
        for name, array in samples.items():
            values = _real(name, array[index], known[name], None if name in integers else input_range)
            if not np.isfinite(values).all():
                what = f"stimulus {index} of {path.name}: {name} contains NaN or infinity"
                raise N2D2Error("E418", what, remedy="remove the sample, or correct its values")
            vectors.append(values.reshape(-1))
        return np.concatenate(vectors)

    shape = (sum(prod(shape) for shape in inputs.values()),)
    return Stimuli(data.titles(count), labels.reshape(-1), shape, load)


def _read_arrays(data: InputData, inputs: Inputs) -> Mapping[str, np.ndarray]:
    """Return the arrays by input; y has the labels among them."""
    path = data.path
    if not data.is_folder:
        return replace(data, labels=None).read()
    files = array_files(path, inputs)
    if missing := [file.name for file in files.values() if not file.is_file()]:
        code = "E416" if len(missing) == len(files) else "E401"
        raise N2D2Error(code, f"{path} lacks {', '.join(missing)}", remedy=_REMEDY)
    labels = {"y": open_npy(path / "y.npy")} if (path / "y.npy").is_file() else {}
    return {**labels, **{name: open_npy(file) for name, file in files.items()}}


def array_files(folder: Path, inputs: Iterable[str]) -> dict[str, Path]:
    """Return the array file of each input in a folder, by input name."""
    plain = {name: re.sub(r"[^\w.-]", "_", name) for name in inputs}
    return {name: folder / f"{file_names([text])[text]}.npy" for name, text in plain.items()}


def _samples(arrays: Mapping[str, np.ndarray], name: str, path: Path, shape: tuple[int, ...], port: FilePort) -> np.ndarray:
    """Return the array of an input, in the file's axes, as samples of the network input.

    Samples of a vector input may have any axes.
    """
    if name not in arrays:
        what = f"{path} contains no array '{name}', only {', '.join(arrays)}"
        raise N2D2Error("E414", what, remedy="store an array under the name of each input")
    array = arrays[name]
    check_type(array, f"{path.name}: {name}")
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


def _real(name: str, part: np.ndarray, port: FilePort, byte_range: tuple[float, float] | None) -> np.ndarray:
    """Return real values; bytes without a type are scaled to `byte_range`, if any."""
    if port.type is not None and part.dtype.kind in "iu":
        check_integers(part, port.type, name)
        return port.type.dequantize(part)
    if part.dtype == np.uint8 and byte_range is not None:
        return scale_bytes(to_sample_type(part), byte_range)
    return to_sample_type(part).astype(np.float32)
