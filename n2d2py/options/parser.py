"""Words of a command line become values by option."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from n2d2py.errors import N2D2Error, join_names, suggest
from n2d2py.naming import MODEL_ENDINGS
from n2d2py.options.table import FUSED, IGNORED, OPTIONS, REFUSED, Option

_NUMBER = re.compile(r"-?[0-9]+")


@dataclass
class Arguments:
    """Parsed options by key (name with `-` as `_`), the network's path, "" when absent, options without a meaning, and those of
    `FUSED`."""

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


def _error(code: str, what: str, remedy: str) -> N2D2Error:
    return N2D2Error(code, what, remedy=remedy)


def _convert(option: Option, text: str) -> Any:
    if option.kind == "text":
        if not text:
            raise _error("E003", f"-{option.name} requires a value instead of ''", f"give -{option.name} {option.metavar}")
        refuse(option, text)
        return text
    try:
        value = float(text) if option.kind == "float" else int(text)
    except ValueError:
        kind = "a number" if option.kind == "float" else "an integer"
        remedy = f"-{option.name} requires {kind} instead of '{text}'"
        raise _error("E003", remedy, f"give -{option.name} {option.metavar}") from None
    refuse(option, value)
    return value


def refuse(option: Option, value: Any) -> None:
    """Raise E004 for a mode that there is not, E003 for a number that is too small."""
    if option.choices and value not in option.choices:
        remedy = suggest(str(value), option.choices, f"give one of {join_names(option.choices)}")
        raise _error("E004", f"-{option.name} {value} is not a valid value", remedy)
    if option.minimum is not None and value < option.minimum:
        raise _error("E003", f"-{option.name} {value} is too small", f"give {option.minimum:g} or more")


def parse_arguments(words: Sequence[str]) -> Arguments:
    """Parse a command line. Options may stand before or after the network.

    Raises:
        N2D2Error: E002 unknown option, E003 and E004 a wrong value, E005 an option of training, E006 not exactly one network.
    """
    table = {option.name: option for option in OPTIONS}
    values = {option.key: option.default for option in OPTIONS}
    keys: set[str] = set()
    networks: list[str] = []
    ignored: list[str] = []
    fused: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            networks.append(word)
            continue
        name, equals, value = (word[2:] if word.startswith("--") else word[1:]).partition("=")
        if equals:
            word = word.partition("=")[0]
            if name in table and table[name].kind == "flag":
                raise _error("E003", f"-{name} takes no value, but is followed by ={value}", f"write -{name} alone")
            rest.insert(0, value)
        if name in ("help", "version"):
            name = name[0]
        if name in IGNORED:
            ignored.append(name)
            if IGNORED[name] and rest and _NUMBER.fullmatch(rest[0]):
                rest.pop(0)
            continue
        if name in FUSED:
            modes, _why = FUSED[name]
            if modes and (not rest or rest[0] not in modes):
                raise _error("E004", f"-{name} {' '.join(rest[:1])} is not a valid value", f"give one of {', '.join(modes)}")
            fused.append(f"{name} {rest.pop(0)}" if modes else name)
            continue
        if name in REFUSED:
            why, remedy = REFUSED[name]
            raise _error("E005", f"-{name} {why}", remedy)
        if name not in table:
            raise _error("E002", f"option {word} is unknown", suggest(name, table, "run n2d2py -h all", form="-{}"))
        option = table[name]
        keys.add(option.key)
        if option.kind == "flag":
            values[option.key] = True
            if rest and _NUMBER.fullmatch(rest[0]):
                remedy = f"-{option.name} takes no value, but is followed by {rest[0]}"
                raise _error("E003", remedy, f"write -{option.name} alone")
        elif option.kind == "optional-int":
            values[option.key] = _convert(option, rest.pop(0)) if rest and rest[0].isdigit() else option.omitted
        elif option.kind == "optional-text":
            if name == "h" and len(rest) == 1 and rest[0].lstrip("-") in option.choices:
                rest[0] = rest[0].lstrip("-")
            unknown = rest and not rest[0].startswith("-") and not rest[0].endswith((".ini", *MODEL_ENDINGS))
            if rest and rest[0] not in option.choices and (equals or (unknown and not Path(rest[0]).exists())):
                refuse(option, rest[0])
            values[option.key] = rest.pop(0) if rest and rest[0] in option.choices else option.choices[0]
        elif not rest or (not equals and rest[0].lstrip("-") in table and rest[0].startswith("-")):
            remedy = f"-{option.name} requires a value" + (f", but is followed by the option {rest[0]}" if rest else "")
            raise _error("E003", remedy, f"give -{option.name} {option.metavar}")
        else:
            value = _convert(option, rest.pop(0))
            values[option.key] = (*values[option.key], value) if option.repeated else value
    if len(networks) > 1:
        raise _error("E006", f"several models are given: {', '.join(networks)}", "give one INI, ONNX or TFLite file")
    if not networks and not (values["h"] or values["v"] or values["completion"]):
        raise _error("E006", "no model is given", "give an INI, ONNX or TFLite file; n2d2py -h shows examples")
    return Arguments(networks[0] if networks else "", values, frozenset(keys), tuple(ignored), tuple(fused))
