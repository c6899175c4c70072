"""Every command on privacy takes an epsilon that can be computed with, and says so of others."""

from __future__ import annotations

import pytest

from tests.thinned import thinned

COMMANDS = {
    "shuffle": "account shuffle --local-epsilon {} --reports 10000",
    "user": "account user --local-epsilon {} --clients 10000 --max-items 5",
    "plan": "account plan --local-epsilon {} --central-epsilon 1",
    "oracles": "oracles compare --local-epsilon {} --domain-size 100",
    "memo-rappor": "account memo --answer rappor --local-epsilon {} --days 5",
    "memo-one-bit-mean": "account memo --answer one-bit-mean --local-epsilon {} --days 5",
    "memo-dbitflip": "account memo --answer dbitflip --local-epsilon {} --days 5",
    "memo-fresh": "account memo --answer fresh --local-epsilon {} --days 5",
    "ledger": "account ledger --use-case a={}:2 --days 10",
    "audit": "audit randomizer --oracle grr --local-epsilon {} --domain-size 10 --samples 2000",
}


@pytest.mark.parametrize("name", thinned(COMMANDS))
def test_epsilons_without_right_numbers_are_refused_in_one_line(name, command):
    for epsilon in ("5e-324", "1e-17", "1e300"):
        done = command(*COMMANDS[name].format(epsilon).split())
        assert done.returncode == 2
        assert done.stdout == ""
        assert "epsilon" in done.stderr
        assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize("name", ["memo-fresh", "ledger"])
@pytest.mark.parametrize("epsilon", ["1e-6", "700", "1000"])
def test_no_number_is_missing_at_the_ends(name, epsilon, command):
    done = command(*COMMANDS[name].format(epsilon).split())
    assert done.returncode == 0
    assert "nan" not in done.stdout.lower()


@pytest.mark.parametrize("epsilon", thinned(["5e-324", "1e-300", "1e-17"], keep=2))
def test_a_central_target_that_nothing_reaches_is_said_to_be_out_of_reach(epsilon, command):
    for given in ("--clients 10000", "--local-epsilon 6"):
        done = command("account", "plan", *given.split(), "--central-epsilon", epsilon)
        assert done.returncode == 0
        assert "no plan: without amplification" in done.stdout or "no plan: even" in done.stdout
        assert "nan" not in done.stdout
