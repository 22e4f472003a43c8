"""Export parameters: the file given to `-export-parameters`, checked against one schema.

The file is an INI text: export parameters first, then a section `[layer]` for each layer that has
parameters of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from n2d2py import log
from n2d2py.errors import ErrorList, Location, N2D2Error, nearest
from n2d2py.ini import lexer
from n2d2py.ini.ignored import Ignored, IgnoredKeys
from n2d2py.ini.kinds import Unreadable, kind_text
from n2d2py.ini.precision import PRECISION_KEYS
from n2d2py.ini.schema import Key, Kind, Schema

__all__ = ["LAYER_PARAMETERS", "N2D2_STRATEGIES", "PARAMETERS", "Params", "load_params"]

STRATEGIES = (
    "None",
    "OptimizeMaxLifetimeMinSizeFirst",
    "OptimizeMaxLifetimeMaxSizeFirst",
    "OptimizeMaxHoleMaxLifetimeFirst",
    "OptimizeAuto",
    "OptimizeOverlap",
    "OptimizeOptimal",
    "OptimizeReorder",
    "OptimizeStream",
)

N2D2_STRATEGIES = STRATEGIES[:5]
"""Those that place as N2D2 does."""

NVDLA_CONFIGS = ("nv_full", "nv_large", "nv_medium_1024_full", "nv_medium_512", "nv_small_256", "nv_small_256_full", "nv_small")

PARAMETERS = Schema(
    "export parameters",
    (
        Key("IncludeInputInBuffer", Kind.BOOL, True, "the input buffer is part of the static memory and may be overwritten"),
        Key(
            "IncludeOutputInBuffer",
            Kind.ENUM,
            "auto",
            "1: the outputs are computed in the static memory and then copied to the caller; 0: layers write them straight into "
            "the caller's buffers; auto: straight where that is faster (a max pool with a sum), else in the static memory",
            ("auto", "0", "1"),
        ),
        Key("OptimizeBufferMemory", Kind.BOOL, True, "reuse memory in place and by wrapping around"),
        Key(
            "OptimizeNoBranchConcat",
            Kind.BOOL,
            True,
            "write the inputs of a concatenation directly at their place where possible",
        ),
        Key(
            "FuseResidualAdd",
            Kind.BOOL,
            True,
            "a convolution adds the other operand of a sum in its last stage, and the sum lies over that operand; not with N2D2's "
            "memory strategies, nor where layers run line by line, nor where more memory would be needed",
        ),
        Key("MemoryAlignment", Kind.UINT, 1, "bytes to which the stride of a pixel is rounded up", minimum=1, maximum=4096),
        Key(
            "BufferAlignment",
            Kind.UINT,
            16,
            "bytes to which the address of a buffer is rounded up, with OptimizeOverlap and the strategies built on it",
            minimum=1,
            maximum=4096,
        ),
        Key(
            "MemoryManagerStrategy",
            Kind.ENUM,
            "OptimizeOverlap",
            "how buffers are placed: N2D2's four orders, the smallest of N2D2's plans (OptimizeAuto), every "
            "output as far over its inputs as its kernel allows (OptimizeOverlap), the same with a solver "
            "(OptimizeOptimal, needs ortools), in the best order of the layers (OptimizeReorder), or with layers that "
            "run line by line through line buffers (OptimizeStream)",
            STRATEGIES,
        ),
        Key(
            "MemoryMode",
            Kind.ENUM,
            "auto",
            "how much speed may be given for memory: Speed (no output over an input), Balanced (OptimizeOverlap), Small "
            "(layers line by line, as few as the budget allows), Minimum (the smallest plan known); auto: "
            "MemoryManagerStrategy decides, or MemoryBudget, or Small with StreamInput",
            ("auto", "Speed", "Balanced", "Small", "Minimum"),
        ),
        Key(
            "MemoryBudget",
            Kind.INT,
            -1,
            "bytes of static memory: the fastest plan that fits, of the modes up to MemoryMode; 0: as MemoryMode=Minimum; "
            "-1: no limit",
            minimum=-1,
        ),
        Key(
            "StreamInput",
            Kind.BOOL,
            False,
            "the inputs arrive line by line through a function of the caller, and are in memory as a whole nowhere",
        ),
        Key("OpenMP", Kind.BOOL, True, "build the project with OpenMP"),
        Key("Namespace", Kind.STRING, "", "C++ namespace of the network; empty: the network's name"),
        Key(
            "WeightsFormat",
            Kind.ENUM,
            "auto",
            "how weights are written: numbers (text), string literals that compile faster, or by size",
            ("auto", "text", "string"),
        ),
        Key(
            "SIMD",
            Kind.ENUM,
            "auto",
            "auto: constants also in the order of the SIMD kernels, which are compiled where the compiler's target has "
            "them; none: portable kernels only",
            ("auto", "none"),
        ),
        Key(
            "RuntimeDispatch",
            Kind.BOOL,
            False,
            "the binary holds the layers for the instruction sets of its kind of processor (docs/dispatch.md) and chooses at "
            "start; the environment variable N2D2_ISA names one; weights are held in two orders",
        ),
        Key("NVDLAConfig", Kind.ENUM, "nv_full", "hardware configuration of the NVDLA export", NVDLA_CONFIGS),
        Key(
            "NVDLAPrecision",
            Kind.ENUM,
            "auto",
            "precision of the NVDLA export; auto: int8 with -nbbits 8, fp16 with -nbbits -32",
            ("auto", "int8", "fp16"),
        ),
        Key(
            "NVDLAFirmware",
            Kind.ENUM,
            "0.12",
            "firmware of the NVDLA export: 0.12 (NVIDIA's sources of today) or 0.11 (prebuilt kernel modules, most FPGA ports)",
            ("0.11", "0.12"),
        ),
        Key(
            "NVDLACalibration",
            Kind.STRING,
            "",
            "JSON table {layer: {scale, min, max, offset}} of scales for the int8 NVDLA "
            "export, in place of the calibrated ones",
        ),
        Key(
            "NVDLAFallback",
            Kind.BOOL,
            False,
            "layers that the accelerator does not have become extension operations of the CPU, "
            "which NVIDIA's runtime does not have",
        ),
    ),
    accepted=(
        Ignored("DilatedWeights", "parameters of N2D2's kernels", "stores dilated kernels with their zeros", "remove it"),
        *Ignored("", "parameters of N2D2's other exports", "belongs to the exports ONNX and DNeuro", "remove them").of(
            "ImplicitCasting",
            "FakeQuantization",
            "NbDSPs",
            "NbMemoryBytes",
            "Network",
            "EstimationFrequency",
            "AccumulationNbBits",
            "OutputMapToRGB*",
        ),
    ),
    doc="Given in the file of `-export-parameters`. One that the export does not read, or that another one overrules, is warned "
    "of (W109).",
)

LAYER_PARAMETERS = Schema(
    "export parameters of a layer",
    PRECISION_KEYS,
    doc="Given in a section `[layer]` of the file "
    "of `-export-parameters`; they overrule those of the layer's section in the INI. Other keys "
    "are for the export: the C++ export has `Tile`, for convolutions with SIMD kernels, as `-tune` writes it; for other layers it is "
    "refused (E705).",
)

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset(
    [
        "alignas",
        "alignof",
        "and",
        "and_eq",
        "asm",
        "auto",
        "bitand",
        "bitor",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "char16_t",
        "char32_t",
        "class",
        "compl",
        "const",
        "const_cast",
        "constexpr",
        "continue",
        "decltype",
        "default",
        "delete",
        "do",
        "double",
        "dynamic_cast",
        "else",
        "enum",
        "explicit",
        "export",
        "extern",
        "false",
        "float",
        "for",
        "friend",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "mutable",
        "namespace",
        "new",
        "noexcept",
        "not",
        "not_eq",
        "nullptr",
        "operator",
        "or",
        "or_eq",
        "private",
        "protected",
        "public",
        "register",
        "reinterpret_cast",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "static_assert",
        "static_cast",
        "struct",
        "switch",
        "template",
        "this",
        "thread_local",
        "throw",
        "true",
        "try",
        "typedef",
        "typeid",
        "typename",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "wchar_t",
        "while",
        "xor",
        "xor_eq",
        "std",
    ]
)


def load_params(path: Path | str | None) -> Params:
    """The export parameters of a file; all defaults for None.

    Raises:
        N2D2Error: E101, E102 unreadable file, E103 to E106 and E121 malformed text, E109 or E122
            a wrong value; an ErrorList for several. Unknown keys are warnings (W102).
    """
    if path is None:
        return Params({key.name: key.default for key in PARAMETERS.keys}, {}, {})
    text = _Text(lexer.read_lines(Path(path)), str(path))
    values: dict[str, Any] = {key.name: key.default for key in PARAMETERS.keys}
    places: dict[str, Location] = {}
    errors: list[N2D2Error] = []
    ignored = IgnoredKeys()
    for name, written in text.scalars().items():
        places[name] = text.where(name)
        try:
            _read(name, written, places[name], values, ignored)
        except Unreadable as problem:
            errors.append(problem.error(places[name]))
    layers = text.sections()
    for layer in layers:
        places[f"[{layer}]"] = text.where_layer(layer)
        for key in (key for key in PRECISION_KEYS if key.name in layers[layer]):
            try:
                key.read(key.name, layers[layer][key.name])
            except Unreadable as problem:
                errors.append(problem.error(text.where(key.name, layer)))
    ErrorList.raise_if(errors)
    ignored.warn()
    return Params(values, layers, places)


def _read(name: str, written: str, where: Location, values: dict[str, Any], ignored: IgnoredKeys) -> None:
    key = PARAMETERS.key(name)
    if key is None:
        if (entry := PARAMETERS.accepts(name)) is not None:
            ignored.add(entry, name, where)
            return
        like = nearest(name, values)
        log.warning(
            "W102",
            f"unknown key '{name}' for {PARAMETERS.name}; it is ignored",
            where=where,
            remedy=f"did you mean '{like}'?" if like else f"known: {', '.join(values)}",
        )
        return
    values[name], remarks = key.read(name, written)
    for remark in remarks:
        remark.say(where)
    if name == "Namespace" and written and not _is_namespace(written):
        raise Unreadable(
            f"Namespace={written[:40]} is not a C++ identifier",
            "use letters, digits and _, not a digit first, no C++ keyword",
            "E122",
        )


def _is_namespace(text: str) -> bool:
    return (
        _IDENTIFIER.fullmatch(text) is not None and text not in _KEYWORDS and "__" not in text and not re.match(r"_[A-Z]", text)
    )


class Params:
    """Typed export parameters, and the raw ones of each layer."""

    def __init__(self, values: dict[str, Any], layers: dict[str, dict[str, str]], places: dict[str, Location]):
        self._values = values
        self._layers = layers
        self._places = places

    def __getitem__(self, name: str) -> Any:
        """The typed value of an export parameter, given or default."""
        return self._values[name]

    def given(self, name: str) -> bool:
        """Whether the file gives the parameter."""
        return name in self._places

    def where(self, name: str) -> Location | None:
        """Where the parameter is given; None for a default."""
        return self._places.get(name)

    def as_dict(self) -> dict[str, Any]:
        """All export parameters by name, in the order of the documentation."""
        return dict(self._values)

    def layer(self, name: str) -> dict[str, str]:
        """The parameters of the section `[name]` as written; empty when there is none."""
        return dict(self._layers.get(name, {}))

    def layer_names(self) -> list[str]:
        """The layers that have a section."""
        return list(self._layers)

    def layer_precision(self, name: str) -> dict[str, Any]:
        """The typed values of LAYER_PARAMETERS in the section `[name]`; None where it says nothing."""
        written = self.layer(name)
        return {key.name: key.read(key.name, written[key.name])[0] if key.name in written else None for key in PRECISION_KEYS}

    def where_layer(self, layer: str) -> Location | None:
        """Where the section of a layer is given."""
        return self._places.get(f"[{layer}]")

    def check_layers(self, names: Iterable[str]) -> None:
        """Warns W107 for each section that is not the name of a layer."""
        known = list(names)
        for layer in self._layers:
            if layer not in known:
                like = nearest(layer, known)
                log.warning(
                    "W107",
                    f"the network has no layer '{layer}'",
                    where=self._places[f"[{layer}]"],
                    remedy=f"did you mean '{like}'?" if like else "remove the section",
                )

    @staticmethod
    def describe() -> list[tuple[str, str, Any, str]]:
        """Key, kind, default and meaning of each export parameter."""
        return [(key.name, kind_text(key.kind, key.choices), key.default, key.doc) for key in PARAMETERS.keys]


class _Text:
    """The file as configobj reads it; lines and comments follow the rules of the INI language."""

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
        """The values outside of sections, without quotes."""
        return {name: lexer.unquote(value) for name, value in self._config.items() if not isinstance(value, dict)}

    def sections(self) -> dict[str, dict[str, str]]:
        """The values of each section, without quotes."""
        return {
            name: {key: lexer.unquote(value) for key, value in one.items()}
            for name, one in self._config.items()
            if isinstance(one, dict)
        }

    def _scan(self, lines: list[lexer.SourceLine]) -> None:
        """Keeps each line without comment, and the line of each key and section."""
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
            raise N2D2Error(
                "E106",
                f"the section [{header.name}] is declared twice (first at {self._file}:{self._sections[header.name]})",
                where=header.where,
                remedy="rename or remove one of them",
            )
        self._sections[header.name] = line
        if header.name.startswith("[") or header.template or header.bases:
            raise N2D2Error(
                "E121",
                f"'{self._lines[line - 1][:60]}' is not the header of a layer",
                where=header.where,
                remedy="write [layer]",
            )

    def _add_key(self, section: str | None, item: lexer.Assignment) -> None:
        name, line = lexer.unquote(item.name), item.where.line or 0
        first = self._keys.get((section, name))
        if first is not None:
            log.warning(
                "W101",
                f"'{name}' is given again (first at {self._file}:{first}); this last value is used",
                where=item.where,
                remedy="remove one of the two",
            )
            self._lines[first - 1] = ""
        self._keys[section, name] = line

    def _malformed(self, error: Any) -> N2D2Error:
        where = Location(self._file, error.line_number)
        line = (error.line or "").strip()
        return N2D2Error("E121", f"'{line[:60]}' cannot be read", where=where, remedy="write name=value, or [layer]")

    def where(self, name: str, layer: str | None = None) -> Location:
        """The place of an export parameter, of a layer's section if that is given."""
        return Location(self._file, self._keys.get((layer, name)), layer)

    def where_layer(self, layer: str) -> Location:
        """The place of the section of a layer."""
        return Location(self._file, self._sections.get(layer), layer)
