"""The descriptors of tasks: operations of the accelerator, operations of the CPU."""

from __future__ import annotations

import numpy as np

from n2d2py_nvdla import firmware
from n2d2py_nvdla.export.hardware import ConstantBlob, EmuLayer, HardwareBuffer, HwLayer, HwOp, Lowered, Region
from n2d2py_nvdla.export.schedule import dependency_graph
from n2d2py_nvdla.extension import pack_extension
from n2d2py_nvdla.firmware import CUBES, EXTENSION, INT8, Abi

POOL_ALIGNMENT = 256
_SOFTMAX = 1


class Pools:
    """Where cubes lie: memories of constants, of activations, of inputs and outputs.

    Attributes:
        constants: bytes of the memory of constants; equal ones are stored once.
        bound: memory of each input and output.
        places: number of each place that the older firmware needs an address for.
    """

    def __init__(self, abi: Abi, lowered: Lowered, weights: int, activations: int):
        self.abi, self.lowered = abi, lowered
        self._weights, self._activations = weights, activations
        self.constants = bytearray()
        self.bound: dict[HardwareBuffer, int] = {}
        self.places: dict[tuple[int, int], int] = {}
        self._stored: dict[bytes, int] = {}

    @property
    def new(self) -> bool:
        """True if data cubes have an offset of their own."""
        return "offset" in (self.abi.cube.names or ())

    def close(self) -> int:
        """Fill the constants up; their bytes."""
        self.constants.extend(bytes(-len(self.constants) % POOL_ALIGNMENT or (0 if self.constants else POOL_ALIGNMENT)))
        return len(self.constants)

    def place_of(self, cube: ConstantBlob | Region) -> tuple[int, int]:
        """(memory, byte) of a cube."""
        if isinstance(cube, ConstantBlob):
            if cube.data not in self._stored:
                self.constants.extend(bytes(-len(self.constants) % POOL_ALIGNMENT))
                self._stored[cube.data] = len(self.constants)
                self.constants.extend(cube.data)
            return self._weights, self._stored[cube.data]
        if cube.buffer in self.bound:
            return self.bound[cube.buffer], cube.begin
        return self._activations, cube.buffer.offset + cube.begin

    def address(self, cube: ConstantBlob | Region) -> tuple[int, int]:
        """(address index, offset) of a cube; for the older firmware the index counts from the first place."""
        place = self.place_of(cube)
        return place if self.new else (self.places.setdefault(place, len(self.places)), 0)


class DlaWork:
    """Layers of the accelerator that follow each other."""

    interface = 1

    def __init__(self, pools: Pools, number: int, layers: list[HwLayer]):
        self._pools, self._layers = pools, layers
        self.version = pools.abi.firmware
        ops = [op for layer in layers for chain in layer.chains for op in chain]
        self.operations = len(ops)
        self._luts: list[bytes] = []
        self._listed = b"".join(self._operation(op) for op in ops)
        self._surfaces = [(op.engine, self._surface(op)) for op in ops]
        self.names = ["addr0", "dep_graph", "op_list", "surf_list", *(["lut_list"] if self._luts else [])]

    def _operation(self, op: HwOp) -> bytes:
        record = op.op.copy()
        if op.lut is not None:
            data = op.lut.tobytes()
            if data not in self._luts:
                self._luts.append(data)
            record["lut_index"] = self._luts.index(data)
        return record.tobytes() + bytes(firmware.OPERATION_SIZE - record.itemsize)

    def _surface(self, op: HwOp) -> np.ndarray:
        surface = np.zeros((), self._pools.abi.surfaces[op.engine])
        for name in CUBES[op.engine]:
            self._cube(surface[name], op.cubes.get(name))
        return surface

    def _cube(self, record: np.ndarray, cube: object) -> None:
        record["type"], record["address"] = 2, -1
        if isinstance(cube, tuple):
            lowered = self._pools.lowered
            record["channel"], record["height"], record["width"] = c, h, w = cube[1]
            atom = lowered.config.atom  # firmware checks the strides of what a convolution passes on
            record["line_stride"], record["surf_stride"] = w * atom, h * w * atom
            record["size"] = -(-c // lowered.config.lanes(lowered.precision)) * h * w * atom
            return
        if not isinstance(cube, (ConstantBlob, Region)):
            return
        index, offset = self._pools.address(cube)
        record["type"], record["address"] = 0, index
        if self._pools.new:
            record["offset"] = offset
        if isinstance(cube, ConstantBlob):
            record["size"] = len(cube.data)
            for name, value in zip(("width", "height", "channel", "line_stride", "surf_stride"), cube.cube, strict=True):
                record[name] = value
            return
        record["size"] = cube.size
        record["channel"], record["height"], record["width"] = cube.shape
        record["line_stride"], record["surf_stride"] = cube.line, cube.surface
        if cube.shape[1:] == (1, 1) and cube.shape[0] <= cube.buffer.lanes:  # one atom: hardware wants it packed
            record["line_stride"] = record["surf_stride"] = cube.buffer.atom

    def written(self, first: int, shift: int) -> list[bytes]:
        """Return the blobs of `names`, whose memories begin with `first`; addresses of places begin with `shift`."""
        commons, heads = dependency_graph(self._layers)
        packed = bytearray()
        for engine, surface in self._surfaces:
            if not self._pools.new:
                for name in CUBES[engine]:
                    if surface[name]["address"] >= 0:
                        surface[name]["address"] += shift
            packed += surface.tobytes() + bytes(firmware.SURFACE_SIZE - surface.itemsize)
        network = np.zeros((), firmware.NETWORK)
        values = {
            "dependency_graph_index": first + 1,
            "operation_desc_index": first + 2,
            "surface_desc_index": first + 3,
            "lut_data_index": first + 4 if self._luts else -1,
            "roi_array_index": -1,
            "surface_index": -1,
            "stat_list_index": -1,
            "op_head": heads,
            "num_rois": 1,
            "num_operations": self.operations,
            "num_luts": len(self._luts),
            "num_addresses": shift + len(self._pools.places),
        }
        for name, value in values.items():
            network[name] = value
        lists = [network.tobytes(), commons.tobytes(), self._listed, bytes(packed)]
        return lists + ([b"".join(self._luts)] if self._luts else [])


class EmuWork:
    """Layers of the CPU that follow each other: NVIDIA's softmax, extension operations."""

    interface = 2
    version = (0, 0, 1)

    def __init__(self, pools: Pools, number: int, layers: list[EmuLayer]):
        self._pools, self._layers = pools, layers
        self.operations = len(layers)
        self._descriptions = [pack_extension(layer.extension) for layer in layers if layer.extension is not None]
        self.names = ["addr0", "op_list", "op_buf_list", *(f"extension{i}" for i in range(len(self._descriptions)))]
        self._buffers = [(layer, [self._buffer(region) for region in (*layer.sources, *layer.results)]) for layer in layers]

    def _buffer(self, region: Region) -> np.ndarray:
        one = np.zeros((), self._pools.abi.emu_buffer)
        one["address"], offset = self._pools.address(region)
        integer = region.buffer.precision == INT8
        if self._pools.new:
            one["offset"] = offset
        one["format"] = (1 if region.buffer.atom == 8 else 0) if integer else (3 if self._pools.new else 2)
        one["size"], one["line_stride"], one["surf_stride"] = region.size, region.buffer.line, region.buffer.surface
        one["channel"], one["height"], one["width"] = region.shape
        return one

    def written(self, first: int, shift: int) -> list[bytes]:
        """Return the blobs of `names`, whose memories begin with `first`; addresses of places begin with `shift`."""
        abi, count = self._pools.abi, len(self._layers)
        ops = bytearray()
        slots = [bytes(firmware.EMU_SLOT)] * (2 * count)
        descriptions = 0
        for i, (layer, buffers) in enumerate(self._buffers):
            packed = []
            for one in buffers:
                if not self._pools.new:
                    one["address"] += shift
                packed.append(one.tobytes() + bytes(firmware.EMU_SLOT - one.itemsize))
            if layer.extension is None:
                record = np.zeros((), abi.emu_softmax)
                record["op_type"], record["axis"] = _SOFTMAX, 1
                if self._pools.new:
                    record["input_scale_factor"], record["output_scale_factor"] = layer.source_scale, layer.scale
                slots[2 * i : 2 * i + 2] = packed
            else:
                record = np.zeros((), abi.emu_extension)
                record["op_type"], record["description"] = EXTENSION, first + 3 + descriptions
                record["first_buffer"], record["inputs"], record["outputs"] = len(slots), len(layer.sources), len(layer.results)
                descriptions += 1
                slots += packed
            ops += record.tobytes() + bytes(abi.emu_stride - record.itemsize)
        network = np.array([first + 1, first + 2, count], "<i2").tobytes()
        return [network + bytes(firmware.EMU_SLOT - 6), bytes(ops), b"".join(slots), *self._descriptions]
