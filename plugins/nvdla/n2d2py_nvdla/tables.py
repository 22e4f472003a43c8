"""The tables of a loadable file (FlatBuffers, namespace `nvdla.loadable`), in the order of their field ids.

The kind of a field is in its metadata: an integer type of NumPy, "version" (struct of three bytes), "string",
"bytes", "strings", "[u2]" and the like for vectors of integers, or a table class for a vector of tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

IDENTIFIER = b"NVDA"
"""File identifier at byte 4; absent in files of NVIDIA's unit tests."""

FLAG_ALLOC, FLAG_SET, FLAG_INPUT, FLAG_OUTPUT = 1, 2, 4, 8
"""Bits of Memory.flags."""

DLA, EMU = 1, 2
"""Interfaces of tasks and blobs: the accelerator, and the emulator on the CPU."""

NAMES: dict[str, dict[int, str]] = {
    "interface": {0: "NONE", 1: "DLA1", 2: "EMU1"},
    "domain": {0: "SYSTEM", 1: "SRAM"},
    "op": {0: "WAIT", 1: "SIGNAL"},
    "data_type": {1: "FLOAT", 2: "HALF", 3: "INT16", 4: "INT8"},
    "data_format": {1: "NCHW", 2: "NHWC", 3: "NCxHWx"},
    "data_category": {0: "IMAGE", 1: "WEIGHT", 2: "FEATURE", 3: "PLANAR", 4: "BIAS"},
    "pixel_format": {36: "FEATURE", 37: "FEATURE_X8"},
    "reloc_type": {1: "LINE_STRIDE", 2: "SURFACE_STRIDE"},
}
"""Names of the values of enumerated fields, for the dump."""


def _of(kind: Any) -> Any:
    if kind in ("string",):
        return field(default="", metadata={"kind": kind})
    if kind == "bytes":
        return field(default=b"", metadata={"kind": kind})
    if kind == "version":
        return field(default=(0, 0, 0), metadata={"kind": kind})
    if isinstance(kind, type) or kind == "strings" or kind.startswith("["):
        return field(default_factory=list, metadata={"kind": kind})
    return field(default=0, metadata={"kind": kind})


@dataclass
class Blob:
    """Bytes by name: weights, descriptors."""

    name: str = _of("string")
    size: int = _of("u8")
    interface: int = _of("u4")
    sub_interface: int = _of("u4")
    version: tuple[int, int, int] = _of("version")
    data: bytes = _of("bytes")


@dataclass
class Memory:
    """A piece of memory and the blobs (`contents`, at `offsets`) that it is filled with."""

    id: int = _of("u2")
    domain: int = _of("u1")
    flags: int = _of("u2")
    size: int = _of("u8")
    alignment: int = _of("u4")
    contents: list[str] = _of("strings")
    offsets: list[int] = _of("[u8]")
    bind_id: int = _of("u2")
    tensor_desc_id: int = _of("u2")


@dataclass
class Event:
    """A synchronisation of tasks; NVIDIA's runtime ignores it."""

    id: int = _of("u2")
    type: int = _of("u1")
    target: int = _of("u2")
    val: int = _of("u4")
    op: int = _of("u1")


@dataclass
class Task:
    """A piece of work for one interface; its descriptors name memory by position in `address_list`."""

    id: int = _of("u2")
    interface: int = _of("u4")
    instance: int = _of("i2")
    address_list: list[int] = _of("[u2]")
    pre_actions: list[int] = _of("[u2]")
    post_actions: list[int] = _of("[u2]")


@dataclass
class Address:
    """A place in a memory."""

    id: int = _of("u2")
    mem_id: int = _of("u2")
    offset: int = _of("u8")
    size: int = _of("u8")


@dataclass
class Submit:
    """Tasks that are handed over together."""

    id: int = _of("u2")
    task_id: list[int] = _of("[u2]")


@dataclass
class TensorDesc:
    """The shape and layout of an input or output; strides in bytes: element, line, surface."""

    name: str = _of("string")
    id: int = _of("u2")
    mem_id: int = _of("u2")
    size: int = _of("u8")
    offset: int = _of("u8")
    data_format: int = _of("u1")
    data_type: int = _of("u1")
    data_category: int = _of("u1")
    pixel_format: int = _of("u1")
    pixel_mapping: int = _of("u1")
    n: int = _of("i4")
    c: int = _of("i4")
    h: int = _of("i4")
    w: int = _of("i4")
    stride_0: int = _of("u4")
    stride_1: int = _of("u4")
    stride_2: int = _of("u4")
    stride_3: int = _of("u4")
    stride_4: int = _of("u4")
    stride_5: int = _of("u4")
    stride_6: int = _of("u4")
    stride_7: int = _of("u4")


@dataclass
class Reloc:
    """A stride in a descriptor that changes when the application changes a tensor's strides."""

    address_id: int = _of("u2")
    write_id: int = _of("u2")
    offset: int = _of("u8")
    interface: int = _of("u4")
    sub_interface: int = _of("u4")
    reloc_type: int = _of("u1")


@dataclass
class Loadable:
    """The root table."""

    version: tuple[int, int, int] = _of("version")
    task_list: list[Task] = _of(Task)
    memory_list: list[Memory] = _of(Memory)
    address_list: list[Address] = _of(Address)
    event_list: list[Event] = _of(Event)
    blobs: list[Blob] = _of(Blob)
    tensor_desc_list: list[TensorDesc] = _of(TensorDesc)
    reloc_list: list[Reloc] = _of(Reloc)
    submit_list: list[Submit] = _of(Submit)
