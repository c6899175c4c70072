"""The papers by name; a paper's module is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from fedhh.validation import InputError, require_choice

if TYPE_CHECKING:
    # Names are listed without loading tables and figures.
    from papers.reproduction import Reproduction, Say


class Reproduce(Protocol):
    """Computes a paper's numbers again."""

    def __call__(self, *, quick: bool, seed: int, say: Say) -> Reproduction:
        """Return them.

        Args:
            quick: Whether in a scaled version, of well under a minute.
            seed: The first seed of everything that is drawn.
            say: Is called with the progress, in words.
        """


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper, or a group of its numbers.

    Attributes:
        line: What is computed again, of which paper, and how long the whole takes on one core.
        module: Where; it has a function ``reproduce``, see `Reproduce`.
        has_quick: Whether there is a scaled version; the others take seconds.
        data: Which file of others it can be computed on; empty if there is none.
    """

    line: str
    module: str
    has_quick: bool = True
    data: str = ""


PAPERS: Mapping[str, Paper] = {
    "pem": Paper(
        line="Wang, Li, Jha: PEM's hits on 48-bit values by eta and epsilon (ten minutes)",
        module="papers.pem",
        data="the search log",
    ),
    "oracle-crossover": Paper(
        line="Wang et al. 2017: where GRR is as good as OLH and OUE, s = 3 e^epsilon + 2 (15 s)",
        module="papers.oracle_crossover",
    ),
    "rappor": Paper(
        line="Erlingsson et al. 2014: RAPPOR's two epsilons, and the variance of a bit",
        module="papers.rappor",
        has_quick=False,
    ),
    "triehh": Paper(
        line="Zhu et al. 2020: F1 over K of TrieHH and SFP, epsilon 1 to 8 (three minutes)",
        module="papers.triehh",
    ),
    "triehh-batch": Paper(
        line="Zhu et al. 2020: the batch sizes of TrieHH, by arithmetic",
        module="papers.triehh_batch",
        has_quick=False,
    ),
}


def reproduction_of(name: str, *, data: Path | None = None) -> Reproduce:
    """Return what computes a paper's numbers.

    Args:
        name: The paper's.
        data: A file that they are computed on; None for none.

    Raises:
        InputError: There is no such paper, or it takes no file.
    """
    require_choice(PAPERS, paper=name)
    if data is not None and not PAPERS[name].data:
        takes = ", ".join(each for each, paper in PAPERS.items() if paper.data)
        raise InputError(f"Expected no data for {name}, got {data}; only {takes} takes a file.")
    reproduce = import_module(PAPERS[name].module).reproduce
    return cast("Reproduce", reproduce if data is None else partial(reproduce, data=data))
