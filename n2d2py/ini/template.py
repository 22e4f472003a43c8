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

MAX_STEPS = 100_000
MAX_CHARACTERS = 8 << 20
MAX_LINES = 100_000
MAX_NESTING = 32
MAX_INCLUDES = 16

Parameter = str | Callable[[], str]
Finder = Callable[[str, Location], Path]

_TAG = re.compile(
    r"\{\{(?P<variable>[^\n{}]*)\}\}|\{%(?P<control>(?:(?!\{%|%\})[^\n])*)%\}"
    r"|(?P<stray>\{\{|\{%)"
)
_SEPARATORS = re.compile(r"[\s,()]+")
_INTEGER = re.compile(r"[+-]?\d{1,9}")
_FORMS = {
    "if": ("{% if VAR == VALUE %}, !=, exists or not_exists", r"\S+ ((==|!=)( \S+)?|exists|not_exists)"),
    "for": ("{% for VAR in range(START, END) %}", r"\S+ in range( \S+){1,2}"),
    "block": ("{% block ARRAY %}", r"\S+"),
    "set": ("{% set VAR %}...{% endset %}", r"\S+"),
    "include": ("{% include FILE %}", r"\S+"),
}
"""Form of each control word, and pattern of the words after it."""
_CLOSES = {"endif": "if", "endfor": "for", "endblock": "block", "endset": "set"}


@dataclass
class _Node:
    """A tag with its control words, or a text, at `line`; `body` is the enclosed content."""

    kind: str
    line: int
    words: list[str] = field(default_factory=list)
    text: str = ""
    body: list[_Node] = field(default_factory=list)
    otherwise: list[_Node] = field(default_factory=list)


class _Parser:
    """Parser of the text of one template into a tree of nodes."""

    def __init__(self, file: str, section: str):
        self._file = file
        self._section = section
        self._open: list[_Node] = []
        self._targets: list[list[_Node]] = [[]]

    def parse(self, text: str) -> list[_Node]:
        line, position = 1, 0
        for tag in _TAG.finditer(text):
            line = self._add_text(text[position : tag.start()], line)
            position = tag.end()
            if tag["stray"]:
                raise self._error(line, f"'{tag['stray']}' is not closed on its line", "write {{VAR}} or {% word ... %}")
            if tag["variable"] is not None:
                self._targets[-1].append(_Node("variable", line, [tag["variable"].strip()]))
            else:
                self._control(tag["control"], line)
        self._add_text(text[position:], line)
        if self._open:
            node = self._open[-1]
            raise self._error(node.line, f"{{% {node.kind} %}} has no {{% end{node.kind} %}}", f"add {{% end{node.kind} %}}")
        return self._targets[0]

    def _error(self, line: int, what: str, remedy: str) -> N2D2Error:
        return N2D2Error("E118", what, where=Location(self._file, line, self._section), remedy=remedy)

    def _add_text(self, text: str, line: int) -> int:
        if text:
            self._targets[-1].append(_Node("text", line, text=text))
        return line + text.count("\n")

    def _control(self, text: str, line: int) -> None:
        words = [word for word in _SEPARATORS.split(text) if word]
        if not words:
            raise self._error(line, "a control tag is empty", "write {% word ... %}")
        kind = words[0]
        if kind in _CLOSES:
            self._close(kind, line)
        elif kind == "else":
            if not self._open or self._open[-1].kind != "if" or self._targets[-1] is self._open[-1].otherwise:
                raise self._error(line, "{% else %} has no {% if %}", "remove it")
            self._targets[-1] = self._open[-1].otherwise
        else:
            self._begin(_Node(kind, line, words[1:]), line)

    def _close(self, kind: str, line: int) -> None:
        if not self._open or self._open[-1].kind != _CLOSES[kind]:
            inner = f" inside {{% {self._open[-1].kind} %}} of line {self._open[-1].line}" if self._open else ""
            raise self._error(line, f"{{% {kind} %}} without its {{% {_CLOSES[kind]} %}}{inner}", "balance the tags")
        self._open.pop()
        self._targets.pop()

    def _begin(self, node: _Node, line: int) -> None:
        if node.kind not in _FORMS:
            what = f"control word '{node.kind}' is unknown"
            raise self._error(line, what, suggest(node.kind, [*_FORMS, *_CLOSES, "else"], f"known: {', '.join(_FORMS)}"))
        form, pattern = _FORMS[node.kind]
        if not re.fullmatch(pattern, " ".join(node.words)):
            raise self._error(line, f"{{% {' '.join([node.kind, *node.words])} %}} is malformed", f"write {form}")
        self._targets[-1].append(node)
        if node.kind == "include":
            return
        if len(self._open) >= MAX_NESTING:
            raise self._error(line, f"the template has more than {MAX_NESTING} nested tags", "simplify the template")
        self._open.append(node)
        self._targets.append(node.body)


@dataclass(frozen=True)
class _Piece:
    """Rendered text and its origin; a `value` stays at the line of its tag, even with line ends in it."""

    text: str
    line: int
    file: str
    value: bool = False


class Renderer:
    """Template renderer of one document; `find` maps a file name and its place to a path."""

    def __init__(self, find: Finder):
        self._find = find
        self._trees: dict[Path, list[_Node]] = {}
        self._steps = 0
        self._characters = 0
        self._line_count = 0
        self._section = ""
        self._includes = 0

    def render(self, path: Path, parameters: dict[str, Parameter], section: str) -> list[SourceLine]:
        """Return the lines of the template at `path` rendered for `section`.

        A parameter may be a function, which is called when the value is needed. Raises E101, E102, E117, E118 or E120.
        """
        self._section = section
        self._includes = 0
        return _split_lines(self._file(path, dict(parameters)))

    def _file(self, path: Path, scope: dict[str, Parameter]) -> Iterator[_Piece]:
        if path not in self._trees:
            text = "".join(line.text + "\n" for line in read_lines(path))
            self._trees[path] = _Parser(str(path), self._section).parse(text)
        yield from self._nodes(self._trees[path], scope, str(path))

    def _nodes(self, nodes: list[_Node], scope: dict[str, Parameter], file: str) -> Iterator[_Piece]:
        for node in nodes:
            where = Location(file, node.line, self._section)
            self._work(1, node.text, where)
            if node.kind == "text":
                yield _Piece(node.text, node.line, file)
            else:
                yield from getattr(self, "_" + node.kind)(node, scope, file, where)

    def _work(self, steps: int, text: str, where: Location) -> None:
        self._steps += steps
        self._characters += len(text)
        self._line_count += text.count("\n")
        for count, most, what in (
            (self._steps, MAX_STEPS, "steps"),
            (self._characters, MAX_CHARACTERS, "characters"),
            (self._line_count, MAX_LINES, "lines"),
        ):
            if count > most:
                what = f"the template is too large: more than {most} {what}"
                raise N2D2Error("E117", what, where=where, remedy="reduce its loops")

    def _variable(self, node: _Node, scope: dict[str, Parameter], file: str, where: Location) -> Iterator[_Piece]:
        value = _parameter_text(scope, node.words[0], where)
        self._work(1, value, where)
        yield _Piece(value, node.line, file, value=True)

    def _if(self, node: _Node, scope: dict[str, Parameter], file: str, where: Location) -> Iterator[_Piece]:
        name, operator, *value = node.words
        if operator in ("exists", "not_exists"):
            holds = (name in scope) == (operator == "exists")
        else:
            holds = (_parameter_text(scope, name, where) == "".join(value)) == (operator == "==")
        yield from self._nodes(node.body if holds else node.otherwise, scope, file)

    def _for(self, node: _Node, scope: dict[str, Parameter], file: str, where: Location) -> Iterator[_Piece]:
        name = node.words[0]
        if name in scope:
            raise N2D2Error("E120", f"loop variable '{name}' is already a parameter", where=where, remedy="rename it")
        steps = range(*(_parse_integer(scope, word, where) for word in node.words[3:]))
        self._work(len(steps), "", where)
        for index in steps:
            scope[name] = str(index)
            yield from self._nodes(node.body, scope, file)
        scope.pop(name, None)

    def _block(self, node: _Node, scope: dict[str, Parameter], file: str, where: Location) -> Iterator[_Piece]:
        array = node.words[0]
        count = _parse_integer(scope, array, where)
        self._work(max(0, count) * len(scope), "", where)
        for index in range(count):
            prefix = f"{array}[{index}]"
            own = {key.removeprefix(prefix): value for key, value in scope.items() if key.startswith(prefix)}
            yield from self._nodes(node.body, {**scope, **own, "#": str(index)}, file)

    def _set(self, node: _Node, scope: dict[str, Parameter], file: str, where: Location) -> Iterator[_Piece]:
        scope[node.words[0]] = "".join(piece.text for piece in self._nodes(node.body, scope, file))
        yield from ()

    def _include(self, node: _Node, scope: dict[str, Parameter], file: str, where: Location) -> Iterator[_Piece]:
        self._includes += 1
        if self._includes > MAX_INCLUDES:
            what = f"the template has more than {MAX_INCLUDES} nested includes"
            raise N2D2Error("E117", what, where=where, remedy="remove the recursion")
        yield from self._file(self._find(node.words[0], where), scope)
        self._includes -= 1


def _parameter_text(scope: dict[str, Parameter], name: str, where: Location) -> str:
    if name not in scope:
        remedy = suggest(name, scope, f"add {name}=<value> to [{where.section}]")
        raise N2D2Error("E120", f"template parameter '{name}' is not defined", where=where, remedy=remedy)
    value = scope[name]
    if callable(value):
        value = scope[name] = value()
    return value


def _parse_integer(scope: dict[str, Parameter], word: str, where: Location) -> int:
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
    for piece in pieces:
        for offset, text in enumerate(piece.text.split("\n")):
            if offset:
                result.append(SourceLine("".join(parts), *(place or (piece.file, piece.line))))
                parts, place = [], None
            if text:
                parts.append(text)
                place = place or (piece.file, piece.line + (0 if piece.value else offset))
    if place is not None:
        result.append(SourceLine("".join(parts), *place))
    return result
