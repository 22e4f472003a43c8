"""Stored weights (`-w`): N2D2's .syntxt folders (one or two files per layer), .npz files, folders of .npy files."""

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.contracts.ini.recipes import LayerRecipe
from n2d2py.errors import Location, N2D2Error
from n2d2py.files import DamagedArray, marked_file_name, plain_file_name, read_npy, read_npz
from n2d2py.ini.schema import Key, Kind, Values

ROLES = {"weights": "weights", "biases": "bias", "scales": "scale", "means": "mean", "variances": "variance"}
"""Parameter roles in the graph by name in the files."""
QUANTIZED_WEIGHTS = ("quant_weights", "quant_weights_quant")
"""N2D2's names of quantized weights, without and with ApplyScaling."""
_LONGEST_NAME = 230
"""Limit of a file name without suffix, in bytes, as in common file systems."""


class WeightStore:
    """Arrays by layer and name ("weights", "biases", "scales", "means", "variances").

    `initial` collects the layers that keep initial values. `path` is a folder, an .npz file, or None for no weights. With
    `ignore_missing`, a missing array is a notice and the layer keeps its initial values; else it is E421. `recipes` collects
    the training settings of layers. If it is not None, layers are built with real weights, without quantizers.
    """

    def __init__(self, path: Path | None, *, ignore_missing: bool = False):
        self.path = path
        self.ignore_missing = ignore_missing
        self.initial: list[str] = []
        self.recipes: dict[str, LayerRecipe] | None = None
        self._arrays: dict[str, np.ndarray] = {}
        if path is not None and path.is_file():
            self._arrays = _read(path, ".npz")

    def load(
        self,
        layer: str,
        name: str,
        initial: np.ndarray,
        where: Location | None,
        rows: Sequence[int] = (),
        order: Sequence[int] = (),
    ) -> np.ndarray:
        """Return the stored array in the shape of `initial`, or `initial` if no weights are loaded.

        `rows`: number of weights of each output. Instead of <layer>_weights and <layer>_biases there may be one file
        <layer>.syntxt, with the weights of each output followed by its bias. `order`: axis of `initial` for each axis of the
        stored array. The returned values are in stored order. Raises E421 if it is missing, E422 if it is unreadable, E423 for
        another number of values or shape (axes of 1 aside), E424 for values that are not finite.
        """
        found = self._find(layer, name) or self._find_in_layer_file(layer, name, rows)
        if found is None and self.path is None:
            self.initial.append(layer)
            return initial
        if found is None:
            key = f"{layer}_{name}"
            if self.ignore_missing:
                log.notice("%s: '%s' is missing in %s; initial values are kept", where or layer, key, self.path)
                return initial
            remedy = "give the right weights with -w, keep initial values with -w-ignore, or use -w /dev/null"
            raise N2D2Error("E421", f"the weights '{key}' are missing in {self.path}", where=where, remedy=remedy)
        array, source = found
        if array.size != initial.size:
            needed = f"{initial.size} ({'x'.join(map(str, initial.shape))})"
            what = f"{source} contains {array.size} values, but layer '{layer}' requires {needed}"
            raise N2D2Error("E423", what, where=where, remedy="use the weights of this network")
        wanted = [initial.shape[axis] for axis in order] if order else initial.shape
        if not source.endswith(".syntxt") and _long_axes(array.shape) != _long_axes(wanted):
            what = f"{source} has shape {_text(array.shape)}, but layer '{layer}' requires {_text(wanted)}"
            remedy = "transpose the array into this axis order; WeightsExportFormat sets the order of the file"
            raise N2D2Error("E423", what, where=where, remedy=remedy)
        if array.dtype.kind not in "biuf":
            what = f"{source} contains {array.dtype} instead of numbers"
            raise N2D2Error("E422", what, where=where, remedy="store float32 values")
        if not np.isfinite(array).all():
            raise N2D2Error("E424", f"{source} contains NaN or infinity", where=where, remedy="check the training")
        return array.astype(np.float32).reshape(initial.shape)

    def _find_in_layer_file(self, layer: str, name: str, rows: Sequence[int]) -> tuple[np.ndarray, str] | None:
        if self.path is None or name not in ("weights", "biases"):
            return None
        places = (self.path / f"{stem}.syntxt" for stem in _file_stems(layer))
        file = next((file for file in places if file.is_file()), None)
        if file is None:
            return None
        values, weights = _read(file, ".syntxt"), sum(rows)
        if values.size == weights:
            return (values, str(file)) if name == "weights" else None
        if values.size != weights + len(rows):
            what = f"{file} contains {values.size} values, but layer '{layer}' has {weights} weights and {len(rows)} biases"
            raise N2D2Error("E423", what, where=Location(str(file)), remedy="use the weights of this network")
        is_bias = np.zeros(values.size, bool)
        is_bias[np.cumsum(np.array(rows) + 1) - 1] = True
        return values[is_bias if name == "biases" else ~is_bias], str(file)

    def set_default(self, layer: str, name: str, array: np.ndarray) -> None:
        """Use `array`, from a file with its own weights, unless an array is stored for that layer."""
        if not any(self.has(layer, each) for each in (name, *QUANTIZED_WEIGHTS)):
            self._arrays[f"{layer}_{name}"] = array

    def has(self, layer: str, name: str) -> bool:
        """True if an array is stored for the layer under that name."""
        return self._find(layer, name) is not None

    def _find(self, layer: str, name: str) -> tuple[np.ndarray, str] | None:
        key = f"{layer}_{name}"
        if key in self._arrays:
            return self._arrays[key], f"{self.path}:{key}"
        if self.path is None or not self.path.is_dir():
            return None
        for stem in _file_stems(layer):
            for ending in (".npy", ".syntxt"):
                file = self.path / f"{stem}_{name}{ending}"
                if file.is_file():
                    return _read(file, ending), str(file)
        return None


def _file_stems(layer: str) -> Iterator[str]:
    yield marked_file_name(layer)
    plain = plain_file_name(layer)
    if len(plain.encode()) < _LONGEST_NAME:
        yield plain


def _long_axes(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _text(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"


_READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    ".npz": (read_npz, "write it with numpy.savez"),
    ".npy": (read_npy, "write it with numpy.save"),
    ".syntxt": (
        lambda file: np.array([float(word) for word in file.read_text().split()], np.float32),
        "separate numbers by blanks",
    ),
}


def _read(file: Path, form: str) -> Any:
    reader, remedy = _READERS[form]
    try:
        return reader(file)
    except (ValueError, OSError, DamagedArray) as error:
        raise N2D2Error("E422", f"not a readable {form} file ({error})", where=Location(str(file)), remedy=remedy) from None


def open_weights(option: str | None, *, has_validation: bool, folder: Path, ignore_missing: bool) -> WeightStore:
    """Return the weights of `-w`: /dev/null for none, a folder or file; without -w, weights_validation or weights if present.

    Raises E420 if the path does not exist.
    """
    if option == "/dev/null":
        return WeightStore(None)
    if option is None:
        default = folder / ("weights_validation" if has_validation else "weights")
        return WeightStore(default if default.is_dir() else None, ignore_missing=ignore_missing)
    path = Path(option)
    if not path.exists():
        remedy = "give an existing folder or .npz file, or use -w /dev/null"
        raise N2D2Error("E420", f"the weights {option} do not exist", where=Location(option), remedy=remedy)
    if not path.is_file() and not path.is_dir() and not path.samefile(os.devnull):
        remedy = "give a folder or .npz file, or use -w /dev/null"
        raise N2D2Error("E422", "no regular file", where=Location(option), remedy=remedy)
    return WeightStore(path, ignore_missing=ignore_missing)


_TYPES = ("ConstantFiller", "NormalFiller", "UniformFiller", "HeFiller", "XavierFiller")

_COUNTS = ("FanIn", "Average", "FanOut")
_BLOCK = 1 << 20


def filler_keys(role: str) -> tuple[Key, ...]:
    """Return the filler keys of "Weights" or "Bias"."""
    p = f"{role}Filler"
    return (
        Key(p, Kind.ENUM, None, "Filler type of the initial values.", _TYPES),
        Key(f"{p}.Value", Kind.FLOAT, 0.0, "ConstantFiller: value."),
        Key(f"{p}.Mean", Kind.FLOAT, 0.0, "NormalFiller: mean."),
        Key(f"{p}.StdDev", Kind.FLOAT, 1.0, "NormalFiller: standard deviation.", minimum=0),
        Key(f"{p}.Min", Kind.FLOAT, 0.0, "UniformFiller: lower bound."),
        Key(f"{p}.Max", Kind.FLOAT, 1.0, "UniformFiller: upper bound."),
        Key(f"{p}.VarianceNorm", Kind.ENUM, "FanIn", "HeFiller, XavierFiller: count used for normalization.", _COUNTS),
        Key(f"{p}.Scaling", Kind.FLOAT, 1.0, "HeFiller, XavierFiller: scale factor."),
        Key(f"{p}.MeanNorm", Kind.FLOAT, 0.0, "HeFiller: mean, times the count of VarianceNorm."),
        Key(f"{p}.Distribution", Kind.ENUM, "Uniform", "XavierFiller: distribution.", ("Uniform", "Normal")),
    )


def fill(values: Values, role: str, shape: tuple[int, ...], *, seed: int, name: str) -> np.ndarray:
    """Return a float32 array of `shape` (outputs first) from the section's filler; NormalFiller(0, 0.05) by default."""
    p = f"{role}Filler"
    generator = np.random.Generator(np.random.PCG64([seed, zlib.crc32(f"{name}/{role}".encode())]))
    kind = values[p]
    fan_in, fan_out = prod(shape[1:]), shape[0] * prod(shape[2:])
    count = {"FanIn": fan_in, "FanOut": fan_out, "Average": (fan_in + fan_out) / 2}[values[f"{p}.VarianceNorm"]]
    scaling = values[f"{p}.Scaling"]
    if kind == "ConstantFiller":
        return np.full(shape, values[f"{p}.Value"], np.float32)
    if kind == "UniformFiller" or (kind == "XavierFiller" and values[f"{p}.Distribution"] == "Uniform"):
        bound = scaling * np.sqrt(3.0 / count)
        limits = (values[f"{p}.Min"], values[f"{p}.Max"]) if kind == "UniformFiller" else (-bound, bound)
        return _draw_blocks(partial(generator.uniform, *limits), shape)
    normal: dict[str | None, tuple[Any, Any]] = {
        None: (0.0, 0.05),
        "NormalFiller": (values[f"{p}.Mean"], values[f"{p}.StdDev"]),
        "HeFiller": (scaling * values[f"{p}.MeanNorm"] / count, scaling * np.sqrt(2.0 / count)),
        "XavierFiller": (0.0, scaling * np.sqrt(1.0 / count)),
    }
    return _draw_blocks(partial(generator.normal, *normal[kind]), shape)


def _draw_blocks(draw: Callable[[int], Any], shape: tuple[int, ...]) -> np.ndarray:
    """Return a float32 array drawn block by block, which avoids a float64 copy of a large layer."""
    result = np.empty(prod(shape), np.float32)
    for first in range(0, result.size, _BLOCK):
        block = result[first : first + _BLOCK]
        block[:] = draw(block.size)
    return result.reshape(shape)
