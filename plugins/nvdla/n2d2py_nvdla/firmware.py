"""The firmware's structures in its two ABIs, as NumPy record types with the natural packing of C.

"v10" (firmware 0.10 and 0.11) and "v12" (0.12) differ in the data cube alone, which v12 gives an `offset`, and in
the structures of the emulator. Sizes and offsets are compared with NVIDIA's headers by tests/nvdla.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

BDMA, CONV, SDP, PDP, CDP, RUBIK = range(6)
ENGINES = ("BDMA", "CONV", "SDP", "PDP", "CDP", "RUBIK")
COMPLETED, PROGRAMMED, ENABLED, WEIGHTS_DONE, DATA_DONE = 1, 2, 3, 4, 5
EVENTS = {0: "-", 1: "COMPLETED", 2: "PROGRAMMED", 3: "ENABLED", 4: "CDMA_WT_DONE", 5: "CDMA_DT_DONE"}

INT8, INT16, FP16 = 0, 1, 2
BYTES = (1, 2, 2)
"""Bytes of an element by precision."""

OPERATION_SIZE, SURFACE_SIZE = 116, 644
"""Bytes of an entry of the operation list and of the surface list."""

EMU_SLOT = 256
"""Bytes of the slot of an emulator task's network descriptor and of each buffer descriptor."""


EXTENSION = 128
"""Type of an emulator operation that NVIDIA's runtime does not have; its description names the operator."""


def descriptor(array: np.ndarray) -> np.void:
    """Return the descriptor in an array of one, without axes."""
    return array.reshape(1)[0]


def has_field(descriptor: np.void | np.ndarray, name: str) -> bool:
    """True if the descriptor, of one of the ABIs, has a field of that name."""
    return name in (descriptor.dtype.names or ())


def _record(*fields: tuple) -> np.dtype:
    return np.dtype(list(fields), align=True)


def _packed(*fields: tuple) -> np.dtype:
    return np.dtype(list(fields))


NETWORK = _record(
    ("operation_desc_index", "<i2"),
    ("surface_desc_index", "<i2"),
    ("dependency_graph_index", "<i2"),
    ("lut_data_index", "<i2"),
    ("roi_array_index", "<i2"),
    ("surface_index", "<i2"),
    ("stat_list_index", "<i2"),
    ("reserved1", "<i2"),
    ("op_head", "<i2", (6,)),
    ("num_rois", "<u2"),
    ("num_operations", "<u2"),
    ("num_luts", "<u2"),
    ("num_addresses", "<u2"),
    ("input_layer", "<i2"),
    ("dynamic_roi", "u1"),
    ("reserved0", "u1"),
)
CONSUMER = _record(("index", "<i2"), ("event", "u1"), ("res", "u1"))
COMMON = _record(
    ("index", "<i2"),
    ("roi_index", "i1"),
    ("op_type", "u1"),
    ("dependency_count", "u1"),
    ("reserved0", "u1", (3,)),
    ("consumers", CONSUMER, (6,)),
    ("fused_parent", CONSUMER),
)
CVT = _record(("scale", "<i2"), ("truncate", "u1"), ("enable", "u1"), ("offset", "<i4"))
CONV_OP = _record(
    ("conv_mode", "u1"),
    ("data_reuse", "u1"),
    ("weight_reuse", "u1"),
    ("skip_data_rls", "u1"),
    ("skip_weight_rls", "u1"),
    ("reserved0", "u1"),
    ("entry_per_slice", "<u2"),
    ("data_format", "u1"),
    ("pixel_mapping", "u1"),
    ("fetch_grain", "<u2"),
    ("reserved_b", "u1", (8,)),
    ("batch", "u1"),
    ("weight_format", "u1"),
    ("data_bank", "u1"),
    ("weight_bank", "u1"),
    ("batch_stride", "<u4"),
    ("post_extension", "u1"),
    ("pixel_override", "u1"),
    ("release", "<u2"),
    ("input_width_csc", "<u2"),
    ("input_height_csc", "<u2"),
    ("input_channel_csc", "<u2"),
    ("kernel_width_csc", "<u2"),
    ("kernel_height_csc", "<u2"),
    ("kernel_channel_csc", "<u2"),
    ("input_width_cmac", "<u2"),
    ("input_height_cmac", "<u2"),
    ("bytes_per_kernel", "<u4"),
    ("mean_ry", "<i2"),
    ("mean_gu", "<i2"),
    ("mean_bv", "<i2"),
    ("mean_ax", "<i2"),
    ("mean_format", "u1"),
    ("conv_stride_x", "u1"),
    ("conv_stride_y", "u1"),
    ("pad_x_left", "u1"),
    ("pad_x_right", "u1"),
    ("pad_y_top", "u1"),
    ("pad_y_bottom", "u1"),
    ("dilation_x", "u1"),
    ("dilation_y", "u1"),
    ("reserved2", "u1", (2,)),
    ("pra_truncate", "u1"),
    ("in_precision", "u1"),
    ("out_precision", "u1"),
    ("pad_val", "<i2"),
    ("in_cvt", CVT),
    ("out_cvt", CVT),
)
SDP_CVT = _record(("alu_cvt", CVT), ("mul_cvt", CVT))
SDP_OP = _record(
    ("enable", "u1"),
    ("alu_type", "u1"),
    ("type", "u1"),
    ("mode", "u1"),
    ("act", "u1"),
    ("shift_value", "u1"),
    ("truncate", "u1"),
    ("precision", "u1"),
    ("alu_operand", "<i4"),
    ("mul_operand", "<i4"),
    ("cvt", SDP_CVT),
)
SDP_DESC = _record(
    ("src_precision", "u1"),
    ("dst_precision", "u1"),
    ("lut_index", "<i2"),
    ("out_cvt", CVT),
    ("conv_mode", "u1"),
    ("batch_num", "u1"),
    ("reserved0", "<u2"),
    ("batch_stride", "<u4"),
    ("x1_op", SDP_OP),
    ("x2_op", SDP_OP),
    ("y_op", SDP_OP),
)
PDP_OP = _record(
    ("partial_in_width_first", "<u2"),
    ("partial_in_width_mid", "<u2"),
    ("partial_in_width_last", "<u2"),
    ("partial_width_first", "<u2"),
    ("partial_width_mid", "<u2"),
    ("partial_width_last", "<u2"),
    ("split_num", "u1"),
    ("pool_mode", "u1"),
    ("pool_width", "u1"),
    ("pool_height", "u1"),
    ("stride_x", "u1"),
    ("stride_y", "u1"),
    ("pad_left", "u1"),
    ("pad_right", "u1"),
    ("pad_top", "u1"),
    ("pad_bottom", "u1"),
    ("precision", "u1"),
    ("reserved0", "u1"),
    ("padding_value", "<i4", (7,)),
)
CDP_OP = _record(
    ("in_precision", "u1"),
    ("out_precision", "u1"),
    ("lut_index", "<i2"),
    ("in_cvt", CVT),
    ("out_cvt", CVT),
    ("local_size", "u1"),
    ("bypass_sqsum", "u1"),
    ("bypass_out_mul", "u1"),
    ("reserved0", "u1"),
)
RUBIK_OP = _record(("mode", "u1"), ("precision", "u1"), ("stride_x", "u1"), ("stride_y", "u1"))
BDMA_OP = _record(("num_transfers", "<u2"), ("reserved0", "<u2"))
TRANSFER = _record(
    ("source_address", "<i2"),
    ("destination_address", "<i2"),
    ("line_size", "<u4"),
    ("line_repeat", "<u4"),
    ("source_line", "<u4"),
    ("destination_line", "<u4"),
    ("surface_repeat", "<u4"),
    ("source_surface", "<u4"),
    ("destination_surface", "<u4"),
)
BDMA_SURFACE = _record(
    ("source_type", "u1"), ("destination_type", "u1"), ("num_transfers", "<u2"), ("transfers", TRANSFER, (20,))
)
LUT_OFFSET = _record(("value", "i1"), ("reserved0", "u1"))
SLOPE = _record(("scale", "<i2"), ("shifter", "i1"), ("reserved0", "u1"))
LUT = _packed(
    ("linear_exp_table", "<i2", (65,)),
    ("linear_only_table", "<i2", (257,)),
    ("linear_exp_offset", LUT_OFFSET),
    ("linear_only_offset", LUT_OFFSET),
    ("linear_exp_start", "<u8"),
    ("linear_exp_end", "<u8"),
    ("linear_only_start", "<u8"),
    ("linear_only_end", "<u8"),
    ("linear_exp_underflow_slope", SLOPE),
    ("linear_exp_overflow_slope", SLOPE),
    ("linear_only_underflow_slope", SLOPE),
    ("linear_only_overflow_slope", SLOPE),
    ("hybrid_priority", "u1"),
    ("underflow_priority", "u1"),
    ("overflow_priority", "u1"),
    ("method", "u1"),
)
OPERATIONS = (BDMA_OP, CONV_OP, SDP_DESC, PDP_OP, CDP_OP, RUBIK_OP)
"""Record of an operation descriptor by engine."""

CUBES = (
    (),
    ("weight_data", "wmb_data", "wgs_data", "src_data", "dst_data"),
    ("src_data", "x1_data", "x2_data", "y_data", "dst_data"),
    ("src_data", "dst_data"),
    ("src_data", "dst_data"),
    ("src_data", "dst_data"),
)
"""Names of the data cubes of a surface descriptor by engine."""


def _cube(with_offset: bool) -> np.dtype:
    offset = (("offset", "<u4"),) if with_offset else ()
    return _record(
        ("type", "<u2"),
        ("address", "<i2"),
        *offset,
        ("size", "<u4"),
        ("width", "<u2"),
        ("height", "<u2"),
        ("channel", "<u2"),
        ("reserved0", "<u2"),
        ("line_stride", "<u4"),
        ("surf_stride", "<u4"),
        ("plane_stride", "<u4"),
    )


@dataclass(frozen=True)
class Abi:
    """One ABI: name, firmware version for blobs, data cube, surface descriptors by engine, emulator structures."""

    name: str
    firmware: tuple[int, int, int]
    cube: np.dtype
    surfaces: tuple[np.dtype, ...]
    emu_stride: int
    emu_power: np.dtype
    emu_softmax: np.dtype
    emu_extension: np.dtype
    emu_buffer: np.dtype


def _abi(name: str, firmware: tuple[int, int, int], new: bool) -> Abi:
    cube = _cube(new)
    surfaces = [BDMA_SURFACE]
    for engine in (CONV, SDP, PDP, CDP, RUBIK):
        extra = (("offset_u", "<i8"), ("in_line_uv_stride", "<u4")) if engine == CONV else ()
        # The compiler aligns offset_u to 4 bytes inside of a surface; NVIDIA packs this structure to 4.
        surfaces.append(_packed(*((cube_name, cube) for cube_name in CUBES[engine]), *extra))
    if new:
        common = (("op_type", "u1"), ("reserved0", "u1", (3,)), ("input_scale_factor", "<f4"), ("output_scale_factor", "<f4"))
    else:
        common = (("op_type", "u1"),)
    buffer = (
        ("address", "<i2"),
        *((("offset", "<u4"),) if new else ()),
        ("size", "<u4"),
        *((name, "<u2") for name in ("format", "width", "height", "channel")),
        ("line_stride", "<u4"),
        ("surf_stride", "<u4"),
    )
    power = (("power", "<f4"), ("scale", "<f4"), ("shift", "<f4"))
    return Abi(
        name,
        firmware,
        cube,
        tuple(surfaces),
        24 if new else 16,
        _packed(*common, *power),
        _packed(*common, ("axis", "u1")),
        _packed(*common, ("description", "<i2"), ("first_buffer", "<u2"), ("inputs", "<u2"), ("outputs", "<u2")),
        _packed(*buffer),
    )


ABIS = {"v10": _abi("v10", (0, 11, 0), False), "v12": _abi("v12", (0, 12, 3), True)}


def to_plain(value: Any) -> Any:
    """Return a record as dict, an array as list, a NumPy scalar as Python's; reserved fields are left out."""
    if isinstance(value, np.void) and value.dtype.names:
        return {name: to_plain(value[name]) for name in value.dtype.names if not name.startswith("reserved")}
    if isinstance(value, np.ndarray):
        return [to_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value
