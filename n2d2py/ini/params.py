"""Export parameters: the file of `-export-parameters`, checked against the schema of a target.

The file is an INI text: export parameters first, then a section `[layer]` for each layer with its own parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from n2d2py import log
from n2d2py.errors import ErrorList, Location, N2D2Error, suggest
from n2d2py.ini import lexer
from n2d2py.ini.ignored import Ignored, IgnoredKeys
from n2d2py.ini.kinds import Kind, Unreadable
from n2d2py.ini.schema import REQUIRED, Key, Schema, keys

GENERAL = Schema(
    "export parameters",
    (
        Key(
            "States",
            Kind.STRING,
            "",
            "States of the ONNX model to keep between calls: INPUT:OUTPUT,... (docs/how-to/streaming.md). Default: pairs with "
            "matching names, such as h0:hn or state:stateN. none: no states.",
        ),
        Key("StateCalls", Kind.UINT, 0, "Number of consecutive samples between two resets of the states. 0: all."),
        Key("Constants", Kind.STRING, "", "Inputs of the ONNX model with a fixed value: NAME:VALUE,..., such as sr:16000."),
    ),
    accepted=(
        Ignored("DilatedWeights", "parameters of N2D2's kernels", "stores dilated kernels with their zeros", "remove it"),
        *Ignored("", "parameters of N2D2's other exports", "belongs to the exports ONNX and DNeuro", "remove them").for_keys(
            *"""
            ImplicitCasting FakeQuantization NbDSPs NbMemoryBytes Network EstimationFrequency
            AccumulationNbBits OutputMapToRGB*
            """.split()
        ),
    ),
    doc="Keys in the file of `-export-parameters`. A key that the export does not use, or that another key overrides, causes "
    "the warning W109.",
)
"""Rules common to the parameters of all targets."""

_PRECISION = """
QuantBits: Bit width of the integers that the layer reads and writes. Overrides -nbbits.
QuantWeightBits: Bit width of the weights. Overrides -wt-bits and -nbbits. Less than 8 for convolutions and fully connected
    layers only.
"""
PRECISION_KEYS = keys(
    _PRECISION,
    Key("QuantBits", Kind.ENUM, None, choices=("8", "16")),
    Key("QuantWeightBits", Kind.ENUM, None, choices=("2", "3", "4", "5", "6", "7", "8", "16")),
    Key("Quantize", Kind.BOOL, None, "0: compute the layer in floating point in an integer export."),
)
"""Keys of the precision of one layer, in its section of the INI or of the export parameters. Missing ones follow the rest of the network."""

LAYER_PARAMETERS = Schema(
    "export parameters of a layer",
    PRECISION_KEYS,
    doc="Keys of a section `[layer]` in the file of `-export-parameters`. They override the keys of the layer's section in "
    "the INI file. All other keys belong to the export.",
)


ParametersT = TypeVar("ParametersT", bound="ExportParameters")


def parameter(
    name: str, kind: Kind, default: Any = REQUIRED, doc: str = "", read: Callable[[Any], Any] | None = None, **limits: Any
) -> Any:
    """Return the field of a dataclass that holds a key: an export parameter, or a property of a section.

    `limits` as in `Key`. `read` converts a value of the file to that of the field.
    """
    return field_of(Key(name, kind, default, doc, **limits), read)


def field_of(key: Key, read: Callable[[Any], Any] | None = None) -> Any:
    """Return the field of a key, as `parameter`."""
    read = read or (lambda value: value)
    default = MISSING if key.default is REQUIRED else read(key.default)
    return field(default=default, metadata={"key": key, "read": read})


def fields_by_key(cls: type) -> dict[Key, Field]:
    """Return the fields of a dataclass that `parameter` or `field_of` declares, by key."""
    return {one.metadata["key"]: one for one in fields(cls) if "key" in one.metadata}


@dataclass(frozen=True)
class ExportParameters:
    """The export parameters that a target reads, as attributes.

    A field declared by `parameter` is a key of the file, any other a constant. Class keywords: `texts` documents the keys, as in
    `schema.keys`; `without` names those of the base class that are constants here.

    Attributes:
        rows: the keys by field.
    """

    rows: ClassVar[Mapping[str, Key]] = {}

    def __init_subclass__(cls, texts: str = "", without: str = "") -> None:
        own = {name: value.metadata["key"] for name, value in vars(cls).items() if isinstance(value, Field) and value.metadata}
        inherited = {name: key for name, key in cls.rows.items() if name not in without.split()}
        cls.rows = {**inherited, **dict(zip(own, keys(texts, *own.values()), strict=True))}

    @classmethod
    def of(cls: type[ParametersT], values: Params | Mapping[str, Any]) -> ParametersT:
        """Return the parameters of values by name; others have their default. Names of other targets have no effect."""
        known = values.as_dict() if isinstance(values, Params) else values
        given = (one for one in fields(cls) if one.name in cls.rows and cls.rows[one.name].name in known)
        return cls(**{one.name: one.metadata["read"](known[cls.rows[one.name].name]) for one in given})

    @classmethod
    def schema(cls, name: str) -> Schema:
        """Return the keys for the file, as those of `name`."""
        return Schema(f"export parameters of {name}", tuple(cls.rows.values()))


def read_params(path: Path | str | None, schema: Schema, layer_schema: Schema, others: Callable[[], Schema]) -> Params:
    """Return the export parameters of a file by `schema`, and those of layers by `layer_schema`; all defaults for None.

    `others` returns the parameters of other targets, which have no effect here; it is only called for an unknown name.

    Raises:
        N2D2Error: E101, E102 unreadable file, E103 to E106 and E121 malformed text, E109 or E122 a wrong value; an ErrorList
            for several. Unknown keys are warnings (W102).
    """
    values: dict[str, Any] = {key.name: key.default for key in schema.keys}
    if path is None:
        return Params(schema, values, {}, {})
    text = _ParameterFile(lexer.read_lines(Path(path)), str(path))
    places: dict[str, Location] = {}
    errors: list[N2D2Error] = []
    ignored = IgnoredKeys()
    foreign: list[str] = []
    for name, written in text.scalars().items():
        places[name] = text.where(name)
        try:
            if (key := schema.key(name)) is not None:
                values[name] = _read(key, name, written, places[name])
            elif (entry := schema.accepts(name)) is not None:
                ignored.add(entry, name, places[name])
            elif (key := others().key(name)) is not None:
                foreign += [name] if _read(key, name, written, places[name]) != key.default else []
            else:
                _warn_unknown(schema, name, places[name])
        except Unreadable as problem:
            errors.append(problem.error(places[name]))
    layers = text.sections()
    for layer in layers:
        places[f"[{layer}]"] = text.where_layer(layer)
        for key in (key for key in layer_schema.keys if key.name in layers[layer]):
            try:
                key.read(key.name, layers[layer][key.name])
            except Unreadable as problem:
                errors.append(problem.error(text.where(key.name, layer)))
    ErrorList.raise_if(errors)
    ignored.warn()
    return Params(schema, values, layers, places, tuple(foreign))


def _read(key: Key, name: str, written: str, where: Location) -> Any:
    value, remarks = key.read(name, written)
    for remark in remarks:
        remark.say(where)
    return value


def _warn_unknown(schema: Schema, name: str, where: Location) -> None:
    known = [key.name for key in schema.keys]
    remedy = suggest(name, known)
    log.warning("W102", f"key '{name}' is unknown for {schema.name}; it is ignored", where=where, remedy=remedy)


class Params:
    """Typed export parameters, and the raw ones of each layer.

    Attributes:
        schema: schema of the parameters.
        foreign: names of given parameters that belong to other targets and not to the schema.
    """

    def __init__(
        self,
        schema: Schema,
        values: dict[str, Any],
        layers: dict[str, dict[str, str]],
        places: dict[str, Location],
        foreign: tuple[str, ...] = (),
    ):
        self.schema, self.foreign = schema, foreign
        self._values = values
        self._layers = layers
        self._places = places

    def __getitem__(self, name: str) -> Any:
        """Return the typed value of an export parameter, given or default."""
        return self._values[name]

    def is_given(self, name: str) -> bool:
        """True if the file has the parameter."""
        return name in self._places

    def where(self, name: str) -> Location | None:
        """Return the place of the parameter; None for a default."""
        return self._places.get(name)

    def with_values(self, values: dict[str, Any]) -> Params:
        """Return a copy with other values of some export parameters."""
        return Params(self.schema, {**self._values, **values}, self._layers, self._places, self.foreign)

    def as_dict(self) -> dict[str, Any]:
        """Return all export parameters by name, in the order of the documentation."""
        return dict(self._values)

    def layer(self, name: str) -> dict[str, str]:
        """Return the raw parameters of the section `[name]`; empty if there is none."""
        return dict(self._layers.get(name, {}))

    def layer_names(self) -> list[str]:
        """Return the layers that have a section."""
        return list(self._layers)

    def layer_precision(self, name: str) -> dict[str, Any]:
        """Return the typed values of LAYER_PARAMETERS in the section `[name]`; None for missing ones."""
        written = self.layer(name)
        return {key.name: key.read(key.name, written[key.name])[0] if key.name in written else None for key in PRECISION_KEYS}

    def where_layer(self, layer: str) -> Location | None:
        """Return the place of the section of a layer."""
        return self._places.get(f"[{layer}]")

    def check_layers(self, names: Iterable[str]) -> None:
        """Warn W107 for each section that is not the name of a layer."""
        known = list(names)
        for layer in self._layers:
            if layer not in known:
                what = f"layer '{layer}' does not exist in the network"
                remedy = suggest(layer, known)
                log.warning("W107", what, where=self._places[f"[{layer}]"], remedy=remedy)


class _ParameterFile:
    """The file as read by configobj; lines and comments follow the rules of the INI language."""

    def __init__(self, lines: list[lexer.SourceLine], file: str):
        from configobj import ConfigObj, ConfigObjError

        self._file = file
        self._lines: list[str] = [""] * len(lines)
        self._keys: dict[tuple[str | None, str], int] = {}
        self._sections: dict[str, int] = {}
        self._scan(lines)
        try:
            read = ConfigObj(list(self._lines), list_values=False, interpolation=False, raise_errors=True)
        except ConfigObjError as error:
            raise self._malformed(error) from None
        self._config: dict[str, Any] = read.dict()

    def scalars(self) -> dict[str, str]:
        """Return the values outside of sections, without quotes."""
        return {name: lexer.unquote(value) for name, value in self._config.items() if not isinstance(value, dict)}

    def sections(self) -> dict[str, dict[str, str]]:
        """Return the values of each section, without quotes."""
        return {
            name: {key: lexer.unquote(value) for key, value in one.items()}
            for name, one in self._config.items()
            if isinstance(one, dict)
        }

    def _scan(self, lines: list[lexer.SourceLine]) -> None:
        """Store each line without comment, and the line of each key and section."""
        errors = []
        section: str | None = None
        for line in lexer.join_lines(lines):
            try:
                item = lexer.parse_line(line, section)
                self._lines[line.line - 1] = lexer.strip_comment(line.text)
                if isinstance(item, lexer.Header):
                    section = item.name
                    self._add_section(item)
                elif item is not None:
                    self._add_key(section, item)
            except N2D2Error as error:
                errors.append(error)
        ErrorList.raise_if(errors)

    def _add_section(self, header: lexer.Header) -> None:
        line = header.where.line or 0
        if header.name in self._sections:
            what = f"section [{header.name}] is declared twice (first at {self._file}:{self._sections[header.name]})"
            raise N2D2Error("E106", what, where=header.where, remedy="rename or remove one of them")
        self._sections[header.name] = line
        if header.name.startswith("[") or header.template or header.bases:
            what = f"'{self._lines[line - 1][:60]}' is not a section header"
            raise N2D2Error("E121", what, where=header.where, remedy="write [layer]")

    def _add_key(self, section: str | None, item: lexer.Assignment) -> None:
        name, line = lexer.unquote(item.name), item.where.line or 0
        first = self._keys.get((section, name))
        if first is not None:
            what = f"'{name}' is given twice (first at {self._file}:{first}); the last value is used"
            log.warning("W101", what, where=item.where, remedy="remove one of them")
            self._lines[first - 1] = ""
        self._keys[section, name] = line

    def _malformed(self, error: Any) -> N2D2Error:
        where = Location(self._file, error.line_number)
        line = (error.line or "").strip()
        return N2D2Error("E121", f"'{line[:60]}' is not a valid line", where=where, remedy="write name=value, or [layer]")

    def where(self, name: str, layer: str | None = None) -> Location:
        """Return the place of an export parameter, in the section of `layer` if given."""
        return Location(self._file, self._keys.get((layer, name)), layer)

    def where_layer(self, layer: str) -> Location:
        """Return the place of the section of a layer."""
        return Location(self._file, self._sections.get(layer), layer)
