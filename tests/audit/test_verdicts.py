"""Longitudinal audits in one call: memoized answers, audited systems, pipelines, logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedhh.audit import (
    audit_budget_manager,
    audit_device,
    audit_devices,
    audit_log,
    audit_memo,
    verdicts,
)
from fedhh.audit.pipelines import rules_of_pipeline
from fedhh.audit.report import audit_parts
from fedhh.experiments.study.parts import Line
from fedhh.longitudinal.ledger import APPLE, Charge, Rules
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.pipeline.build import build_use_cases
from fedhh.longitudinal.pipeline.config import load_pipeline
from fedhh.validation import InputError

EMOJI = Rules(charges=(Charge(use_case="emoji", epsilon=4.0),), caps={"emoji": Cap(amount=1)})


def lines_of(found):
    """What is said of an audit, without its tables."""
    return [part.text for part in audit_parts(found) if isinstance(part, Line)]


def test_a_memoized_answer_is_consistent_and_its_control_is_not():
    found = audit_memo("one-bit-mean", local_epsilon=1.0, num_days=10)
    assert not found.refuted
    assert [each.claim.times for each in found.findings.values()] == [1, 2]
    assert found.controls.keys() == found.findings.keys()
    assert all(each.refuted for each in found.controls.values())
    assert found.to_dict()["verdict"] == "consistent"
    with pytest.raises(InputError, match="memoized answer"):
        audit_memo("fresh", local_epsilon=1.0)


def test_what_an_audit_cannot_show_is_said():
    found = audit_memo("one-bit-mean", local_epsilon=1.0, num_days=10)
    (name, finding), (_, control) = (
        next(iter(x.items())) for x in (found.findings, found.controls)
    )
    least = f"at least {control.at_least:.0f} permanent bits, stated 1."
    assert f"{name}: drawn again every day, it would be detected: {least}" in lines_of(found)

    def said(finding, control):
        controls = {} if control is None else {name: control}
        return lines_of(replace(found, findings={name: finding}, controls=controls))[1:-2]

    weak = replace(control, at_least=1, allowed=1.0)
    (line,) = said(finding, weak)
    assert "it would not be detected: at least 1 permanent bits, stated 1; use more" in line
    assert said(finding, None) == []
    blind = replace(finding, detects_from=None)
    (line,) = said(blind, control)
    assert line.startswith(f"{name}: no number of permanent bits, however large, can be detected")
    assert line.endswith("use more --devices, or a smaller --local-epsilon.")
    assert said(blind, None)[0].endswith("use more --devices.")


def test_a_saturating_device_keeps_its_balances():
    found = audit_budget_manager("macos-10.12", num_days=3)
    assert not found.refuted
    assert found.to_dict()["confidence"] is None
    assert all(part.most_in_lifetime <= part.stated_in_lifetime for part in found.sent)
    with pytest.raises(InputError, match="macos"):
        audit_budget_manager("macos-9")


def test_devices_of_a_pipeline_keep_to_their_caps():
    found = audit_devices(EMOJI, num_days=3, num_devices=800)
    (sent,) = found.sent
    assert (found.refuted, sent.most_in_lifetime, sent.most_in_lifetime) == (False, 3, 3)
    assert [each.claim.level for each in found.findings.values()] == [1, 3]


def test_records_of_both_levels_are_held_against_the_cap(monkeypatch):
    def overspent_at_the_level_of_days(device, histories, **options):
        found = audit_device(device, histories, **options)
        if histories.level == "user":
            return found
        return replace(found, devices=np.array([5, 6, 6]), days=np.array([2, 1, 1]))

    monkeypatch.setattr(verdicts, "audit_device", overspent_at_the_level_of_days)
    found = audit_devices(EMOJI, num_days=3, num_devices=800)
    (sent,) = found.sent
    assert found.refuted
    assert (sent.num_overspending, sent.most_in_a_day) == (1, 2)
    assert sent.first == sent.worst
    assert (sent.worst.sent, sent.worst.stated) == (2, 1)
    # Two devices at the level of days, and nearly all of 1,600 at the other.
    assert 1_500 < sent.num_devices <= 1_602
    assert sent.most_in_lifetime == 3


def test_a_log_is_held_against_caps(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("device,day,use_case\na,0,emoji\na,0,emoji\nb,1,emoji\n")
    found = audit_log(APPLE, log)
    assert found.refuted
    assert found.to_dict()["sent"][0]["first"]["device"] == "a"
    overspent = "device a on day 0: sent 2 in 1 day, stated at most 1 (loss 8, stated 4)"
    assert f"emoji: 1 device of 2 sent more than stated; first, {overspent}" in lines_of(found)
    two = Rules(charges=EMOJI.charges, caps={"emoji": Cap(amount=2)})
    assert not audit_log(two, log).refuted
    with pytest.raises(InputError, match="Unknown use case"):
        audit_log(Rules(charges=(Charge(use_case="x", epsilon=1),), caps={"x": Cap(amount=1)}), log)


def test_the_rules_of_a_pipeline_say_how_records_wait():
    rules, waiting = rules_of_pipeline("pipeline-small")
    assert {charge.use_case for charge in rules.charges} == set(rules.caps)
    assert waiting["store_days"] >= 1


def test_a_pipelines_charges_are_those_that_it_states_itself():
    rules, _ = rules_of_pipeline("apple")
    stated = {charge.use_case: charge.parts for charge in rules.charges}
    assert stated["quicktype"] == (2.0, 6.0)
    assert stated["emoji"] == (4.0,)
    built = build_use_cases(load_pipeline("pipeline-small"))
    charges = rules_of_pipeline("pipeline-small")[0].charges
    assert [each.charge for each in built] == list(charges)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"num_days": 1_001}, "days=1001"),
        ({"num_devices": 7}, "devices >= 8"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"num_devices": 10**8}, "at most 100,000,000"),
    ],
)
def test_impossible_audits_are_refused(asked, message):
    with pytest.raises(InputError, match=message):
        audit_devices(EMOJI, **asked)
