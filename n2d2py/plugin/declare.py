"""The base classes of a plug-in and the decorators that declare what derives from them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from n2d2py.errors import Location, N2D2Error
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op
from n2d2py.operators.functions import FunctionRow, Functor, OnnxEmitter
from n2d2py.plugin.integers import Facts, Integers

ACCESSES = ("whole", "pointwise", "window")
SCALARS = (int, float, bool, str)

T = TypeVar("T", bound=type)


def attribute(
    default: Any = MISSING,
    *,
    onnx: str | None = None,
    ini: str | None = None,
    spatial: bool = False,
    choices: Sequence[str] = (),
    doc: str = "",
) -> Any:
    """An attribute of an operator; without `default` every layer must give it.

    `onnx` and `ini` are its names there: by default its own name, and that in CamelCase (`kernel_shape`,
    KernelShape). With `spatial` the INI gives X before Y, as it does for windows, and Python and C++ see Y before X.
    `choices` limits a text. Its type is int, float, bool, str, tuple[int, ...] or tuple[float, ...].
    """
    return field(
        default=default, metadata={"onnx": onnx, "ini": ini, "spatial": spatial, "choices": tuple(choices), "doc": doc}
    )


class Operator(Op):
    """An operator: annotated names are attributes of each layer, the others below say what holds for all of them.

    Attributes:
        kind: its name in the tool, by default that of the class.
        onnx: "Operator" or "domain::Operator" that is imported as it; "" for none.
        ini: the `Type=` of its sections; "" for none.
        inputs: number of data inputs; 0 for any number from 1.
        parameters: names of its constants: of the ONNX inputs after the data, and of the arrays given to `compute`.
        header: file of the kernel, next to the Python file.
        call: the kernel, with its namespace: `template <class Cfg> void call(const unsigned char* in0, ...,
            unsigned char* out, const T* constant, ...)`.
        access: how the kernel goes through memory. "whole": it may read any input until its last store. "pointwise":
            it stores element i after it read elements i of the inputs, in order (`n2d2/pointwise.hpp`). "window": a
            window of `kernel`, `stride`, `pads` (attributes of these names), output lines in order (Cfg::Serial).
        moves_values: the output holds values of the first input, which have its number type; `compute` then also gets
            integers, and `quantize` and `sums` are not needed.
        nonnegative: no output is below zero, whatever the inputs.
    """

    onnx = ""
    ini = ""
    inputs = 1
    parameters: ClassVar[tuple[str, ...]] = ()
    header = ""
    call = ""
    access = "whole"
    nonnegative = False

    # ---- what a plug-in writes ----------------------------------------------------------------
    def shape(self, *inputs: Shape) -> Shape:
        """Shape (1, C, ...) of the output from those of the inputs; a ValueError says why it cannot take them."""
        return inputs[0]

    def compute(self, *inputs: np.ndarray, **params: np.ndarray) -> np.ndarray:
        """The output (N, C, ...) in floating point."""
        raise NotImplementedError

    def quantize(self, layer: Facts) -> Integers | None:
        """The constants of the integer form and the scale of its sums; None where there is none."""
        return None

    def sums(self, *inputs: np.ndarray, **constants: np.ndarray) -> np.ndarray:
        """The sums (int64) from the inputs (int64, zero points taken off) and the constants of `quantize`."""
        raise NotImplementedError

    def cost(self, *inputs: Shape) -> int:
        """Multiply-accumulates of one inference, for reports."""
        return 0

    def parameter_shapes(self, *inputs: Shape) -> dict[str, Shape]:
        """Shapes of the constants, for layers of an INI; ONNX brings them."""
        return {}

    # ---- what the tool calls ------------------------------------------------------------------
    def output_shapes(self, inputs: list[Shape], node: Any) -> list[Shape]:
        result = self._call("shape", node, *inputs)
        if not isinstance(result, tuple) or not all(isinstance(n, (int, np.integer)) for n in result) or result[:1] != (1,):
            raise failed(self, node, f"its shape() returned {result!r}, which is no (1, C, ...)")
        if self.access == "pointwise" and result not in inputs:
            raise failed(
                self,
                node,
                f"its access is pointwise, but no input has the shape {'x'.join(map(str, result[1:]))} of the output",
            )
        return [tuple(int(n) for n in result)]

    def macs(self, inputs: list[Shape], output: Shape, node: Any) -> int:
        return int(self._call("cost", node, *inputs))

    def run(self, inputs: list[np.ndarray], node: Any) -> list[np.ndarray]:
        params = {name: node.params[name].astype(inputs[0].dtype, copy=False) for name in node.params}
        return [self._checked(self._call("compute", node, *inputs, **params), inputs, node, "compute")]

    def run_integer(self, inputs: list[np.ndarray], node: Any, graph: Any) -> list[np.ndarray]:
        kind = graph.type(node.output)
        if self.moves_values:
            result = self._checked(self._call("compute", node, *inputs), inputs, node, "compute")
            return [np.clip(result, *node.clamp).astype(kind.dtype)]
        x = [a.astype(np.int64) - graph.type(name).zero_point for a, name in zip(inputs, node.inputs, strict=True)]
        acc = self._call("sums", node, *x, **{name: a.astype(np.int64) for name, a in node.params.items()})
        acc = np.asarray(acc)
        if acc.dtype.kind not in "iu":
            raise failed(self, node, f"its sums() are {acc.dtype}, no integers")
        if np.abs(acc).max(initial=0) > node.bound:
            raise failed(self, node, f"its sums() reach {int(np.abs(acc).max())}, beyond the bound {node.bound} of quantize()")
        return [node.rescale.apply(acc, *node.clamp).astype(kind.dtype)]

    def _checked(self, result: Any, inputs: list[np.ndarray], node: Any, what: str) -> np.ndarray:
        declared = self.output_shapes([(1, *x.shape[1:]) for x in inputs], node)[0]
        result = np.asarray(result)
        if result.shape != (len(inputs[0]), *declared[1:]):
            raise failed(
                self,
                node,
                f"its {what}() returned the shape {result.shape}, its shape() says {(len(inputs[0]), *declared[1:])}",
            )
        return result.astype(inputs[0].dtype, copy=False)

    def _call(self, method: str, node: Any, *arguments: Any, **named: Any) -> Any:
        """A method of the plug-in; whatever it raises becomes one error with its line."""
        try:
            return getattr(self, method)(*arguments, **named)
        except N2D2Error:
            raise
        except ValueError as error:
            if method == "shape":
                raise failed(self, node, str(error)) from error
            raise _crashed(self, node, method, error) from error
        except Exception as error:  # whatever foreign code raises
            raise _crashed(self, node, method, error) from error


class Function(FunctionRow):
    """A function of single values: a separate layer, in integers by table.

    Attributes:
        kind, onnx, ini: as of an Operator.
        header, call: the C++ form, `template <class T, class Parameters> struct call { static T apply(T x); }`
            with the attributes as static functions of Parameters; only a floating-point export runs it.
        nonnegative: no result is below zero.
        place: how an export includes the header; the tool sets it.
    """

    onnx = ""
    ini = ""
    header = ""
    call = ""
    place = ""

    def compute(self, x: np.ndarray) -> np.ndarray:
        """f(x), element by element."""
        raise NotImplementedError

    def functor(self) -> Functor:
        return Functor(self.call, self._values(), (), self.place)

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        raise ValueError(f"the function {self.kind} has no ONNX nodes")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        try:
            return np.asarray(self.compute(x)).astype(x.dtype, copy=False)
        except Exception as error:  # whatever foreign code raises
            raise _crashed(self, None, "compute", error) from error


class Recipe:
    """A chain of layers that becomes one: each result of the chain has one reader, which is the next layer.

    Attributes:
        chain: kinds of the layers, first to last; a function counts by its own kind ("Clip" is every kind of ReLU). A kind that
            does not exist is refused, with all that do.
        name: for the report, by default that of the class.
    """

    chain: tuple[str, ...] = ()
    name = ""

    def becomes(self, *layers: Any) -> Op | tuple[Op, dict[str, np.ndarray]] | str:
        """The operator (with its constants) instead of the layers, or the reason why there is none, as a clause.

        A layer has `op` (its attributes), `params`, `name`. The new one reads what the chain read from outside, in
        order, and has the constants of the first layer unless others are given.
        """
        raise NotImplementedError


class Kernel:
    """A kernel that replaces a built-in one, for one instruction set.

    Attributes:
        operator: kind of the layers, such as "Pool".
        isa: the tag of an instruction set (`kernels/n2d2/isa.hpp` lists them), or "" for all: where the export is compiled
            for it, the layers use the kernel.
        header: file with the specialisation of the kernel's template for `tag`.
        tag: a struct of the header, with its namespace.
    """

    operator = ""
    isa = ""
    header = ""
    tag = ""

    def fits(self, layer: Any) -> bool | str:
        """True if a layer (`op`, `params`, `inputs`, `outputs` of a typed network) can use it, or why not, for the report."""
        return True


class Instructions:
    """An instruction set: a row of the table (`n2d2py.exports.cpp.isa.InstructionSet`), before the built-in ones.

    Attributes:
        name: as the environment variable N2D2_ISA spells it.
        tag, macro: the struct of n2d2 and the macro that are made for it.
        header: what binds its kernels to the operators, next to the Python file (docs/explanation/instruction_sets.md).
        when: the condition of the preprocessor under which it is compiled for.
        has: the kernels that it has: "convolution", "depthwise", "fullyConnected", "winograd", "winograd on the stack",
            "floats", "runs", "tables", "lanes", "pairs of taps", "pairs of channels", "dot products", "taps of vectors", "pairs of pixels", "columns of taps",
            "vectors of outputs".
        title, text, extends, signed, speed, tiles, flags, present, asks, family, probe, microcontroller: as in the table.
    """

    name = ""
    title = ""
    tag = ""
    macro = ""
    header = ""
    text = "a plug-in's"
    when = ""
    extends = ""
    has: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()
    speed = 8
    tiles: tuple[tuple[int, int, int], ...] = ((0, 0, 0),)
    flags: tuple[str, ...] = ()
    present = ""
    asks = ""
    family = ""
    probe: Any = None
    microcontroller: bool = False


# ---- declaring ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Declared:
    """One declaration: its class and its kind ("operator", "function", "recipe", "kernel", "instructions")."""

    what: str
    made: type


_pending: list[Declared] = []


def start() -> None:
    """Forget declarations that nothing loaded."""
    _pending.clear()


def finish() -> list[Declared]:
    """The declarations since `start`."""
    found = list(_pending)
    _pending.clear()
    return found


def operator(made: T) -> T:
    """Declare an Operator; make it a frozen dataclass."""
    return _declare("operator", Operator, made)


def function(made: T) -> T:
    """Declare a Function; make it a frozen dataclass."""
    return _declare("function", Function, made)


def recipe(made: T) -> T:
    """Declare a Recipe."""
    return _declare("recipe", Recipe, made)


def kernel(made: T) -> T:
    """Declare a Kernel."""
    return _declare("kernel", Kernel, made)


def instructions(made: T) -> T:
    """Declare Instructions."""
    return _declare("instructions", Instructions, made)


def incomplete(made: type, what: str, remedy: str) -> N2D2Error:
    """E022 at the file of a class."""
    return N2D2Error("E022", f"{made.__name__}: {what}", where=place_of(made), remedy=remedy)


def place_of(made: type) -> Location:
    """The file of a plug-in's class."""
    module = sys.modules.get(made.__module__)
    return Location(getattr(module, "__plugin_path__", None) or getattr(module, "__file__", None) or made.__module__)


def failed(made: Any, node: Any, what: str) -> N2D2Error:
    """E024: an operator cannot take a layer."""
    where = getattr(node, "location", None) or (Location(section=node.name) if node is not None else None)
    return N2D2Error(
        "E024",
        f"{type(made).__name__}: {what}",
        where=where,
        remedy=f"check the layer, or correct the plug-in {place_of(type(made)).file}",
    )


def _crashed(made: Any, node: Any, method: str, error: Exception) -> N2D2Error:
    module = sys.modules.get(type(made).__module__)
    home, line, trace = getattr(module, "__file__", None), None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == home:
            line = trace.tb_lineno
        trace = trace.tb_next
    layer = f" for the layer '{node.name}'" if node is not None else ""
    return N2D2Error(
        "E024",
        f"{type(made).__name__}.{method}() failed{layer}: {type(error).__name__}: {error}",
        where=Location(place_of(type(made)).file, line),
        remedy="correct the plug-in",
    )


def camel(name: str) -> str:
    """kernel_shape -> KernelShape."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def attribute_type(made: type, name: str) -> tuple[type, bool]:
    """(int, float, bool or str; whether it is a tuple of these) of an attribute.

    Raises:
        N2D2Error: E022 for another type.
    """
    try:
        hint = get_type_hints(made)[name]
    except NameError as error:
        raise incomplete(made, f"the type of the attribute {name} cannot be read ({error})", _TYPES) from error
    if hint in SCALARS:
        return hint, False
    items = set(get_args(hint)) - {Ellipsis}
    if get_origin(hint) is tuple and len(items) == 1 and next(iter(items)) in (int, float):
        return next(iter(items)), True
    raise incomplete(made, f"the attribute {name} has the type {getattr(hint, '__name__', hint)}", _TYPES)


_TYPES = "use int, float, bool, str, tuple[int, ...] or tuple[float, ...]"


def _declare(what: str, base: type, made: T) -> T:
    if not isinstance(made, type) or not issubclass(made, base):
        raise N2D2Error(
            "E022",
            f"@{what} is applied to {getattr(made, '__name__', made)}, which is not a {base.__name__}",
            where=place_of(made) if isinstance(made, type) else None,
            remedy=f"write: class {getattr(made, '__name__', 'Name')}({base.__name__})",
        )
    result: Any = made
    if base in (Operator, Function):
        if not is_dataclass(made) or "__dataclass_fields__" not in vars(made):
            try:
                result = dataclass(frozen=True)(made)
            except TypeError as error:
                raise incomplete(made, str(error), "give attributes with a default after those without") from error
        if not vars(made).get("kind"):
            result.kind = made.__name__
        for one in fields(result):
            attribute_type(result, one.name)
    else:
        for name in ("name",):
            if base is Recipe and not vars(made).get(name):
                made.name = made.__name__
    _pending.append(Declared(what, result))
    return result
