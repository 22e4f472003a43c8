"""Hooks of MkDocs: the contributor guide and the changelog, which lie in the root of the repository, as pages of the site; its version in the footer."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the version in the footer."""
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
