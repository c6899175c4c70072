"""A pipeline's configuration: what it refuses, in one line, and Apple's published numbers."""

from __future__ import annotations

import gzip

import pytest

from fedhh.experiments.config.built_in import PIPELINES, preset_names
from fedhh.experiments.config.toml_file import parse_toml
from fedhh.longitudinal.ledger import APPLE
from fedhh.longitudinal.pipeline.build import build_use_cases
from fedhh.longitudinal.pipeline.config import load_pipeline, parse_pipeline
from fedhh.validation import InputError
from tests.every import every

EMOJI = "pipeline.use_cases.emoji"

REFUSED = {
    "pipeline.days=-1": "pipeline.days = -1",
    "pipeline.days=0": "pipeline.days = 0",
    "pipeline.devices=0": "pipeline.devices = 0",
    "pipeline.opt_in=0": "pipeline.opt_in = 0",
    "pipeline.opt_in=1.5": "pipeline.opt_in = 1.5",
    "pipeline.delay_hours=-1": "pipeline.delay_hours = -1",
    "pipeline.delay_hours=96.0": "expected less than 96, as devices drop",
    "pipeline.delay_distribution=late": "pipeline.delay_distribution",
    "pipeline.dayz=1": "unknown key pipeline.dayz; did you mean 'days'",
    "pipeline.publish_every=91": "reports are kept no longer",
    "pipeline.use_cases.emojis.epsilon=2": "unknown use case 'emojis'; did you mean 'emoji'",
    f"{EMOJI}.epsilon=0": f"{EMOJI}.epsilon = 0",
    f"{EMOJI}.epsilon=-1": f"{EMOJI}.epsilon = -1",
    f"{EMOJI}.epsilon=nan": f"{EMOJI}.epsilon",
    f"{EMOJI}.epsilon=[1.0, 2.0]": "expected one number for an oracle",
    f"{EMOJI}.epsilon=[1.0, 2.0, 3.0]": "one number, or two for sfp",
    f"{EMOJI}.records_per_day=0": f"{EMOJI}.records_per_day = 0",
    f"{EMOJI}.session_days=0": f"{EMOJI}.session_days = 0",
    f"{EMOJI}.rollover=-1": f"{EMOJI}.rollover = -1",
    f"{EMOJI}.lifetime=0": f"{EMOJI}.lifetime = 0",
    f"{EMOJI}.events_per_day=0": f"{EMOJI}.events_per_day = 0",
    f"{EMOJI}.oracle=cmx": "Unknown oracle 'cmx'; did you mean 'cms'",
    f"{EMOJI}.protocol=sfp": "either oracle = NAME or protocol",
    f"{EMOJI}.epsilonn=1": f"unknown key {EMOJI}.epsilonn; did you mean 'epsilon'",
    f"{EMOJI}.params.rows=1": "Unknown parameter 'rows'",
    f"{EMOJI}.domain.values=1": f"{EMOJI}.domain.values = 1",
    f"{EMOJI}.domain.words=some.txt": "one of values, words and population",
    "pipeline.use_cases.words.epsilon=8.0": "expected two for sfp",
    "pipeline.use_cases.words.params.rows=1": "Unknown setting 'rows' of sfp",
    "pipeline.use_cases.words.params.false_discovery_rate=0.1": "no cohort for a validation round",
}


@every("setting", REFUSED)
def test_what_cannot_be_is_refused_in_one_line(setting):
    with pytest.raises(InputError) as refused:
        build_use_cases(load_pipeline("pipeline-small", settings=[setting]))
    assert REFUSED[setting] in str(refused.value)
    assert "\n" not in str(refused.value)


def test_presets_and_files_are_asked_for_by_name(tmp_path):
    with pytest.raises(InputError, match="did you mean 'apple'"):
        load_pipeline("aple")
    with pytest.raises(InputError, match="preset of fedhh run"):
        load_pipeline("default")
    with pytest.raises(InputError, match="Expected a pipeline: a TOML file, or a preset"):
        load_pipeline("")
    with pytest.raises(InputError, match="unknown use case 'x'"):
        load_pipeline("apple", use_cases=["emoji", "x"])
    empty = tmp_path / "mine.toml"
    empty.write_text("seed = 1\n")
    with pytest.raises(InputError, match=r"\[pipeline.use_cases.NAME\]"):
        load_pipeline(empty)
    empty.write_text("[pipeline.use_cases.x]\nepsilon = 1.0\n")
    with pytest.raises(InputError, match="records_per_day: expected a value, got none"):
        load_pipeline(empty)


def test_a_written_configuration_is_the_same_again():
    for name in preset_names(PIPELINES):
        config = load_pipeline(name, settings=["pipeline.days=3"])
        again = parse_pipeline(parse_toml(config.to_toml(), "again"), "again")
        assert again == config
        assert again.result_key == config.result_key


def test_words_come_from_a_file(tmp_path):
    (tmp_path / "words.txt").write_text("hello\nworld\nnaïve\nhello\nworldwide-words\n")
    settings = [
        f'pipeline.use_cases.words.domain={{words = "{tmp_path}/words.txt", exponent = 1.0}}'
    ]
    config = load_pipeline("pipeline-small", settings=settings, use_cases=["words"])
    (words,) = build_use_cases(config)
    # Of six symbols; what the alphabet lacks is left out.
    assert list(words.device.events.words) == ["hello", "world", "worldw"]
    assert words.device.events.weights.tolist() == [1.0, 0.5, 0.25]
    for content, message in (("", "got an empty file"), ("naïve\n", "at least two words")):
        (tmp_path / "words.txt").write_text(content)
        with pytest.raises(InputError, match=message):
            build_use_cases(config)


def test_words_may_be_compressed_and_a_missing_file_is_named(tmp_path):
    path = tmp_path / "words.txt.gz"
    settings = [f'pipeline.use_cases.words.domain={{words = "{path}", exponent = 1.0}}']
    config = load_pipeline("pipeline-small", settings=settings, use_cases=["words"])
    with pytest.raises(InputError, match=r"domain\.words: cannot read .*words\.txt\.gz: No such"):
        build_use_cases(config)
    path.write_bytes(gzip.compress("\ufeffhello\nworld\n".encode()))
    (words,) = build_use_cases(config)
    assert list(words.device.events.words) == ["hello", "world"]


def test_apples_numbers_are_the_published_ones():
    """Apple (2017), section 6, and Apple's technical overview, "Privacy budget"."""
    cases = load_pipeline("apple").pipeline.use_cases
    assert {name: (sum(c.epsilons), c.records_per_day) for name, c in cases.items()} == {
        "quicktype": (8.0, 2),
        "emoji": (4.0, 1),
        "lookup-hints": (4.0, 2),
        "health": (2.0, 1),
        "safari-energy-crash": (4.0, 2),
        "safari-autoplay": (8.0, 2),
    }
    assert cases["quicktype"].epsilons == (2.0, 6.0)
    sizes = {
        name: (c.oracle, c.params["num_cells"], c.params["num_hashes"], c.domain.values)
        for name, c in cases.items()
        if c.oracle
    }
    assert sizes["emoji"] == ("cms", 1024, 65_536, 2_600)
    assert sizes["health"][:3] == ("cms", 256, 65_536)
    assert sizes["safari-energy-crash"] == ("hcms", 32_768, 1024, 250_000)
    assert sizes["safari-autoplay"] == ("cms", 1024, 65_536, 250_000)
    assert load_pipeline("apple").pipeline.retention_days == 90


def test_apples_pipeline_and_apples_ledger_state_the_same_rules():
    use_cases = load_pipeline("apple").pipeline.use_cases
    charges = {charge.use_case: charge.epsilon for charge in APPLE.charges}
    assert {name: sum(each.epsilons) for name, each in use_cases.items()} == charges
    assert {name: each.cap for name, each in use_cases.items()} == dict(APPLE.caps)
