"""Takes networks of torchvision and timm, and heads of detectors, through the tool, and writes what came of each as a page.

    python benchmarks/zoo [-o FOLDER] [-exporter NAME]... [-steps LETTERS] [-page FILE] [-only-page] [NETWORK ...]

Needs PyTorch, torchvision, timm and onnxruntime. FOLDER (zoo_files) keeps the ONNX files and the findings, so that steps can be
run one after the other: p NumPy's float reference, f the compiled float export, i int8 in Python, c int8 compiled, w 16 bits
in Python, q ONNX Runtime's static quantization; import and the float engine always. The section "Speed" of the page is kept.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from common import machine  # noqa: E402
from files import EXPORTERS, write  # noqa: E402
from measure import Row, measure  # noqa: E402
from networks import NETWORKS  # noqa: E402
from page import page  # noqa: E402


def missing() -> list[str]:
    """The packages that are not installed."""
    return [
        name for name in ("torch", "torchvision", "timm", "onnxruntime", "onnxscript") if importlib.util.find_spec(name) is None
    ]


def findings(folder: Path, network: str, exporter: str) -> Row | None:
    """What was found so far about a file, None before anything was."""
    path = folder / f"{network}.{exporter}.json"
    return Row(**json.loads(path.read_text())) if path.is_file() else None


def merged(before: Row | None, now: Row) -> Row:
    """The new findings, completed by those of earlier steps."""
    if before is None or now.refused or now.failure:
        return now
    empty = Row(now.network, now.exporter)
    if now.layers:
        before = replace(before, islands=now.islands, first_difference=now.first_difference)
    kept = {name: value for name, value in asdict(before).items() if getattr(now, name) == getattr(empty, name)}
    return Row(**{**asdict(now), **kept, "failure": "", "seconds": before.seconds + now.seconds})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("-o", dest="folder", type=Path, default=Path("zoo_files"))
    parser.add_argument("-exporter", action="append", choices=EXPORTERS)
    parser.add_argument("-steps", default="pic")
    parser.add_argument("-page", type=Path)
    parser.add_argument("-only-page", action="store_true", help="from the findings that are there")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.networks if name not in NETWORKS]
    if unknown:
        raise SystemExit(f"no network is called {', '.join(unknown)}")
    if absent := missing():
        raise SystemExit(f"the zoo is not run: {', '.join(absent)} not installed")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for network in () if arguments.only_page else arguments.networks or NETWORKS:
        for exporter in arguments.exporter or EXPORTERS:
            _one(arguments.folder, network, exporter, arguments.steps)
    if arguments.page:
        rows = [
            row
            for network in NETWORKS
            for exporter in EXPORTERS
            if (row := findings(arguments.folder, network, exporter)) is not None
        ]
        arguments.page.write_text(page(rows, machine()) + _speed(arguments.page))


def _speed(path: Path) -> str:
    """What the page says about speed, which speed.py measures."""
    _before, mark, after = path.read_text().partition("\n## Speed\n") if path.is_file() else ("", "", "")
    return mark + after


def _one(folder: Path, network: str, exporter: str, steps: str) -> None:
    path = folder / f"{network}.{exporter}.onnx"
    if not path.is_file():
        try:
            write(network, exporter, path)
        except Exception as error:  # an exporter that cannot write a network is a finding about the exporter
            print(f"{network}: {exporter} cannot export it: {str(error).strip().splitlines()[-1:]}", flush=True)
            return
    row = merged(findings(folder, network, exporter), measure(path, network, exporter, NETWORKS[network].size, steps))
    (folder / f"{network}.{exporter}.json").write_text(json.dumps(asdict(row)))
    print(json.dumps({name: value for name, value in asdict(row).items() if value not in (None, "", [], 0)}), flush=True)


if __name__ == "__main__":
    main()
