"""What other packages warn of is not what fedhh says."""

from __future__ import annotations

import logging

import pytest

from fedhh.cli.verbosity import log_from


@pytest.fixture(autouse=True)
def levels():
    loggers = [logging.getLogger(name) for name in ("fedhh", "matplotlib")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize(
    ("level", "is_said"), [(logging.ERROR, False), (logging.WARNING, False), (logging.INFO, True)]
)
def test_a_home_that_cannot_be_written_is_matplotlibs_matter(caplog, level, is_said):
    # Where `fedhh` runs, nothing but the level stands between such a line and standard error.
    log_from(level)
    logging.getLogger("matplotlib").warning("mkdir -p failed for path /none")
    assert ("mkdir -p failed" in caplog.text) == is_said
    log_from(level)
    logging.getLogger("matplotlib").error("No font is there")
    assert "No font is there" in caplog.text
