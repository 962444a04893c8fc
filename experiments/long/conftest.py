"""Long tests run only if the command line names them: ``pytest experiments/long``."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config) -> bool | None:
    """Leave this folder out unless the command line names it or something in it."""
    named = [Path(config.invocation_params.dir, arg.partition("::")[0]) for arg in config.args]
    asked = any(HERE == path.resolve() or HERE in path.resolve().parents for path in named)
    return None if asked or HERE not in collection_path.parents else True
