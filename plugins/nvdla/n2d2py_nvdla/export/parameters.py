"""The export parameters of the NVDLA export."""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.ini.kinds import Kind
from n2d2py.ini.params import ExportParameters, parameter
from n2d2py_nvdla.config import CONFIGS

_TEXTS = """
NVDLAConfig: hardware configuration of the NVDLA export
NVDLAPrecision: precision of the NVDLA export; auto: int8 with -nbbits 8, fp16 with -nbbits -32
NVDLAFirmware: firmware of the NVDLA export: 0.12 (NVIDIA's sources of today) or 0.11 (prebuilt kernel modules, most FPGA ports)
NVDLACalibration: JSON table {layer: {scale, min, max, offset}} of scales for the int8 NVDLA export, instead of the calibrated ones
NVDLAFallback: layers that the accelerator does not have become extension operations of the CPU, which NVIDIA's runtime does not
    have
"""


@dataclass(frozen=True)
class NvdlaParameters(ExportParameters, texts=_TEXTS):
    """The export parameters of NVDLA."""

    config: str = parameter("NVDLAConfig", Kind.ENUM, "nv_full", choices=tuple(CONFIGS))
    precision: str = parameter("NVDLAPrecision", Kind.ENUM, "auto", choices=("auto", "int8", "fp16"))
    firmware: str = parameter("NVDLAFirmware", Kind.ENUM, "0.12", choices=("0.11", "0.12"))
    calibration: str = parameter("NVDLACalibration", Kind.STRING, "")
    fallback: bool = parameter("NVDLAFallback", Kind.BOOL, False)
