"""The command line: what it answers, and with which status."""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import manyclass
from manyclass import __version__, codes
from manyclass.app import early
from manyclass.app.arguments import CODES, COMBINERS, DATA_SETS, LEARNERS, parser
from manyclass.app.cli import main
from manyclass.app.signals import signals_as_exceptions
from manyclass.app.terminal import counted, in_words_of_the_command_line
from manyclass.combiners import base as combining

COMMANDS = ["demo", "compare", "fit", "predict"]


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"usage: manyclass {command}" in said
    assert said.split("\n\n")[1].endswith(".")  # a sentence that says what it does


def test_rules_are_listed(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    said = "".join(capsys.readouterr().out.split())
    assert all(name in said for name in combining.names())


def test_it_is_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "manyclass", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0 and __version__ in done.stdout


def test_names_are_those_of_the_library():
    from manyclass.app import bundled, fit

    assert set(COMBINERS) == set(combining.names())
    assert set(CODES) == {*codes.NAMES, "class-trees"}
    assert set(LEARNERS) == set(fit.LEARNERS)
    assert set(DATA_SETS) == set(bundled.BUNDLED)


HEAVY = ("numpy", "scipy", "sklearn", "numba", "pandas", "joblib", "matplotlib", "rich")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--version", ""),
        ("--help", ""),
        ("fit --help", ""),
        ("fit", "the following arguments are required"),
        ("compare --metric x", "'x' is unknown"),
        ("compare iris --only logistic,x", "'x' is unknown"),
        ("compare iris --target x", "its target is 'class'"),
        ("compare nothing.csv", "there is no file nothing.csv."),
        ("compare .", ". is a folder, not a file."),
        ("compare a.csv", "has none of 'target', 'class', 'label', 'y'"),
        ("compare a.csv --target knd", "Did you mean 'kind'?"),
        ("compare a.csv --target kind --drop siz", "did you mean 'size'?"),
        ("compare a.csv.gz --target knd", "Did you mean 'kind'?"),
        ("compare a.csv --target kind --sep ;", "It has one column only"),
        ("compare a.csv --target kind --encoding x", "unknown encoding: x."),
        ("compare twice.csv --target kind", "columns of the same name: 'a'"),
        ("compare a.csv --target kind --report a.csv", "a.csv is an input"),
        ("compare a.csv --target kind --save x/y.skops", "no folder x"),
        ("fit a.csv -o old.skops --target kind", "old.skops exists."),
        ("fit a.csv -o m.skops --target knd", "Did you mean 'kind'?"),
        ("predict nothing.skops iris -o -", "no file nothing.skops."),
        ("predict old.skops a.csv -o p.txt", "must end in .csv, .tsv or"),
        ("predict old.skops a.csv -o - --id siz", "did you mean 'size'?"),
    ],
)
def test_answers_at_once(words, said, tmp_path):
    """What takes long to import is not imported: processor time is that of Python alone."""
    text = "size,kind\n1,a\n2,b\n"
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "twice.csv").write_text("a,a,kind\n1,2,b\n")
    (tmp_path / "old.skops").write_text("a model")
    script = (
        "import sys; from manyclass.app.cli import main\n"
        f"try:\n    main({words.split()!r})\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert said in done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_errors_of_the_standard_input_come_at_once(tmp_path):
    command = [sys.executable, "-m", "manyclass", "compare", "-", "--target", "knd"]
    text = "size,kind\n1,a\n2,b\n"
    done = subprocess.run(command, capture_output=True, text=True, input=text, cwd=tmp_path)
    assert done.returncode == 2 and "Did you mean 'kind'?" in done.stderr


def test_large_tables_are_left_to_the_command(tmp_path):
    """Their encoding would be looked for twice."""
    (tmp_path / "a.csv").write_text("size,kind\n1,a\n2,b\n")
    words = ["compare", str(tmp_path / "a.csv"), "--target", "nothing"]
    arguments = parser(__version__).parse_args(words)
    early.check(arguments, longest=10)
    with pytest.raises(ValueError, match="no column 'nothing'"):
        early.check(arguments)


def test_names_that_are_not_known_get_a_suggestion(capsys):
    for words, meant in [
        (["fit", "iris", "-o", "m", "--combiner", "wlw3"], "did you mean wlw"),
        (["fit", "iris", "-o", "m", "--candidate", "coupled-svm"], "did you mean coupled-svc?"),
        (["compare", "iris", "--metric", "accurracy"], "did you mean accuracy?"),
        (["fit", "iris", "-o", "m", "--learner", "svn"], "did you mean svm?"),
        (["compare", "iris", "--only", "forest,logistik"], "did you mean logistic?"),
        (["compare", "iris", "--sep", "ab"], "it must be one character, or tab, got 'ab'"),
        (["compare", "iris", "--estimator", "x"], "it must be module:factory, got 'x'"),
        (["compare", "iris", "--folds", "x"], "it must be a whole number, at least 2, got 'x'"),
        (["compare", "iris", "--jobs", "0"], "it must be 1, 2, ... or -1 for all cores, got '0'"),
    ]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2 and meant in capsys.readouterr().err


def test_code_of_others_that_fails_takes_one_line(tmp_path, capsys, monkeypatch):
    (tmp_path / "others.py").write_text(
        "def broken():\n    raise RuntimeError('no licence')\n\nnumber = lambda: 3\n"
    )
    monkeypatch.chdir(tmp_path)
    for name, message in [
        ("others:broken", "--estimator others:broken: no licence."),
        ("others:number", "--estimator others:number makes 3, which is not a classifier."),
        ("sklearn.pipeline:Pipeline", "missing 1 required"),
    ]:
        assert main(["compare", "iris", "--estimator", name, "--only", "baseline"]) == 2
        assert message in capsys.readouterr().err


def test_errors_of_the_library_speak_of_options(tmp_path, capsys):
    words = ["--code", "one-vs-rest", "--combiner", "wlw2"]
    assert main(["fit", "iris", "-o", str(tmp_path / "m.skops"), *words]) == 2
    err = capsys.readouterr().err
    assert "Use --code one-vs-one" in err and "code=" not in err
    assert in_words_of_the_command_line("n_jobs=2, C=1.5") == "--jobs 2, --C 1.5"


def test_numbers_of_things():
    found = [counted(1, "row"), counted(1200, "row"), counted(2, "class"), counted(3, "category")]
    assert found == ["1 row", "1,200 rows", "2 classes", "3 categories"]


def test_terminals_obey_nothing_from_files(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "\x1b[31mred\x9b2J.csv"]) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err and "\x9b" not in err and "red" in err


@pytest.mark.skipif(os.name != "posix", reason="shells of POSIX systems")
@pytest.mark.parametrize("close", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_streams_are_no_traceback(close):
    command = f"{sys.executable} -m manyclass compare iris --only logistic --folds 2 {close}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr and done.returncode == 0


def test_too_little_memory_takes_one_line(monkeypatch, capsys):
    def greedy(arguments):
        raise MemoryError

    monkeypatch.setattr("manyclass.app.compare.run", greedy)
    assert main(["compare"]) == 2
    assert "there is not enough memory" in capsys.readouterr().err


def test_nothing_is_written_before_a_fault(tmp_path, capsys, monkeypatch):
    pytest.importorskip("skops", reason="stored models need skops")
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "iris", "-o", "m.skops", "--folds", "0"]) == 0
    capsys.readouterr()
    assert main(["predict", "m.skops", "iris", "-o", "-", "--top", "9"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "--top" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "nothing.csv"], "there is no file nothing.csv"),
        (["fit", "nothing.csv", "--target", "y", "-o", "m.skops"], "there is no file nothing.csv"),
        (["predict", "nothing.skops", "new.csv", "-o", "o.csv"], "there is no file nothing.skops"),
    ],
    ids=lambda part: part[0] if isinstance(part, list) else "",
)
def test_faults_take_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("pandas", reason="tables need pandas")
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"manyclass {arguments[0]}: ") and message in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["compare", "fit"])
def test_a_missing_extra_is_named(command, capsys, monkeypatch, tmp_path):
    for name in ("pandas", "skops", "skops.io"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    (tmp_path / "t.csv").write_text("a,y\n1,u\n2,v\n")
    monkeypatch.chdir(tmp_path)
    arguments = {
        "compare": ["t.csv", "--target", "y"],
        "fit": ["t.csv", "--target", "y", "-o", "o.skops"],
    }
    assert main([command, *arguments[command]]) == 2
    assert "pip install 'manyclass[app]'" in capsys.readouterr().err


def test_a_reader_may_leave():
    command = f"{sys.executable} -m manyclass --help | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""


def test_an_interrupt_is_said_in_words(monkeypatch, capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("manyclass.app.compare.run", interrupted)
    assert main(["compare"]) == 130
    assert "nothing kept" in capsys.readouterr().err


def test_an_interrupt_while_a_class_is_defined(monkeypatch, capsys):
    """Python makes a ``RuntimeError`` of it, until 3.12."""

    def interrupted(arguments):
        raise error

    monkeypatch.setattr("manyclass.app.compare.run", interrupted)
    error = RuntimeError("Error calling __set_name__ on 'cached_property' instance")
    error.__cause__ = KeyboardInterrupt()
    assert main(["compare"]) == 130
    assert "interrupted; nothing kept" in capsys.readouterr().err
    error = RuntimeError("something else")
    with pytest.raises(RuntimeError, match="something else"):
        main(["compare"])


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
class TestTermination:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_is_in_order_and_said_in_words(self, monkeypatch, capsys, number):
        def terminated(arguments):
            signal.raise_signal(number)

        monkeypatch.setattr("manyclass.app.compare.run", terminated)
        before = signal.signal(number, signal.SIG_DFL)
        try:
            assert main(["compare"]) == 128 + number
            assert signal.getsignal(number) is signal.SIG_DFL
        finally:
            signal.signal(number, before)
        assert "terminated; nothing kept" in capsys.readouterr().err

    def test_signals_that_are_ignored_stay_so(self, monkeypatch):
        def deaf(arguments):
            signal.raise_signal(signal.SIGHUP)
            return 0

        monkeypatch.setattr("manyclass.app.compare.run", deaf)
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            assert main(["compare"]) == 0
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_threads_cannot_have_handlers_and_do_without(self, monkeypatch):
        monkeypatch.setattr("manyclass.app.compare.run", lambda arguments: 0)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(main, ["compare"]).result() == 0


def swallow(number):
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(number)


def call_back_from_c(number):
    """Python says so, and goes on."""
    raising = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(number))
    raising()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
class TestLostInterrupts:
    @pytest.fixture(autouse=True)
    def usual_handlers(self):
        """Whatever runs the tests may ignore some of them."""
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        before = {number: signal.signal(number, handler) for number, handler in usual.items()}
        yield
        assert {number: signal.getsignal(number) for number in usual} == usual
        for number, handler in before.items():
            signal.signal(number, handler)

    @pytest.mark.parametrize("lose", [swallow, call_back_from_c])
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_are_raised_again(self, number, lose, monkeypatch, capsys):
        lost = []

        def deaf(arguments):
            for _ in range(3):
                try:
                    lose(number) if not lost else time.sleep(60)
                except KeyboardInterrupt:
                    if len(lost) == 2:
                        raise
                lost.append(number)
            return 0

        monkeypatch.setattr("manyclass.app.compare.run", deaf)
        monkeypatch.setattr("sys.unraisablehook", lambda unraisable: None)
        assert main(["compare"]) == 128 + number
        assert len(lost) == 2
        assert capsys.readouterr().err.count("; nothing kept") == 1

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_those_on_their_way_are_not_raised_again(self, number):
        tidied = []
        with pytest.raises(KeyboardInterrupt), signals_as_exceptions(repeat_after=0.1):
            try:
                signal.raise_signal(number)
            finally:
                time.sleep(0.5)
                tidied.append(number)
        assert tidied

    def test_nothing_is_sent_once_the_command_is_done(self):
        with signals_as_exceptions(repeat_after=0.1):
            swallow(signal.SIGINT)
        time.sleep(0.3)

    def test_the_keyboard_may_insist(self):
        with signals_as_exceptions():
            swallow(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    def test_a_second_termination_ends_the_process(self):
        script = """
import contextlib, signal
from manyclass.app.signals import Terminated, signals_as_exceptions
signal.signal(signal.SIGTERM, signal.SIG_DFL)
with signals_as_exceptions():
    with contextlib.suppress(Terminated):
        signal.raise_signal(signal.SIGTERM)
    print(signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL, flush=True)
    with contextlib.suppress(Terminated):
        signal.raise_signal(signal.SIGTERM)
    print("still there", flush=True)
"""
        paths = [str(Path(manyclass.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout) == (-signal.SIGTERM, "True\n")
