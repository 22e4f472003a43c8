"""The hardware configurations, from the spec files of NVIDIA's hardware, and which of them a loadable is for."""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.errors import N2D2Error, suggest
from n2d2py_nvdla import firmware
from n2d2py_nvdla.firmware import BYTES, CONV, FP16, INT8, INT16
from n2d2py_nvdla.program import Operation, Program


@dataclass(frozen=True)
class HardwareConfig:
    """One configuration.

    Attributes:
        atom: bytes of an atom, the unit of feature memory.
        channels, kernels: elements that the convolution multiplies at once (int8).
        banks, depth, width: the convolution buffer: banks of `depth` entries of `width` bytes.
        precisions: what it computes with.
        has_y: the SDP's third operand and its look-up table.
        has_bdma, has_rubik: engines for copies and for rearranging.
        alignment: bytes that addresses and strides are multiples of.
    """

    name: str
    atom: int
    channels: int
    kernels: int
    banks: int
    depth: int
    width: int
    precisions: tuple[int, ...] = (INT8,)
    has_y: bool = False
    has_bdma: bool = False
    has_rubik: bool = False

    @property
    def alignment(self) -> int:
        """Bytes that addresses and strides are multiples of."""
        return self.atom

    @property
    def bank_bytes(self) -> int:
        """Bytes of one bank of the convolution buffer."""
        return self.depth * self.width

    def lanes(self, precision: int) -> int:
        """Return the elements of an atom."""
        return self.atom // BYTES[precision]

    def kernel_group(self, precision: int) -> int:
        """Return the kernels that are computed together, the outermost unit of weight memory."""
        return self.kernels if precision == INT8 else self.kernels // 2


CONFIGS = {
    one.name: one
    for one in (
        HardwareConfig("nv_full", 32, 64, 32, 16, 256, 128, (INT8, INT16, FP16), True, True, True),
        HardwareConfig("nv_large", 32, 64, 32, 16, 512, 64, has_y=True),
        HardwareConfig("nv_medium_1024_full", 32, 32, 32, 32, 512, 32, has_y=True),
        HardwareConfig("nv_medium_512", 16, 32, 16, 32, 512, 32),
        HardwareConfig("nv_small_256", 8, 32, 8, 32, 128, 32),
        HardwareConfig("nv_small_256_full", 8, 32, 8, 32, 128, 32, has_y=True),
        HardwareConfig("nv_small", 8, 8, 8, 32, 512, 8),
    )
}
"""By name; NVIDIA's runtime knows nv_full, nv_large and nv_small."""


def config(name: str) -> HardwareConfig:
    """Return the configuration of that name.

    Raises:
        N2D2Error: E907 for an unknown name.
    """
    if name not in CONFIGS:
        raise N2D2Error("E907", f"the NVDLA configuration '{name}' is unknown", remedy=suggest(name, CONFIGS))
    return CONFIGS[name]


def entries_per_slice(one: HardwareConfig, width: int, channels: int, precision: int) -> int:
    """Return the entries of the convolution buffer that one line of a feature cube takes."""
    atoms = -(-channels * BYTES[precision] // one.atom)
    per_entry = one.width // one.atom
    full, rest = divmod(atoms, per_entry)
    return full * width + (width if rest == 3 else -(-rest * width // per_entry))


_LINE_BUFFER = 7 * 1024 * 8
"""Bits of the pooling engine's line buffer."""
_OVERLAPS = (1, 1, 2, 4, 4, 8, 8, 8, 8)
"""Lines that it holds by the windows that overlap above each other."""


def widest_pool(one: HardwareConfig, precision: int, kernel: int, stride: int) -> int:
    """Return the positions of a line that the pooling engine forms at once, for windows of `kernel` lines every `stride` lines."""
    bits = one.kernel_group(precision) * (14 if precision == INT8 else 28)
    return _LINE_BUFFER // (_OVERLAPS[min(-(-kernel // max(stride, 1)), 8)] * bits)


def config_of(program: Program) -> HardwareConfig:
    """Return the configuration that a loadable was made for: by the atom of its cubes, then by the entries per slice.

    nv_full is preferred where several fit, then nv_large, then nv_small.
    """
    atoms: dict[int, int] = {}
    precisions = set()
    entries = []
    for _, operation in program.dla_operations():
        if operation.engine == firmware.BDMA:
            continue
        surface = operation.surface
        for name in ("src_data", "dst_data"):
            cube = surface[name]
            if int(cube["type"]) < 2 and int(cube["width"]) and not _is_image(operation):
                precisions.add(_precision(operation))
                atom = int(cube["line_stride"]) // int(cube["width"])
                atoms[atom] = atoms.get(atom, 0) + 1
        if operation.engine == CONV and not _is_image(operation):
            entries.append(
                (
                    int(operation.op["entry_per_slice"]),
                    int(operation.op["input_width_csc"]),
                    int(operation.op["input_channel_csc"]),
                    min(int(operation.op["in_precision"]), FP16),
                )
            )
    tensors = [tensor for _, tensor in (*program.inputs, *program.outputs) if tensor is not None]
    small = any(tensor.pixel_format == 37 for tensor in tensors)
    known = {atom: count for atom, count in atoms.items() if atom in (8, 16, 32)}
    atom = 8 if small else max(known, key=lambda one: (known[one], one)) if known else 32
    if not precisions <= {INT8}:
        return CONFIGS["nv_full"]
    fitting = [
        one for one in (*(CONFIGS[name] for name in ("nv_full", "nv_large", "nv_small")), *CONFIGS.values()) if one.atom == atom
    ]
    for one in fitting:
        if all(entries_per_slice(one, width, channels, precision) == found for found, width, channels, precision in entries):
            return one
    return fitting[0]


def precisions_of(program: Program) -> set[int]:
    """Return the precisions that the operations of a loadable compute in; copies of memory have none."""
    return {_precision(operation) for _, operation in program.dla_operations() if operation.engine != firmware.BDMA}


def _is_image(operation: Operation) -> bool:
    return operation.engine == CONV and int(operation.op["data_format"]) < 36


def _precision(operation: Operation) -> int:
    name = {firmware.CONV: "out_precision", firmware.SDP: "src_precision", firmware.CDP: "in_precision"}
    return int(operation.op[name.get(operation.engine, "precision")])
