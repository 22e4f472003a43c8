"""C identifiers for layer and tensor names: valid, unique regardless of case, the same in every run.

Names in generated code are ``<identifier>_<suffix>`` with a suffix without underscore (``conv1_config``, ``conv1_weights``), so
two of them differ if identifier or suffix differ. Identifiers also name files, hence the length limit and the reserved file
names.
"""

import re
from collections.abc import Iterable
from functools import cache

import numpy as np

from n2d2py import resources
from n2d2py.graph import QuantGraph
from n2d2py.naming import FreshNames

MAX_LENGTH = 64
KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
    const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false
    float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast return short signed sizeof static static_assert static_cast std struct
    switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq
    """.split()
)
"""Keywords of C++11, and `std`."""
_RESERVED = KEYWORDS | frozenset(
    """
    concept final import main module override requires restrict linux unix n2d2 con prn aux nul com1 com2 com3 com4 com5
    com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9
    """.split()
)
"""Keywords with words of later C++, macros, and device names."""


def sanitise(name: str) -> str:
    """Return the nearest valid identifier: letters, digits and single underscores, no keyword, at most 64 characters."""
    text = re.sub(r"_+", "_", re.sub(r"[^0-9A-Za-z]", "_", name)).strip("_")
    if not text or text[0].isdigit() or text.lower() in _RESERVED:
        text = f"x{text}"
    return text[:MAX_LENGTH].rstrip("_")


def namespace_name(name: str) -> str:
    """Return the nearest identifier for a namespace next to C's library: `div` becomes `div_net`."""
    text = sanitise(name)
    return f"{text[: MAX_LENGTH - 4]}_net" if is_library_name(text) else text


def mangled(namespace: str, name: str) -> str:
    """Return the assembler name of a namespace variable (Itanium C++ ABI, 5.1.2); `name` may be in nested namespaces."""
    return f"_ZN{''.join(f'{len(part)}{part}' for part in (namespace, *name.split('::')))}E"


def _unique(names: Iterable[str]) -> dict[str, str]:
    fresh = FreshNames(key=str.lower)
    return {name: fresh(sanitise(name)) for name in dict.fromkeys(names)}


class Identifiers:
    """The identifiers of a network, numbered in graph order where names would coincide."""

    def __init__(self, graph: QuantGraph):
        self._layers = _unique(node.name for node in graph.nodes)
        self._tensors = _unique([*graph.inputs, *(name for node in graph.nodes for name in node.outputs), *graph.tensors])

    def layer(self, name: str) -> str:
        """Return the identifier of a layer; raises KeyError for an unknown name."""
        return self._layers[name]

    def tensor(self, name: str) -> str:
        """Return the identifier of a tensor; raises KeyError for an unknown name."""
        return self._tensors[name]

    def plane(self, tensor: str) -> str:
        """Return the name of the struct that describes a tensor's memory."""
        return f"{self._tensors[tensor]}_plane"


_TYPE = re.compile(r"[fl]|f\d+x?")
"""Suffix of a real function's name for another type."""


def is_library_name(name: str) -> bool:
    """True if C's library, or its POSIX part, may declare `name` or have a header of that name."""
    known = _library_names()
    mathematical = any(name.startswith(base) and _TYPE.fullmatch(name[len(base) :]) for base in known["mathematics"])
    declared = name in known["functions"] or name in known["mathematics"] or mathematical or name.endswith("_t")
    return declared or name.lower() in known["headers"]


@cache
def _library_names() -> dict[str, frozenset[str]]:
    text = (resources.folder("export_templates") / "cpp" / "library_names.txt").read_text(encoding="utf-8")
    return {name: frozenset(words.split()) for name, words in re.findall(r"^\[(\w+)\]\n([^\[]*)", text, re.MULTILINE)}


def literal(text: str) -> str:
    """Return a C string literal of the UTF-8 bytes of `text`."""
    out = []
    for byte in text.encode("utf-8"):
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        out.append(chr(byte) if plain else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def comment(text: str) -> str:
    """`text` on one line, without what would end or continue a comment."""
    return re.sub(r"[^\x20-\x7e]|\\|\*/|\?\?", "_", text)


def file_stems(identifiers: Iterable[str], reserved: Iterable[str]) -> dict[str, str]:
    """Return a file stem for each identifier: itself, numbered where another file differs at most by case."""
    fresh = FreshNames(reserved, key=str.lower)
    return {identifier: fresh(identifier) for identifier in identifiers}


def float_literal(value: float, ctype: str) -> str:
    """Return a C++ expression of type `ctype` ("float" or "double") with exactly this value of that type."""
    value = float(np.float32(value)) if ctype == "float" else float(value)
    if np.isnan(value):
        return f"std::numeric_limits<{ctype}>::quiet_NaN()"
    if np.isinf(value):
        return f"{'-' if value < 0 else ''}std::numeric_limits<{ctype}>::infinity()"
    text = f"{value:.9g}" if ctype == "float" else f"{value:.17g}"
    if not any(mark in text for mark in ".e"):
        text += ".0"
    return text + ("f" if ctype == "float" else "")
