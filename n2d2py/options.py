"""The command line: one table makes the parser, `-h`, the documentation page, and the typed options of the stages."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from operator import attrgetter
from pathlib import Path
from typing import Any

from n2d2py import log
from n2d2py.arithmetic import RESCALING_MODES
from n2d2py.errors import N2D2Error, nearest
from n2d2py.quant.options import QUALITIES
from n2d2py.quant.thresholds import CLIPPING_MODES, WEIGHT_CLIPPING_MODES
from n2d2py.stages.options import GIVEN_STIMULI, SYNTHETIC_STIMULI, LoadOptions, RunOptions, check_options
from n2d2py.version import __version__

__all__ = [
    "OPTIONS",
    "Arguments",
    "Option",
    "checked",
    "help_text",
    "options_page",
    "parse_arguments",
    "read_command",
    "recorded",
    "run_options",
]


@dataclass(frozen=True)
class Option:
    """One option: `kind` is flag, int, float, text, optional-int or optional-text (one of its choices, the first when omitted); `default` its value when absent.

    `field` is the field of RunOptions that it decides, "" for one that decides what the command does; `sets` is what a flag
    writes there. `omitted` is the value of an optional-int that is given without a number.
    """

    name: str
    kind: str
    default: Any
    doc: str
    group: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    repeated: bool = False
    field: str = ""
    sets: bool = True
    omitted: int = 10

    @property
    def key(self) -> str:
        """Attribute name in Arguments."""
        return self.name.replace("-", "_")


_RUN, _DATA, _QUANT, _EXPORT, _OUT = "Run", "Data of an ONNX file", "Quantization", "Export", "Output"
_LEARN = "Training"

OPTIONS: tuple[Option, ...] = (
    Option(
        "seed",
        "int",
        1,
        "seed of initial weights, partitions and synthetic data; 0: from the time",
        _RUN,
        "N",
        minimum=0,
        field="load.seed",
    ),
    Option(
        "w",
        "text",
        None,
        "folder or .npz of weights; /dev/null loads nothing; absent: weights_validation or weights when such a folder is there",
        _RUN,
        "PATH",
        field="load.weights",
    ),
    Option(
        "w-ignore",
        "flag",
        False,
        "layers whose weights are missing keep their initial values",
        _RUN,
        field="load.ignore_missing",
    ),
    Option(
        "learn-epoch",
        "int",
        0,
        "train the network of an INI: learn the Learn set N times, then go on with the best weights; needs PyTorch "
        "(pip install n2d2py[train])",
        _LEARN,
        "N",
        minimum=1,
        field="training.epochs",
    ),
    Option("learn", "int", 0, "train on N stimuli, in place of -learn-epoch", _LEARN, "N", minimum=1, field="training.stimuli"),
    Option(
        "stop-valid",
        "int",
        0,
        "end the training after N epochs without a better validation; 0: never",
        _LEARN,
        "N",
        minimum=0,
        field="training.patience",
    ),
    Option(
        "learn-resume",
        "flag",
        False,
        "go on with an interrupted training, from training/checkpoint.pt in the output folder",
        _LEARN,
        field="training.resume",
    ),
    Option(
        "dev",
        "int",
        -1,
        "number of the CUDA device that trains; -1: the processor",
        _LEARN,
        "N",
        minimum=-1,
        field="training.device",
    ),
    Option("test", "flag", False, "score the network on the test set: float, simulated and compiled", _RUN, field="score.test"),
    Option("nb-test", "int", -1, "number of test stimuli; -1 for all", _RUN, "N", minimum=-1, field="score.stimuli"),
    Option("test-index", "int", -1, "score one stimulus only, by its index", _RUN, "I", minimum=-1, field="score.index"),
    Option(
        "pre-samples",
        "int",
        -1,
        "write the pictures of test stimulus I after each pre-processing step, into pre_samples/",
        _OUT,
        "I",
        minimum=-1,
        field="load.pre_samples",
    ),
    Option("fuse", "flag", False, "fuse layers before a float test; an export always fuses", _RUN, field="fuse"),
    Option(
        "compare",
        "optional-int",
        0,
        "compare float, simulated and compiled values layer by layer over N stimuli (10 when N is left out)",
        _RUN,
        "N",
        minimum=1,
        field="score.compare",
    ),
    Option(
        "sensitivity",
        "optional-int",
        0,
        "rank the layers by what each costs in integers alone, over N stimuli (10 when N is left out)",
        _RUN,
        "N",
        minimum=1,
        field="score.sensitivity",
    ),
    Option(
        "latency",
        "optional-int",
        0,
        "time the compiled export over N inferences (100 when N is left out), each layer against what this machine could do, for "
        "the report; its figures then differ from run to run",
        _RUN,
        "N",
        minimum=1,
        field="score.latency",
        omitted=100,
    ),
    Option(
        "describe",
        "optional-text",
        None,
        "print the layers as a table, or as JSON, and stop; needs no data",
        _RUN,
        "FORM",
        ("table", "json"),
    ),
    Option(
        "memory-report",
        "flag",
        False,
        "print the static memory that each MemoryManagerStrategy needs and stop; needs no data",
        _RUN,
    ),
    Option(
        "plugin",
        "text",
        (),
        "load the operators of a plug-in from this folder; may be given several times",
        _RUN,
        "DIR",
        repeated=True,
        field="load.plugins",
    ),
    Option(
        "new-operator",
        "text",
        None,
        "write a plug-in with an operator of this name, and its test, into the folder "
        "that stands in place of the network, and stop",
        _OUT,
        "NAME",
    ),
    Option(
        "export",
        "text",
        None,
        "write a project of this type into export_TYPE_<int|float><bits>",
        _EXPORT,
        "TYPE",
        field="export.target",
    ),
    Option(
        "nbbits",
        "int",
        8,
        "precision: 8 or 16 for integers, -32 or -64 for floating point, -16 for weights stored in half precision, computed in "
        "float32; 32 for integers of 32 bits as they are, without scales (max pools, sums behind them)",
        _EXPORT,
        "N",
        field="quantization.bits",
    ),
    Option(
        "db-export",
        "int",
        -1,
        "test stimuli written into the export; 0 for none, -1 for all",
        _EXPORT,
        "N",
        minimum=-1,
        field="export.stimuli",
    ),
    Option(
        "export-parameters",
        "text",
        None,
        "file of export parameters, or the name of a preset such as low_memory; an unknown name lists them",
        _EXPORT,
        "FILE",
        field="load.parameters",
    ),
    Option(
        "tune",
        "optional-int",
        0,
        "time the tiles of each convolution over N rounds (100 when N is left out) and export with the "
        "best; statistics/tuned.ini keeps them, for the file of export parameters",
        _EXPORT,
        "N",
        minimum=1,
        field="export.tune",
        omitted=100,
    ),
    Option(
        "tune-command",
        "text",
        "",
        "what runs the timed program elsewhere, such as an emulator or a script that copies it to a board; {binary} is "
        "the program, {folder} its export; make takes TARGET, ARCH and CXX from the environment",
        _EXPORT,
        "COMMAND",
        field="export.tune_command",
    ),
    Option(
        "calib",
        "int",
        0,
        "stimuli used for calibration; -1 for the whole set; networks that come quantized need none; with -calib-data 128 "
        "unless another number is given",
        _QUANT,
        "N",
        minimum=-1,
        field="calibration.stimuli",
    ),
    Option("calib-reload", "flag", False, "use the statistics of the previous calibration", _QUANT),
    Option("calibOnly", "flag", False, "calibrate into calib_<name>_int<bits> and stop", _QUANT, field="calibrate_only"),
    Option(
        "calib-data",
        "text",
        None,
        "calibrate (and, with labels, test) on a folder of images, a .npy or a .npz "
        "instead of a database; two or more sub-folders that hold all images are classes, in sorted order; for several inputs an "
        ".npz or a folder of .npy with an array for each",
        _QUANT,
        "PATH",
        field="load.data",
    ),
    Option(
        "input-range",
        "text",
        None,
        "real values that pixels 0 and 255 of -calib-data stand for [0:1]",
        _QUANT,
        "LOW:HIGH",
        field="load.input_range",
    ),
    Option(
        "labels",
        "text",
        None,
        "labels of -calib-data: a list of lines 'image label' (blanks, or CSV with or without header), or ids in an .npy or .npz",
        _DATA,
        "FILE",
        field="load.labels",
    ),
    Option(
        "class-names",
        "text",
        None,
        "names of the network's outputs, one per line; folders and labels of these names get their numbers",
        _DATA,
        "FILE",
        field="load.class_names",
    ),
    Option(
        "scale",
        "text",
        None,
        "pixels p of -calib-data become (p * scale - mean) / std, as in torchvision; 1/255 unless given",
        _DATA,
        "F",
        field="load.scale",
    ),
    Option(
        "mean",
        "text",
        None,
        "mean in that formula: one value, or one per channel with commas",
        _DATA,
        "F,F,F",
        field="load.mean",
    ),
    Option("std", "text", None, "divisor in that formula: one value, or one per channel", _DATA, "F,F,F", field="load.std"),
    Option(
        "resize",
        "text",
        None,
        "resize images first, bilinear with antialiasing: the shorter side to SIZE N (then the centre of the input's size is cropped "
        "unless -crop says another), or both to WxH",
        _DATA,
        "SIZE",
        field="load.resize",
    ),
    Option("crop", "text", None, "then cut the centre: a square of SIZE N, or WxH", _DATA, "SIZE", field="load.crop"),
    Option("bgr", "flag", False, "the network takes images as blue, green, red", _DATA, field="load.bgr"),
    Option("layout", "text", "nchw", "axes of arrays", _DATA, "AXES", ("nchw", "nhwc"), field="load.layout"),
    Option(
        "act-clipping-mode",
        "text",
        "MSE",
        "how activation ranges are chosen",
        _QUANT,
        "MODE",
        CLIPPING_MODES,
        field="quantization.act_clipping",
    ),
    Option(
        "act-quantile-value",
        "float",
        0.9999,
        "share of values kept by the mode Quantile",
        _QUANT,
        "F",
        minimum=0,
        field="quantization.quantile",
    ),
    Option(
        "wt-clipping-mode",
        "text",
        "None",
        "how weight ranges are chosen",
        _QUANT,
        "MODE",
        WEIGHT_CLIPPING_MODES,
        field="quantization.wt_clipping",
    ),
    Option(
        "act-rescaling-mode",
        "text",
        "Floating-point",
        "arithmetic that maps accumulators to outputs",
        _QUANT,
        "MODE",
        RESCALING_MODES,
        field="quantization.rescaling",
    ),
    Option(
        "act-rescale-per-output",
        "int",
        1,
        "1: a weight scale for each output channel; 0: one for each layer",
        _QUANT,
        "B",
        minimum=0,
        field="calibration.per_output",
    ),
    Option(
        "quality",
        "text",
        "default",
        "corrections of the integers: fast none; default adaptive rounding and bias "
        "correction; best also 16 bits for inputs, outputs and the activations that need them, and more stimuli for the "
        "corrections",
        _QUANT,
        "LEVEL",
        QUALITIES,
        field="calibration.quality",
    ),
    Option(
        "wt-rounding",
        "text",
        None,
        "how weights are rounded, instead of what -quality says: each to the nearest "
        "integer, or for the least error of the layer's outputs",
        _QUANT,
        "MODE",
        ("nearest", "adaptive"),
        field="quantization.rounding",
    ),
    Option(
        "wt-reduce-range",
        "flag",
        False,
        "weights of convolutions and fully connected layers at most a bit coarser, as far as products of "
        "bytes then fit 16 bits: faster, and as exact, on processors without a dot product of bytes",
        _QUANT,
        field="quantization.reduce_range",
    ),
    Option(
        "no-bias-correction",
        "flag",
        False,
        "biases do not make up for the mean error of their outputs",
        _QUANT,
        field="quantization.correct_bias",
        sets=False,
    ),
    Option(
        "input-bits",
        "int",
        0,
        "width of the network's inputs, 8 or 16; 0: 16 where 8 bits would spoil them",
        _QUANT,
        "N",
        minimum=0,
        field="quantization.input_bits",
    ),
    Option(
        "output-bits",
        "int",
        0,
        "width of the network's outputs, 8 or 16; 0: 8 with -quality fast, 16 with best, "
        "else 16 for vectors of weighted sums, such as the scores of classes",
        _QUANT,
        "N",
        minimum=0,
        field="quantization.output_bits",
    ),
    Option(
        "mixed-precision",
        "flag",
        False,
        "the activations whose rounding to 8 bits costs most are stored in 16 bits, as -quality best does",
        _QUANT,
        field="quantization.mixed",
    ),
    Option(
        "no-mixed-precision",
        "flag",
        False,
        "all activations between layers have 8 bits, also with -quality best",
        _QUANT,
        field="quantization.mixed",
        sets=False,
    ),
    Option(
        "sequential-calibration",
        "flag",
        False,
        "ranges of activations are chosen again, layer by layer, on what the integers of the layers before give",
        _QUANT,
        field="quantization.sequential",
    ),
    Option("no-unsigned", "flag", False, "no unsigned activations", _QUANT, field="quantization.unsigned", sets=False),
    Option(
        "no-zero-points",
        "flag",
        False,
        "symmetric ranges for all activations with negative values",
        _QUANT,
        field="quantization.zero_points",
        sets=False,
    ),
    Option("no-cle", "flag", False, "no cross-layer equalization of weights", _QUANT, field="calibration.equalize", sets=False),
    Option("o", "text", ".", "folder in which results are written", _OUT, "DIR", field="folder"),
    Option(
        "force",
        "flag",
        False,
        "replace an export of another network, or one with files that were edited or added since it was written; what a build "
        "leaves there is replaced in any case",
        _OUT,
        field="export.force",
    ),
    Option(
        "log-outputs",
        "int",
        0,
        "write every layer output for the N-th test stimulus (from 1)",
        _OUT,
        "N",
        minimum=0,
        field="score.log_outputs",
    ),
    Option(
        "log-json",
        "flag",
        False,
        "write the results of every stimulus of -test as JSON too, <target>/<tag>/classif.json",
        _OUT,
        field="score.as_json",
    ),
    Option("strict", "flag", False, "warnings are errors", _OUT),
    Option("quiet", "flag", False, "print warnings, errors and results only", _OUT),
    Option("verbose", "flag", False, "say what each step did and did not do; tracebacks of internal errors", _OUT),
    Option(
        "completion",
        "text",
        None,
        'print what completes command lines in a shell, as in eval "$(n2d2py -completion bash)"',
        _OUT,
        "SHELL",
        ("bash", "zsh"),
    ),
    Option("h", "flag", False, "print this help; with -export TYPE also the export parameters of that type", _OUT),
    Option("v", "flag", False, "print the version", _OUT),
)

_TRAINING = (
    "learn-stdp",
    "log-epoch",
    "valid-metric",
    "find-lr",
    "ws",
    "finetuning",
    "pruning",
    "pruning-threshold",
    "testAdv",
    "present-time",
    "ts",
    "l",
    "check",
    "multidev",
    "dynamic-allocation",
    "bench",
)
"""Options of N2D2 that train, or that need what only training has."""

_NUMBER = re.compile(r"-?[0-9]+")
_IGNORED = {"log": True, "report": True, "log-db-stats": False, "log-kernels": False}
"""Logging options of N2D2 without a meaning here -> whether they take a number; a warning says so."""


_FUSED = {
    "qat-sat": ((), "an export fuses in any case"),
    "testQAT": ((), "-test runs the integers in any case"),
    **dict.fromkeys(
        ("c-round-mode", "b-round-mode", "wt-round-mode"),
        (("NONE", "RINTF"), "constants, biases and weights are rounded once, to integers"),
    ),
}
"""Options of N2D2 that fuse or test networks after quantization-aware training -> their values, why they change nothing here."""


@dataclass
class Arguments:
    """Parsed options by key (name with `-` as `_`), the network's path, "" when absent, options without a meaning, and those of
    `_FUSED`."""

    network: str
    values: dict[str, Any]
    given: frozenset[str]
    ignored: tuple[str, ...] = ()
    fused: tuple[str, ...] = ()

    def __getattr__(self, key: str) -> Any:
        try:
            return self.__dict__["values"][key]
        except KeyError:
            raise AttributeError(key) from None


def recorded(options: RunOptions) -> dict[str, Any]:
    """The options that decide what is exported, by their names, for the manifest; of paths only the last part."""
    return {
        option.name: _without_folder(option, _value(option, options))
        for option in OPTIONS
        if option.group in (_DATA, _QUANT, _EXPORT, _RUN) and option.field
    }


def checked(options: RunOptions) -> RunOptions:
    """The options of a run that no command line gave, with what was asked for and what is recorded.

    Raises:
        N2D2Error: E003, E004, E506 for values that an option cannot have, E007 for two that exclude each other.
    """
    plain, given = RunOptions(), set()
    for option in OPTIONS:
        if not option.field:
            continue
        value = _without_folder(option, _value(option, options))
        if value != _without_folder(option, _value(option, plain)):
            given.add(option.name)
            if value != option.default:
                _refuse(option, value)
    check_options(options)
    return replace(options, given=frozenset(given), recorded=recorded(options))


def _value(option: Option, options: RunOptions) -> Any:
    """The value on the command line that gives an option's field what it is."""
    value: Any = attrgetter(option.field)(options)
    if option.kind == "flag":
        return value is option.sets
    if value is None:
        return option.default
    if option.kind == "int":
        return int(value)
    if option.name == "input-range":
        return f"{value[0]:g}:{value[1]:g}"
    if option.group == _DATA and isinstance(value, tuple) and option.metavar != "FILE":
        return ("x" if option.metavar == "SIZE" else ",").join(f"{one:.9g}" for one in value) or option.default
    return value


def _without_folder(option: Option, value: Any) -> Any:
    """The value of an option as it is in every folder; files are told apart by their digests."""
    if option.repeated:
        return [Path(one).name for one in value]
    if option.metavar not in ("PATH", "FILE") or value is None:
        return value
    if not isinstance(value, (str, Path)):
        return "data"
    return Path(value).name if str(value) != "/dev/null" else "/dev/null"


def run_options(arguments: Arguments) -> RunOptions:
    """The typed options of a command line, checked together.

    Raises:
        N2D2Error: E003 values out of range, E007 options that contradict each other, E506 an unknown precision.
    """
    _check_together(arguments)
    if arguments.seed == 0:
        drawn = time.time_ns() % (2**31 - 1) + 1
        log.notice("seed %d, drawn from the time: -seed %d gives the same again", drawn, drawn)
        arguments = replace(arguments, values={**arguments.values, "seed": drawn})
    if _calibrates_on_given(arguments):
        arguments = replace(arguments, values={**arguments.values, "calib": GIVEN_STIMULI})
    parts: dict[str, dict[str, Any]] = {}
    for option in OPTIONS:
        part, _, name = option.field.rpartition(".")
        if option.field and (option.key in arguments.given or option.name == "calib"):
            parts.setdefault(part, {})[name] = _field_value(option, arguments.values[option.key])
    whole = parts.pop("", {})
    given = frozenset(option.name for option in OPTIONS if option.key in arguments.given)
    options = replace(RunOptions(), **{part: replace(getattr(RunOptions(), part), **parts[part]) for part in parts}, **whole)
    options = replace(options, given=given, load=_loading(arguments, options))
    check_options(options)
    _warn_without_effect(arguments)
    return replace(options, recorded=recorded(options), command=_command(arguments))


_PLACES = ("o", "force", "quiet", "verbose", "completion", "h", "v")
"""Options that change neither what is computed nor what is written into an export."""


def _command(a: Arguments) -> str:
    """A command line that gives the same again, for a shell in the network's folder."""
    home = Path(a.network).resolve().parent
    words = ["n2d2py", Path(a.network).name]
    for option in OPTIONS:
        if option.key not in a.given or option.name in _PLACES:
            continue
        for value in a.values[option.key] if option.repeated else (a.values[option.key],):
            words += [f"-{option.name}"] + ([] if option.kind == "flag" else [_from(home, option, value)])
    return shlex.join(words)


def _from(home: Path, option: Option, value: Any) -> str:
    """A value as text; paths lead from `home` where both are part of one tree, other than the root."""
    path = Path(str(value)).absolute()
    if option.metavar not in ("PATH", "FILE", "DIR") or not path.exists() or str(value) == os.devnull:
        return str(value)
    relative = os.path.relpath(path.resolve(), home)
    return str(path) if len(Path(os.path.commonpath([path.resolve(), home])).parts) < 2 else relative


def _calibrates_on_given(a: Arguments) -> bool:
    """Whether the given data calibrate although no number says so."""
    wanted = a.calib_data and "calib" not in a.given and not a.calib_reload
    return bool(wanted and a.nbbits in (8, 16) and (a.export or a.calibOnly))


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
    "no-zero-points",
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
        "that is for -learn and -learn-epoch": () if a.learn or a.learn_epoch else ("stop-valid", "learn-resume", "dev"),
        "that is for INI files": ("w-ignore",) if a.network.endswith(".onnx") else (),
    }
    for name in a.fused:
        log.notice("-%s changes nothing: %s", name, _FUSED[name.split()[0]][1])
    for why, names in lost.items():
        given = [f"-{name}" for name in names if name in a.ignored or name.replace("-", "_") in a.given]
        if given:
            log.warning("W011", f"{', '.join(given)} without effect: {why}", remedy="leave it out")


def _check_together(a: Arguments) -> None:
    """Raises E003 and E007 for what single options cannot know, and the stages need not."""
    if "testQAT" in a.fused and not a.test:
        raise N2D2Error("E007", "-testQAT alone tests nothing here", remedy="add -test, which runs the integers of an export")
    if a.act_rescale_per_output not in (0, 1):
        raise N2D2Error("E003", f"-act-rescale-per-output {a.act_rescale_per_output} is neither 0 nor 1", remedy="give 0 or 1")
    if a.learn and a.learn_epoch:
        raise N2D2Error("E007", "-learn and -learn-epoch both say how long is trained", remedy="leave out one of them")
    if (a.learn or a.learn_epoch) and (a.describe or a.memory_report or a.calib_reload):
        other = "describe" if a.describe else "memory-report" if a.memory_report else "calib-reload"
        raise N2D2Error("E007", f"-{other} has no meaning with a training", remedy="train first, then run it alone")
    if a.calibOnly and a.nbbits not in (8, 16):
        raise N2D2Error("E007", "-calibOnly has no meaning for floating point", remedy="use -nbbits 8 or 16")
    for name, count in (("compare", a.compare), ("latency", a.latency)):
        if count and not a.export:
            raise N2D2Error("E007", f"-{name} needs an export", remedy=f"add -export {_an_export()}")
    if a.sensitivity and not (a.export and a.nbbits in (8, 16)):
        raise N2D2Error(
            "E007", "-sensitivity needs an integer export", remedy=f"add -export {_an_export()} and -nbbits 8 or 16"
        )
    if a.pre_samples >= 0 and not a.network.endswith(".ini"):
        raise N2D2Error("E007", "-pre-samples needs the pipeline of an INI", remedy="leave it out for an ONNX file")
    if a.input_range is not None and not a.calib_data and a.network.endswith(".ini"):
        raise N2D2Error("E007", "-input-range belongs to -calib-data", remedy="add -calib-data PATH")
    alone = [
        option.name for option in OPTIONS if option.group == _DATA and option.key in a.given and option.name != "class-names"
    ]
    if alone and not a.calib_data:
        raise N2D2Error("E007", f"-{alone[0]} belongs to -calib-data", remedy="add -calib-data PATH")
    if a.w not in (None, "/dev/null") and a.network.endswith(".onnx"):
        raise N2D2Error(
            "E007",
            f"-w {a.w} has no effect on an ONNX file",
            remedy="leave it out: the file holds its weights, or name it in an INI",
        )


def _an_export() -> str:
    """The name of an export, for a remedy."""
    from n2d2py.export import target_names  # late: the help needs no export

    return target_names()[0]


def read_command(words: Sequence[str]) -> tuple[Path, RunOptions]:
    """The network's file and the typed options of a command line.

    Raises:
        N2D2Error: as `parse_arguments` and `run_options`.
    """
    arguments = parse_arguments(words)
    return Path(arguments.network), run_options(arguments)


def _field_value(option: Option, value: Any) -> Any:
    if option.kind == "flag":
        return option.sets
    if option.name == "input-range":
        return _range(value)
    if option.name in ("scale", "mean", "std"):
        numbers = _numbers(option, value)
        return numbers[0] if option.name == "scale" else numbers
    if option.name in ("resize", "crop"):
        return _size(option, value)
    if option.name == "act-rescale-per-output":
        return bool(value)
    return Path(value) if option.name == "o" else value


def _range(text: str) -> tuple[float, float]:
    low, _colon, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise N2D2Error("E003", f"-input-range {text} is not LOW:HIGH", remedy="give two numbers, such as -1:1") from None


def _numbers(option: Option, text: str) -> tuple[float, ...]:
    """Numbers with commas between them; a fraction is one, such as 1/255."""
    parts: list[list[str]] = []
    try:
        parts = [part.split("/") for part in text.split(",")]
        numbers = tuple(float(part[0]) / (float(part[1]) if len(part) == 2 else 1.0) for part in parts)
    except (ValueError, ZeroDivisionError):
        numbers = ()
    if (
        not numbers
        or not all(map(isfinite, numbers))
        or max(map(len, parts)) > 2
        or (option.name == "scale" and len(numbers) > 1)
    ):
        raise N2D2Error("E003", f"-{option.name} {text} is no number", remedy=f"give -{option.name} {option.metavar}")
    return numbers


def _size(option: Option, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]+(x[0-9]+)?", text):
        raise N2D2Error("E003", f"-{option.name} {text} is no size", remedy="give N or WIDTHxHEIGHT, in pixels")
    return tuple(int(part) for part in text.split("x"))


def _loading(a: Arguments, options: RunOptions) -> LoadOptions:
    """What is read of the network and its data, by what the command does with them."""
    extent = "structure" if a.describe else "shapes" if a.memory_report else "all"
    wanted = a.test or a.calib or a.calib_reload or a.compare or a.sensitivity or a.calibOnly or a.log_outputs
    read_data = extent == "all" and bool(wanted or a.pre_samples >= 0 or (a.export is not None and a.db_export != 0))
    calibrates = options.quantization.integer and bool(a.export or a.calibOnly)
    count = 0 if a.calib_reload else a.calib if a.calib > 0 else SYNTHETIC_STIMULI
    return replace(
        options.load, target=a.export or None, extent=extent, read_data=read_data, synthetic=count if calibrates else None
    )


def _error(code: str, what: str, remedy: str) -> N2D2Error:
    return N2D2Error(code, what, remedy=remedy)


def _convert(option: Option, text: str) -> Any:
    if option.kind == "text":
        _refuse(option, text)
        return text
    try:
        value = float(text) if option.kind == "float" else int(text)
    except ValueError:
        kind = "a number" if option.kind == "float" else "an integer"
        raise _error("E003", f"-{option.name} needs {kind}, not '{text}'", f"give -{option.name} {option.metavar}") from None
    _refuse(option, value)
    return value


def _refuse(option: Option, value: Any) -> None:
    """Raises E004 for a mode that there is not, E003 for a number that is too small."""
    if option.choices and value not in option.choices:
        like = nearest(str(value), option.choices)
        remedy = f"did you mean {like}?" if like else f"give one of {', '.join(option.choices)}"
        raise _error("E004", f"-{option.name} {value}: no such mode", remedy)
    if option.minimum is not None and value < option.minimum:
        raise _error("E003", f"-{option.name} {value} is too small", f"give {option.minimum:g} or more")


def parse_arguments(words: Sequence[str]) -> Arguments:
    """Parses a command line; options may stand before or after the network.

    Raises:
        N2D2Error: E002 unknown option, E003 and E004 a wrong value, E005 an option of training,
            E006 not exactly one network.
    """
    table = {option.name: option for option in OPTIONS}
    values = {option.key: option.default for option in OPTIONS}
    given: set[str] = set()
    networks: list[str] = []
    ignored: list[str] = []
    fused: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            networks.append(word)
            continue
        name, joined, value = (word[2:] if word.startswith("--") else word[1:]).partition("=")
        if joined:
            word = word.partition("=")[0]
            if name in table and table[name].kind == "flag":
                raise _error("E003", f"-{name} takes no value, but ={value} follows it", f"write -{name} alone")
            rest.insert(0, value)
        if name in ("help", "version"):
            name = name[0]
        if name in _IGNORED:
            ignored.append(name)
            if _IGNORED[name] and rest and _NUMBER.fullmatch(rest[0]):
                rest.pop(0)
            continue
        if name in _FUSED:
            modes, _why = _FUSED[name]
            if modes and (not rest or rest[0] not in modes):
                raise _error("E004", f"-{name} {' '.join(rest[:1])}: no such mode", f"give one of {', '.join(modes)}")
            fused.append(f"{name} {rest.pop(0)}" if modes else name)
            continue
        if name in _TRAINING:
            raise _error(
                "E005",
                f"-{name} belongs to N2D2's tools of training and benches that n2d2py does not have",
                "leave it out; -learn-epoch N trains a network",
            )
        if name not in table:
            like = nearest(name, table)
            raise _error("E002", f"unknown option {word}", f"did you mean -{like}?" if like else "see n2d2py -h")
        option = table[name]
        given.add(option.key)
        if option.kind == "flag":
            values[option.key] = True
            if rest and _NUMBER.fullmatch(rest[0]):
                raise _error("E003", f"-{option.name} takes no value, but {rest[0]} follows it", f"write -{option.name} alone")
        elif option.kind == "optional-int":
            values[option.key] = _convert(option, rest.pop(0)) if rest and rest[0].isdigit() else option.omitted
        elif option.kind == "optional-text":
            if joined and rest[0] not in option.choices:
                _refuse(option, rest[0])
            values[option.key] = rest.pop(0) if rest and rest[0] in option.choices else option.choices[0]
        elif not rest or (not joined and rest[0].lstrip("-") in table and rest[0].startswith("-")):
            raise _error(
                "E003",
                f"-{option.name} needs a value" + (f", not the option {rest[0]}" if rest else ""),
                f"give -{option.name} {option.metavar}",
            )
        else:
            value = _convert(option, rest.pop(0))
            values[option.key] = (*values[option.key], value) if option.repeated else value
    if len(networks) > 1:
        raise _error("E006", f"more than one network: {', '.join(networks)}", "give one INI or ONNX file")
    if not networks and not (values["h"] or values["v"] or values["completion"]):
        raise _error("E006", "no network", "give an INI or ONNX file; see n2d2py -h")
    return Arguments(networks[0] if networks else "", values, frozenset(given), tuple(ignored), tuple(fused))


def _signature(option: Option) -> str:
    value = {"flag": "", "optional-int": f" [{option.metavar}]", "optional-text": f" [{option.metavar}]"}.get(
        option.kind, f" {option.metavar}"
    )
    return f"-{option.name}{value}"


def _default(option: Option) -> str:
    return "" if option.kind in ("flag", "optional-int") or option.default in (None, ()) else f" [{option.default}]"


def help_text() -> str:
    """What `-h` prints."""
    import textwrap

    lines = [
        f"n2d2py {__version__}: from an INI or ONNX network to a standalone integer C++ project",
        "",
        "usage: n2d2py [options] NET.ini|NET.onnx",
    ]
    for group in dict.fromkeys(option.group for option in OPTIONS):
        lines += ["", f"{group}:"]
        for option in (o for o in OPTIONS if o.group == group):
            doc = option.doc + (f": {', '.join(option.choices)}" if option.choices else "") + _default(option)
            wrapped = textwrap.wrap(doc, 70)
            lines += [f"  {_signature(option)}"] + [f"        {line}" for line in wrapped]
    return "\n".join(lines)


def options_page() -> str:
    """The documentation page of all options, Markdown."""
    lines = [
        "# Command line",
        "",
        "`n2d2py [options] NET.ini|NET.onnx`. Options may stand before or after the network.",
        "Generated from `n2d2py/options.py` by `python -m n2d2py.docs`.",
    ]
    for group in dict.fromkeys(option.group for option in OPTIONS):
        lines += ["", f"## {group}", "", "| Option | Default | Meaning |", "|---|---|---|"]
        for option in (o for o in OPTIONS if o.group == group):
            doc = option.doc + (f": {', '.join(option.choices)}" if option.choices else "")
            doc, default = doc.replace("|", "\\|"), _default(option).strip(" []")
            lines.append(f"| `{_signature(option)}` | {default} | {doc} |".replace("|  |", "| |"))
    lines += [
        "",
        "Other options of N2D2 for training ("
        + ", ".join(f"`-{name}`" for name in _TRAINING)
        + ") are refused; "
        + ", ".join(f"`-{name}`" for name in _FUSED)
        + ", for networks after quantization-aware training, change nothing, which a notice says; "
        + ", ".join(f"`-{name}`" for name in _IGNORED)
        + " have no effect, which a warning says.",
    ]
    return "\n".join(lines) + "\n"
