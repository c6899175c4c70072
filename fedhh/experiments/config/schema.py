"""A run's configuration: one TOML file, checked before anything runs.

`[execution]` and `[output]` may change how fast and where a run happens, never what comes out; all
other sections make the result. `Config.result_key` is a hash of those.
"""

from __future__ import annotations

import hashlib
import json
import operator
from functools import reduce
from typing import Annotated, Any, Literal

import tomli_w
from annotated_types import Ge
from pydantic import (
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    create_model,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fedhh.accounting.guarantees import UNITS, Unit
from fedhh.adversary import Adversary
from fedhh.devices import Devices
from fedhh.experiments.config.section import (
    DEFAULT_PROTOCOL,
    CountOrAuto,
    ProtocolSection,
    Section,
    known_sections,
    one_of,
    section_class,
    section_of,
    text_or_texts,
)
from fedhh.settings import Count
from fedhh.validation import SMALLEST_EPSILON
from fedhh.words.known_words import SCOWL70
from fedhh.words.languages import ENGLISH

_BoolOrAuto = bool | Literal["auto"]
_CountOrAll = Count | Literal["all"]
_WorkersOrAuto = Annotated[int, Ge(0)] | Literal["auto"]
_TextOrTexts = str | tuple[str, ...]
_CentralEpsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ModelConfig(Section):
    """Changes to a synthetic population's model, see `synthetic.PopulationModel` of the clients.

    Attributes:
        base: For "wordfreq-tail": the preset whose clients type; keyboard60d if none.
        vocabulary: For "wordfreq-tail": the size of the vocabulary; 60,000 if none. For "zipf":
            the number of words; 5,000 if none.
        tail_mass: For "wordfreq-tail": share of the vocabulary's mass that is new; 0.05 if none.
        exponent: For "zipf": of the distribution; 1.1 if none.
        word_length: For "zipf": letters of every word; 6 if none.
        copy_exponent: How soon clients copy themselves; 0: every word is a fresh draw.
        adoption: Share of all new words that a client can use.
        log_words_mean: Mean of the logarithm of how many words a client types.
        log_words_sd: Its standard deviation.
        oov_share_log_sd: How much clients differ in their share of new words.
    """

    base: str | None = None
    vocabulary: Count | None = None
    tail_mass: Annotated[float, Field(gt=0, lt=1)] | None = None
    exponent: float | None = None
    word_length: Count | None = None
    copy_exponent: float | None = None
    adoption: float | None = None
    log_words_mean: float | None = None
    log_words_sd: float | None = None
    oov_share_log_sd: float | None = None


class ColumnsConfig(Section):
    """The names that a file has for its columns; found by their usual names if none.

    Attributes:
        user: The column of users.
        word: Of words.
        count: Of how often a word was typed.
        text: Of texts, for files without words.
        day: Of days, for collections that are repeated.
    """

    user: str | None = None
    word: str | None = None
    count: str | None = None
    text: str | None = None
    day: str | None = None

    @property
    def named(self) -> dict[str, str]:
        """The columns that have a name here, by what they are."""
        return {role: name for role, name in self if name is not None}


class PopulationConfig(Section):
    """Who is simulated.

    Attributes:
        source: A preset of the synthetic population (chat, keyboard60d, tweet, post),
            "wordfreq-tail", "zipf", a file, or somebody else's class: an entry point of
            ``fedhh.populations``, or "module:Class".
        clients: Size of a synthetic population. Of a file, so many of its users, drawn by the
            run's seed; all if it is left out.
        virtual: Whether clients of a synthetic population are drawn again whenever they are
            asked, instead of being held in memory; "auto": if they are many.
        language: Of the clients, by its code, such as "de". A synthetic population's words are of
            it; in any population, its rules of case hold. With another than "en", the English
            ``known`` = "scowl70" and ``alphabet`` = "lower" stand for the language's own list, and
            for "auto".
        known: Words that devices know and keep to themselves: "scowl70", which are English, the
            code of another language, whose words are 95 % of what people type according to
            wordfreq, "none", or a file with a word per line.
        alphabet: "printable", "lower", or the symbols themselves; "auto": those of a public list,
            see ``alphabet_source``; "from-data": those of the clients' words, which is not private.
        alphabet_source: For "auto": the file whose symbols to take, the known words if empty. In a
            run's own file, where its symbols came from.
        candidates: The words that protocols of a closed domain ask about, which others have no use
            for: a file with a word per line, or the words themselves; "from-data": the clients' own
            words, which is not private. In a run's own file the words of the file stand here.
        columns: The names that a file has for its columns.
        separator: What separates the columns of a CSV file: a sign, or "tab"; a comma if none.
        fold_case: Bring the counted words of a file to the form that texts have: plain
            apostrophes, NFKC, lower case. The counts of words that become one are added up.
        model: Changes to the model of a synthetic population.
    """

    source: str = "chat"
    clients: Count | None = None
    virtual: Annotated[_BoolOrAuto, one_of(_BoolOrAuto)] = "auto"
    language: Annotated[str, Field(min_length=1)] = ENGLISH
    known: str = "scowl70"
    alphabet: Annotated[str, Field(min_length=1)] = "lower"
    alphabet_source: str = ""
    candidates: Annotated[_TextOrTexts, text_or_texts("a file or a list of words")] = ""
    columns: ColumnsConfig = ColumnsConfig()
    separator: str | None = None
    fold_case: bool = False
    model: ModelConfig = ModelConfig()

    @model_validator(mode="before")
    @classmethod
    def _by_language(cls, table: Any) -> Any:
        """Put a language's own in the place of what is English, or left out."""
        language = table.get("language", ENGLISH) if isinstance(table, dict) else ENGLISH
        if language == ENGLISH or not isinstance(language, str):
            return table
        english = {"known": SCOWL70, "alphabet": "lower"}
        own = {"known": language, "alphabet": "auto"}
        changed = {key: own[key] for key in own if table.get(key, english[key]) == english[key]}
        return {**table, **changed}


class PrivacyConfig(Section):
    """What privacy costs, or what it is stated for.

    Attributes:
        local_epsilon: Of one contribution; at least 1e-6, below which floating point fails.
        item_central_epsilon: In place of ``local_epsilon``: the most that the results may reveal of
            one item, before the run; accounting chooses each protocol's epsilons.
        user_central_epsilon: The same of all items of a user.
        delta: Of central guarantees.
        alpha: Of approximate k-anonymity.
    """

    local_epsilon: Annotated[float, Field(ge=SMALLEST_EPSILON, allow_inf_nan=False)] = 8.0
    item_central_epsilon: _CentralEpsilon | None = None
    user_central_epsilon: _CentralEpsilon | None = None
    delta: Annotated[float, Field(ge=1e-14, le=0.1)] = 1e-10
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.95

    @model_validator(mode="before")
    @classmethod
    def _one_epsilon(cls, table: Any) -> Any:
        names = [f"{unit}_central_epsilon" for unit in UNITS] + ["local_epsilon"]
        given = [name for name in names if isinstance(table, dict) and table.get(name) is not None]
        if len(given) > 1:
            what = f"{given[0]} alone, from which {given[1]} follows"
            raise PydanticCustomError("one_epsilon", "{what}", {"what": what})
        return table

    @model_serializer(mode="wrap")
    def _given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return what was given: a central epsilon, or the local one."""
        target = self.central_target
        kept = "local_epsilon" if target is None else f"{target[0]}_central_epsilon"
        return {
            name: value
            for name, value in dump(self).items()
            if name == kept or not name.endswith("_epsilon")
        }

    @property
    def central_target(self) -> tuple[Unit, float] | None:
        """Whose central epsilon is to be how large; None where the local one is given."""
        targets = ((unit, getattr(self, f"{unit}_central_epsilon")) for unit in UNITS)
        return next(((unit, epsilon) for unit, epsilon in targets if epsilon is not None), None)

    def at_local(self, local_epsilon: float) -> PrivacyConfig:
        """Return it with this local epsilon, and no central one to be reached."""
        none = {f"{unit}_central_epsilon": None for unit in UNITS}
        return self.model_copy(update={"local_epsilon": local_epsilon, **none})


class SimulationConfig(Section):
    """How faithfully clients are simulated.

    Attributes:
        fidelity: "per-report": every client randomizes every contribution. "exact-tally": each
            layer's tally is drawn at once, given what clients contribute, with the same joint
            distribution. "auto": whichever is cheaper for a layer, by its sizes.
        drawn_clients: The most clients of a layer that are drawn, or "all". The counts of a larger
            layer are scaled up, and its tally is drawn at once: that is approximate.
    """

    fidelity: Literal["auto", "exact-tally", "per-report"] = "auto"
    drawn_clients: Annotated[_CountOrAll, one_of(_CountOrAll)] = "all"


class MetricsConfig(Section):
    """What the result is measured against.

    Attributes:
        top_k: Sizes of the true top to compare with.
        min_clients: Words held by at least so many clients are the ones to find; "auto": by one
            client in a thousand, and at least 10.
        significance_z: A discovery is significant if its votes lie above the noise's by more than
            so many standard deviations, or as improbably.
        ceiling: Measure also what one round of Subset Selection could find that knows every held
            word, and which share of that the run covers. It asks all clients once more.
    """

    top_k: tuple[Count, ...] = Field(default=(20, 100, 500), strict=False)
    min_clients: CountOrAuto = "auto"
    significance_z: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 4.0
    ceiling: bool = False


class ExecutionConfig(Section):
    """How fast; changes no result.

    Attributes:
        workers: Ray actors that hold clients; 0: this process alone, without Ray. "auto": on the
            cluster at ``ray_address``, each core that is free; else each core of this machine if
            that saves more time than Ray takes to start, and this process alone if not.
        ray_address: ``HOST:PORT`` of a running Ray cluster, or ``auto`` for this machine's; a
            local Ray if empty.
    """

    workers: Annotated[_WorkersOrAuto, one_of(_WorkersOrAuto)] = "auto"
    ray_address: str = ""


class OutputConfig(Section):
    """Where files go.

    Attributes:
        directory: The folder in which each run makes its own.
        keep_log: Keep after the run what it would have gone on from: its log of rounds, or a
            pipeline's sums.
    """

    directory: str = "runs"
    keep_log: bool = False


def _default_protocol() -> ProtocolSection:
    return section_class(DEFAULT_PROTOCOL)(name=DEFAULT_PROTOCOL)


class Config(Section):
    """The whole file.

    Attributes:
        seed: Of everything that is drawn.
        population: Who is simulated.
        protocol: How words are discovered.
        baseline: Protocols that `fedhh run` runs on the same clients, to show next to the other:
            a table each, or a name; "none" for none. What a client contributes is as in
            ``protocol`` where it is left out.
        privacy: What privacy costs are stated for.
        simulation: How faithfully clients are simulated.
        devices: When clients' devices are there; if left out, all of them always answer at once.
        adversary: Fake clients, or clients that collude; if left out, all are honest.
        metrics: What the result is measured against.
        execution: How fast.
        output: Where files go.
    """

    seed: Annotated[int, Field(ge=0)] = 0
    population: PopulationConfig = PopulationConfig()
    protocol: SerializeAsAny[ProtocolSection] = Field(default_factory=_default_protocol)
    baseline: tuple[SerializeAsAny[ProtocolSection], ...] | None = None
    privacy: PrivacyConfig = PrivacyConfig()
    simulation: SimulationConfig = SimulationConfig()
    devices: section_of(Devices) | None = None  # type: ignore[valid-type]
    adversary: section_of(Adversary) | None = None  # type: ignore[valid-type]
    metrics: MetricsConfig = MetricsConfig()
    execution: ExecutionConfig = ExecutionConfig()
    output: OutputConfig = OutputConfig()

    @property
    def result_key(self) -> str:
        """Hexadecimal hash of everything that makes the result."""
        optional = ("devices", "adversary")
        left_out = [key for key in optional if getattr(self, key) is None]
        excluded = {"execution", "output", *left_out}
        content = self.model_dump(mode="json", exclude=excluded)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def of_baselines(self) -> tuple[Config, ...]:
        """The same with each baseline as its protocol, where that differs."""
        return tuple(
            self.model_copy(update={"protocol": each, "baseline": None})
            for each in self.baseline or ()
            if each != self.protocol
        )

    def to_toml(self) -> str:
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a configuration, with the table of every protocol that has a name.

    A protocol from a file, "module:Class", has a table of its own, which no schema can know.
    """
    union: Any = reduce(operator.or_, known_sections().values())
    protocol = Annotated[union, Field(discriminator="name")]
    whole = create_model(
        "Config",
        __base__=Config,
        __doc__=Config.__doc__,
        protocol=(protocol, _default_protocol()),
        baseline=(list[protocol | str] | protocol | Literal["none"] | None, None),
    )
    return whole.model_json_schema()
