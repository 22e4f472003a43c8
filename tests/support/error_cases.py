"""Reads the cases of cases/*.txt: what is run, on which files, and the code and place of each message.

A case::

    === its title
    $ net.ini -describe                     the command line; {export} stands for EXPORT; or n2d2py-report
    >>> n2d2py.load("net.onnx")             lines of Python instead, after `import n2d2py`
    env CXX=false                           a variable of the environment; `without torch`: a package that is not installed
    make bad.onnx truncated_onnx            bad.onnx is written by error_files.make
    net.ini: NbOutputs=3 -> NbOutputs=0     the first occurrence of a text in a file is replaced; \\n is a line end
    file other.ini                          the lines up to `end` are a file
    ...
    end
    exit 1                                  the exit status, 1 by default
    error N2D2-E122: ...                    every error line of stderr, in order

The files of `error_files.write_workspace` are always there. Warnings are compared where a case lists any.
"""

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from n2d2py.cli import main
from n2d2py.errors import N2D2Error
from n2d2py.report.command import main as report
from support import error_files

EXPORT = "-w weights.npz -export CPP -calib -1 -db-export 2"


@dataclass
class Case:
    """One command line with the files that it needs and what it must print."""

    title: str
    words: list[str] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    code: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    changes: list[tuple[str, str, str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    status: int = 1
    lines: list[str] = field(default_factory=list)

    def prepare(self, folder: Path) -> None:
        """Writes the case's files into a workspace."""
        for name, maker in self.made.items():
            error_files.make(maker, folder / name)
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        for name, old, new in self.changes:
            text = (folder / name).read_text()
            if old not in text:
                raise ValueError(f"{self.title}: '{old}' is not in {name}")
            (folder / name).write_text(text.replace(old, new, 1))

    def run(self) -> int:
        """Run the command or the code in the working directory; return the exit status."""
        with mock.patch.dict(os.environ, self.environment), absent(self.missing):
            if not self.code:
                return report(self.words[1:]) if self.words[:1] == ["n2d2py-report"] else main(self.words)
            try:
                exec(f"import n2d2py\n{self.code}", {})
            except N2D2Error as error:
                print(f"error {error}", file=sys.stderr)
                return 1
        return 0


@contextmanager
def absent(packages: list[str]) -> Iterator[None]:
    """Let the import of packages fail; other modules that are imported meanwhile stay."""
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] in packages}
    sys.modules.update(dict.fromkeys([*packages, *before]))
    try:
        yield
    finally:
        for name in {*packages, *before}:
            del sys.modules[name]
        sys.modules.update(before)


def read_cases(path: Path) -> list[Case]:
    """The cases of a file.

    Raises:
        ValueError: for a line that is none of a case.
    """
    cases: list[Case] = []
    lines = iter(path.read_text().splitlines())
    for line in lines:
        word, _, rest = line.partition(" ")
        if not line.strip() or line.startswith("#"):
            continue
        if word == "===":
            cases.append(Case(rest))
        elif word == "$":
            cases[-1].words = rest.replace("{export}", EXPORT).split()
        elif word == ">>>":
            cases[-1].code += f"{rest}\n"
        elif word == "env":
            cases[-1].environment |= [rest.split("=", 1)]
        elif word == "without":
            cases[-1].missing.append(rest)
        elif word == "make":
            name, maker = rest.split()
            cases[-1].made[name] = maker
        elif word == "file":
            body = []
            for inner in lines:
                if inner == "end":
                    break
                body.append(inner)
            cases[-1].files[rest] = "\n".join(body) + "\n"
        elif word == "exit":
            cases[-1].status = int(rest)
        elif word in ("error", "warning"):
            cases[-1].lines.append(line)
        elif word.endswith(":") and " -> " in rest:
            old, new = (part.replace("\\n", "\n") for part in rest.split(" -> "))
            cases[-1].changes.append((word[:-1], old, new))
        else:
            raise ValueError(f"{path.name}: '{line}'")
    return cases


def snapshot(folder: Path) -> dict[str, str]:
    """Every path under a folder with the digest of its bytes; hidden ones too."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def messages(text: str, *kinds: str) -> list[str]:
    """Return the lines of stderr of some kinds ("error", "warning")."""
    return [line for line in text.splitlines() if line.startswith(tuple(f"{kind} " for kind in kinds))]


def headline(line: str) -> str:
    """Return the kind (if any), the code and the place (file:line [section]) of a message, without its sentence."""
    found = re.match(r"(?:\w+ )?N2D2-[EW]\d{3}(: [^\s:]+(:\d+)?( \[[^\]]*\])?(?=: ))?", line)
    return found[0] if found else line


def code_of(message: str) -> str:
    """The code of a message, "" for other text."""
    found = re.match(r"(?:error |warning )?N2D2-([EW]\d{3})", message)
    return found[1] if found else ""
