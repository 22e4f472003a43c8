"""The files and commands of docs/plugins.md."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str, str]]:
    """(language, file or "", text) of each fenced block of the page."""
    return _BLOCK.findall((ROOT / "docs" / "plugins.md").read_text())


def write(folder: Path) -> None:
    """Writes all files of the tutorial."""
    for _, name, text in blocks():
        if name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)


def commands() -> list[list[str]]:
    """The words of its commands, in order."""
    return [line.split() for language, _, text in blocks() if language == "sh" for line in text.splitlines()]
