"""The outcome of a comparison in a sentence or two, as a person would say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyclass.app.report import listed
from manyclass.app.scoring import FIT

if TYPE_CHECKING:
    from manyclass.app.leaderboard import Entry, Leaderboard


def verdict(board: Leaderboard) -> str:
    """Say which candidate to use, and how sure that is."""
    if not board.measured and not board.failed:
        return "There is no candidate but the baseline: name one."
    if not board.measured:
        return "No candidate was finished: there is none to pick."
    best, pick = board.best, board.pick
    if pick is None:
        return f"Pick none: {_no_better_than_guessing(board)}"
    if len(board.measured) == 1:
        others = " that did not fail" if board.failed else ""
        return f"Pick {_with_value(board, best)}, the only candidate{others}.{_baseline(board)}"
    if not board.tied:
        second = board.measured[1]
        return (
            f"Pick {_with_value(board, best)}: it is better than {second.name}, the next, by "
            f"{board.apart(second, best)}.{_baseline(board)}"
        )
    if pick is best:
        fastest = best is min([best, *board.tied], key=_seconds)
        fast = " and the fastest of those as good" if fastest else ""
        next_one = board.tied[0]
        return (
            f"No clear winner: {_with_value(board, best)} is first{fast}; "
            f"{_may_be_better(board, next_one)}.{_others(board, best)}"
        )
    simple = "simplest and " if pick.candidate.is_simple else ""
    times = best.mean(FIT) / max(pick.mean(FIT), 1e-9)
    return (
        f"No clear winner: {pick.name} is {simple}{_rounded(times)} times faster to fit; "
        f"{_with_value(board, best)} may be better by {board.apart(pick, best)}."
        f"{_others(board, pick)}"
    )


def _may_be_better(board: Leaderboard, entry: Entry) -> str:
    if board.difference(entry, board.best).mean == 0:
        return f"{entry.name} is just as good"
    return f"it may be better than {entry.name} by {board.apart(entry, board.best)}"


def _with_value(board: Leaderboard, entry: Entry) -> str:
    metric = board.metrics[0]
    return f"{entry.name} ({metric} {board.cell(entry, metric)})"


def _no_better_than_guessing(board: Leaderboard) -> str:
    baseline, best, metric = board.baseline, board.best, board.metrics[0]
    assert baseline is not None
    gap = board.difference(baseline, best)
    numbers = f"{metric} {board.cell(best, metric)}, baseline {board.cell(baseline, metric)}"
    if gap.high < 0:
        return f"even {best.name} is worse than class frequencies alone ({numbers})."
    return (
        f"no candidate is clearly better than class frequencies alone. The best, {best.name} "
        f"({numbers}), differs by {board.apart(baseline, best)}."
    )


def _baseline(board: Leaderboard) -> str:
    if board.baseline is None:
        return ""
    return f" Class frequencies alone have {board.cell(board.baseline, board.metrics[0])}."


def _others(board: Leaderboard, named: Entry) -> str:
    """Name the other candidates that are tied with the best."""
    known = (named, board.tied[0]) if named is board.best else (named,)
    more = [entry.name for entry in board.tied if entry not in known]
    if len(more) > 3:  # a choice: a sentence, not a list
        more = [*more[:2], f"{len(more) - 2} more"]
    return f" Nor can {listed(more, 'or')} be told from the best." if more else ""


def _seconds(entry: Entry) -> float:
    return entry.mean(FIT)


def _rounded(times: float) -> str:
    """Return a factor with two digits at most."""
    return f"{times:.1f}" if times < 10 else f"{float(f'{times:.2g}'):,.0f}"
