"""What a conformance check is: a named property, and a failure that says what was wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from fedhh.validation import InputError

Subject = TypeVar("Subject")


class ConformanceError(AssertionError):
    """A property does not hold; the message names the check, the subject, value and bound."""


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """One property of a class; call it on an object to find out whether it holds.

    Attributes:
        name: The property.
        body: Raises AssertionError if the property does not hold for an object and a seed.
        applies: Whether an object has to have the property.
    """

    name: str
    body: Callable[[Subject, int], None]
    applies: Callable[[Subject], bool]

    def __call__(self, subject: Subject, *, seed: int = 0) -> None:
        """Raise `ConformanceError` unless the property holds.

        Args:
            subject: What is checked.
            seed: Of all randomness of the check.
        """
        try:
            self.body(subject, seed)
        except AssertionError as failure:
            raise ConformanceError(f"{self.name}: {subject}: {failure}") from failure
        except Exception as error:
            kind = type(error).__name__
            raise ConformanceError(f"{self.name}: {subject}: raised {kind}: {error}") from error

    def __str__(self) -> str:
        return self.name


class Checks(list[Check[Subject]]):
    """Checks in their order, to which a module adds its functions."""

    def add(
        self, applies: Callable[[Subject], bool] = lambda _: True
    ) -> Callable[[Callable[[Subject, int], None]], Callable[[Subject, int], None]]:
        """Return a decorator that adds a function ``_name(subject, seed)`` as the check "name"."""

        def register(body: Callable[[Subject, int], None]) -> Callable[[Subject, int], None]:
            self.append(Check(body.__name__.lstrip("_"), body, applies))
            return body

        return register


def expect(holds: object, message: str) -> None:
    """Raise AssertionError with a message unless something holds; works under ``python -O``."""
    if not holds:
        raise AssertionError(message)


def expect_refusal(what: str, call: Callable[[], object], *, naming: str) -> None:
    """Raise AssertionError unless a call raises an InputError whose message has a word.

    Args:
        what: The bad input, for the message.
        call: Passes it on.
        naming: The word; the argument's name.
    """
    try:
        call()
    except InputError as error:
        expect(naming in str(error), f"the refusal of {what} does not name {naming}: {error}")
    except Exception as error:
        raise AssertionError(
            f"{what} raised {type(error).__name__} ({error}); expected an InputError that names "
            f"{naming}, from fedhh.validation"
        ) from error
    else:
        raise AssertionError(f"{what} was accepted; expected an InputError that names {naming}")
