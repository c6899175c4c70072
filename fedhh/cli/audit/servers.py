"""`fedhh audit chosen-trie`, `pool-inference`: what a curious server infers from reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import Confidence, SampleSeed
from fedhh.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from fedhh.accounting.inference import InferenceVerdict
    from fedhh.experiments.study.parts import Part
    from fedhh.oracles.base import FrequencyOracle

OracleName = Annotated[str, typer.Option(help="The randomizer's key.")]
Stated = Annotated[
    float | None,
    typer.Option(help="Epsilon that is claimed of a report, if another than --local-epsilon."),
]
SimulatedClients = Annotated[int, typer.Option(help="Simulated clients.")]


def chosen_trie(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: Annotated[float, typer.Option(help="Privacy of one report.")],
    domain_size: Annotated[
        int, typer.Option(help="Values of a layer, the dummy included; more than --words.")
    ] = 28,
    words: Annotated[int, typer.Option(help="Words in question, equally likely.")] = 2,
    rounds: Annotated[int, typer.Option(help="Rounds in which the client answers.")] = 3,
    oracle: OracleName = "ss",
    stated_epsilon: Stated = None,
    clients: SimulatedClients = 20_000,
    confidence: Confidence = 0.999,
    seed: SampleSeed = 0,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """How often a server that chooses the trie guesses a client's word; a verdict.

    By strategy of the server and number of reports: the exact chance, a simulation with reports
    that the randomizer makes, and the most that the local epsilon allows. Exit code 1 if guesses
    are right more often. A few seconds.

    Example: fedhh audit chosen-trie --local-epsilon 4 --words 8 --rounds 3
    """
    from fedhh.accounting.inference import infer_word
    from fedhh.random import Stream, generator

    found = infer_word(
        _oracle(oracle, local_epsilon, domain_size),
        words=words,
        rounds=rounds,
        num_clients=clients,
        rng=generator(seed, Stream.RANDOMIZER),
        stated=stated_epsilon,
        confidence=confidence,
    )
    _print(found, output_format)


def pool_inference(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: Annotated[float, typer.Option(help="Privacy of one report.")] = 4.0,
    pools: Annotated[int, typer.Option(help="Pools of values, equally likely to be liked.")] = 6,
    pool_size: Annotated[int, typer.Option(help="Values of a pool.")] = 20,
    polarization: Annotated[
        float, typer.Option(help="Chance that a draw is from the preferred pool on purpose.")
    ] = 0.9,
    reports: Annotated[
        list[int] | None, typer.Option(help="Reports of a client; repeatable; 1 4 16 64 if none.")
    ] = None,
    domain_size: Annotated[
        int | None, typer.Option(help="Values of the randomizer; those of the pools if none.")
    ] = None,
    oracle: OracleName = "cms",
    stated_epsilon: Stated = None,
    clients: SimulatedClients = 1_000,
    confidence: Confidence = 0.999,
    seed: SampleSeed = 0,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """How often a server guesses which pool of values a client prefers; a verdict.

    A client reports many times, each time about a new draw. By number of reports: the chance of a
    right guess, and the most that all their epsilons together allow. Exit code 1 if guesses are
    right more often. Some 5 seconds for 64 reports of 1,000 clients.

    Example: fedhh audit pool-inference --local-epsilon 4 --reports 1 --reports 30
    """
    from fedhh.accounting.inference import Pools, infer_pool
    from fedhh.random import Stream, generator

    groups = Pools(num_pools=pools, pool_size=pool_size, polarization=polarization)
    size = groups.num_values if domain_size is None else domain_size
    found = infer_pool(
        _oracle(oracle, local_epsilon, size),
        groups,
        reports=sorted(set(reports or (1, 4, 16, 64))),
        num_clients=clients,
        rng=generator(seed, Stream.RANDOMIZER),
        stated=stated_epsilon,
        confidence=confidence,
    )
    _print(found, output_format)


def _oracle(name: str, local_epsilon: float, domain_size: int) -> FrequencyOracle:
    from fedhh.oracles import OracleSpec, make_oracle

    return make_oracle(OracleSpec(name=name, epsilon=local_epsilon), domain_size)


def _print(found: InferenceVerdict, how: Format) -> None:
    from fedhh.cli.text_tables import print_result

    print_result(how, found.to_dict, _parts(found))
    if found.refuted:
        raise typer.Exit(1)


def _parts(found: InferenceVerdict) -> Iterator[Part]:
    from fedhh.experiments.study.parts import Line
    from fedhh.experiments.study.text_table import TextTable, round_up

    records = [each.to_dict(found.error) for each in found.successes]
    yield TextTable(
        title=f"success of guessing {found.audited}",
        columns=(
            "attack", "reports", "by chance", "exact", "simulated", "allowed", "epsilon stated",
            "epsilon at least",
        ),
        rows=tuple(
            (
                row["attack"],
                str(row["reports"]),
                f"{row['by_chance']:.4f}",
                "none" if row["success"] is None else f"{row['success']:.4f}",
                f"{row['simulated']:.4f}",
                round_up(row["allowed"], digits=4),
                round_up(row["stated_epsilon"]),
                f"{row['epsilon_at_least']:.4g}",
            )
            for row in records
        ),
        note="",
        labels=2,
        records=tuple(records),
    )  # fmt: skip
    facts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found.facts.items())
    yield Line(f"{facts}; {found.successes[0].made.clients:,} simulated clients")
    end = f"refuted at confidence {found.confidence:g}" if found.refuted else "consistent"
    yield Line(f"verdict: {end}", is_whole=True)
