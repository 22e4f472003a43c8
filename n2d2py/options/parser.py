"""Words of a command line become values by option."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from n2d2py.errors import N2D2Error, join_names, suggest
from n2d2py.naming import MODEL_ENDINGS
from n2d2py.options.table import FUSED, IGNORED, OPTIONS, REFUSED, Option

_NUMBER = re.compile(r"-?[0-9]+")


@dataclass
class Arguments:
    """Options by key (name with `-` as `_`), the network's path or "", options without effect and why, those of `FUSED`."""

    network: str
    values: dict[str, Any]
    given: frozenset[str]
    ignored: Mapping[str, str] = field(default_factory=dict)
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

    Raises E002 for an unknown option, E003 or E004 for a wrong value, E005 for one of N2D2, E006 without exactly one network.
    """
    parser = _Parser(words)
    while parser.rest:
        parser.read_word()
    networks, values = parser.networks, parser.values
    if len(networks) > 1:
        raise _error("E006", f"several models are given: {', '.join(networks)}", "give one INI, ONNX or TFLite file")
    if not networks and not (values["h"] or values["v"] or values["completion"]):
        raise _error("E006", "no model is given", "give an INI, ONNX or TFLite file; n2d2py -h shows examples")
    network = networks[0] if networks else ""
    return Arguments(network, values, frozenset(parser.keys), parser.ignored, tuple(parser.fused))


class _Parser:
    def __init__(self, words: Sequence[str]):
        self.table = {option.name: option for option in OPTIONS}
        self.rest = list(words)
        self.values = {option.key: option.default for option in OPTIONS}
        self.keys: set[str] = set()
        self.networks: list[str] = []
        self.ignored: dict[str, str] = {}
        self.fused: list[str] = []

    def read_word(self) -> None:
        word = self.rest.pop(0)
        if not word.startswith("-") or word == "-":
            self.networks.append(word)
            return
        name, equals, value = (word[2:] if word.startswith("--") else word[1:]).partition("=")
        if equals:
            if name in self.table and self.table[name].kind == "flag":
                raise _error("E003", f"-{name} takes no value, but is followed by ={value}", f"write -{name} alone")
            self.rest.insert(0, value)
        if name in ("help", "version"):
            name = name[0]
        if name in IGNORED:
            self.ignored[name] = "it belongs to the logs of N2D2"
            if IGNORED[name] and self._has_number():
                self.rest.pop(0)
        elif name in FUSED:
            self._read_fused(name, FUSED[name][0])
        elif name in REFUSED:
            why, remedy = REFUSED[name]
            raise _error("E005", f"-{name} {why}", remedy)
        elif name not in self.table:
            what = f"option {word.partition('=')[0]} is unknown"
            raise _error("E002", what, suggest(name, self.table, "run n2d2py -h all", form="-{}"))
        else:
            self._read_option(name, bool(equals))

    def _read_option(self, name: str, after_equals: bool) -> None:
        option = self.table[name]
        before = self.values[option.key]
        self.values[option.key] = self._read_value(option, after_equals)
        if option.key in self.keys and not option.repeated and self.values[option.key] != before:
            self.ignored[f"{name} {before}"] = "the option is given again"
        self.keys.add(option.key)

    def _has_number(self) -> bool:
        return bool(self.rest and _NUMBER.fullmatch(self.rest[0]))

    def _read_fused(self, name: str, modes: Collection[str]) -> None:
        if modes and (not self.rest or self.rest[0] not in modes):
            what = f"-{name} {' '.join(self.rest[:1])} is not a valid value"
            raise _error("E004", what, f"give one of {', '.join(modes)}")
        self.fused.append(f"{name} {self.rest.pop(0)}" if modes else name)

    def _read_value(self, option: Option, after_equals: bool) -> Any:
        """Return the value of an option; `after_equals`: its word follows a `=`."""
        rest, name = self.rest, option.name
        if option.kind == "flag":
            if self._has_number():
                what = f"-{name} takes no value, but is followed by {rest[0]}"
                raise _error("E003", what, f"write -{name} alone")
            return True
        if option.kind == "optional-int":
            return _convert(option, rest.pop(0)) if rest and rest[0].isdigit() else option.omitted
        if option.kind == "optional-text":
            return self._read_choice(option, after_equals)
        if not rest or (not after_equals and rest[0].startswith("-") and rest[0].lstrip("-") in self.table):
            what = f"-{name} requires a value" + (f", but is followed by the option {rest[0]}" if rest else "")
            raise _error("E003", what, f"give -{name} {option.metavar}")
        value = _convert(option, rest.pop(0))
        return (*self.values[option.key], value) if option.repeated else value

    def _read_choice(self, option: Option, after_equals: bool) -> str:
        """Return the next word if it is a choice, else the first choice; refuse a word that is meant as one."""
        rest = self.rest
        if option.name == "h" and len(rest) == 1 and rest[0].lstrip("-") in option.choices:
            rest[0] = rest[0].lstrip("-")
        if rest and rest[0] in option.choices:
            return rest.pop(0)
        is_other = rest and not rest[0].startswith("-") and not rest[0].endswith((".ini", *MODEL_ENDINGS))
        if rest and (after_equals or (is_other and not Path(rest[0]).exists())):
            refuse(option, rest[0])
        return option.choices[0]
