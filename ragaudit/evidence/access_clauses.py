"""Which clauses of a metadata filter are about access: a row that violates one is another's, not of another subject."""

import re
from collections.abc import Mapping
from typing import Any

from ragaudit.evidence.principals import folded

_WHO = ("user", "group", "role", "principal")
ACCESS_FIELDS = frozenset(
    {"acl", "permission", "reader", "viewer", "owner", "team", "account", "customer", "client", "workspace"}
    | {"tenant", "org", "organisation", "organization", *_WHO}
    | {"namespace", "schema", "partition", "database", "collection", "dataset", "kb", "knowledgebase"}
    | {f"{may}{who}" for may in ("allowed", "view") for who in _WHO}
)
"""Fields that say whose a row is, or who may read it, and the partitions that stores keep tenants apart in.

Without separators, case, a plural s, and "id" or "name" at the end: tenant_id, allowedGroups, schema_name.
"""

_SEPARATORS = re.compile(r"[\s_\-]+")


def is_access_clause(field: str, condition: Any, principals: tuple[str, ...] | None) -> bool:
    """Is this clause about access: by its field, or because it asks for a principal of the user?

    The value may be a principal as it is ("u42") or together with its field ("plant": "north" for "plant:north").
    """
    if any(_bare(part) in ACCESS_FIELDS for part in field.split(".")):
        return True
    held = {folded(principal) for principal in principals or ()}
    name = folded(field).removesuffix("_id")
    return any(
        not held.isdisjoint((value, f"{name}:{value}", f"{folded(field)}:{value}")) for value in _wanted(condition)
    )


def _bare(name: str) -> str:
    return (
        _SEPARATORS.sub("", name).casefold().removesuffix("s").removesuffix("id").removesuffix("name").removesuffix("s")
    )


def _wanted(condition: Any) -> list[str]:
    """The values that a clause lets through, as text without case."""
    if isinstance(condition, Mapping):
        kinds = ("eq", "$eq", "=", "in", "$in", "any")
        return [value for name, wanted in condition.items() if name in kinds for value in _wanted(wanted)]
    values = condition if isinstance(condition, (list, tuple)) else [condition]
    return [folded(value) for value in values if isinstance(value, str)] + [
        str(value) for value in values if isinstance(value, int) and not isinstance(value, bool)
    ]
