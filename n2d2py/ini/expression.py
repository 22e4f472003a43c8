"""Values of `$( )` expressions: an interpreter of a small part of Python's syntax, with limits.

Supported: numbers, strings, True, False, + - * / // % **, comparisons, and, or, not, `x if c else y`, parentheses and the calls
in `FUNCTIONS`. Names, attributes, subscripts and other calls are errors. Limits on numbers, strings and nesting bound the run
time.
"""

import ast
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

MAX_CHARACTERS = 2000
MAX_DEPTH = 200
MAX_BITS = 1024

Value = int | float | str


class ExpressionError(ValueError):
    """Reason why an expression has no value, as a clause."""


def evaluate(text: str) -> str:
    """Return the value of a Python-like expression as Python prints it; comparisons return 1 or 0.

    Raises ExpressionError for another language, without a finite value, beyond 2000 characters or integers of 1024 bits.
    """
    value = _Interpreter().value(_parse(text.strip()))
    return str(int(value)) if isinstance(value, bool) else str(value)


def _parse(text: str) -> ast.expr:
    if not text:
        raise ExpressionError("it is empty")
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(f"it is longer than {MAX_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except (RecursionError, MemoryError):
        raise ExpressionError("it is nested too deep") from None
    except (SyntaxError, ValueError) as error:
        raise ExpressionError(getattr(error, "msg", str(error))) from None


def _power(base: Any, exponent: Any) -> Value:
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        if base.bit_length() * exponent > 2 * MAX_BITS and abs(base) > 1:
            raise ExpressionError("the power is too large")
    return base**exponent


def _round(value: Any, digits: int = 0) -> Value:
    if not isinstance(digits, int) or abs(digits) > 20:
        raise ExpressionError("round() takes between -20 and 20 digits")
    return round(value, digits) if digits else round(value)


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
"""Functions of operators; they refuse values of a wrong type themselves."""

FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "abs": (abs, 1, 1),
    "ceil": (math.ceil, 1, 1),
    "float": (float, 1, 1),
    "floor": (math.floor, 1, 1),
    "int": (int, 1, 1),
    "log2": (math.log2, 1, 1),
    "max": (max, 2, 64),
    "min": (min, 2, 64),
    "pow": (_power, 2, 2),
    "round": (_round, 1, 2),
    "sqrt": (math.sqrt, 1, 1),
}
"""Functions by name, with their fewest and most arguments."""


class _Interpreter:
    def __init__(self) -> None:
        self._depth = 0

    def value(self, node: ast.expr) -> Value:
        visit = getattr(self, "_" + type(node).__name__, None)
        if visit is None:
            raise ExpressionError(f"{type(node).__name__} of Python is not allowed")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError("it is nested too deep")
        try:
            return _check_limits(visit(node))
        except ZeroDivisionError:
            raise ExpressionError("division by zero") from None
        except OverflowError:
            raise ExpressionError("a number is too large") from None
        except (ValueError, TypeError) as error:  # also those of an inner node
            raise ExpressionError(str(error)) from None
        finally:
            self._depth -= 1

    def _Constant(self, node: ast.Constant) -> Value:
        if not isinstance(node.value, (int, float, str)):
            raise ExpressionError(f"the constant {node.value!r} is not allowed")
        return node.value

    def _Name(self, node: ast.Name) -> Value:
        if node.id in FUNCTIONS:
            raise ExpressionError(f"{node.id} is a function: write {node.id}(...)")
        raise ExpressionError(f"the name '{node.id}' is not known (a macro is written ${{{node.id}}})")

    def _UnaryOp(self, node: ast.UnaryOp) -> Value:
        return _function_of(node.op)(self.value(node.operand))

    def _BinOp(self, node: ast.BinOp) -> Value:
        apply, values = _function_of(node.op), (self.value(node.left), self.value(node.right))
        texts = sum(isinstance(value, str) for value in values)
        if texts and not (texts == 2 and apply is operator.add):
            raise ExpressionError("arithmetic on a text")
        return apply(*values)

    def _BoolOp(self, node: ast.BoolOp) -> Value:
        value: Value = False
        for operand in node.values:
            value = self.value(operand)
            if bool(value) != isinstance(node.op, ast.And):
                break
        return value

    def _Compare(self, node: ast.Compare) -> Value:
        left = self.value(node.left)
        for op, operand in zip(node.ops, node.comparators, strict=True):
            right = self.value(operand)
            if not _function_of(op)(left, right):
                return False
            left = right
        return True

    def _IfExp(self, node: ast.IfExp) -> Value:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def _Call(self, node: ast.Call) -> Value:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            call = f"the call of '{node.func.id}'" if isinstance(node.func, ast.Name) else "this call"
            raise ExpressionError(f"{call} is not allowed (known: {', '.join(FUNCTIONS)})")
        function, fewest, most = FUNCTIONS[node.func.id]
        if node.keywords or not fewest <= len(node.args) <= most:
            raise ExpressionError(f"{node.func.id}() is given the wrong arguments")
        return function(*(self.value(argument) for argument in node.args))


def _function_of(op: ast.AST) -> Callable[..., Any]:
    if type(op) not in _OPERATORS:
        raise ExpressionError(f"the operator {type(op).__name__} is not allowed")
    return _OPERATORS[type(op)]


def _check_limits(value: Value) -> Value:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ExpressionError("a number is too large")
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError("a value is not a finite number")
    if not isinstance(value, (int, float, str)):
        raise ExpressionError("a value is not a real number")
    return value
