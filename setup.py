"""Builds the package; setup.cfg describes it. What PyPI shows is README.md, whose links must not depend on the folder.

N2D2PY_HOME, the public address of the repository, is set where a release is built: links of the README lead there, and the
package names it. Without it, links within the repository become plain text.
"""

import os
import re
from pathlib import Path

from setuptools import setup

_ROOT = Path(__file__).resolve().parent
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?://|#)([^)\s]+)\)")


def description(home: str, version: str) -> str:
    """README.md with absolute links into the repository at `home`, at the tag of this version; as plain text without `home`."""

    def absolute(link: "re.Match[str]") -> str:
        picture, text, target = link.groups()
        if home:
            return f"{picture}[{text}]({home}/{'raw' if picture else 'blob'}/v{version}/{target})"
        return "" if picture else text

    return _LINK.sub(absolute, (_ROOT / "README.md").read_text(encoding="utf-8"))


def addresses(home: str) -> "dict[str, str]":
    """The addresses that the package names."""
    if not home:
        return {}
    return {
        "Source": home,
        "Documentation": f"{home}/tree/HEAD/docs",
        "Changelog": f"{home}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


def _version() -> str:
    text = (_ROOT / "n2d2py" / "version.py").read_text(encoding="utf-8")
    return re.findall(r'__version__ = "([^"]+)"', text)[0]


if __name__ == "__main__":
    _HOME = os.environ.get("N2D2PY_HOME", "").rstrip("/")
    setup(
        long_description=description(_HOME, _version()),
        long_description_content_type="text/markdown",
        project_urls=addresses(_HOME),
    )
