"""Times networks of the zoo in int8: export, build, every layer's integers, time of each kind of layer, other runtimes.

    python benchmarks/zoo/speed.py [-o FOLDER] [-size N] [-exporter NAME] [-rounds N] [-threads N] [-peers PYTHON]
                                   [-peer-kinds] [-layers N] [NETWORK or FILE.onnx ...]

Each network is exported with 8 stimuli for calibration and built; every layer of it is compared with Python's integers on
2 stimuli; `bin/run_export -profile` gives the least time of each layer. The peers (ONNX Runtime, OpenVINO: benchmarks/latency.py)
run what onnxruntime.quantization makes of the same file (QDQ, int8, weights per channel); a ratio is the median over
rounds of peer / export in the same round, one thread unless -threads says otherwise. PYTHON is an interpreter that has the peers.
-peer-kinds prints OpenVINO's time by kind of layer too, -layers the N slowest layers of the export. FOLDER (zoo_speed) keeps the
ONNX files and exports; what is there is not made again. -size: height and width of the input, that of the zoo otherwise.
The last table printed is that of docs/lab/networks.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from common import build, machine, row, run_export  # noqa: E402
from latency import rows  # noqa: E402
from measure import export_calibrated, first_difference, images, static_twin  # noqa: E402
from networks import NETWORKS  # noqa: E402

import n2d2py  # noqa: E402
from n2d2py import log  # noqa: E402

PROFILED = 60
"""Inferences of which the least time of each layer is taken."""

_LINE = re.compile(
    r"^(?P<layer>\S.*?)\s+(?P<operation>[A-Z]\w*)\s+[\d.]+\s+[\d.]+%\s+(?P<least>[\d.]+)\s+(?P<macs>[\d.]+)\s+(?P<bytes>[\d.]+)\s"
)


@dataclass
class Layer:
    """One line of the profile: least time in us, G multiply-accumulates and gigabytes a second."""

    name: str
    kind: str
    us: float
    macs: float
    bytes: float


@dataclass
class Speed:
    """One network: whether every layer is Python's bit for bit, the layers, and the rows of benchmarks/latency.py."""

    network: str
    size: int
    first_difference: str = ""
    layers: list[Layer] = field(default_factory=list)
    peers: list[list[str]] = field(default_factory=list)

    def kinds(self) -> list[tuple[str, float, float]]:
        """(kind, us, share of the network), the slowest first."""
        sums: dict[str, float] = defaultdict(float)
        for layer in self.layers:
            sums[layer.kind] += layer.us
        whole = sum(sums.values())
        return sorted(((kind, us, us / whole) for kind, us in sums.items()), key=lambda item: -item[1])


def prepare(network: str, size: int, exporter: str, folder: Path) -> Path:
    """The export of a network, built in `folder`; the stimuli of the calibration beside it."""
    source = folder / f"{network}.onnx"
    if not source.is_file():
        from files import write

        write(network, exporter, source, size)
    built = folder / "export_CPP_int8"
    if not (built / "bin" / "run_export").is_file():
        export_calibrated(source, folder, size, 8, 2)
        build(built, "all", "lib")
    return built


def profile(built: Path, threads: int) -> list[Layer]:
    """The layers of a built export with their least times."""
    printed = run_export(built, "-profile", str(PROFILED), threads=threads)
    with open(built / "statistics" / "layers.csv", newline="") as file:
        kinds = {row["name"]: _kind(row) for row in csv.DictReader(file)}
    found = [match for line in printed.splitlines() if (match := _LINE.match(line))]
    return [
        Layer(m["layer"], kinds.get(m["layer"], m["operation"]), float(m["least"]), float(m["macs"]), float(m["bytes"]))
        for m in found
    ]


def _kind(row: dict[str, str]) -> str:
    """Such as `Conv 3x3 stride 2`, of a line of layers.csv."""
    words = [row["type"]]
    if row["kernel"]:
        whole = row["type"].startswith("Pool") and row["kernel"] == "x".join(row["input_dims"].split("x")[:2])
        words.append("global" if whole else row["kernel"])
        if row["stride"] not in ("", "1x1"):
            words.append("stride " + row["stride"].split("x")[0])
        if row["dilation"] not in ("", "1x1"):
            words.append("dilated")
        if row["type"] == "Conv" and row["groups"] not in ("", "1"):
            words.append("in groups")
    return " ".join(words)


def peer_kinds(python: str, twin: Path, threads: int) -> dict[str, float]:
    """OpenVINO's microseconds for each kind of layer, empty where it does not run."""
    script = Path(__file__).with_name("openvino_kinds.py")
    done = subprocess.run([python, str(script), str(twin), str(threads)], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def line(speed: Speed) -> list[str]:
    """The cells of a row of docs/lab/networks.md."""
    whole = sum(layer.us for layer in speed.layers)
    ours = speed.peers[0][4] if speed.peers else f"{whole / 1e3:.3f}"
    peers = {row[2]: f"{row[3]} ({row[5]})" for row in speed.peers}
    slow = ", ".join(f"{kind} {100 * share:.0f} %" for kind, _, share in speed.kinds()[:3])
    return [
        speed.network,
        f"{speed.size}x{speed.size}",
        str(len(speed.layers)),
        "yes" if not speed.first_difference else f"no: {speed.first_difference}",
        ours,
        peers.get("openvino", "-"),
        peers.get("onnxruntime", "-"),
        slow,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("-o", dest="folder", type=Path, default=Path("zoo_speed"))
    parser.add_argument("-size", type=int)
    parser.add_argument("-exporter", default="torchscript")
    parser.add_argument("-rounds", type=int, default=7)
    parser.add_argument("-threads", type=int, default=1)
    parser.add_argument("-peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("-peer-kinds", action="store_true")
    parser.add_argument("-layers", type=int, default=0)
    arguments = parser.parse_args()
    log.setup(quiet=True)
    found = []
    for network in arguments.networks or NETWORKS:
        size = arguments.size or NETWORKS[network].size
        folder = (arguments.folder / f"{network}_{size}").resolve()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            speed = _one(network, size, folder, arguments)
        except Exception as error:  # whatever goes wrong is a finding about this network
            print(f"{network}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        found.append(speed)
        row(*line(speed))
    print(f"\n{machine()}; {arguments.threads} thread(s)\n")
    titles = "network|input|layers|identical|export, ms|OpenVINO, ms (ratio)|ONNX Runtime, ms (ratio)|slowest kinds of layer"
    row(*titles.split("|"))
    print("|---|---|---:|---|---:|---:|---:|---|")
    for speed in found:
        row(*line(speed))


def _one(network: str, size: int, folder: Path, arguments: argparse.Namespace) -> Speed:
    built = prepare(network, size, arguments.exporter, folder)
    difference = first_difference(built, n2d2py.load_simulator(built), images(2, size, 1))
    speed = Speed(network, size, difference, profile(built, arguments.threads))
    for kind, us, share in speed.kinds():
        parts = [layer for layer in speed.layers if layer.kind == kind]
        print(
            f"  {us:9.1f} us {100 * share:5.1f} %  {kind} x{len(parts)}: {min(p.macs for p in parts):.1f} to "
            f"{max(p.macs for p in parts):.1f} GMAC/s, {min(p.bytes for p in parts):.1f} to {max(p.bytes for p in parts):.1f} GB/s"
        )
    for layer in sorted(speed.layers, key=lambda one: -one.us)[: arguments.layers]:
        print(f"  {layer.us:9.1f} us {layer.macs:6.1f} GMAC/s {layer.bytes:5.1f} GB/s  {layer.kind}: {layer.name}")
    twin = folder / "twin.onnx"
    if not twin.is_file():
        static_twin(folder / f"{network}.onnx", twin, size)
    speed.peers = rows(network, built, twin, arguments.peers, arguments.threads, arguments.rounds)
    if arguments.peer_kinds:
        for kind, us in peer_kinds(arguments.peers, twin, arguments.threads).items():
            print(f"  {us:9.1f} us  OpenVINO: {kind}")
    return speed


if __name__ == "__main__":
    main()
