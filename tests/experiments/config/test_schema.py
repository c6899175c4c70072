from __future__ import annotations

import tomllib

import pytest

from fedhh.adversary import Adversary
from fedhh.experiments.config.built_in import preset_names, preset_text
from fedhh.experiments.config.load import load_config, parse_config
from fedhh.experiments.config.protocol import build_protocol, settle
from fedhh.experiments.config.section import section_of
from fedhh.experiments.sweep.plan import load_sweep_table, parse_sweep
from fedhh.validation import InputError
from tests.every import every


@every("name", preset_names())
def test_every_preset_is_valid_and_comes_back_from_its_own_file(name: str):
    config = load_config(preset=name)
    again = parse_config(tomllib.loads(config.to_toml()), "written")
    assert again == config
    build_protocol(config)


@every(
    ("setting", "message"),
    [
        (
            "protocol.validate_share=0.1",
            "unknown key protocol.validate_share; did you mean 'validation_share'?",
        ),
        ("protocol.eta_maxx=3", "unknown key protocol.eta_maxx; did you mean 'eta_max'?"),
        ("eta_max=3", "unknown key eta_max; did you mean protocol.eta_max?"),
        ("local_epsilon=3", "unknown key local_epsilon; did you mean privacy.local_epsilon?"),
        ("word_hashes=3", "unknown key word_hashes; did you mean protocol.word_hashes?"),
        ("protocol.local_epsilon=3", "protocol.local_epsilon; did you mean privacy.local_epsilon?"),
        ("population.seed=3", "unknown key population.seed; did you mean seed?"),
        ("protocl.eta_max=3", "unknown key protocl; did you mean 'protocol'?"),
        ("baseline.0.eta_max=0", "baseline.0.eta_max = 0: expected greater than or equal to 1"),
        ("baseline.0.eta_max=true", "baseline.0.eta_max = true: expected a valid integer"),
        ("protocol.max_items=0", "protocol.max_items = 0"),
        ("protocol.depth=0", "protocol.depth = 0"),
        ("protocol.clients_per_layer=1.5", "protocol.clients_per_layer = 1.5"),
        ('protocol.depth="two"', 'protocol.depth = "two": expected a valid integer'),
        ("privacy.local_epsilon=nan", "privacy.local_epsilon = NaN: expected a finite number"),
        ("privacy.local_epsilon=-1", "privacy.local_epsilon = -1: expected greater than or equal"),
        ("privacy.delta=0.5", "privacy.delta = 0.5: expected less than or equal to 0.1"),
        ("protocol.sampler=greeedy", "expected 'random' or 'greedy'"),
        ("protocol=3", "protocol = 3"),
        ("seed=-1", "seed = -1"),
        ("metrics.top_k=[0]", "metrics.top_k.0 = 0"),
        ("metrics.ceiling=1", "metrics.ceiling = 1: expected a valid boolean."),
        ("nonsense", "Expected --set SECTION.KEY=VALUE, got 'nonsense'"),
        ("=3", "Expected --set SECTION.KEY=VALUE"),
        ("seed.x=3", "seed"),
        ("privacy.local_epsilon=1e-300", "privacy.local_epsilon = 1e-300: expected greater than"),
        ("protocol.max_items=1_000_000_000_000", "max_items = 1000000000000: expected less"),
        ("baseline.0.max_items=1_000_000_000_000", "max_items = 1000000000000: expected less"),
        ("protocol.depth=1_000_000_000_000_000", "depth = 1000000000000000: expected less"),
        (
            "protocol.clients_per_layer=2_000_000_000_000",
            "an integer >= 1 and <= 1099511627776, or",
        ),
        ("seed=1979-05-27", 'seed = "1979-05-27": expected a valid integer'),
        ("baseline.0.eta_max=07:32:00", 'eta_max = "07:32:00": expected a valid integer'),
        ("privacy.delta=1979-05-27T07:32:00Z", 'privacy.delta = "1979-05-27 07:32:00+00:00"'),
        ("seed=" + "9" * 5_000, "seed: expected integers of at most 4,300 digits"),
        (
            "seed=0x" + "f" * 5_000,
            "from -2^63 to 2^63 - 1, got an integer of 20000 bits",
        ),
        ("seed=" + "9" * 30, "seed: expected integers from -2^63 to 2^63 - 1, got an"),
        ("seed=" + "[" * 100_000, "seed: expected at most 16 levels"),
        ("seed=" + "[" * 20 + "]" * 20, "seed: expected at most 16 levels"),
        (".".join("a" * 5_000) + "=1", "expected at most 16 levels"),
        ("seed=" + '"' + "x" * 5_000 + '"', "xxx...: expected a valid integer"),
        ("seed=a\nb\x1b[2J", 'seed = "a\\nb\\u001b[2J": expected a valid integer'),
    ],
)
def test_wrong_settings_are_refused_with_path_and_value(setting: str, message: str):
    with pytest.raises(InputError) as caught:
        load_config(settings=[setting])
    assert message in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_settings_are_read_as_toml_and_else_as_text():
    config = load_config(settings=["protocol.sampler=greedy", "protocol.eta_max=1_500"])
    assert config.protocol.sampler == "greedy"
    assert config.protocol.eta_max == 1500


def test_a_config_file_is_read_and_its_faults_name_it(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("seed = 4\n[protocol]\npasses = 1\n")
    assert load_config(file=path).seed == 4
    path.write_text("[protocol]\nname = 'pam'\n")
    message = r"mine\.toml: protocol\.name = \"pam\": Unknown protocol 'pam'; did you mean 'pem'"
    with pytest.raises(InputError, match=message):
        load_config(file=path)
    path.write_text("seed = \n")
    with pytest.raises(InputError, match=r"mine\.toml: not valid TOML"):
        load_config(file=path)
    path.write_bytes(b"seed = 1 # \xff\n")
    with pytest.raises(InputError, match="not UTF-8 text at byte 11"):
        load_config(file=path)
    with pytest.raises(
        InputError, match=r"Cannot read the config: Expected an existing file.*absent\.toml"
    ):
        load_config(file=tmp_path / "absent.toml")
    with pytest.raises(InputError, match="got both"):
        load_config(file=path, preset="small")


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(InputError, match=r"did you mean 'default'.*small"):
        preset_text("defualt")


def test_what_belongs_to_another_command_says_to_which(tmp_path):
    with pytest.raises(InputError, match="fedhh sweep --preset epsilon-n"):
        load_config(preset="epsilon-n")
    with pytest.raises(InputError, match="fedhh run --preset small"):
        load_sweep_table("small")
    (tmp_path / "many.toml").write_text("[sweep]\nseeds = 2\n")
    with pytest.raises(InputError, match=r"many.toml has a table \[sweep\].* fedhh sweep"):
        load_config(file=tmp_path / "many.toml")
    with pytest.raises(InputError, match=r"a table \[sweep\] .*to fedhh run"):
        parse_sweep({"seed": 3}, "one.toml")


def test_only_what_makes_the_result_makes_its_key():
    base = load_config()
    for setting in ("execution.workers=0", 'execution.ray_address="x"', 'output.directory="x"'):
        assert load_config(settings=[setting]).result_key == base.result_key
    for setting in (
        "seed=1", "protocol.eta_max=9", "population.clients=9", "privacy.delta=1e-9",
        "metrics.ceiling=true",
    ):  # fmt: skip
        assert load_config(settings=[setting]).result_key != base.result_key


def test_a_data_file_replaces_the_population_and_frees_the_cohorts(tmp_path):
    config = load_config(data=tmp_path / "words.csv")
    assert config.population.source.endswith("words.csv")
    assert config.population.clients is None
    assert config.protocol.clients_per_layer == "auto"
    fixed = load_config(data=tmp_path / "w.csv", settings=["protocol.clients_per_layer=7"])
    assert fixed.protocol.clients_per_layer == 7


def test_automatic_cohorts_use_the_whole_population():
    config = load_config(
        settings=[
            "protocol.name=ldp-triehh", 'protocol.clients_per_layer="auto"', "protocol.passes=1",
            "protocol.participation=one-round", "protocol.false_discovery_rate=0",
            "protocol.depth=15", "protocol.eta_max=1_000",
        ]
    )  # fmt: skip
    assert settle(config, 15_007)[0].protocol.clients_per_layer == 1_000
    with pytest.raises(InputError, match="fewer than the 15 layers"):
        settle(config, 14)


@pytest.mark.parametrize(
    ("given", "targets"), [("", ()), ("lol", ("lol",)), (["lol", "brb"], ("lol", "brb"))]
)
def test_targets_of_fake_clients_are_one_word_or_several(given, targets):
    assert section_of(Adversary)(targets=given, share=0.1).made.targets == targets
