"""Limits and recomputed values of single operations, for the checker."""

from __future__ import annotations

from collections.abc import Iterator

from n2d2py_nvdla.config import HardwareConfig, entries_per_slice, widest_pool
from n2d2py_nvdla.firmware import BYTES, CDP, CONV, FP16, PDP, SDP
from n2d2py_nvdla.model.image import FEATURE, ORDERS
from n2d2py_nvdla.model.sdp import BOTH, processing_precision
from n2d2py_nvdla.program import DlaTask, Operation

FLY = 2


def operation_violations(task: DlaTask, operation: Operation, config: HardwareConfig) -> list[str]:
    """Return the violations of an operation by itself."""
    rules = {CONV: _conv, SDP: _sdp, PDP: _pdp, CDP: _cdp}
    rule = rules.get(operation.engine)
    return list(rule(task, operation, config)) if rule else []


def _within(operation: Operation, low: int, high: int, *names: str) -> Iterator[str]:
    for name in names:
        value = int(operation.op[name])
        if not low <= value <= high:
            yield f"{name} is {value}, not from {low} to {high}"


def _conv(task: DlaTask, operation: Operation, config: HardwareConfig) -> Iterator[str]:
    op, src, dst = operation.op, operation.surface["src_data"], operation.surface["dst_data"]
    yield from _within(operation, 1, 8, "conv_stride_x", "conv_stride_y")
    yield from _within(operation, 1, 32, "kernel_width_csc", "kernel_height_csc", "dilation_x", "dilation_y")
    yield from _within(operation, 0, 31, "pad_x_left", "pad_x_right", "pad_y_top", "pad_y_bottom")
    yield from _within(operation, 1, 65535, "fetch_grain", "release")
    if int(op["out_cvt"]["scale"]) != 1 or int(op["out_cvt"]["offset"]):
        yield "firmware requires a scale of 1 and no offset after a convolution"
    precision = min(int(op["out_precision"]), FP16)
    if int(op["input_width_cmac"]) != int(dst["width"]) or int(op["input_height_cmac"]) != int(dst["height"]):
        yield "the size of the result is not the one of dst_data"
    if op["conv_mode"] or op["weight_format"] or op["batch"] != 1:
        return
    yield from _buffers(operation, config, precision)
    kernels, size = int(dst["channel"]), int(op["bytes_per_kernel"])
    weights = int(operation.surface["weight_data"]["size"])
    if weights % config.width:
        yield f"weight_data has {weights} bytes, not a multiple of the {config.width} bytes of an entry of the buffer"
    if weights < kernels * size:
        yield f"weight_data has {weights} bytes; {kernels} kernels of {size} bytes take {kernels * size}"
    if dst["width"] == 1 and dst["height"] == 1 and int(dst["line_stride"]) not in (config.atom, 0):
        yield f"the result is 1x1 with a line stride of {int(dst['line_stride'])}; firmware wants {config.atom}"
    if int(op["data_format"]) >= FEATURE:
        yield from _direct(operation, src, dst)


def _direct(operation: Operation, src, dst) -> Iterator[str]:
    op = operation.op
    if int(op["input_channel_csc"]) != int(op["kernel_channel_csc"]) or int(op["input_channel_csc"]) != int(src["channel"]):
        yield "the kernels, the input and src_data have different channels"
    if int(op["input_width_csc"]) != int(src["width"]) or int(op["input_height_csc"]) != int(src["height"]):
        yield "the size of the input is not the one of src_data"
    if int(op["release"]) > int(src["height"]):
        yield f"it releases {int(op['release'])} lines of {int(src['height'])}"
    for axis, source, result, kernel, before, behind, stride, dilation in (
        ("width", src["width"], dst["width"], "kernel_width_csc", "pad_x_left", "pad_x_right", "conv_stride_x", "dilation_x"),
        (
            "height",
            src["height"],
            dst["height"],
            "kernel_height_csc",
            "pad_y_top",
            "pad_y_bottom",
            "conv_stride_y",
            "dilation_y",
        ),
    ):
        reach = (int(op[kernel]) - 1) * int(op[dilation]) + 1
        room = int(source) + int(op[before]) + int(op[behind]) - reach
        if room < 0 or room // max(int(op[stride]), 1) + 1 != int(result):
            yield (
                f"the {axis} of the result is {int(result)}; {int(source)} with paddings, kernel and stride gives "
                f"{room // max(int(op[stride]), 1) + 1}"
            )


def _buffers(operation: Operation, config: HardwareConfig, precision: int) -> Iterator[str]:
    """Yield the entries per slice, banks, bytes of a kernel."""
    op = operation.op
    w, h, c = (int(op[f"input_{axis}_csc"]) for axis in ("width", "height", "channel"))
    if not (w and h and c):
        yield "the input has a dimension of 0"
        return
    if int(op["data_format"]) >= FEATURE:
        wanted = entries_per_slice(config, w, c, precision)
    else:
        channels = len(ORDERS.get(int(op["data_format"]), (0,)))
        padded = w + int(op["pad_x_left"]) + int(op["pad_x_right"])
        wanted = -(-padded * channels * BYTES[precision] // config.width)
    if int(op["entry_per_slice"]) != wanted:
        yield f"entry_per_slice is {int(op['entry_per_slice'])}; a line of {w}x{c} takes {wanted}"
    data, weight = int(op["data_bank"]), int(op["weight_bank"])
    needed = max(1, -(-wanted * h // config.depth))
    if data < needed:
        yield f"data_bank is {data}; {h} lines of {wanted} entries take {needed}"
    size = c * int(op["kernel_width_csc"]) * int(op["kernel_height_csc"]) * BYTES[precision]
    if int(op["data_format"]) < FEATURE:
        size = int(op["kernel_channel_csc"]) * int(op["kernel_height_csc"]) * BYTES[precision]
    if int(op["bytes_per_kernel"]) != size:
        yield f"bytes_per_kernel is {int(op['bytes_per_kernel'])}; its kernel has {size}"
    group = min(int(operation.surface["dst_data"]["channel"]), config.kernel_group(precision))
    least = max(1, -(-group * size // config.bank_bytes))
    if weight < least:
        yield f"weight_bank is {weight}; one group of kernels takes {least}"
    if data + weight > config.banks:
        yield f"data_bank {data} and weight_bank {weight} are more than the {config.banks} banks of {config.name}"


def _sdp(task: DlaTask, operation: Operation, config: HardwareConfig) -> Iterator[str]:
    op, src, dst = operation.op, operation.surface["src_data"], operation.surface["dst_data"]
    if int(op["batch_num"]) != 1:
        yield f"batch_num is {int(op['batch_num'])}, not 1"
    for axis in ("width", "height", "channel"):
        if int(src[axis]) != int(dst[axis]):
            yield f"the {axis} of src_data is {int(src[axis])}, the one of dst_data {int(dst[axis])}"
    if op["y_op"]["enable"] and not config.has_y:
        yield f"{config.name} has no Y unit"
    for name in ("x1_op", "x2_op"):
        if int(op[name]["shift_value"]) > 63 or int(op[name]["truncate"]) > 63:
            yield f"a shift of {name} is above 63"
        if op[name]["enable"] and int(op[name]["act"]) == 2:
            yield f"{name} has a look-up table, which only Y has"
    if int(op["out_cvt"]["truncate"]) > 63:
        yield "the shift of out_cvt is above 63"
    lut = int(op["lut_index"])
    uses = bool(op["y_op"]["enable"]) and int(op["y_op"]["act"]) == 2
    if (uses and lut < 0) or lut >= len(task.luts):
        yield f"its look-up table is {lut} of {len(task.luts)}"
    if int(src["width"]) == int(src["height"]) == 1:
        yield from _single_pixel(operation, config)
    parent = int(operation.common["fused_parent"]["index"])
    if int(src["type"]) == FLY and parent < 0:
        yield "its input comes from the convolution, but no fused parent is named"
    if int(src["type"]) != FLY and parent >= 0:
        yield "it has a fused parent, but reads memory"


def _single_pixel(operation: Operation, config: HardwareConfig) -> Iterator[str]:
    """Surface strides of 1x1 cubes: the elements of a group of channels, whatever the size of the whole."""
    op, surface = operation.op, operation.surface
    precisions = [min(int(op[name]), FP16) for name in ("src_precision", "dst_precision")]
    lanes = config.lanes(processing_precision(*precisions))
    wanted = {name: config.atom for name in ("src_data", "dst_data") if int(surface[name]["type"]) != FLY}
    for name in ("x1", "x2", "y"):
        unit = op[f"{name}_op"]
        if unit["enable"] and unit["type"] and unit["mode"]:
            components = 2 if int(unit["type"]) == BOTH else 1
            wanted[f"{name}_data"] = lanes * components * BYTES[min(int(unit["precision"]), FP16)]
    for name, stride in wanted.items():
        found = int(surface[name]["surf_stride"])
        if found != stride:
            yield f"the surface stride of {name} is {found}; a group of channels of one pixel takes {stride}"


def _pdp(task: DlaTask, operation: Operation, config: HardwareConfig) -> Iterator[str]:
    op, src, dst = operation.op, operation.surface["src_data"], operation.surface["dst_data"]
    yield from _within(operation, 0, 7, "pool_width", "pool_height", "pad_left", "pad_right", "pad_top", "pad_bottom")
    yield from _within(operation, 1, 8, "stride_x", "stride_y")
    yield from _within(operation, 0, 2, "pool_mode")
    if int(op["precision"]) == FP16 and any(op["padding_value"]):
        yield "it has padding values in fp16, which firmware refuses"
    if int(src["channel"]) != int(dst["channel"]):
        yield f"src_data has {int(src['channel'])} channels, dst_data {int(dst['channel'])}"
    for axis, kernel, before, behind, stride in (
        ("width", "pool_width", "pad_left", "pad_right", "stride_x"),
        ("height", "pool_height", "pad_top", "pad_bottom", "stride_y"),
    ):
        room = int(src[axis]) + int(op[before]) + int(op[behind]) - int(op[kernel]) - 1
        found = room // max(int(op[stride]), 1) + 1
        if room < 0 or found != int(dst[axis]):
            yield f"the {axis} of the result is {int(dst[axis])}; {int(src[axis])} with paddings, kernel and stride gives {found}"
    most = widest_pool(config, min(int(op["precision"]), FP16), int(op["pool_height"]) + 1, int(op["stride_y"]))
    parts = ("partial_width_first", "partial_width_mid", "partial_width_last") if int(op["split_num"]) > 1 else ()
    wide = max((int(op[part]) for part in parts), default=int(dst["width"]))
    if wide > most:
        yield f"it forms {wide} positions of a line at once; the line buffer of {config.name} has room for {most}"
    parent = int(operation.common["fused_parent"]["index"])
    if int(src["type"]) == FLY and parent < 0:
        yield "its input comes from the SDP, but no fused parent is named"


def _cdp(task: DlaTask, operation: Operation, config: HardwareConfig) -> Iterator[str]:
    op = operation.op
    if int(op["local_size"]) not in (3, 5, 7, 9):
        yield f"local_size is {int(op['local_size'])}, not 3, 5, 7 or 9"
    if not 0 <= int(op["lut_index"]) < len(task.luts):
        yield f"its look-up table is {int(op['lut_index'])} of {len(task.luts)}"
