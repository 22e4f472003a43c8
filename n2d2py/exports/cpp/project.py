"""The files of the C++ project, from templates (`export_templates/cpp`), kernels and the code of each layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import resources
from n2d2py.exports.base import ExportRequest
from n2d2py.exports.cpp.arrays import is_file
from n2d2py.exports.cpp.code import LayerCode, plane_struct
from n2d2py.exports.cpp.headers import copy_headers
from n2d2py.exports.cpp.identifiers import Identifiers, mangled, namespace_name, sanitise
from n2d2py.exports.cpp.isa import FAMILIES, PORTABLE, TARGETS, InstructionSet, dispatched, instruction_sets
from n2d2py.exports.cpp.partial import MOST, Partial
from n2d2py.exports.cpp.partial import literal as bits_literal
from n2d2py.exports.cpp.schedule import Part, parts, used_ranges
from n2d2py.exports.cpp.shared import share_constants
from n2d2py.exports.cpp.states import StateView, bytes_with_states, state_views
from n2d2py.exports.cpp.text import comment, file_stems, literal, templates
from n2d2py.exports.cpp.tiles import tile_constants, winograd_choices
from n2d2py.exports.cpp.view import ArrayView, LayerView, PortView, port_views
from n2d2py.exports.cpp.weight_rows import weight_rows
from n2d2py.exports.cpp.weights_file import WEIGHTS_FILE, WeightsFile
from n2d2py.exports.stimuli import write_stimuli
from n2d2py.exports.weights import is_big
from n2d2py.files import write_text
from n2d2py.graph import QuantNode
from n2d2py.graph.inputs import PixelMap
from n2d2py.graph.shapes import channels, height, width
from n2d2py.runtime.graph_file import GRAPH_FILE, write_graph
from n2d2py.runtime.stored_rows import StoredRows
from n2d2py.version import __version__

API_VERSION = 2
"""Of the C interface; the version of the library as a package."""
ARENA_ALIGNMENT = 64
_OWN_FILES = tuple(
    "dispatch variant env mem_info transfer forward threads network trace arena info quantize guard partial weights".split()
)
"""Stems of the files of `dnn` that belong to no layer."""
_GROUP, _BIG_GROUP = 8, 14
"""Layers of a source file, and those of a big network."""


def namespace_of(request: ExportRequest) -> str:
    """The namespace and name prefix: the parameter Namespace, else the network's name made an identifier."""
    return request.parameters.get("Namespace") or namespace_name(request.graph.name)


def _groups(layers: list[LayerView], most: int) -> list[list[LayerView]]:
    """The layers of each source file: at most `most` that follow each other, and two files for a small network."""
    count = max(-(-len(layers) // most), min(2, len(layers)))
    cuts = [i * len(layers) // count for i in range(count + 1)] if count else [0]
    return [layers[begin:end] for begin, end in pairwise(cuts)]


class Project:
    """Turns a request and the code of its layers by name into files; layers without code are views.

    Attributes:
        folders: where its templates are, below `export_templates`, the first ones first.
        constant_alignment: bytes to which constants are aligned.
    """

    folders: tuple[str, ...] = ("cpp",)
    constant_alignment = 64

    def __init__(self, request: ExportRequest, codes: Mapping[str, LayerCode]):
        self._codes = codes
        self.request, self.graph, self.plan = request, request.graph, request.memory_plan
        self.namespace = namespace_of(request)
        self.identifiers = Identifiers(self.graph)

    @classmethod
    def wants_weights_file(cls, request: ExportRequest) -> bool:
        """Whether the weights are to be in a file apart."""
        return bool(request.parameters.get("WeightsFile"))

    @cached_property
    def weights_format(self) -> str:
        """The export parameter WeightsFormat; "inline" for its choice without files, "once" for one order of each array, in files."""
        found = self.request.parameters.get("WeightsFormat", "auto")
        return (
            "once"
            if found in ("auto", "binary") and is_big(self.graph) and not self.wants_weights_file(self.request)
            else found
        )

    @cached_property
    def weights_file(self) -> WeightsFile | None:
        """The weights file; None where all constants are in the program."""
        if not self.wants_weights_file(self.request):
            return None
        arrays = [array for layer in self.layers if layer.code is not None for array in layer.code.own_constants]
        return WeightsFile.of(arrays, self.namespace)

    @property
    def _once(self) -> bool:
        """Whether each constant is there once, as in exports of big networks."""
        return self.weights_format == "once"

    def write(self, folder: Path) -> None:
        """Writes everything but the manifest."""
        for template, target in self._files():
            self._render(template, folder / target, {})
        self._write_targets(folder)
        groups = _groups([layer for layer in self.layers if layer.has_code], _BIG_GROUP if self._once else _GROUP)
        for number, group in enumerate(groups, 1):
            self._render("dnn/src/layers.cpp", folder / f"dnn/src/layers_{number}.cpp", {"group": group})
            constants = {layer.stem: self._write_layer(layer, layer.code, folder) for layer in group if layer.code}
            if self._once:  # a compiler takes longer to start than to read what a layer has beside its files
                constants = {f"constants_{number}": "\n".join(filter(None, constants.values()))}
            for stem, text in constants.items():
                if text:
                    write_text(folder / f"dnn/parameters/{stem}.cpp", text)
        if self.weights_file:
            (folder / "dnn/parameters" / WEIGHTS_FILE).write_bytes(self.weights_file.data)
        headers = [header for layer in self.layers if layer.code for header in layer.code.headers]
        headers += [
            "n2d2/plane.hpp",
            "n2d2/peak.hpp",
            "n2d2/tuning.hpp",
            "n2d2/vector_length.hpp",
            *(["n2d2/binary.hpp"] if self._has_files else []),
        ]
        headers += ["n2d2/derived.hpp"] if self._derivations else []
        headers += [one.asks for one in dispatched() if one.asks and self.dispatch]
        copy_headers(headers, resources.folder("kernels"), folder / "kernels", self.sets)
        self._write_stimuli(folder)
        write_graph(self.graph, folder / GRAPH_FILE, self._stored_rows() if self._once or self.weights_file else {})

    def _write_targets(self, folder: Path) -> None:
        """What there is for each processor to build for."""
        for machine in TARGETS:
            self._render("cmake/target.cmake", folder / f"cmake/{machine.name}.cmake", {"target": machine})

    def _write_stimuli(self, folder: Path) -> None:
        stems = [sanitise(name) for name in self.graph.fed]
        write_stimuli(self.request.stimuli, self.graph, stems, folder)

    @cached_property
    def _has_files(self) -> bool:
        """Whether constants are files that the assembler reads."""
        codes = [layer.code for layer in self.layers if layer.code is not None]
        arrays = (array for code in codes for array in code.constants if not array.apart)
        values = (form.values for array in arrays for form in (array, *array.forms))
        return any(is_file(one, self.weights_format) for one in values)

    @cached_property
    def _derivations(self) -> list[str]:
        """A line for each file of constants that the build derives, under the condition that something reads it."""
        own = [array for layer in self.layers if layer.code is not None for array in layer.code.own_constants]
        lines = []
        for array in (one for one in own if one.derivation):
            portable = f"!({' || '.join(form.where for form in array.forms)})" if array.forms else ""
            where = " && ".join(f"({condition})" for condition in (array.where, portable) if condition)
            lines += [array.derivation] if self.dispatch else [f"#if {where}", array.derivation, "#endif"]
        return lines

    def _files(self) -> list[tuple[str, str]]:
        """(template, file) for all that is written once."""
        once = ["Makefile", "CMakeLists.txt", "README.md", "main.cpp", "dnn/stack.awk"]
        once += [
            f"dnn/include/{stem}.hpp"
            for stem in (
                "env",
                "mem_info",
                "transfer",
                "forward",
                "threads",
                "guard",
                *(("dispatch",) if self.dispatch else ()),
            )
        ]
        once += [f"dnn/src/{stem}.cpp" for stem in (*(("dispatch", "variant") if self.dispatch else ()), *self.sources)]
        if self._derivations:
            once += ["dnn/derive.cpp", "dnn/parameters/derived.list"]
        if self.weights_file:
            once += ["dnn/src/weights.cpp", "dnn/include/weights.hpp", "run/weights.hpp"]
        once += [f"run/{stem}.hpp" for stem in ("stimuli", "inference", "score", "times", "profile", "tune", "dump")]
        if self.picture:
            once += [f"examples/{name}" for name in ("camera.h", "camera.c", "camera.cpp", "netpbm.h")]
        if self.namespace.lower() != "network":  # whose interface has this name already
            once.append("include/network.hpp")
        interface = [(f"include/interface.{suffix}", f"include/{self.namespace}.{suffix}") for suffix in ("h", "hpp")]
        return [(name, name) for name in once] + interface

    @property
    def sources(self) -> tuple[str, ...]:
        """Stems of the sources of every project."""
        return ("forward", *(("partial",) if self.partial else ()), "trace", "arena", "info", "quantize")

    @property
    def sets(self) -> tuple[InstructionSet, ...]:
        """The instruction sets whose kernels it may hold."""
        return instruction_sets()

    @property
    def arena_alignment(self) -> int:
        """Bytes to which the arena is aligned."""
        return ARENA_ALIGNMENT

    @property
    def dispatch(self) -> bool:
        """Whether the binary holds the layers for several instruction sets."""
        return bool(self.request.parameters.get("RuntimeDispatch", False))

    @property
    def picture(self) -> bool:
        """Whether the network takes one picture, gray or of three colours, and nothing else, so that there is an example."""
        shape, kind = self.graph.shape(self.graph.inputs[0]), self.graph.type(self.graph.inputs[0])
        alone = len(self.graph.inputs) == 1 and not self.graph.states and not self.wants_weights_file(self.request)
        return alone and len(shape) == 4 and channels(shape) in (1, 3) and not kind.plain

    def _pixels(self) -> dict[str, Any]:
        """What the examples say of bytes: the data's way where it is known, else 0 to 1."""
        count = channels(self.graph.shape(self.graph.inputs[0]))
        known = self.request.pixels or PixelMap((1 / 255,) * count, (0.0,) * count, tuple(range(count)))
        origin = "As the test data." if self.request.pixels else "THIS IS ASSUMED: 0 to 1. The training says what is right."
        factors, offsets = ([f"{np.float32(one):.9e}f" for one in values] for values in (known.factors, known.offsets))
        return {
            "factors": factors,
            "offsets": offsets,
            "order": known.order,
            "origin": origin,
            "assumed": not self.request.pixels,
        }

    def _stored_rows(self) -> dict[str, StoredRows]:
        """By layer, the weights in `dnn/parameters` that are the graph's in another order."""
        file = self.weights_file
        found = (
            (layer.node.name, layer.code and weight_rows(layer.node, layer.code, self.graph, file)) for layer in self.layers
        )
        return {name: rows for name, rows in found if rows}

    def _write_layer(self, layer: LayerView, code: LayerCode, folder: Path) -> str:
        """Writes what a layer has but for the source of its constants, which it returns."""
        arrays = [ArrayView.of(array, self.weights_format) for array in code.constants]
        own = [view for view, array in zip(arrays, code.constants, strict=True) if not (array.borrowed or array.apart)]
        values = {"layer": layer, "arrays": arrays, "own": own, "headers": code.headers, "config": code.config.strip("\n")}
        self._render("dnn/include/layer.hpp", folder / f"dnn/include/{layer.stem}.hpp", values)
        (folder / "dnn/parameters").mkdir(exist_ok=True)
        for array in own:
            for name, data in array.files.items():
                (folder / "dnn/parameters" / name).write_bytes(data)
        return self._rendered("dnn/parameters/layer.cpp", values) if own else ""

    def _rendered(self, template: str, values: dict[str, Any]) -> str:
        return templates(*self.folders).get_template(f"{template}.j2").render({**self._common, **values})

    def _render(self, template: str, path: Path, values: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, self._rendered(template, values))

    @cached_property
    def inputs(self) -> list[PortView]:
        """The network's inputs but for its states."""
        return self._ports("input", self.graph.fed)

    @cached_property
    def outputs(self) -> list[PortView]:
        """The network's outputs but for its states."""
        return self._ports("output", self.graph.results)

    @cached_property
    def states(self) -> list[StateView]:
        """The states that are kept between inferences."""
        return state_views(self.graph, self.plan.arena_bytes, self.identifiers)

    def _ports(self, role: str, names: list[str]) -> list[PortView]:
        structs = [self.identifiers.plane(name) for name in names]
        return port_views(role, names, self.graph, self.plan.planes, structs)

    @cached_property
    def layers(self) -> list[LayerView]:
        """The layers in the order of the plan."""
        nodes = {node.name: node for node in self.graph.nodes}
        scheduled = [nodes[name] for name in self.plan.order]
        identifiers = {node.name: self.identifiers.layer(node.name) for node in scheduled}
        stems = file_stems(identifiers.values(), _OWN_FILES)
        found = [self._layer(node, identifiers[node.name], stems[identifiers[node.name]]) for node in scheduled]
        if not self.graph.pieces:
            return found
        shared = iter(share_constants([layer.code for layer in found if layer.code is not None]))
        return [replace(layer, code=next(shared)) if layer.code is not None else layer for layer in found]

    def _layer(self, node: QuantNode, identifier: str, stem: str) -> LayerView:
        code = self._codes.get(node.name)
        if code is not None:
            code = code if self.request.parameters.get("SIMD", "auto") == "auto" else code.portable()
            code = code if self.sets == instruction_sets() else code.only(self.sets)
            if tile := self.request.layer_parameters.get(node.name, {}).get("Tile"):
                code = code.tiled(tile_constants(tile)).choosing(winograd_choices(tile))
            code = code.deriving() if self._once else code
            code = code.with_weights_apart() if self.wants_weights_file(self.request) else code
        return LayerView(
            node,
            self.graph,
            code,
            identifier,
            stem,
            tuple(self._base(name) for name in node.inputs if name != self.plan.op(node.name).aliases),
            self._base(node.output),
            self.identifiers.plane(node.output),
            skipped=self._skipped(node),
        )

    def _skipped(self, node: QuantNode) -> int:
        """The lines of a layer's output that the schedule leaves out."""
        made = [
            stop - first for first, stop in (step.rows for step in self.plan.schedule if step.op == node.name and step.rows)
        ]
        return height(self.graph.shape(node.output)) - sum(made) if made else 0

    @cached_property
    def partial(self) -> Partial | None:
        """What some of the outputs need; None where there is no choice of them, or more of them than bits."""
        fits = 1 < len(self.outputs) <= MOST and len(self.inputs) <= MOST
        if not fits or self.stream_input or self.states:
            return None
        return Partial.of(self.graph, self.layers, self.inputs, self.outputs, self._base)

    def _base(self, tensor: str) -> str:
        """The pointer in `execute` that the plane of `tensor` is relative to."""
        origin = self._origin(tensor)
        for port in (*self.inputs, *self.outputs):
            if port.external and self._origin(port.name) == origin:
                return port.base
        for state in self.states:
            if self._origin(state.name) == origin:
                return state.base
        return "arena"

    @cached_property
    def _views(self) -> dict[str, str]:
        """Output of each layer that is a view, or columns -> its input."""
        names = set(self.plan.views)
        return {node.output: node.inputs[0] for node in self.graph.nodes if node.name in names or node.op.is_part}

    def _origin(self, tensor: str) -> str:
        """The tensor with the caller that this one is a view of; itself otherwise."""
        views = self._views
        while tensor in views and self.plan.planes[tensor].external and self.plan.planes[views[tensor]].external:
            tensor = views[tensor]
        return tensor

    @cached_property
    def _common(self) -> dict[str, Any]:
        """What every template sees."""
        ports = [*self.inputs, *self.outputs]
        arguments = ", ".join(port.variable for port in ports)
        sequence = parts(self.plan, self.layers, self.inputs)
        codes = [layer.code for layer in self.layers if layer.code]
        constants = sum(array.bytes for code in codes for array in code.arrays if not array.borrowed)
        transformed = [code for code in codes if code.added_bytes]
        return {
            "ns": self.namespace,
            "guard": self.namespace,
            "api": f"{self.namespace}_API",
            "api_version": API_VERSION,
            "kernel_namespace": f"n2d2_{self.namespace}",
            "dispatch": self.dispatch,
            "variants": dispatched(),
            "families": FAMILIES,
            "processors": TARGETS,
            "isa_names": ", ".join(f'"{row.name}"' for row in (PORTABLE, *reversed(self.sets))),
            "version": __version__,
            "network": comment(self.graph.name),
            "network_literal": literal(self.graph.name),
            "network_c": literal(comment(self.graph.name))[1:-1],
            "inputs": self.inputs,
            "outputs": self.outputs,
            "layers": self.layers,
            "planes": self._planes(),
            "parts": sequence,
            "guarded": [self._guarded(part) for part in sequence],
            "stream_input": self.stream_input,
            "partial": self.partial,
            "prepacks": any(code.prepacked_bytes for code in codes),
            "bits": bits_literal,
            "arena_inputs": [port for port in self.inputs if port.in_one_piece and not self.stream_input],
            "states": self.states,
            "calls": self.graph.calls,
            "tensor_bytes": self.plan.arena_bytes,
            "arena_bytes": max(1, bytes_with_states(self.graph, self.plan.arena_bytes)),
            "arena_alignment": self.arena_alignment,
            "constant_alignment": self.constant_alignment,
            "sections": False,
            "mangled": partial(mangled, self.namespace),
            "has_files": self._has_files,
            "derivations": self._derivations,
            "weights_file": self.weights_file,
            "result": "int" if self.weights_file else "void",
            "stack_bytes": 0,
            "riscv_stack_bytes": 0,
            "constant_bytes": constants,
            "added_bytes": "".join(f" + {code.added}" for code in transformed),
            "constants_of_sets": {
                one: constants + sum(code.added_bytes for code in transformed if one in code.winograd_sets)
                for one in dict.fromkeys(one for code in transformed for one in code.winograd_sets)
            },
            "picture": self.picture,
            "pixels": self._pixels(),
            "openmp": int(bool(self.request.parameters.get("OpenMP", True))),
            "parameters": ", ".join(
                [f"const {p.typedef}* {p.variable}" for p in self.inputs] + [f"{p.typedef}* {p.variable}" for p in self.outputs]
            ),
            "sources": ", ".join(f"const {p.typedef}* {p.variable}" for p in self.inputs),
            "source_arguments": ", ".join(p.variable for p in self.inputs),
            "results": ", ".join(f"{p.typedef}* {p.variable}" for p in self.outputs),
            "result_arguments": ", ".join(p.variable for p in self.outputs),
            "arguments": arguments,
            "raw_arguments": ", ".join(self._raw()),
            "raw_sources": self._raw()[0],
            "raw_results": self._raw()[1],
            "prologue": self._prologue(),
            "epilogue": self._epilogue(),
            "targets": self._targets(),
            "options": dict(self.request.options),
        }

    def _planes(self) -> list[str]:
        """The plane structs of all tensors of the plan, in the order of the graph."""
        return [
            plane_struct(name, tensor, self.plan.planes[name], self.identifiers.tensor(name)).rstrip("\n")
            for name, tensor in self.graph.tensors.items()
            if name in self.plan.planes
        ]

    def _raw(self) -> tuple[str, str]:
        """The inputs and the outputs of `forward` from the pointers of the C interface."""
        scope = f"{self.namespace}::"
        return (
            ", ".join(f"static_cast<const {scope}{p.typedef}*>(inputs[{i}])" for i, p in enumerate(self.inputs)),
            ", ".join(f"static_cast<{scope}{p.typedef}*>(outputs[{i}])" for i, p in enumerate(self.outputs)),
        )

    def _guarded(self, part: Part) -> dict[str, Any]:
        """The bytes in use while a part of the schedule runs, for the build that checks them."""
        ranges = used_ranges(self.plan, part.clock) or [(0, 0)]
        names = ", ".join(turn.view.node.name for turn in part.turns if isinstance(turn.view, LayerView)) or "the input"
        return {
            "layers": literal(names),
            "ranges": len(ranges),
            "numbers": ", ".join(str(number) for each in ranges for number in each),
        }

    @property
    def stream_input(self) -> bool:
        """Whether the inputs arrive line by line."""
        return any(step.arrives for step in self.plan.schedule)

    def _prologue(self) -> list[str]:
        """Pointers to the tensors that stay with the caller; copies of the inputs that do not."""
        lines = []
        for port in self.inputs if not self.stream_input else ():
            if port.external:
                lines.append(
                    f"const unsigned char* const {port.base} = reinterpret_cast<const unsigned char*>({port.variable});"
                )
            else:
                copied = f"toPlane<{port.plane}>({port.variable}, arena);"
                needed = self.partial.condition(port.name) if self.partial else ""
                lines += [f"if ({needed})", f"    {copied}"] if needed else [copied]
        lines += [f"const unsigned char* const {state.base} = arena + {state.offset};" for state in self.states]
        lines += [
            f"unsigned char* const {port.base} = reinterpret_cast<unsigned char*>({port.variable});"
            for port in self.outputs
            if self._straight(port)
        ]
        return lines

    def _epilogue(self) -> list[str]:
        """Copies of the outputs that lie elsewhere than in the caller's buffer."""
        lines = []
        for index, port in enumerate(self.outputs):
            if not self._straight(port):
                copied = f"fromPlane<{port.plane}>({self._base(port.name)}, {port.variable});"
                lines += [f"if ({self.partial.of_output(index)})", f"    {copied}"] if self.partial else [copied]
        for state in self.states:
            kept = f"reinterpret_cast<{state.ctype}*>(arena + {state.offset})"
            lines.append(f"fromPlane<{state.becoming}>({self._base(state.output)}, {kept});")
        return lines

    def _straight(self, port: PortView) -> bool:
        """Whether a layer writes the output straight into the caller's buffer."""
        same = [other for other in self.outputs if self._origin(other.name) == self._origin(port.name)]
        return port.external and self._origin(port.name) not in self.graph.inputs and same[0] is port

    def _targets(self) -> list[dict[str, Any]]:
        rows = []
        for target in self.request.targets:
            shape = self.graph.shape(target.output)
            rows.append(
                {
                    "output": self.graph.outputs.index(target.output),
                    "top_n": target.top_n,
                    "threshold": repr(float(target.threshold)),
                    "labels": height(shape) * width(shape),
                }
            )
        return rows
