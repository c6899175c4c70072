"""What all tables of a configuration file have in common."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

from fedhh import settings
from fedhh.settings import described


def _describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Put what the docstring says of each key into a JSON schema."""
    for key, text in described(model).items():
        if key in schema.get("properties", {}):
            schema["properties"][key]["description"] = text


class Section(BaseModel):
    """A frozen table of the file; unknown keys and loose types are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, json_schema_extra=_describe)


def one_of(annotation: Any) -> BeforeValidator:
    """Return what makes a union's error say in one line what a key may hold."""

    def check(value: Any) -> Any:
        if any(settings.fits(value, each) for each in settings.alternatives(annotation)):
            return value
        members = settings.alternatives(annotation)
        expected = ", or ".join(settings.expectation(each) for each in members)
        raise PydanticCustomError("one_of", "{expected}", {"expected": expected})

    return BeforeValidator(check)


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
