"""`python docs/site/build.py DIR` builds the site of the documentation: a folder for the checkout (latest) and one for each release.

DIR gets `versions.json`, which the theme shows as a selector, and an index page that leads to `latest`. A release is built from its commit,
the one that set its number in n2d2py/version.py, where the history is at hand; releases before the site are left out.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = "docs/site/mkdocs.yml"
SOURCES = ("docs", "CONTRIBUTING.md", "CHANGELOG.md", "n2d2py/version.py")
START = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=latest/"><a href="latest/">n2d2py</a>\n'
)


def git(*words: str) -> bytes:
    """Return the output of a git command, empty where it fails."""
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    ).stdout


def releases() -> dict[str, str]:
    """Release -> commit, newest first, of those with a site."""
    found = {}
    for version in re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE):
        line = f'__version__ = "{version}"'
        commits = git("log", "--reverse", "--format=%H", f"-S{line}", "--", "n2d2py/version.py").decode().split()
        if commits and git("ls-tree", commits[0], CONFIG):
            found[version] = commits[0]
    return found


def build(config: Path, target: Path, *options: str) -> None:
    """Run MkDocs."""
    subprocess.run([sys.executable, "-m", "mkdocs", "build", *options, "-f", str(config), "-d", str(target)], check=True)


def build_release(commit: str, target: Path) -> None:
    """Build the site of a commit."""
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(fileobj=io.BytesIO(git("archive", commit, *SOURCES))) as archive:
            archive.extractall(scratch, filter="data")
        config = Path(scratch) / CONFIG
        with config.open("a", encoding="utf-8") as file:
            file.write("\nextra:\n  version:\n    provider: mike\n")
        build(config, target, "--quiet")


def main(site: Path) -> None:
    """Build the checkout, and the releases that DIR does not have yet."""
    build(ROOT / CONFIG, site / "latest", "--strict")
    found = releases()
    for version, commit in found.items():
        if not (site / version).is_dir():
            build_release(commit, site / version)
    entries = [{"version": name, "title": name, "aliases": []} for name in ("latest", *found)]
    (site / "versions.json").write_text(json.dumps(entries), encoding="utf-8")
    (site / "index.html").write_text(START, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
