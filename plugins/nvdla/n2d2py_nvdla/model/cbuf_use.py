"""Requirements of a convolution on the convolution buffer, from its descriptors."""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py_nvdla.config import HardwareConfig
from n2d2py_nvdla.firmware import BYTES, FP16
from n2d2py_nvdla.model.image import FEATURE
from n2d2py_nvdla.program import Operation


@dataclass(frozen=True)
class BufferUse:
    """Requirements of a convolution on the buffer.

    Attributes:
        name: of the operation, for messages.
        image: whether the data are pixels.
        data_banks, weight_banks: banks of each.
        entries: entries of a line.
        lines: lines that are loaded.
        wanted: lines that the sequencer waits for; as many as loaded, but for reused data.
        released: lines that it releases.
        kernels, group: kernels, and how many are read together.
        kernel_bytes: bytes that the sequencer reads of a kernel.
        counted_bytes: bytes of a kernel as the loader counts them.
        weight_bytes: bytes of weights that are loaded.
        address: byte of memory where the weights begin, for the size of transactions.
        reuse_data, reuse_weights: the last convolution left them for this one.
        keep_data, keep_weights: they are left for the next one.
    """

    name: str
    image: bool
    data_banks: int
    weight_banks: int
    entries: int
    lines: int
    wanted: int
    released: int
    kernels: int
    group: int
    kernel_bytes: int
    counted_bytes: int
    weight_bytes: int
    address: int
    reuse_data: bool = False
    reuse_weights: bool = False
    keep_data: bool = False
    keep_weights: bool = False

    @property
    def layout(self) -> tuple[bool, int, int]:
        """Values that must be equal for data or weights of the last convolution to be reused."""
        return self.image, self.data_banks, self.weight_banks


def buffer_use(config: HardwareConfig, operation: Operation, address: int = 0) -> BufferUse:
    """Return the requirements in the descriptors of a convolution; `address` is the byte where its weights begin."""
    op, surface = operation.op, operation.surface
    precision = min(int(op["out_precision"]), FP16)
    read = int(op["kernel_width_csc"]) * int(op["kernel_height_csc"]) * int(op["kernel_channel_csc"]) * BYTES[precision]
    return BufferUse(
        operation.name,
        int(op["data_format"]) < FEATURE,
        int(op["data_bank"]),
        int(op["weight_bank"]),
        int(op["entry_per_slice"]),
        int(surface["src_data"]["height"]),
        int(op["input_height_csc"]),
        int(op["release"]),
        int(surface["dst_data"]["channel"]),
        config.kernel_group(precision),
        read,
        int(op["bytes_per_kernel"]),
        int(surface["weight_data"]["size"]),
        address,
        bool(op["data_reuse"]),
        bool(op["weight_reuse"]),
        bool(op["skip_data_rls"]),
        bool(op["skip_weight_rls"]),
    )
