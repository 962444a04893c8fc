"""``python -m manyclass``: the command line."""

from __future__ import annotations

import sys

from manyclass.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
