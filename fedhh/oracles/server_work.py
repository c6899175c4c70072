"""What adding up and decoding reports cost a server, for each family of oracles."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import NamedTuple

from fedhh.oracles.base import FrequencyOracle
from fedhh.oracles.count_mean_sketch import CountMeanSketch
from fedhh.oracles.d_bit_flip import DBitFlip
from fedhh.oracles.hadamard_response import HadamardResponse
from fedhh.oracles.hadamard_sketches import HadamardSketch
from fedhh.oracles.histogram_encoding import HistogramEncoding
from fedhh.oracles.local_hashing import HashedResponseOracle, LocalHashing
from fedhh.oracles.projective_geometry_response import ProjectiveGeometryResponse
from fedhh.oracles.randomized_response import GeneralizedRandomizedResponse, Identity
from fedhh.oracles.subset_selection import SubsetSelection
from fedhh.oracles.unary_encoding import UnaryEncoding


class ServerWork(NamedTuple):
    """What a server does, in numbers that it adds up or looks at.

    Where all values are decoded together, a candidate's is its share of that.

    Attributes:
        report: Order of the work on a report, such as "d".
        per_report: Its number.
        candidate: Order of the work on a candidate, once all n reports are in.
        per_candidate: Its number, but for what each report adds to it.
        per_candidate_and_report: What a candidate needs for each report again; 0 where reports add
            up.
    """

    report: str
    per_report: float
    candidate: str
    per_candidate: float
    per_candidate_and_report: float = 0.0


@singledispatch
def server_work(oracle: FrequencyOracle) -> ServerWork | None:
    """Return what an oracle costs the server; None if nothing is registered for its class."""
    return None


@server_work.register(GeneralizedRandomizedResponse)
@server_work.register(Identity)
def _of_values(oracle: GeneralizedRandomizedResponse | Identity) -> ServerWork:
    return ServerWork("1", 1, "1", 1)


@server_work.register(UnaryEncoding)
@server_work.register(HistogramEncoding)
def _of_indicators(oracle: UnaryEncoding | HistogramEncoding) -> ServerWork:
    return ServerWork("s", oracle.domain_size, "1", 1)


@server_work.register(SubsetSelection)
@server_work.register(DBitFlip)
def _of_subsets(oracle: SubsetSelection | DBitFlip) -> ServerWork:
    return ServerWork("d", oracle.d, "1", 1)


@server_work.register
def _of_local_hashing(oracle: LocalHashing) -> ServerWork:
    # A report is kept; a candidate is hashed by the function of each.
    return ServerWork("1", 1, "n", 0, 1)


@server_work.register
def _of_hadamard_response(oracle: HadamardResponse) -> ServerWork:
    # A candidate is its share of transforming the blocks.
    transform = oracle.aggregate_size * math.log2(oracle.block_size)
    return ServerWork("1", 1, "K log b / s", transform / oracle.domain_size)


@server_work.register
def _of_projective_geometry(oracle: ProjectiveGeometryResponse) -> ServerWork:
    # A candidate is the sum of c counts, or its share of one transform.
    if not oracle.transforms(oracle.domain_size):
        return ServerWork("1", 1, "c", oracle.num_supporting)
    vectors = oracle.field_size**oracle.num_coordinates
    return ServerWork("1", 1, "r**t log K / s", vectors * oracle.report_bits / oracle.domain_size)


@server_work.register
def _of_hashed_responses(oracle: HashedResponseOracle) -> ServerWork:
    return ServerWork("1", 1, "k", oracle.num_hashes)


@server_work.register
def _of_count_mean_sketch(oracle: CountMeanSketch) -> ServerWork:
    return ServerWork("m", oracle.num_cells, "k", oracle.num_hashes)


@server_work.register
def _of_hadamard_sketches(oracle: HadamardSketch) -> ServerWork:
    # A candidate is a cell of each row, and its share of transforming the rows.
    transform = oracle.num_hashes * oracle.num_cells * math.log2(max(oracle.num_cells, 2))
    share = transform / oracle.domain_size
    return ServerWork("1", 1, "k + k m log m / s", oracle.num_hashes + share)
