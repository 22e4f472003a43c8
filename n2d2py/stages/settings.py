"""What the command line asks of the stages, in their own terms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.export import QuantDefaults, Target, find_target, load_params, target_names
from n2d2py.ini.params import Params
from n2d2py.options import Arguments
from n2d2py.quant.options import QuantOptions

__all__ = ["Settings", "export_folder_name", "read_settings"]


@dataclass(frozen=True)
class Settings:
    """The options of a run, checked together, and the export parameters."""

    arguments: Arguments
    params: Params
    out: Path

    @property
    def target(self) -> Target[Any] | None:
        """What is exported for; None without an export."""
        return find_target(self.arguments.export) if self.arguments.export else None

    @property
    def integer(self) -> bool:
        """Whether the export computes in integers."""
        return self.arguments.nbbits in (8, 16)

    @property
    def quant(self) -> QuantOptions:
        """The options of the quantization."""
        a, target = self.arguments, self.target
        wanted = target.quantization if target is not None else QuantDefaults()
        best, fast = a.quality == "best", a.quality == "fast"
        rounding = a.wt_rounding or ("nearest" if fast else "adaptive")
        return QuantOptions(
            a.nbbits,
            a.act_clipping_mode,
            a.act_quantile_value,
            a.wt_clipping_mode,
            wanted.rescaling if wanted.rescaling and "act_rescaling_mode" not in a.given else a.act_rescaling_mode,
            bool(a.act_rescale_per_output) and wanted.per_output,
            not a.no_unsigned and wanted.unsigned,
            not a.no_cle,
            correct_bias=not (fast or a.no_bias_correction),
            adaptive_rounding=rounding == "adaptive",
            input_bits=a.input_bits or wanted.input_bits or (16 if best else 0),
            output_bits=a.output_bits or wanted.output_bits or (8 if fast else 16 if best else 0),
            mixed=a.nbbits == 8 and (best or a.mixed_precision) and not a.no_mixed_precision and wanted.mixed,
            wide_joins=wanted.wide_joins,
            sequential=a.sequential_calibration,
            reduce_range=a.wt_reduce_range or wanted.reduce_range,
        )

    @property
    def needs_data(self) -> bool:
        """Whether any stage reads stimuli."""
        a = self.arguments
        if a.describe or a.memory_report:
            return False
        return bool(
            a.test
            or a.calib
            or a.calib_reload
            or a.compare
            or a.sensitivity
            or a.calibOnly
            or a.log_outputs
            or a.pre_samples >= 0
            or (a.export is not None and a.db_export != 0)
        )

    @property
    def calibrates(self) -> bool:
        """Whether integers are derived from statistics in this run."""
        return self.integer and bool(self.arguments.export or self.arguments.calibOnly)


def export_folder_name(kind: str, bits: int) -> str:
    """The kind and the precision, as in export_KIND_int8 or export_KIND_float32."""
    return f"export_{kind}_{'int' if bits > 0 else 'float'}{abs(bits)}"


_OF_INTEGERS = (
    "act-clipping-mode",
    "act-quantile-value",
    "wt-clipping-mode",
    "act-rescaling-mode",
    "act-rescale-per-output",
    "quality",
    "wt-rounding",
    "wt-reduce-range",
    "no-bias-correction",
    "input-bits",
    "output-bits",
    "mixed-precision",
    "no-mixed-precision",
    "sequential-calibration",
    "no-unsigned",
    "no-cle",
    "calib-reload",
)


def _warn_without_effect(a: Arguments) -> None:
    """Says which of the given options have no effect beside the others."""
    lost = {
        "a log that N2D2 keeps of its training": a.ignored,
        "integers are chosen with -nbbits 8 and 16 only": _OF_INTEGERS if a.nbbits not in (8, 16) else (),
        "that is for -act-clipping-mode Quantile": ("act-quantile-value",) if a.act_clipping_mode != "Quantile" else (),
        "that is for -test": () if a.test else ("nb-test", "test-index", "log-json"),
        "that is for -tune": () if a.tune else ("tune-command",),
        "that is for -export": () if a.export or a.memory_report else ("db-export", "export-parameters"),
        "that is for INI files": ("w-ignore",) if a.network.endswith(".onnx") else (),
    }
    for why, names in lost.items():
        given = [f"-{name}" for name in names if name in a.ignored or name.replace("-", "_") in a.given]
        if given:
            log.warning("W011", f"{', '.join(given)} without effect: {why}", remedy="leave it out")


def read_settings(arguments: Arguments) -> Settings:
    """Checks what single options cannot know: precision, contradictions, the export parameters.

    Raises:
        N2D2Error: E007 options that contradict each other, E506 an unknown precision, and what
            reading the export parameters raises.
    """
    a = arguments
    if a.nbbits not in (8, 16, 32, -16, -32, -64):
        raise N2D2Error(
            "E506",
            f"-nbbits {a.nbbits} is not supported",
            remedy="use 8 or 16 for integers, -32 or -64 for floating point, -16 for that with weights in half precision",
        )
    if not 0 < a.act_quantile_value <= 1:
        raise N2D2Error(
            "E003", f"-act-quantile-value {a.act_quantile_value} is not a share", remedy="give a number above 0 and at most 1"
        )
    if a.act_rescale_per_output not in (0, 1):
        raise N2D2Error("E003", f"-act-rescale-per-output {a.act_rescale_per_output} is neither 0 nor 1", remedy="give 0 or 1")
    for name, bits in (("input-bits", a.input_bits), ("output-bits", a.output_bits)):
        if bits not in (0, 8, 16):
            raise N2D2Error("E003", f"-{name} {bits} is not supported", remedy="give 8 or 16, or 0 to let n2d2py choose")
    if a.calibOnly and a.nbbits not in (8, 16):
        raise N2D2Error("E007", "-calibOnly has no meaning for floating point", remedy="use -nbbits 8 or 16")
    if a.test_index >= 0 and a.nb_test >= 0:
        raise N2D2Error("E007", "-test-index and -nb-test exclude each other", remedy="give one of them")
    if a.compare and not a.export:
        raise N2D2Error("E007", "-compare needs an export", remedy=f"add -export {target_names()[0]}")
    if a.sensitivity and not (a.export and a.nbbits in (8, 16)):
        raise N2D2Error(
            "E007", "-sensitivity needs an integer export", remedy=f"add -export {target_names()[0]} and -nbbits 8 or 16"
        )
    if a.pre_samples >= 0 and not a.network.endswith(".ini"):
        raise N2D2Error("E007", "-pre-samples needs the pipeline of an INI", remedy="leave it out for an ONNX file")
    if a.input_range is not None and not a.calib_data and a.network.endswith(".ini"):
        raise N2D2Error("E007", "-input-range belongs to -calib-data", remedy="add -calib-data PATH")
    if a.w not in (None, "/dev/null") and a.network.endswith(".onnx"):
        raise N2D2Error(
            "E007",
            f"-w {a.w} has no effect on an ONNX file",
            remedy="leave it out: the file holds its weights, or name it in an INI",
        )
    _warn_without_effect(a)
    return Settings(arguments, load_params(a.export_parameters, a.export), Path(a.o))
