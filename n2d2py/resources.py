"""Where the top-level folders (`kernels`, `export_templates`, `params`, `models`) are found.

In `$N2D2PY_DATA` when it is set, else in the first of: the checkout that holds this package; `share/n2d2py` where a wheel puts
it (the prefix of this Python, the user's, or the folder of `pip install --target`).
"""

from __future__ import annotations

import os
import sys
import sysconfig
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from n2d2py.errors import N2D2Error
from n2d2py.version import __version__

if TYPE_CHECKING:
    import jinja2


def _candidates() -> list[Path]:
    """Return the folders that may hold the top-level folders, best first."""
    home = Path(__file__).resolve().parent.parent
    checkout = [home] if (home / "setup.cfg").is_file() else []  # else `home` is a site-packages, with others' folders
    user = sysconfig.get_path("data", sysconfig.get_preferred_scheme("user"))
    prefixes = [home, Path(sysconfig.get_path("data")), Path(sys.prefix), Path(user)]
    return checkout + [prefix / "share" / "n2d2py" for prefix in prefixes]


def folder(name: str) -> Path:
    """Return the folder `name` ("kernels", "export_templates", "params" or "models") of this installation. Raise E001 when no
    installation folder holds it."""
    chosen = os.environ.get("N2D2PY_DATA")
    for root in [Path(chosen)] if chosen else _candidates():
        if (root / name).is_dir():
            return root / name
    what = f"folder '{name}' is missing in this installation"
    remedy = "reinstall n2d2py, or set N2D2PY_DATA to a checkout"
    if chosen:
        what = f"N2D2PY_DATA={chosen} contains no folder '{name}'"
        remedy = "unset it, or set it to a checkout of n2d2py"
    raise N2D2Error("E001", what, remedy=remedy)


@cache
def templates(*folders: str, escape: bool = False) -> jinja2.Environment:
    """Return the templates below folders of `export_templates`, or in folders with an absolute path, in the first that has them,
    compiled once: those of earlier runs are in a temporary folder of the user. `escape`: what they print is HTML."""
    import jinja2  # late: most commands write nothing

    compiled = None
    with suppress(RuntimeError, OSError):  # no temporary folder that is safe
        compiled = jinja2.FileSystemBytecodeCache(pattern=f"n2d2py_{__version__}_{escape}_%s.cache")
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder("export_templates") / each for each in folders]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not escape,
        autoescape=escape,
        bytecode_cache=compiled,
    )
