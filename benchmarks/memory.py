"""Static memory of known networks, planned and compiled, beside what other planners need, as Markdown tables.

    python benchmarks/memory.py [-strategies | -depth | -strips | -channels | -compiled] [-rounds N] [-threads N] [NAME ...]

The networks are the int8 graphs of `tests/support/memory_networks.py`; NAME chooses those whose name contains it. Every plan is
proved. Without an option: the table of the modes beside TFLite Micro's greedy planner and N2D2's default, with the seconds
of planning. -strategies: every strategy. -depth: seconds of planning of chains of inverted residuals, up to 2,000
layers. -strips: line by line with the input outside of the arena, and in strips. -channels: what pairs of fully
connected layers would need whose tensor between them is made and read in slices of channels. -compiled: exports of these networks with random weights (of the ONNX files in
N2D2_MODELS and of models/*.ini where they have the same graph), whose layers are compared bit for bit with the integers of
Python; the arena is that of the linker's table, times are ratios to MemoryMode=Speed of the same network, medians over the
rounds, in which the modes take turns.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
from pathlib import Path

from common import ROOT, header, machine, row
from support import memory_networks as networks
from support.memory_strips import with_strips

from n2d2py.memory.checker import check_plan
from n2d2py.memory.problem import MemoryProblem, residual_sums
from n2d2py.memory.rows import KnownRows
from n2d2py.memory.settings import MODES, Settings
from n2d2py.memory.strategies import plan_memory, plan_strips
from n2d2py.memory.strip_search import StripSearch
from n2d2py.stages.memory import smaller_plan

NETWORKS = {
    "resnet8 32": networks.resnet8,
    "vww MobileNetV1 0.25 96": networks.vww,
    "kws DS-CNN 49x10": networks.ds_cnn,
    "MobileNetV1 0.25 128": lambda: networks.mobilenet_v1(0.25, 128),
    "MobileNetV2 0.35 224": lambda: networks.mobilenet_v2(0.35, 224),
    "MobileNetV2 1.0 224": lambda: networks.mobilenet_v2(1.0, 224),
    "ResNet-18 224": networks.resnet18,
    "ResNet-50 224": networks.resnet50,
    "SqueezeNet 1.1 224": networks.squeezenet11,
    "GoogLeNet 224": networks.googlenet,
    "DenseNet-121 224": networks.densenet121,
    "U-Net small 128": networks.unet,
    "tiny YOLO v2 224": networks.tiny_yolo_v2,
    "AD autoencoder": networks.autoencoder,
    "MobileNetV1 0.25 224": lambda: networks.mobilenet_v1(0.25, 224),
    "MobileNetV1 1.0 224": lambda: networks.mobilenet_v1(1.0, 224),
}
STREAMED_INPUT = list(NETWORKS)[:6]
"""Networks that are also compiled with StreamInput=1."""

STRIPPED = {
    "vww MobileNetV1 0.25 96": networks.vww,
    "MobileNetV2 0.35 144": lambda: networks.mobilenet_v2(0.35, 144),
    "the same, channels rounded down": lambda: networks.mobilenet_v2(0.35, 144, rounds_down=True),
    "MobileNetV2 1.0 224": lambda: networks.mobilenet_v2(1.0, 224),
    "MobileNetV1 1.0 224": lambda: networks.mobilenet_v1(1.0, 224),
    "ResNet-18 224": networks.resnet18,
    "MCUNet 320 KB 176": networks.mcunet_320k,
}
CONNECTED = {
    "AD autoencoder": networks.autoencoder,
    "784-512-512-10": lambda: connected(784, 512, 512, 10),
    "784-256-128-10": lambda: connected(784, 256, 128, 10),
    "128-1024-128": lambda: connected(128, 1024, 128),
    "64-1024-16": lambda: connected(64, 1024, 16),
}
STRIP_EXTRA = (3, 6, 20, 40)
"""Per cent of the multiply-accumulates that may be done twice."""

FILES = {
    "resnet8 32": "tests/networks/resnet8.ini",
    "vww MobileNetV1 0.25 96": "tests/networks/vww_96.ini",
    "kws DS-CNN 49x10": "tests/networks/kws_dscnn.ini",
    "MobileNetV1 0.25 128": "models/MobileNet_v1.ini SIZE=128 ALPHA=0.25",
    "MobileNetV2 1.0 224": "tests/networks/mobilenet_v2.ini",
    "GoogLeNet 224": "models/GoogLeNet.ini",
    "DenseNet-121 224": "models/DenseNet.ini",
}
"""Where a network is read from for -compiled; the others are written with random weights."""


def tflite_micro(problem: MemoryProblem) -> int:
    """The arena of TFLite Micro's greedy planner: buffers by falling size, each at the lowest gap, 16-byte aligned."""
    first = dict.fromkeys(problem.inputs, -1)
    last = {name: len(problem.ops) for name in problem.outputs}
    alias: dict[str, str] = {}
    for clock, op in enumerate(problem.ops):
        for name in op.inputs:
            name = alias.get(name, name)
            last[name] = max(last.get(name, clock), clock)
        if op.name in problem.views:
            alias[op.output] = alias.get(op.inputs[0], op.inputs[0])
        else:
            first[op.output] = clock
    placed: list[tuple[int, int, str]] = []
    sizes = {name: -(-problem.tensors[name].bytes // 16) * 16 for name in first}
    for name in sorted(reversed(first), key=lambda name: -sizes[name]):  # noqa: C414  the order of equals is turned
        offset = 0
        for begin, end, other in sorted(placed):
            if first[other] <= last.get(name, first[name]) and first[name] <= last.get(other, first[other]):
                if offset + sizes[name] <= begin:
                    break
                offset = max(offset, end)
        placed.append((offset, offset + sizes[name], name))
    return max(end for _, end, _ in placed)


def modes() -> dict:
    """Title -> function from a problem to a plan."""
    return {
        "N2D2 default": lambda p: plan_memory(p, strategy=networks.N2D2),
        "Balanced": lambda p: plan_memory(p, mode="Balanced"),
        "Small": lambda p: plan_memory(p, mode="Small"),
        "StreamInput=1": lambda p: plan_memory(p, mode="Small", stream_input=True),
    }


def every_strategy() -> dict:
    """Title -> function from a problem to a plan."""
    names = {
        "OptimizeMaxLifetimeMinSizeFirst": "...MinSizeFirst",
        "OptimizeMaxLifetimeMaxSizeFirst": "...MaxSizeFirst",
        "OptimizeMaxHoleMaxLifetimeFirst": "...MaxHole...",
    }
    names = {"None": "None", **names, **{name: name for name in ("OptimizeAuto", "OptimizeOverlap", "OptimizeStream")}}
    made = {f"`{title}`": (lambda p, name=name: plan_memory(p, strategy=name)) for name, title in names.items()}
    return {**made, "the same, `StreamInput=1`": modes()["StreamInput=1"]}


SUMS = ("Balanced", "`OptimizeOverlap`")
"""The columns whose plans have sums in convolutions, as exports do."""


def cell(problem: MemoryProblem, make, sums: bool) -> str:
    """Arena and planning time of one plan, in seconds of the processor.

    Raises:
        SystemExit: when the checker objects to the plan.
    """
    start = time.process_time()
    if sums:
        problem, plan = smaller_plan(problem, networks.with_sums(problem, residual_sums(problem)), make)
    else:
        plan = make(problem)
    seconds = time.process_time() - start
    faults = check_plan(problem, plan)
    if faults:
        raise SystemExit(f"not proved: {faults[0]}")
    return f"{plan.arena_bytes:,} ({seconds:.2f})"


def planned(chosen: list[str], columns: dict, peer: bool) -> None:
    """Prints a table of plans."""
    titles = ["network", "all tensors", *(["TFLite Micro"] if peer else []), *columns]
    print(f"Machine: {machine()}. Bytes (seconds of planning); every plan is proved.\n")
    header(*titles)
    for name in chosen:
        problem = NETWORKS[name]()
        cells = [f"{sum(t.bytes for t in problem.tensors.values()):,}"]
        cells += [f"{tflite_micro(problem):,}"] if peer else []
        row(name, *cells, *(cell(problem, make, title in SUMS) for title, make in columns.items()))


def inverted_residuals(blocks: int) -> MemoryProblem:
    """64 x 64 x 8, and blocks of 16 -> 48 -> 48 -> 16 channels with a sum, two of them with a stride of 2."""
    net = networks.Net(64, 64, 8)
    x = net.conv(net.input, 16, 3)
    for block in range(blocks):
        stride = 2 if block in (blocks // 4, blocks // 2) else 1
        y = net.conv(net.dw(net.conv(x, 48, 1), 3, stride), 16, 1)
        x = net.add(x, y) if stride == 1 else y
    net.fc(net.global_pool(x), 10)
    return net.done()


def deeper_and_deeper() -> None:
    """Prints the table of chains."""
    columns = {mode: (lambda p, mode=mode: plan_memory(p, mode=mode)) for mode in MODES}
    print(f"Machine: {machine()}. Bytes (seconds of planning); every plan is proved.\n")
    header(*["layers", *columns])
    for blocks in (31, 62, 125, 250, 500):
        problem = inverted_residuals(blocks)
        row(f"{len(problem.ops):,}", *(cell(problem, make, False) for make in columns.values()))


def in_strips() -> None:
    """Prints the table of strips: the smallest plan for each share of work that may be done twice."""
    print(
        f"Machine: {machine()}. Bytes of the arena (per cent more multiply-accumulates), the input outside of it, offsets multiples of 4; "
        "every plan is proved.\n"
    )
    header(*["network", "line by line", *(f"{most} %" for most in STRIP_EXTRA), "seconds"])
    settings = Settings(include_input=False, clock="op", buffer_alignment=4, mode="Small")
    for name, make in STRIPPED.items():
        problem, start = make(), time.process_time()
        search, known, cells = StripSearch(problem, settings), KnownRows(), []
        for most in (0, *STRIP_EXTRA):
            best = None
            points = search.curve(search.work * most // 100)[-3:]
            for point in [*points, *(search.other_widths(points[-1]) if points[-1].cuts else [])]:
                narrow = with_strips(problem, point.cuts)
                plan = plan_strips(narrow, settings, best[0] if best else None, known)
                if plan is None:
                    continue
                assert not check_plan(narrow, plan)
                found = plan.arena_bytes, point.repeated_work / search.work
                best = min(best or found, found)
            cells.append(best)
        texts = [f"{size:,} ({extra:.1%})" if extra else f"{size:,}" for size, extra in cells]
        row(name, *texts, f"{time.process_time() - start:.1f}")


def connected(*channels: int) -> MemoryProblem:
    """A chain of fully connected layers."""
    net = networks.Net(1, 1, channels[0])
    x = net.input
    for count in channels[1:]:
        x = net.fc(x, count)
    return net.done()


def in_channels() -> None:
    """Prints the table of pairs in slices of channels. Of a pair x -> y -> z a slice of one channel of y is in memory, and the sums of z
    with 4 bytes each, since a sum goes on from slice to slice. The bound is the least over all choices of pairs, with nothing beside
    these tensors: an arena with slices is not smaller.
    """
    print("Bytes of the arena, and the least that pairs in slices of channels could need.\n")
    header(*["network", "Minimum", "bound with slices", "layers of the bound"])
    for name, problem in CONNECTED.items():
        made = problem()
        sizes = [made.tensors[tensor].bytes for tensor in (made.inputs[0], *(op.output for op in made.ops))]
        best = [(0, ())] + [(sizes[0] + sizes[1], (1,))] * (len(sizes) > 1)
        for end in range(2, len(sizes)):
            alone = max(best[end - 1][0], sizes[end - 1] + sizes[end]), (*best[end - 1][1], 1)
            pair = max(best[end - 2][0], sizes[end - 2] + 1 + 4 * sizes[end]), (*best[end - 2][1], 2)
            best.append(min(alone, pair, key=lambda found: found[0]))
        arena = plan_memory(made, buffer_alignment=1, mode="Minimum").arena_bytes
        row(name, f"{arena:,}", f"{best[-1][0]:,}", " ".join(map(str, best[-1][1])))


def compiled(chosen: list[str], rounds: int, threads: int) -> None:
    """Prints the table of compiled exports."""
    from memory_exports import MODES as COMPILED
    from memory_exports import measure

    print(
        f"Machine: {machine()}. Bytes of the arena by the linker; every layer bit-exact; {threads} thread"
        f"{'s' if threads > 1 else ''}, medians of {rounds} rounds.\n"
    )
    ratios = [f"{mode} / Speed" for mode in list(COMPILED)[1:]]
    header(*["network", "TFLite Micro", "N2D2 default", *COMPILED, "ms, Speed", *ratios])
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            used = [mode for mode in COMPILED if name in STREAMED_INPUT or mode != "StreamInput=1"]
            found = measure(network_file(name, Path(folder)), used, rounds, threads, Path(folder))
        others = [f"{tflite_micro(found.problem):,}", f"{plan_memory(found.problem, strategy=networks.N2D2).arena_bytes:,}"]
        arenas = [f"{found.arenas[mode]:,}" if mode in used else "" for mode in COMPILED]
        ratios = [f"{found.ratios[mode]:.3f}" if mode in used else "" for mode in list(COMPILED)[1:]]
        row(name, *others, *arenas, f"{found.milliseconds:.2f}", *ratios)


def network_file(name: str, folder: Path) -> Path:
    """The INI file of a network: the repository's, a copy with other macros, or one with random weights."""
    path, *macros = FILES.get(name, "").split() or [""]
    if path and (path.startswith("models") or {"N2D2_DATA", "N2D2_MODELS"} <= set(os.environ)):
        if not macros:
            return ROOT / path
        text = (ROOT / path).read_text()
        for macro in macros:
            key, value = macro.split("=")
            text = re.sub(rf"(?m)^\${key}=[^\s;]+", f"${key}={value}", text)
        text = re.sub(r"@(\w+\.ini\.tpl)\]", lambda found: f"@{ROOT / 'models' / found[1]}]", text)
        copy = folder / Path(path).name
        copy.write_text(text)
        return copy
    from random_onnx import write_network

    return write_network(NETWORKS[name](), folder, re.sub(r"\W+", "_", name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    for table in ("strategies", "depth", "strips", "channels", "compiled"):
        parser.add_argument(f"-{table}", action="store_true")
    parser.add_argument("-rounds", type=int, default=11)
    parser.add_argument("-threads", type=int, default=1)
    arguments = parser.parse_args()
    chosen = [name for name in NETWORKS if not arguments.names or any(part in name for part in arguments.names)]
    if arguments.compiled:
        compiled(chosen, arguments.rounds, arguments.threads)
    elif arguments.strips:
        in_strips()
    elif arguments.channels:
        in_channels()
    elif arguments.depth:
        deeper_and_deeper()
    elif arguments.strategies:
        planned(chosen, every_strategy(), False)
    else:
        planned(chosen, modes(), True)


if __name__ == "__main__":
    main()
