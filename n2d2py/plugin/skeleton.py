"""`--new-operator NAME DIR`: a plug-in that works, to change into one's own."""

from __future__ import annotations

import re
from pathlib import Path

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.resources import templates

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")


def write_skeleton(name: str, folder: Path) -> None:
    """Write `name` in lower case .py and .hpp, and test_<name>.py, into `folder`.

    Raises:
        N2D2Error: E025 for a name that is not a CamelCase word, or where a file would be replaced.
    """
    if not _NAME.fullmatch(name):
        what = f"-new-operator {name} is not a valid operator name"
        remedy = "give letters and digits starting with a capital letter, such as LpPool"
        raise N2D2Error("E025", what, where="-new-operator", remedy=remedy)
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    files = {f"{stem}.py": "operator.py", f"{stem}.hpp": "operator.hpp", f"test_{stem}.py": "test_operator.py"}
    existing = next((file for file in files if (folder / file).exists()), None)
    if existing or (folder.exists() and not folder.is_dir()):
        what = f"{existing} already exists" if existing else "the path is a file"
        raise N2D2Error("E025", what, where=str(folder), remedy="choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file, template in files.items():
        values = {"name": name, "stem": stem, "call": name[0].lower() + name[1:], "domain": "my", "folder": folder.name}
        text = templates("plugin").get_template(f"{template}.j2").render(values)
        (folder / file).write_text(text, encoding="utf-8", newline="\n")
    log.notice("written: %s in %s; run its test with: python -m pytest %s", ", ".join(files), folder, folder)
