"""The NVDLA export as `-export NVDLA` finds it: what it refuses, what it writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.exports.base import ExportRequest, Prepared, QuantDefaults, Target, no_layers
from n2d2py.exports.stimuli import write_arrays
from n2d2py.files import json_text, write_text
from n2d2py_nvdla import Program, write_loadable
from n2d2py_nvdla.check import violations
from n2d2py_nvdla.codes import CODES
from n2d2py_nvdla.config import CONFIGS, HardwareConfig
from n2d2py_nvdla.export.emit import Compiled, emit
from n2d2py_nvdla.export.files import CALIBRATION, LAYERS, LOADABLE
from n2d2py_nvdla.export.hardware import Lowered
from n2d2py_nvdla.export.lower import lower
from n2d2py_nvdla.export.parameters import NvdlaParameters
from n2d2py_nvdla.export.readme import layers_json, readme
from n2d2py_nvdla.export.runner import LoadableRunner
from n2d2py_nvdla.export.scales import calibration_json, given_scales
from n2d2py_nvdla.firmware import FP16, INT8

_ABI = {"0.11": "v10", "0.12": "v12"}


def hardware_of(request: ExportRequest) -> tuple[HardwareConfig, int, str]:
    """Return configuration, precision and firmware ABI that the parameters ask for.

    Raises:
        N2D2Error: E705 for a combination that does not exist.
    """
    own, bits = NvdlaParameters.of(request.parameters), request.graph.bits
    wanted = own.precision
    precision = INT8 if bits > 0 else FP16
    if wanted != "auto" and {"int8": INT8, "fp16": FP16}[wanted] != precision:
        raise N2D2Error(
            "E705",
            f"NVDLAPrecision={wanted} needs {'integers' if wanted == 'int8' else 'floating point'}",
            remedy=f"use -nbbits {'8' if wanted == 'int8' else '-32'}",
        )
    if bits not in (8, -32):
        raise N2D2Error(
            "E705",
            f"the NVDLA export has no {abs(bits)}-bit {'integers' if bits > 0 else 'numbers'}",
            remedy="use -nbbits 8 for int8, -nbbits -32 for fp16",
        )
    config = CONFIGS[own.config]
    if precision not in config.precisions:
        raise N2D2Error("E705", f"NVDLAConfig={own.config} computes in int8 only", remedy="use -nbbits 8, or nv_full")
    if precision == FP16 and own.calibration:
        raise N2D2Error("E705", "NVDLACalibration gives scales of int8, fp16 has none", remedy="use -nbbits 8, or leave it out")
    return config, precision, _ABI[own.firmware]


@dataclass(frozen=True)
class NvdlaExport:
    """Written results: the hardware layers and the loadable made of them, for a firmware."""

    lowered: Lowered
    compiled: Compiled
    abi: str


class NvdlaTarget(Target[NvdlaExport]):
    """A loadable for NVDLA hardware, checked and described."""

    name = "NVDLA"
    parameter_type = NvdlaParameters
    quantization = QuantDefaults(
        unsigned=False, input_bits=8, output_bits=8, mixed=False, wide_concats=False, softmax_rows=False, last_softmax=False
    )
    codes = CODES
    in_floats = False
    needs_plan = False
    runner = LoadableRunner

    def prepare(self, request: ExportRequest) -> Prepared[NvdlaExport]:
        """E704 without layers, E705 parameters, E715 layers that the accelerator cannot run, E716 its limits."""
        if not request.graph.nodes:
            return Prepared(request, [no_layers(request.graph)])
        try:
            own = NvdlaParameters.of(request.parameters)
            config, precision, abi = hardware_of(request)
            problems = _types(request) if precision == INT8 else []
            if problems:
                return Prepared(request, problems)
            lowered, problems = lower(request.graph, config, precision, _scales(request), own.fallback)
            if abi == "v10" and precision == INT8:
                problems += [_softmax_of_bytes(one.name) for one in lowered.emulated if one.extension is None]
            if problems:
                return Prepared(request, problems)
            return Prepared(request, (), NvdlaExport(lowered, emit(lowered, abi), abi))
        except N2D2Error as problem:
            return Prepared(request, [problem])

    def details(self, prepared: Prepared[NvdlaExport]) -> dict[str, Any]:
        """Return configuration, precision and firmware."""
        made = prepared.result
        precision = "int8" if made.lowered.precision == INT8 else "fp16"
        return {"configuration": made.lowered.config.name, "precision": precision, "abi": made.abi}

    def write(self, prepared: Prepared[NvdlaExport], folder: Path) -> None:
        """Write the loadable, the description of its layers and a README.

        Raises:
            N2D2Error: E717 when the loadable does not pass the checker.
        """
        request, made = prepared.request, prepared.result
        lowered, compiled = made.lowered, made.compiled
        data = write_loadable(compiled.loadable)
        found = violations(Program.of(compiled.loadable, LOADABLE, made.abi), lowered.config)
        if found:
            raise N2D2Error(
                "E717", f"the loadable that was made is not valid: {found[0]}", remedy="this is a defect of n2d2py; report it"
            )
        extensions = [layer.name for layer in lowered.emulated if layer.extension is not None]
        if extensions:
            log.warning(
                "W701",
                "on the CPU as extension operations, which NVIDIA's runtime does not have: "
                f"{', '.join(extensions[:6])}{', ...' if len(extensions) > 6 else ''}",
                where=request.graph.name,
                remedy="run the loadable with n2d2py-nvdla, or add them to your runtime (docs/reference/nvdla_model.md)",
            )
        (folder / LOADABLE).write_bytes(data)
        write_text(folder / LAYERS, json_text(layers_json(lowered, compiled)))
        if lowered.precision == INT8:
            write_text(folder / CALIBRATION, json_text(calibration_json(lowered)))
        write_arrays(request.stimuli, folder, np.int8 if lowered.precision == INT8 else np.float16)
        write_text(folder / "README.md", readme(request, lowered, compiled, made.abi))


def _scales(request: ExportRequest) -> dict[str, float]:
    path = NvdlaParameters.of(request.parameters).calibration
    return given_scales(path, request.graph) if path and request.graph.bits > 0 else {}


def _softmax_of_bytes(layer: str) -> N2D2Error:
    return N2D2Error(
        "E715",
        f"layer '{layer}' (Softmax): the CPU operations of firmware 0.10 and 0.11 have numbers of fp16 only",
        remedy="take the logits, or use NVDLAFirmware=0.12",
    )


def _types(request: ExportRequest) -> list[N2D2Error]:
    """E715 for tensors of integers that are not signed, symmetric bytes."""
    found = []
    for tensor in request.graph.tensors.values():
        kind = tensor.type
        if kind.is_float:
            continue
        if kind.bits != 8 or not kind.signed or kind.zero_point:
            found.append(
                N2D2Error(
                    "E715",
                    f"the tensor '{tensor.name}' is {kind.name} with zero point {kind.zero_point}; "
                    "the accelerator has signed bytes without zero point",
                    where=request.graph.name,
                    remedy="calibrate here, with -no-unsigned, -input-bits 8 and -output-bits 8",
                )
            )
    return found[:8]
