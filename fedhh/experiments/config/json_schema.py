"""The JSON schema of a configuration, for editors and for the reference of keys."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from fedhh.experiments.config.protocol_section import known_sections
from fedhh.experiments.config.schema import Config, default_protocol


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
        protocol=(protocol, default_protocol()),
        baseline=(list[protocol | str] | protocol | Literal["none"] | None, None),
    )
    return whole.model_json_schema()
