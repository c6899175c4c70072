"""Longitudinal privacy: what happens over a device's days, on top of runs and their accounting.

* what a device loses per day and in total, under caps: `fedhh.longitudinal.ledger`
* memoization (permanent randomized responses), and what an observer of all its reports learns:
  `fedhh.longitudinal.memoization`
* devices that send, servers that publish, day by day: `fedhh.longitudinal.pipeline`
* runs repeated on a population with time: `fedhh.longitudinal.repeated`
"""
