"""The mutants of a file: its syntax tree with one small change each.

Changed are comparisons, arithmetic, boolean operators, conditions, returned values, statements left out, orders of arguments,
`break` and `continue`, `min` and `max`, `any` and `all`, numbers, truth values, and strings that something is compared with.
Left alone are docstrings, annotations, decorators, imports, `__all__`, assertions, as which an InternalError under a condition of its
own and a NotImplementedError count too, f-strings, what errors and the log say (texts have tests of their own), the `strict` of `zip`, which guards against a
defect elsewhere, and what NumPy does alike either way (`changes.without_effect`, and functions of two arguments that give the same in
both orders).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from changes import COMPARISONS, last_name, log_text, other_expressions, other_statements, strings, without_effect

__all__ = ["Mutant", "SourceFile"]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CONTEXT = 20
"""Characters that the text of a change has at least, where its statement has as many."""


@dataclass(frozen=True)
class Mutant:
    """One change. `original` and `mutated` are the expression or statement around it, `function` its qualified name (empty in the
    module's own statements), `offset` the lines from the head of that to the statement, `names` what such a statement defines.
    """

    file: str
    line: int
    function: str
    offset: int
    original: str
    mutated: str
    names: tuple[str, ...]
    holder: Any
    field: str
    index: int | None
    replacement: Any

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What the mutant is known by when lines move: file, function, original text, mutated text."""
        return self.file, self.function, self.original, self.mutated

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.function or '(module)'}: {'  ->  '.join(self._difference())}"

    def _difference(self) -> tuple[str, str]:
        """Both texts, less most of what long ones have in common."""
        texts = self.original, self.mutated
        head = _common(*texts)
        tail = _common(*(text[head:][::-1] for text in texts))
        left, right = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
        if left + right < 2 * _CONTEXT:
            return texts
        first, second = (f"{'…' * (left > 0)}{text[left : len(text) - right]}{'…' * (right > 0)}" for text in texts)
        return first, second

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The tree of the file with the change, inside the block."""
        before = getattr(self.holder, self.field)
        if self.index is None:
            setattr(self.holder, self.field, self.replacement)
        else:
            after = list(before)
            after[self.index] = self.replacement
            setattr(self.holder, self.field, after)
        try:
            yield
        finally:
            setattr(self.holder, self.field, before)


@dataclass(frozen=True)
class _Place:
    """Where the walk is: what surrounds a node. `at`: the head of the function's first line."""

    function: str
    at: int
    statement: ast.stmt | None = None
    context: tuple[ast.expr, ...] = ()
    module: bool = True


class SourceFile:
    """A file of the package and its mutants, in the order of the text."""

    def __init__(self, root: Path, path: Path):
        self.path = path
        self.name = path.relative_to(root).as_posix()
        self.module = self.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.mutants: list[Mutant] = []
        self._statements(self.tree, "body", _Place("", 0), True)

    def code(self) -> Any:
        """The tree compiled as it stands, with the change that is applied."""
        return compile(ast.fix_missing_locations(self.tree), str(self.path), "exec")

    def users(self, names: tuple[str, ...]) -> set[str]:
        """The qualified names of the functions that mention one of `names`."""
        return {
            name
            for name, node in _functions(self.tree, "")
            if any(isinstance(part, (ast.Name, ast.Attribute)) and last_name(part) in names for part in ast.walk(node))
        }

    # Statements

    def _statements(self, holder: Any, field: str, place: _Place, head: bool = False) -> None:
        for index, node in enumerate(getattr(holder, field)):
            docstring = head and index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not docstring and not isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert, ast.Global, ast.Nonlocal)):
                self._statement(holder, field, index, node, place)

    def _statement(self, holder: Any, field: str, index: int, node: ast.stmt, outer: _Place) -> None:
        if isinstance(node, _SCOPES):
            name = f"{outer.function}.{node.name}" if outer.function else node.name
            inner = _Place(name, node.lineno, module=isinstance(node, ast.ClassDef) and outer.module)
            if not isinstance(node, ast.ClassDef):
                for defaults in ("defaults", "kw_defaults"):
                    self._list(node.args, defaults, _Place(outer.function, outer.at, node, (), outer.module))
            self._statements(node, "body", inner, True)
            return
        place = _Place(outer.function, outer.at, node, (), outer.module)
        if _is_assertion(node):
            return
        if _defines(node, "__all__") or (isinstance(node, ast.If) and last_name(node.test) == "TYPE_CHECKING"):
            return
        for replacement in other_statements(node):
            self._add(place, holder, field, index, replacement, node)
        if isinstance(node, (ast.If, ast.While)):
            self._condition(node, "test", None, place, isinstance(node, ast.If))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        for part, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and part != "annotation":
                self._expression(node, part, None, place)
            elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self._statements(node, part, outer)
            elif part in ("handlers", "cases"):
                for each in value:
                    if getattr(each, "guard", None) is not None:
                        self._condition(each, "guard", None, place, True)
                        self._expression(each, "guard", None, place)
                    self._statements(each, "body", outer)
            elif part == "items":
                for each in value:
                    self._expression(each, "context_expr", None, place)
            elif isinstance(value, list):
                self._list(node, part, place)

    # Expressions

    def _list(self, holder: Any, field: str, place: _Place) -> None:
        for index, value in enumerate(getattr(holder, field)):
            if isinstance(value, ast.expr):
                self._expression(holder, field, index, place)

    def _condition(self, holder: Any, field: str, index: int | None, place: _Place, forever: bool) -> None:
        node = _value(holder, field, index)
        for truth in (True, False) if forever else (False,):
            if not isinstance(node, ast.Constant):
                self._add(place, holder, field, index, ast.Constant(truth), node)

    def _expression(self, holder: Any, field: str, index: int | None, outer: _Place) -> None:
        node = _value(holder, field, index)
        if isinstance(node, (ast.JoinedStr, ast.Lambda)) or _is_error(node):
            if isinstance(node, ast.Lambda):
                self._expression(node, "body", None, outer)
            return
        place = _Place(outer.function, outer.at, outer.statement, (*outer.context, node), outer.module)
        quiet = log_text(node)
        if not quiet:
            for replacement in other_expressions(node):
                if not without_effect(outer.context, node, replacement):
                    self._add(place, holder, field, index, replacement)
        if isinstance(node, ast.Compare):
            for at, operator in enumerate(node.ops):
                for kind in COMPARISONS[type(operator)]:
                    self._add(place, node, "ops", at, kind())
            for part in (node.left, *node.comparators):
                for at_holder, at_field, at_index, text in strings(node, part):
                    self._add(place, at_holder, at_field, at_index, ast.Constant(text))
        if isinstance(node, ast.IfExp):
            self._condition(node, "test", None, place, True)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for generator in node.generators:
                self._expression(generator, "iter", None, place)
                for at in range(len(generator.ifs)):
                    self._condition(generator, "ifs", at, place, True)
                    self._expression(generator, "ifs", at, place)
        for part, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                self._expression(node, part, None, place)
            elif part == "keywords":
                for each in value:
                    if each.arg != "strict" and not quiet:
                        self._expression(each, "value", None, place)
            elif isinstance(value, list) and part not in ("generators", "ops") and not quiet:
                self._list(node, part, place)

    def _add(self, place: _Place, holder: Any, field: str, index: int | None, replacement: Any, whole: Any = None) -> None:
        """A mutant; `whole`: the node whose text is shown, else the smallest expression around the change that says enough."""
        names = _names(place.statement) if place.module else ()
        line = place.statement.lineno
        mutant = Mutant(self.name, line, place.function, line - place.at, "", "", names, holder, field, index, replacement)
        around = _value(holder, field, index) if whole is not None else _enough(place.context)
        itself = around is _value(holder, field, index)
        original = _text(around)
        with mutant.applied():
            mutated = _text(_value(holder, field, index) if itself else around)
        fields = {**mutant.__dict__, "original": original, "mutated": mutated}
        self.mutants.append(Mutant(**fields))


def _common(a: str, b: str) -> int:
    """How many characters both begin with."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


def _enough(context: tuple[ast.expr, ...]) -> ast.expr:
    """The innermost expression whose text says enough, else the whole one."""
    return next((node for node in reversed(context) if len(ast.unparse(node)) >= _CONTEXT), context[0])


def _value(holder: Any, field: str, index: int | None) -> Any:
    value = getattr(holder, field)
    return value if index is None else value[index]


def _is_error(node: ast.AST) -> bool:
    """Whether an exception is made: its texts are for people to read."""
    return isinstance(node, ast.Call) and last_name(node.func).endswith(
        ("Error", "ErrorList", "Unsupported", "RefusedOperator")
    )


def _is_assertion(node: ast.stmt) -> bool:
    """Whether a statement only raises an InternalError, perhaps under a condition, or a NotImplementedError, which stands for what
    classes derived from its own say: something is wrong elsewhere.
    """
    if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
        return _is_assertion(node.body[0])
    if not isinstance(node, ast.Raise) or node.exc is None:
        return False
    return last_name(node.exc.func if isinstance(node.exc, ast.Call) else node.exc) in ("InternalError", "NotImplementedError")


def _targets(node: ast.stmt | None) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else []


def _defines(node: ast.stmt, name: str) -> bool:
    return any(last_name(target) == name for target in _targets(node))


def _names(node: ast.stmt | None) -> tuple[str, ...]:
    if isinstance(node, _SCOPES):
        return (node.name,)
    return tuple(part.id for target in _targets(node) for part in ast.walk(target) if isinstance(part, ast.Name))


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, _SCOPES):
            name = f"{prefix}.{child.name}" if prefix else child.name
            if not isinstance(child, ast.ClassDef):
                yield name, child
        yield from _functions(child, name)
