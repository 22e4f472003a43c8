"""`python docs/site/pictures.py` draws the pictures of the documentation into docs/images, from an export of models/MobileNet.ini.

It needs g++, make and chromium. terminal.svg is what the command prints, report.png the first screen of the report, and
memory_map.png the memory map of the export.
"""

from __future__ import annotations

import html
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
COMMAND = "n2d2py models/MobileNet.ini -seed 1 -w /dev/null -export CPP -calib -1 -db-export 100 -test -sensitivity 20 -latency"
LINE, COLUMN, EDGE, BAR = 17, 7.3, 16, 30
SPACE = "\N{NO-BREAK SPACE}"


def export(folder: Path) -> list[str]:
    """Run the command with `-o folder`. Return the lines that it prints up to the scores, without those of progress, and the last one."""
    words = [sys.executable, "-m", "n2d2py", *COMMAND.split()[1:], "-o", str(folder)]
    done = subprocess.run(words, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
    lines = done.stdout.replace(f"{folder}/", "").splitlines()
    scores = next(i for i, line in enumerate(lines) if line.startswith("compiled ")) + 1
    return [line for line in [*lines[:scores], lines[-1]] if not line.startswith(("building", "normalizing", "timing"))]


def terminal(lines: list[str]) -> str:
    """Return an SVG picture of a terminal with these lines."""
    width = EDGE * 2 + COLUMN * max(map(len, lines))
    height = BAR + EDGE + LINE * len(lines)
    dots = "".join(
        f'<circle cx="{18 + 18 * i}" cy="15" r="5.5" fill="{colour}"/>'
        for i, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    texts = "".join(
        f'<text x="{EDGE}" y="{BAR + LINE * (i + 1) - 4}" fill="{"#8bd5ff" if i == 0 else "#e6e6e6"}">{html.escape(line).replace(" ", SPACE)}</text>\n'
        for i, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace"'
        f' font-size="12" role="img" aria-label="Terminal: {html.escape(lines[0])}">\n'
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#1e2330"/>{dots}\n{texts}</svg>\n'
    )


def screenshot(page: Path, target: Path, width: int, height: int) -> None:
    """Write the first screen of a page, of width x height pixels, as a PNG of 128 colours."""
    words = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"]
    subprocess.run([*words, f"--screenshot={target}", page.as_uri()], check=True, capture_output=True)
    shrink(target, target)


def shrink(source: Path, target: Path) -> None:
    """Write a picture as a PNG of 128 colours."""
    Image.open(source).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)


def main() -> None:
    """Draw all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        lines = export(folder)
        (IMAGES / "terminal.svg").write_text(terminal([f"$ {COMMAND}", *lines]), encoding="utf-8")
        statistics = folder / "export_CPP_int8" / "statistics"
        screenshot(statistics / "memory" / "memory_mapping.svg", IMAGES / "memory_map.png", 1400, 430)
        screenshot(statistics / "report.html", IMAGES / "report.png", 1200, 640)


if __name__ == "__main__":
    main()
