"""`python -m support.error_examples` runs the cases of tests/errors and writes the examples of docs/errors.md.

An example of a code that no case shows has a `cause` and a `message` that were entered by hand; the script keeps it.
"""

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from error_codes import CODES

from n2d2py.cli import main
from n2d2py.plugin.load import isolated
from support.error_cases import EXPORT, Case, code_of, messages, read_cases
from support.error_files import write_workspace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "site" / "error_examples.json"
CASES = ROOT / "tests" / "errors" / "cases"


def printed(case: Case) -> list[str]:
    """Run a case in a new workspace and return its messages."""
    before, errors = Path.cwd(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, isolated():
        work = Path(folder, "work")  # cases write files beside it too
        work.mkdir()
        os.chdir(work)
        try:
            write_workspace(Path())
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                if any("export_CPP" in name for name in (*case.made, *case.files, case.code)):
                    main(["net.ini", *EXPORT.split(), "-quiet"])
                case.prepare(Path())
                case.run()
        finally:
            os.chdir(before)
    return messages(errors.getvalue(), "error", "warning")


def command(case: Case) -> str:
    """The command line of a case, as a shell takes it."""
    if case.code:
        return "; ".join(["python -c 'import n2d2py", *case.code.splitlines()]) + "'"
    settings = [f"{name}={value}" for name, value in case.environment.items()]
    return " ".join([*settings, *(["n2d2py"] if case.words[:1] != ["n2d2py-report"] else []), *case.words])


def example(case: Case, message: str) -> dict[str, Any]:
    """A case as an example: its title, command, files and changes, and one of its messages."""
    return {"title": case.title, "command": command(case), "files": case.files, "changes": case.changes, "message": message}


def _effort(case: Case) -> tuple[int, int]:
    """Cases that a reader understands without the tests come first."""
    return len(case.made), len(" ".join(case.words)) + sum(map(len, case.files.values())) + 40 * len(case.lines)


def write_examples() -> None:
    """Write the examples of all cases, and keep those without a case."""
    kept = json.loads(EXAMPLES.read_text()) if EXAMPLES.is_file() else {}
    found: dict[str, Any] = {}
    cases = [case for path in sorted(CASES.glob("*.txt")) for case in read_cases(path)]
    for case in sorted(cases, key=_effort):
        if {code_of(line) for line in case.lines} - set(found):
            for message in printed(case):
                found.setdefault(code_of(message), example(case, message))
    found = {code: one for code, one in kept.items() if "cause" in one} | found
    ordered = {code: found[code] for code in CODES if code in found}
    EXAMPLES.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
    missing = [code for code in CODES if code not in ordered]
    if missing:
        print("without an example:", *missing)


if __name__ == "__main__":
    write_examples()
