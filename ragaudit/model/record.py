"""The two kinds of record: what a file said (unknown keys kept) and what the audit concluded (closed)."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict


class Observed(BaseModel):
    """A record read from outside. Frozen; keys that ragaudit does not know are kept in `model_extra`."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, protected_namespaces=())


class Concluded(BaseModel):
    """A record that the audit produced. Frozen and closed: an unknown key is a mistake of ours."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, protected_namespaces=())


def said(given: Any) -> bool:
    """Whether a table holds a value. An empty table says nothing; `[]`, `""` and `false` are values."""
    if isinstance(given, BaseModel):
        return said(given.model_dump(exclude_unset=True))
    if isinstance(given, Mapping):
        return any(said(value) for value in given.values())
    if isinstance(given, list | tuple) and given:
        return any(said(value) for value in given)
    return given is not None
