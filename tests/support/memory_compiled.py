"""Exports under every strategy of the planner, compiled and compared bit for bit."""

import json
from pathlib import Path

from n2d2py.cli import main
from support.programs import needs, run_command

ROOT = Path(__file__).resolve().parents[2]


NETWORKS = {
    "MobileNet": ROOT / "models" / "MobileNet.ini",
    "branches": ROOT / "tests" / "e2e" / "branches.ini",
    "packed": ROOT / "tests" / "memory" / "packed.ini",
    "pooled": ROOT / "tests" / "memory" / "pooled.ini",
    "resampling": ROOT / "tests" / "memory" / "resampling.ini",
    "skipped": ROOT / "tests" / "memory" / "skipped.ini",
    "slices": ROOT / "tests" / "memory" / "slices.ini",
    "strips": ROOT / "tests" / "memory" / "strips.ini",
}


needs_tools = needs("g++", "make", "nm")


def export(network: str, out: Path, parameters: str, bits: str = "8") -> Path:
    """The folder of an export with these export parameters."""
    (out / "params.ini").write_text(parameters)
    words = ["-seed", "1", "-w", "/dev/null", "-export", "CPP", "-calib", "20", "-db-export", "0", "-quiet", "-nbbits", bits]
    assert main([str(NETWORKS[network]), *words, "-export-parameters", str(out / "params.ini"), "-o", str(out)]) == 0
    return out / ("export_CPP_int8" if bits == "8" else "export_CPP_float32")


def arena_symbol(folder: Path) -> int:
    """Bytes of the largest object in the bss sections of the compiled arena, by the linker's table."""
    source = next(folder.glob("dnn/src/arena*.cpp"))
    target = folder / "arena_check.o"
    run_command("g++", "-std=c++11", "-Iinclude", "-Idnn/include", "-Ikernels", "-c", source, "-o", target, cwd=folder)
    table = run_command("nm", "-S", str(target))
    sizes = [int(line.split()[1], 16) for line in table.splitlines() if line.split()[-2] in "bB"]
    return max(sizes)


def memory_map(folder: Path) -> dict:
    return json.loads((folder / "statistics" / "memory" / "memory_map.json").read_text())
