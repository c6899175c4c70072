"""Memoized answers that forget what they should keep, which an audit must catch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np


class _Forgetful:
    """States what another answer states, and answers otherwise."""

    def __init__(self, answer):
        self._answer = answer

    def __getattr__(self, name):
        return getattr(self._answer, name)


class RedrawnAfterAChange(_Forgetful):
    """Keeps the response to its latest value only, and draws anew whenever that changes."""

    def begin(self, num_devices, *, rng):
        self._latest, self._keys = None, None
        return self._answer.begin(num_devices, rng=rng)

    def answer(self, state, values, *, rng):
        if self._latest is None or not np.array_equal(values, self._latest):
            self._latest, self._state = values, state.with_new_keys(rng=rng)
        return self._answer.answer(self._state, values, rng=rng)


class AlphaRedrawn(_Forgetful):
    """Draws the threshold of its rounding again every day."""

    def answer(self, state, values, *, rng):
        return self._answer.answer(
            replace(state, offsets=rng.random(state.num_devices)), values, rng=rng
        )
