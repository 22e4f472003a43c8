"""The two files of an ncnn network: layers and blobs as text or binary (.param), weights (.bin).

The formats are those of ncnn's wiki, `param-and-model-file-structure`.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.naming import FreshNames

MAGIC = 7767517
_TAGS = {"<f4": 0, "<f2": 0x01306B47, "i1": 0x000D4B38}
"""Tags before the weights in a file, by their type."""
_ARRAY, _END = -23300, -233
_NAME_LENGTH = 200
"""Largest length of a name in bytes, without suffixes; ncnn reads 255."""

_TYPES = """
    AbsVal=0 Concat=5 Convolution=6 Crop=7 Deconvolution=8 ELU=11 Flatten=14 InnerProduct=15 Input=16 LRN=18
    MemoryData=19 Pooling=21 ReLU=26 Reshape=27 Scale=29 Sigmoid=30 Softmax=32 Split=33 TanH=35 BinaryOp=40 UnaryOp=41
    ConvolutionDepthWise=42 Padding=43 Permute=47 Interp=50 DeconvolutionDepthWise=51 ShuffleChannel=52 Clip=54
    HardSigmoid=65 SELU=66 HardSwish=67 Noop=68 PixelShuffle=69 Mish=71 Swish=73 Softplus=77 GELU=80
    """
TYPES = {name: int(number) for name, number in (pair.split("=") for pair in _TYPES.split())}
"""Layer numbers in a binary .param file (layer_type_enum.h of ncnn, to which new layers are appended)."""

Value = int | float | Sequence[int] | Sequence[float]


@dataclass(frozen=True)
class NcnnLayer:
    """A line of the .param file.

    Attributes:
        parameters: by number; parameters with default values may be absent.
        weights: data of the layer in the .bin file, in the order of reading.
    """

    type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: Mapping[int, Value] = field(default_factory=dict)
    weights: tuple[bytes, ...] = ()


class NetworkFile:
    """A network under construction: each blob has one producer and finally one consumer."""

    def __init__(self) -> None:
        self._layers: list[NcnnLayer] = []
        self._names = FreshNames(key=identifier)
        self._blobs = FreshNames(key=identifier)

    def blob(self, name: str) -> str:
        """Return a new blob, named after `name`."""
        return _unique(name, self._blobs)

    def layer(
        self,
        kind: str,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        parameters: Mapping[int, Value] | None = None,
        weights: Iterable[bytes] = (),
    ) -> None:
        """Add a layer; a duplicate name gets a number."""
        ordered = dict(sorted((parameters or {}).items()))
        self._layers.append(NcnnLayer(kind, _unique(name, self._names), tuple(inputs), tuple(outputs), ordered, tuple(weights)))

    def finish(self, outputs: Sequence[str]) -> NcnnNetwork:
        """Return the network; blobs with several consumers, or one and an output, get a Split, as ncnn requires."""
        readers = Counter(name for layer in self._layers for name in layer.inputs)
        waiting: dict[str, list[str]] = {}
        layers: list[NcnnLayer] = []
        for layer in self._layers:
            inputs = tuple(waiting[name].pop(0) if name in waiting else name for name in layer.inputs)
            shared = [name for name in layer.outputs if readers[name] + (name in outputs) > 1]
            producers = {name: self.blob(f"{name}_shared") if name in outputs else name for name in shared}
            layers.append(replace(layer, inputs=inputs, outputs=tuple(producers.get(name, name) for name in layer.outputs)))
            for name in shared:
                waiting[name] = [self.blob(f"{name}_splitncnn_{number}") for number in range(readers[name])]
                parts = (*([name] if name in outputs else []), *waiting[name])
                layers.append(NcnnLayer("Split", _unique(f"split_{name}", self._names), (producers[name],), parts))
        return NcnnNetwork(tuple(layers))


@dataclass(frozen=True)
class NcnnNetwork:
    """The layers in execution order."""

    layers: tuple[NcnnLayer, ...]

    @property
    def blobs(self) -> list[str]:
        """Return the blobs in the order of their numbers."""
        return [name for layer in self.layers for name in layer.outputs]

    @property
    def types(self) -> list[str]:
        return list(dict.fromkeys(layer.type for layer in self.layers))

    def text(self) -> str:
        """Return the .param file."""
        lines = [str(MAGIC), f"{len(self.layers)} {len(self.blobs)}"]
        for layer in self.layers:
            words = [f"{layer.type:<24}", f"{layer.name:<24}", str(len(layer.inputs)), str(len(layer.outputs))]
            words += [*layer.inputs, *layer.outputs]
            for parameter in layer.parameters.items():
                number, *values = map(_word_text, _parameter_words(*parameter))
                words.append(f"{number}={','.join(values)}")
            lines.append(" ".join(words))
        return "\n".join(lines) + "\n"

    def binary(self) -> bytes:
        """Return the .param.bin file: the same without names."""
        numbers = {name: number for number, name in enumerate(self.blobs)}
        parts = [struct.pack("<3i", MAGIC, len(self.layers), len(numbers))]
        for layer in self.layers:
            ports = [numbers[name] for name in (*layer.inputs, *layer.outputs)]
            parameters = [word for parameter in layer.parameters.items() for word in _parameter_words(*parameter)]
            words = [TYPES[layer.type], len(layer.inputs), len(layer.outputs), *ports, *parameters, _END]
            parts += map(_word_bytes, words)
        return b"".join(parts)

    def weights(self) -> bytes:
        """Return the .bin file."""
        return b"".join(part for layer in self.layers for part in layer.weights)


def real_numbers(values: np.ndarray | Sequence[float]) -> bytes:
    """Return float32 bytes of biases and scales."""
    return np.ascontiguousarray(values, "<f4").tobytes()


def tagged_weights(values: np.ndarray, kind: str) -> bytes:
    """Return the bytes of weights of a type ("<f4", "<f2" or "i1"), padded to whole words, after its tag."""
    data = np.ascontiguousarray(values, kind).tobytes()
    return struct.pack("<I", _TAGS[kind]) + data + bytes(-len(data) % 4)


def _unique(name: str, fresh: FreshNames) -> str:
    """Return an unused name without blanks, also unique as a C identifier."""
    stem = re.sub(r"\s", "_", name).encode()[:_NAME_LENGTH].decode(errors="ignore") or "_"
    return fresh(stem)


def identifier(name: str) -> str:
    """Return the name as part of a C identifier."""
    return re.sub(r"[^0-9A-Za-z_]", "_", name)


def _parameter_words(number: int, value: Value) -> list[int | float]:
    """Return a parameter as the numbers of a binary file: its number, then the value, or the length and the values of an array."""
    return [number, value] if isinstance(value, (int, float)) else [_ARRAY - number, len(value), *value]


def _word_text(value: int | float) -> str:
    """Return the text of a number; floats have a decimal point, by which ncnn recognizes them."""
    return format(value, ".8e") if isinstance(value, float) else str(value)


def _word_bytes(value: int | float) -> bytes:
    return struct.pack("<f" if isinstance(value, float) else "<i", value)
