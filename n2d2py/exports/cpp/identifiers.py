"""C identifiers for layer and tensor names: sanitised, unique whatever the case, the same in every run.

Names in generated code are ``<identifier>_<suffix>`` where the suffix holds no underscore
(``conv1_config``, ``conv1_weights``), so two of them differ whenever identifier or suffix differ.
Identifiers also name files, hence the length limit and the words that file systems reserve.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from n2d2py.exports.cpp.library_names import is_library_name
from n2d2py.graph import QuantGraph

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
"""Words of C++11 that name nothing else, and `std`."""
_RESERVED = KEYWORDS | frozenset(
    """
    concept final import main module override requires restrict linux unix n2d2 con prn aux nul com1 com2 com3 com4 com5
    com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9
    """.split()
)
"""With words of later C++, macros, and names of devices."""


def sanitise(name: str) -> str:
    """The nearest valid identifier: letters, digits and single underscores, no keyword, 64 characters at most."""
    text = re.sub(r"_+", "_", re.sub(r"[^0-9A-Za-z]", "_", name)).strip("_")[:MAX_LENGTH].rstrip("_")
    if not text or text[0].isdigit() or text.lower() in _RESERVED:
        text = f"x{text}"
    return text


def namespace_name(name: str) -> str:
    """The nearest identifier that can name a namespace beside C's library: `div` becomes `div_net`."""
    text = sanitise(name)
    return f"{text[: MAX_LENGTH - 4]}_net" if is_library_name(text) else text


def mangled(namespace: str, name: str) -> str:
    """What the assembler calls a variable of a namespace (Itanium C++ ABI, 5.1.2); `name` may be in namespaces within it."""
    return f"_ZN{''.join(f'{len(part)}{part}' for part in (namespace, *name.split('::')))}E"


def _unique(names: Iterable[str]) -> dict[str, str]:
    taken: set[str] = set()
    result: dict[str, str] = {}
    for name in names:
        if name in result:
            continue
        base = sanitise(name)
        text, number = base, 2
        while text.lower() in taken:
            text, number = f"{base[: MAX_LENGTH - 5]}_{number}", number + 1
        taken.add(text.lower())
        result[name] = text
    return result


class Identifiers:
    """The identifiers of a network, numbered in graph order where names would coincide."""

    def __init__(self, graph: QuantGraph):
        self._layers = _unique(node.name for node in graph.nodes)
        self._tensors = _unique([*graph.inputs, *(name for node in graph.nodes for name in node.outputs), *graph.tensors])

    def layer(self, name: str) -> str:
        """Identifier of a layer; raises KeyError for a name that the graph does not have."""
        return self._layers[name]

    def tensor(self, name: str) -> str:
        """Identifier of a tensor; raises KeyError for a name that the graph does not have."""
        return self._tensors[name]

    def plane(self, tensor: str) -> str:
        """Name of the struct that describes where a tensor lies."""
        return f"{self._tensors[tensor]}_plane"
