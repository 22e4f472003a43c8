"""The command line: one table makes the parser, `-h` and the documentation page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from n2d2py import __version__
from n2d2py.arithmetic import RESCALING_MODES
from n2d2py.errors import N2D2Error, nearest
from n2d2py.quant.options import QUALITIES
from n2d2py.quant.thresholds import CLIPPING_MODES, WEIGHT_CLIPPING_MODES

__all__ = ["OPTIONS", "Arguments", "Option", "help_text", "options_page", "parse_arguments"]


@dataclass(frozen=True)
class Option:
    """One option: `kind` is flag, int, float, text or optional-int; `default` its value when absent."""

    name: str
    kind: str
    default: Any
    doc: str
    group: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    repeated: bool = False

    @property
    def key(self) -> str:
        """Attribute name in Arguments."""
        return self.name.replace("-", "_")


_RUN, _QUANT, _EXPORT, _OUT = "Run", "Quantization", "Export", "Output"

OPTIONS: tuple[Option, ...] = (
    Option("seed", "int", 1, "seed of initial weights, partitions and synthetic data", _RUN, "N", minimum=0),
    Option(
        "w",
        "text",
        None,
        "folder or .npz of weights; /dev/null loads nothing; absent: weights_validation or weights when such a folder is there",
        _RUN,
        "PATH",
    ),
    Option("w-ignore", "flag", False, "layers whose weights are missing keep their initial values", _RUN),
    Option("test", "flag", False, "score the network on the test set: float, simulated and compiled", _RUN),
    Option("nb-test", "int", -1, "number of test stimuli; -1 for all", _RUN, "N", minimum=-1),
    Option("test-index", "int", -1, "score one stimulus only, by its index", _RUN, "I", minimum=-1),
    Option(
        "pre-samples",
        "int",
        -1,
        "write the pictures of test stimulus I after each pre-processing step, into pre_samples/",
        _OUT,
        "I",
        minimum=-1,
    ),
    Option("fuse", "flag", False, "fuse layers before a float test; an export always fuses", _RUN),
    Option(
        "compare",
        "optional-int",
        0,
        "compare float, simulated and compiled values layer by layer over N stimuli (10 when N is left out)",
        _RUN,
        "N",
        minimum=1,
    ),
    Option(
        "sensitivity",
        "optional-int",
        0,
        "rank the layers by what each costs in integers alone, over N stimuli (10 when N is left out)",
        _RUN,
        "N",
        minimum=1,
    ),
    Option("describe", "flag", False, "print the network as JSON on stdout and stop; needs no data", _RUN),
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
    Option("export", "text", None, "write a project of this type into export_TYPE_<int|float><bits>", _EXPORT, "TYPE"),
    Option(
        "nbbits",
        "int",
        8,
        "precision: 8 or 16 for integers, -32 or -64 for floating point, -16 for weights stored in half precision, computed in "
        "float32; 32 for integers of 32 bits as they are, without scales (max pools, sums behind them)",
        _EXPORT,
        "N",
    ),
    Option("db-export", "int", -1, "test stimuli written into the export; 0 for none, -1 for all", _EXPORT, "N", minimum=-1),
    Option("export-parameters", "text", None, "file of export parameters", _EXPORT, "FILE"),
    Option(
        "tune",
        "optional-int",
        0,
        "time the tiles of each convolution over N rounds (100 when N is left out) and export with the "
        "best; statistics/tuned.ini keeps them, for the file of export parameters",
        _EXPORT,
        "N",
        minimum=1,
    ),
    Option(
        "tune-command",
        "text",
        "",
        "what runs the timed program elsewhere, such as an emulator or a script that copies it to a board; {binary} is "
        "the program, {folder} its export; make takes TARGET, ARCH and CXX from the environment",
        _EXPORT,
        "COMMAND",
    ),
    Option(
        "calib",
        "int",
        0,
        "stimuli used for calibration; -1 for the whole set; networks that come quantized need none",
        _QUANT,
        "N",
        minimum=-1,
    ),
    Option("calib-reload", "flag", False, "use the statistics of the previous calibration", _QUANT),
    Option("calibOnly", "flag", False, "calibrate into calib_<name>_int<bits> and stop", _QUANT),
    Option(
        "calib-data",
        "text",
        None,
        "calibrate (and, with labels, test) on a folder of images, a .npy or a .npz "
        "instead of a database; for several inputs an .npz or a folder of .npy with an array for each",
        _QUANT,
        "PATH",
    ),
    Option("input-range", "text", None, "real values that pixels 0 and 255 of -calib-data stand for [0:1]", _QUANT, "LOW:HIGH"),
    Option("act-clipping-mode", "text", "MSE", "how activation ranges are chosen", _QUANT, "MODE", CLIPPING_MODES),
    Option("act-quantile-value", "float", 0.9999, "share of values kept by the mode Quantile", _QUANT, "F", minimum=0),
    Option("wt-clipping-mode", "text", "None", "how weight ranges are chosen", _QUANT, "MODE", WEIGHT_CLIPPING_MODES),
    Option(
        "act-rescaling-mode",
        "text",
        "Floating-point",
        "arithmetic that maps accumulators to outputs",
        _QUANT,
        "MODE",
        RESCALING_MODES,
    ),
    Option(
        "act-rescale-per-output",
        "int",
        1,
        "1: a weight scale for each output channel; 0: one for each layer",
        _QUANT,
        "B",
        minimum=0,
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
    ),
    Option(
        "wt-reduce-range",
        "flag",
        False,
        "weights of convolutions and fully connected layers at most a bit coarser, as far as products of "
        "bytes then fit 16 bits: faster, and as exact, on processors without a dot product of bytes",
        _QUANT,
    ),
    Option("no-bias-correction", "flag", False, "biases do not make up for the mean error of their outputs", _QUANT),
    Option(
        "input-bits",
        "int",
        0,
        "width of the network's inputs, 8 or 16; 0: 16 where 8 bits would spoil them",
        _QUANT,
        "N",
        minimum=0,
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
    ),
    Option(
        "mixed-precision",
        "flag",
        False,
        "the activations whose rounding to 8 bits costs most are stored in 16 bits, as -quality best does",
        _QUANT,
    ),
    Option("no-mixed-precision", "flag", False, "all activations between layers have 8 bits, also with -quality best", _QUANT),
    Option(
        "sequential-calibration",
        "flag",
        False,
        "ranges of activations are chosen again, layer by layer, on what the integers of the layers before give",
        _QUANT,
    ),
    Option("no-unsigned", "flag", False, "no unsigned activations", _QUANT),
    Option("no-cle", "flag", False, "no cross-layer equalization of weights", _QUANT),
    Option("o", "text", ".", "folder in which results are written", _OUT, "DIR"),
    Option(
        "force",
        "flag",
        False,
        "replace an export of another network, or one with files that were edited or added since it was written; what a build "
        "leaves there is replaced in any case",
        _OUT,
    ),
    Option("log-outputs", "int", 0, "write every layer output for the N-th test stimulus (from 1)", _OUT, "N", minimum=0),
    Option(
        "log-json", "flag", False, "write the results of every stimulus of -test as JSON too, <target>/<tag>/classif.json", _OUT
    ),
    Option("strict", "flag", False, "warnings are errors", _OUT),
    Option("quiet", "flag", False, "print warnings, errors and results only", _OUT),
    Option("verbose", "flag", False, "say what each step did and did not do; tracebacks of internal errors", _OUT),
    Option("h", "flag", False, "print this help; with -export TYPE also the export parameters of that type", _OUT),
    Option("v", "flag", False, "print the version", _OUT),
)

_TRAINING = (
    "learn",
    "learn-epoch",
    "learn-stdp",
    "log-epoch",
    "valid-metric",
    "stop-valid",
    "find-lr",
    "ws",
    "finetuning",
    "pruning",
    "pruning-threshold",
    "testQAT",
    "qat-sat",
    "c-round-mode",
    "b-round-mode",
    "wt-round-mode",
    "testAdv",
    "present-time",
    "ts",
    "l",
    "check",
    "dev",
    "multidev",
    "dynamic-allocation",
    "bench",
)
"""Options of N2D2 that train, or that need what only training has."""

_NUMBER = re.compile(r"-?[0-9]+")
_IGNORED = {"log": True, "report": True, "log-db-stats": False, "log-kernels": False}
"""Logging options of N2D2 without a meaning here -> whether they take a number; a warning says so."""


@dataclass
class Arguments:
    """Parsed options by key (name with `-` as `_`), the network's path, "" when absent, and options without a meaning."""

    network: str
    values: dict[str, Any]
    given: frozenset[str]
    ignored: tuple[str, ...] = ()

    def __getattr__(self, key: str) -> Any:
        try:
            return self.__dict__["values"][key]
        except KeyError:
            raise AttributeError(key) from None

    def described(self) -> dict[str, Any]:
        """The options that decide what is exported, for the manifest; of paths only the last part."""
        return {
            option.name: _without_folder(option, self.values[option.key])
            for option in OPTIONS
            if option.group in (_QUANT, _EXPORT, _RUN) and option.name not in ("describe", "memory-report", "calib-reload")
        }


def _without_folder(option: Option, value: Any) -> Any:
    """The value of an option as it is in every folder; files are told apart by their digests."""
    if option.repeated:
        return [Path(one).name for one in value]
    named = option.metavar in ("PATH", "FILE") and value and value != "/dev/null"
    return Path(value).name if named else value


def _error(code: str, what: str, remedy: str) -> N2D2Error:
    return N2D2Error(code, what, remedy=remedy)


def _convert(option: Option, text: str) -> Any:
    if option.choices and text not in option.choices:
        like = nearest(text, option.choices)
        remedy = f"did you mean {like}?" if like else f"give one of {', '.join(option.choices)}"
        raise _error("E004", f"-{option.name} {text}: no such mode", remedy)
    if option.kind == "text":
        return text
    try:
        value = float(text) if option.kind == "float" else int(text)
    except ValueError:
        kind = "a number" if option.kind == "float" else "an integer"
        raise _error("E003", f"-{option.name} needs {kind}, not '{text}'", f"give -{option.name} {option.metavar}") from None
    if option.minimum is not None and value < option.minimum:
        raise _error("E003", f"-{option.name} {text} is too small", f"give {option.minimum} or more")
    return value


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
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            networks.append(word)
            continue
        name = word[2:] if word.startswith("--") else word[1:]
        if name in ("help", "version"):
            name = name[0]
        if name in _IGNORED:
            ignored.append(name)
            if _IGNORED[name] and rest and _NUMBER.fullmatch(rest[0]):
                rest.pop(0)
            continue
        if name in _TRAINING:
            raise _error(
                "E005",
                f"-{name} belongs to N2D2's training and bench tools, which n2d2py does not have",
                "train elsewhere, then give the weights with -w or an ONNX file",
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
            values[option.key] = _convert(option, rest.pop(0)) if rest and rest[0].isdigit() else 10
        elif not rest or (rest[0].lstrip("-") in table and rest[0].startswith("-")):
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
    if not networks and not (values["h"] or values["v"]):
        raise _error("E006", "no network", "give an INI or ONNX file; see n2d2py -h")
    return Arguments(networks[0] if networks else "", values, frozenset(given), tuple(ignored))


def _signature(option: Option) -> str:
    value = {"flag": "", "optional-int": f" [{option.metavar}]"}.get(option.kind, f" {option.metavar}")
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
        "Options of N2D2 for training ("
        + ", ".join(f"`-{name}`" for name in _TRAINING)
        + ") are refused; "
        + ", ".join(f"`-{name}`" for name in _IGNORED)
        + " have no effect, which a warning says.",
    ]
    return "\n".join(lines) + "\n"
