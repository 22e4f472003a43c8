"""The template language of `.ini.tpl` files: `{{VAR}}` and `{% if/for/block/set/include %}`.

A template is parsed into a tree and rendered with named text parameters. Each line of the result keeps its file and line of
origin. Each tag is on one line. The work of all renderings of one document is limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from n2d2py.errors import Location, N2D2Error, suggest
from n2d2py.ini.lexer import SourceLine, read_lines

_LIMITS = {"steps": 100_000, "characters": 8 << 20, "lines": 100_000}
MAX_NESTING = 32
MAX_INCLUDES = 16

Parameter = str | Callable[[], str]
Scope = dict[str, Parameter]
Finder = Callable[[str, Location], Path]
_Piece = tuple[str, Location, bool]
"""Rendered text, its origin, and whether it is a value: that stays at the line of its tag, even with line ends in it."""

_TAG = re.compile(r"(\{\{[^\n{}]*\}\}|\{%(?:(?!\{%|%\})[^\n])*%\}|\{\{|\{%)")
_SEPARATORS = re.compile(r"[\s,()]+")
_INTEGER = re.compile(r"[+-]?\d{1,9}")
_FORMS = {
    "if": ("{% if VAR == VALUE %}, !=, exists or not_exists", r"\S+ ((==|!=)( \S+)?|exists|not_exists)"),
    "for": ("{% for VAR in range(START, END) %}", r"\S+ in range( \S+){1,2}"),
    "block": ("{% block ARRAY %}", r"\S+"),
    "set": ("{% set VAR %}...{% endset %}", r"\S+"),
    "include": ("{% include FILE %}", r"\S+"),
    **dict.fromkeys(("else", "endif", "endfor", "endblock", "endset"), ("", ".*")),
}
"""Form of each control word, and pattern of the words after it."""


@dataclass
class _Node:
    """A tag with its words, or a text, at a place; `body` is the enclosed content."""

    kind: str
    words: list[str]
    where: Location
    body: list[_Node] = field(default_factory=list)
    otherwise: list[_Node] = field(default_factory=list)


def _parse(text: str, file: str, section: str) -> list[_Node]:
    """Return the tree of a template. Raises E118 for a malformed or unbalanced tag."""
    root = _Node("", [], Location(file, 1, section))
    opened, target, line = [root], root.body, 1
    for token in filter(None, _TAG.split(text)):
        node = _read_token(token, Location(file, line, section))
        line += token.count("\n")
        inner = opened[-1]
        if node.kind == "else" and inner.kind == "if" and target is inner.body:
            target = inner.otherwise
        elif node.kind == f"end{inner.kind}":
            opened.pop()
            target = opened[-1].otherwise or opened[-1].body
        elif node.kind == "else" or node.kind.startswith("end"):
            place = f" inside {{% {inner.kind} %}} of line {inner.where.line}" if inner.kind else ""
            raise _tag_error(node.where, f"{{% {node.kind} %}} closes nothing{place}", "balance the tags")
        else:
            target.append(node)
            if node.kind in ("if", "for", "block", "set"):
                opened.append(node)
                target = node.body
            if len(opened) > MAX_NESTING + 1:
                raise _tag_error(node.where, f"the template has more than {MAX_NESTING} nested tags", "simplify the template")
    if len(opened) > 1:
        kind = opened[-1].kind
        raise _tag_error(opened[-1].where, f"{{% {kind} %}} has no {{% end{kind} %}}", f"add {{% end{kind} %}}")
    return root.body


def _read_token(token: str, where: Location) -> _Node:
    if not token.startswith(("{{", "{%")):
        return _Node("text", [token], where)
    if token in ("{{", "{%"):
        raise _tag_error(where, f"'{token}' is not closed on its line", "write {{VAR}} or {% word ... %}")
    if token.startswith("{{"):
        return _Node("variable", [token[2:-2].strip()], where)
    kind, *words = [word for word in _SEPARATORS.split(token[2:-2]) if word] or [""]
    if kind not in _FORMS:
        raise _tag_error(where, f"control word '{kind}' is unknown", suggest(kind, _FORMS, f"known: {', '.join(_FORMS)}"))
    form, pattern = _FORMS[kind]
    if not re.fullmatch(pattern, " ".join(words)):
        raise _tag_error(where, f"{{% {' '.join([kind, *words])} %}} is malformed", f"write {form}")
    return _Node(kind, words, where)


def _tag_error(where: Location, what: str, remedy: str) -> N2D2Error:
    return N2D2Error("E118", what, where=where, remedy=remedy)


class Renderer:
    """Template renderer of one document; `find` maps a file name and its place to a path."""

    def __init__(self, find: Finder):
        self._find = find
        self._trees: dict[Path, list[_Node]] = {}
        self._done = dict.fromkeys(_LIMITS, 0)
        self._section = ""
        self._includes = 0

    def render(self, path: Path, parameters: dict[str, Parameter], section: str) -> list[SourceLine]:
        """Return the lines of the template at `path` rendered for `section`.

        A parameter may be a function, which is called when the value is needed. Raises E101, E102, E117, E118 or E120.
        """
        self._section, self._includes = section, 0
        return _split_lines(self._file(path, dict(parameters)))

    def _file(self, path: Path, scope: Scope) -> Iterator[_Piece]:
        if path not in self._trees:
            text = "".join(line.text + "\n" for line in read_lines(path))
            self._trees[path] = _parse(text, str(path), self._section)
        yield from self._nodes(self._trees[path], scope)

    def _nodes(self, nodes: list[_Node], scope: Scope) -> Iterator[_Piece]:
        for node in nodes:
            where = node.where.within(self._section)
            self._work(1, "", where)
            yield from getattr(self, f"_{node.kind}")(node, scope, where)

    def _work(self, steps: int, text: str, where: Location) -> None:
        for what, amount in zip(_LIMITS, (steps, len(text), text.count("\n")), strict=True):
            self._done[what] += amount
            if self._done[what] > _LIMITS[what]:
                what = f"the template is too large: more than {_LIMITS[what]} {what}"
                raise N2D2Error("E117", what, where=where, remedy="reduce its loops")

    def _text(self, node: _Node, scope: Scope, where: Location) -> Iterator[_Piece]:
        self._work(0, node.words[0], where)
        yield node.words[0], where, False

    def _variable(self, node: _Node, scope: Scope, where: Location) -> Iterator[_Piece]:
        value = _parameter_text(scope, node.words[0], where)
        self._work(1, value, where)
        yield value, where, True

    def _if(self, node: _Node, scope: Scope, where: Location) -> Iterator[_Piece]:
        name, operator, *value = node.words
        if operator in ("exists", "not_exists"):
            holds = (name in scope) == (operator == "exists")
        else:
            holds = (_parameter_text(scope, name, where) == "".join(value)) == (operator == "==")
        yield from self._nodes(node.body if holds else node.otherwise, scope)

    def _for(self, node: _Node, scope: Scope, where: Location) -> Iterator[_Piece]:
        name = node.words[0]
        if name in scope:
            raise N2D2Error("E120", f"loop variable '{name}' is already a parameter", where=where, remedy="rename it")
        steps = range(*(_parse_integer(scope, word, where) for word in node.words[3:]))
        self._work(len(steps), "", where)
        for index in steps:
            scope[name] = str(index)
            yield from self._nodes(node.body, scope)
        scope.pop(name, None)

    def _block(self, node: _Node, scope: Scope, where: Location) -> Iterator[_Piece]:
        array = node.words[0]
        count = _parse_integer(scope, array, where)
        self._work(max(0, count) * len(scope), "", where)
        for index in range(count):
            prefix = f"{array}[{index}]"
            own = {key.removeprefix(prefix): value for key, value in scope.items() if key.startswith(prefix)}
            yield from self._nodes(node.body, {**scope, **own, "#": str(index)})

    def _set(self, node: _Node, scope: Scope, where: Location) -> Iterator[_Piece]:
        scope[node.words[0]] = "".join(text for text, *_ in self._nodes(node.body, scope))
        yield from ()

    def _include(self, node: _Node, scope: Scope, where: Location) -> Iterator[_Piece]:
        self._includes += 1
        if self._includes > MAX_INCLUDES:
            what = f"the template has more than {MAX_INCLUDES} nested includes"
            raise N2D2Error("E117", what, where=where, remedy="remove the recursion")
        yield from self._file(self._find(node.words[0], where), scope)
        self._includes -= 1


def _parameter_text(scope: Scope, name: str, where: Location) -> str:
    if name not in scope:
        remedy = suggest(name, scope, f"add {name}=<value> to [{where.section}]")
        raise N2D2Error("E120", f"template parameter '{name}' is not defined", where=where, remedy=remedy)
    value = scope[name]
    if callable(value):
        value = scope[name] = value()
    return value


def _parse_integer(scope: Scope, word: str, where: Location) -> int:
    text = word if _INTEGER.fullmatch(word) else _parameter_text(scope, word, where)
    if not _INTEGER.fullmatch(text.strip()):
        what = f"template parameter '{word}' is '{text[:40]}', not an integer"
        raise N2D2Error("E120", what, where=where, remedy="give a whole number")
    return int(text)


def _split_lines(pieces: Iterator[_Piece]) -> list[SourceLine]:
    """Split the pieces into lines, each at the place of its first piece."""
    result: list[SourceLine] = []
    parts: list[str] = []
    place: tuple[str, int] | None = None
    for text, where, is_value in pieces:
        file, line = where.file or "", where.line or 0
        for offset, part in enumerate(text.split("\n")):
            if offset:
                result.append(SourceLine("".join(parts), *(place or (file, line))))
                parts, place = [], None
            if part:
                parts.append(part)
                place = place or (file, line + (0 if is_value else offset))
    if place is not None:
        result.append(SourceLine("".join(parts), *place))
    return result
