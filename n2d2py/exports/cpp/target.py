"""The C++ export as `-export CPP` finds it: what it refuses, what it writes, and the runner of a copy of it."""

import json
import os
import platform
import shutil
import timeit
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import round_up
from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.sensor import SensorSource
from n2d2py.concurrency import cores
from n2d2py.contracts.cpp import PRODUCT_TIMES, Array, LayerCode, is_string, scratch_needs, storage_of
from n2d2py.contracts.cpp.identifiers import Identifiers, namespace_name
from n2d2py.contracts.cpp.layer import ExportChoices, layer_code
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.exports.base import ExportRequest, KernelChoice, Prepared, QuantDefaults, Target
from n2d2py.exports.cpp.build import BuiltCopy, start
from n2d2py.exports.cpp.library import Export
from n2d2py.exports.cpp.parameters import LAYER_PARAMETERS, CppParameters
from n2d2py.exports.cpp.processors import cpu_info, lacks_byte_products
from n2d2py.exports.cpp.project import Project, namespace_of
from n2d2py.exports.cpp.tune import tile_constants, tune_export, winograd_choices, with_tiles
from n2d2py.exports.cpp.view import LayerView
from n2d2py.exports.registry import register
from n2d2py.graph import QuantGraph, Shape, dims_text, layer_macs
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.memory.settings import N2D2_STRATEGIES
from n2d2py.runtime.runner import Latency, read_profile


class CompiledExport(BuiltCopy):
    """A built copy of a written C++ export; removed at the end."""

    remedy = "install g++ and make"
    needed = "g++ (or set CXX)"

    @classmethod
    def missing(cls, parameters: Mapping[str, Any]) -> str:
        installed = shutil.which("make") is not None and shutil.which(os.environ.get("CXX") or "g++") is not None
        return "" if installed else "no C++ compiler or make"

    def build(self) -> None:
        steps = len(list(self.folder.rglob("*.cpp")))
        self._command("make", f"-j{cores()}", "all", "lib", what="building the export", steps=steps)

    def _command(self, *words: str, what: str = "running the export", steps: int | None = None) -> str:
        """Run a command in the project, with a bar over the lines that it prints. Raise E810 with the first line that tells why
        when it fails."""
        with start(words, self.folder) as process:
            printed = [line.strip() for line in log.progress(process.stdout or (), what, total=steps, unit="file")]
        if process.returncode:
            raise self.failed(" ".join(words), printed, f"exit status {process.returncode}")
        return "\n".join(printed)

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        """Return the stored outputs (count, C, H, W) by tensor of bin/run_export over all exported stimuli."""
        file = self.folder / "outputs.bin"
        printed = self._command(str(self.folder / "bin" / "run_export"), "-outputs", str(file), steps=count)
        log.detail("%s", printed.splitlines()[-1] if printed else "run_export printed nothing")
        return self.read_outputs(file, graph, count)

    def sizes(self) -> dict[str, int]:
        compiler = shutil.which((os.environ.get("CXX") or "g++").split()[0])
        if compiler and Path(compiler).resolve().name == "ccache" and not os.environ.get("CCACHE_DISABLE"):
            # A compiler cache gives objects back without their call graphs: with those of the others the stack would
            # depend on what the cache holds. Frames alone give the same bound every time.
            for graph in self.folder.rglob("build/**/*.ci"):
                graph.unlink()
        return self.read_sizes(self._command("make", "-s", "size", what="measuring the export"))

    def built_with(self) -> str:
        return self._command(os.environ.get("CXX") or "g++", "--version", what="asking the compiler").splitlines()[0]

    def latency(self, inferences: int) -> Latency | None:
        """Output of `run_export -bench` and `-profile`: the whole inference alone, then with a clock between layers."""
        program, count = str(self.folder / "bin" / "run_export"), str(inferences)
        whole = json.loads(self._command(program, "-bench", count, what="timing the export").splitlines()[-1])
        layers = read_profile(self._command(program, "-profile", count, what="timing the layers"))
        processor = cpu_info("model name") or platform.processor() or platform.machine()
        return Latency(whole["median_us"], whole["min_us"], whole["threads"], inferences, processor, layers)

    def conversion_cost(self, inferences: int) -> str:
        export = Export(self.folder / "lib" / f"lib{self.details['namespace']}.so", self.details["namespace"], self.details)
        source = export.contract.source
        if source is None or not inferences or "conversion_bytes" not in self.details:
            return ""
        if isinstance(source, AudioSource):
            frames = source.frames_of(export.info.inputs[0].stored[1:]).count
            samples, what = np.arange(source.samples(frames), dtype=np.int16), f"{frames} frames of a sound"
            run = partial(export.from_audio, samples)
        elif isinstance(source, SensorSource):
            samples, what = np.zeros((source.hop, source.axes), np.int16), f"{source.hop} samples"
            run = partial(export.from_sensor, samples)
        else:
            wide, high = source.measured_size(*export.info.inputs[0].stored[:1:-1])
            run = partial(export.from_frame, source.layout.encode(np.zeros((high, wide, 3), np.uint8)), wide)
            what = f"a frame of {wide}x{high}"
        return f"{1e6 * min(timeit.repeat(run, number=1, repeat=inferences)):.4g} us for {what}"

    def network(self) -> Export:
        return Export(self.folder / "lib" / f"lib{self.details['namespace']}.so", self.details["namespace"])


_ALIGNMENT = 64
"""Of every constant array."""


class CppTarget(Target[Project]):
    """A standalone C++11 project with templated kernels and a static arena. `project` writes its files."""

    name = "CPP"
    aliases = ("C",)
    stands_in_for = ("C_HLS", "CPP_OpenCL", "CPP_Cuda", "CPP_cuDNN", "CPP_TensorRT")
    parameter_type: type[CppParameters] = CppParameters  # type: ignore[assignment]
    layer_parameters = LAYER_PARAMETERS
    adds_residuals = True
    keeps_states = True
    converts_inputs = True
    post_processes = True
    has_apps = True
    quantization = QuantDefaults(file_types=True)
    runner = CompiledExport
    project: type[Project] = Project

    def scratch_needs(self, graph: QuantGraph, plan: MemoryPlan, parameters: Mapping[str, Any]) -> Mapping[str, ScratchNeed]:
        own = self.parameter_type.of(parameters)
        return {} if own.portable else scratch_needs(graph, plan, self.choices(own))

    def make(self, request: ExportRequest) -> Project:
        """Raise E701 and E703 for layers and tensors, E705 for parameters."""
        graph, plan, own = request.graph, request.memory_plan, self.parameter_type.of(request.parameters)
        if graph.bits < 0 and not self.in_floats:
            export = self.name.removeprefix("CPP_")
            what = f"the model '{graph.name}' computes in floating point, which the {export} export does not support"
            raise N2D2Error("E705", what, remedy="export with -nbbits 8, or with -export CPP")
        problems = [_rank_problem(one.name, one.shape) for one in graph.tensors.values() if not 2 <= len(one.shape) <= 4]
        codes: dict[str, LayerCode] = {}
        if not problems:
            identifiers, choices, arrays = Identifiers(graph), self.choices(own), dict[bytes, np.ndarray]()
            for node in graph.nodes:
                try:
                    if node.name not in plan.views and not node.op.is_part:
                        codes[node.name] = layer_code(node, graph, plan, identifiers, choices).interned(arrays)
                except N2D2Error as problem:
                    problems.append(problem)
        problems += _tile_problems(request, own.portable, codes)
        namespace = namespace_of(graph, own)
        if namespace_name(namespace) != namespace:
            remedy = f"use letters, digits and single underscores, such as {namespace_name(namespace)}"
            problems.append(N2D2Error("E705", f"Namespace={namespace} is not a C++ namespace", remedy=remedy))
        ErrorList.raise_if(problems)
        if own.weights_file:
            _check_weights_file(own, codes)
        return self.project(request, codes, own)

    def overruled(self, parameters: Mapping[str, Any], graph: QuantGraph) -> dict[str, str]:
        own, real = self.parameter_type.of(parameters), graph.bits < 0
        weights = [node.params["weights"] for node in graph.nodes if "weights" in node.params]
        whole = not (real or (own.pack_weights and own.prepack_weights))
        whole = whole and not any(one.dtype.kind == "i" and storage_of(one) is not None for one in weights)
        same_kernels = "SIMD=none leaves the same portable kernels for every instruction set"
        static_lines = "with StreamInput=1 the lines of the input are in the static memory"
        packs = f"MemoryManagerStrategy={own.strategy} packs buffers as N2D2 does"
        no_lines = "no layer runs row by row with complete inputs; MemoryMode=Small or Minimum creates such layers"
        reasons = (
            (real and own.weights_format == "string", "WeightsFormat", "only 8-bit integers can be written as string literals"),
            (real, "PackWeights PrepackWeights", "floating-point weights are not packed"),
            (real, "PackActivations", "floating-point tensors are not packed"),
            (real, "FuseResidualAdd", "floating-point sums are layers of their own"),
            (real, "Winograd", "floating-point convolutions are computed directly"),
            (whole, "PackWeights PrepackWeights", "no weights have fewer than 8 bits"),
            (own.small_code, "Winograd", "SmallCode=1 stores one copy of the weights"),
            (own.weights_file, "PrepackWeights", "weights of a file are unpacked in each inference"),
            (not own.pack_weights, "PrepackWeights", "with PackWeights=0 no weights are packed"),
            (own.runtime_dispatch and own.portable, "RuntimeDispatch", same_kernels),
            (own.stream_input and not own.include_input, "IncludeInputInBuffer", static_lines),
            (not own.runs_by_lines, "MaxExtraMacs", no_lines),
            (own.strategy in N2D2_STRATEGIES, "BufferAlignment FuseResidualAdd", packs),
            (not any(node.op.kind == "Concat" for node in graph.nodes), "OptimizeNoBranchConcat", "the network has no Concat"),
        )
        return {name: reason for is_so, names, reason in reasons if is_so for name in names.split()}

    def choices(self, own: CppParameters) -> ExportChoices:
        """Return what the export parameters let the kernels do to constants."""
        return ExportChoices(
            packs_weights=own.pack_weights,
            prepacks_weights=own.prepack_weights and not own.weights_file,
            trades_flash=own.trades_flash,
            stores_winograd=own.winograd and not own.small_code,
        )

    def details(self, prepared: Prepared[Project]) -> dict[str, Any]:
        graph, packed_weights, packed_activations = prepared.request.graph, {}, {}
        for code in prepared.result.codes:
            if storage := code.selection.storage:
                kept = {"bytes_prepacked": storage.kept} if storage.kept else {}
                sizes = {"bytes": code.weight_bytes, "bytes_unpacked": int(code.node.params["weights"].nbytes), **kept}
                packed_weights[code.node.name] = {"bits": storage.bits, **sizes}
        for node in graph.nodes:
            if whole := graph.packed.get(node.outputs[0]):
                sizes = {"bytes": graph.tensors[node.outputs[0]].bytes, "bytes_unpacked": graph.tensors[whole].bytes}
                packed_activations[whole] = {"bits": node.op.bits, **sizes}
        conversion = prepared.result.conversion
        ways = {"inputs": graph.user_input_ports, "outputs": graph.user_output_ports}
        return {
            "namespace": namespace_of(graph, self.parameter_type.of(prepared.request.parameters)),
            "ports": {way: [port.fields() for port in ports] for way, ports in ways.items()},
            **({"packed_weights": packed_weights} if packed_weights else {}),
            **({"packed_activations": packed_activations} if packed_activations else {}),
            **({"conversion_bytes": 4 * conversion.words} if conversion else {}),
        }

    def constant_bytes(self, prepared: Prepared[Project]) -> dict[str, int]:
        """Return the bytes of the sections of each layer's arrays for the largest set; low-bit weights are packed."""
        weights_format = prepared.result.weights_format
        return {
            layer.node.name: sum(_section_bytes(array, weights_format) for array in layer.code.own_constants)
            for layer in prepared.result.layers
            if layer.code is not None
        }

    def write(self, prepared: Prepared[Project], folder: Path) -> list[KernelChoice]:
        project = prepared.result
        project.write(folder)
        return [_chosen(layer) for layer in project.layers]

    def reduced_range_gain(self, prepared: Prepared[Project]) -> float:
        """By the rates of the kernels; other layers than 8-bit matrix products count with their full time."""
        has_kernels = self.runner is CompiledExport and not prepared.result.parameters.portable
        if not (has_kernels and lacks_byte_products(cpu_info("flags"))):
            return 1.0
        graph, now, reduced = prepared.request.graph, 0.0, 0.0
        for layer in prepared.result.layers:
            macs = layer_macs(graph, layer.node)
            panels = layer.code.selection.panels if layer.code else None
            sums = None if panels is None else panels.facts.get("ByteSums")
            now += macs * (1.0 if sums is None else PRODUCT_TIMES[min(sums, 2)])
            reduced += macs * (1.0 if sums is None else PRODUCT_TIMES[2])
        return now / reduced if reduced else 1.0

    def check_tunable(self, parameters: Mapping[str, Any]) -> None:
        if not self.layer_parameters.keys:
            super().check_tunable(parameters)
        if self.parameter_type.of(parameters).runtime_dispatch:
            raise N2D2Error("E808", "-tune is not supported with RuntimeDispatch", remedy="remove -tune or RuntimeDispatch")

    def tune(
        self, prepared: Prepared[Project], folder: Path, kernels: Sequence[KernelChoice], rounds: int, command: str
    ) -> ExportRequest:
        request, tiled = prepared.request, {choice.layer for choice in kernels if choice.tiles}
        tiles = tune_export(folder, list(request.memory_plan.order), tiled, rounds, command)
        return replace(request, layer_parameters=with_tiles(request.layer_parameters, tiles))


def _rank_problem(tensor: str, shape: Shape) -> N2D2Error:
    rank = f"{len(shape)} ({dims_text(shape)})"
    what = f"tensor '{tensor}' has rank {rank}, which the C++ export does not support"
    return N2D2Error("E703", what, remedy="use tensors with channels, height and width")


def _chosen(layer: LayerView) -> KernelChoice:
    code = layer.code
    if code is None:
        return KernelChoice(layer.node.name, "none", reason="its output is a view of its input")
    selection, kernel, used = code.selection, code.selection.kernel, ", ".join(code.winograd_sets)
    reason = f"{selection.reason}; {code.sum} is in its epilogue" if code.sum else selection.reason
    name = f"Winograd ({used}), else {kernel.name}" if used else kernel.name or "portable"
    choice = KernelChoice(layer.node.name, name, kernel.sets if kernel.name else (), reason, kernel.tiled)
    if (storage := selection.storage) is None:
        return choice
    return replace(choice, weight_bits=storage.bits, weight_bytes=code.weight_bytes, prepacked_bytes=storage.kept)


def _section_bytes(array: Array, weights_format: str) -> int:
    """Return the bytes of an array with what fills up its alignment; a string ends with a zero."""
    forms = [array.values, *(form.values for form in array.forms)]
    size = max(values.nbytes + is_string(values, weights_format) * values.itemsize for values in forms)
    return round_up(size, _ALIGNMENT)


def _check_weights_file(own: CppParameters, codes: Mapping[str, LayerCode]) -> None:
    if own.runtime_dispatch:
        what = "WeightsFile=1 and RuntimeDispatch=1 exclude each other, as they require different orders of the weights"
        raise N2D2Error("E705", what, remedy="remove one of them")
    if not any(array.apart for code in codes.values() for array in code.with_weights_apart().arrays):
        what = "WeightsFile=1 has nothing to store, as no layer has separate weights"
        raise N2D2Error("E705", what, remedy="remove WeightsFile")


_TILED = "remove it; tiles apply to convolutions and transposed convolutions with SIMD kernels"
_DIRECT = "remove it; direct convolution is as fast with dot-product instructions"
_WINOGRAD = "remove it; Winograd applies to 8-bit 3x3 convolutions with stride 1"


def _tile_problems(request: ExportRequest, is_portable: bool, codes: Mapping[str, LayerCode]) -> list[N2D2Error]:
    owners = {name: node for node in request.graph.nodes for name in (*node.source, node.name)}
    problems = []
    for layer, parameters in request.layer_parameters.items():
        tile, node, why = parameters.get("Tile"), owners.get(layer), ""
        if tile is None:
            continue
        remedy, code = _TILED, codes.get(node.name) if node else None
        try:
            tile_constants(tile)
        except ValueError as problem:
            why, remedy = str(problem), "copy the value from the output of -tune, or remove it"
        if node and not why and layer != node.name:
            why = f"it is part of the layer '{node.name}', which can have a tile"
        elif node and not why and node.name in request.memory_plan.views:
            why = "the layer runs no kernel"
        elif code and not why:
            why, remedy = _tile_problem(tile, code.portable() if is_portable else code)
        if why:
            problems.append(N2D2Error("E705", f"Tile={tile[:60]} of [{layer}] is not valid: {why}", remedy=remedy))
    return problems


def _tile_problem(tile: str, code: LayerCode) -> tuple[str, str]:
    """Return why the kernels of a layer cannot have a tile, "" if they can, and a remedy."""
    reason = code.selection.reason
    if not code.selection.kernel.tiled:
        return f"the layer has no tiles ({reason})", _TILED
    possible = code.winograd.possible if code.winograd is not None else ()
    if all(one in possible for one, is_wanted in winograd_choices(tile).items() if is_wanted):
        return "", ""
    if possible:
        return f"the layer has a Winograd form for {', '.join(possible)} only", _DIRECT
    return f"the layer has no Winograd form ({reason})", _WINOGRAD


register(CppTarget())
