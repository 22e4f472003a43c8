"""Times weights of 4 bits against bytes, for an instruction set without a dot product of bytes, as Markdown tables.

    python benchmarks/low_bits_speed.py [-march haswell] [-rounds N] [-kinds 1x1,3x3,depthwise,fc]
                                        [-widths 8,...] [-size 16] [-forms int8,full,w4a8,w4a4] [NETWORK ... | all]

Forms of the same layers: `int8`, bytes with -wt-reduce-range, to which the others are compared; `full`, bytes without it; `w4a8`, weights of 4 bits packed in the flash, activations of 8
bits; `w4a4`, both of 4 bits, activations a byte each in the memory (QWeight, QAct). Without networks: single layers, one after the
other in a network with random weights, timed by `run_export -profile`; a layer has as many outputs as inputs, -size x -size pixels. With
names of tests/networks: whole networks, int8 and w4a8 (-wt-bits 4; layers that -wt-bits leaves at 8 bits have a reduced range too).

All forms are built for -march, run in turns on one thread, and each turn takes the median of its inferences. A ratio is the median over the
rounds of int8 / form: above 1 the form is faster.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
from functools import partial
from pathlib import Path

from common import MOMENT, ROOT, bench, build, export_words, header, in_turns, machine, ratio, row, run_export, run_tool
from latency import instructions

NETWORKS = ("resnet8", "vww_96", "kws_dscnn", "mobilenet_v1")
"""Networks of tests/networks."""
KINDS = {"1x1": 1, "3x3": 3, "depthwise": 3, "fc": 0}
"""Sides of the windows; 0: fully connected."""
_HEAD = """[database]
Type=Random_Database
NbStimuli=16

[sp]
Size={size} {size} {inputs}
BatchSize=8
"""
_SECTIONS = {
    "int8": "ActivationFunction=Rectifier\n",
    "full": "ActivationFunction=Rectifier\n",
    "w4a8": "ActivationFunction=Rectifier\nQuantWeightBits=4\n",
    "w4a4": "ActivationFunction=Linear\nQWeight=SAT\nQWeight.Range=15\nQWeight.ApplyScaling=1\nQAct=SAT\nQAct.Range=15\nQAct.Alpha=1.5\n",
}


def layer(name: str, kind: str, source: str, outputs: int, form: str) -> str:
    """A section."""
    side = KINDS[kind]
    shape = f"Type=Conv\nKernelDims={side} {side}\nPadding={side // 2}\n" if side else "Type=Fc\n"
    groups = f"Mapping.NbGroups={outputs}\n" if kind == "depthwise" else ""
    return f"\n[{name}]\nInput={source}\nNbOutputs={outputs}\nWeightsFiller=HeFiller\n{shape}{groups}{_SECTIONS[form]}"


def layers(kinds: list[str], widths: list[int], form: str, size: int = 16) -> tuple[str, list[str]]:
    """An INI with a layer of each kind for each width, and the names of those that are measured."""
    dense = kinds == ["fc"]
    text, source, names = _HEAD.format(size=1 if dense else size, inputs=widths[0]), "sp", []
    for width in widths:
        text += layer(f"to_{width}", "fc" if dense else "1x1", source, width, form)
        source = f"to_{width}"
        for kind in kinds:
            name = f"{kind}_{width}"
            text += layer(name, kind, source, width, form)
            source = name
            names.append(name)
    return f"{text}\n[{source}.Target]\n", names


def export(network: Path, form: str, march: str, folder: Path) -> Path:
    """The built export of a network; `folder` is made."""
    drawn = network.parent == folder.parent
    options = "-nbbits 8 -calib 16 -db-export 1" + (" -wt-bits 4" if form == "w4a8" and not drawn else "")
    options += {"w4a4": "", "full": " -wt-rounding nearest"}.get(form, " -wt-rounding nearest -wt-reduce-range")
    run_tool(export_words(network, folder, options))
    return build(folder / "export_CPP_int8", f"ARCH=-march={march}", "OPENMP=0")


def profile(folder: Path, names: list[str], count: int) -> dict[str, float]:
    """Microseconds of some layers, each the median of `count` inferences."""
    text = run_export(folder, "-profile", str(count))
    found = {line.split()[0]: float(line.split()[2]) for line in text.splitlines() if re.match(r"\S+_\d+ ", line)}
    return {name: found[name] for name in names}


def measure_layers(kinds: list[str], arguments: argparse.Namespace) -> None:
    """Prints the lines of single layers."""
    with tempfile.TemporaryDirectory() as name:
        folders, names = {}, []
        for form in arguments.forms:
            network = Path(name) / f"{form}.ini"
            text, names = layers(kinds, arguments.widths, form, arguments.size)
            network.write_text(text)
            folders[form] = export(network, form, arguments.march, Path(name) / form)
        turns = in_turns({form: partial(profile, folder, names, 30) for form, folder in folders.items()}, arguments.rounds)
        for one in names:
            times = {form: [turn[one] for turn in turns[form]] for form in folders}
            print_row(one.replace("_", ", "), times, "us")


def print_row(name: str, times: dict[str, list[float]], unit: str, *more: str) -> None:
    first = times["int8"]
    ratios = [f"{ratio(first, other):.2f}" for form, other in times.items() if form != "int8"]
    row(name, f"{statistics.median(first):.2f} {unit}", *ratios, *more)


def measure_network(network: Path, arguments: argparse.Namespace) -> None:
    """Prints the line of a whole network: times and instructions."""
    with tempfile.TemporaryDirectory() as name:
        folders = {form: export(network, form, arguments.march, Path(name) / form) for form in ("int8", "w4a8")}
        count = max(5, int(MOMENT / bench(folders["int8"], 1, 5)))
        works = {form: lambda folder=folder: 1e6 * bench(folder, 1, count) for form, folder in folders.items()}
        times = in_turns(works, arguments.rounds)
        counts = [instructions(folder) for folder in folders.values()]
        print_row(network.stem, times, "us", *([] if None in counts else [f"{counts[0] / counts[1]:.2f}"]))


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", help="networks of tests/networks, or `all`")
    parser.add_argument("-march", default="haswell")
    parser.add_argument("-rounds", type=int, default=9)
    parser.add_argument("-kinds", default=",".join(KINDS), type=lambda text: text.split(","))
    parser.add_argument("-widths", default="8,16,32,64,128,256", type=lambda text: [int(one) for one in text.split(",")])
    parser.add_argument("-size", type=int, default=16)
    parser.add_argument("-forms", default="int8,full,w4a8,w4a4", type=lambda text: text.split(","))
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    print(f"Machine: {machine()}; -march={chosen.march}.\n")
    if chosen.networks:
        header("network", "int8", "int8 / w4a8", "instructions, int8 / w4a8")
        for name in NETWORKS if chosen.networks == ["all"] else chosen.networks:
            measure_network(ROOT / "tests" / "networks" / f"{name}.ini", chosen)
        return
    header("layer", "int8", *(f"int8 / {form}" for form in chosen.forms[1:]))
    for kinds in ([kind for kind in chosen.kinds if kind != "fc"], ["fc"] if "fc" in chosen.kinds else []):
        if kinds:
            measure_layers(kinds, chosen)


if __name__ == "__main__":
    main()
