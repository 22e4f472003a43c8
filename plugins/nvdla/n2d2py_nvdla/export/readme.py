"""Description of an NVDLA export: README.md and layers.json."""

from __future__ import annotations

from typing import Any

from n2d2py.exports.base import ExportRequest
from n2d2py_nvdla.export.emit import Compiled
from n2d2py_nvdla.export.hardware import EmuLayer, HwLayer, HwOp, Lowered, Region, SubRegion
from n2d2py_nvdla.firmware import ENGINES, INT8


def layers_json(lowered: Lowered, compiled: Compiled) -> dict[str, Any]:
    """Return the hardware layers by operation number: which network layer they are, where and in which scale the result lies."""
    layers: list[dict[str, Any]] = []
    softmax = [layer for layer in lowered.emulated if layer.extension is None]
    for task, (kind, members) in enumerate(lowered.segments()):
        number = 0
        for layer in members:
            count = 1 if kind == "EMU" else sum(len(chain) for chain in layer.chains)
            place = {"task": task, "first": number, "last": number + count - 1}
            number += count
            if layer not in softmax:
                layers.append({"layer": layer.name, **place, **(_extension(layer) if kind == "EMU" else _hardware(layer))})
    ports = {
        kind: [
            {"tensor": name, "shape": [b.channels, b.height, b.width], "scale": scale, "bytes": b.size, "pixels": b.image}
            for name, (b, scale) in bound.items()
        ]
        for kind, bound in (("inputs", lowered.inputs), ("outputs", lowered.outputs))
    }
    return {
        "configuration": lowered.config.name,
        "precision": "int8" if lowered.precision == INT8 else "fp16",
        "operations": compiled.operations,
        "weights_bytes": compiled.weights,
        "activation_bytes": compiled.placement.size,
        "live_bytes": compiled.placement.live,
        **ports,
        "layers": layers,
        "softmax": [{"layer": one.name, "tensor": one.tensors[0]} for one in softmax],
    }


def _hardware(layer: HwLayer) -> dict[str, Any]:
    ops = [op for chain in layer.chains for op in chain]
    return {
        "tensor": layer.tensor,
        "operations": [ENGINES[op.engine] for op in ops],
        "shape": list(layer.result.shape),
        "scale": layer.scale,
        "places": [_place(op, layer) for op in ops],
    }


def _extension(layer: EmuLayer) -> dict[str, Any]:
    assert layer.extension is not None
    return {
        "tensor": layer.tensors[0],
        "operations": [f"CPU {layer.extension.operator}"],
        "shape": list(layer.results[0].shape),
        "scale": layer.scale,
        "places": [[0, 0, 0]],
    }


def _place(op: HwOp, layer: HwLayer) -> list[int] | None:
    """First channel, line and column of the layer's result that an operation writes; None when it writes something else.

    Where it writes in steps, also the steps of lines and columns, and the channels of an atom for lines that are surfaces.
    """
    region = op.cubes["dst_data"]
    if not isinstance(region, Region) or region.buffer is not layer.result.buffer:
        return None
    first = [region.channel - layer.result.channel, region.row - layer.result.row, region.column - layer.result.column]
    if not isinstance(region, SubRegion):
        return first
    if region.place is None:
        return None
    row, column, *steps = region.place
    return [first[0], first[1] + row, first[2] + column, *steps]


def readme(request: ExportRequest, lowered: Lowered, compiled: Compiled, abi: str) -> str:
    """README.md."""
    facts = layers_json(lowered, compiled)
    rows = [
        f"| {one['layer']} | {', '.join(one['operations'][:6])}{' ...' if len(one['operations']) > 6 else ''} "
        f"| {'x'.join(map(str, one['shape']))} | {one['scale']:.6g} |"
        for one in facts["layers"]
    ]
    rows += [f"| {one['layer']} | softmax on the CPU (EMU) | | |" for one in facts["softmax"]]
    ports = [
        f"- {kind[:-1]} `{one['tensor']}`: {'x'.join(map(str, one['shape']))} {facts['precision']}, 1 stands for "
        f"{one['scale']:.9g}" + (", one byte per pixel (R8)" if one.get("pixels") else "")
        for kind in ("inputs", "outputs")
        for one in facts[kind]
    ]
    extensions = sum(layer.extension is not None for layer in lowered.emulated)
    warning = (
        [
            f"On the CPU as extension operations: {extensions} (`CPU ...` below). **NVIDIA's runtime does not have "
            "them**: it knows POWER and SOFTMAX alone. `n2d2py-nvdla run` has them.",
            "",
        ]
        if extensions
        else []
    )
    return "\n".join(
        [
            f"# {request.graph.name} for NVDLA {lowered.config.name}",
            "",
            f"`out.nvdla` is a loadable in {facts['precision']} for firmware {'0.12' if abi == 'v12' else '0.10 and 0.11'}: "
            f"{facts['operations']} hardware operations, {facts['weights_bytes']} bytes of constants, "
            f"{facts['activation_bytes']} bytes for activations ({facts['live_bytes']} live at once).",
            "",
            *warning,
            *ports,
            "",
            "```",
            "n2d2py-nvdla run out.nvdla --input x.npy --rawdump      # on the functional model",
            "n2d2py-nvdla check out.nvdla                            # limits, alignments, buffers, dependencies",
            "n2d2py-nvdla dump out.nvdla                             # every descriptor",
            *(
                []
                if extensions
                else ["nvdla_runtime --loadable out.nvdla --image x.pgm        # on hardware, with NVIDIA's runtime"]
            ),
            "```",
            "",
            "## Layers",
            "",
            "| layer | operations | result | real value of 1 |",
            "|---|---|---|---|",
            *rows,
            "",
            "## What was checked, and what was not",
            "",
            "Checked when this export was written: buffers, alignments, limits and the dependency graph of the file "
            "(`n2d2py-nvdla check`). With `-test` it was also executed on the functional model, which gives the bits of "
            "NVIDIA's own runtime, firmware and C-model on their published files and on the vectors of this project's tests.",
            "",
            "Not checked: real silicon. Also not modelled: timing, bandwidth, SRAM.",
            "",
        ]
    )
