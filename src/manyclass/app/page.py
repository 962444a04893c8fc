"""The report of a comparison: one page of HTML without other files."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from manyclass._lib.files import StrPath, replace_file
from manyclass.app import figures, page_contents
from manyclass.app.leaderboard import LEVEL, Leaderboard
from manyclass.app.outputs import check_report
from manyclass.app.page_contents import LIMITS
from manyclass.app.report import as_text, short_names
from manyclass.app.snippet import Source, program
from manyclass.app.studies import Studies

__all__ = ["Source", "render", "write_page"]


def write_page(
    board: Leaderboard,
    path: StrPath,
    *,
    source: Source | None = None,
    title: str | None = None,
    studies: Studies = Studies(),  # noqa: B008
) -> Path:
    """Write the report of a comparison, completely or not at all, and return its path."""
    check_report(path, force=True)
    html = render(board, source=source, title=title, studies=studies)
    replace_file(Path(path), html.encode("utf-8", "replace"))
    return Path(path)


def render(
    board: Leaderboard,
    *,
    source: Source | None = None,
    title: str | None = None,
    studies: Studies = Studies(),  # noqa: B008
) -> str:
    """Return the report of a comparison as HTML; see :func:`write_page`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("manyclass.app"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    short = short_names(board.classes, LIMITS.name)
    environment.filters["text"] = as_text
    environment.filters["short"] = dict(zip(board.classes, short, strict=True)).__getitem__
    name = title or (Path(source.name).name if source else "Comparison")
    measured = bool(board.measured)
    costs = page_contents.costs(board) if measured else None
    script = files("manyclass.app").joinpath("templates/costs.js").read_text("utf-8")
    return environment.get_template("report.html").render(
        title=as_text(name),
        board=board,
        role="pick" if board.pick else "best",
        data=page_contents.data(board),
        leaderboard=page_contents.leaderboard(board),
        by_class=page_contents.class_scores(board)[: LIMITS.classes] if measured else [],
        reliability=_reliability(board) if measured else None,
        confusion=page_contents.confusion(board) if measured else None,
        importance=_importance(studies),
        curve=figures.learning_curve(board, studies.curve) if studies.curve else None,
        costs=costs,
        cost_data=None if costs is None else Markup(_as_data(costs._asdict())),
        coupling=_coupling(board),
        exports=page_contents.exports(board, studies),
        versions=page_contents.versions(),
        source=source,
        program=program(board, source),
        level=f"{LEVEL:.0%}",
        script=Markup(script),
        policy=_policy(script),
    )


def _policy(script: str) -> str:
    """Return a content security policy that allows this script, and nothing from anywhere else."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _as_data(values: dict[str, Any]) -> str:
    """Write values as JSON that can stand in a page: nothing in it ends an element."""
    text = json.dumps(values, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _importance(studies: Studies) -> list[tuple[Any, float]]:
    """Return the most important columns, and their share of the first one's importance."""
    shown = studies.importance[: LIMITS.columns_used]
    most = max([one.mean for one in shown] + [1e-12])
    return [(one, max(0.0, one.mean / most)) for one in shown]


def _reliability(board: Leaderboard) -> dict[str, Any]:
    """Return the diagrams of the best coupled classifier and the best other one."""
    entries = [
        e for e in (board.best_of(coupled=True), board.best_of(coupled=False)) if e is not None
    ]
    return {
        "entries": list(zip(entries, figures.COLORS, strict=False)),
        "n_bins": LIMITS.bins,
        "all": figures.reliability(board, entries),
        "classes": list(figures.reliability_by_class(board, entries)),
    }


def _coupling(board: Leaderboard) -> dict[str, Any] | None:
    """Return the code and the incoherence of the best coupled classifier."""
    entry = board.best_of(coupled=True)
    if entry is None or entry.code is None:
        return None
    coupled = entry.incoherence is not None and len(board.classes) > 2
    return {
        "entry": entry,
        "code": figures.code_matrix(board, entry),
        "n_columns": entry.code.shape[1],
        "histogram": figures.incoherence(board, entry) if coupled else None,
        "rows": page_contents.most_incoherent(board, entry) if coupled else [],
        "calibrated": [entry for entry in board.measured if entry.calibration],
    }
