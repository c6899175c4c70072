"""A config's `[protocol]`: one table of settings per protocol, told apart by `name`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from fedhh.experiments.config_section import Count, CountOrAuto, Section
from fedhh.validation import require_choice

DEFAULT_PROTOCOL = "ldp-triehh"

CLIENT_SETTINGS = ("max_items", "sampler", "pad")
"""What a client contributes, which protocols must share to be compared."""


class LdpTrieHHConfig(Section):
    """LDP TrieHH; see `fedhh.LdpTrieHH` for what each setting means.

    ``clients_per_layer`` may be "auto": the whole population is divided among the layers.
    """

    name: Literal["ldp-triehh"] = "ldp-triehh"
    clients_per_layer: CountOrAuto = "auto"
    depth: Count = 15
    eta_max: Count = 1_000
    max_items: Count = 10
    sampler: Literal["random", "greedy"] = "random"
    passes: Count = 2
    ties: Literal["strict", "paper"] = "strict"
    skip_free_layers: bool = True
    oracle: str = "ss"
    subset_size: Literal["optimal", "paper"] = "optimal"
    pad: bool = True
    reuse_clients: bool = False


class SfpConfig(Section):
    """Apple's Sequence Fragment Puzzle; see `fedhh.Sfp` for what each setting means.

    ``clients_per_layer`` is the cohort of its only round, "auto" for everybody. Of
    ``privacy.local_epsilon``, ``word_share`` goes to the report about the whole word (the paper's
    epsilon) and the rest to the fragment's (epsilon'): Apple's 2 + 6 are 8 with a share of 0.25.
    """

    name: Literal["sfp"] = "sfp"
    clients_per_layer: CountOrAuto = "auto"
    word_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    max_items: Count = 10
    sampler: Literal["random", "greedy"] = "random"
    length: Count = 10
    fragment_length: Count = 2
    num_puzzles: Count = 256
    word_oracle: Literal["cms", "hcms"] = "cms"
    word_hashes: Count = 2048
    word_cells: Count = 1024
    fragment_oracle: Literal["cms", "hcms", "ss"] = "cms"
    fragment_hashes: Count = 2048
    fragment_cells: Count = 1024
    max_fragments: Count = 50_000
    noise_budget: Annotated[float, Field(gt=0)] = 0.02
    max_strings: Count = 200_000
    max_words: Count = 1_000
    word_z: Annotated[float, Field(allow_inf_nan=False)] = 0.5
    pad: bool = True


class PemConfig(Section):
    """Prefix Extending Method; see `fedhh.Pem` for what each setting means.

    ``clients_per_layer`` is the size of a group; "auto": the whole population is divided. An "auto"
    oracle is the paper's "olh" if a group sends at most half a million reports, and "flh" above,
    since scoring with "olh" takes a time that grows with the reports.
    """

    name: Literal["pem"] = "pem"
    clients_per_layer: CountOrAuto = "auto"
    max_items: Count = 10
    sampler: Literal["random", "greedy"] = "random"
    length: Count = 10
    step: Count = 2
    keep: Count = 100
    oracle: Literal["auto", "olh", "flh", "cms", "hcms"] = "auto"
    num_hashes: Count = 2048
    pad: bool = True


class TrieHHConfig(Section):
    """TrieHH in the central model; see `fedhh.TrieHH`.

    ``clients_per_layer`` (m) and ``threshold`` (theta) are "auto" together: the least threshold for
    ``privacy.delta``, then the largest sample for ``central_epsilon``, by the theorem of Zhu et al.
    (2020). If they are given, they alone say what the run can claim. ``privacy.local_epsilon``
    means nothing here, since votes are not randomized.
    """

    name: Literal["triehh"] = "triehh"
    clients_per_layer: CountOrAuto = "auto"
    threshold: CountOrAuto = "auto"
    central_epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 4.0
    depth: Count = 10


PROTOCOL_SECTIONS: dict[str, type[Section]] = {
    "ldp-triehh": LdpTrieHHConfig,
    "sfp": SfpConfig,
    "pem": PemConfig,
    "triehh": TrieHHConfig,
}
"""The table of settings of each protocol, by name."""


def _name_of(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("name", DEFAULT_PROTOCOL)
    # What is no table at all is refused by the default's validator, which says so.
    return getattr(value, "name", DEFAULT_PROTOCOL)


ProtocolConfig = Annotated[
    Annotated[LdpTrieHHConfig, Tag("ldp-triehh")]
    | Annotated[SfpConfig, Tag("sfp")]
    | Annotated[PemConfig, Tag("pem")]
    | Annotated[TrieHHConfig, Tag("triehh")],
    Discriminator(_name_of),
]
"""How words are discovered: one of `PROTOCOL_SECTIONS`."""


def protocol_section(name: Any) -> type[Section]:
    """Return the class of a protocol's settings; InputError if there is no such protocol."""
    require_choice(PROTOCOL_SECTIONS, protocol=name)
    return PROTOCOL_SECTIONS[name]


def switch_protocol(table: dict[str, Any], name: Any) -> dict[str, Any]:
    """Return a `[protocol]` table for another protocol.

    It keeps what a client contributes, `CLIENT_SETTINGS`; all else was chosen for the other
    protocol and becomes the default. A table that names the protocol already stays as it is.

    Raises:
        InputError: There is no such protocol.
    """
    fields = protocol_section(name).model_fields
    if table.get("name", DEFAULT_PROTOCOL) == name:
        return table
    return {"name": name} | {k: table[k] for k in CLIENT_SETTINGS if k in table and k in fields}
