"""`python -m n2d2py`."""

import sys

from n2d2py.cli import main

if __name__ == "__main__":
    sys.exit(main())
