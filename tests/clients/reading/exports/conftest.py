"""Messages with a salt of the tests."""

import pytest

from fedhh.clients.reading.exports.messages import Messages, user_number

SALT = b"a salt of the tests"


@pytest.fixture
def messages() -> Messages:
    return Messages(salt=SALT)


@pytest.fixture
def rows(messages):
    """What was taken, with the authors whose numbers those are."""

    def call(*authors: str) -> list[tuple[str, str]]:
        named = {user_number(author, SALT): author for author in authors}
        return [
            (named[user], text) for user, text in zip(messages.users, messages.texts, strict=True)
        ]

    return call
