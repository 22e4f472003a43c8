"""Stimuli of networks with several inputs: an .npz with an array for each, or a folder with a file for each.

| given | content | |---|---| | FILE.npz | an array (N, ...) under the name of each input, and label ids under y if any | |
FOLDER with INPUT.npy files | an array (N, ...) in a file named after each input, and y.npy if any | | FOLDER with .npz files |
a file for each stimulus: an array (...) under the name of each input |

In file names, characters of input names other than letters, digits, - and . may be written as _.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
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
    known = {name: ports.get(name) or plain_port((1, *shape)) for name, shape in inputs.items()}
    reader = _Reader(data, inputs, known, input_range, integers)
    path = data.path
    if data.arrays is None and not path.exists():
        raise N2D2Error("E401", f"{path} does not exist", remedy=_REMEDY)
    if data.arrays is not None or (path.suffix == ".npz" and path.is_file()):
        return reader.stack(replace(data, labels=None).read())
    if not path.is_dir():
        raise N2D2Error("E414", f"{path} does not contain an array for each of the {len(inputs)} inputs", remedy=_REMEDY)
    files = array_files(path, inputs)
    missing = [file.name for file in files.values() if not file.is_file()]
    if len(missing) == len(files):
        return reader.singles()
    if missing:
        raise N2D2Error("E401", f"{path} lacks {', '.join(missing)}", remedy=_REMEDY)
    labels = {"y": open_npy(path / "y.npy")} if (path / "y.npy").is_file() else {}
    return reader.stack({**labels, **{name: open_npy(file) for name, file in files.items()}})


def array_files(folder: Path, inputs: Iterable[str]) -> dict[str, Path]:
    """Return the array file of each input in a folder, by input name."""
    plain = {name: re.sub(r"[^\w.-]", "_", name) for name in inputs}
    return {name: folder / f"{file_names([text])[text]}.npy" for name, text in plain.items()}


@dataclass(frozen=True)
class _Reader:
    """The arguments of `open_multi_input`, with a port for each input."""

    data: InputData
    inputs: Inputs
    ports: Mapping[str, FilePort]
    input_range: tuple[float, float]
    integers: Collection[str]

    def singles(self) -> Stimuli:
        """Return the stimuli of a folder with an .npz file for each."""
        path, given = self.data.path, self.data.labels
        files = sorted(path.glob("*.npz"))
        if not files:
            first = next(iter(array_files(path, self.inputs).values()))
            raise N2D2Error("E416", f"{path} contains neither {first.name} nor .npz files", remedy=_REMEDY)

        def load(index: int) -> np.ndarray:
            arrays, file = open_npz(files[index]), files[index]
            return self._concat({name: self._samples(arrays, name, file, True)[0] for name in self.inputs}, file.name)

        load(0)
        labels = np.full(len(files), -1) if given is None else label_ids(given, np.empty((len(files), 1)), path)
        return Stimuli([file.name for file in files], labels, self._shape, load)

    def stack(self, arrays: Mapping[str, np.ndarray]) -> Stimuli:
        """Return arrays with a leading axis of stimuli; y has the labels, unless an input has this name."""
        path = self.data.path
        samples = {name: self._samples(arrays, name, path) for name in self.inputs}
        first = next(iter(samples))
        count = len(samples[first])
        for name, array in samples.items():
            if len(array) != count:
                what = f"{path}: {name} has {len(array)} samples, but {first} has {count}"
                raise N2D2Error("E414", what, remedy="store the same number of samples for each input")
        if not count:
            raise N2D2Error("E416", f"{path} contains no sample", remedy="store at least one sample")
        none = np.full(count, -1)
        labels = self.data.labels
        if labels is None:
            labels = none if "y" in self.inputs else np.asarray(arrays.get("y", none))
        if labels.size != count or labels.dtype.kind not in "iu":
            what = f"{path}: y is not an integer for each of the {count} samples"
            raise N2D2Error("E414", what, remedy="store one label id per sample")

        def load(index: int) -> np.ndarray:
            return self._concat({name: array[index] for name, array in samples.items()}, f"stimulus {index} of {path.name}")

        return Stimuli(self.data.titles(count), labels.reshape(-1), self._shape, load)

    @property
    def _shape(self) -> tuple[int, ...]:
        return (sum(prod(shape) for shape in self.inputs.values()),)

    def _samples(self, arrays: Mapping[str, np.ndarray], name: str, path: Path, is_single: bool = False) -> np.ndarray:
        """Return the array of an input, in the file's axes, as samples of the network input; `is_single`: a batch axis is optional.

        Samples of a vector input may have any axes.
        """
        if name not in arrays:
            what = f"{path} contains no array '{name}', only {', '.join(arrays)}"
            raise N2D2Error("E414", what, remedy="store an array under the name of each input")
        array, shape, port = arrays[name], self.inputs[name], self.ports[name]
        check_type(array, f"{path.name}: {name}")
        if is_single and not (array.ndim and len(array) == 1 and array.shape[1:] == port.sample):
            array = array[None]
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

    def _concat(self, parts: Mapping[str, np.ndarray], title: str) -> np.ndarray:
        vectors = []
        for name, part in parts.items():
            vectors.append(self._real(name, part).reshape(-1))
            if not np.isfinite(vectors[-1]).all():
                what = f"{title}: {name} contains NaN or infinity"
                raise N2D2Error("E418", what, remedy="remove the sample, or correct its values")
        return np.concatenate(vectors)

    def _real(self, name: str, part: np.ndarray) -> np.ndarray:
        kind = self.ports[name].type
        if kind is not None and part.dtype.kind in "iu":
            check_integers(part, kind, name)
            return kind.dequantize(part)
        if part.dtype == np.uint8 and name not in self.integers:
            return scale_bytes(to_sample_type(part), self.input_range)
        return to_sample_type(part).astype(np.float32)
