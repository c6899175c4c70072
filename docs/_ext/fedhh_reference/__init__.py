"""Reference pages made from the code: keys, commands, names, files and columns, none by hand.

Before each build, the pages are written into ``docs/reference/generated``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from fedhh_reference import api, commands, components, config_keys, formats

PAGES = {
    "commands": commands.page,
    "components": components.page,
    "config": config_keys.page,
    "formats": formats.page,
    "longitudinal": config_keys.longitudinal_page,
    "pipeline": config_keys.pipeline_page,
    "presets": components.presets_page,
}


def write_pages(app: Sphinx) -> None:
    """Write each page, unless it stands there already as it should be."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(exist_ok=True)
    texts = {name: page() for name, page in PAGES.items()} | api.pages()
    for stale in {path.stem for path in folder.glob("*.md")} - texts.keys():
        (folder / f"{stale}.md").unlink()
    for name, text in texts.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def nest_results(app: Sphinx, name: str, content: list[str]) -> None:
    """Put the pages of results below their list, which is read without Sphinx, too."""
    if name == "results/README":
        content[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n*/README\n```\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", nest_results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
