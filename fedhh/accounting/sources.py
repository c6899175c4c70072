"""The statements that guarantees rest on, in the words that reports print.

docs/accounting.md has the proofs that are fedhh's own.
"""

from __future__ import annotations

# Compared with the papers' own text.
SUN_LOCAL = "Sun et al. (2024), Theorem 1"
SUN_CENTRAL = "Sun et al. (2024), Theorem 2 (closed form)"
SUN_ANONYMITY = "Sun et al. (2024), Lemma 1"
APPLE_CMS = "Apple (2017), Theorem 4.1"
APPLE_HCMS = "Apple (2017), Theorem 4.3"
APPLE_SFP = "Apple (2017), Theorem 4.5"

# The statement is known, its number or section was not compared: numbering not verified.
CLONES = "Feldman, McMillan, Talwar (2021), Theorem 3.1"
CLONES_2023 = "Feldman, McMillan, Talwar (2023), Theorem 3.1, with its erratum"
BLANKET = "privacy blanket of Subset Selection, after Balle et al. (2019), section 5"
COMPOSITION = "composition over slots (Zhu, Dong, Wang 2022, Theorem 10)"
PADDED_SAMPLE = "padding and sampling, after Wang, Li, Jha (2018) (docs/accounting.md, section 7)"
RAPPOR = "Erlingsson, Pihur, Korolova (2014), epsilon_1 of one report"

USER_LOCAL = "basic composition over the reports of one client"
BASIC = "basic composition: epsilons add up (Dwork, Roth 2014, Theorem 3.14)"
OPTIMAL = (
    "optimal composition of pure privacy (Kairouz, Oh, Viswanath 2015, Theorem 3.3; Murtagh, "
    "Vadhan 2016), by privacy-loss distributions of randomized responses"
)

# fedhh's own.
CLONES_2023_OF_SELECTION = "clones of 2023, for Subset Selection by docs/accounting.md, section 2"
CLOSED_FORM_OF_SELECTION = f"{SUN_CENTRAL}, for Subset Selection by docs/accounting.md, section 3"
SAMPLED_VOTES = (
    "sampling and threshold, all numbers of holders, composed over rounds (docs/accounting.md, "
    "section 8)"
)
NOISY_SUMS = (
    "privacy losses of the noise, composed over all sums that move (docs/accounting.md, section 11)"
)
PURE_NOISY_SUMS = (
    "the noise's largest loss, times all sums that move (docs/accounting.md, section 11)"
)
GROUPS = "group privacy with unequal steps (docs/accounting.md, section 4)"
EPOCHS = "all clients of an epoch hide each other (docs/accounting.md, section 14)"
VALIDATION = "validation round: a p-value of at most its rate (docs/accounting.md, section 5)"
