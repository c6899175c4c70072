"""What pages name is there: members of a protocol."""

from __future__ import annotations

import re
from pathlib import Path

from fedhh.protocol import DiscoveryProtocol

DOCS = Path(__file__).parent.parent / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_members_of_a_protocol_that_pages_name_are_members():
    table = page("tutorials/own-protocol.md")
    members = re.findall(r"^\| `(\w+)(?:\(.*?\))?` \|", table, flags=re.MULTILINE)
    assert len(members) == 4
    members += re.findall(r"`self\.(\w+)", page("extending.md"))
    assert [each for each in members if not hasattr(DiscoveryProtocol, each)] == []
