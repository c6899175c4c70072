"""A run's page in a real browser."""

from __future__ import annotations

import gzip
import json
import re
import shutil

import pytest

from fedhh.experiments.report.explorer import document
from fedhh.experiments.report.explorer.chunks import packed, unpacked
from fedhh.experiments.report.explorer.document import write_report
from fedhh.testing import small_population
from tests.explorer.conftest import HOSTILE, LONG, run_in


@pytest.fixture
def opened(page, run_page):
    page.size(1400)
    page.open(run_page, ready=".words tbody tr")
    yield page
    page.quiet(run_page.as_uri())


def test_the_slider_shows_layer_after_layer(opened):
    last = opened.last_step()
    assert last >= 6
    painted = []
    for step in (0, last):
        opened.slide(step)
        opened.wait(lambda: opened.script("return new Promise(requestAnimationFrame)"))
        opened.script("return new Promise((go) => setTimeout(go, 200))")
        painted.append(opened.script("return document.querySelector('.icicle').toDataURL()"))
    assert painted[0] != painted[1]
    opened.click(".player button")
    assert int(opened.script("return +document.querySelector('.player input').value")) == last - 1
    opened.click(".play")
    opened.wait(
        lambda: opened.script("return +document.querySelector('.player input').value") == last
    )


def test_the_keyboard_walks_and_zooms_the_trie(opened):
    def press(key: str) -> str:
        opened.script(
            "document.querySelector('.icicle').dispatchEvent("
            "new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))",
            key,
        )
        return opened.text(".details")

    first = press("ArrowDown")
    assert "prefix" in first
    assert press("ArrowRight") != first
    deeper = press("ArrowDown")
    assert all(each in deeper for each in ("votes", "posterior", "z", "true clients")) or (
        "was not asked about" in deeper
    )
    assert "threshold" not in deeper
    press("Enter")
    assert opened.script("return document.querySelectorAll('.crumb').length") >= 2
    press("Escape")
    opened.click(".crumb")
    assert opened.script("return document.querySelectorAll('.crumb').length") == 1


def test_votes_stand_against_the_threshold(page, ldp):
    file = write_report(ldp)
    page.open(file, ready=".words tbody tr")
    page.wait(lambda: page.script("return document.querySelector('.plot svg') !== null"))
    assert "threshold" in page.text(".plot")
    page.quiet(file.as_uri())


def test_search_says_where_a_word_was_lost_and_why(opened):
    assert "It was discovered" in opened.search("plain")
    assert "no client can report it" in opened.search("Q")
    assert "longer than can be found" in opened.search("zzzzzzzzzzzzzz") or (
        "dropped" in opened.search("zzzzzzzzzzzzzz")
    )
    lost = opened.search("plainx"[:5] + "p")
    assert "dropped" in lost
    assert re.search(r"votes|sample", lost)


def test_hostile_words_are_text(opened):
    for word in HOSTILE[:5]:
        said = opened.search(word)
        assert "\u202e" not in said
        assert "\x1b" not in said
    assert "10,000 symbols" in opened.search(LONG)
    opened.choose("Show", "all")
    shown = opened.text(".words tbody")
    assert "<script>window.hacked=1</script>" in shown
    assert r"a\u{202e}b\u{200f}c\u{2066}d" in shown
    assert r"\u{1}\u{7}\u{1b}[2J\u{9b}" in shown
    assert "(10,000 symbols)" in shown
    assert "hostile <i>\\u{202e}" in opened.text(".facts-line")
    assert (
        opened.script("return document.querySelectorAll('main img, main i, main script').length")
        == 0
    )


def test_words_sort_filter_and_are_saved_as_csv(opened):
    opened.choose("Show", "missed")
    assert "missed" in opened.text(".words tbody")
    opened.choose("Show", "found")
    lines = opened.saved("Save CSV", "csv").decode().splitlines()
    assert lines[0].startswith("word,state,estimated_clients")
    assert len(lines) > 2
    assert any(line.startswith("'=cmd()") for line in lines)
    opened.script("document.querySelector('.words th button').click()")
    order = opened.script("return document.querySelector('.words th').ariaSort")
    assert order == "ascending"


def test_every_guarantee_shows_its_theorem_and_assumptions_without_pointing(opened):
    reasons = opened.script(
        "return [...document.querySelectorAll('.claims .reason')]"
        ".filter((it) => it.checkVisibility()).map((it) => it.innerText)"
    )
    assert len(reasons) >= 4
    assert "Sun et al. (2024), Theorem 1: an item enters" in reasons[0]
    assert min(map(len, reasons)) > 20, reasons


def test_an_epsilon_has_a_column_before_the_run_and_one_for_this_run(opened):
    cells = opened.script(
        "return [...document.querySelectorAll('.claims')[0].querySelectorAll('tr:not(.reason)')]"
        ".map((row) => [...row.cells].map((it) => it.textContent))"
    )
    head, *rows = cells
    assert head == ["unit", "against", "before the run", "for this run", "delta"]
    central = [row for row in rows if row[1] == "readers of results" and row[4]]
    assert [row[0] for row in central] == ["item", "user"]
    for row in central:
        assert float(row[3]) <= float(row[2]), row
        assert opened.cards()[f"central epsilon, {row[0]}"] == row[2]


def test_the_numbers_and_guarantees_stand_above_all_tables_of_words(opened):
    order = opened.script(
        "return ['.cards', '.claims', '.icicle', '.words'].map((each) => "
        "document.querySelector(each).getBoundingClientRect().top)"
    )
    assert order == sorted(order)
    cards = opened.cards()
    assert cards["local epsilon, item"] == "10"
    assert cards["clients"] == "4,000"
    assert float(cards["central epsilon, item"]) <= 10


def test_the_address_keeps_what_the_reader_chose(page, run_page):
    page.size(1400)
    page.open(run_page, ready=".words tbody tr")
    page.choose("Show", "missed")
    page.click(".player button")
    page.search("play")
    assert page.wait(lambda: "word=play" in page.script("return location.hash"))
    kept = page.script("return location.hash")
    last = page.last_step()
    assert set(kept[1:].split("&")) == {"show=missed", f"layer={last - 1}", "word=play"}
    page.open(f"{run_page.as_uri()}{kept}", ready=".words tbody tr")
    assert page.wait(lambda: "play" in page.text(".answer"))
    assert page.script("return +document.querySelector('.player input').value") == last - 1
    assert page.script("return document.querySelector('.words select').value") == "missed"
    assert "missed" in page.text(".words tbody")
    assert page.script("return location.hash") == kept
    page.open(f"{run_page.as_uri()}#layer=x&show=%3Cimg%3E&tab=9&more=1", ready=".words tbody tr")
    assert page.script("return document.querySelector('.words select').value") == "found"
    page.quiet(run_page.as_uri())


def test_deep_prefixes_have_labels(opened):
    """Labels of the saved picture stand in rows beyond the first two symbols."""
    svg = opened.saved("Save SVG", "svg").decode()
    labels = re.findall(r'<text[^>]* y="([0-9.]+)"[^>]*>([^<]*)<', svg)
    rows = {int(float(y)) // 30 for y, _ in labels}
    assert {1, 2, 3, 4} <= rows
    assert "plai" in {text for _, text in labels}


@pytest.mark.parametrize("width", [1400, 390])
def test_epsilons_are_in_sight_nothing_sticks_out_and_nothing_jumps(opened, width):
    opened.size(width)
    right = opened.wait(
        lambda: opened.script(
            "return Math.max(...[...document.querySelectorAll('.claims thead th')]"
            ".map((it) => it.getBoundingClientRect().right))"
        )
    )
    assert 0 < right <= width
    assert opened.wait(
        lambda: opened.script("return document.documentElement.scrollWidth <= innerWidth")
    )
    shift = opened.script(
        "return new Promise((go) => { let sum = 0; const seen = new PerformanceObserver((list) => {"
        "for (const each of list.getEntries()) if (!each.hadRecentInput) sum += each.value; });"
        "seen.observe({type: 'layout-shift'});"
        "const slider = document.querySelector('.player input');"
        "for (const step of [0, 1, 2]) { slider.value = step;"
        "slider.dispatchEvent(new Event('input')); } setTimeout(() => go(sum), 400); })"
    )
    assert shift < 0.1


def test_the_policy_lets_no_other_script_run(opened):
    opened.script(
        "const made = document.createElement('script'); made.textContent = 'window.hacked = 1';"
        "document.body.append(made)"
    )
    messages, _ = opened.logs()
    assert any("Content Security Policy" in each for each in messages)
    assert opened.script("return window.hacked") is None
    assert opened.script("return fetch('https://localhost:9/').then(() => 1, () => 0)") == 0
    messages, addresses = opened.logs()
    assert any("Content Security Policy" in each for each in messages)
    assert addresses == []


def test_two_runs_are_laid_over_each_other(page, adaptive, ldp, tmp_path):
    file = write_report(adaptive, ldp, out=tmp_path / "both.html")
    page.open(file, ready=".words tbody tr, .words tbody")
    page.has("Both found")
    tops = page.script(
        "return ['.comparison', '.tabs', '.cards'].map((each) => "
        "document.querySelector(each).getBoundingClientRect().top)"
    )
    assert tops == sorted(tops)
    assert "Only" in page.text(".summary")
    page.choose("Show", "all")
    assert "plain" in page.text(".words tbody")
    page.wait(lambda: page.script("return document.querySelectorAll('.plot svg path').length") > 2)
    page.script("document.querySelectorAll('[role=tab]')[1].click()")
    page.has("pass 2, layer", ".player")
    assert page.script("return location.hash") == "#show=all&tab=1"
    page.open(f"{file.as_uri()}#tab=1&1.show=all", ready=".words tbody tr")
    assert page.script("return document.querySelector('[aria-selected=true]').dataset.view") == "1"
    assert page.script("return document.querySelector('.words select').value") == "all"
    page.quiet(file.as_uri())


def test_a_run_without_candidates_still_has_a_page(page, adaptive, tmp_path):
    for file in adaptive.iterdir():
        if file.name not in ("candidates.parquet", "votes.parquet", "missed.parquet"):
            shutil.copy(file, tmp_path)
    file = write_report(tmp_path)
    page.open(file, ready=".words tbody tr")
    assert "has no outcomes of candidates" in page.text()
    assert page.script("return document.querySelectorAll('.icicle').length") == 0
    page.quiet(file.as_uri())


def test_what_is_packed_is_compressed_and_means_nothing_to_html():
    value = {"word": [*HOSTILE, "\ud800"], "z": [float("inf"), None, 1.5]}
    text = packed(value)
    assert re.fullmatch(r"[A-Za-z0-9+/=]*", text)
    assert unpacked(text) == {**value, "z": ["inf", None, 1.5]}
    assert text == packed(value)
    assert len(packed(["same"] * 10_000)) < 300
    assert json.loads(gzip.decompress(__import__("base64").b64decode(text)))["word"][-1] == "\ud800"


def test_the_page_names_no_address_and_holds_no_word_as_markup(run_page):
    text = run_page.read_text(encoding="utf-8")
    head = text[: text.index("<script")]
    assert "default-src 'none'" in head
    assert "connect-src 'none'" in head
    assert not re.search(
        r"<link(?![^>]*data:)|@import|\bsrc=", text.replace(document.asset("explorer.js"), "")
    )
    assert "hacked" not in text
    # Names of XML's spaces are no addresses that anybody asks.
    spaces = {
        "http://www.w3.org/" + each
        for each in ("2000/svg", "1999/xhtml", "1999/xlink", "XML/1998/namespace", "2000/xmlns/")
    }
    named = set(re.findall(r"https?://[\w./-]+", text))
    assert named - spaces <= {"https://", "http://"}


def test_what_fake_clients_pushed_has_a_color_and_their_votes_are_named(page, tmp_path):
    directory = run_in(
        tmp_path, small_population(4_000),
        "population.known=none", "protocol.name=ldp-triehh", "protocol.depth=6",
        "protocol.eta_max=60", "protocol.clients_per_layer=auto", "adversary.clients=300",
        "protocol.participation=one-round", "protocol.max_items=10",
        'adversary.targets=["zzqqz"]',
    )  # fmt: skip
    written = write_report(directory)
    page.size(1400)
    page.open(written, ready=".words tbody tr")
    assert "300 fake clients" in page.script("return document.querySelector('.missing').innerText")
    legend = "return document.querySelector('.trie .legend').innerText"
    page.wait(lambda: "fake clients pushed it" in page.script(legend))
    page.script(
        "const field = document.querySelector('.search input'); field.value = 'zzqqz';"
        "field.form.requestSubmit()"
    )
    rows = page.wait(
        lambda: page.script(
            "return [...document.querySelectorAll('.path tbody tr')].map((row) => row.innerText)"
        )
    )
    last = rows[-1].split("\t")
    assert last[0].startswith("zzqqz")
    assert re.fullmatch(r"[\d,]+ \([\d.]+%\)", last[3]), last
    page.quiet(written.as_uri())
