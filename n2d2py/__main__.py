"""The command `n2d2py`, also `python -m n2d2py`, and the commands around it: they end with status 130 on Ctrl-C, also during
the imports."""

import sys
from importlib import import_module


def main() -> int:
    """Run `n2d2py`."""
    return _run("n2d2py.cli")


def sweep() -> int:
    """Run `n2d2py-sweep`."""
    return _run("n2d2py.commands.sweep")


def report() -> int:
    """Run `n2d2py-report`."""
    return _run("n2d2py.report.command")


def _run(module: str) -> int:
    try:
        return import_module(module).main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
