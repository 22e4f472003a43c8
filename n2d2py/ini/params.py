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
    sections, headers = _read_sections(Path(path))
    places: dict[str, Location] = {f"[{layer}]": where for layer, where in headers.items()}
    errors: list[N2D2Error] = []
    ignored = IgnoredKeys()
    foreign: list[str] = []
    for name, item in sections.pop("").items():
        where = places[name] = item.where
        try:
            if (key := schema.key(name)) is not None:
                values[name] = _read(key, name, item.value, where)
            elif (entry := schema.accepts(name)) is not None:
                ignored.add(entry, name, where)
            elif (key := others().key(name)) is not None:
                foreign += [name] if _read(key, name, item.value, where) != key.default else []
            else:
                _warn_unknown(schema, name, where)
        except Unreadable as problem:
            errors.append(problem.error(where))
    for items in sections.values():
        for key in (key for key in layer_schema.keys if key.name in items):
            try:
                key.read(key.name, items[key.name].value)
            except Unreadable as problem:
                errors.append(problem.error(items[key.name].where))
    ErrorList.raise_if(errors)
    ignored.warn()
    layers = {layer: {name: item.value for name, item in items.items()} for layer, items in sections.items()}
    return Params(schema, values, layers, places, tuple(foreign))


def _read_sections(path: Path) -> tuple[dict[str, dict[str, lexer.Assignment]], dict[str, Location]]:
    """Return the assignments of a file by section and name, "" for those before the first section, and the place of each section.

    Raises:
        N2D2Error: as `read_params`, for the text; an ErrorList for several.
    """
    sections: dict[str, dict[str, lexer.Assignment]] = {"": {}}
    headers: dict[str, Location] = {}
    errors: list[N2D2Error] = []
    section = ""
    for line in lexer.join_lines(lexer.read_lines(path)):
        try:
            item = lexer.parse_line(line, section or None)
            if isinstance(item, lexer.Header):
                section = item.name
                sections.setdefault(section, {})
                _check_header(item, lexer.strip_comment(line.text), headers.get(section))
                headers[section] = item.where
            elif item is not None:
                _add_assignment(item, sections[section])
        except N2D2Error as error:
            errors.append(error)
    ErrorList.raise_if(errors)
    return sections, headers


def _check_header(header: lexer.Header, text: str, first: Location | None) -> None:
    """Raise E106 for a section that is declared at `first` too, E121 unless `text` is [name]."""
    if first is not None:
        what = f"section [{header.name}] is declared twice (first at {first.file}:{first.line})"
        raise N2D2Error("E106", what, where=header.where, remedy="rename or remove one of them")
    if header.name.startswith("[") or header.template or header.bases:
        raise N2D2Error("E121", f"'{text[:60]}' is not a section header", where=header.where, remedy="write [layer]")


def _add_assignment(item: lexer.Assignment, section: dict[str, lexer.Assignment]) -> None:
    """Add an assignment; warn W101 if it replaces another one."""
    name = lexer.unquote(item.name)
    if name in section:
        first = section[name].where
        what = f"'{name}' is given twice (first at {first.file}:{first.line}); the last value is used"
        log.warning("W101", what, where=item.where, remedy="remove one of them")
    section[name] = item


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
