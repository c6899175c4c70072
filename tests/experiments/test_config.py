from __future__ import annotations

import tomllib

import pytest

from fedhh.experiments.config import load_config, parse_config, preset_names, preset_text
from fedhh.experiments.protocols import build_protocol, resolve_cohorts
from fedhh.validation import InputError


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid_and_comes_back_from_its_own_file(name: str):
    config = load_config(preset=name)
    again = parse_config(tomllib.loads(config.to_toml()), "written")
    assert again == config
    build_protocol(config)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("protocol.eta_maxx=3", "unknown key protocol.eta_maxx; did you mean 'eta_max'?"),
        ("protocl.eta_max=3", "unknown key protocl; did you mean 'protocol'?"),
        ("protocol.eta_max=0", "protocol.eta_max = 0: expected greater than or equal to 1"),
        ("protocol.eta_max=true", "protocol.eta_max = true: expected a valid integer"),
        ("protocol.max_items=0", "protocol.max_items = 0"),
        ("protocol.depth=0", "protocol.depth = 0"),
        ("protocol.clients_per_layer=1.5", "protocol.clients_per_layer = 1.5"),
        ('protocol.passes="two"', 'protocol.passes = "two": expected a valid integer'),
        ("privacy.local_epsilon=nan", "privacy.local_epsilon = NaN: expected a finite number"),
        ("privacy.local_epsilon=-1", "privacy.local_epsilon = -1: expected greater than 0"),
        ("privacy.delta=0.5", "privacy.delta = 0.5: expected less than or equal to 0.1"),
        ("protocol.sampler=greeedy", "expected 'random' or 'greedy'"),
        ("protocol=3", "protocol = 3"),
        ("seed=-1", "seed = -1"),
        ("metrics.top_k=[0]", "metrics.top_k.0 = 0"),
        ("nonsense", "Expected --set SECTION.KEY=VALUE, got 'nonsense'"),
        ("=3", "Expected --set SECTION.KEY=VALUE"),
        ("seed.x=3", "seed"),
    ],
)
def test_wrong_settings_are_refused_with_path_and_value(setting: str, message: str):
    with pytest.raises(InputError) as caught:
        load_config(settings=[setting])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_are_read_as_toml_and_else_as_text():
    config = load_config(settings=["protocol.sampler=greedy", "protocol.eta_max=1_500"])
    assert config.protocol.sampler == "greedy"
    assert config.protocol.eta_max == 1500


def test_a_config_file_is_read_and_its_faults_name_it(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("seed = 4\n[protocol]\npasses = 1\n")
    assert load_config(file=path).seed == 4
    path.write_text("seed = \n")
    with pytest.raises(InputError, match=r"mine\.toml: not valid TOML"):
        load_config(file=path)
    path.write_bytes(b"seed = 1 # \xff\n")
    with pytest.raises(InputError, match="not UTF-8 text at byte 11"):
        load_config(file=path)
    with pytest.raises(InputError, match=r"Cannot read the config .*absent\.toml"):
        load_config(file=tmp_path / "absent.toml")
    with pytest.raises(InputError, match="got both"):
        load_config(file=path, preset="small")


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(InputError, match=r"did you mean 'default'.*small"):
        preset_text("defualt")


def test_only_what_makes_the_result_makes_its_key():
    base = load_config()
    for setting in ("execution.workers=0", 'execution.ray_address="x"', 'output.directory="x"'):
        assert load_config(settings=[setting]).result_key == base.result_key
    for setting in ("seed=1", "protocol.eta_max=9", "population.clients=9", "privacy.delta=1e-9"):
        assert load_config(settings=[setting]).result_key != base.result_key


def test_a_data_file_replaces_the_population_and_frees_the_cohorts(tmp_path):
    config = load_config(data=tmp_path / "words.csv")
    assert config.population.source.endswith("words.csv")
    assert config.population.clients is None
    assert config.protocol.clients_per_layer == "auto"
    fixed = load_config(data=tmp_path / "w.csv", settings=["protocol.clients_per_layer=7"])
    assert fixed.protocol.clients_per_layer == 7


def test_automatic_cohorts_use_the_whole_population():
    config = load_config(settings=['protocol.clients_per_layer="auto"', "protocol.passes=1"])
    assert resolve_cohorts(config, 15_007).protocol.clients_per_layer == 1_000
    with pytest.raises(InputError, match="fewer than the 15 layers"):
        resolve_cohorts(config, 14)
