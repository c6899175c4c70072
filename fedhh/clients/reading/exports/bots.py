"""Authors that are programs: the one list of names and addresses that tell."""

from __future__ import annotations

import re

_NAMED = frozenset({
    "actions-user", "allcontributors", "bors", "buildbot", "codecov", "copybara-service",
    "dependabot", "dependabot-preview", "gerrit", "github", "github-actions", "gitlab-bot",
    "greenkeeper", "imgbot", "jenkins", "kernel test robot", "lgtm-com", "mergify", "patchwork-bot",
    "pre-commit-ci", "pyup-bot", "renovate", "restyled-io", "semantic-release-bot", "slackbot",
    "snyk-bot", "syzbot", "transifex", "travis", "travis ci", "web-flow", "weblate", "whitesource",
    "zuul",
})  # fmt: skip
"""Names of programs, and what stands before the @ of their addresses."""

_SENDERS = frozenset({
    "bounce", "bounces", "do-not-reply", "donotreply", "mailer-daemon", "no-reply", "no_reply",
    "noreply", "notification", "notifications", "postmaster",
})  # fmt: skip
"""What stands before the @ of addresses from which programs write."""

_BOT = re.compile(r"\[bot\]|(?:^|[-_. ])(?:ro)?bot$")


def is_bot(name: str, address: str = "") -> bool:
    """Return whether a program wrote this, as far as its name or its address tells.

    A private address of GitHub, ``1+name@users.noreply.github.com``, is that of a person.

    >>> is_bot("renovate[bot]"), is_bot("Ana", "noreply@github.com")
    (True, True)
    >>> is_bot("Ana Abbot", "1+ana@users.noreply.github.com")
    False
    """
    local = address.strip().casefold().rpartition("@")[0].rpartition("+")[2]
    return local in _SENDERS or any(
        each in _NAMED or _BOT.search(each) is not None
        for each in (name.strip().casefold(), local)
        if each
    )
