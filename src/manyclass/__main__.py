"""``python -m manyclass``: the command line."""

from __future__ import annotations

from manyclass.app.cli import run

if __name__ == "__main__":
    run()
