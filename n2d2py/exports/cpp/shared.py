"""Constants that several layers have in common, such as those of one layer in several strips: they are in the program once."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.parts import Argument, Array, Call, Constants, LayerConfig


def share_constants(codes: Sequence[LayerCode]) -> list[LayerCode]:
    """The same layers; of arrays with the same values, under the same conditions, the first is there for all."""
    known: dict[Hashable, str] = {}
    found = []
    for code in codes:
        names = {array.name: known.setdefault(_content(array), array.name) for array in code.constants}
        others = {name: other for name, other in names.items() if name != other}
        found.append(_renamed(code, others) if others else code)
    return found


def _content(array: Array) -> Hashable:
    forms = tuple((form.sets, form.values.tobytes()) for form in array.forms)
    return array.ctype, array.where, array.values.tobytes(), forms


def _renamed(code: LayerCode, names: Mapping[str, str]) -> LayerCode:
    """The layer with other arrays instead of some that are its own, which it does not define."""
    words = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")

    def other(text: Argument) -> Argument:
        return words.sub(lambda found: names[found[1]], text) if isinstance(text, str) else text

    def call(one: Call) -> Call:
        template, arguments, declared = (tuple(map(other, each)) for each in (one.template, one.arguments, one.declared))
        return replace(one, template=template, arguments=arguments, declared=declared)

    def struct(one: LayerConfig | Constants) -> LayerConfig | Constants:
        types = {key: str(other(str(value))) for key, value in one.types.items()}
        if isinstance(one, LayerConfig):
            return replace(one, types=types)
        return replace(one, types=types, functions={key: other(value) for key, value in one.functions.items()})  # type: ignore[arg-type]

    form = code.winograd
    winograd = form and replace(
        form,
        name=names.get(form.name, form.name),
        direct=names.get(form.direct, form.direct),
        borrowed=form.borrowed or form.name in names,
    )
    return replace(
        code,
        calls=tuple(map(call, code.calls)),
        structs=tuple(map(struct, code.structs)),
        arrays=tuple(replace(one, name=names[one.name], borrowed=True) if one.name in names else one for one in code.arrays),
        selection=replace(code.selection, winograd=winograd),
    )
