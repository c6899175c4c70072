"""Accounting: what a run cost in privacy, stated with unit, neighbors, delta and theorem.

Plain numbers in (local_epsilon, num_reports, delta, domain_size, subset_size), upper bounds out:
every epsilon is rounded up, every truncated tail is added to delta. Neighbors are swaps.

* item level: `shuffle_epsilon`, `shuffle_delta`, and backwards `largest_local_epsilon`,
  `smallest_num_reports`; `subset_selection_lower_bound` shows how tight they are
* user level: `user_level_epsilon`
* several rounds: `disjoint_epsilon`, `composed_epsilon`
* approximate k-anonymity: `anonymity`
* a whole run: `account_run`; of central TrieHH: `account_triehh`, `triehh_parameters`,
  `triehh_epsilon`
* lower bounds from samples: `audit_oracle`, `audit_epsilon`
"""

from fedhh.accounting.anonymity import LayerAnonymity, anonymity, probability_surfacing
from fedhh.accounting.audit import AuditResult, audit_epsilon, audit_oracle, clopper_pearson
from fedhh.accounting.blanket import Blanket, dominating_blanket, subset_selection_blanket
from fedhh.accounting.clones import Clones, Clones2023
from fedhh.accounting.closed_form import closed_form_delta, closed_form_epsilon
from fedhh.accounting.composition import Precision, Use, composed_epsilon, disjoint_epsilon
from fedhh.accounting.guarantees import AnonymityGuarantee, Guarantee, NotApplicable
from fedhh.accounting.layer_record import LayerRecord
from fedhh.accounting.local import local_item_epsilon, local_user_epsilon
from fedhh.accounting.planner import largest_local_epsilon, smallest_num_reports
from fedhh.accounting.report import PrivacyReport, account_run
from fedhh.accounting.selection import Selection, paper_subset_size
from fedhh.accounting.shuffle_bound import ShuffleBound
from fedhh.accounting.shuffling import BOUNDS, shuffle_bound, shuffle_delta, shuffle_epsilon
from fedhh.accounting.tightness import (
    ShuffleLowerBound,
    blanket_jensen,
    subset_selection_lower_bound,
)
from fedhh.accounting.triehh import (
    TrieHHParameters,
    account_triehh,
    triehh_delta,
    triehh_epsilon,
    triehh_parameters,
)
from fedhh.accounting.user_level import UserLevelEpsilon, group_epsilon, user_level_epsilon

__all__ = [
    "BOUNDS",
    "AnonymityGuarantee",
    "AuditResult",
    "Blanket",
    "Clones",
    "Clones2023",
    "Guarantee",
    "LayerAnonymity",
    "LayerRecord",
    "NotApplicable",
    "Precision",
    "PrivacyReport",
    "Selection",
    "ShuffleBound",
    "ShuffleLowerBound",
    "TrieHHParameters",
    "Use",
    "UserLevelEpsilon",
    "account_run",
    "account_triehh",
    "anonymity",
    "audit_epsilon",
    "audit_oracle",
    "blanket_jensen",
    "clopper_pearson",
    "closed_form_delta",
    "closed_form_epsilon",
    "composed_epsilon",
    "disjoint_epsilon",
    "dominating_blanket",
    "group_epsilon",
    "largest_local_epsilon",
    "local_item_epsilon",
    "local_user_epsilon",
    "paper_subset_size",
    "probability_surfacing",
    "shuffle_bound",
    "shuffle_delta",
    "shuffle_epsilon",
    "smallest_num_reports",
    "subset_selection_blanket",
    "subset_selection_lower_bound",
    "triehh_delta",
    "triehh_epsilon",
    "triehh_parameters",
    "user_level_epsilon",
]
