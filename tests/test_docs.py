"""The documentation: code on its pages runs, links and included files exist, names are listed."""

from __future__ import annotations

import importlib
import inspect
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_median_logit import couple_median_logit
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import manyclass
from manyclass import CoupledClassifier, couple
from manyclass.combiners import base as combining

DOCS = Path(__file__).parents[1] / "docs"
ROOT = DOCS.parent
EXTENSIONS = DOCS / "_ext"
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if not {"_build", "auto_examples"} & set(page.relative_to(DOCS).parts)
)

DOCUMENTED = (
    "banks",
    "calibration",
    "codes",
    "combiners",
    "combiners.coupling",
    "combiners.decoding",
    "combiners.reliability",
    "combiners.softmax",
    "combiners.srm_drm",
    "decisions",
    "learners",
    "metrics",
    "onnx",
    "plot",
    "scaling",
    "search",
    "search.presets",
    "storage",
)
"""Public modules: every name that they offer is in the reference."""

# ------------------------------------------------------------------ "Add a coupling rule"


@pytest.fixture
def rule():
    """The class of the live example, known by its name for the time of a test."""
    yield runpy.run_path(str(DOCS / "examples" / "my_rule.py"))["MedianLogit"]
    del combining._REGISTRY["median-logit"]


def pairwise(p):
    return p[:, :, None] / (p[:, :, None] + p[:, None, :])


def random_pairs(seed: int, n: int, k: int, hard: bool = False):
    rng = np.random.default_rng(seed)
    upper = rng.integers(0, 2, (n, k, k)) if hard else rng.uniform(size=(n, k, k))
    r = np.triu(upper, 1).astype(float)
    return r + np.tril(1 - r.transpose(0, 2, 1), -1) + 0.5 * np.eye(k)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_new_rule_is_its_oracle(rule, k, hard):
    r = random_pairs(k, 20, k, hard)
    assert_allclose(
        couple(r, rule="median-logit"), [couple_median_logit(row) for row in r], atol=1e-12
    )
    assert_allclose(
        couple(r, rule=rule(clip=0.1)), [couple_median_logit(row, 0.1) for row in r], atol=1e-12
    )


def test_new_rule_keeps_the_laws(rule):
    couple_it = rule()

    @settings(deadline=None, max_examples=20)
    @given(st.integers(0, 10**6), st.integers(2, 8))
    def laws(seed, k):
        rng = np.random.default_rng(seed)
        truth = rng.dirichlet(np.ones(k), size=3) * 0.9 + 0.1 / k
        assert_allclose(couple(pairwise(truth), rule=couple_it), truth, atol=1e-9)
        r = random_pairs(seed, 5, k)
        p, order = couple(r, rule=couple_it), rng.permutation(k)
        assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        permuted = r[:, order][:, :, order]
        assert_allclose(couple(permuted, rule=couple_it), p[:, order], atol=1e-12)
        assert_allclose(couple(r[1:2], rule=couple_it), p[1:2], atol=1e-12)

    laws()


def test_new_rule_in_a_classifier(rule):
    X, y = load_iris(return_X_y=True)
    by_name = CoupledClassifier(LogisticRegression(max_iter=1000), combiner="median-logit", cv=3)
    by_name.set_params(calibration=None, scaling="temperature")
    p = by_name.fit(X, y).predict_proba(X)
    assert (by_name.predict(X) == p.argmax(axis=1)).all()
    by_object = clone(by_name).set_params(combiner=rule()).fit(X, y)
    assert_allclose(by_object.predict_proba(X), p, rtol=0, atol=0)
    r = np.array([model.predict_proba(X)[:, 1] for model in by_name.estimators_]).T
    square = np.full((len(X), 3, 3), 0.5)
    for column, (i, j) in zip(r.T, [(0, 1), (0, 2), (1, 2)], strict=True):
        square[:, i, j], square[:, j, i] = column, 1 - column
    plain = np.array([couple_median_logit(row) for row in square])
    tempered = plain**by_name.scaling_.power_
    share = by_name.scaling_.share_
    expected = (1 - share) * tempered / tempered.sum(axis=1, keepdims=True) + share / 3
    assert_allclose(p, expected, atol=1e-10)


def test_new_rule_is_forgotten_after_its_tests():
    assert "median-logit" not in combining.names()


# ------------------------------------------------------------------ reference


def public_names(module) -> list[str]:
    """What a module offers: ``__all__``, or the classes and functions that have an example."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and (inspect.isclass(value) or inspect.isfunction(value))
        and "\nExamples\n" in (inspect.getdoc(value) or "")
    ]


def documented_names() -> set[str]:
    """Full names that the tables of the reference list."""
    sys.path.insert(0, str(EXTENSIONS))
    try:
        found = importlib.import_module("registry").documented()
    finally:
        sys.path.remove(str(EXTENSIONS))
    for page in (DOCS / "api").glob("*.rst"):
        module = None
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif module and (entry := re.fullmatch(r"(?:   |\.\. py:data:: )(\w+)", line)):
                found.add(f"{module}.{entry[1]}")
    return found


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_is_in_the_reference(name):
    module = importlib.import_module(f"manyclass.{name}")
    listed = {entry.rsplit(".", 1)[1] for entry in documented_names()}
    missing = [public for public in public_names(module) if public not in listed]
    assert not missing, f"not in docs/api: {missing} of manyclass.{name}"


def test_every_name_of_the_package_is_in_the_reference():
    listed = documented_names()
    short = {entry.rsplit(".", 1)[1] for entry in listed}
    for name in manyclass.__all__:
        if inspect.ismodule(getattr(manyclass, name)):
            assert any(entry.startswith(f"manyclass.{name}.") for entry in listed), name
        elif name != "__version__":
            assert name in short, name


def test_every_name_in_the_reference_exists():
    for entry in documented_names():
        module, name = entry.rsplit(".", 1)
        assert hasattr(importlib.import_module(module), name), entry


def test_every_combiner_is_in_the_reference():
    listed = documented_names()
    for name in combining.names():
        rule = type(combining.resolve(name))
        assert any(entry.endswith(f".{rule.__name__}") for entry in listed), rule


# ------------------------------------------------------------------ pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_internal_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" in target or "auto_examples" in target:
            continue
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_what_is_included_exists(page):
    if page.parent.name == "papers":
        return  # a paper without results yet has no page
    for path in re.findall(r"^[`:]{3}\{(?:include|literalinclude)\} (\S+)", page.read_text(), re.M):
        assert (page.parent / path).exists(), path


def test_links_to_examples_lead_somewhere():
    sources = {source.stem for source in (DOCS / "gallery").glob("plot_*.py")}
    for page in PAGES:
        for name in re.findall(r"auto_examples/(plot_\w+)\.rst", page.read_text()):
            assert name in sources, (page, name)


def test_every_guide_page_is_in_the_guide():
    contents = (DOCS / "guide" / "index.md").read_text()
    for page in (DOCS / "guide").glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", contents, re.MULTILINE), page


def test_every_paper_has_a_page():
    from experiments import PAPERS

    for paper in PAPERS:
        assert f"experiments/{paper}/README.md" in (DOCS / "papers" / f"{paper}.md").read_text()


def anchors_of(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_to_headings_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text()):
        other = page.parent / target if target else page
        assert anchor in anchors_of(other), (target, anchor)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md"])
def test_links_of_the_top_folder_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / name).read_text()):
        assert "://" in target or (ROOT / target).exists(), target


def test_files_named_in_how_it_works_exist():
    text = (DOCS / "how_it_works.md").read_text()
    part = text[text.index("## Where is it decided") :]
    files = re.findall(r"`([\w/]+\.py)`", part[: part.index("\n## ", 1)])
    assert len(files) > 8
    for name in files:
        assert (ROOT / "src" / "manyclass" / name).exists(), name


def test_citation_names_the_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {manyclass.__version__}\n" in citation


# ------------------------------------------------------------------ the README


def blocks_of_readme(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_readme_runs_as_printed(run_blocks):
    """All blocks, pasted one after the other into one session."""
    page = run_blocks.Page("readme")
    printed = [page.run(block) for block in blocks_of_readme("python")]
    assert printed[0] == blocks_of_readme("text")[0]


def test_commands_of_the_readme_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    lines = "".join(blocks_of_readme("sh")).splitlines()
    for line in lines:
        program, command = line.split()[:2]
        assert program in ("make", "manyclass")
        assert program == "manyclass" or command in targets, line


def test_command_line_of_the_readme_runs(run_blocks):
    pytest.importorskip("skops")
    page = run_blocks.Page("readme")
    page.run(
        "from sklearn.datasets import load_iris\n"
        "frame = load_iris(as_frame=True).frame[::3]\n"
        "frame.rename(columns={'target': 'species'}).to_csv('table.csv', index=False)\n"
        "frame.drop(columns='target').to_csv('new.csv', index=False)\n"
    )
    for block in blocks_of_readme("sh"):
        if block.startswith("manyclass"):
            page.command(block)
    assert page.run("print(open('probabilities.csv').readline())")


# ------------------------------------------------------------------ code on the pages


def extension(name: str):
    """A module of ``docs/_ext``, as a fixture."""

    @pytest.fixture(scope="module", name=name)
    def load():
        sys.path.insert(0, str(EXTENSIONS))
        try:
            yield importlib.import_module(name)
        finally:
            sys.path.remove(str(EXTENSIONS))

    return load


run_blocks, tracked, tables = extension("run_blocks"), extension("tracked"), extension("tables")


alt_texts = extension("alt_texts")


def test_pictures_of_the_gallery_state_their_finding(alt_texts):
    shown = {
        f"{script.stem}_{number:03}"
        for script in (DOCS / "gallery").glob("plot_*.py")
        for number in range(1, script.read_text().count("plt.show()") + 1)
    }
    assert set(alt_texts.ALT_TEXTS) == shown
    source = ".. image-sg:: /i/sphx_glr_plot_2_codes_001.png\n   :alt: plot 2\n   :srcset: x"
    assert ":alt: Four code matrices of six" in alt_texts.state_findings(source)


def test_start_page_prints_what_the_readme_shows(run_blocks):
    (printed,) = run_blocks.run_page((DOCS / "index.md").read_text(), "index")
    assert printed.strip() in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("guide/decisions", ()),
        ("guide/stored_models", ("skops",)),
        ("guide/command_line", ("pandas", "skops")),
        ("getting_started", ("pandas",)),
        ("guide/choosing", ()),
        ("guide/tuning", ()),
        ("guide/preprocessing", ("pandas",)),
        ("add_a_rule", ()),
    ],
)
def test_pages_run(run_blocks, name, needs):
    for package in needs:
        pytest.importorskip(package)
    try:
        assert run_blocks.run_page((DOCS / f"{name}.md").read_text(), name)
    finally:
        if sys.modules.pop("my_rule", None) is not None:
            del combining._REGISTRY["median-logit"]


def test_long_sentences_of_an_output_are_broken_and_tables_are_not(run_blocks):
    table, sentence = "a" + " " * 99 + "b", "a word " * 20
    shown = run_blocks.with_short_lines(f"{table}\n\n{sentence}\n[{sentence}]").split("\n")
    assert shown[:2] == [table, ""] and shown[-1] == f"[{sentence}]"
    assert len(shown) == 5 and " ".join(shown[2:4]) == sentence.strip()


def test_code_on_pages_is_python(run_blocks):
    for page in PAGES:
        for kind, content in run_blocks.blocks_of(page.read_text()):
            if kind == "run":
                compile(content, str(page), "exec")


def test_blocks_share_names_and_print_values(run_blocks):
    text = "```{run}\nx = 2\n```\nand\n```{run}\nprint(x)\nx + 1\n```\n"
    assert run_blocks.run_page(text, "page") == ["", "2\n3\n"]


def test_errors_in_blocks_are_raised(run_blocks):
    with pytest.raises(ZeroDivisionError):
        run_blocks.run_page("```{run}\n1 / 0\n```\n", "page")


def test_blocks_leave_no_files_behind(run_blocks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks.run_page("```{run}\nopen('made.txt', 'w').close()\n```\n", "page")
    assert not list(tmp_path.iterdir()) and Path.cwd() == tmp_path


def test_sections_end_where_the_next_begins(tracked):
    text = "# A\n\na\n\n## B\n\nb\n\n### C\n\nc\n\n## D\n\nd\n"
    assert tracked.section_of(text, "B") == "b\n\n### C\n\nc"
    assert tracked.section_of(text, "D") == "d"
    assert tracked.section_of(text, "E") is None


def test_images_of_sections_are_found(tracked):
    text = "![a](a.png) ![b](https://example.org/b.png) [c](c.md)"
    moved = tracked.with_images_from(text, "../there")
    assert moved == "![a](../there/a.png) ![b](https://example.org/b.png) [c](c.md)"


def test_numbers_in_tables_stay_on_one_line(tables):
    assert tables.keep_together("0.97 ± 0.30 (+0.5)") == "0.97\xa0±\xa00.30 (+0.5)"
    assert tables.keep_together("10 ms, 5 steps; 1.1 %") == "10\xa0ms, 5\xa0steps; 1.1\xa0%"
    assert tables.keep_together("Brier, ours / best") == "Brier, ours\xa0/ best"
    assert tables.keep_together("4 samples") == "4 samples"


def test_long_names_in_headers_may_break(tables):
    assert tables.break_names("SVC(probability=True)") == "SVC(\u200bprobability=True)"
    assert tables.break_names("CalibratedClassifierCV") == "Calibrated\u200bClassifier\u200bCV"
    assert tables.break_names("CoupledSVC") == "CoupledSVC"
