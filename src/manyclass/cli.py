"""The command line: ``manyclass demo`` and ``manyclass reproduce``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from manyclass import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except (FileNotFoundError, ValueError) as error:
        print(f"manyclass {arguments.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manyclass", description="Calibrated class probabilities from binary classifiers."
    )
    parser.add_argument("--version", action="version", version=f"manyclass {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    compare = commands.add_parser("demo", help="compare classifiers on the handwritten digits")
    compare.set_defaults(run=lambda arguments: demo())
    repeat = commands.add_parser(
        "reproduce", help="run the experiments of the papers", description=reproduce.__doc__
    )
    repeat.add_argument("name", nargs="?", help="an experiment, a paper, or all; none lists them")
    repeat.add_argument("--scale", choices=("quick", "paper"), default="quick")
    repeat.add_argument(
        "--output", type=Path, help="folder (default: experiments, or for quick reproduced)"
    )
    repeat.add_argument("--jobs", type=int, default=1, help="processes")
    repeat.set_defaults(run=reproduce)
    return parser


def reproduce(arguments: argparse.Namespace) -> int:
    """Run the experiments of the papers, and write their pages. Interrupted runs go on."""
    from manyclass import experiments
    from manyclass.experiments.pages import write_page
    from manyclass.experiments.runner import run

    if arguments.name is None:
        for name, experiment in experiments.all_experiments().items():
            print(f"{name:24}{experiment.title}")
        return 0
    output = arguments.output
    if output is None:
        output = Path("experiments" if arguments.scale == "paper" else "reproduced")
    found = experiments.find(arguments.name)
    for experiment in found:
        run(experiment, arguments.scale, output / experiment.paper, arguments.jobs)
    for paper in dict.fromkeys(experiment.paper for experiment in found):
        title, all_of_it = experiments.of_paper(paper)
        print(write_page(paper, title, all_of_it, arguments.scale, output / paper))
    return 0


def demo() -> int:
    """Compare what scikit-learn offers with coupled probabilities, on bundled data."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.svm import SVC

    from manyclass import CoupledClassifier, CoupledSVC, datasets
    from manyclass.comparison import compare
    from manyclass.report import text_table

    linear, svm = LogisticRegression(max_iter=1000), SVC(C=10)
    models = {
        "OneVsRestClassifier(LogisticRegression)": OneVsRestClassifier(linear),
        "CoupledClassifier(LogisticRegression)": CoupledClassifier(linear),
        "CalibratedClassifierCV(SVC, ensemble=False)": CalibratedClassifierCV(svm, ensemble=False),
        "CoupledSVC": CoupledSVC(C=10),
    }
    data = datasets.load("digits")
    X_train, X_test, y_train, y_test = data.train_test(random_state=0)
    scaler = MinMaxScaler().fit(X_train)
    print(
        f"{data.name}: {len(y_train)} training and {len(y_test)} test samples, "
        f"{len(set(data.y))} classes"
    )
    rows = []
    for score in compare(
        models, scaler.transform(X_train), scaler.transform(X_test), y_train, y_test
    ):
        print(f"  {score.name} fitted in {score.fit_seconds:.1f} s", file=sys.stderr)
        rows.append(
            [
                score.name,
                f"{score.log_loss:.3f}",
                f"{score.brier:.4f}",
                f"{100 * score.error:.1f} %",
                f"{score.fit_seconds:.2f}",
                f"{score.predict_seconds:.2f}",
            ]
        )
    print(text_table(["", "log-loss", "Brier", "error", "fit s", "predict s"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
