"""A run's numbers in one row, for tables of many runs."""

from __future__ import annotations

from typing import Any

from fedhh.accounting.layer_anonymity import claim_over_run
from fedhh.experiments.run.privacy import (
    central_before_run,
    central_epsilon,
    claimed_k,
    local_epsilon,
)
from fedhh.experiments.run.regime import regime_of_run
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.study.json_values import plain


def flat_result(run: RunResult, *, delta: float) -> dict[str, Any]:
    """Return metrics, privacy and cost of a run without nesting, as JSON values.

    Epsilons hold over all rounds that a client takes part in; they are the smallest that can be
    claimed: before the run, whatever domains its votes decide, or after it, for those they did.

    Columns:
        limited_by: "eta_max", "noise", or "nothing": no layer decided.
        noise_share: About how much of what layers kept is noise.
        local_epsilon: Against the server, of one contribution.
        local_epsilon_user: Against the server, of all contributions of a client.
        central_epsilon_before_run: Against readers of the results, of one contribution, before
            the run.
        central_epsilon: Likewise after the run, for the domains that it had.
        central_epsilon_user_before_run: Against readers of the results, of all contributions of a
            client, before the run.
        central_epsilon_user: Likewise after the run, for the domains that it had.
        delta: At which the central epsilons hold.
        claimed_k: Of approximate k-anonymity: a word that at most so many clients hold returns
            with probability at most 1 - alpha; missing without a claim.
        alpha: At which ``claimed_k`` holds; missing without a claim.
        rounds_per_client: Rounds that one device answers in, at most; 1 if it uploads once for all.
        population: Name of the population.
        population_clients: Its clients.
        fidelity: What ``simulation.fidelity`` came to: "per-report", "exact-tally", or "mixed".
        days: Only with ``[devices]``: from the first round's beginning to the last one's end.
        share_served: Likewise the share of all clients that answered in at least one round.
        missed_layer: Likewise the layer whose answers were too few, so that the run ended; missing
            if none was.
        fake_clients: Only with ``[adversary]``: fake clients in all, besides the population's.
        targets: Likewise the words that they were about.
        targets_found: Likewise how many of these were discovered.
    """
    report, plan = run.privacy, run.protocol.plan
    regime = regime_of_run(run.layers)
    anonymity = claim_over_run(report.anonymity)
    flat = {
        **run.metrics.to_dict(),
        "limited_by": None if regime is None else regime.limit,
        "noise_share": None if regime is None else regime.noise_share,
        "local_epsilon": local_epsilon(report, "item"),
        "local_epsilon_user": local_epsilon(report, "user"),
        "central_epsilon_before_run": central_before_run(report, "item"),
        "central_epsilon": central_epsilon(report, "item"),
        "central_epsilon_user_before_run": central_before_run(report, "user"),
        "central_epsilon_user": central_epsilon(report, "user"),
        "delta": delta,
        "claimed_k": claimed_k(report),
        "alpha": None if anonymity is None else anonymity.alpha,
        **run.cost,
        "rounds_per_client": 1 if plan.uploads_once else plan.most_rounds_per_client,
        "population": run.population["name"],
        "population_clients": run.population["clients"],
        "fidelity": run.simulation["fidelity"],
    }
    if (calendar := run.calendar) is not None:
        flat["days"] = calendar.days
        flat["share_served"] = calendar.share_served
        flat["missed_layer"] = None if calendar.missed is None else calendar.missed.layer
    if (adversary := run.adversary) is not None:
        flat["fake_clients"] = adversary.clients
        flat["targets"] = len(adversary.targets)
        flat["targets_found"] = adversary.targets_found
    return {name: plain(value) for name, value in flat.items()}
