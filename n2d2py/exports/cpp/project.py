"""The files of the C++ project, from templates (`export_templates/cpp`), kernels and the code of each layer."""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import resources
from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.sensor import SensorSource
from n2d2py.contracts.cpp.arrays import file_bytes, is_file
from n2d2py.contracts.cpp.code import LayerCode, plane_struct, share_constants
from n2d2py.contracts.cpp.identifiers import Identifiers, comment, file_stems, literal, mangled, namespace_name, sanitise
from n2d2py.contracts.cpp.isa import FAMILIES, dispatched, instruction_sets
from n2d2py.exports.base import ExportRequest
from n2d2py.exports.cpp.conversion import AudioView, FrameView, SensorView
from n2d2py.exports.cpp.headers import copy_headers
from n2d2py.exports.cpp.library import API_VERSION
from n2d2py.exports.cpp.parameters import CppParameters
from n2d2py.exports.cpp.processors import TARGETS
from n2d2py.exports.cpp.schedule import MOST, Part, Partial, bit_literal, parts, used_ranges
from n2d2py.exports.cpp.tune import tile_constants, winograd_choices
from n2d2py.exports.cpp.view import ArrayView, CopyView, LayerView, PortView, PostView, arena_of, state_views
from n2d2py.exports.cpp.weights_file import WEIGHTS_FILE, WeightsFile, weight_rows
from n2d2py.exports.stimuli import write_stimuli
from n2d2py.exports.weights import is_big
from n2d2py.files import write_text
from n2d2py.graph import PixelMap, QuantGraph, QuantNode, channels, height, stimulus_shape
from n2d2py.postprocessing import files_of, parse_post
from n2d2py.resources import templates
from n2d2py.runtime.graph_file import GRAPH_FILE, StoredRows, write_graph
from n2d2py.runtime.simulator import ends
from n2d2py.version import __version__

_OWN_FILES = tuple(
    "dispatch variant env mem_info transfer forward threads network trace arena info quantize guard partial memories frame audio sensor post weights".split()
)
"""Stems of the files of `dnn` that belong to no layer."""


def namespace_of(graph: QuantGraph, parameters: CppParameters) -> str:
    """Return the namespace and name prefix: the parameter Namespace, else the network's name made an identifier."""
    return parameters.namespace or namespace_name(graph.name)


@dataclass(frozen=True)
class OtherMemory:
    """A memory after the caller's arena: the pointer to it, where its addresses begin, the bytes that are used."""

    name: str
    pointer: str
    start: int
    bytes: int


_GROUP, _BIG_GROUP, _SMALL_NETWORK = 8, 14, 5
"""Layers of a source file, those of a big network, and those of a network whose layers one file holds."""


def _groups(layers: list[LayerView], most: int, least: int) -> list[list[LayerView]]:
    """Return the layers of each source file: at most `most` that follow each other, and `least` files unless the network is small.
    Reading the headers takes as long as compiling a few layers."""
    count = max(-(-len(layers) // most), least if len(layers) > _SMALL_NETWORK else 0)
    cuts = [i * len(layers) // count for i in range(count + 1)] if count else [0]
    return [layers[begin:end] for begin, end in pairwise(cuts)]


def wanted_names(*groups: tuple[object, str]) -> list[str]:
    """Return the names of the groups whose condition is true."""
    return [name for wanted, names in groups if wanted for name in names.split()]


class Project:
    """A request and the code of its layers by name, as the templates see them, and as files; layers without code are views.

    Attributes:
        folders: where its templates are, as in `resources.templates`, the first ones first.
        device_library: library of the device that runs its layers, whose functions return a status; "" for the CPU.
        namespace: of the network; `kernel_namespace`: name of `n2d2` in the program.
        api: macro of the functions that a library exports.
        network: name for comments; `network_literal`, `network_c`: as a literal, and the comment within a literal.
        variants: the instruction sets among which a binary chooses when it starts.
        stream_input: True if the inputs arrive row by row.
        inputs, outputs, ports: those of the network but for its states, and both.
        states: those that are kept between inferences, in the arena or in an array of their own; `state_bytes` of them.
        state_base: the pointer that the offsets of the states are relative to.
        arena_alignment, arena_bytes: bytes to which the arena is aligned, and of tensors and states in it.
        arena_inputs: the inputs that a caller may write straight into the arena.
        conversion: that of the frames of a camera (`frames`), of sounds or of samples; None where nobody asked for it.
        sets: the instruction sets whose kernels it may hold.
        result: the C++ type that inference returns.
        stack_bounds: those of microcontrollers (`exports.mcu.stack`); none where they are not known.
    """

    folders: tuple[str, ...] = ("cpp",)
    constant_alignment, arena_alignment = 64, 64
    stack_bounds: Any = ()
    api_version = API_VERSION
    version = __version__
    families, processors = FAMILIES, TARGETS
    bits, literal = staticmethod(bit_literal), staticmethod(literal)
    sections, device_library = False, ""

    def __init__(self, request: ExportRequest, codes: Mapping[str, LayerCode], parameters: CppParameters):
        self._codes, self.parameters = codes, parameters
        self.request, self.graph, self.plan = request, request.graph, request.memory_plan
        self.namespace = namespace_of(self.graph, parameters)
        self.api, self.kernel_namespace = f"{self.namespace}_API", f"n2d2_{self.namespace}"
        self.network, self.network_literal = comment(self.graph.name), literal(self.graph.name)
        self.network_c = literal(self.network)[1:-1]
        self.contract, self.app = request.contract, request.app
        self.dispatch, self.small_code = parameters.runtime_dispatch, parameters.small_code
        self.has_weights_file, self.openmp = parameters.weights_file, int(parameters.openmp)
        self.identifiers, self.variants = Identifiers(self.graph), dispatched()
        self.stream_input = any(step.arrives for step in self.plan.schedule)
        self.inputs, self.outputs = self._ports("input", self.graph.user_inputs), self._ports("output", self.graph.user_outputs)
        self.ports = self.inputs + self.outputs
        first = 0 if self.plan.state_memory else self.plan.used[0]
        self.state_base = f"{self.namespace}_states" if self.plan.state_memory else "arena"
        self.states = state_views(self.graph, first, self.identifiers)
        ends_of_states = [state.offset + state.size for state in self.states]
        self.state_bytes = ends_of_states[-1] - self.states[0].offset if self.states else 0
        self.arena_bytes = max(1, self.plan.used[0], *(() if self.plan.state_memory else ends_of_states))
        self.arena_inputs = [port for port in self.inputs if port.in_one_piece and not self.stream_input]
        self.conversion = self._conversion()
        self.frames = self.conversion if isinstance(self.conversion, FrameView) else None
        self.sets, self.result = instruction_sets(), "int" if self.has_weights_file or self.device_library else "void"

    @cached_property
    def weights_format(self) -> str:
        """The export parameter WeightsFormat; "inline" for its choice without files, "once" for one order of each array, in files."""
        wanted = self.parameters.weights_format
        has_files = wanted in ("auto", "binary") and not self.has_weights_file and not self.device_library
        return "once" if has_files and is_big(self.graph) else wanted

    @cached_property
    def weights_file(self) -> WeightsFile | None:
        """The weights file; None where all constants are in the program."""
        if not self.has_weights_file:
            return None
        arrays = [array for layer in self.layers if layer.code is not None for array in layer.code.own_constants]
        return WeightsFile.of(arrays, self.namespace)

    @cached_property
    def has_files(self) -> bool:
        """True if constants are files that the assembler reads."""
        arrays = (array for code in self.codes for array in code.constants if not array.apart)
        values = (form.values for array in arrays for form in (array, *array.forms))
        return any(is_file(one, self.weights_format) for one in values)

    @cached_property
    def derivations(self) -> list[str]:
        """A line for each file of constants that the build derives, under the condition that something reads it."""
        own = [array for code in self.codes for array in code.own_constants]
        lines = []
        for array in (one for one in own if one.derivation):
            portable = f"!({' || '.join(form.where for form in array.forms)})" if array.forms else ""
            where = " && ".join(f"({condition})" for condition in (array.where, portable) if condition)
            lines += [array.derivation] if self.dispatch else [f"#if {where}", array.derivation, "#endif"]
        return lines

    @property
    def picture(self) -> bool:
        """True if the network takes one image, gray or of three colours, and nothing else, so that there is an example."""
        shape, kind = self.graph.shape(self.graph.inputs[0]), self.graph.type(self.graph.inputs[0])
        alone = len(self.graph.inputs) == 1 and not self.graph.states and not self.has_weights_file
        alone &= not isinstance(self.conversion, AudioView | SensorView)
        return alone and len(shape) == 4 and channels(shape) in (1, 3) and not kind.plain

    def _conversion(self) -> FrameView | AudioView | SensorView | None:
        source, pixels = self.contract.source, self.contract.pixels
        if source is None:
            return None
        shape, kind = stimulus_shape(self.graph), self.graph.type(self.graph.user_inputs[0])
        if isinstance(source, AudioSource):
            return AudioView(source, shape, kind)
        if isinstance(source, SensorSource):
            return SensorView(source, shape, kind)
        return None if pixels is None else FrameView(source, pixels, shape, kind)

    @cached_property
    def post(self) -> PostView | None:
        """Post-processing of the outputs; None where nobody asked for it."""
        text, names = self.request.post, self.contract.classes
        if text is None and self.app:
            text, names = self._app_post, ()
        return PostView(parse_post(text).bind(*ends(self.graph), names), self.outputs) if text else None

    @property
    def _app_post(self) -> str | None:
        """The post-processing of an application without -post: the best class of its only output."""
        port = self.outputs[0]
        if len(self.outputs) > 1 or not port.is_row or port.type.plain or not (port.type.is_float or port.type.bits <= 16):
            return None
        return f"scores:threshold={self.threshold(port)}" if port.elements == 1 else "scores"

    def threshold(self, port: PortView) -> str:
        """Return the real value above which an output of one value is class 1."""
        thresholds = (one.threshold for one in self.request.targets if one.output == port.name)
        return repr(float(next(thresholds, 0.5)))

    @property
    def pixels(self) -> dict[str, Any]:
        """Conversion of bytes in the examples: by channel the factors, offsets and order, where they come from, and whether they
        are assumed: 0 to 1 where the data's way is not known."""
        count = channels(self.graph.shape(self.graph.inputs[0]))
        pixels = self.contract.pixels
        known = pixels or PixelMap((1 / 255,) * count, (0.0,) * count, tuple(range(count)))
        origin = "As the test data." if pixels else "THIS IS ASSUMED: 0 to 1. The training says what is right."
        factors, offsets = ([f"{np.float32(one):.9e}f" for one in values] for values in (known.factors, known.offsets))
        return {"factors": factors, "offsets": offsets, "order": known.order, "origin": origin, "assumed": pixels is None}

    def _ports(self, role: str, names: list[str]) -> list[PortView]:
        return [self._port(role, str(index) if len(names) > 1 else "", name) for index, name in enumerate(names)]

    def _port(self, role: str, number: str, name: str) -> PortView:
        plane, memory = self.identifiers.plane(name), self.plan.local(self.plan.planes[name])
        return PortView(role, number, name, self.graph.shape(name), self.graph.type(name), plane, memory)

    @cached_property
    def layers(self) -> list[LayerView]:
        """The layers in the order of the plan."""
        nodes = {node.name: node for node in self.graph.nodes}
        scheduled = [nodes[name] for name in self.plan.order]
        identifiers = {node.name: self.identifiers.layer(node.name) for node in scheduled}
        stems = file_stems(identifiers.values(), _OWN_FILES)
        views = [self._layer(node, identifiers[node.name], stems[identifiers[node.name]]) for node in scheduled]
        copied = [constant.name for constant in self.plan.copies.values()]
        codes = [layer.code for layer in views if layer.code is not None]
        shared = iter(share_constants(codes, bool(self.graph.pieces), copied))
        return [replace(layer, code=next(shared)) if layer.code is not None else layer for layer in views]

    def _layer(self, node: QuantNode, identifier: str, stem: str) -> LayerView:
        code = self._codes.get(node.name)
        if code is not None:
            code = code.portable() if self.parameters.portable else code
            code = code if self.sets == instruction_sets() else code.only(self.sets)
            if tile := self.request.layer_parameters.get(node.name, {}).get("Tile"):
                code = code.tiled(tile_constants(tile)).choosing(winograd_choices(tile))
            code = code.deriving() if self.weights_format == "once" else code
            code = code.with_weights_apart() if self.has_weights_file else code
        copy = None
        if code is not None and (constant := self.plan.copies.get(node.name)):
            ctype = next(array.ctype for array in code.arrays if array.name == constant.name)
            copy = CopyView(constant.name, ctype, constant.copy or 0)
            code = code.reading_copy(constant.name, f"{constant.name}_copy")
        bases = tuple(self.base(name) for name in node.inputs if name != self.plan.op(node.name).aliases)
        output = self.base(node.output), self.identifiers.plane(node.output)
        return LayerView(node, self.graph, code, identifier, stem, bases, *output, self._skipped(node), copy)

    @property
    def copies(self) -> list[CopyView]:
        """The constants that an inference copies."""
        return [layer.copy for layer in self.layers if layer.copy]

    def copies_before(self, part: Part) -> list[CopyView]:
        """Return the copies that begin before a part of the schedule."""
        begun = {one.name for one in self.plan.copies.values() if one.life[0] == part.clock}
        first = next(each for each in self.parts if each.clock == part.clock)
        return [one for one in self.copies if one.name in begun] if part is first else []

    def awaits_copies(self, part: Part) -> bool:
        """True if a part of the schedule needs copies that are complete."""
        return any(isinstance(turn.view, LayerView) and turn.view.copy for turn in part.turns)

    def _skipped(self, node: QuantNode) -> int:
        ranges = (step.rows for step in self.plan.schedule if step.op == node.name and step.rows)
        computed = sum(stop - first for first, stop in ranges)
        return height(self.graph.shape(node.output)) - computed if computed else 0

    @cached_property
    def partial(self) -> Partial | None:
        """The needs of each output, for inferences of some outputs; None for a single output, or more than the flags have bits."""
        fits = 1 < len(self.outputs) <= MOST and len(self.inputs) <= MOST
        if not fits or self.stream_input or self.states or self.device_library:
            return None
        return Partial.of(self.graph, self.layers, self.inputs, self.outputs, self.base)

    def base(self, tensor: str) -> str:
        """Return the pointer in `execute` that the plane of `tensor` is relative to."""
        origin = self._origin(tensor)
        for port in (*self.inputs, *self.outputs):
            if port.external and self._origin(port.name) == origin:
                return port.base
        for state in self.states:
            if self._origin(state.name) == origin:
                return state.base
        return arena_of(self.plan.local(self.plan.planes[tensor]))

    @cached_property
    def _views(self) -> dict[str, str]:
        """Output of each layer that is a view, or columns -> its input."""
        names = set(self.plan.views)
        return {node.output: node.inputs[0] for node in self.graph.nodes if node.name in names or node.op.is_part}

    def _origin(self, tensor: str) -> str:
        """Return the tensor with the caller that this one is a view of; itself otherwise."""
        views = self._views
        while tensor in views and self.plan.planes[tensor].external and self.plan.planes[views[tensor]].external:
            tensor = views[tensor]
        return tensor

    @cached_property
    def parts(self) -> list[Part]:
        """The schedule."""
        return parts(self.plan, self.layers, self.inputs)

    @property
    def codes(self) -> list[LayerCode]:
        """The code of the layers that are compiled."""
        return [layer.code for layer in self.compiled_layers if layer.code]

    @property
    def compiled_layers(self) -> list[LayerView]:
        """The layers that have code."""
        return [layer for layer in self.layers if layer.has_code]

    @property
    def other_memories(self) -> list[OtherMemory]:
        """The memories after the caller's arena that hold something."""
        return [
            OtherMemory(memory.name, f"memory_{memory.name.lower()}", memory.start, used)
            for memory, used in list(zip(self.plan.memories, self.plan.used, strict=False))[1:]
            if used
        ]

    @property
    def homes(self) -> dict[str, str]:
        """By name of each constant that has a memory, the one from which layers, or their copies, read it."""
        return {one.name: one.memory if one.copy is None else one.home for one in self.plan.constants}

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants but for those that Winograd forms add."""
        return sum(array.bytes for code in self.codes for array in code.arrays if not array.borrowed)

    @property
    def added_bytes(self) -> str:
        """Addend of Winograd forms, as the end of a C++ sum."""
        return "".join(f" + {code.added}" for code in self.codes if code.added_bytes)

    @property
    def constants_of_sets(self) -> dict[str, int]:
        """Bytes of constants by instruction set, where Winograd forms add some."""
        adding = [code for code in self.codes if code.added_bytes]
        return {
            one: self.constant_bytes + sum(code.added_bytes for code in adding if one in code.winograd_sets)
            for one in dict.fromkeys(one for code in adding for one in code.winograd_sets)
        }

    @property
    def planes(self) -> list[str]:
        """The plane structs of all tensors of the plan, in the order of the graph."""
        return [
            plane_struct(name, tensor, self.plan.local(self.plan.planes[name]), self.identifiers.tensor(name)).rstrip("\n")
            for name, tensor in self.graph.tensors.items()
            if name in self.plan.planes
        ]

    def used_ranges(self, part: Part) -> list[tuple[int, int]]:
        """Return the bytes [begin, end) in use while a part of the schedule runs, for the build that checks them."""
        return used_ranges(self.plan, part.clock) or [(0, 0)]

    def is_direct(self, port: PortView) -> bool:
        """True if a layer writes the output straight into the caller's buffer."""
        same = [other for other in self.outputs if self._origin(other.name) == self._origin(port.name)]
        return port.external and self._origin(port.name) not in self.graph.inputs and same[0] is port

    def mangled(self, name: str) -> str:
        """Return the symbol of a name of the network's namespace."""
        return mangled(self.namespace, name)

    def write(self, folder: Path) -> None:
        """Write everything but the manifest."""
        for template, target in self._files():
            self._render(template, folder / target, {})
        self._write_targets(folder)
        most, least = _BIG_GROUP if self.weights_format == "once" or self.small_code else _GROUP, 1 if self.small_code else 2
        groups = _groups(self.compiled_layers, most, least)
        for number, group in enumerate(groups, 1):
            self._render("dnn/src/layers.cpp", folder / f"dnn/src/layers_{number}.cpp", {"group": group})
            constants = {layer.stem: self._write_layer(layer, layer.code, folder) for layer in group if layer.code}
            if self.weights_format == "once":  # a compiler takes longer to start than to read these few lines
                constants = {f"constants_{number}": "\n".join(filter(None, constants.values()))}
            for stem, text in constants.items():
                if text:
                    write_text(folder / f"dnn/parameters/{stem}.cpp", text)
        if self.weights_file:
            (folder / "dnn/parameters" / WEIGHTS_FILE).write_bytes(self.weights_file.data)
        copy_headers(self.kernel_headers, resources.folder("kernels"), folder / "kernels", self.sets)
        self._write_stimuli(folder)
        for key, path in files_of(self.request.post).items() if self.request.post else ():
            shutil.copyfile(path, folder / f"{key}.npy")
        rows = self._stored_rows() if self.weights_format == "once" or self.weights_file else {}
        write_graph(self.graph, folder / GRAPH_FILE, rows)

    @property
    def kernel_headers(self) -> list[str]:
        """The kernel headers that the sources include."""
        headers = [header for layer in self.compiled_layers if layer.code for header in layer.code.headers]
        names = ((True, "parallel plane peak quantize tuning"), (self.has_files, "binary"), (self.derivations, "derived"))
        stems = [*wanted_names(*names), *([self.post.post.kernel] if self.post else [])]
        headers += [f"n2d2/{stem}.hpp" for stem in stems]
        headers += [self.conversion.header] if self.conversion else []
        return headers + [one.asks for one in dispatched() if one.asks and self.dispatch]

    def _write_targets(self, folder: Path) -> None:
        shutil.copyfile(resources.folder("export_templates") / "cpp" / "run" / "wasi.mjs", folder / "run" / "wasi.mjs")
        for machine in (one for one in TARGETS if not one.clang):
            self._render("cmake/target.cmake", folder / f"cmake/{machine.name}.cmake", {"target": machine})

    def _write_stimuli(self, folder: Path) -> None:
        stems = [sanitise(name) for name in self.graph.user_inputs]
        write_stimuli(self.request.stimuli, self.graph, stems, folder)

    def _files(self) -> list[tuple[str, str]]:
        once = wanted_names(
            (True, "Makefile CMakeLists.txt README.md main.cpp dnn/stack.awk"),
            (self.dispatch, "dnn/include/dispatch.hpp dnn/src/dispatch.cpp dnn/src/variant.cpp"),
            (self.derivations, "dnn/derive.cpp dnn/parameters/derived.list"),
            (self.weights_file, "dnn/src/weights.cpp dnn/include/weights.hpp run/weights.hpp"),
            (self.picture, "examples/camera.h examples/camera.c examples/camera.cpp examples/netpbm.h"),
            (self.app, f"app/{self.app}.cpp"),
            (self.app == "camera", "app/page.cpp app/page.html"),
            (self.namespace.lower() != "network", "include/network.hpp"),  # else the interface has this name already
        )
        once += [f"run/{stem}.hpp" for stem in ("stimuli", "inference", "score", "times", "profile", "tune", "dump")]
        return [(name, name) for name in (*once, *self.shared_files)] + self.interface_files

    @property
    def shared_files(self) -> list[str]:
        """Files that hosts and boards share."""
        stems = ("env", "mem_info", "transfer", "forward", "threads", "guard")
        headers = wanted_names((self.app, "app/app.h app/result.h"), (self.app in ("camera", "microphone"), "app/file.h"))
        return [*headers, *(f"dnn/include/{stem}.hpp" for stem in stems), *(f"dnn/src/{stem}.cpp" for stem in self.sources)]

    @property
    def interface_files(self) -> list[tuple[str, str]]:
        return [(f"include/interface.{suffix}", f"include/{self.namespace}.{suffix}") for suffix in ("h", "hpp")]

    @property
    def sources(self) -> list[str]:
        """Stems of the sources of every project."""
        more = wanted_names(
            (self.partial, "partial"),
            (self.other_memories or self.plan.state_memory, "memories"),
            (self.conversion, self.conversion.stem if self.conversion else ""),
            (self.post, "post"),
        )
        return ["forward", *more, "trace", "arena", "info", "quantize"]

    def _stored_rows(self) -> dict[str, StoredRows]:
        """By layer, the weights in `dnn/parameters` that are the graph's in another order."""
        file = self.weights_file
        stored = ((one.node.name, one.code and weight_rows(one.node, one.code, self.graph, file)) for one in self.layers)
        return {name: rows for name, rows in stored if rows}

    def _write_layer(self, layer: LayerView, code: LayerCode, folder: Path) -> str:
        """Write what a layer has but for the source of its constants, which it returns."""
        arrays = [ArrayView.of(array, self.weights_format) for array in code.constants]
        own = [view for view, array in zip(arrays, code.constants, strict=True) if not (array.borrowed or array.apart)]
        values = {"layer": layer, "arrays": arrays, "own": own, "headers": code.headers, "config": code.config.strip("\n")}
        self._render("dnn/include/layer.hpp", folder / f"dnn/include/{layer.stem}.hpp", values)
        self._write_files(own, folder)
        return self._rendered("dnn/parameters/layer.cpp", values) if own else ""

    def _write_files(self, arrays: Iterable[ArrayView], folder: Path) -> None:
        (folder / "dnn/parameters").mkdir(exist_ok=True)
        for name, values in (file for array in arrays for file in array.files.items()):
            (folder / "dnn/parameters" / name).write_bytes(file_bytes(values))

    def _rendered(self, template: str, values: dict[str, Any]) -> str:
        return templates(*self.folders).get_template(f"{template}.j2").render({"project": self, **values})

    def _render(self, template: str, path: Path, values: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, self._rendered(template, values))
