"""The command `n2d2py-nvdla` with all of its commands: those for loadables, and those that compile."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from n2d2py_nvdla import cli
from n2d2py_nvdla.export.selftest import add_command


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line `words`; the exit status: 0, 1 for an error, 2 for a wrong command line."""
    return cli.main(words, [add_command])


if __name__ == "__main__":
    sys.exit(main())
