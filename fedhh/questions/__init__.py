"""What a server may ask: names of words, a client's choice among them, and the channel to a tally.

Names are imported when they are first used: some load compiled code, which servers that only ask
do not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedhh.oracles import OracleSpec
    from fedhh.oracles.base import PureVotes
    from fedhh.questions.blooms import Blooms, Ngrams
    from fedhh.questions.channel import Channel
    from fedhh.questions.choice import OneTyped, PaddedMember, SampleB, SetSize
    from fedhh.questions.clients import Coins, Said, Sent
    from fedhh.questions.names import ItemSets, StringNames, TrieNames
    from fedhh.questions.noise import Noise, SumNoise
    from fedhh.questions.plain import PlainVotes, PlainWords
    from fedhh.questions.question import Aggregate, Question
    from fedhh.questions.records import Records
    from fedhh.questions.reports import Reports
    from fedhh.questions.sums import SecureVotes

_HOMES = {
    "fedhh.oracles": ("OracleSpec",),
    "fedhh.oracles.base": ("PureVotes",),
    "fedhh.questions.question": ("Aggregate", "Question"),
    "fedhh.questions.names": ("ItemSets", "StringNames", "TrieNames"),
    "fedhh.questions.choice": ("OneTyped", "PaddedMember", "SampleB", "SetSize"),
    "fedhh.questions.channel": ("Channel",),
    "fedhh.questions.reports": ("Reports",),
    "fedhh.questions.records": ("Records",),
    "fedhh.questions.blooms": ("Blooms", "Ngrams"),
    "fedhh.questions.plain": ("PlainVotes", "PlainWords"),
    "fedhh.questions.sums": ("SecureVotes",),
    "fedhh.questions.clients": ("Coins", "Said", "Sent"),
    "fedhh.questions.noise": ("Noise", "SumNoise"),
}

__all__ = [
    "Aggregate",
    "Blooms",
    "Channel",
    "Coins",
    "ItemSets",
    "Ngrams",
    "Noise",
    "OneTyped",
    "OracleSpec",
    "PaddedMember",
    "PlainVotes",
    "PlainWords",
    "PureVotes",
    "Question",
    "Records",
    "Reports",
    "Said",
    "SampleB",
    "SecureVotes",
    "Sent",
    "SetSize",
    "StringNames",
    "SumNoise",
    "TrieNames",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'fedhh.questions' has no attribute {name!r}")
