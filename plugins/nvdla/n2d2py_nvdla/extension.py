"""Extension operations: operators that the accelerator lacks, described for the CPU in a memory of the loadable.

A description is "N2DX", a version and the length of a JSON text as 32-bit integers, the text, and at multiples of 16 bytes
the constants that it names. The arithmetic is that of the operator's floating-point form on the real values of the buffers.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MAGIC = b"N2DX"
VERSION = 1
_TYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")


@dataclass(frozen=True)
class Port:
    """A tensor: its shape with batch as the operator sees it, what 1 of a byte stands for, the bytes that may result."""

    shape: tuple[int, ...]
    scale: float = 1.0
    low: int = -128
    high: int = 127


@dataclass(frozen=True)
class Extension:
    """An operator with its attributes and constants.

    Attributes:
        name: of the layer.
        operator: kind of the operator.
        attributes, activation: JSON values; {"function": kind, ...} stands for a function.
        constants: arrays by role.
        inputs, outputs: in the order of the buffers.
    """

    name: str
    operator: str
    attributes: dict[str, Any]
    activation: dict[str, Any] | None
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    constants: dict[str, np.ndarray] = field(default_factory=dict)


def pack_extension(extension: Extension) -> bytes:
    """Return the description of an operation."""
    arrays, at = {}, 0
    blocks = []
    for role, array in sorted(extension.constants.items()):
        data = np.ascontiguousarray(array).tobytes()
        arrays[role] = {"type": array.dtype.name, "shape": list(array.shape), "at": at}
        blocks.append(data + bytes(-len(data) % 16))
        at += len(blocks[-1])
    ports = {
        side: [
            {"shape": list(port.shape), "scale": port.scale, "low": port.low, "high": port.high}
            for port in getattr(extension, side)
        ]
        for side in ("inputs", "outputs")
    }
    text = json.dumps(
        {
            "name": extension.name,
            "operator": extension.operator,
            "attributes": extension.attributes,
            "activation": extension.activation,
            **ports,
            "constants": arrays,
        },
        sort_keys=True,
    ).encode()
    text += b" " * (-(12 + len(text)) % 16)
    return MAGIC + struct.pack("<II", VERSION, len(text)) + text + b"".join(blocks)


def unpack_extension(data: bytes) -> Extension:
    """Return the operation that `data` describes.

    Raises:
        ValueError: for bytes that are not a description, with the reason.
    """
    if data[:4] != MAGIC or len(data) < 12:
        raise ValueError("it does not begin with N2DX")
    version, size = struct.unpack_from("<II", data, 4)
    if version != VERSION or size > len(data) - 12:
        raise ValueError(f"version {version} with {size} bytes of text in {len(data)}")
    try:
        text = json.loads(data[12 : 12 + size].decode())
        constants = {role: _array(data, 12 + size, one) for role, one in text["constants"].items()}
        inputs, outputs = (
            tuple(
                Port(tuple(int(n) for n in one["shape"]), float(one["scale"]), int(one["low"]), int(one["high"]))
                for one in text[side]
            )
            for side in ("inputs", "outputs")
        )
        if not all(n > 0 for port in (*inputs, *outputs) for n in port.shape):
            raise ValueError("a tensor has no elements")
        return Extension(
            str(text["name"]), str(text["operator"]), dict(text["attributes"]), text["activation"], inputs, outputs, constants
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its text lacks or mistakes {error}") from None


def _array(data: bytes, base: int, one: dict[str, Any]) -> np.ndarray:
    if one["type"] not in _TYPES:
        raise ValueError(f"a constant of type {one['type']}")
    kind, shape = np.dtype(one["type"]), tuple(int(n) for n in one["shape"])
    count, at = int(np.prod(shape, dtype=object)), base + int(one["at"])
    if min(shape, default=1) < 0 or at < base or at + count * kind.itemsize > len(data):
        raise ValueError("a constant that leaves it")
    return np.frombuffer(data, kind, count, at).reshape(shape)
