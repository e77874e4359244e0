"""How an access list meets the principals of a user: as the rules mean it, and word for word as a store compares."""

from collections.abc import Iterable, Mapping
from typing import Any

from ragaudit.config import AclSettings

PUBLIC = frozenset({"public", "everyone", "all", "*"})
"""Entries that mean every user in most systems; [acl] everyone says whether they do here."""

_DENY = ("!", "-", "deny:")


def admits(acl: tuple[str, ...] | None, principals: tuple[str, ...] | None, settings: AclSettings) -> bool | None:
    """Does this ACL admit a user with these principals? None when it is not known or not proven either way.

    An empty ACL admits nobody: a list that was read and holds no principal is not a missing list. Not proven either
    way: only case or surrounding spaces keep the two apart; an entry of PUBLIC while [acl] everyone is not set; an
    entry that denies, which is not evaluated, where it could apply or the rest of the list admits.
    """
    if acl is None or principals is None:
        return None
    held = {*principals, *settings.everyone}
    if any(_denies(entry) for entry in acl):
        return _with_denials(acl, held, settings)
    if _meets(acl, held, settings):
        return True
    more = PUBLIC if not settings.everyone else frozenset()
    return None if _meets([folded(entry) for entry in acl], {*map(folded, held), *more}, settings) else False


def meets(acl: tuple[str, ...] | None, sent: Iterable[str] | None, settings: AclSettings) -> bool | None:
    """Would a store that is sent these principals return a row with this ACL? It compares word for word.

    None when either is not known, or when the list holds an entry that denies.
    """
    if acl is None or sent is None or any(_denies(entry) for entry in acl):
        return None
    return _meets(acl, {*sent}, settings)


def clause_meets(
    condition: Any, acl: tuple[str, ...] | None, principals: tuple[str, ...] | None, settings: AclSettings
) -> bool | None:
    """Would an `acl` clause as it was sent return a row with this ACL? None when it is not known.

    What was sent counts, not what the user holds; a clause of unknown form is taken to send all of that.
    """
    sent = named_principals(condition)
    if sent is None and principals is not None:
        sent = (*principals, *settings.everyone)
    return meets(acl, sent, settings)


def folded(principal: str) -> str:
    """A principal without case and surrounding spaces."""
    return principal.strip().casefold()


def in_other_words(acl: Iterable[str], principals: Iterable[str]) -> tuple[str, str] | None:
    """An entry and a principal of one name, apart from case, punctuation, and a kind that only one of them states.

    "Everyone except external users" and "group:EveryoneExceptExternalUsers": that is how a sync loses a principal. It
    admits nobody.
    """
    pairs = ((entry, principal) for entry in acl for principal in principals if not _denies(entry))
    return next((pair for pair in pairs if _one_name(*pair)), None)


def _one_name(a: str, b: str) -> bool:
    kinds = {kind for kind in (folded(a).rpartition(":")[0], folded(b).rpartition(":")[0]) if kind}
    names = {"".join(filter(str.isalnum, folded(each).rpartition(":")[2])) for each in (a, b)}
    return len(kinds) < 2 and len(names) == 1 and names != {""}


def denials(acl: Iterable[str]) -> list[str]:
    """The entries that take access away: "!user:bob", "-user:bob", "deny:user:bob"."""
    return [entry for entry in acl if _denies(entry)]


def named_principals(condition: Any) -> tuple[str, ...] | None:
    """The principals that an `acl` clause was sent with; None when its form is not known."""
    if isinstance(condition, Mapping) and len(condition) == 1:
        ((operator, condition),) = condition.items()
        if operator.lstrip("$") not in ("in", "any", "eq"):
            return None
    values = list(condition) if isinstance(condition, (list, tuple)) else [condition]
    return tuple(values) if values and all(isinstance(value, str) for value in values) else None


def _meets(acl: Iterable[str], held: set[str], settings: AclSettings) -> bool:
    entries = {*acl}
    if settings.rule == "all":
        return bool(entries) and held >= entries
    return not held.isdisjoint(entries)


def _with_denials(acl: tuple[str, ...], held: set[str], settings: AclSettings) -> bool | None:
    allowed = tuple(entry for entry in acl if not _denies(entry))
    denied = {_without_sign(folded(entry)) for entry in denials(acl)}
    if not allowed or not denied.isdisjoint(map(folded, held)):
        return None
    return None if admits(allowed, tuple(held), settings) is not False else False


def _denies(entry: str) -> bool:
    text = folded(entry)
    return text.startswith(_DENY) and _without_sign(text) != ""


def _without_sign(text: str) -> str:
    sign = next(sign for sign in _DENY if text.startswith(sign))
    return text.removeprefix(sign).strip()
