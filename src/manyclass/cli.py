"""The command line: ``manyclass demo``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from manyclass import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="manyclass", description="Calibrated class probabilities from binary classifiers."
    )
    parser.add_argument("--version", action="version", version=f"manyclass {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("demo", help="compare classifiers on the handwritten digits")
    parser.parse_args(argv)
    return demo()


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
