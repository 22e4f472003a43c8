"""The texts next to the files of ncnn: README, numbers of layers and blobs, the files as arrays."""

from __future__ import annotations

import re

from n2d2py.exports.base import ExportRequest
from n2d2py.exports.ncnn.file import NcnnNetwork, identifier
from n2d2py.exports.ncnn.model import NcnnModel

_PER_LINE = 16


def variable(file: str) -> str:
    """The name of a file as an identifier of C, as ncnn2mem makes it."""
    return re.sub(r"[^0-9A-Za-z]", "_", file)


def _guarded(file: str, lines: list[str]) -> str:
    guard = f"NCNN_INCLUDE_GUARD_{variable(file)}"
    return "\n".join([f"#ifndef {guard}", f"#define {guard}", *lines, f"#endif // {guard}", ""])


def numbers_header(network: NcnnNetwork, stem: str) -> str:
    """`NET.id.h`: the numbers of layers and blobs, by which a network without names is used."""
    lines = [f"namespace {variable(stem)}_param_id {{"]
    blobs = {name: number for number, name in enumerate(network.blobs)}
    for number, layer in enumerate(network.layers):
        lines.append(f"const int LAYER_{identifier(layer.name)} = {number};")
        lines += [f"const int BLOB_{identifier(name)} = {blobs[name]};" for name in layer.outputs]
    return _guarded(f"{stem}.id.h", [*lines, f"}} // namespace {variable(stem)}_param_id"])


def arrays_header(network: NcnnNetwork, stem: str) -> str:
    """`NET.mem.h`: the binary files as arrays, aligned as ncnn asks for."""
    lines: list[str] = []
    for ending, data in ((".param.bin", network.binary()), (".bin", network.weights())):
        lines += ["#ifdef _MSC_VER", "__declspec(align(4))", "#else", "__attribute__((aligned(4)))", "#endif"]
        rows = (data[start : start + _PER_LINE].hex(",").split(",") for start in range(0, len(data), _PER_LINE))
        lines += [f"static const unsigned char {variable(stem + ending)}[] = {{"]
        lines += ["0x" + ",0x".join(row) + "," for row in rows]
        lines += ["};"]
    return _guarded(f"{stem}.mem.h", lines)


def readme(request: ExportRequest, made: NcnnModel, stem: str, half: bool) -> str:
    """Its text: what the files hold, how to run them, where results may differ."""
    graph, network = request.graph, made.network
    lines = [
        f"# {graph.name}: ncnn network",
        "",
        f"`{stem}.param`, `{stem}.bin`: {len(network.layers)} layers, {len(network.weights()):,} bytes of weights. "
        f"Types of layers: {', '.join(network.types)}.",
    ]
    if graph.bits > 0:
        lines += [
            "",
            f"{len(made.integer)} convolutions and fully connected layers compute in int8, {len(made.stored)} of them with an int8 result. "
            "All other layers compute in floating point: ncnn has no integers for them.",
        ]
        if made.real:
            lines += [f"Weighted layers in floating point: {', '.join(made.real)}."]
    if half:
        lines += ["", "Weights in floating point are stored in half precision."]
    lines += ["", "| | blob | shape |", "|---|---|---|"]
    for kind, names in (("input", graph.inputs), ("output", graph.outputs)):
        lines += [f"| {kind} | `{made.blobs[name]}` | {tuple(graph.shape(name)[1:])} |" for name in names]
    first, last = made.blobs[graph.inputs[0]], made.blobs[graph.outputs[0]]
    lines += [
        "",
        "```python",
        "import ncnn",
        "",
        "net = ncnn.Net()",
        *(["net.opt.use_packing_layout = False"] if made.unpacked else []),
        f'net.load_param("{stem}.param")',
        f'net.load_model("{stem}.bin")',
        "extractor = net.create_extractor()",
        f'extractor.input("{first}", ncnn.Mat(x).clone())  # float32, without the axis of the stimuli',
        f'status, y = extractor.extract("{last}")',
        "```",
        "",
        "Inputs and outputs are float32. The results were checked without `use_fp16_*` and `use_bf16_*` of `net.opt`.",
    ]
    if made.unpacked:
        lines += [
            "",
            "Set `use_packing_layout` to false before the network is loaded: on x86, ncnn multiplies the results of int8 depthwise convolutions of "
            "packed channels by an estimate of 12 bits. Without packing results are those that were simulated. It takes more time: kws_dscnn 2.1 times as "
            "long, MobileNetV1 1.2 times, on an Intel Xeon; with packing, top-1 of these was as simulated for 100 % and 97 % of the stimuli.",
        ]
    if request.parameters.get("ModelArray", True):
        identifiers = f"{variable(stem)}_param_id"
        lines += [
            "",
            f"Without a file system, `{stem}.id.h` and `{stem}.mem.h`, as ncnn2mem writes them (`{stem}.param.bin` is the first array as a file):",
            "",
            "```cpp",
            f"net.load_param({variable(stem + '.param.bin')});",
            f"net.load_model({variable(stem + '.bin')});",
            f"extractor.input({identifiers}::BLOB_{identifier(first)}, x);",
            f"extractor.extract({identifiers}::BLOB_{identifier(last)}, y);",
            "```",
        ]
    return "\n".join(lines) + "\n"
