"""The options of the command line. Nothing is imported here, so that ``--help`` answers at once.

Tests compare the names that are listed here with those that the library knows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

DEMO = "digits"
BASELINE = "baseline"
CLASS_TREES = "coupled-logistic-trees"
CANDIDATES = (
    *(BASELINE, "logistic", "forest", "boosting", "lightgbm", "xgboost", "catboost"),
    *("calibrated-forest", "calibrated-boosting"),
    *("calibrated-lightgbm", "calibrated-xgboost", "calibrated-catboost", "calibrated-svc"),
    *("coupled-svc", "coupled-logistic", "coupled-logistic-rest", "coupled-logistic-sparse"),
    *(CLASS_TREES, "coupled-kernel-logistic", "coupled-boosting"),
)
LEARNERS = ("svm", "linear-svm", "logistic", "kernel-logistic", "boosted-naive-bayes")
CODES = (
    *("one-vs-one", "one-vs-rest", "sparse-random", "dense-random", "complete", "ordinal"),
    "class-trees",
)
COMBINERS = (
    *("drm", "hamming", "ht", "ht-noniterative", "kl", "least-squares", "logit", "loss"),
    *("loss-weighted", "max-wins", "noniterative", "normalize", "pkpd", "refregier-vallet"),
    *("softmax", "softmax-simplified", "srm", "tree-product", "vote", "winner-takes-all"),
    *("wlw1", "wlw2", "zadrozny"),
)
RANKING = ("log_loss", "brier", "accuracy", "f1_macro", "roc_auc_ovr")
TABLES = "a .csv, .tsv, .txt (also .gz, .zip), .parquet, .feather or .xlsx file, - for stdin"


def parser(version: str) -> argparse.ArgumentParser:
    """Return the parser; ``module`` names the module whose ``run`` does the work."""
    parser = argparse.ArgumentParser(
        prog="manyclass", description="Calibrated class probabilities from binary classifiers."
    )
    parser.add_argument("--version", action="version", version=f"manyclass {version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module, add, summary in (
        ("demo", "compare", _compare, "compare a few classifiers on handwritten digits"),
        ("compare", "compare", _compare, "cross-validate classifiers on a table, write a report"),
        ("fit", "fit", _fit, "fit a classifier to a table, and store it"),
        ("predict", "predict", _predict, "probabilities for a table, by a stored classifier"),
    ):
        sentence = f"{summary[0].upper()}{summary[1:]}."
        command = commands.add_parser(name, help=summary, description=sentence)
        add(command)
        command.set_defaults(module=module)
    commands.choices["demo"].set_defaults(quick=True)
    return parser


class _Names(argparse.Action):
    """Collects names: the option may be repeated, and commas separate names."""

    def __call__(self, parser, namespace, values, option_string=None):
        before = getattr(namespace, self.dest) or []
        new = [part.strip() for part in values.split(",")]
        setattr(namespace, self.dest, [*before, *(part for part in new if part)])


def _choice(known: Iterable[str]):
    """Return a type for an option that suggests the nearest of the known names."""
    known = tuple(known)

    def check(text: str) -> str:
        if text in known:
            return text
        from difflib import get_close_matches

        close = get_close_matches(text, known, 1)
        meant = f", did you mean {close[0]}?" if close else ":"
        raise argparse.ArgumentTypeError(
            f"{text!r} is unknown{meant} choose from {', '.join(known)}"
        )

    return check


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"it must be a positive number, got {text!r}")
    return value


def _whole(fewest: int = 0):
    """Return a type for an option that takes a whole number of at least ``least``."""

    def check(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = fewest - 1
        if value < fewest:
            raise argparse.ArgumentTypeError(
                f"it must be a whole number, at least {fewest}, got {text!r}"
            )
        return value

    return check


def _jobs(text: str) -> int:
    if text.removeprefix("-").strip("0").isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"it must be 1, 2, ... or -1 for all cores, got {text!r}")


def _add_table(parser: argparse.ArgumentParser) -> None:
    """Add the options of tables to learn from."""
    parser.add_argument("--target", help="the column that holds the classes")
    columns = parser.add_argument_group("columns", "each takes names with commas between them")
    columns.add_argument("--drop", action=_Names, metavar="NAMES", help="leave these columns out")
    columns.add_argument(
        "--categorical", action=_Names, metavar="NAMES", help="these are categories"
    )
    columns.add_argument("--numeric", action=_Names, metavar="NAMES", help="these are numbers")
    columns.add_argument(
        "--groups", metavar="NAME", help="rows of the same group are never divided by a fold"
    )
    columns.add_argument(
        "--split-column",
        metavar="NAME",
        help='"train" and "test" say which rows to fit and to test on; other values are folds',
    )
    _add_text_file(parser)


def _add_text_file(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("text files", "all of this is found if it is not given")
    group.add_argument("--sep", metavar="C", help="the separator of fields, such as ; or tab")
    group.add_argument("--decimal", metavar="C", help="the decimal mark of numbers")
    group.add_argument("--encoding", metavar="NAME", help="such as utf-8, utf-16 or cp1252")


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", nargs="?", metavar="DATA", help=f"{TABLES}, or a bundled data set (default: {DEMO})"
    )
    _add_table(parser)
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="write a report; an earlier report is replaced",
    )
    parser.add_argument(
        "--learning-curve", action="store_true", help="show in the report what more rows would give"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE.skops", help="fit the winner on all rows, and store it"
    )
    parser.add_argument("--force", action="store_true", help="replace files that are not reports")
    parser.add_argument("--folds", type=_whole(2), help="folds (default: 5, or 3 with --quick)")
    parser.add_argument("--quick", action="store_true", help="few candidates, 3 folds")
    parser.add_argument(
        "--only", metavar="NAME,NAME", help=f"only these candidates: {', '.join(CANDIDATES)}"
    )
    parser.add_argument(
        "--estimator",
        action="append",
        default=[],
        metavar="MODULE:FACTORY",
        help="a further candidate: a classifier, or a function that makes it",
    )
    parser.add_argument(
        "--metric",
        type=_choice(RANKING),
        metavar="NAME",
        help=f"what ranks the candidates: {', '.join(RANKING)} (default: log_loss)",
    )
    parser.add_argument(
        "--time-budget",
        type=_positive,
        metavar="SECONDS",
        help="start no fold that will not end in time",
    )
    parser.add_argument("--rows", type=_whole(2), metavar="N", help="use a sample of N rows")
    parser.add_argument(
        "--seed",
        type=_whole(),
        default=0,
        help="seed of folds, samples and candidates (default: 0)",
    )
    parser.add_argument("--jobs", type=_jobs, default=1, help="processes; -1 for all cores")


def _fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help=f"{TABLES}, or a bundled data set")
    parser.add_argument("-o", "--output", required=True, type=Path, help="file of the model")
    _add_table(parser)
    parser.add_argument(
        "--candidate",
        type=_choice(CANDIDATES),
        metavar="NAME",
        help="a name of the leaderboard of manyclass compare, instead of the next four options",
    )
    parser.add_argument(
        "--learner",
        type=_choice(LEARNERS),
        metavar="NAME",
        help=f"{', '.join(LEARNERS)} (default: svm, or logistic from 50 classes on)",
    )
    parser.add_argument(
        "--code",
        type=_choice(CODES),
        metavar="NAME",
        help=f"{', '.join(CODES)} (default: one-vs-one, or class-trees from 50 classes on)",
    )
    parser.add_argument(
        "--combiner",
        metavar="NAME",
        type=_choice(COMBINERS),
        help=f"{', '.join(COMBINERS)} (default: wlw2 for one-vs-one, "
        "tree-product for class-trees, kl for other codes)",
    )
    parser.add_argument(
        "--C",
        type=_positive,
        help="parameter of the learner (default: 10 with a kernel, 1 without)",
    )
    parser.add_argument(
        "--estimator", metavar="MODULE:FACTORY", help="a classifier, or a function that makes it"
    )
    parser.add_argument("--seed", type=_whole(), default=0, help="default: 0")
    parser.add_argument("--jobs", type=_jobs, help="processes; -1 for all cores")
    parser.add_argument(
        "--folds",
        type=_whole(),
        help="folds for the log-loss; 0 for none (default: 5 up to 5000 rows)",
    )
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")


def _predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a file that manyclass fit wrote")
    parser.add_argument("data", help=TABLES)
    parser.add_argument(
        "-o", "--output", required=True, help="a .csv, .tsv or .parquet file, or - for stdout"
    )
    parser.add_argument(
        "--id", action=_Names, metavar="NAMES", help="columns to copy to the front of the output"
    )
    parser.add_argument(
        "--keep", choices=["all"], help="copy all columns of the data to the front of the output"
    )
    parser.add_argument(
        "--top", type=_whole(1), metavar="N", help="only the N most probable classes of each row"
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="write texts as they are, even those that a spreadsheet would run as a formula",
    )
    parser.add_argument(
        "--block-rows", type=_whole(1), default=50_000, help="rows in memory (default: 50000)"
    )
    parser.add_argument(
        "--trust", action="append", default=[], metavar="TYPE", help="a further type to load"
    )
    _add_text_file(parser)
