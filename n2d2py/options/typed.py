"""Values by option become the typed options of the stages, and back: what options mean together, and what a manifest records."""

import os
import re
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from operator import attrgetter, truediv
from pathlib import Path
from typing import Any

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.naming import MODEL_ENDINGS
from n2d2py.options.parser import Arguments, parse_arguments, refuse
from n2d2py.options.table import DATA, EXPORT, FUSED, OPTIONS, QUANT, RUN, Option
from n2d2py.stages.options import GIVEN_STIMULI, SYNTHETIC_STIMULI, LoadOptions, RunOptions, check_options, suit_calibration


def recorded(options: RunOptions) -> dict[str, Any]:
    """Return the options that decide the contents of an export, by name, for the manifest; of paths only the last part."""
    return {
        option.name: _without_folder(option, _value(option, options))
        for option in OPTIONS
        if option.group in (DATA, QUANT, EXPORT, RUN) and option.field
    }


def checked(options: RunOptions) -> RunOptions:
    """Return the options of a run from Python, checked and with what the manifest records.

    Raises E003, E004, E506 for values that an option cannot have, E007 for two that exclude each other.
    """
    plain, changed = RunOptions(), set()
    for option in OPTIONS:
        if not option.field:
            continue
        value = _without_folder(option, _value(option, options))
        if value != _without_folder(option, _value(option, plain)):
            changed.add(option.name)
            if value != option.default:
                refuse(option, value)
    check_options(options)
    choices = frozenset(changed.intersection(CHOICES))
    return replace(options, given=frozenset(changed), choices=choices, recorded=recorded(options))


def _value(option: Option, options: RunOptions) -> Any:
    value: Any = attrgetter(option.field)(options)
    if option.kind == "flag":
        return value is option.sets
    if value is None:
        return option.default
    if option.kind == "int":
        return int(value)
    if option.name == "input-range":
        return f"{value[0]:g}:{value[1]:g}"
    if option.group == DATA and isinstance(value, tuple) and option.metavar != "FILE":
        return ("x" if option.metavar == "SIZE" else ",").join(f"{one:.9g}" for one in value) or option.default
    return value


def _without_folder(option: Option, value: Any) -> Any:
    """Return the value of an option, the same in every folder: files are distinguished by their digests."""
    if option.repeated:
        return [Path(one).name for one in value]
    if option.metavar not in ("PATH", "FILE") or value is None:
        return value
    if not isinstance(value, (str, Path)):
        return "data"
    return Path(value).name if str(value) != "/dev/null" else "/dev/null"


_CLASSES = ("load", "calibration", "quantization", "score", "export")
"""Parts of RunOptions, each of a class with this name: LoadOptions."""
_ARGUMENTS = ("folder", "load.data", "load.labels", "export.target", "quantization.bits")
"""Fields that are arguments of functions."""
_FIELDS = {option.name: option for option in OPTIONS if option.field in _ARGUMENTS or option.field.split(".")[0] in _CLASSES}
_LISTS = ("input-shape", "constants", "inputs", "outputs")
"""Options whose values are texts in Python too."""
_NAMED = re.compile(rf"(?<![\w-])-({'|'.join(sorted(_FIELDS, key=len, reverse=True))})(?![\w-])( [\w./|?=:,-]*[\w?])?")


def python_words(text: str) -> str:
    """Return a message with arguments and fields of the Python interface instead of options: `-nbbits 8` becomes `bits=8`."""

    def named(match: re.Match[str]) -> str:
        option, rest = _FIELDS[match[1]], match[2] or ""
        value = "" if option.kind == "flag" or not re.fullmatch(r" (-?[\dA-Z/.].*)", rest) else rest.strip()
        is_list = option.name in _LISTS and re.search(r"[?=:,]|^ \d", rest)
        if is_list or rest.strip() in option.choices or value[:1] in ("/", "."):
            value = repr(rest.strip())
        rest = "" if value else rest
        part, _, name = option.field.rpartition(".")
        if option.field in _ARGUMENTS:
            return f"{name}={value or '...'}{rest}"
        value = value or (option.sets if option.kind == "flag" else "")
        part = f"{part.capitalize()}Options"
        return f"{part}({name}={value}){rest}" if value != "" else f"{part}.{name}{rest}"

    return _NAMED.sub(named, text)


def run_options(arguments: Arguments) -> RunOptions:
    """Return the typed options of a command line, checked together.

    Raises E003 for values out of range, E007 for options that contradict each other, E506 for an unknown precision.
    """
    _check_together(arguments)
    if arguments.seed == 0:
        seed = time.time_ns() % (2**31 - 1) + 1
        log.notice("seed %d, drawn from the clock: -seed %d reproduces this run", seed, seed)
        arguments = replace(arguments, values={**arguments.values, "seed": seed})
    own_data = arguments.calib_data and "calib" not in arguments.given and not arguments.calib_reload
    if own_data and arguments.nbbits in (8, 16) and (arguments.export or arguments.calibOnly):
        arguments = replace(arguments, values={**arguments.values, "calib": GIVEN_STIMULI})
    parts: dict[str, dict[str, Any]] = {}
    for option in OPTIONS:
        part, _, name = option.field.rpartition(".")
        if option.field and (option.key in arguments.given or option.name == "calib"):
            parts.setdefault(part, {})[name] = _field_value(option, arguments.values[option.key])
    whole = parts.pop("", {})
    names = frozenset(option.name for option in OPTIONS if option.key in arguments.given)
    options = replace(RunOptions(), **{part: replace(getattr(RunOptions(), part), **parts[part]) for part in parts}, **whole)
    calibration = suit_calibration(options.calibration, options.quantization)
    choices = names.intersection(CHOICES)
    options = replace(options, given=names, choices=choices, load=_loading(arguments, options), calibration=calibration)
    check_options(options)
    _warn_without_effect(arguments)
    return replace(options, recorded=recorded(options), command=_command(arguments))


_PLACES = ("o", "force", "quiet", "verbose", "completion", "h", "v")
"""Options that change neither what is computed nor what is written into an export."""


def _command(a: Arguments) -> str:
    """Return a command line that repeats the run, for a shell in the network's folder."""
    home = Path(a.network).resolve().parent
    words = ["n2d2py", Path(a.network).name]
    for option in OPTIONS:
        if option.key not in a.given or option.name in _PLACES:
            continue
        for value in a.values[option.key] if option.repeated else (a.values[option.key],):
            words += [f"-{option.name}"] + ([] if option.kind == "flag" else [_from(home, option, value)])
    return shlex.join(words)


def _from(home: Path, option: Option, value: Any) -> str:
    """Return a value as text; paths are relative to `home` if both are in one tree other than the root."""
    path = Path(str(value)).absolute()
    if option.metavar not in ("PATH", "FILE", "DIR") or not path.exists() or str(value) == os.devnull:
        return str(value)
    relative = os.path.relpath(path.resolve(), home)
    return str(path) if len(Path(os.path.commonpath([path.resolve(), home])).parts) < 2 else relative


CHOICES = tuple(
    option.name
    for option in OPTIONS
    if option.group == QUANT and (not option.field or option.field.startswith(("calibration.", "quantization.")))
)
"""The options that choose the integers of a network."""


def _warn_without_effect(a: Arguments) -> None:
    learns = a.learn or a.learn_epoch
    target = _target(a.export).quantization.without_effect if a.export and a.nbbits in (8, 16) else ()
    written, integers = ("db-export", "weights-text", "app", "tune"), () if a.calibOnly else ("nbbits", *CHOICES)
    lost = {
        f"the export {a.export} decides this itself": target,
        "it requires -nbbits 8 or 16": [name for name in CHOICES if name != "calib"] if a.nbbits not in (8, 16) else (),
        "16-bit integers are not equalized": ("no-cle",) if a.nbbits == 16 and a.act_rescale_per_output else (),
        "it requires -act-clipping-mode Quantile": ("act-quantile-value",) if a.act_clipping_mode != "Quantile" else (),
        "it requires -test": () if a.test else ("nb-test", "test-index", "log-json"),
        "it requires -tune": () if a.tune else ("tune-command",),
        "it requires -export": () if a.export or a.memory_report else (*written, *integers),
        "it requires training": () if learns or a.find_lr else ("dev", "learn-workers"),
        "it requires -learn or -learn-epoch": () if learns else ("stop-valid", "learn-resume", "valid-metric"),
        "it applies to INI files only": ("w-ignore",) if a.network.endswith(MODEL_ENDINGS) else (),
    }
    for name in a.fused:
        log.notice("-%s has no effect: %s", name, FUSED[name.split()[0]][1])
    for name, why in a.ignored.items():
        lost[why] = (*lost.get(why, ()), name)
    for why, names in lost.items():
        effective = [f"-{name}" for name in names if name in a.ignored or name.replace("-", "_") in a.given]
        if effective:
            log.warning("W011", f"{', '.join(effective)} has no effect: {why}", remedy="remove it")


def _target(name: str) -> Any:
    from n2d2py.exports import find_target  # late: the help needs no export

    return find_target(name)


def _check_together(a: Arguments) -> None:
    """Raise E003 and E007 for what single options cannot know, and the stages need not."""
    if a.act_rescale_per_output not in (0, 1):
        raise N2D2Error("E003", f"-act-rescale-per-output {a.act_rescale_per_output} is neither 0 nor 1", remedy="give 0 or 1")
    trains, integer = bool(a.learn or a.learn_epoch), a.nbbits in (8, 16)
    is_ini, is_model = a.network.endswith(".ini"), a.network.endswith(MODEL_ENDINGS)
    separate = [name for name in ("describe", "memory-report", "calib-reload") if a.values[name.replace("-", "_")]]
    measured = [name for name in ("compare", "latency") if a.values[name]]
    own_data = ("class-names", "post", *(() if is_model else ("input-format",)))
    data = [option.name for option in OPTIONS if option.group == DATA and option.key in a.given and option.name not in own_data]
    export, add_data = "" if a.export else f"add -export {_an_export()}", "add -calib-data PATH"
    integers = f"add -export {a.export or _an_export()} and -nbbits 8 or 16"
    checks: list[tuple[object, str, str]] = [
        ("testQAT" in a.fused and not a.test, "-testQAT requires -test", "add -test, which scores the integers of an export"),
        (a.streams is not None and not a.test, "-streams requires -test", "add -test, -audio and -post scores"),
        (a.find_lr and (trains or a.export or a.test), "-find-lr ends when the rates are written", "run it alone, then train"),
        (a.mixed_precision and a.no_mixed_precision, "-mixed-precision excludes -no-mixed-precision", "remove one of them"),
        (a.learn and a.learn_epoch, "-learn and -learn-epoch exclude each other", "remove one of them"),
        (trains and separate, f"-{''.join(separate[:1])} cannot be combined with training", "train first, then run it alone"),
        (a.calibOnly and not integer, "-calibOnly requires integers", "use -nbbits 8 or 16"),
        (measured and not a.export, f"-{''.join(measured[:1])} requires an export", export),
        (a.sensitivity and not (a.export and integer), "-sensitivity requires an integer export", integers),
        (a.pre_samples >= 0 and not is_ini, "-pre-samples requires an INI file", "remove -pre-samples"),
        (a.input_range is not None and not a.calib_data and is_ini, "-input-range requires -calib-data", add_data),
        (data and not a.calib_data, f"-{''.join(data[:1])} requires -calib-data", add_data),
        (
            a.w not in (None, "/dev/null") and is_model,
            f"-w {a.w} has no effect on an ONNX or TFLite file",
            "remove -w; the file contains its weights, and an INI can refer to it",
        ),
    ]
    for applies, what, remedy in checks:
        if applies:
            raise N2D2Error("E007", what, remedy=remedy)


def _an_export() -> str:
    from n2d2py.exports import target_names  # late: the help needs no export

    return target_names()[0]


def read_command(words: Sequence[str]) -> tuple[Path, RunOptions]:
    """Return the network's file and the typed options of a command line. Raises as `parse_arguments` and `run_options`."""
    arguments = parse_arguments(words)
    return Path(arguments.network), run_options(arguments)


def _field_value(option: Option, value: Any) -> Any:
    return option.sets if option.kind == "flag" else _READERS.get(option.name, lambda _, value: value)(option, value)


def _range(option: Option, text: str) -> tuple[float, float]:
    low, _colon, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise N2D2Error("E003", f"-{option.name} {text} is not LOW:HIGH", remedy="give two numbers, such as -1:1") from None


def _numbers(option: Option, text: str) -> tuple[float, ...]:
    """Return the numbers with commas between them; a fraction is one, such as 1/255."""
    try:
        fractions = [[float(number) for number in part.split("/")] for part in text.split(",")]
        numbers = tuple(truediv(*([*one, 1.0] if len(one) == 1 else one)) for one in fractions)
    except (ValueError, ZeroDivisionError, TypeError):
        numbers = ()
    if not numbers or not all(map(isfinite, numbers)) or (option.name == "scale" and len(numbers) > 1):
        raise N2D2Error("E003", f"-{option.name} {text} is not a number", remedy=f"give -{option.name} {option.metavar}")
    return numbers


def _size(option: Option, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]+(x[0-9]+)?", text):
        raise N2D2Error("E003", f"-{option.name} {text} is not a size", remedy="give N or WIDTHxHEIGHT in pixels")
    return tuple(int(part) for part in text.split("x"))


_READERS: dict[str, Callable[[Option, Any], Any]] = {
    "input-range": _range,
    "scale": lambda option, value: _numbers(option, value)[0],
    "mean": _numbers,
    "std": _numbers,
    "resize": _size,
    "crop": _size,
    "act-rescale-per-output": lambda _, value: bool(value),
    "o": lambda _, value: Path(value),
}
"""The field's value of an option, from that of the command line."""


def _loading(a: Arguments, options: RunOptions) -> LoadOptions:
    """Return the parts of the network and its data to read, by what the command does with them."""
    extent = "structure" if a.describe else "shapes" if a.memory_report else "all"
    wanted = a.test or a.calib or a.calib_reload or a.compare or a.sensitivity or a.calibOnly or a.log_outputs
    read_data = extent == "all" and bool(wanted or a.pre_samples >= 0 or (a.export is not None and a.db_export != 0))
    integer = options.quantization.integer and bool(a.export or a.calibOnly or a.memory_report)
    calibrates = integer and bool(a.calib or a.calib_reload or a.memory_report)
    count = 0 if a.calib_reload else a.calib if a.calib > 0 else SYNTHETIC_STIMULI
    return replace(
        options.load,
        target=a.export or (_an_export() if a.memory_report else None),
        extent=extent,
        read_data=read_data,
        synthetic=count if calibrates else None,
        # with a plan, an export computes integers of fixed types between layers in floating point, as a dynamic file does
        run_time_scales=not integer and (not a.export or _target(a.export).needs_plan),
    )
