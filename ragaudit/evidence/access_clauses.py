"""Which clauses of a metadata filter are about access: a row that violates one is another's, not of another subject."""

import re
from collections.abc import Mapping
from typing import Any

from ragaudit.evidence.principals import folded

_WHO = ("user", "group", "role", "principal")
ACCESS_FIELDS = frozenset(
    {"acl", "permission", "reader", "viewer", "owner", "team", "account", "customer", "client", "workspace"}
    | {"tenant", "org", "organisation", "organization", *_WHO}
    | {f"{may}{who}" for may in ("allowed", "view") for who in _WHO}
)
"""Fields that say whose a row is, or who may read it.

Without separators, case, a plural s, and "id" or "name" at the end: tenant_id, allowedGroups.
"""
PARTITIONS = frozenset({"namespace", "schema", "partition", "database", "collection", "dataset", "kb", "knowledgebase"})
"""Fields that stores keep tenants apart by, and subjects as well: `namespace: acme`, `dataset: 2024`."""

_SEPARATORS = re.compile(r"[\s_\-]+")
_FORMS = frozenset({"", "keyword", "raw", "text", "value"})
"""What the last part of a field adds to the name before it, without another meaning: tenant.id, tenant.keyword."""
_COUNTED = re.compile(r"(?=.*\d)(?:[\d\W_]|v|q|h|fy|rev|version)+")
"""A number, a date, a version: 2024, 2024-Q1, v2. That names nobody."""


def is_access_clause(field: str, condition: Any, principals: tuple[str, ...] | None) -> bool:
    """Is this clause about access: by its field, or because it asks for a principal of the user?

    Of a dotted field the last part counts (`user.language` is a language). A partition counts where a wanted value may
    name someone. The value may be a principal as it is ("u42"), together with its field ("plant": "north" for
    "plant:north"), or, of a partition, without what it is called ("partition": 42 for "tenant:42").
    """
    names = [name for name in map(_bare, field.split(".")) if name not in _FORMS]
    bare = names[-1] if names else ""
    if bare in ACCESS_FIELDS:
        return True
    held = {folded(principal) for principal in principals or ()}
    wanted = _wanted(condition)
    if bare in PARTITIONS:
        held |= {principal.rpartition(":")[2] for principal in held}
        if any(_COUNTED.fullmatch(value) is None for value in wanted):
            return True
    name = folded(field).removesuffix("_id")
    return any(not held.isdisjoint((value, f"{name}:{value}", f"{folded(field)}:{value}")) for value in wanted)


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
