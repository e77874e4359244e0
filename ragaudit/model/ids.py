"""Ids are strings: integers and UUIDs from a file are read as their string form."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator


def as_id(value: Any) -> Any:
    """Return the string form of an integer or UUID; leave everything else for the validator to judge.

    `True` is no id: booleans are integers in Python, and an id column that holds them is an error.
    """
    if isinstance(value, UUID) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    return value


Id = Annotated[str, BeforeValidator(as_id)]
