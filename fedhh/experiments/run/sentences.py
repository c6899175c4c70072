"""A run in sentences: what came out, and what it cost in privacy."""

from __future__ import annotations

import math

import pandas as pd

from fedhh.accounting.guarantees import PrivacyReport
from fedhh.accounting.layer_anonymity import claim_over_run
from fedhh.accounting.plan import Plan
from fedhh.experiments.config.labels import listed, round_up
from fedhh.experiments.run.privacy import central_before_run, central_epsilon, local_epsilon
from fedhh.experiments.run.regime import regime_of_run
from fedhh.experiments.run.result import RunResult
from fedhh.server.layer_consistency import ALARM_Z, expected_alarms


def sentence(result: RunResult) -> str:
    """Return what came out, in one sentence; two where nothing did."""
    metrics = result.metrics
    if not metrics.discovered:
        missed = "" if result.calendar is None else result.calendar.missed_text
        return f"Discovered no word. {missed or _why_nothing(result)}"
    rate = getattr(result.protocol, "false_discovery_rate", 0.0)
    words = "word" if metrics.discovered == 1 else "words"
    text = (
        f"{metrics.discovered:,} {words} found, of which in expectation at most {rate:.0%} are "
        f"{_false(result)}, "
        if rate
        else f"Discovered {metrics.discovered:,} {words}, {metrics.significant:,} significant, "
    )
    text += f"with a coverage of {metrics.coverage:.1%} of new-word contributions"
    if metrics.top:
        shares = listed([f"{top.found:.1%}" for top in metrics.top])
        sizes = listed([f"{top.k:,}" for top in metrics.top])
        text += f", and {shares} of the {sizes} most held words"
    text += f"; {metrics.precision:.1%} of the discoveries are held by somebody"
    if metrics.precision_significant is not None and not rate:
        text += f", {metrics.precision_significant:.1%} of the significant ones"
    return f"{text}."


def privacy_sentence(result: RunResult) -> str:
    """Return the run's smallest epsilons, with unit, reader and delta, and its k-anonymity."""
    report = result.privacy
    before, central = (
        [round_up(epsilon(report, unit)) for unit in ("item", "user")]
        for epsilon in (central_before_run, central_epsilon)
    )
    delta = report.best("item", "central").delta
    which = (
        ""
        if before == central
        else f" before the run ({central[0]} and {central[1]} for the {realised_of(result)} "
        "that it had)"
    )
    return (
        f"Privacy: epsilon {before[0]} at item level and {before[1]} at user level against "
        f"readers of results{which}, at delta {delta:g}; "
        f"{against_server(report, result.protocol.plan)} {anonymity_text(report)}"
    )


def privacy_line(result: RunResult) -> str:
    """Return what holds against whoever links a device's messages, and against readers."""
    report, plan = result.privacy, result.protocol.plan
    delta, item = report.best("user", "central").delta, round_up(central_before_run(report, "item"))
    return (
        f"Privacy of all that a user has, {against_linking(report, plan)} Central epsilons hold "
        f"before the run at delta {delta:g}, against readers of the results; of one item: {item}."
    )


def against_linking(report: PrivacyReport, plan: Plan) -> str:
    """Return a user's local epsilon and what it is the sum of, or whom clients have to trust."""
    if math.isinf(user := local_epsilon(report, "user")):
        return against_server(report, plan)
    of_round = user / plan.most_rounds_per_client
    rounds, items = plan.most_rounds_per_client, max(round(of_round / plan.local_epsilon), 1)
    return (
        f"against whoever links a device's messages: {round_up(user)} ({rounds} "
        f"{'round' if rounds == 1 else 'rounds'} of {items} x {round_up(of_round / items)})."
    )


def realised_of(result: RunResult) -> str:
    """Return what a run's realised guarantees are for."""
    if result.protocol.plan.realises_answers:
        return "answers"
    return "domains" if result.calendar is None else "domains and answers"


def below_zero(result: RunResult, words: pd.DataFrame) -> str | None:
    """Return why some discovered words have an estimate below 0; None if none has."""
    if not (words["estimated_clients"] < 0).any():
        return None
    if "kept_by" in result.layers and (result.layers["kept_by"] == "evidence").any():
        return (
            "An estimate below 0 is of the validation round's votes alone; z and the test that "
            "returns a word also use the votes of all layers after it became a candidate."
        )
    return (
        "Estimates are unbiased and not cut at 0: one below 0 is noise around the count of a word "
        "that few clients hold, or none."
    )


def noticed(result: RunResult) -> str | None:
    """Return what in a run's layers contradicts each other, as the server sees it; None if nothing.

    An attack that supports a prefix in one layer and not in the one before is noticed so; one that
    fits all layers is not.
    """
    layers = result.layers
    if "num_exceeding" not in layers or not (number := int(layers["num_exceeding"].sum())):
        return None
    by_chance = expected_alarms(int(layers["num_candidates"].sum()))
    are = "prefix or word has" if number == 1 else "prefixes or words have"
    return (
        f"Noticed: {number:,} kept {are} a larger estimated share of clients than what precedes "
        f"the last symbol, by more than {ALARM_Z:g} standard deviations (by chance at most "
        f"{by_chance:.2g} expected). Fake clients that support it in one layer alone look so; so "
        "do honest ones that hold more than max_items prefixes."
    )


def anonymity_text(report: PrivacyReport) -> str:
    """Return the run's claim of k-anonymity, in one sentence."""
    claim = claim_over_run(report.anonymity)
    if claim is None:
        return "No k-anonymity is claimed."
    when = ", for the layers that it had," if claim.realised else ""
    return (
        f"k-anonymity: k = {claim.k:,} at alpha {claim.alpha:g}{when} (a word that at most "
        f"{claim.k:,} clients hold returns with probability at most {1 - claim.alpha:.2g})."
    )


def against_server(report: PrivacyReport, plan: Plan) -> str:
    """Return a run's local epsilons, or whom clients have to trust where there are none."""
    item, user = (local_epsilon(report, unit) for unit in ("item", "user"))
    if math.isfinite(item):
        return f"{round_up(item)} and {round_up(user)} against the server."
    of_others = plan.who_randomize
    if of_others is not plan:
        items = of_others.max_items * of_others.most_rounds_per_client
        others = [round_up(of_others.local_epsilon * times) for times in (1, items)]
        return (
            "clients that opted in trust the server, which sees their words; of the others, "
            f"{others[0]} and {others[1]} against it."
        )
    if plan.trusted:
        return f"clients trust {plan.trusted}."
    return "none against the server, since reports are not randomized."


def _why_nothing(result: RunResult) -> str:
    """Return why a run found no word, as far as its rounds say, and what would help."""
    if not result.metrics.target_words:
        return "No client holds a word that is not known: see population.known."
    if not result.metrics.reachable_mass:
        return (
            "The alphabet and the longest word can spell none of the words that clients hold: see "
            "population.alphabet."
        )
    layers = result.layers
    last = None if layers.empty else layers.iloc[-1]
    plan = result.protocol.plan
    more = f"ask more clients, or raise {plan.noise_setting}"
    if last is not None and last["kept_by"] in ("validation", "evidence"):
        k = getattr(result.protocol, "anonymity_k", 0)
        return (
            f"The validation round could not show of any of {last['num_candidates']:,} candidates "
            f"that {'more than ' + format(k, ',') if k else 'any'} clients hold it: {more}"
            f"{', or lower anonymity_k' if k else ''}."
        )
    regime = regime_of_run(layers)
    if regime is not None and regime.limit != "nothing":
        return f"It was limited by {regime.limit}: {regime.advice}."
    return plan.why_nothing or f"No word's reports stood out of the noise: {more}."


def _false(result: RunResult) -> str:
    """Return what makes a word false that a validation round returns."""
    k = getattr(result.protocol, "anonymity_k", 0)
    return f"held by at most {k:,} clients" if k else "false"
