"""Hooks of MkDocs: the contributor guide and the changelog from the root of the repository as pages, a page for each INI section, the version."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}


def section_pages() -> list[object]:
    """Navigation of the INI sections: the groups and pages that their index lists."""
    found: list[object] = ["sections/index.md"]
    group: list[dict[str, str]] = []
    for line in (ROOT / "docs" / "sections" / "index.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            group = []
            found.append({line[3:]: group})
        elif entry := re.match(r"- \[(.+)\]\((.+?)\): ", line):
            group.append({entry[1]: f"sections/{entry[2]}"})
    return found


def with_sections(entry: object) -> object:
    """Replace the index of the INI sections in the navigation by all their pages."""
    if isinstance(entry, list):
        return [with_sections(one) for one in entry]
    if isinstance(entry, dict):
        return {
            title: section_pages() if value == "sections/index.md" else with_sections(value) for title, value in entry.items()
        }
    return entry


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the INI sections to the navigation, and name the version in the footer."""
    config.nav = with_sections(config.nav)
    version = re.search(r'__version__ = "(.+)"', (ROOT / "n2d2py" / "version.py").read_text(encoding="utf-8"))
    assert version
    config.copyright = f"n2d2py {version[1]}"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, with links that begin in docs."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        for other, its_page in PAGES.items():
            text = text.replace(f"]({other})", f"]({its_page})")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: object, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files of the root to their pages."""
    for name, target in PAGES.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{name}", rf"](\1{target}", markdown)
    return markdown
