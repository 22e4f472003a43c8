"""The base classes of a plug-in's operators and functions, and the integer form of an operator: sums that the tool rescales to the output's integers."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import FunctionRow, Functor, OnnxEmitter
from n2d2py.contracts.operator import Op
from n2d2py.contracts.quant.quantizer import common_multipliers, peak
from n2d2py.errors import Location, N2D2Error
from n2d2py.graph.shapes import Shape, dims_text


def attribute(
    default: Any = MISSING,
    *,
    onnx: str | None = None,
    ini: str | None = None,
    spatial: bool = False,
    choices: Sequence[str] = (),
    doc: str = "",
) -> Any:
    """Declare an attribute of an operator; without `default` every layer must give it.

    `onnx` and `ini` are its names there: by default its own name, and that in CamelCase (`kernel_shape`,
    KernelShape). With `spatial` the INI gives X before Y, as it does for windows, and Python and C++ see Y before X.
    `choices` limits a text. Its type is int, float, bool, str, tuple[int, ...] or tuple[float, ...].
    """
    facts = {"onnx": onnx, "ini": ini, "spatial": spatial, "choices": tuple(choices), "doc": doc}
    return field(default=default, metadata=facts)


def camel(name: str) -> str:
    """kernel_shape -> KernelShape."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def attribute_type(cls: type, name: str) -> tuple[type, bool]:
    """(int, float, bool or str; whether it is a tuple of these) of an attribute. Raises E022 for another type."""
    hint = get_type_hints(cls)[name]
    if hint in (int, float, bool, str):
        return hint, False
    items = set(get_args(hint)) - {Ellipsis}
    if get_origin(hint) is tuple and items in ({int}, {float}):
        return items.pop(), True
    what = f"the attribute {name} has the type {getattr(hint, '__name__', hint)}"
    raise incomplete(cls, what, "use int, float, bool, str, tuple[int, ...] or tuple[float, ...]")


def incomplete(cls: type, what: str, remedy: str) -> N2D2Error:
    """E022 at the file of a class."""
    return N2D2Error("E022", f"{cls.__name__}: {what}", where=place_of(cls), remedy=remedy)


def place_of(declared: Any) -> Location:
    """Return the file of a plug-in's class or function."""
    module = sys.modules.get(declared.__module__)
    return Location(getattr(module, "__plugin_path__", None) or getattr(module, "__file__", None) or declared.__module__)


def failed(cls: Any, node: Any, what: str) -> N2D2Error:
    """E024: an operator cannot take a layer."""
    where = getattr(node, "location", None) or (Location(section=node.name) if node is not None else None)
    remedy = f"check the layer, or correct the plug-in {place_of(type(cls)).file}"
    return N2D2Error("E024", f"{type(cls).__name__}: {what}", where=where, remedy=remedy)


def crashed(cls: Any, node: Any, method: str, error: Exception) -> N2D2Error:
    module = sys.modules.get(type(cls).__module__)
    home, line, trace = getattr(module, "__file__", None), None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == home:
            line = trace.tb_lineno
        trace = trace.tb_next
    layer = f" for the layer '{node.name}'" if node is not None else ""
    what = f"{type(cls).__name__}.{method}() failed{layer}: {type(error).__name__}: {error}"
    return N2D2Error("E024", what, where=Location(place_of(type(cls)).file, line), remedy="correct the plug-in")


@dataclass(frozen=True)
class Integers:
    """Result of `Operator.quantize`.

    `scale`: real value of 1 in a sum, such as the product of two scales. `bound`: largest magnitude that a sum, or any part of
    it, can reach. `constants`: whole numbers that `Operator.sums` and the kernel get, by name, in this order.
    """

    scale: float
    bound: int
    constants: Mapping[str, np.ndarray | int | Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """Facts that `Operator.quantize` may use.

    `inputs`: number type of each input: scale, zero_point, qmin, qmax, bits, signed. `output`: that of the output. `params`:
    the constants of the layer in floating point, by name. `bits`: of the network, 8 or 16.
    """

    inputs: Sequence[NumType]
    output: NumType
    params: Mapping[str, np.ndarray]
    bits: int

    @property
    def scale(self) -> float:
        """Scale of the first input."""
        return self.inputs[0].scale

    def peak(self, index: int = 0) -> int:
        """Largest magnitude of input `index`, without its zero point."""
        return peak(self.inputs[index])

    def aligned(self) -> tuple[list[int], float]:
        """Whole multipliers m, of 14 bits for bytes, and a scale such that m[i] * q[i] * scale is about real for all inputs."""
        return common_multipliers(np.array([kind.scale for kind in self.inputs]), 14 if self.bits == 8 else 22)


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
        """Return the output (N, C, ...) in floating point."""
        raise NotImplementedError

    def quantize(self, layer: Facts) -> Integers | None:
        """Return the constants of the integer form and the scale of its accumulators; None if there is no integer form."""
        return None

    def sums(self, *inputs: np.ndarray, **constants: np.ndarray) -> np.ndarray:
        """Return the accumulators (int64) from the inputs (int64, zero points removed) and the constants of `quantize`."""
        raise NotImplementedError

    def cost(self, *inputs: Shape) -> int:
        """Multiply-accumulates of one inference, for reports."""
        return 0

    def parameter_shapes(self, *inputs: Shape) -> dict[str, Shape]:
        """Return the shapes of the constants, for layers of an INI; ONNX brings them."""
        return {}

    # ---- what the tool calls ------------------------------------------------------------------
    def output_shapes(self, inputs: list[Shape], node: Any) -> list[Shape]:
        result = self._call("shape", node, *inputs)
        if not isinstance(result, tuple) or not all(isinstance(n, (int, np.integer)) for n in result) or result[:1] != (1,):
            raise failed(self, node, f"its shape() returned {result!r}, which is no (1, C, ...)")
        if self.access == "pointwise" and result not in inputs:
            raise failed(
                self, node, f"its access is pointwise, but no input has the shape {dims_text(result[1:])} of the output"
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
        acc = np.asarray(self._call("sums", node, *x, **{name: a.astype(np.int64) for name, a in node.params.items()}))
        if acc.dtype.kind not in "iu":
            raise failed(self, node, f"its sums() are {acc.dtype}, no integers")
        if np.abs(acc).max(initial=0) > node.bound:
            raise failed(self, node, f"its sums() reach {int(np.abs(acc).max())}, beyond the bound {node.bound} of quantize()")
        return [node.rescale.apply(acc, *node.clamp).astype(kind.dtype)]

    def _checked(self, result: Any, inputs: list[np.ndarray], node: Any, what: str) -> np.ndarray:
        result = np.asarray(result)
        declared = (len(inputs[0]), *self.output_shapes([(1, *x.shape[1:]) for x in inputs], node)[0][1:])
        if result.shape != declared:
            raise failed(self, node, f"its {what}() returned the shape {result.shape}, its shape() says {declared}")
        return result.astype(inputs[0].dtype, copy=False)

    def _call(self, method: str, node: Any, *arguments: Any, **named: Any) -> Any:
        """Call a method of the plug-in. Whatever it raises becomes one error with its line."""
        try:
            return getattr(self, method)(*arguments, **named)
        except N2D2Error:
            raise
        except Exception as error:  # whatever foreign code raises
            if method == "shape" and isinstance(error, ValueError):
                raise failed(self, node, str(error)) from error
            raise crashed(self, node, method, error) from error


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
        return Functor(self.call, dict(vars(self)), (), self.place)

    def emit(self, emitter: OnnxEmitter, x: str, y: str) -> None:
        raise ValueError(f"the function {self.kind} has no ONNX nodes")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        try:
            return np.asarray(self.compute(x)).astype(x.dtype, copy=False)
        except Exception as error:  # whatever foreign code raises
            raise crashed(self, None, "compute", error) from error
