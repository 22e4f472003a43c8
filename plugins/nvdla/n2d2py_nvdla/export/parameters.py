"""The export parameters of the NVDLA export."""

from __future__ import annotations

from n2d2py.ini.schema import Key, Kind, Schema
from n2d2py_nvdla.config import CONFIGS

PARAMETERS = Schema(
    "export parameters of NVDLA",
    (
        Key("NVDLAConfig", Kind.ENUM, "nv_full", "hardware configuration of the NVDLA export", tuple(CONFIGS)),
        Key(
            "NVDLAPrecision",
            Kind.ENUM,
            "auto",
            "precision of the NVDLA export; auto: int8 with -nbbits 8, fp16 with -nbbits -32",
            ("auto", "int8", "fp16"),
        ),
        Key(
            "NVDLAFirmware",
            Kind.ENUM,
            "0.12",
            "firmware of the NVDLA export: 0.12 (NVIDIA's sources of today) or 0.11 (prebuilt kernel modules, most FPGA ports)",
            ("0.11", "0.12"),
        ),
        Key(
            "NVDLACalibration",
            Kind.STRING,
            "",
            "JSON table {layer: {scale, min, max, offset}} of scales for the int8 NVDLA export, instead of the calibrated ones",
        ),
        Key(
            "NVDLAFallback",
            Kind.BOOL,
            False,
            "layers that the accelerator does not have become extension operations of the CPU, "
            "which NVIDIA's runtime does not have",
        ),
    ),
)
