"""The files of an export for microcontrollers: those of the C++ export, boards, vectors to test them with; its parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from n2d2py.contracts.cpp import ChannelPairs, Identifiers, LayerCode
from n2d2py.contracts.cpp.isa import CHANNEL_PAIRS, InstructionSet, instruction_sets, sets_with
from n2d2py.contracts.cpp.layer import ExportChoices, layer_code
from n2d2py.contracts.cpp.parts import Array, Stream
from n2d2py.errors import N2D2Error
from n2d2py.exports.base import ExportRequest
from n2d2py.exports.cpp.parameters import CppParameters
from n2d2py.exports.cpp.project import Project, wanted_names
from n2d2py.exports.mcu.boards import BOARDS, CORES, DEFAULT_CORE, HARDWARE, Board, Core, board, core, transforming_cores
from n2d2py.exports.mcu.mlperf import BENCHMARKS, Benchmark, BenchmarkView
from n2d2py.exports.mcu.single import single_file as one_file
from n2d2py.exports.mcu.stack import StackBound, stack_bounds, varying_layers
from n2d2py.exports.stimuli import stored_bytes
from n2d2py.files import write_text
from n2d2py.graph import QuantGraph, channels, elements, height, width
from n2d2py.ini import Kind, parameter
from n2d2py.memory.constants import Constant
from n2d2py.memory.plan import MemoryPlan
from n2d2py.quant.simulator import simulate

_TEXTS = """
WeightsFormat: Storage of weights. text: numbers. string: string literals, which compile faster. auto: chosen by size.
Core: Core on which -test and -compare run the export in QEMU, and default of TARGET in the Makefile. The export runs on all
    cores.
TestVectors: Number of inputs in test/vectors, each with the results of all layers.
SpeedForFlash: Use Winograd for 3x3 convolutions with stride 1 on cortex-m4, m7 and m33 where it takes fewer instructions.
    Results stay exact. Transformed weights take 3.6 times the flash, and the stack grows.
CopyWeights: Copies of weights in the fastest memory, with Memories for constants. single: before the layer. double: while the
    layer before runs, for firmware with DMA.
SingleFile: Also write src/<namespace>.hpp with interface, kernels, constants and network in one C++11 file, and the files
    of an Arduino library and a CMSIS pack.
MLPerfTiny: Also write the firmware of this benchmark of MLPerf Tiny for the runner of MLCommons, in mlperf/. Its API is not
    part of the export (docs/how-to/mlperf_tiny.md).
"""


@dataclass(frozen=True)
class McuParameters(
    CppParameters,
    texts=_TEXTS,
    without="openmp runtime_dispatch fuse_residuals prepack_weights winograd small_code weights_file",
):
    """The export parameters of CPP_MCU."""

    buffer_alignment: int = parameter(
        "BufferAlignment", Kind.UINT, 4, CppParameters.rows["buffer_alignment"].doc, minimum=1, maximum=4096
    )
    weights_format: str = parameter("WeightsFormat", Kind.ENUM, "auto", choices=("auto", "text", "string"))
    prepack_weights: bool = False
    core: Core = parameter("Core", Kind.ENUM, DEFAULT_CORE, read=core, choices=tuple(one.name for one in CORES))
    test_vectors: int = parameter("TestVectors", Kind.UINT, 3, minimum=1, maximum=999)
    speed_for_flash: bool = parameter("SpeedForFlash", Kind.BOOL, False)
    copy_weights: str = parameter("CopyWeights", Kind.ENUM, "single", choices=("single", "double"))
    single_file: bool = parameter("SingleFile", Kind.BOOL, False)
    benchmark: Benchmark | None = parameter("MLPerfTiny", Kind.ENUM, "none", read=BENCHMARKS.get, choices=("none", *BENCHMARKS))

    @property
    def trades_flash(self) -> bool:
        return self.speed_for_flash and not self.portable and self.core in transforming_cores()


_PIXELS = 2
"""Pixels of the output for which a kernel reads its weights once; kernels with vectors have more."""


def microcontroller_sets() -> tuple[InstructionSet, ...]:
    """Return the instruction sets of microcontrollers."""
    return tuple(row for row in instruction_sets() if row.microcontroller)


def constants_of(graph: QuantGraph, plan: MemoryPlan, choices: ExportChoices, portable: bool) -> list[Constant]:
    """Return the constants of all layers in the order of the graph. A layer without a kernel has none: `prepare` refuses it."""
    identifiers, constants = Identifiers(graph), []
    for node in graph.nodes:
        if node.name in plan.views or node.op.is_part:
            continue
        try:
            code = layer_code(node, graph, plan, identifiers, choices)
        except N2D2Error:
            continue
        code = code.portable() if portable else code.only(microcontroller_sets())
        shape, copied = graph.shape(node.output), copyable(code)
        for array in code.own_constants:
            reads = most_bytes(array) * -(-height(shape) * width(shape) // _PIXELS)
            if "weights" not in node.params:  # a table
                reads = elements(shape) * array.values.itemsize
            constants.append(Constant(array.name, node.name, most_bytes(array), float(reads), array.name == copied))
    return constants


def most_bytes(array: Array) -> int:
    """Return the bytes of an array for the largest set, in whole words, with the zero that ends a string literal."""
    largest = max(values.nbytes for values in (array.values, *(form.values for form in array.forms)))
    return (largest + (array.values.itemsize == 1) + 3) // 4 * 4


def copyable(code: LayerCode) -> str:
    """Return the name of the weights that a layer may read from a copy; "" if its calls are not given their address."""
    name = f"{code.identifier}_weights"
    is_argument = any(name in map(str, call.arguments) for call in code.calls)
    return name if is_argument and not any(array.typed for array in code.arrays if array.name == name) else ""


_PACKAGES = (
    ("packages/library.json", "library.json", False),
    ("packages/module.yml", "zephyr/module.yml", False),
    ("packages/zephyr.cmake", "zephyr/CMakeLists.txt", False),
    ("packages/Kconfig", "zephyr/Kconfig", False),
    ("packages/idf_component.yml", "idf_component.yml", False),
    ("packages/Cargo.toml", "Cargo.toml", False),
    ("packages/build.rs", "build.rs", False),
    ("packages/lib.rs", "src/lib.rs", False),
    ("packages/network.cpp", "src/{0}.cpp", True),
    ("include/interface.h", "src/{0}.h", True),
    ("packages/library.properties", "library.properties", True),
    ("packages/example.ino", "examples/Inference/Inference.ino", True),
    ("packages/pack.pdsc", "n2d2py.{0}.pdsc", True),
)
"""Template, file ({0} is the namespace), and whether it belongs to the single file."""
_FREESTANDING = ("climits", "cmath", "cstddef", "cstdint", "cstring", "limits", "type_traits")


def winograd_forms(project: Project) -> list[Stream]:
    """Return the streams by Winograd of the layers, or what ruled them out."""
    streams = (one for layer in project.layers if layer.code for one in layer.code.selection.streams)
    return [one for one in streams if one.kernel == ChannelPairs.name]


@dataclass(frozen=True)
class LinkerSection:
    """A section `name` of a linker script, for a memory. `kind`: "rom" for constants that stay there, "loaded" for constants
    that start-up copies there, "kept" for tensors and states, which nothing initializes."""

    name: str
    memory: str
    kind: str


class McuProject(Project):
    """A project for microcontrollers.

    Attributes:
        core: the core that the Makefile builds for by default.
        hardware: the boards on the desk that an application is for.
        mlperf: firmware of a benchmark; None without one.
        exact: True if all results are integers.
        line_bytes: those of the longest line of an output.
        varying: the layers whose time depends on the data, each with the reason.
    """

    folders = ("mcu", "cpp")
    constant_alignment = 4
    sections, cores, boards = True, CORES, BOARDS

    def __init__(self, request: ExportRequest, codes: Mapping[str, LayerCode], parameters: McuParameters):
        super().__init__(request, codes, parameters)
        self.core, self.hardware = parameters.core, HARDWARE if request.app else ()
        self.single_file, self.vectors = parameters.single_file, parameters.test_vectors
        self.mlperf = BenchmarkView(parameters.benchmark, request) if parameters.benchmark else None
        self.varying, self.sets = varying_layers(self.graph), microcontroller_sets()
        outputs = [self.graph.tensors[node.output] for node in self.graph.nodes]
        self.exact = int(not self.graph.is_mixed and not any(one.type.is_float for one in outputs))
        self.line_bytes = max(width(one.shape) * channels(one.shape) * one.type.bytes for one in outputs)
        self.arena_alignment = max(4, *(tensor.type.bytes for tensor in self.graph.tensors.values()))

    @cached_property
    def weights_format(self) -> str:
        return "inline" if self.parameters.weights_format == "auto" else self.parameters.weights_format

    def write(self, folder: Path) -> None:
        super().write(folder)
        if self.single_file:
            text = one_file(folder, self.namespace, self.kernel_namespace, _FREESTANDING)
            write_text(folder / "src" / f"{self.namespace}.hpp", text)

    @property
    def transformed_bytes(self) -> int:
        """Bytes of the constants that a core with kernels by Winograd links."""
        sets, size = set(sets_with(CHANNEL_PAIRS)), 0
        for array in (array for layer in self.layers if layer.code for array in layer.code.own_constants):
            form = next((form.values for form in array.forms if sets & set(form.sets)), array.values)
            size += form.nbytes
        return size

    def _files(self) -> list[tuple[str, str]]:
        once = wanted_names(
            (True, "Makefile CMakeLists.txt README.md dnn/stack.awk dnn/include/sections.hpp"),
            (True, "boards/semihosting.h boards/test.c boards/count.c boards/cycles.py"),
            (self.app, "app/app.c app/board.h app/host.py"),
            (self.linker_sections, "boards/sections.ld"),
            (self.mlperf or self.app, "boards/serial.h"),
            (self.mlperf, "mlperf/submitter_implemented.cpp mlperf/main.cpp mlperf/board.h mlperf/host.py"),
        )
        packages = [
            (template, name.format(self.namespace)) for template, name, single in _PACKAGES if self.single_file or not single
        ]
        freestanding = [(f"freestanding/{name}", f"kernels/freestanding/{name}") for name in _FREESTANDING]
        return [*((name, name) for name in (*once, *self.shared_files)), *self.interface_files, *packages, *freestanding]

    def _write_targets(self, folder: Path) -> None:
        for one in CORES:
            values = {"core": one, "board": board(one.board)}
            self._render("cmake/core.cmake", folder / f"cmake/{one.name}.cmake", values)
        for one in (*BOARDS, *self.hardware):
            self._write_board(one, folder / "boards" / one.name)
        for kind in ("qemu", "serial") if self.app else ():
            self._render("app/board_file.c", folder / f"app/board_{kind}.c", {"serial": kind == "serial"})

    def _write_board(self, one: Board, folder: Path) -> None:
        roms = [rom.name for rom in self.plan.roms]
        regions = {name: "EXTERNAL" if name in roms[1:] and one.external else one.constants for name in roms}
        slow = "SLOW" if one.slow else "RAM"
        regions |= {memory.name: slow if number else "RAM" for number, memory in enumerate(self.plan.memories)}
        regions |= {self.plan.state_memory.name: slow} if self.plan.state_memory else {}
        for file in ("board.ld", "startup.c", *(["serial.c"] if self.mlperf or one in self.hardware else [])):
            self._render(f"boards/{file}", folder / file, {"board": one, "regions": regions})

    @property
    def linker_sections(self) -> list[LinkerSection]:
        """The sections of the memories that hold something."""
        memories, stored = {memory.name for memory in self.plan.memories}, sorted(set(self.homes.values()))
        tensors = [memory.name for memory in self.other_memories]
        tensors += [self.plan.state_memory.name] if self.plan.state_memory else []
        return [
            *(LinkerSection(f"{self.namespace}_{one}", one, "rom") for one in stored if one not in memories),
            *(LinkerSection(f"{self.namespace}_{one}_data", one, "loaded") for one in stored if one in memories),
            *(LinkerSection(f"{self.namespace}_{one}", one, "kept") for one in tensors),
        ]

    def _write_stimuli(self, folder: Path) -> None:
        super()._write_stimuli(folder)
        write_vectors(self.request, self.vectors, folder)

    def placed(self, array: str) -> str:
        """Return the macro of the section of a constant."""
        home = self.homes.get(array)
        return f'N2D2_PLACED("{self.namespace}_{home}", "{array}")' if home else f'N2D2_CONSTANT("{array}")'

    @cached_property
    def stack_bounds(self) -> tuple[StackBound, ...]:
        return stack_bounds(self.layers)

    @property
    def stack_bytes(self) -> int:
        """Bytes that a board keeps for the stack of an application: those of an inference, and of what is around it."""
        return max(bound.bytes for bound in self.stack_bounds) + 2048

    @property
    def stack_text(self) -> str:
        return "; ".join(f"{bound.bytes} bytes on {', '.join(bound.cores)}" for bound in self.stack_bounds)

    @property
    def transforming(self) -> list[str]:
        """The cores with a layer by Winograd."""
        used = any(form.values is not None for form in winograd_forms(self))
        return [one.name for one in transforming_cores() if used]


VECTORS = Path("test") / "vectors"
_SEED = 1


def _inputs(request: ExportRequest, count: int) -> list[np.ndarray]:
    """Return the first `count` stimuli; random integers of the whole range for those that there are not."""
    graph, random = request.graph, np.random.default_rng(_SEED)
    inputs = []
    for index, name in enumerate(graph.user_inputs):
        kind, shape = graph.type(name), (count, *graph.shape(name)[1:])
        real = kind.is_float
        drawn = random.standard_normal(shape) if real else random.integers(kind.qmin, kind.qmax, shape, endpoint=True)
        values = drawn.astype(kind.dtype)
        if request.stimuli.count:
            known = request.stimuli.inputs[index][:count]
            values[: len(known)] = known
        inputs.append(values)
    return inputs


def write_vectors(request: ExportRequest, count: int, folder: Path) -> None:
    """Write `test/vectors/000.bin` and on into `folder`: the inputs, then the layers in their order, in HWC, little-endian."""
    graph, inputs = request.graph, _inputs(request, count)
    outputs = {node.name: node.output for node in graph.nodes}
    tensors = [*graph.user_inputs, *(outputs[name] for name in request.memory_plan.order)]
    (folder / VECTORS).mkdir(parents=True, exist_ok=True)
    calls = (graph.calls or count) if graph.states else 1
    for index in range(count):
        values = simulate(graph, [each[index // calls * calls : index + 1] for each in inputs], keep=True)
        data = b"".join(stored_bytes(values[name][-1]) for name in tensors)
        (folder / VECTORS / f"{index:03d}.bin").write_bytes(data)
