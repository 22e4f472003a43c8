"""What stands in the place of a statement, an expression, a comparison's operator or a string."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

__all__ = ["COMPARISONS", "last_name", "log_text", "other_expressions", "other_statements", "strings", "without_effect"]

COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
_QUIET = {"notice", "detail", "progress"}
"""What the log shows for people to read; a warning is a result."""


def last_name(node: ast.AST) -> str:
    """`c` of c and of a.b.c, else empty."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def log_text(node: ast.AST) -> bool:
    """Whether a call writes to the log."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and last_name(node.func.value) == "log"


def other_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    """What stands in the place of a statement."""
    if isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value in (None, True, False)):
            yield ast.Return(ast.Constant(None))
    elif isinstance(node, (ast.Break, ast.Continue)):
        yield ast.Pass()
        yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    elif (
        isinstance(node, (ast.Raise, ast.AugAssign))
        or (isinstance(node, ast.Assign) and not any(isinstance(part, (ast.Name, ast.Tuple)) for part in node.targets))
        or (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and not (log_text(node.value) and last_name(node.value.func) in _QUIET)
        )
    ):
        yield ast.Pass()
    if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)


def other_expressions(node: ast.expr) -> Iterator[ast.expr]:
    """What stands in the place of an expression."""
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        yield ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        for at in range(len(node.values)):
            left = [value for index, value in enumerate(node.values) if index != at]
            yield ast.BoolOp(node.op, left) if len(left) > 1 else left[0]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield ast.Constant(not value)
        elif isinstance(value, int):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1) if value else ast.UnaryOp(ast.USub(), ast.Constant(1))
        elif isinstance(value, float):
            yield ast.Constant(value * 2 + 1)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _NAMES:
            yield ast.Call(ast.Name(_NAMES[node.func.id], ast.Load()), node.args, node.keywords)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _NAMES:
            yield ast.Call(ast.Attribute(node.func.value, _NAMES[node.func.attr], ast.Load()), node.args, node.keywords)
        if len(node.args) > 1 and not any(isinstance(argument, ast.Starred) for argument in node.args[:2]):
            first, second, *rest = node.args
            if ast.dump(first) != ast.dump(second) and not _has_one_order(node):
                yield ast.Call(node.func, [second, first, *rest], node.keywords)


_ONE_ORDER = {"isinstance", "issubclass", "getattr", "setattr"}
_EVERY_ORDER = {
    *("min", "max", "minimum", "maximum", "array_equal", "equal", "not_equal", "add", "multiply", "hypot", "logaddexp"),
    *("isclose", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"),
    *("broadcast", "broadcast_shapes", "union1d", "intersect1d"),
}


def _has_one_order(node: ast.Call) -> bool:
    """Calls that fail with any other order of arguments, or give the same in every order: it says nothing of the tests."""
    name = last_name(node.func)
    library = not isinstance(node.func, ast.Attribute) or last_name(node.func.value) in ("np", "math")
    return name in _ONE_ORDER or (library and name in _EVERY_ORDER)


def without_effect(context: tuple[ast.expr, ...], node: ast.expr, other: ast.expr) -> bool:
    """Whether NumPy gives the same values with `other` in the place of `node`; `context`: what surrounds the node, outermost first.

    A negative size of `reshape`, -1 or -2, is the one to be found; `astype(kind, copy=False)` has the values of a copy.
    """
    if not isinstance(node, ast.Constant) or not isinstance(other, ast.Constant):
        return False
    if node.value is False and other.value is True:
        call = context[-1] if context else None
        return (
            isinstance(call, ast.Call)
            and last_name(call.func) == "astype"
            and any(part.value is node and part.arg == "copy" for part in call.keywords)
        )
    if (node.value, other.value) != (1, 2) or len(context) < 2 or not isinstance(context[-1], ast.UnaryOp):
        return False
    around = [part for part in context[:-1] if not isinstance(part, (ast.Tuple, ast.List))]
    inner = around[-1] if around else None
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add) and isinstance(inner.left, ast.Tuple):
        inner = around[-2] if len(around) > 1 else None
    return isinstance(inner, ast.Call) and last_name(inner.func) == "reshape"


def strings(holder: Any, node: ast.expr) -> Iterator[tuple[Any, str, int | None, str]]:
    """Where the strings of one side of a comparison stand, each with another one: of a string that is searched, it without its first
    letter."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if holder.left is node:
            yield holder, "left", None, node.value + "_"
        else:
            index = holder.comparators.index(node)
            searched = isinstance(holder.ops[index], (ast.In, ast.NotIn))
            yield holder, "comparators", index, node.value[1:] if searched else node.value + "_"
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for at, part in enumerate(node.elts):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield node, "elts", at, part.value + "_"
