"""Compares the exports of two checkouts: instructions and time of one inference, integers. Prints a Markdown table.

    python benchmarks/guard.py BASE [HEAD] [-networks NET.ini ...] [-march NAME] [-rounds N]

BASE and HEAD are folders of checkouts or git revisions of this repository; without HEAD: this checkout as it is. Both export the same
networks, those of NETWORKS below or those given, with the same options. Each export is built by `make` for `-march` (x86-64-v3, or
the best older level that the processor has: valgrind knows no AVX-512 and no AMX) and counted by callgrind on one thread, which is
independent of other load: the instructions of two inferences less those of one, collected within NAME_forward_raw only, are the
same in every run.

Times are those of the fastest inference of a moment, in turns; the ratio is the median over the rounds, and says less on a busy machine, so
only instructions decide. `-rounds 0` leaves them out: the table is then the same in every run.
`integers` compares the stored outputs of some stimuli, `sources` the code and constants of the two exports.

Status: 0; 1 when HEAD needs over 2 % more instructions for a network, or makes no export of one of which BASE makes one; 2 when nothing could be
compared. What became faster, and times that changed by more than 2 %, are said too.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from common import MOMENT, ROOT, bench, export_words, machine, row
from latency import instructions

LIMIT = 0.02
"""The share of the instructions, or of the time, from which on a change counts."""
NETWORKS = [
    f"models/{name}.ini" for name in "LeNet DSCNN Autoencoder MobileNet MobileNet_v1 MobileNet_v2 SqueezeNet ResNet-18".split()
]
SHARED = ["models/LeNet.ini", "models/ResNet-18.ini"] + [
    f"tests/networks/{name}.ini" for name in "ad_autoencoder kws_dscnn mobilenet_v1 mobilenet_v2 resnet8 vww_96".split()
]
"""Those with N2D2_MODELS and N2D2_DATA."""
LEVELS = {"x86-64-v3": {"avx2", "fma", "bmi2"}, "x86-64-v2": {"sse4_1", "ssse3", "popcnt"}, "x86-64": set()}
"""Levels of x86-64 that valgrind runs, best first, and flags of /proc/cpuinfo by which a processor has them."""


@dataclass(frozen=True)
class Side:
    """One of the two checkouts: its name in the table and its folder."""

    name: str
    folder: Path

    def python(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
        """Runs this Python with the package of the checkout."""
        environment = {key: value for key, value in os.environ.items() if key != "N2D2PY_DATA"}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env={**environment, "PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
        )


@dataclass(frozen=True)
class Row:
    """What one network needs in both checkouts; None: no export of it."""

    network: str
    counts: tuple[int | None, int | None]
    time: float | None = None
    """Time of HEAD / time of BASE."""
    integers: bool | None = None
    """Whether both give the same outputs."""
    sources: bool | None = None
    """Whether code and constants of the exports are the same."""

    @property
    def change(self) -> float | None:
        """The instructions of HEAD / those of BASE, less 1."""
        base, head = self.counts
        return None if base is None or head is None else head / base - 1

    @property
    def verdict(self) -> str:
        base, head = self.counts
        if base is None or head is None:
            return "not compared" if base is None else "no export any more"
        if abs(head - base) <= LIMIT * base:
            return "same"
        return "slower" if head > base else "faster"

    @property
    def failed(self) -> bool:
        return self.verdict in ("slower", "no export any more")

    def cells(self) -> list[str]:
        yes = {None: "-", True: "same", False: "differ"}
        return [
            self.network,
            *("-" if count is None else f"{count:,}" for count in self.counts),
            "-" if self.change is None else f"{100 * self.change:+.2f} %",
            "-" if self.time is None else f"{100 * (self.time - 1):+.1f} %",
            yes[self.integers],
            yes[self.sources],
            self.verdict,
        ]

    def remarks(self) -> list[str]:
        """What changed by more than LIMIT, in sentences."""
        said = []
        if self.verdict == "no export any more":
            said.append(f"{self.network}: HEAD makes no export that builds, BASE does.")
        elif self.change is None:
            said.append(f"{self.network}: BASE makes no export that builds.")
        if self.change is not None and self.verdict != "same":
            said.append(f"{self.network} is {self.verdict}: {100 * self.change:+.2f} % instructions.")
        if self.time is not None and abs(self.time - 1) > LIMIT:
            said.append(f"{self.network}: time changed by {100 * (self.time - 1):+.1f} %.")
        if self.integers is False:
            said.append(f"{self.network}: the outputs differ.")
        return said


def level() -> str:
    """The best of LEVELS that this processor has; "native" where it is no x86-64."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return "native"
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    flags = set(next((line.split(":")[1].split() for line in lines if line.startswith("flags")), []))
    return next(name for name, needed in LEVELS.items() if needed <= flags)


def checkout(given: str, folder: Path) -> Side:
    """A folder as it is, or a revision of this repository, written into `folder`.

    Raises:
        SystemExit: it is neither, or its package is not the one that Python finds there.
    """
    found = Path(given).resolve()
    if not found.is_dir():
        found = folder
        archive = subprocess.run(["git", "archive", given], cwd=ROOT, capture_output=True)
        if archive.returncode:
            stop(f"'{given}' is neither a folder nor a revision of {ROOT.name}")
        found.mkdir()
        subprocess.run(["tar", "-x", "-C", found], input=archive.stdout, check=True)
    side = Side(given, found)
    where = side.python("-c", "import n2d2py; print(n2d2py.__file__)", cwd=found).stdout.strip()
    if Path(where) != found / "n2d2py" / "__init__.py":
        stop(f"'{given}' holds no package n2d2py that Python finds there")
    return side


def stop(reason: str) -> None:
    """Ends the program with status 2."""
    print(f"guard.py: {reason}", file=sys.stderr)
    raise SystemExit(2)


def built(side: Side, network: Path, march: str, folder: Path) -> Path | None:
    """The built export of a network, made by a checkout; None where export or build fails, which is said."""
    folder.mkdir(parents=True)
    words = export_words(network, folder, "-nbbits 8 -calib 4 -quality fast -db-export 4")
    export = folder / "export_CPP_int8"
    done = side.python("-m", "n2d2py", *words, cwd=folder)
    if done.returncode == 0:
        done = subprocess.run(["make", "-s", "-j2", f"ARCH=-march={march}"], cwd=export, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        print(f"guard.py: {network.stem} with {side.name}: {last}", file=sys.stderr)
        return None
    return export


def outputs(export: Path) -> bytes:
    """The stored outputs of all stimuli."""
    to = export.parent / "outputs.bin"
    subprocess.run([export / "bin" / "run_export", "-outputs", to], cwd=export, capture_output=True, check=True)
    return to.read_bytes()


def sources(export: Path) -> dict[str, bytes]:
    """Code and constants of an export by path."""
    folders = ("dnn", "include", "kernels")
    files = sorted(path for name in folders for path in (export / name).rglob("*") if path.is_file())
    return {str(path.relative_to(export)): path.read_bytes() for path in files}


def ratio(base: Path, head: Path, rounds: int) -> float | None:
    """The median over the rounds of time of HEAD / time of BASE on one thread, each the fastest inference of a moment."""
    if rounds == 0:
        return None
    count = max(5, int(MOMENT / bench(base, 1, 5)))
    return statistics.median(bench(head, 1, count) / bench(base, 1, count) for _ in range(rounds))


def compared(network: Path, sides: tuple[Side, Side], march: str, rounds: int, folder: Path) -> Row:
    """The row of one network."""
    base, head = (built(side, network, march, folder / name) for side, name in zip(sides, ("base", "head"), strict=True))
    counts = tuple(None if export is None else instructions(export) for export in (base, head))
    if base is None or head is None:
        return Row(network.stem, counts)
    if None in counts:
        stop(
            f"valgrind is missing, does not run {network.stem} built with -march={march} or finds no function *_forward_raw in it"
        )
    return Row(network.stem, counts, ratio(base, head, rounds), outputs(base) == outputs(head), sources(base) == sources(head))


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("head", nargs="?", default=str(ROOT))
    parser.add_argument("-networks", nargs="+", type=Path)
    parser.add_argument("-march", default=level())
    parser.add_argument("-rounds", type=int, default=7)
    arguments = parser.parse_args(words)
    shared = {"N2D2_MODELS", "N2D2_DATA"} <= set(os.environ)
    networks = arguments.networks or [ROOT / name for name in (SHARED if shared else NETWORKS)]
    missing = [str(network) for network in networks if not network.is_file()]
    if missing:
        stop(f"no file {missing[0]}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sides = checkout(arguments.base, folder / "base"), checkout(arguments.head, folder / "head")
        head = "this checkout" if arguments.head == str(ROOT) else arguments.head
        print(f"Machine: {machine()}; -march={arguments.march}. BASE: {arguments.base}; HEAD: {head}.\n")
        titles = "network | BASE instructions | HEAD instructions | change | time | integers | sources | verdict"
        print(f"| {titles} |\n|---|---:|---:|---:|---:|---|---|---|", flush=True)
        rows = []
        for index, network in enumerate(networks):
            with tempfile.TemporaryDirectory(dir=folder) as work:
                rows.append(compared(network.resolve(), sides, arguments.march, arguments.rounds, Path(work)))
            row(*rows[index].cells())
    remarks = [remark for one in rows for remark in one.remarks()]
    print("\n" + "\n".join(remarks or [f"Nothing changed by more than {100 * LIMIT:.0f} %."]))
    if all(one.change is None and not one.failed for one in rows):
        stop("nothing was compared")
    return int(any(one.failed for one in rows))


if __name__ == "__main__":
    raise SystemExit(main())
