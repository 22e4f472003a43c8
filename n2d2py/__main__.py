"""The command `n2d2py`; also `python -m n2d2py`."""

import sys


def main() -> int:
    """Run the command line; the exit status, 130 also if Ctrl-C comes during the imports."""
    try:
        from n2d2py.cli import main as run_command
    except KeyboardInterrupt:
        return 130
    return run_command()


if __name__ == "__main__":
    sys.exit(main())
