"""Accounting: what a run costs in privacy, stated with unit, neighbors, delta and theorem.

Plain numbers in (local_epsilon, num_reports, delta, domain_size, subset_size), upper bounds out:
every epsilon is rounded up, every truncated tail is added to delta. Neighbors are replace-one.

* a plan: `Plan.report`, before a run and for what happened; a kind of plan is a class in a file of
  its own, with its proof
* what `fedhh account` states, by the same names: `account_shuffle`, `account_user`,
  `account_anonymity`, `account_plan`
* item level: `shuffle_epsilon`
* user level: `user_guarantees`
* several rounds: `disjoint_epsilon`, `composed_epsilon`
* a plan for a central target: `local_epsilon_of_plan`, `clients_of_plan`; of central TrieHH:
  `triehh_parameters`, `triehh_epsilon`
* who tells the server what: `Collusion`
* what no central mechanism does better: `missing_mass_lower_bound`, `largest_release_chances`
* events of dp-accounting: the module `fedhh.accounting.dp_event`, which loads it

What a device loses over days and years is the subject of `fedhh.longitudinal`.
"""

from fedhh.accounting.anonymity import (
    LayerAnonymity,
    account_anonymity,
    anonymity,
    probability_surfacing,
)
from fedhh.accounting.bounds.blanket import Blanket
from fedhh.accounting.bounds.clones import Clones, Clones2023, closed_form_epsilon
from fedhh.accounting.bounds.composition import Precision, Use, composed_epsilon, disjoint_epsilon
from fedhh.accounting.bounds.selection import (
    Selection,
    dominating_blanket,
    paper_subset_size,
    subset_selection_blanket,
)
from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.accounting.collusion import Collusion
from fedhh.accounting.guarantees import AnonymityGuarantee, Guarantee, NotApplicable, PrivacyReport
from fedhh.accounting.missing_mass import largest_release_chances, missing_mass_lower_bound
from fedhh.accounting.plan import Plan
from fedhh.accounting.plan_account import FoundPlan, LayeredPlan, account_plan
from fedhh.accounting.plan_search import clients_of_plan, local_epsilon_of_plan
from fedhh.accounting.rounds import PlannedRound, RoundSummary
from fedhh.accounting.sampled_threshold import TrieHHParameters, triehh_epsilon, triehh_parameters
from fedhh.accounting.shuffles import (
    BOUNDS,
    account_shuffle,
    account_user,
    shuffle_bound,
    shuffle_epsilon,
)
from fedhh.accounting.terms import PrivacyTerms
from fedhh.accounting.user_level import group_epsilon, user_guarantees

__all__ = [
    "BOUNDS",
    "AnonymityGuarantee",
    "Blanket",
    "Clones",
    "Clones2023",
    "Collusion",
    "FoundPlan",
    "Guarantee",
    "LayerAnonymity",
    "LayeredPlan",
    "NotApplicable",
    "Plan",
    "PlannedRound",
    "Precision",
    "PrivacyReport",
    "PrivacyTerms",
    "RoundSummary",
    "Selection",
    "ShuffleBound",
    "TrieHHParameters",
    "Use",
    "account_anonymity",
    "account_plan",
    "account_shuffle",
    "account_user",
    "anonymity",
    "clients_of_plan",
    "closed_form_epsilon",
    "composed_epsilon",
    "disjoint_epsilon",
    "dominating_blanket",
    "group_epsilon",
    "largest_release_chances",
    "local_epsilon_of_plan",
    "missing_mass_lower_bound",
    "paper_subset_size",
    "probability_surfacing",
    "shuffle_bound",
    "shuffle_epsilon",
    "subset_selection_blanket",
    "triehh_epsilon",
    "triehh_parameters",
    "user_guarantees",
]  # fmt: skip
