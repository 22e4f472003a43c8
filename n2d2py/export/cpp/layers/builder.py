"""What the layer modules share: names, accumulators, epilogues and the text of config structs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from n2d2py.arithmetic import FixedPointRescale, FloatRescale, FractionRescale, NumType, Rescale, ShiftRescale, StepRescale
from n2d2py.errors import InternalError
from n2d2py.export.cpp.byte_sums import byte_sums, explained
from n2d2py.export.cpp.code import Array, Form, LayerCode, float_literal
from n2d2py.export.cpp.environment import templates
from n2d2py.export.cpp.identifiers import Identifiers
from n2d2py.export.cpp.isa import RUNS, TABLES, WINOGRAD, having
from n2d2py.export.cpp.structs import NATIVE, PORTABLE, REAL_NATIVE, Config
from n2d2py.export.cpp.variants import HALF, TABLE, VECTORS, Facts, Implementation, Panels, choose
from n2d2py.export.cpp.winograd import Geometry, Winograd, impossible, unprofitable
from n2d2py.graph import QuantGraph, QuantNode, ResidualAdd
from n2d2py.graph.shapes import Shape
from n2d2py.operators.functions import Function

if TYPE_CHECKING:
    from n2d2py.memory.plan import MemoryPlan, Plane

__all__ = ["LayerBuilder"]


def _overlap(a: Plane, b: Plane) -> bool:
    return any(begin < other_end and other < end for begin, end in a.intervals() for other, other_end in b.intervals())


def _same_place(a: Plane, b: Plane) -> bool:
    """Whether element i of both is at the same address, for every i."""
    return a.limit is b.limit is a.ring_rows is b.ring_rows is None and (
        (a.offset, a.size, a.stride, a.length, a.count) == (b.offset, b.size, b.stride, b.length, b.count)
    )


class LayerBuilder:
    """Collects the structs and arrays of one layer.

    Attributes:
        identifier: C identifier of the layer.
        integer: whether the layer computes in integers.
        serial: whether the output lies over an input, so that lines are stored in order.
        backwards: whether that order is from the last line, or element, to the first.
        streamed: whether the layer makes some lines at a time.
        external: whether the output lies with the caller.
        byte_sums: how many products of bytes may be summed in 16 bits (`byte_sums`), once `choose` has looked at the weights.
        partial: where it keeps partial results, when it takes some lines of its input at a time.
        inputs: the types of the inputs.
        output: the type of the output.
    """

    def __init__(self, node: QuantNode, graph: QuantGraph, plan: MemoryPlan, identifiers: Identifiers):
        planes, run = plan.planes, plan.op(node.name)
        self.node, self.graph, self.identifiers = node, graph, identifiers
        self.identifier = identifiers.layer(node.name)
        self.integer = graph.is_integer(node)
        self.inputs: list[NumType] = [graph.type(name) for name in node.inputs]
        self.output: NumType = graph.type(node.output)
        apart = [name for name in node.inputs if name != run.aliases]
        self._over = [planes[name] for name in apart if _overlap(planes[name], planes[node.output])]
        self._place = planes[node.output]
        self.serial = bool(self._over)
        self.backwards = self.serial and run.backwards
        self.streamed = run.streamed
        self.external = planes[node.output].external
        self.partial = run.partial
        self._structs: list[Config | str] = []
        self._arrays: list[Array] = []
        self._panels: Panels | None = None
        self._implementation: Implementation | None = None
        self._kernel, self._sets, self._native = "", (), False
        self.byte_sums = 0
        self._winograd: tuple[np.ndarray, tuple[str, ...]] | None = None
        self._reason = f"there is no other kernel for {node.op.kind}" if self.integer else "floating point"
        self._headers: list[str] = []
        if not (self.integer or node.op.mixes_types or all(kind.is_float for kind in [*self.inputs, self.output])):
            raise InternalError(f"{node.name} mixes integer and floating-point tensors")

    # ---- names and types ------------------------------------------------------------------
    @property
    def input_shape(self) -> Shape:
        """Shape of the first input."""
        return self.graph.shape(self.node.inputs[0])

    @property
    def output_shape(self) -> Shape:
        """Shape of the output."""
        return self.graph.shape(self.node.output)

    @property
    def input_plane(self) -> str:
        """Name of the first input's plane."""
        return self.identifiers.plane(self.node.inputs[0])

    @property
    def output_plane(self) -> str:
        """Name of the output's plane."""
        return self.identifiers.plane(self.node.output)

    def sum_type(self, bound: int = 0) -> str:
        """C++ type of the accumulator, for sums up to the larger of `bound` and the node's."""
        if not self.integer:
            return self.output.cpp
        return "std::int32_t" if max(bound, self.node.bound) < 2**31 else "std::int64_t"

    # ---- constant data --------------------------------------------------------------------
    def array(
        self, role: str, values: np.ndarray, ctype: str, panels: np.ndarray | None = None, signed: np.ndarray | None = None
    ) -> str:
        """Adds an array with the flattened `values`; `panels` for the sets that have the kernel of the layer, `signed` for those of
        them that multiply signed bytes. Returns its name.
        """
        forms = ()
        if self._implementation is not None and panels is not None:
            forms = (Form(self._implementation.sets, panels),)
            if signed is not None:
                forms = (Form(self._implementation.signed_sets, signed), *forms)
        array = Array(f"{self.identifier}_{role}", ctype, np.ascontiguousarray(values).reshape(-1), forms)
        self._arrays.append(array)
        return array.name

    def choose(self, kernel: str, weights: np.ndarray, groups: int = 1) -> None:
        """Looks for an implementation beside the portable one; before the arrays and the epilogue are made.

        `weights` are (O, positions..., inputs of an output) for a dense kernel and (C, KH, KW) for a depthwise one.
        """
        dense = kernel != "depthwise"
        inputs = weights.shape[-1] if dense else 1
        facts = Facts(
            kernel,
            self.inputs[0],
            self.output,
            self._weight_type(weights),
            self.sum_type(),
            groups,
            len(weights) // groups,
            inputs,
            weights[0].size // inputs,
        )
        found, self._reason = choose(facts)
        self._panels, self.byte_sums, self._implementation = None, 0, found
        if found is not None:
            self._kernel, self._sets = found.name, found.sets
            self._reason = f"{facts.input.name} inputs, " + (
                "int8 weights, int32 sums" if self.integer else "sums in one order"
            )
            self._panels = found.pack(weights, self.node.params["bias"], facts)
            if self.integer and dense and facts.input.bits == 8:
                self.byte_sums = byte_sums(weights.reshape(len(weights), -1), facts.input)
                self._reason += f"; {explained(self.byte_sums)}"

    @property
    def whole_output(self) -> bool:
        """Whether the lines of the output follow each other in memory."""
        return self._place.limit is None and self._place.ring_rows is None

    def pointwise(self) -> None:
        """Lines of a layer that computes element by element need no order where it stores each one over its own operands."""
        if all(_same_place(plane, self._place) for plane in self._over):
            self.serial = self.backwards = False

    def consider_winograd(self, weights: np.ndarray, geometry: Geometry) -> None:
        """Takes the Winograd form too where it is exact, after `choose`, and uses it where it pays; `weights` are (O, 3, 3, C)."""
        if not (self.integer and self._panels and weights.shape[1:3] == (3, 3)):
            return
        problem = impossible(weights, geometry)
        self._winograd = None if problem else (weights, () if unprofitable(weights, geometry) else having(WINOGRAD))
        if problem := problem or unprofitable(weights, geometry):
            self._reason += f"; no Winograd: {problem}"

    def vectors(self) -> None:
        """Takes the kernel of the instruction set for a layer whose constants have the same order in all."""
        if self.integer:
            self._kernel, self._sets, self._native = VECTORS, having(RUNS), True
            self._reason = "the compiler makes the sums, registers the epilogue"

    def table(self) -> None:
        """Takes the kernel of the instruction set for a table from bytes to bytes."""
        if self.inputs[0].bits == self.output.bits == 8:
            self._kernel, self._sets, self._native = TABLE, having(TABLES), True
            self._reason = "bytes to bytes: 256 entries in registers"

    def _weight_type(self, values: np.ndarray) -> str:
        if not self.integer:
            return HALF if values.dtype == np.float16 else self.output.cpp
        low, high = int(values.min(initial=0)), int(values.max(initial=0))
        return next(f"std::int{bits}_t" for bits in (8, 16, 32, 64) if -(2 ** (bits - 1)) <= low <= high < 2 ** (bits - 1))

    def weights(self, values: np.ndarray, suffix: str = "") -> tuple[str, str]:
        """Adds the array "weights" (and `suffix`), already in the kernel's order; returns its address and element type.

        Integers are stored in the narrowest of int8, int16, int32 that holds them, halves by their bits.
        """
        if values.dtype == np.float16:
            panels = self._panels and self._panels.weights.astype(np.float16).view(np.uint16)
            name = self.array("weights", np.ascontiguousarray(values).view(np.uint16), "std::uint16_t", panels)
            return f"reinterpret_cast<const {HALF}*>({name})", HALF
        ctype = self._weight_type(values)
        return self.array("weights" + suffix, values, ctype, self._panels and self._panels.weights), ctype

    def full_weights(self) -> bool:
        """Whether the 8-bit weights use -128, which the products of two bytes in 16 bits do not stand."""
        return self.integer and int(self.node.params["weights"].min(initial=0)) <= -128

    def bias(self, sum_type: str, suffix: str = "") -> str:
        """Adds the array "bias" (and `suffix`) in the accumulator's type; returns its name."""
        return self.array(
            "bias" + suffix,
            self.node.params["bias"],
            sum_type,
            self._panels and self._panels.bias,
            self._panels and self._panels.signed_bias,
        )

    def _per_output(self, role: str, values: np.ndarray, ctype: str) -> str:
        panels = None if self._panels is None else self._panels.sorted(np.asarray(values).reshape(-1))
        return self.array(role, values, ctype, panels)

    def _isa(self) -> str:
        if not (self._panels or self._native):
            return PORTABLE
        return NATIVE if self.integer else REAL_NATIVE

    # ---- structs --------------------------------------------------------------------------
    def config(self, description: str, types: dict[str, str], constants: dict[str, int], suffix: str = "config") -> str:
        """Adds a config struct; returns its name. `types` is completed with the instruction set,
        `constants` with the direction of the lines wherever they have an order.
        """
        name = f"{self.identifier}_{suffix}"
        if "Serial" in constants:
            constants = {
                **constants,
                "Serial": self.serial or self.streamed,
                "Reverse": self.backwards,
                "Streamed": self.streamed,
            }
        self._structs.append(
            Config(name, description, types, {key: int(value) for key, value in constants.items()}, self._isa())
        )
        return name

    def constants(self, suffix: str, type: str, functions: dict[str, Any], types: dict[str, str]) -> str:
        """Adds a struct of constant functions of `type`; returns its name."""
        name = f"{self.identifier}_{suffix}"
        literal = (lambda value: float_literal(value, type)) if type in ("float", "double") else str
        self._structs.append(
            templates()
            .get_template("layers/constants.hpp.j2")
            .render(name=name, type=type, types=types, functions={key: literal(value) for key, value in functions.items()})
        )
        return name

    def text(self, struct: str) -> None:
        """Adds a struct as it is."""
        self._structs.append(struct)

    # ---- epilogues --------------------------------------------------------------------
    def epilogue(self, centred: bool = True, only: int | None = None) -> str:
        """The C++ type that turns an accumulator into an element of the output.

        `centred`: the accumulator stands for real numbers, so that the output's zero point is added. `only`: with the constants of
        one of several inputs.
        """
        if not self.integer:
            real = self.output.cpp
            return f"n2d2::Activated<{real}, {self._activation(self.node.activation, real)} >"
        if self.node.rescale is None:
            raise InternalError(f"{self.node.name} has no rescale")
        low, high = self._clamp()
        kind = self.output if self.node.residual is None else self.node.residual.type
        zero = f", {kind.zero_point}" if centred and kind.zero_point else ""
        rescale = self.node.rescale if only is None else self.node.rescale.only(only)
        text = self._rescale(rescale, self.node.bound, "" if only is None else str(only))
        epilogue = f"n2d2::Requantized<{kind.cpp}, {text}, {low}, {high}{zero}>"
        return epilogue if self.node.residual is None else self._adding(epilogue, self.node.residual)

    def _adding(self, epilogue: str, added: ResidualAdd) -> str:
        """`epilogue`, and the sum of what it gives and the bytes at the place where that is stored."""
        old = self.inputs[-1]
        operand = self.constants(
            "sum",
            "std::int32_t",
            {"weight": added.multiplier, "oldWeight": added.residual_multiplier, "offset": added.stored_offset(old)},
            {"Old": old.cpp},
        )
        text = self._rescale(added.rescale, added.bound, "_sum")
        zero = f", {self.output.zero_point}" if self.output.zero_point else ""
        last = f"n2d2::Requantized<{self.output.cpp}, {text}, {added.clamp[0]}, {added.clamp[1]}{zero}>"
        return f"n2d2::Added<{epilogue}, {operand}, {last} >"

    def converting_epilogue(self) -> str:
        """The C++ type that turns a stored input into a stored output of another number type."""
        source, target = self.inputs[0], self.output
        if target.is_float:
            scale = self.constants("scale", target.cpp, {"scale": source.scale}, {})
            return f"n2d2::Restored<{target.cpp}, {scale}, {source.zero_point}>"
        low, high = self._clamp()
        return (
            f"n2d2::Converted<{target.cpp}, {self._rescale(self.node.rescaling, self.node.bound)}, {low}, {high}, "
            f"{source.zero_point}, {target.zero_point}>"
        )

    def moving_epilogue(self, clamped: bool = False) -> str:
        """The C++ type for layers that move values: activation in floating point, the value (clamped) in integers."""
        if not self.integer:
            return self.epilogue()
        if any((kind.bits, kind.signed) != (self.output.bits, self.output.signed) for kind in self.inputs):
            raise InternalError(f"{self.node.name} moves values, but its tensors have different types")
        kind, limits = self.output.cpp, self._clamp()
        everything = (self.output.qmin, self.output.qmax)
        if not clamped or (limits == everything and (self.output.full or not self.output.signed)):
            return f"n2d2::Moved<{kind}>"
        return f"n2d2::Clamped<{kind}, {limits[0]}, {limits[1]}>"

    def _clamp(self) -> tuple[int, int]:
        low, high = self.node.clamp or (self.output.qmin, self.output.qmax)
        return int(low), int(high)

    def _rescale(self, rescale: Rescale, bound: int, suffix: str = "") -> str:
        if isinstance(rescale, FloatRescale):
            name = self._per_output("factors" + suffix, rescale.factors, "float")
            bounded = 0 < bound * float(np.max(np.abs(rescale.factors))) < 2**30
            return f"n2d2::FloatRescale<{name}, {rescale.count}{', true' if bounded else ''}>"
        if isinstance(rescale, FractionRescale):
            names = [
                self._per_output(role + suffix, values, "float")
                for role, values in (("factors", rescale.factors), ("fractions", rescale.fractions))
            ]
            return f"n2d2::FractionRescale<{', '.join(names)}, {rescale.count}>"
        if isinstance(rescale, StepRescale):
            bounded = ", true" if self._real_reach() / float(rescale.step) < 2**21 else ""
            return f"n2d2::StepRescale<{self.constants('step', 'float', {'step': rescale.step}, {})}{bounded}>"
        if isinstance(rescale, FixedPointRescale):
            name = self._per_output("multipliers" + suffix, rescale.multipliers, "std::int32_t")
            return f"n2d2::FixedPointRescale<{name}, {rescale.count}, {rescale.shift}>"
        if isinstance(rescale, ShiftRescale):
            name = self._per_output("multipliers" + suffix, rescale.multipliers, "std::int64_t")
            shifts = self._per_output("shifts" + suffix, rescale.second, "std::uint8_t")
            return f"n2d2::ShiftRescale<{name}, {shifts}, {rescale.count}>"
        raise InternalError(f"{self.node.name}: no C++ form of {type(rescale).__name__}")

    def _real_reach(self) -> float:
        """What the magnitude of the real numbers of a layer with "scales" stays below."""
        ends = [max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin) for kind in self.inputs]
        reaches = np.abs(self.node.params["scales"].astype(np.float64)) * ends
        return float(max(reaches.sum(), reaches.prod()))

    def _activation(self, function: Function | None, kind: str) -> str:
        if function is None:
            return f"n2d2::Linear<{kind}>"
        functor = function.functor()
        if functor.header:
            self._headers.append(functor.header)
        arguments = [kind]
        if functor.parameters is not None:
            arguments.append(self.constants("activation", kind, functor.parameters, {}))
        arguments += [str(flag).lower() for flag in functor.flags]
        return f"{functor.template}<{', '.join(arguments)}>"

    # ---- result ---------------------------------------------------------------------------
    def code(self, header: str, call: str) -> LayerCode:
        """The finished layer, which needs the kernel header `header` and is run by `call`.

        The call of a layer that runs by lines gets a last argument that says which.
        """
        first = header if header.startswith("plugins/") else f"n2d2/{header}.hpp"
        if self.streamed:
            if not call.endswith(");"):
                raise InternalError(f"{self.node.name}: a call that takes no lines")
            call = f"{call[:-2]}, n2d2::Rows(first, stop));"
        winograd = None
        if self._winograd:
            name, (weights, sets) = f"{self.identifier}_transformed", self._winograd
            other = call.replace(f"n2d2::{header}<", "n2d2::winograd<").replace(f"{self.identifier}_weights", name)
            winograd = Winograd(other, name, weights, sets, having(WINOGRAD), self.streamed)
            self._headers.append("n2d2/winograd.hpp")
        return LayerCode(
            self.node.name,
            self.identifier,
            (first, *self._headers),
            tuple(self._structs),
            call,
            tuple(self._arrays),
            self.serial,
            self._kernel,
            self._sets,
            self._reason,
            self.streamed,
            self.partial is not None,
            winograd,
            self.node.residual.layer if self.node.residual else "",
        )
