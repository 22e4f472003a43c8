"""Export parameters: the file of `-export-parameters`, checked against the schema of a target.

The file is an INI text: export parameters first, then a section `[layer]` for each layer with its own parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from n2d2py import log
from n2d2py.errors import ErrorList, Location, N2D2Error, suggest
from n2d2py.ini import lexer
from n2d2py.ini.ignored import Ignored, IgnoredKeys
from n2d2py.ini.kinds import Kind, Unreadable, say_at
from n2d2py.ini.schema import REQUIRED, Key, Schema, keys

_MODEL = """
States: States of the ONNX model to keep between calls: INPUT:OUTPUT,... (docs/how-to/streaming.md). Default: pairs with
    matching names, such as h0:hn or state:stateN. none: no states.
StateCalls: Number of consecutive samples between two resets of the states. 0: all.
Constants: Inputs of the ONNX model with a fixed value: NAME:VALUE,..., such as sr:16000.
"""
_MODEL_KEYS = Key("States", Kind.STRING, ""), Key("StateCalls", Kind.UINT, 0), Key("Constants", Kind.STRING, "")
GENERAL = Schema(
    "export parameters",
    keys(_MODEL, *_MODEL_KEYS),
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

    A field declared by `parameter` is a key of the file, any other a constant. Class keywords: `texts` documents the keys, as
    in `schema.keys`; `without` names those of the base class that are constants here. `rows`: the keys by field.
    """

    rows: ClassVar[Mapping[str, Key]] = {}

    def __init_subclass__(cls, texts: str = "", without: str = "") -> None:
        own = {name: value.metadata["key"] for name, value in vars(cls).items() if isinstance(value, Field) and value.metadata}
        inherited = {name: key for name, key in cls.rows.items() if name not in without.split()}
        cls.rows = {**inherited, **dict(zip(own, keys(texts, *own.values()), strict=True))}

    @classmethod
    def of(cls: type[ParametersT], values: Params | Mapping[str, Any]) -> ParametersT:
        """Return the parameters of values by name; others have their default. Names of other targets have no effect."""
        known = values.values if isinstance(values, Params) else values
        given = (one for one in fields(cls) if one.name in cls.rows and cls.rows[one.name].name in known)
        return cls(**{one.name: one.metadata["read"](known[cls.rows[one.name].name]) for one in given})

    @classmethod
    def schema(cls, name: str) -> Schema:
        """Return the keys for the file, as those of `name`."""
        return Schema(f"export parameters of {name}", tuple(cls.rows.values()))


def read_params(path: Path | str | None, schema: Schema, layer_schema: Schema, others: Callable[[], Schema]) -> Params:
    """Return the export parameters of a file by `schema`, and those of layers by `layer_schema`; all defaults for None.

    `others` returns the parameters of other targets, which have no effect here; it is only called for an unknown name.
    Raises E101 to E106 or E121 for the file, E109 or E122 for a value; an ErrorList for several. Unknown keys warn W102.
    """
    values: dict[str, Any] = {key.name: key.default for key in schema.keys}
    if path is None:
        return Params(schema, values, {}, {})
    config, places = _read_file(Path(path))
    errors: list[N2D2Error] = []
    ignored = IgnoredKeys()
    foreign: list[str] = []
    for name, text in config.pop("").items():
        where = places.get(("", name), Location(str(path)))
        try:
            if (key := schema.key(name)) is not None:
                values[name] = key.read(name, text, say_at(where))
            elif (entry := schema.accepts(name)) is not None:
                ignored.add(entry, name, where)
            elif (key := others().key(name)) is not None:
                foreign += [name] if key.read(name, text, say_at(where)) != key.default else []
            else:
                remedy = suggest(name, [key.name for key in schema.keys])
                log.warning("W102", f"key '{name}' is unknown for {schema.name}; it is ignored", where=where, remedy=remedy)
        except Unreadable as problem:
            errors.append(problem.error(where))
    for layer, texts in config.items():
        for key in (key for key in layer_schema.keys if key.name in texts):
            try:
                key.read(key.name, texts[key.name])
            except Unreadable as problem:
                errors.append(problem.error(places.get((layer, key.name), Location(str(path), section=layer))))
    ErrorList.raise_if(errors)
    ignored.warn()
    return Params(schema, values, config, places, tuple(foreign))


def _read_file(path: Path) -> tuple[dict[str, dict[str, str]], dict[tuple[str, str], Location]]:
    """Return the values by section ("" for none) and key, as configobj reads them, and their places; (section, "") is that of the section.

    Lines and comments follow the rules of the INI language.
    """
    from configobj import ConfigObj, ConfigObjError

    lines, section = lexer.read_lines(path), ""
    texts, errors, places = [""] * len(lines), [], dict[tuple[str, str], Location]()
    for line in lexer.join_lines(lines):
        try:
            item = lexer.parse_line(line, section or None)
            texts[line.line - 1] = lexer.strip_comment(line.text)
            if isinstance(item, lexer.Header):
                section = item.name
                _add_section(item, texts[line.line - 1], places)
            elif item is not None:
                name = lexer.unquote(item.name)
                if (first := places.get((section, name))) is not None:
                    what = f"'{name}' is given twice (first at {first.file}:{first.line}); the last value is used"
                    log.warning("W101", what, where=item.where, remedy="remove one of them")
                    texts[(first.line or 1) - 1] = ""
                places[section, name] = item.where
        except N2D2Error as error:
            errors.append(error)
    ErrorList.raise_if(errors)
    try:
        config = ConfigObj(texts, list_values=False, interpolation=False, raise_errors=True)
    except ConfigObjError as error:
        what, where = f"'{(error.line or '').strip()[:60]}' is not a valid line", Location(str(path), error.line_number)
        raise N2D2Error("E121", what, where=where, remedy="write name=value, or [layer]") from None
    sections = {"": {name: config[name] for name in config.scalars}, **{name: config[name] for name in config.sections}}
    return {name: {key: lexer.unquote(value) for key, value in one.items()} for name, one in sections.items()}, places


def _add_section(header: lexer.Header, text: str, places: dict[tuple[str, str], Location]) -> None:
    if (first := places.setdefault((header.name, ""), header.where)) is not header.where:
        what = f"section [{header.name}] is declared twice (first at {first.file}:{first.line})"
        raise N2D2Error("E106", what, where=header.where, remedy="rename or remove one of them")
    if header.name.startswith("[") or header.template or header.bases:
        raise N2D2Error("E121", f"'{text[:60]}' is not a section header", where=header.where, remedy="write [layer]")


@dataclass(frozen=True, eq=False)
class Params:
    """Typed export parameters, and the raw ones of each layer.

    Attributes:
        schema: schema of the parameters.
        values: the typed export parameters by name, in the order of the documentation.
        layers: the raw parameters of the section of each layer.
        places: of given parameters, as ("", name), and of sections, as (layer, "").
        foreign: names of given parameters that belong to other targets and not to the schema.
    """

    schema: Schema
    values: dict[str, Any]
    layers: dict[str, dict[str, str]]
    places: dict[tuple[str, str], Location]
    foreign: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        """Return the typed value of an export parameter, given or default."""
        return self.values[name]

    def is_given(self, name: str) -> bool:
        """True if the file has the parameter."""
        return ("", name) in self.places

    def where(self, name: str) -> Location | None:
        """Return the place of the parameter; None for a default."""
        return self.places.get(("", name))

    def with_values(self, values: dict[str, Any]) -> Params:
        """Return a copy with other values of some export parameters."""
        return replace(self, values={**self.values, **values})

    def as_dict(self) -> dict[str, Any]:
        """Return a copy of all export parameters by name."""
        return dict(self.values)

    def layer_precision(self, name: str) -> dict[str, Any]:
        """Return the typed values of LAYER_PARAMETERS in the section `[name]`; None for missing ones."""
        written = self.layers.get(name, {})
        return {key.name: key.read(key.name, written[key.name]) if key.name in written else None for key in PRECISION_KEYS}

    def where_layer(self, layer: str) -> Location | None:
        """Return the place of the section of a layer."""
        return self.places.get((layer, ""))

    def check_layers(self, names: Iterable[str]) -> None:
        """Warn W107 for each section that is not the name of a layer."""
        known = list(names)
        for layer in (layer for layer in self.layers if layer not in known):
            what = f"layer '{layer}' does not exist in the network"
            log.warning("W107", what, where=self.where_layer(layer), remedy=suggest(layer, known))
