"""Element-wise functions: one row of the table, or one class, defines all that the project knows about a function.

A layer carries a function as its activation, or an Activation layer applies it. From a row follow its ONNX import, the nodes
for ONNX Runtime, its integer table, its value of `ActivationFunction=` and its C++ functor, a struct of the same name in
`kernels/n2d2/activation.hpp`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from math import erf, pi, sqrt
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from n2d2py.registry import Registry, dataclass_transform


class OnnxSource(Protocol):
    """ONNX node of a function: its attributes, and the values of its constant inputs (None for an absent one)."""

    def attribute(self, name: str, default: Any = None) -> Any: ...

    def optional_constant(self, index: int, what: str) -> np.ndarray | None: ...


class OnnxEmitter(Protocol):
    """Writer of the ONNX nodes of a function: both methods return the name of the tensor that they add."""

    def emit(self, op_type: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str: ...

    def constant(self, values: Any) -> str: ...


@dataclass(frozen=True)
class Functor:
    """The C++ form of a function: `template`<type, struct of `parameters`, `flags`...>.

    Attributes:
        template: the struct template, with its namespace.
        parameters: the static functions of the struct; None if the template has no such argument.
        flags: further template arguments.
        header: the header that defines the template; "" for `n2d2/activation.hpp`.
    """

    template: str
    parameters: dict[str, Any] | None = None
    flags: tuple[bool, ...] = ()
    header: str = ""


class FunctionRow:
    """y = f(x), element-wise, in the floating-point type of x.

    Attributes:
        kind: name of the function and of its C++ functor.
        onnx: the equivalent ONNX operator; attribute names agree unless a field's metadata has another ONNX name.
        ini_values: the values of `ActivationFunction=` for this function with its defaults.
        gate: if f(x) = x * g(x): the functions whose composition is g, first to last.
        nonnegative: no output is below zero.
        is_clamp: f(x) = min(max(x, low), high), which integer layers apply at no cost.
    """

    kind: ClassVar[str] = ""
    onnx: ClassVar[str] = ""
    ini_values: ClassVar[tuple[str, ...]] = ()
    gate: ClassVar[tuple[FunctionRow, ...]] = ()
    nonnegative: ClassVar[bool] = False
    is_clamp: ClassVar[bool] = False

    def __call__(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def functor(self) -> Functor:
        """Return the C++ form."""
        return Functor(f"n2d2::{self.kind}", dict(vars(self)) or None)

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        """Add nodes of ONNX's opset 17 that compute y = f(x). Raise ValueError if no ONNX nodes compute it."""
        if self.gate:
            inner = x
            for each in self.gate:
                inner = emitter.emit(each.onnx, [inner])
            emitter.emit("Mul", [x, inner], y)
        elif self.onnx:
            attributes = {_onnx_name(one): float(getattr(self, one.name)) for one in fields(self)}  # type: ignore[arg-type]
            emitter.emit(self.onnx, [x], y, **attributes)
        else:
            raise ValueError(f"the function {self.kind} has no ONNX nodes")

    @classmethod
    def from_onnx(cls, node: OnnxSource) -> FunctionRow:
        """Return the function of a node of the operator `onnx`."""
        attributes = {one.name: float(node.attribute(_onnx_name(one), one.default)) for one in fields(cls)}  # type: ignore[arg-type]
        return cls(**attributes)


def _onnx_name(one: Any) -> str:
    return one.metadata.get("onnx", one.name)


FUNCTIONS: Registry[type[FunctionRow]] = Registry("the function")
"""All functions by kind."""
ONNX_FUNCTIONS: Registry[Callable[[OnnxSource], FunctionRow]] = Registry("the function of the ONNX operator")
"""Converters of ONNX operators that are functions; ValueError, with a clause as reason, refuses a node."""
from_onnx = ONNX_FUNCTIONS.declare
"""Decorator that registers the converter of ONNX operators to a function."""


FunctionType = TypeVar("FunctionType", bound="type[FunctionRow]")


@dataclass_transform(frozen_default=True)
def function(cls: FunctionType) -> FunctionType:
    """Make a class a frozen dataclass of its attributes and register it as a function (class decorator)."""
    cls = cls if "__dataclass_params__" in vars(cls) else dataclass(frozen=True)(cls)
    cls.kind = vars(cls).get("kind") or cls.__name__
    FUNCTIONS.add(cls.kind, cls)
    if cls.onnx:
        ONNX_FUNCTIONS.add(cls.onnx, cls.from_onnx)
    return cls


def _entry(kind: str, formula: str, real: Callable[[np.ndarray], np.ndarray], **facts: Any) -> type[FunctionRow]:
    """Register a function without attributes: y = `real`(x); `facts` are class attributes of FunctionRow."""

    def call(self: FunctionRow, x: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):  # outside the domain
            return real(x).astype(x.dtype, copy=False)

    return function(type(kind, (FunctionRow,), {"__doc__": formula, "__call__": call, "__module__": __name__, **facts}))


def ini_functions() -> dict[str, FunctionRow]:
    """Return the functions with default attributes by value of `ActivationFunction=`."""
    return {value: kind() for kind in FUNCTIONS.values() for value in kind.ini_values}


def _logistic(x: np.ndarray) -> np.ndarray:
    magnitude = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + magnitude), magnitude / (1 + magnitude)).astype(x.dtype)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x.dtype.type(0), x)


_erf = np.vectorize(erf, otypes=[np.float64])
_GELU_CUBE = 0.044715
"""Weight of x^3 in the tanh form of GELU (Hendrycks and Gimpel 2016)."""


# ---- clamps and rectifiers ----------------------------------------------------------------------
@function
class Clip(FunctionRow):
    """min(max(x, low), high); Clip(0) is the rectifier, Clip(0, 6) ReLU6, Clip(-t, t) N2D2's Saturation."""

    low: float = -np.inf
    high: float = np.inf
    is_clamp = True

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        return self.low >= 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, x.dtype.type(self.low), x.dtype.type(self.high))

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        if self.low == 0 and self.high == np.inf:
            emitter.emit("Relu", [x], y)
            return
        low = "" if self.low == -np.inf else emitter.constant(float(self.low))
        high = "" if self.high == np.inf else emitter.constant(float(self.high))
        emitter.emit("Clip", [x, low, high], y)


@from_onnx("Clip")
def _clip(node: OnnxSource) -> FunctionRow:
    limits = []
    for index, name, default in ((1, "min", -np.inf), (2, "max", np.inf)):
        limit = node.optional_constant(index, name)
        limits.append(float(node.attribute(name, default) if limit is None else limit.item()))
    low, high = limits
    # exporters write "no limit" as the largest float32
    low = -np.inf if low <= np.finfo(np.float32).min else low
    high = np.inf if high >= np.finfo(np.float32).max else high
    return Clip(min(low, high), high)


@function
class ChannelClip(FunctionRow):
    """min(max(x, low), highs[c]) for channel c of x (N, C, H, W)."""

    low: float
    highs: tuple[float, ...]
    is_clamp = True

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        return self.low >= 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, x.dtype.type(self.low), np.array(self.highs, x.dtype).reshape(1, -1, 1, 1))

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        highs = emitter.constant(np.array(self.highs, np.float32).reshape(1, -1, 1, 1))
        raised = emitter.emit("Max", [x, emitter.constant(float(self.low))])
        emitter.emit("Min", [raised, highs], y)


@function
class LeakyRectifier(FunctionRow):
    """slope * x below zero, x above, at most `high`."""

    slope: float
    high: float = np.inf

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(np.where(x < 0, x.dtype.type(self.slope) * x, x), x.dtype.type(self.high))

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        if self.high == np.inf:
            emitter.emit("LeakyRelu", [x], y, alpha=float(self.slope))
        else:
            leaky = emitter.emit("LeakyRelu", [x], alpha=float(self.slope))
            emitter.emit("Clip", [leaky, "", emitter.constant(float(self.high))], y)


def rectifier(slope: float = 0.0, clipping: float = 0.0) -> FunctionRow:
    """Return N2D2's Rectifier: slope * x below zero, x above, at most `clipping` unless it is 0."""
    high = clipping if clipping > 0 else np.inf
    return Clip(0.0, high) if slope == 0 else LeakyRectifier(slope, high)


@function
class Step(FunctionRow):
    """`below` if x <= threshold, else `above`; None means x itself."""

    threshold: float
    below: float | None = 0.0
    above: float | None = 1.0

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        low = self.below is not None and self.below >= 0
        high = self.threshold >= 0 if self.above is None else self.above >= 0
        return low and high

    def __call__(self, x: np.ndarray) -> np.ndarray:
        low, high = (x if value is None else x.dtype.type(value) for value in (self.below, self.above))
        return np.where(x > x.dtype.type(self.threshold), high, low).astype(x.dtype)

    def functor(self) -> Functor:
        values = {"threshold": self.threshold, "below": self.below or 0.0, "above": self.above or 0.0}
        return Functor("n2d2::Step", values, (self.below is None, self.above is None))

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        above = emitter.emit("Greater", [x, emitter.constant(float(self.threshold))])
        sides = [x if side is None else emitter.constant(float(side)) for side in (self.above, self.below)]
        emitter.emit("Where", [above, *sides], y)


# ---- functions with attributes ------------------------------------------------------------------
@function
class Tanh(FunctionRow):
    """tanh(alpha * x)."""

    alpha: float = 1.0
    onnx = "Tanh"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x.dtype.type(self.alpha) * x)

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        scaled = x if self.alpha == 1 else emitter.emit("Mul", [x, emitter.constant(float(self.alpha))])
        emitter.emit("Tanh", [scaled], y)


@function
class Elu(FunctionRow):
    """gain * x above zero, gain * alpha * (exp(rate * x) - 1) below: ELU, SELU (gain) and CELU (rate = 1 / alpha)."""

    alpha: float = 1.0
    gain: float = 1.0
    rate: float = 1.0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        dtype = x.dtype.type
        below = dtype(self.alpha) * np.expm1(dtype(self.rate) * np.minimum(x, dtype(0)))
        return dtype(self.gain) * np.where(x > 0, x, below)

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        if self.rate != 1 and self.gain == 1 and self.rate * self.alpha == 1:
            emitter.emit("Celu", [x], y, alpha=float(self.alpha))
        elif self.rate != 1:
            raise ValueError(f"{self} has no ONNX nodes")
        elif self.gain != 1:
            emitter.emit("Selu", [x], y, alpha=float(self.alpha), gamma=float(self.gain))
        else:
            emitter.emit("Elu", [x], y, alpha=float(self.alpha))


@from_onnx("Celu")
def _celu(node: OnnxSource) -> FunctionRow:
    alpha = float(node.attribute("alpha", 1.0))
    if alpha <= 0:
        raise ValueError("its alpha is not positive")
    return Elu(alpha, 1.0, 1 / alpha)


@function
class HardSigmoid(FunctionRow):
    """min(max(gain * x + shift, 0), 1)."""

    gain: float = field(default=0.2, metadata={"onnx": "alpha"})
    shift: float = field(default=0.5, metadata={"onnx": "beta"})
    onnx = "HardSigmoid"
    nonnegative = True

    def __call__(self, x: np.ndarray) -> np.ndarray:
        dtype = x.dtype.type
        return np.clip(dtype(self.gain) * x + dtype(self.shift), dtype(0), dtype(1))


@function
class HardSwish(FunctionRow):
    """x * min(max(gain * x + shift, 0), high); 1/6, 1/2, 1 by default."""

    gain: float = 1 / 6
    shift: float = 0.5
    high: float = 1.0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        dtype = x.dtype.type
        return x * np.clip(dtype(self.gain) * x + dtype(self.shift), dtype(0), dtype(self.high))

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        scaled = emitter.emit("Mul", [x, emitter.constant(float(self.gain))])
        shifted = emitter.emit("Add", [scaled, emitter.constant(float(self.shift))])
        gate = emitter.emit("Clip", [shifted, emitter.constant(0.0), emitter.constant(float(self.high))])
        emitter.emit("Mul", [x, gate], y)


@function
class Gelu(FunctionRow):
    """x * (1 + erf(x / sqrt(2))) / 2."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return (0.5 * x * (1 + _erf(x / sqrt(2)))).astype(x.dtype)

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        error = emitter.emit("Erf", [emitter.emit("Mul", [x, emitter.constant(float(np.sqrt(0.5)))])])
        half = emitter.emit("Mul", [x, emitter.constant(0.5)])
        emitter.emit("Mul", [half, emitter.emit("Add", [error, emitter.constant(1.0)])], y)


@function
class GeluTanh(FunctionRow):
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        dtype = x.dtype.type
        argument = dtype(sqrt(2 / pi)) * (x + dtype(_GELU_CUBE) * x * x * x)
        return dtype(0.5) * x * (1 + np.tanh(argument))

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        cube = emitter.emit("Mul", [emitter.emit("Mul", [x, x]), x])
        inner = emitter.emit("Add", [x, emitter.emit("Mul", [cube, emitter.constant(_GELU_CUBE)])])
        tanh = emitter.emit("Tanh", [emitter.emit("Mul", [inner, emitter.constant(float(np.sqrt(2 / np.pi)))])])
        half = emitter.emit("Mul", [x, emitter.constant(0.5)])
        emitter.emit("Mul", [half, emitter.emit("Add", [tanh, emitter.constant(1.0)])], y)


@from_onnx("Gelu")
def _gelu(node: OnnxSource) -> FunctionRow:
    forms = {"none": Gelu(), "tanh": GeluTanh()}
    form = node.attribute("approximate", "none")
    if form not in forms:
        raise ValueError(f"approximate={form} is not supported")
    return forms[form]


def _from_attributes(operator: str, make: Callable[..., FunctionRow], **defaults: float) -> None:
    """Register an ONNX operator as the function that `make` returns for its attributes, in the order of their defaults."""

    def convert(node: OnnxSource) -> FunctionRow:
        return make(*(float(node.attribute(name, default)) for name, default in defaults.items()))

    ONNX_FUNCTIONS.add(operator, convert)


_from_attributes("Relu", partial(Clip, 0.0))
_from_attributes("LeakyRelu", LeakyRectifier, alpha=0.01)
_from_attributes("ThresholdedRelu", partial(Step, below=0.0, above=None), alpha=1.0)
_from_attributes("Elu", Elu, alpha=1.0)
_from_attributes("Selu", Elu, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875)
_from_attributes("HardSwish", HardSwish)


# ---- the table ----------------------------------------------------------------------------------
Logistic = _entry(
    "Logistic", "1 / (1 + exp(-x)).", _logistic, onnx="Sigmoid", ini_values=("Logistic", "LogisticWithLoss"), nonnegative=True
)
Softplus = _entry("Softplus", "log(1 + exp(x)).", _softplus, onnx="Softplus", ini_values=("Softplus",), nonnegative=True)
Swish = _entry("Swish", "x / (1 + exp(-x)).", lambda x: x * _logistic(x), ini_values=("Swish",), gate=(Logistic(),))
Mish = _entry("Mish", "x * tanh(log(1 + exp(x))).", lambda x: x * np.tanh(_softplus(x)), onnx="Mish", gate=(Softplus(), Tanh()))
Softsign = _entry("Softsign", "x / (1 + |x|).", lambda x: x / (1 + np.abs(x)), onnx="Softsign")
Abs = _entry("Abs", "|x|.", np.abs, onnx="Abs", nonnegative=True)
Erf = _entry("Erf", "The error function.", _erf, onnx="Erf")
Exp = _entry("Exp", "exp(x).", np.exp, onnx="Exp", nonnegative=True)
Log = _entry("Log", "Natural logarithm; not a number below zero.", np.log, onnx="Log")
Sqrt = _entry("Sqrt", "Square root; not a number below zero.", np.sqrt, onnx="Sqrt", nonnegative=True)
