"""The runner of the experiments: what is finished is kept, what is not is done again."""

from __future__ import annotations

import pytest

import experiments
from experiments import pages
from experiments.__main__ import main
from experiments.results import Measurement, Results
from experiments.runner import Claim, Experiment, Row, Task, Verdict, locked, run


def measure(size, fail=False):
    if fail:
        raise RuntimeError("out of luck")
    yield Row("ours", "error", 0.1 * size)
    yield Row("theirs", "error", 0.2 * size)


def experiment(sizes, fail_at=None, twice=False):
    tasks = [Task("data", f"split {i}", "all", measure, (i, i == fail_at)) for i in sizes]
    return Experiment(
        name="someone1999-table1",
        title="Table 1",
        tasks=lambda scale: tasks * (1 + twice),
        config=lambda scale: {"sizes": list(sizes)},
        section=lambda rows, folder: f"{len(rows)} rows",
        claims=(
            Claim(
                "Ours is better.",
                "Its mean error is lower.",
                lambda rows: Verdict(
                    pages.summarise(rows)["data", "ours", "error"].mean < 1, "of course"
                ),
            ),
        ),
    )


def rows_of(results):
    return [row for row in results if row.metric != "seconds"]


def test_all_rows_are_kept(tmp_path):
    results = run(experiment(range(3)), "quick", tmp_path, bar=False)
    assert len(rows_of(results)) == 6
    assert Measurement("someone1999-table1", "data", "split 2", "ours", "error", 0.2) in results
    assert {key[2] for key in results.finished()} == {"split 0", "split 1", "split 2"}


def test_finished_tasks_are_not_run_again(tmp_path):
    with pytest.raises(RuntimeError, match="out of luck"):
        run(experiment(range(5), fail_at=3), "quick", tmp_path, bar=False)
    before = list(Results(tmp_path / "results.csv"))
    assert len(rows_of(before)) == 6
    after = list(run(experiment(range(5)), "quick", tmp_path, bar=False))
    assert after[: len(before)] == before
    assert len(rows_of(after)) == 10


@pytest.mark.parametrize(
    "torn",
    [
        "someone1999-table1,data,split 1,ours,err",
        "someone1999-table1,data,split 1,ours,error,0.1\n",
        "someone1999-table1,data,split 1,ours,error,0.1\nsomeone1999-table1,data,split 1,th",
    ],
)
def test_what_an_interrupted_write_left_is_removed(tmp_path, torn):
    run(experiment([0]), "quick", tmp_path, bar=False)
    path = tmp_path / "results.csv"
    whole = path.read_text()
    path.write_text(whole + torn)
    assert len(rows_of(Results(path))) == 2
    Results(path).repair()
    assert path.read_text() == whole
    assert len(rows_of(run(experiment(range(2)), "quick", tmp_path, bar=False))) == 4


def test_an_empty_file_is_begun_anew(tmp_path):
    path = tmp_path / "results.csv"
    path.touch()
    results = run(experiment(range(2)), "quick", tmp_path, bar=False)
    assert len(rows_of(results)) == len(rows_of(Results(path))) == 4


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b"\xff"])
def test_a_damaged_config_is_named(content, tmp_path):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"config\.json is damaged, .*Choose another --output"):
        run(experiment(range(2)), "quick", tmp_path, bar=False)
    assert (tmp_path / "config.json").read_bytes() == content


def test_it_is_said_that_there_was_nothing_to_do(tmp_path, capsys):
    run(experiment(range(2)), "quick", tmp_path, bar=False)
    assert capsys.readouterr().out == ""
    run(experiment(range(2)), "quick", tmp_path)
    said = capsys.readouterr().out
    assert "all 2 tasks are finished" in said and "--output FOLDER runs them again" in said


def test_processes_give_the_same(tmp_path):
    one = run(experiment(range(4)), "quick", tmp_path / "one", bar=False)
    two = run(experiment(range(4)), "quick", tmp_path / "two", n_jobs=2, bar=False)
    assert sorted(rows_of(one)) == sorted(rows_of(two))


def test_scales_do_not_share_a_folder(tmp_path):
    run(experiment([0]), "quick", tmp_path, bar=False)
    with pytest.raises(ValueError, match="results of the scale 'quick', not 'paper'"):
        run(experiment([0]), "paper", tmp_path, bar=False)


def test_two_runs_do_not_share_a_folder(tmp_path):
    with locked(tmp_path), pytest.raises(ValueError, match="another run writes to .*--output"):
        run(experiment([0]), "quick", tmp_path, bar=False)
    run(experiment([0]), "quick", tmp_path, bar=False)  # the lock is free again
    assert len(rows_of(Results(tmp_path / "results.csv"))) == 2


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="scale must be one of quick, paper, got 'huge'"):
        run(experiment([0]), "huge", tmp_path)
    with pytest.raises(ValueError, match="two tasks are called"):
        run(experiment([0], twice=True), "quick", tmp_path)
    (tmp_path / "results.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not a file of results"):
        list(Results(tmp_path / "results.csv"))


def test_the_page(tmp_path):
    known = experiment(range(2))
    run(known, "quick", tmp_path, bar=False)
    text = pages.write_page("someone1999", "Someone (1999)", [known], "quick", tmp_path).read_text()
    assert text.startswith("# Someone (1999)")
    assert "`python -m experiments run someone1999 --scale quick`" in text
    assert "6 rows" in text and "**holds**: of course" in text
    assert '"sizes"' in (tmp_path / "config.json").read_text()
    assert not list(tmp_path.glob(".*"))


def test_paired_values(tmp_path):
    results = run(experiment(range(3)), "quick", tmp_path, bar=False)
    ours, theirs = pages.paired(results, "data", "error", ("ours", "theirs"))
    assert list(2 * ours) == list(theirs)


def test_the_command_lists_them(capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    for name in ("hastie1998-figure3", "zadrozny2001-tables", "wu2003-table1", "liu2005-figure2"):
        assert name in shown


def test_the_command_names_what_it_does_not_know(capsys):
    assert main(["run", "nothing"]) == 2
    assert "no experiment 'nothing': choose from all, hastie1998-figure1" in capsys.readouterr().err


def test_the_command_runs_one(tmp_path, capsys, monkeypatch):
    known = experiment(range(2))
    monkeypatch.setattr(experiments, "find", lambda name: [known])
    monkeypatch.setattr(experiments, "of_paper", lambda paper: ("Someone (1999)", [known]))
    assert main(["run", known.name, "--output", str(tmp_path)]) == 0
    assert "someone1999/README.md" in capsys.readouterr().out
    assert (tmp_path / "someone1999" / "results.csv").exists()
