"""Devices that send records of their events under a cap, and some that break their promise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedhh.audit import NO_EVENT, Transcripts
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.oracles import FrequencyOracle


@dataclass(frozen=True, kw_only=True)
class CappedDevice:
    """Keeps each event's record some days, and sends records at random, as many as its cap allows.

    It sends at noon and at midnight; its balance is renewed at the start of a session.
    """

    oracle: FrequencyOracle
    cap: Cap
    kept_days: int = 1

    def simulate(self, history, *, num_devices, rng):
        history_days, values = np.nonzero(history != NO_EVENT)[0], history[history != NO_EVENT]
        balance = np.zeros(num_devices, dtype=np.int64)
        sent = np.zeros(num_devices, dtype=np.int64)
        unsent = np.ones((num_devices, values.size), dtype=bool)
        devices, days, events = [], [], []
        for day in range(history.shape[0]):
            balance = self.renewed(balance, day)
            kept = (history_days <= day) & (history_days > day - self.kept_days)
            for hour in (12, 24):
                can = unsent & kept
                allowed = self.allowed(balance, sent, hour)
                order = np.argsort(np.argsort(self.keys(can, values, rng), axis=1), axis=1)
                chosen = self.sendable(can, values) & (order < allowed[:, None])
                who, what = np.nonzero(chosen)
                unsent &= ~chosen
                self.after(unsent, chosen)
                number = chosen.sum(axis=1)
                balance = balance - number
                sent += number
                devices.append(who)
                days.append(np.full(who.size, day))
                events.append(what)
        return Transcripts(
            num_devices=num_devices,
            num_days=history.shape[0],
            devices=np.concatenate(devices),
            days=np.concatenate(days),
            reports=self.oracle.privatize(values[np.concatenate(events)], rng=rng),
        )

    def renewed(self, balance, day):
        return self.cap.renewed(balance, day)

    def allowed(self, balance, sent, hour):
        return self.cap.allowed(balance, sent)

    def keys(self, can, values, rng):
        return np.where(can, rng.random(can.shape), np.inf)

    def sendable(self, can, values):
        return can

    def after(self, unsent, chosen):
        pass


class RefillsTwice(CappedDevice):
    """Adds a session's amount at noon as well."""

    def allowed(self, balance, sent, hour):
        if hour == 24:
            balance += self.cap.amount
        return balance


class HasNoCap(CappedDevice):
    def allowed(self, balance, sent, hour):
        return np.full_like(balance, 10**6)


class KeepsWhatIsLeft(CappedDevice):
    """Inherits all that was unused, whatever its cap says."""

    def renewed(self, balance, day):
        return replace(self.cap, rollover=None).renewed(balance, day)


class ForgetsItsLifetime(CappedDevice):
    def allowed(self, balance, sent, hour):
        return balance


class SendsAgain(CappedDevice):
    """Privatises an event again after it was sent, and sends that too."""

    def after(self, unsent, chosen):
        unsent |= chosen


class IsSilentAboutValueZero(CappedDevice):
    """Sends nothing of value 0, so that the numbers sent tell."""

    def keys(self, can, values, rng):
        return np.where(values == 0, np.inf, super().keys(can, values, rng))

    def sendable(self, can, values):
        return can & (values != 0)


@dataclass(frozen=True, kw_only=True)
class RefilledTwice(Cap):
    """States what any cap states, and adds twice as much at the start of a session."""

    @classmethod
    def of(cls, cap):
        return cls(**vars(cap))

    def renewed(self, balance, day):
        renewed = super().renewed(balance, day)
        return renewed if day % self.session_days else renewed + self.amount


@dataclass(frozen=True, kw_only=True)
class NotApplied(Cap):
    """A cap that nobody asks."""

    def allowed(self, balance, sent):
        return np.full_like(balance, 1000)


class SendsAtRandom(CappedDevice):
    """Sends a random number of each day's events, whatever their values are: none to the cap."""

    def simulate(self, history, *, num_devices, rng):
        shown = super().simulate(history, num_devices=num_devices, rng=rng)
        kept = rng.random(shown.devices.size) < 0.5
        return replace(
            shown, devices=shown.devices[kept], days=shown.days[kept], reports=shown.reports[kept]
        )
