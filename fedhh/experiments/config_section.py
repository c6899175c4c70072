"""What all tables of a configuration file have in common."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

Count = Annotated[int, Field(ge=1)]


def _check_count_or_auto(value: Any) -> Any:
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise PydanticCustomError("count_or_auto", 'an integer of at least 1, or "auto"')


CountOrAuto = Annotated[int | Literal["auto"], BeforeValidator(_check_count_or_auto)]


class Section(BaseModel):
    """A frozen table of the file; unknown keys and loose types are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
