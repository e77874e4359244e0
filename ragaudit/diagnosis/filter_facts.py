"""How one gold id meets the filters of its query, by what is known of its fields and of its stored ACL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ragaudit.evidence.access import Access
from ragaudit.evidence.journey import GoldRow
from ragaudit.evidence.predicate import ACL_KEY, Match, clauses, match
from ragaudit.evidence.principals import clause_meets, meets


@dataclass(frozen=True)
class Tested:
    """One clause that was sent, and how the gold meets it. `stored` is the gold's value, None where none is known."""

    sent: Any
    stored: Any
    found: Match


class FilterFacts:
    """One gold id against the filters that were sent."""

    def __init__(
        self, access: Access, row: GoldRow, of_arms: Sequence[Mapping[str, Any] | None], probed: bool | None
    ) -> None:
        """Of this gold.

        Args:
            access: Of the query.
            row: The label joined with the inventory.
            of_arms: The filters of the arms that do not have the gold within K.
            probed: What the probe `filter_passes` says of the gold.
        """
        self._access = access
        self._trace = access.trace
        self._row = row
        self._of_arms = of_arms
        self._probed = probed

    @cached_property
    def tested(self) -> Mapping[str, Tested]:
        """Each clause of the filter that was sent, by field; an arm's own clause in place of the query's."""
        sent = dict(clauses(self._trace.filters_applied))
        for of_arm in self._of_arms:
            sent.update(clauses(of_arm))
        fields = self._access.metadata_of(self._row.gold)
        return {
            name: Tested(condition, (fields or {}).get(name), match(condition, fields, name))
            for name, condition in sent.items()
        }

    @property
    def stored_acl_admits(self) -> bool | None:
        """Does the ACL as stored in the index, word for word, admit this user? None when it is not known."""
        chunk, user = self._row.chunk, self._trace.user_acl
        held = None if user is None else (*user, *self._access.settings.everyone)
        return meets(chunk.acl if chunk else None, held, self._access.settings)

    @cached_property
    def sent_acl_holds(self) -> Mapping[str, bool | None]:
        """Where an `acl` clause was sent (an arm, or "" for the query) -> does the stored ACL meet what it sent?"""
        sent = {name: status.filter or {} for name, status in (self._trace.arm_status or {}).items()}
        sent[""] = self._trace.filters_applied or {}
        acl, user = self._row.chunk.acl if self._row.chunk else None, self._trace.user_acl
        return {
            name: clause_meets(filters[ACL_KEY], acl, user, self._access.settings)
            for name, filters in sent.items()
            if ACL_KEY in filters
        }

    @property
    def cleared(self) -> bool:
        """A filter is known not to have dropped the gold: none was sent, or each clause is known to hold for it."""
        if self._probed is True:
            return True
        if self.stored_acl_admits is False or self._trace.filters_applied is None:
            return False
        sent = [s.filter for s in (self._trace.arm_status or {}).values() if s.filter]
        if not self._trace.filters_applied and not sent:
            return True
        held = all(each.found is Match.YES for each in self.tested.values())
        return held and all(met is True for met in self.sent_acl_holds.values())
