"""Tables of a configuration: what all have in common, and a protocol's, made from its class."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from annotated_types import Gt, Lt
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic_core import PydanticCustomError

from fedhh import plugins, settings
from fedhh.protocol import DiscoveryProtocol
from fedhh.server.registry import protocol_class, protocol_names
from fedhh.settings import alternatives, bounds_of, config_path, described, settings_of

DEFAULT_PROTOCOL = "ldp-triehh"

CONTRIBUTED = ("max_items", "sampler", "pad")
"""What a client contributes."""

SHARED_SETTINGS = (
    *CONTRIBUTED,
    *("false_discovery_rate", "anonymity_k", "validation_share"),
)
"""What a client contributes, and by what rule words are returned: alike in a fair comparison."""


def _describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    for key, text in described(model).items():
        if key in schema.get("properties", {}):
            schema["properties"][key]["description"] = text


class Section(BaseModel):
    """A frozen table of the file; unknown keys and loose types are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, json_schema_extra=_describe)


_Section = TypeVar("_Section", bound=Section)


def table_in(annotation: Any) -> Any:
    """Return the class of the table that a key holds, if it is not left out; else the annotation.

    >>> table_in(Section | None) is Section, table_in(int | None)
    (True, int | None)
    """
    options = [annotation, *get_args(annotation)]
    tables = (each for each in options if isinstance(each, type) and issubclass(each, BaseModel))
    return next(tables, annotation)


def one_of(annotation: Any) -> BeforeValidator:
    """Return what makes a union's error say in one line what a key may hold."""

    def check(value: Any) -> Any:
        members = alternatives(annotation)
        value = _as_tuples(value)
        if any(settings.fits(value, each) for each in members):
            return value
        expected = ", or ".join(map(settings.expectation, members))
        raise PydanticCustomError("one_of", "{expected}", {"expected": expected})

    return BeforeValidator(check)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value


def text_or_texts(expected: str) -> BeforeValidator:
    """Return what takes a text or a list of texts, and says in one line what it expects."""

    def check(value: Any) -> Any:
        if isinstance(value, str):
            return value
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
            return tuple(value)
        raise PydanticCustomError("text_or_texts", "{expected}", {"expected": expected})

    return BeforeValidator(check)


CountOrAuto = Annotated[settings.CountOrAuto, one_of(settings.CountOrAuto)]


class ProtocolSection(Section):
    """The settings of one protocol, without those that a configuration keeps elsewhere.

    Attributes:
        name: Which protocol: a name of fedhh's or of an installed package, or "module:Class" of a
            module next to the configuration.
    """

    name: str

    def __reduce__(self) -> tuple[Any, ...]:
        # The class is made when it is needed, so a process that unpickles this makes it, too.
        return _restored, (self.name, dict(self))

    def changed(self, values: dict[str, Any]) -> ProtocolSection:
        """Return the section with those of some values that it holds."""
        known = {key: value for key, value in values.items() if key in type(self).model_fields}
        return self.model_copy(update=known)


class UncheckedSection(ProtocolSection):
    """The settings of a protocol whose code is not to be imported, as they stand."""

    model_config = ConfigDict(extra="allow")


def section_class(name: Any) -> type[ProtocolSection]:
    """Return the class of a protocol's table; InputError if there is no such protocol.

    Within `fedhh.plugins.disabled` the table of a protocol that is not fedhh's is not checked.
    """
    try:
        return _section_of(protocol_class(name), name)
    except plugins.DisabledError:
        return UncheckedSection


def known_sections() -> dict[str, type[ProtocolSection]]:
    """Return the tables of all protocols that have a name without a file."""
    return {name: section_class(name) for name in protocol_names()}


def switch_protocol(table: dict[str, Any], name: Any) -> dict[str, Any]:
    """Return a `[protocol]` table for another protocol.

    It keeps the `SHARED_SETTINGS` that the protocol has; all else was chosen for the other protocol
    and becomes the default. A table that names the protocol already stays as it is.
    """
    fields = section_class(name).model_fields
    if table.get("name", DEFAULT_PROTOCOL) == name:
        return table
    return {"name": name} | {k: table[k] for k in SHARED_SETTINGS if k in table and k in fields}


def own_settings(kind: Any) -> dict[str, Any]:
    """Return the annotations of the settings that stand in a class's own table."""
    return {key: each for key, each in settings_of(kind).items() if config_path(each) is None}


def borrowed_settings(kind: type[DiscoveryProtocol]) -> dict[str, str]:
    """Return the settings that stand elsewhere in a configuration, with their paths there."""
    paths = {key: config_path(each) for key, each in settings_of(kind).items()}
    return {key: path for key, path in paths.items() if path is not None}


@cache
def _section_of(kind: type[Any], name: str) -> type[ProtocolSection]:
    return _table(kind, ProtocolSection, kind.title, name=(Literal[name], name))


class MadeSection(Section):
    """A table whose keys are the settings of a class, such as `fedhh.devices.Devices`."""

    kind: ClassVar[type[Any]]

    @property
    def made(self) -> Any:
        """The settings, for a run; InputError if they contradict each other."""
        return self.kind(**dict(self))


@cache
def section_of(kind: type[Any]) -> type[MadeSection]:
    """Return the class of a table whose keys are the settings of a class."""
    section = _table(kind, MadeSection, kind.__name__.lower())
    section.kind = kind
    return section


def _table(kind: type[Any], base: type[_Section], title: str, **fields: Any) -> type[_Section]:
    own = own_settings(kind)
    for field in dataclasses.fields(kind):
        if field.name in own:
            default = ... if field.default is dataclasses.MISSING else field.default
            fields[field.name] = (_key_type(own[field.name]), default)
    texts = "\n".join(f"    {key}: {text}" for key, text in described(kind).items())
    section: type[_Section] = create_model(
        f"{kind.__name__}Section",
        __base__=base,
        __doc__=f"Settings of {title}.\n\nAttributes:\n{texts}\n",
        **fields,
    )
    return section


def _key_type(annotation: Any) -> Any:
    """Return a setting's type for pydantic, which says finite in words and not in bounds."""
    if len(alternatives(annotation)) > 1:
        return Annotated[annotation, one_of(annotation)]
    if annotation == tuple[str, ...]:
        return Annotated[annotation, BeforeValidator(_as_texts)]
    infinite = {Gt(-math.inf), Lt(math.inf)}
    bounds = bounds_of(annotation)
    if infinite.isdisjoint(bounds):
        return annotation
    kept = [bound for bound in bounds if bound not in infinite]
    return Annotated[(get_args(annotation)[0], *kept, Field(allow_inf_nan=False))]


def _as_texts(value: Any) -> Any:
    """Return the texts of a list, or one text by itself."""
    if isinstance(value, str):
        value = [value] if value else []
    return tuple(value) if isinstance(value, list) else value


def _restored(name: str, values: dict[str, Any]) -> ProtocolSection:
    return section_class(name).model_validate(values)
