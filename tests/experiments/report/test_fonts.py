import pytest
from matplotlib.figure import Figure

from fedhh.experiments.report import fonts
from fedhh.experiments.report.style import png_bytes


@pytest.fixture
def figure():
    return Figure(figsize=(2, 1))


def test_a_letter_that_no_font_has_is_its_code_point(figure, monkeypatch):
    monkeypatch.setattr(fonts, "_font_with", lambda letter: None)
    artist = figure.text(0, 0, "clients \u0915\u0916")
    png_bytes(figure)
    assert artist.get_text() == "clients U+0915U+0916"


def test_another_font_is_taken_where_the_usual_one_lacks_a_letter(figure, monkeypatch):
    monkeypatch.setattr(fonts, "_has", lambda font, letter: font != "DejaVu Sans")
    monkeypatch.setattr(fonts, "_font_with", lambda letter: "DejaVu Serif")
    artist = figure.text(0, 0, "é")
    fonts.make_readable(figure)
    assert artist.get_fontfamily()[-1] == "DejaVu Serif"
    assert artist.get_text() == "é"
    # A figure is saved in several formats.
    families = artist.get_fontfamily()
    fonts.make_readable(figure)
    assert artist.get_fontfamily() == families


def test_what_the_usual_font_has_stays_as_it_is(figure):
    artist = figure.text(0, 0, "naïve Ж ≤ ε")
    before = artist.get_fontfamily()
    fonts.make_readable(figure)
    assert (artist.get_text(), artist.get_fontfamily()) == ("naïve Ж ≤ ε", before)


def test_a_font_is_looked_for_by_its_script(monkeypatch):
    monkeypatch.setattr(
        fonts.fontManager, "get_font_names", lambda: ["Noto Color Hangul", "A CJK", "Noto Sans CJK"]
    )
    monkeypatch.setattr(fonts, "_has", lambda font, letter: True)
    assert fonts._font_with.__wrapped__("가") == "Noto Sans CJK"
    assert fonts._font_with.__wrapped__("क") is None
