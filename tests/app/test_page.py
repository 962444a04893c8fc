from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
import subprocess
import warnings
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from manyclass import CoupledClassifier, CoupledSVC

for extra in ("jinja2", "matplotlib", "pandas"):
    pytest.importorskip(extra, reason=f"reports need {extra}")

import pandas as pd  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from manyclass.app import page  # noqa: E402
from manyclass.app.compare import compare  # noqa: E402
from manyclass.app.page import Source, render, write_page  # noqa: E402
from manyclass.app.report import (  # noqa: E402
    as_text,
    inline_svg,
    page_style,
)
from manyclass.app.studies import study  # noqa: E402
from manyclass.app.table_options import Choices  # noqa: E402

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--enable-logging=stderr --v=0 --virtual-time-budget=2000"
).split()
SCRIPT = "<script>document.documentElement.dataset.ran = 'yes'; alert(1)</script>"
NAMES = [
    SCRIPT,
    "\"quoted'",
    "&amp; &lt;b&gt;",
    "long " * 40,
    "שלום עולם \u202e",
    "\N{FOX FACE} \N{OCTOPUS}",
    r"$\frac{a}{b$ $x$",
    "two\nlines\x00\x1b[31m",
    "",
    "_under",
    "{{ 7 * 7 }}{% raw %}",
    '"><img src=x onerror="document.documentElement.dataset.ran=\'yes\'">',
    "</svg></style></title></pre>-->",
    "javascript:alert(1)",
]


def measured(names: list, rows: int, **candidates):
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(len(names)), rows)
    X = pd.DataFrame(1.6 * rng.randn(len(names), 4)[y] + rng.randn(len(y), 4))
    X.columns = ["<b>a</b>", "b$", "c", "d"]
    X.iloc[::9, 0] = np.nan
    return compare(X, pd.Series([names[c] for c in y], dtype=object), candidates=candidates, cv=2)


@pytest.fixture(scope="module")
def hostile():
    # The name of a candidate can be anything as well.
    bad = {SCRIPT: LogisticRegression(C=-1)}
    return measured(NAMES, 8, svc=CoupledSVC(), bayes=GaussianNB(), **bad)


@pytest.fixture(scope="module")
def hostile_page(hostile):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = Source("data <1>.csv", 100, Choices(target=SCRIPT))
        return render(hostile, source=source)


@pytest.fixture(scope="module")
def three():
    board = measured(["a", "=b", "c"], 30, svc=CoupledSVC(), bayes=GaussianNB())
    rng = np.random.RandomState(0)
    X = pd.DataFrame(rng.randn(90, 4), columns=["<b>a</b>", "b$", "c", "d"])
    return render(board, studies=study(board, X, curve=True))


@pytest.fixture(scope="module")
def hundred():
    names = [f"class number {i} of a hundred" for i in range(100)]
    return render(measured(names, 3, svc=CoupledSVC(), bayes=GaussianNB()))


class Outline(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "br", "img", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if "style" not in self.open:
            self.text += text


# ---------------------------------------------------------------------- without a browser


def test_page_is_well_formed_and_needs_nothing_else(hostile_page):
    outline = Outline(hostile_page)
    assert outline.open == []
    tags = [tag for tag, _ in outline.tags]
    assert tags.count("script") == 1 and "img" not in tags and "iframe" not in tags
    for tag, attributes in outline.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert "src" not in attributes
        address = attributes.get("href", "#")
        assert address.startswith(("#", "data:")), (tag, address)
    style = re.search(r"<style>(.*?)</style>", hostile_page, re.DOTALL)[1]
    assert "url(" not in style and "@import" not in style


def digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def test_the_policy_allows_our_script_only(hostile_page):
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', hostile_page)[1]
    policy = html.unescape(policy)
    (script,) = re.findall(r"<script>(.*?)</script>", hostile_page, re.DOTALL)
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest(script)}'; ")
    assert "unsafe" not in policy.replace("style-src 'unsafe-inline'", "")


def test_every_table_can_be_taken_along(three):
    outline = Outline(three)
    links = {a["download"]: a["href"] for tag, a in outline.tags if "download" in a}
    assert {
        "leaderboard.csv",
        "confusion.json",
        "by-class.csv",
        "pairs.csv",
        "classes.json",
    } <= set(links)
    assert {"importance.csv", "learning-curve.json"} <= set(links)
    content = {name: base64.b64decode(link.partition(",")[2]) for name, link in links.items()}
    read = lambda name: pd.read_json(io.BytesIO(content[name]), orient="split")  # noqa: E731
    rows = read("by-class.json").to_dict("records")
    assert {row["class"] for row in rows} == {"a", "=b", "c"}
    assert all(0 <= row["recall"] <= 1 and row["support"] == 30 for row in rows)
    assert b"'=b" in content["by-class.csv"]  # a spreadsheet does not run it
    assert read("confusion.json").drop(columns="true").to_numpy().sum() == 90
    assert read("leaderboard.json")["standing"].iloc[-1] == "class frequencies alone"


def test_figures_state_their_finding(three):
    labels = [a["aria-label"] for tag, a in Outline(three).tags if tag == "svg"]
    assert len(labels) == 1 + 3 + 1 + 1 + 1  # reliability, by class, code, incoherence, curve
    assert all(re.search(r"\d", label) for label in labels)
    assert any(("states" in label and "too" in label) or "about right" in label for label in labels)


def test_one_number_for_one_thing(three):
    """The leaderboard has the calibration error; figures do not show another one."""
    assert "calibration error 0" not in three and "class-wise 0" not in three


def test_costs_are_data_not_code():
    text = render(measured(["</script><b>", "b", "c"], 20, svc=CoupledSVC()))
    assert Outline(text).open == []
    data = re.search(r'id="cost-data">(.*?)</script>', text, re.DOTALL)[1]
    assert json.loads(data)["labels"][0] == "</script><b>"


def test_names_are_shown_as_they_are(hostile_page):
    outline = Outline(hostile_page)
    for name in NAMES:
        assert as_text(name) in outline.text
    assert "(empty)" in outline.text and "&lt;b&gt;" in outline.text
    assert "49" not in re.findall(r"<bdi>(.*?)</bdi>", hostile_page)
    assert "<b>a</b> (13)" in outline.text  # a column with missing values
    assert "failed: The 'C' parameter of LogisticRegression must be" in outline.text
    assert "\x00" not in hostile_page and "\x1b" not in hostile_page


def test_identifiers_are_unique_and_references_lead_somewhere(hostile_page):
    outline = Outline(hostile_page)
    found = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(set(found)) == len(found)
    for _, attributes in outline.tags:
        for name, value in attributes.items():
            if name == "href" and value.startswith("#"):
                assert value[1:] in found
            for reference in re.findall(r"url\(#(.*?)\)", value or ""):
                assert reference in found


def test_page_is_accessible(hostile_page):
    outline = Outline(hostile_page)
    assert dict(outline.tags)["html"] == {"lang": "en"}
    for tag, attributes in outline.tags:
        if tag == "svg":
            assert attributes["role"] == "img" and attributes["aria-label"]
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
        if "tabindex" in attributes:
            assert attributes["role"] and attributes["aria-label"]
    headings = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1 and headings.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(headings))


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_colours_have_contrast(hostile_page):
    themes = re.findall(r":root \{(.*?)\}", hostile_page, re.DOTALL)[:2]
    assert len(themes) == 2
    for theme in themes:
        colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", theme))
        for ground in ("paper", "wash"):
            for ink in ("ink", "muted", "accent"):
                low, high = sorted(luminance(colors[name]) for name in (ground, ink))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (ground, ink)


def test_shaded_cells_have_contrast(hostile_page):
    """The strongest shades are those of a whole row of the confusion matrix."""
    most = {"right": 0.5, "wrong": 0.6}
    for name, opacity in most.items():
        rule = re.search(rf"td\.{name} {{ background: (.*); }}", hostile_page)[1]
        assert f"{opacity} * var" in rule or f"min({opacity}," in rule
    for theme in re.findall(r":root \{(.*?)\}", hostile_page, re.DOTALL)[:2]:
        colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", theme))
        paper = [int(colors["paper"][i : i + 2], 16) for i in (1, 3, 5)]
        for name, opacity in most.items():
            shade = map(float, re.search(rf"--{name}: ([\d, ]+);", theme)[1].split(","))
            mixed = [opacity * s + (1 - opacity) * p for s, p in zip(shade, paper, strict=True)]
            cell = "#" + "".join(f"{round(value):02x}" for value in mixed)
            low, high = sorted(luminance(color) for color in (cell, colors["ink"]))
            assert (high + 0.05) / (low + 0.05) >= 4.5, name


def test_many_classes_stay_readable(hundred):
    text = hundred
    assert "The 12 most frequent of 100 classes." in text
    assert "The 19 classes most often confused; the other 81 are counted together." in text
    assert text.count("<svg") == 12 + 3
    assert len(text) < 1_000_000
    assert "class number 99 of a hundred" in Outline(text).text


def test_two_classes_and_one_candidate():
    text = render(measured(["a", "b"], 30, svc=CoupledSVC()))
    assert "nothing to contradict it" in text and "the only candidate" in text
    others = render(measured(["a", "b", "c"], 20, bayes=GaussianNB()))
    assert 'id="coupling"' not in others and 'id="reliability"' in others


def test_page_of_failures_only():
    text = render(measured(["a", "b"], 8, bad=LogisticRegression(C=-1)))
    assert "No candidate was finished" in text and 'id="confusion"' not in text
    Outline(text)


def test_combiners_without_incoherence():
    trained = CoupledClassifier(combiner="softmax")
    text = render(measured(["a", "b", "c"], 20, trained=trained))
    assert 'id="coupling"' in text and "Incoherence" not in text


def test_page_is_written_whole_or_not_at_all(hostile, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")

    def stumble(*args, **kwargs):
        raise RuntimeError("no figure")

    monkeypatch.setattr(page.figures, "reliability", stumble)
    with pytest.raises(RuntimeError, match="no figure"):
        write_page(hostile, path)
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_figures_leave_no_trace():
    import matplotlib
    import matplotlib.pyplot as plt

    before, figures = dict(matplotlib.rcParams), plt.get_fignums()
    render(measured(["a", "b", "c"], 20, svc=CoupledSVC()))
    assert dict(matplotlib.rcParams) == before and plt.get_fignums() == figures


def test_inline_svg_takes_the_colours_of_the_page():
    with page_style():
        figure = Figure(figsize=(2, 1))
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], color="black")
        ax.set_title('url(#x) id="y" #000000', parse_math=False)
        svg = inline_svg(figure, name="f", description='"one" & <two>')
    assert svg.startswith("<svg ") and 'aria-label="&quot;one&quot; &amp; &lt;two&gt;"' in svg
    assert "currentColor" in svg and "font-family" not in svg and "<style" not in svg
    assert 'url(#x) id="y" #000000' in html.unescape(svg)  # text is not touched
    found = [attributes["id"] for _, attributes in Outline(svg).tags if "id" in attributes]
    assert found and all(name.startswith("f-") for name in found)


# ---------------------------------------------------------------------- in a browser

PROBE = """
addEventListener("load", () => {
  const figures = [...document.querySelectorAll("svg, img")];
  const boxes = figures.map((figure) => figure.getBoundingClientRect());
  const clipped = [...document.querySelectorAll(".scroll")].filter(
    (box) => box.scrollWidth > box.clientWidth + 1);
  parent.postMessage({
    ran: document.documentElement.dataset.ran ?? "no",
    figures: figures.length,
    empty: boxes.filter((box) => !(box.width > 20 && box.height > 20)).length,
    scroll: document.documentElement.scrollWidth,
    width: innerWidth,
    clipped: clipped.length,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    paper: getComputedStyle(document.body).backgroundColor,
  }, "*");
});
"""
COSTS = """
addEventListener("load", () => {
  const [, , dear] = document.querySelectorAll("#cost-fields input");
  const said = () => document.getElementById("cost-result").textContent;
  const before = said();
  dear.value = 1000;
  dear.dispatchEvent(new Event("input", { bubbles: true }));
  parent.postMessage({
    before, after: said(), hidden: document.getElementById("cost-view").hidden,
    counts: document.getElementById("cost-count-2").textContent,
  }, "*");
});
"""
# A window without a screen is never narrower than 500 pixels; a frame can be.
FRAME = """
<!doctype html><title>frame</title>
<script>
addEventListener("message", (message) => {{ document.title = JSON.stringify(message.data); }});
</script>
<iframe src="{address}" style="width: {width}px; height: 3000px; border: 0"></iframe>
"""


def browse(tmp_path, address: str, *flags: str) -> str:
    """Return what the browser printed; it must not have logged anything."""
    profile = tmp_path / "profile"
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *flags, address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return done.stdout


def saved(tmp_path, text: str, name: str = "page.html") -> str:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path.as_uri()


def allowing(text: str, script: str) -> str:
    """The page with a policy that allows this script, too."""
    own = html.escape(f"script-src 'sha256-{digest(script)}' ")
    return text.replace(html.escape("script-src "), own, 1)


def probe(tmp_path, text: str, width: int, *flags: str, script: str = "") -> dict:
    """Return what a script, which only this test adds, saw of a page in a frame."""
    script = script or PROBE
    page = saved(tmp_path, allowing(text, script) + f"<script>{script}</script>")
    frame = saved(tmp_path, FRAME.format(address=page, width=width), "frame.html")
    dom = browse(tmp_path, frame, "--window-size=1300,3000", "--dump-dom", *flags)
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom)[1]))


browser = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")


@browser
def test_phone_shows_everything_and_runs_nothing(hostile_page, tmp_path):
    seen = probe(tmp_path, hostile_page, 390)
    assert seen["ran"] == "no"
    assert seen["figures"] == 12 + 3 and seen["empty"] == 0
    assert seen["scroll"] <= seen["width"] == 390


@browser
def test_dark_pages_are_dark(hostile_page, tmp_path):
    seen = probe(tmp_path, hostile_page, 1200, "--blink-settings=preferredColorScheme=0")
    assert seen["dark"] is True and seen["paper"] == "rgb(21, 23, 26)"
    assert seen["scroll"] <= seen["width"] == 1200


@browser
def test_print_fits_on_a4(hundred, tmp_path):
    # The width between the margins of A4 is 180 mm, 680 pixels of CSS.
    seen = probe(tmp_path, hundred.replace("@media print", "@media all"), 680)
    assert seen["clipped"] == 0 and seen["scroll"] <= seen["width"] == 680


@browser
def test_pdf(hostile_page, tmp_path):
    browse(tmp_path, saved(tmp_path, hostile_page), f"--print-to-pdf={tmp_path / 'page.pdf'}")
    pdf = (tmp_path / "page.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2


@browser
@pytest.mark.parametrize("width", [1300, 768, 390])
def test_the_deciding_columns_are_visible(three, tmp_path, width):
    script = PROBE.replace(
        "parent.postMessage({",
        "const cells = document.querySelectorAll('.board tbody tr:first-child > *');"
        "parent.postMessage({ deciding: cells[3].getBoundingClientRect().right,"
        " costs: document.querySelector('.costs th').getBoundingClientRect().height,",
    )
    flags = ["--blink-settings=preferredColorScheme=0"] if width == 768 else []
    seen = probe(tmp_path, three, width, *flags, script=script)
    assert seen["deciding"] <= seen["width"] == width and seen["scroll"] <= width
    assert seen["costs"] < 100  # its words are not broken into letters
    assert seen["empty"] == 0


@browser
def test_costs_change_decisions(three, tmp_path):
    seen = probe(tmp_path, three, 1300, script=COSTS)
    assert seen["hidden"] is False and seen["before"].startswith("0 of 90 decisions change")
    changed = int(seen["after"].split(" of ")[0])
    assert changed > 0 and "→" in seen["counts"]
    before, after = map(int, seen["counts"].split(" → "))
    assert after < before  # deciding for the third class where the first is true became dear


@browser
def test_scripts_of_others_do_not_run(three, tmp_path):
    foreign = "<script>document.documentElement.dataset.ran = 'yes'</script>"
    page = allowing(three + foreign, PROBE) + f"<script>{PROBE}</script>"
    frame = FRAME.format(address=saved(tmp_path, page), width=800)
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'p'}", "--dump-dom"]
    done = subprocess.run(
        [*command, saved(tmp_path, frame, "frame.html")], capture_output=True, text=True
    )
    title = re.search(r"<title>(.*?)</title>", done.stdout)[1]
    assert json.loads(html.unescape(title))["ran"] == "no"
    assert "Content Security Policy" in done.stderr
