"""The files and commands of a page of docs, docs/plugins.md where no other is named."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str = "plugins.md") -> list[tuple[str, str, str]]:
    """(language, file or "", text) of each fenced block of the page."""
    return _BLOCK.findall((ROOT / "docs" / page).read_text())


def write(folder: Path, page: str = "plugins.md") -> None:
    """Writes all files of the tutorial."""
    for _, name, text in blocks(page):
        if name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)


def commands(page: str = "plugins.md") -> list[list[str]]:
    """The words of its commands, in order."""
    return [line.split() for language, _, text in blocks(page) if language == "sh" for line in text.splitlines()]
