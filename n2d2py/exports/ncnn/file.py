"""The two files of a network of ncnn: layers and blobs as text or binary (.param), the numbers of the layers (.bin).

The formats are those of ncnn's wiki, `param-and-model-file-structure`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.naming import numbered_name

MAGIC = 7767517
_HALF, _INT8 = 0x01306B47, 0x000D4B38
"""Tag before 16-bit and 8-bit numbers; before float32 it is 0."""
_ARRAY, _END = -23300, -233
_NAME_LENGTH = 200
"""Bytes of a name, without what is added to it; ncnn reads 255."""

_TYPES = """
    AbsVal=0 Concat=5 Convolution=6 Crop=7 Deconvolution=8 ELU=11 Flatten=14 InnerProduct=15 Input=16 LRN=18
    MemoryData=19 Pooling=21 ReLU=26 Reshape=27 Scale=29 Sigmoid=30 Softmax=32 Split=33 TanH=35 BinaryOp=40 UnaryOp=41
    ConvolutionDepthWise=42 Padding=43 Permute=47 Interp=50 DeconvolutionDepthWise=51 ShuffleChannel=52 Clip=54
    HardSigmoid=65 SELU=66 HardSwish=67 Noop=68 PixelShuffle=69 Mish=71 Swish=73 Softplus=77 GELU=80
    """
TYPES = {name: int(number) for name, number in (pair.split("=") for pair in _TYPES.split())}
"""The number of a layer in a binary .param file (layer_type_enum.h of ncnn, to whose end new layers are added)."""

Value = int | float | Sequence[int] | Sequence[float]


@dataclass(frozen=True)
class NcnnLayer:
    """A line of the .param file.

    Attributes:
        parameters: by number; a parameter that has its default may be left out.
        weights: what the layer has in the .bin file, in the order of reading.
    """

    type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: Mapping[int, Value] = field(default_factory=dict)
    weights: tuple[bytes, ...] = ()


class NetworkFile:
    """A network being written: each blob has one writer, and in the end one reader."""

    def __init__(self) -> None:
        self._layers: list[NcnnLayer] = []
        self._names: set[str] = set()
        self._blobs: set[str] = set()

    def blob(self, name: str) -> str:
        """A new blob, named `name` or much like it."""
        return _fresh(name, self._blobs)

    def layer(
        self,
        kind: str,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        parameters: Mapping[int, Value] | None = None,
        weights: Iterable[bytes] = (),
    ) -> None:
        """Add a layer; the name of another layer is given a number."""
        given = dict(sorted((parameters or {}).items()))
        self._layers.append(NcnnLayer(kind, _fresh(name, self._names), tuple(inputs), tuple(outputs), given, tuple(weights)))

    def finished(self, outputs: Sequence[str]) -> NcnnNetwork:
        """The network. Blobs that several layers read, or that are an output too, are split, as ncnn demands."""
        readers: dict[str, int] = {}
        for layer in self._layers:
            for name in layer.inputs:
                readers[name] = readers.get(name, 0) + 1
        waiting: dict[str, list[str]] = {}
        layers: list[NcnnLayer] = []
        for layer in self._layers:
            taken = tuple(waiting[name].pop(0) if name in waiting else name for name in layer.inputs)
            shared = [name for name in layer.outputs if readers.get(name, 0) + (name in outputs) > 1]
            made = {name: self.blob(f"{name}_shared") if name in outputs else name for name in shared}
            layers.append(replace(layer, inputs=taken, outputs=tuple(made.get(name, name) for name in layer.outputs)))
            for name in shared:
                waiting[name] = [self.blob(f"{name}_splitncnn_{number}") for number in range(readers[name])]
                parts = (*([name] if name in outputs else []), *waiting[name])
                layers.append(NcnnLayer("Split", _fresh(f"split_{name}", self._names), (made[name],), parts))
        return NcnnNetwork(tuple(layers))


@dataclass(frozen=True)
class NcnnNetwork:
    """The layers in the order of their execution."""

    layers: tuple[NcnnLayer, ...]

    @property
    def blobs(self) -> list[str]:
        """The blobs in the order of their numbers."""
        return [name for layer in self.layers for name in layer.outputs]

    @property
    def types(self) -> list[str]:
        """The types of layers, each once."""
        return list(dict.fromkeys(layer.type for layer in self.layers))

    def text(self) -> str:
        """The .param file."""
        lines = [str(MAGIC), f"{len(self.layers)} {len(self.blobs)}"]
        for layer in self.layers:
            words = [f"{layer.type:<24}", f"{layer.name:<24}", str(len(layer.inputs)), str(len(layer.outputs))]
            words += [*layer.inputs, *layer.outputs]
            words += [_assignment(number, value) for number, value in layer.parameters.items()]
            lines.append(" ".join(words))
        return "\n".join(lines) + "\n"

    def binary(self) -> bytes:
        """The .param.bin file: the same without names."""
        numbers = {name: number for number, name in enumerate(self.blobs)}
        parts = [struct.pack("<3i", MAGIC, len(self.layers), len(numbers))]
        for layer in self.layers:
            ports = [numbers[name] for name in (*layer.inputs, *layer.outputs)]
            head = [TYPES[layer.type], len(layer.inputs), len(layer.outputs), *ports]
            parts.append(struct.pack(f"<{len(head)}i", *head))
            parts += [_packed(number, value) for number, value in layer.parameters.items()]
            parts.append(struct.pack("<i", _END))
        return b"".join(parts)

    def weights(self) -> bytes:
        """The .bin file."""
        return b"".join(part for layer in self.layers for part in layer.weights)


def real_numbers(values: np.ndarray | Sequence[float]) -> bytes:
    """float32 as biases and scales are stored."""
    return np.ascontiguousarray(values, "<f4").tobytes()


def real_weights_of(values: np.ndarray, half: bool) -> bytes:
    """Real weights: what they are, then they themselves, in whole words."""
    if not half:
        return struct.pack("<I", 0) + real_numbers(values)
    return struct.pack("<I", _HALF) + _whole(np.ascontiguousarray(values, "<f2").tobytes())


def integer_weights(values: np.ndarray) -> bytes:
    """Weights of int8."""
    return struct.pack("<I", _INT8) + _whole(np.ascontiguousarray(values, np.int8).tobytes())


def _whole(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _fresh(name: str, taken: set[str]) -> str:
    """A name without blanks that is not taken yet, not even as an identifier of C."""
    stem = re.sub(r"\s", "_", name).encode()[:_NAME_LENGTH].decode(errors="ignore") or "_"
    found = numbered_name(stem, lambda given: identifier(given) in taken)
    taken.add(identifier(found))
    return found


def identifier(name: str) -> str:
    """The name as part of an identifier of C."""
    return re.sub(r"[^0-9A-Za-z_]", "_", name)


def _assignment(number: int, value: Value) -> str:
    if isinstance(value, (int, float)):
        return f"{number}={_number(value)}"
    return f"{_ARRAY - number}=" + ",".join([str(len(value)), *map(_number, value)])


def _number(value: int | float) -> str:
    """Real numbers have a point, by which ncnn knows them."""
    return format(value, ".8e") if isinstance(value, float) else str(value)


def _packed(number: int, value: Value) -> bytes:
    if isinstance(value, (int, float)):
        return struct.pack("<i", number) + _word(value)
    return struct.pack("<2i", _ARRAY - number, len(value)) + b"".join(map(_word, value))


def _word(value: int | float) -> bytes:
    return struct.pack("<f" if isinstance(value, float) else "<i", value)
