"""One style for all figures: colors, lines that can be distinguished where they coincide, files."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, NullLocator

from fedhh.experiments.report.fonts import make_readable
from fedhh.experiments.report.titles import restyle
from fedhh.experiments.study.look import Look
from fedhh.system.files import whole_file
from fedhh.validation import InputError

# Okabe and Ito's palette: distinguishable with any color vision.
BLUE, ORANGE, GREEN, VERMILION, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
GREY, BLACK, SKY = "#7F7F7F", "#000000", "#56B4E9"

STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "axes.axisbelow": True,
    "legend.frameon": False,
    # No power of ten that stands apart from the ticks it is a factor of.
    "axes.formatter.limits": (-6, 12),
    "axes.formatter.useoffset": False,
}

styled = mpl.rc_context(STYLE)
"""Decorates what draws figures in this style."""

SIZE = (6.4, 4.0)
FORMATS = ("png", "pdf", "svg")
_SUFFIXES = tuple(f".{kind}" for kind in FORMATS)
DPI = 160

_COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, BLACK, SKY)
PROTOCOLS: Mapping[str, tuple[str, ...]] = {
    BLUE: ("ldp-triehh", "LDP TrieHH"),
    VERMILION: ("adaptive-triehh", "Adaptive TrieHH"),
    GREEN: ("sfp", "SFP"),
    ORANGE: ("triehh", "TrieHH (central)", "TrieHH"),
    PURPLE: ("pem", "PEM"),
    SKY: ("blender", "BLENDER"),
    "#8C6BB1": ("treehist", "TreeHist"),
    "#A6761D": ("bitstogram", "Bitstogram"),
    "#B8A038": ("secagg-triehh", "TrieHH, secure aggregation", "Secure aggregation"),
    "#999933": ("two-servers", "Two servers (Poplar1)", "Two servers"),
    "#5D4EC0": ("tee-histogram", "TEE histogram"),
    "#44AA99": ("weighted-gaussian", "Weighted Gaussian"),
    "#AA4499": ("dp-sips", "DP-SIPS"),
    "#882255": ("sample-and-threshold", "Sample and threshold"),
    "#CC6677": ("rappor", "RAPPOR"),
    "#E7298A": ("rappor-unknown", "RAPPOR, open domain"),
    "#66A61E": ("ldpminer", "LDPMiner"),
    "#2F6B9A": ("svim", "SVIM"),
    "#B15928": ("svsm", "SVSM"),
    "#1B7F5C": ("opt-prefix-tree", "OptPrefixTree"),
}
"""The color of each protocol in all figures and pages, and the names that labels give it."""

_NAMES = sorted(
    ((name, color) for color, names in PROTOCOLS.items() for name in names),
    key=lambda each: -len(each[0]),
)
_COLOR_OF = {
    re.compile(rf"(?:^|, ){re.escape(name)}(?=$|,| \(|: )"): color for name, color in _NAMES
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_WIDEST, _NARROWEST = (3.6, 8.5), (1.3, 3.5)
_WIDE_SPAN, _SHORT_SPAN = 1_000.0, 5.0
"""From one end of a logarithmic axis to the other: beyond which powers of ten are enough, and below
which these with 2 and 5 times may be a single tick."""
_LEAST_PLAIN, _MILLION = 1e-6, 1_000_000
# Vector files without a date are the same for the same results.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
}


@cache
def protocol_color(label: str) -> str | None:
    """Return the color of the protocol that a label names; None if it names none.

    >>> protocol_color("SFP, ss fragments") == protocol_color("epsilon 4, sfp") == GREEN
    True
    >>> protocol_color("epsilon 4")
    """
    found = (color for pattern, color in _COLOR_OF.items() if pattern.search(label))
    return next(found, None)


def colors_of(labels: Sequence[str | None]) -> list[str]:
    """Return a color for each line: its protocol's, else one that no protocol among them has."""
    known = [protocol_color(label or "") for label in labels]
    others = cycle([color for color in _COLORS if color not in known] or _COLORS)
    return [color or next(others) for color in known]


def looks(labels: Sequence[str | None]) -> list[dict[str, Any]]:
    """Return the look of each of several lines, as `series`, in the colors of `colors_of`."""
    return [
        series(number, len(labels)) | {"color": color}
        for number, color in enumerate(colors_of(labels))
    ]


def series(number: int, of: int) -> dict[str, Any]:
    """Return the look of one of several lines.

    Later lines are drawn over earlier ones, and are narrower with smaller markers: where two take
    the same values, both are seen.
    """
    thin = number / max(of - 1, 1) if of > 1 else 0.85
    width, marker = (
        wide + (narrow - wide) * thin for wide, narrow in zip(_WIDEST, _NARROWEST, strict=True)
    )
    return {
        "color": _COLORS[number % len(_COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": _DASHES[number % len(_DASHES)] if number else "-",
        "linewidth": width,
        "markersize": marker,
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
        "zorder": 2 + 0.1 * number,
    }


def legend_entries(figure: Figure) -> dict[str, Any]:
    """Return what a legend of all axes shows, by label; of equal labels the last one."""
    return {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }


class _LogTicks(LogLocator):
    """Powers of ten, with 2 and 5 times where these are few, and all digits where there is none."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks between two limits."""
        span = vmax / vmin if vmin > 0 else math.inf
        steps = (1,) if span > _WIDE_SPAN or vmin < _LEAST_PLAIN else (1, 2, 5)
        self.set_params(subs=range(1, 10) if span < _SHORT_SPAN else steps)
        return super().tick_values(vmin, vmax)


class _LogText(Formatter):
    """Plain numbers; powers of ten, and these alone, on an axis that reaches very small values."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        assert self.axis is not None
        least = min(self.axis.get_view_interval())
        return plain_number(x) if least >= _LEAST_PLAIN else f"$10^{{{math.log10(x):.0f}}}$"


def plain_number(value: float) -> str:
    """Return a tick's number as people write it.

    >>> plain_number(20_000), plain_number(5e6), plain_number(0.00002), plain_number(0.5)
    ('20,000', '5M', '0.00002', '0.5')
    """
    if value >= _MILLION:
        return f"{value / _MILLION:,.6g}M"
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def log_scale(axis: Axis) -> None:
    """Scale an axis by logarithm, with ticks that people read."""
    axes = axis.axes
    scale = axes.set_xscale if axis is axes.xaxis else axes.set_yscale
    scale("log")
    axis.set_major_locator(_LogTicks())
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(_LogText())


def in_percent(axis: Axis) -> None:
    """Show the values of an axis of shares in percent, none of them rounded to another."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g}%"))


def write_figure(
    figure: Figure, stem: Path, formats: Sequence[str] = FORMATS, *, look: Look | None = None
) -> Path:
    """Write a figure in some of `FORMATS` next to each other, and return the first file.

    Args:
        figure: In the look that is asked for from then on; in its own if there is none.
        stem: Its path without an extension.
        formats: Which ones.
        look: What a user asks of it.
    """
    if look is not None:
        restyle(figure, look)
    for kind in formats:
        with whole_file(stem.with_name(f"{stem.name}.{kind}")) as temporary:
            save(figure, temporary, kind)
    return stem.with_name(f"{stem.name}.{formats[0]}")


def check_figure(path: Path) -> None:
    """Raise InputError unless a figure can be written under this name; looks only."""
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(
            f"Expected a figure that ends in {', '.join(_SUFFIXES)}, got {str(path)!r}."
        )
    if path.is_dir():
        raise InputError(f"{path} is a directory; give the name of a figure.")


def write_one(figure: Figure, path: Path) -> None:
    """Write a figure to a file of the format that its name says."""
    try:
        with whole_file(path) as temporary:
            save(figure, temporary, path.suffix.lower().removeprefix("."))
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.") from None


class NotebookFigure(Figure):
    """A figure that notebooks show as the value of a cell, without pyplot."""

    def _repr_png_(self) -> bytes:
        return png_bytes(self)


def png_bytes(figure: Figure) -> bytes:
    """Return a figure as the content of a PNG file."""
    content = io.BytesIO()
    save(figure, content, "png")
    return content.getvalue()


def save(figure: Figure, target: Any, kind: str) -> None:
    """Save a figure to a path or a file; the same figure gives the same bytes."""
    with mpl.rc_context({"svg.hashsalt": "fedhh", "pdf.fonttype": 42}), warnings.catch_warnings():
        make_readable(figure)
        # A letter may be in another font than the first.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(target, format=kind, dpi=DPI, metadata=_METADATA[kind])
