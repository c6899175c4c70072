"""Which words are in the sums of RAPPOR's reports, and how often: selection, then regression.

Source: Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
ordinal response", CCS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array
from scipy.special import ndtr

from fedhh.arrays import Floats, Ints
from fedhh.oracles.bloom import BloomReports
from fedhh.protocol import Answers, Decision, Heard
from fedhh.words.trie import Codes

_SELECTED_FROM_Z = 2.0
"""A candidate is selected from so many deviations on, given the others that are: about one in 44 of
those that no client holds. What is significant lies far above."""

_MOST_SELECTED = 500
_MOST_SHARE_OF_BITS = 0.8
"""The authors' code regresses on no more."""

_MOST_REGRESSED = 5_000
"""Ten times as many as are selected at most: what a regression on all of a long list would cost in
minutes. Which ones is decided by each candidate's fit alone (Fan, Lv, 2008, "Sure independence
screening for ultrahigh dimensional feature space", JRSS B 70)."""

_SCREENED_AT_ONCE = 8_192

_ITERATIONS = 2_000
_TOLERANCE = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Decoded:
    """What a regression says about the selected candidates, ``(s,)`` each.

    Attributes:
        candidates: ``int64``: their numbers, ascending.
        estimate: ``float64``: reports about each.
        variance: ``float64``: of the estimate.
        z: ``float64``: the estimate in its standard errors.
        p_value: ``float64``: P(as much), by the normal distribution, if no report were about it.
    """

    candidates: Ints
    estimate: Floats
    variance: Floats
    z: Floats
    p_value: Floats


def decode(reports: BloomReports, tally: Ints, keys: Ints) -> Decoded:
    """Return which candidates the sums of reports are made of.

    The estimate of a bit's count is a sum over the words that set it, of their counts times the
    cohort's share of all reports. First, a non-negative regression with a penalty on the sum of
    counts (LASSO) selects candidates; then least squares on the selected ones give estimates and
    their standard errors. Both weight bits by the variance of their estimates: from the coins, and
    from how a word's reports spread over cohorts. One more column, without a penalty, is for words
    that are no candidates: they set all bits alike. Of more than 5,000 candidates, the 5,000 whose
    bits fit best one by one take part.

    The selection uses the data that the p-values are made of, as in the paper; that it favors what
    noise favors is not accounted for.

    Args:
        reports: How reports are made.
        tally: ``(tally_size,) int64``: their sums.
        keys: ``(c,) int64``: the candidates' keys, distinct.
    """
    if not len(keys):
        none = np.zeros(0)
        return Decoded(
            candidates=none.astype(np.int64),
            estimate=none,
            variance=none,
            z=none,
            p_value=none,
        )
    _, by_cohort = reports.split(tally)
    total = int(by_cohort.sum())
    shares = by_cohort / max(total, 1)
    bits = reports.estimate_bits(tally).ravel()
    spread = np.clip(bits, 0, np.repeat(by_cohort, reports.filters.num_bits))
    variance = reports.bit_variances(tally).ravel() + spread * (1 - 1 / len(shares))
    weights = 1 / np.sqrt(np.maximum(variance, 1.0))
    target = bits * weights
    asked = _screened(reports, keys, shares, weights, target)
    matrix = _matrix(reports, keys[asked], shares, weights)
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=0)))
    # A candidate whose bits no report could set has nothing to go by.
    norms[norms == 0] = np.inf
    matrix = csc_array(matrix.multiply(1 / norms[None, :]))
    most = int(min(_MOST_SELECTED, _MOST_SHARE_OF_BITS * len(bits)))
    chosen = np.r_[_selected(matrix, target, most), len(asked)]
    part = matrix[:, chosen].toarray()
    # Candidates with the same bits in all cohorts cannot be distinguished: they share the count.
    gram = part.T @ part + 1e-9 * np.eye(len(chosen))
    factor = cho_factor(gram)
    solution = cho_solve(factor, part.T @ target) / norms[chosen]
    covariance = np.diag(cho_solve(factor, np.eye(len(chosen)))) / norms[chosen] ** 2
    estimate, deviation = solution[:-1], np.sqrt(covariance[:-1])
    z = estimate / deviation
    return Decoded(
        candidates=asked[chosen[:-1]],
        estimate=estimate,
        variance=deviation**2,
        z=z,
        p_value=np.asarray(ndtr(-z)),
    )


def judged_filters(
    answers: Answers,
    reports: BloomReports,
    decoded: Decoded,
    codes: Codes,
    *,
    familywise_error: float,
) -> Heard:
    """Return the words of a round of filters that some client holds, most frequent first.

    ``threshold_estimate`` is in reports, and ``noise_std`` that of a candidate that shares no bit
    with another.

    Args:
        answers: The round's.
        reports: About the candidates.
        decoded: What they say.
        codes: ``(c, width) uint16``: all candidates that were tested.
        familywise_error: Chance that any word is returned which no client holds, by Bonferroni's
            correction of the p-values.
    """
    kept = np.flatnonzero(decoded.p_value < familywise_error / max(len(codes), 1))
    kept = kept[np.argsort(-decoded.estimate[kept], kind="stable")]
    estimate = decoded.estimate[kept]
    num_reports, num_hashes = answers.aggregate.num_reports, reports.filters.num_hashes
    alone = num_reports * reports.response.bit_variance / num_hashes
    return Heard(
        decision=Decision(
            num_candidates=len(codes),
            num_kept=len(kept),
            threshold_estimate=float(estimate[-1]) if len(kept) else 0.0,
            noise_std=math.sqrt(alone),
            kept_by="estimates",
        ),
        found=answers.found(
            codes[decoded.candidates[kept]],
            estimate=estimate,
            variance=decoded.variance[kept],
            z=decoded.z[kept],
        ),
    )


def _screened(
    reports: BloomReports, keys: Ints, shares: Floats, weights: Floats, target: Floats
) -> Ints:
    """Return which candidates take part, ascending: all, or those that fit best by themselves.

    A candidate's fit is the count that least squares gives it next to the column for all other
    words, in standard errors. A bit that two of its hash functions set counts twice here.
    """
    if len(keys) <= _MOST_REGRESSED:
        return np.arange(len(keys))
    per_cell = np.repeat(shares, reports.filters.num_bits) * weights
    # All other words set the bits of a cohort alike.
    target = target - per_cell * ((per_cell @ target) / (per_cell @ per_cell))
    products, squares = per_cell * target, per_cell**2
    fit = np.empty(len(keys))
    for start in range(0, len(keys), _SCREENED_AT_ONCE):
        part = slice(start, start + _SCREENED_AT_ONCE)
        cells = reports.filters.cells(keys[part]).reshape(len(keys[part]), -1)
        norms = np.sqrt(squares[cells].sum(axis=1))
        fit[part] = products[cells].sum(axis=1) / np.where(norms > 0, norms, np.inf)
    return np.sort(np.argpartition(-fit, _MOST_REGRESSED)[:_MOST_REGRESSED])


def _matrix(reports: BloomReports, keys: Ints, shares: Floats, weights: Floats) -> csc_array:
    """Return the weighted design: a row for each bit, a column for each candidate and the rest."""
    filters = reports.filters
    cells = filters.cells(keys).reshape(len(keys), -1)
    cells.sort(axis=1)
    fresh = np.ones(cells.shape, dtype=np.bool_)
    fresh[:, 1:] = cells[:, 1:] != cells[:, :-1]
    per_cell = np.repeat(shares, filters.num_bits) * weights
    rest = per_cell * (1 - (1 - 1 / filters.num_bits) ** filters.num_hashes)
    rows = np.concatenate([cells[fresh], np.arange(len(rest))])
    starts = np.r_[0, np.cumsum(fresh.sum(axis=1))]
    return csc_array(
        (np.concatenate([per_cell[cells[fresh]], rest]), rows, np.r_[starts, len(rows)]),
        shape=(len(rest), len(keys) + 1),
    )


def _selected(matrix: csc_array, target: Floats, most: int) -> Ints:
    """Return the columns, the last one aside, with a count in the penalized regression.

    Columns have norm 1, so that the penalty is the number of deviations that a column must explain.
    """
    penalty = np.full(matrix.shape[1], _SELECTED_FROM_Z)
    penalty[-1] = 0.0
    transposed = csc_array(matrix.T)

    def loss(counts: Floats) -> tuple[float, Any]:
        residual = matrix @ counts - target
        return (
            0.5 * float(residual @ residual) + float(penalty @ counts),
            transposed @ residual + penalty,
        )

    from scipy.optimize import minimize  # It takes a while to load, and settings need none.

    found = minimize(
        loss,
        np.zeros(matrix.shape[1]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * matrix.shape[1],
        options={"maxiter": _ITERATIONS, "ftol": _TOLERANCE, "gtol": 1e-6, "maxcor": 20},
    )
    counts = found.x[:-1]
    held = np.flatnonzero(counts > 0)
    return np.sort(held[np.argsort(-counts[held], kind="stable")][:most])
