"""What pyproject.toml cannot say: the readme that a package index shows.

An index shows no file beside the readme, so that links and pictures within the source would lead
nowhere there. They become plain text, which names the file; links to the web stay.
"""

import re
from pathlib import Path

from setuptools import setup

_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_WEB = re.compile(r"https?://|#")
_NOTE = (
    "`pip install fedhh` is all that `fedhh run` needs. The source distribution has the files that "
    "are named here, and what the commands under *Quick start* and *Tests* install.\n\n"
)


def readme_for_index(text: str) -> str:
    """Return Markdown in which links within the source are text, with a note on where files are."""

    def plain(match: re.Match[str]) -> str:
        text, target = match["text"], match["target"]
        if _WEB.match(target):
            return match[0]
        if match["picture"]:
            return f"*Figure: {text} (`{target}`).*"
        return f"`{target}`" if text in target else f"{text} (`{target}`)"

    title, body = text.split("\n\n", maxsplit=1)
    return f"{title}\n\n{_NOTE}{_LINK.sub(plain, body)}"


if __name__ == "__main__":
    setup(
        long_description=readme_for_index(Path("README.md").read_text(encoding="utf-8")),
        long_description_content_type="text/markdown",
    )
