"""A run that asks for a central epsilon: each protocol's epsilons follow, before anything runs."""

from __future__ import annotations

import pytest

from fedhh.accounting.guarantees import UNITS
from fedhh.accounting.terms import PrivacyTerms
from fedhh.experiments.config.load import change_config, load_config, parse_config
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.directory import resumed_config, runs_in
from fedhh.experiments.run.equal_privacy import OutOfReachError, with_chosen_epsilons
from fedhh.experiments.run.run import check_config
from fedhh.experiments.run.stored_result import read_result
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.request import Request
from fedhh.experiments.study.source import open_study
from fedhh.testing import small_population
from fedhh.validation import InputError

BASE = (
    "population.clients=4000",
    "protocol.depth=4",
    "protocol.eta_max=20",
    "protocol.passes=1",
    "execution.workers=0",
)
TWO = (*BASE, 'baseline=[{name = "triehh"}, {name = "ldp-triehh", max_items = 2}]')
TARGET = "privacy.user_central_epsilon=3"


def config_with(*settings: str) -> Config:
    return load_config(preset="small", settings=[*BASE, "baseline=none", *settings])


@pytest.mark.parametrize("unit", UNITS)
def test_the_settled_run_has_the_guarantee_that_was_asked_for(unit: str):
    config = config_with(f"privacy.{unit}_central_epsilon=3")
    assert config.privacy.central_target == (unit, 3.0)
    settled, protocol = check_config(config, small_population(4_000))
    assert settled.privacy.central_target is None
    assert protocol.local_epsilon == settled.privacy.local_epsilon
    terms = PrivacyTerms(num_clients=4_000, delta=settled.privacy.delta)
    central = protocol.plan.central_epsilon(unit, terms)
    assert 3 * (1 - 2e-3) <= central <= 3
    # What has its epsilons is not asked again.
    assert check_config(settled, small_population(4_000)) == (settled, protocol)


def test_one_epsilon_decides_the_others():
    config = config_with(TARGET)
    assert parse_config({"privacy": config.privacy.model_dump()}, "test").privacy == config.privacy
    assert config_with(TARGET, "privacy.delta=1e-6").result_key != config.result_key
    local = change_config(config, ["privacy.local_epsilon=2"], "test").privacy
    assert (local.local_epsilon, local.central_target) == (2.0, None)
    item = change_config(config, ["privacy.item_central_epsilon=2"], "test").privacy
    assert item.central_target == ("item", 2.0)
    for settings, message in (
        ((TARGET, "privacy.local_epsilon=2"), "user_central_epsilon alone, from which local_epsil"),
        ((TARGET, "privacy.item_central_epsilon=2"), "item_central_epsilon alone, from which user"),
        (("privacy.user_central_epsilon=0",), "privacy.user_central_epsilon = 0: expected greater"),
        (("privacy.user_central_epsilon=inf",), "expected a finite number"),
    ):
        with pytest.raises(InputError, match=message):
            config_with(*settings)


def test_what_no_settings_reach_is_refused_before_anything_runs():
    config = config_with(TARGET, "protocol.oracle=none")
    with pytest.raises(OutOfReachError, match="expected settings with user central epsilon 3 bef"):
        with_chosen_epsilons(config, 4_000)


class Stopper(Callbacks):
    """Stops a run in its second layer."""

    def __init__(self) -> None:
        self.layers = 0

    def finish(self, unit, result) -> None:
        self.layers += 1
        if self.layers == 2:
            raise KeyboardInterrupt


@pytest.mark.slow("::test_the_settled_run_has_the_guarantee_that_was_asked_for")
def test_a_run_and_its_baselines_have_one_guarantee_and_go_on_with_it(tmp_path):
    settings = [*TWO, TARGET]

    def asked(out: str, *, resume: bool = False) -> Request:
        return Request(source="small", settings=settings, out=tmp_path / out, resume=resume)

    whole = open_study(asked("whole"))[1].run()
    runs = [read_result(each).result for each in runs_in(whole)]
    assert [run.protocol.name for run in runs] == ["ldp-triehh", "triehh", "ldp-triehh"]
    for run in runs:
        assert 3 * (1 - 1e-2) <= run.privacy.before_run("user").epsilon <= 3
    assert runs[0].protocol.local_epsilon < runs[2].protocol.local_epsilon
    # The run's file asks for it again, since it decides the baselines, too.
    assert resumed_config(whole).privacy.central_target == ("user", 3.0)
    with pytest.raises(KeyboardInterrupt):
        open_study(asked("stopped"))[1].run([Stopper()])
    again = open_study(asked("stopped", resume=True))[1].run()
    for first, second in zip(runs_in(whole), runs_in(again), strict=True):
        found = (read_result(each).result.discoveries for each in (first, second))
        assert next(found).equals(next(found))
